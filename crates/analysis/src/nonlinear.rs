//! Nonlinear expressions, which symbolic domains cannot represent exactly.

use fencewright_memory::CellId;
use fencewright_memory::linear::cases;
use fencewright_program::Expr;

/// Whether an expression or one of its subexpressions is nonlinear, so that symbolic domains cannot represent its value, at least in some cases.
pub fn is_nonlinear(e: &Expr<CellId>) -> bool {
    let inside = match e {
        Expr::Const(_) | Expr::Leaf(_) => return false,
        Expr::Unary(_, operand) => is_nonlinear(operand),
        Expr::Binary(_, left, right) => is_nonlinear(left) || is_nonlinear(right),
        Expr::If(condition, then, otherwise) => {
            [condition, then, otherwise].into_iter().any(|e| is_nonlinear(e))
        }
    };
    inside || cases(e).iter().any(|(_, value)| value.is_none())
}
