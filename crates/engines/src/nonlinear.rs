//! Arithmetic that is not linear.

use fencewright_memory::CellId;
use fencewright_memory::linear::{cases, is_opaque};
use fencewright_program::{BinaryOp, Expr};

/// Whether the expression has parts that are not linear, so that symbolic domains know nothing about its value.
pub fn is_nonlinear(e: &Expr<CellId>) -> bool {
    cases(e).iter().any(|(_, value)| value.is_none()) || has_opaque(e)
}

fn has_opaque(e: &Expr<CellId>) -> bool {
    match e {
        Expr::Const(_) | Expr::Leaf(_) => false,
        Expr::Unary(_, operand) => has_opaque(operand),
        Expr::Binary(op, left, right) => {
            let constant = left.constant().is_some() && right.constant().is_some();
            (is_opaque(*op) && !constant)
                || (*op == BinaryOp::Mul && left.constant().is_none() && right.constant().is_none())
                || has_opaque(left)
                || has_opaque(right)
        }
        Expr::If(condition, then, otherwise) => {
            [condition, then, otherwise].into_iter().any(|e| has_opaque(e))
        }
    }
}
