//! Prints expressions in C, with overflow-checked operations.

use fencewright_c::write::constant;
use fencewright_program::{BinaryOp, Expr, Span, UnaryOp};

use super::Width;
use crate::Unsupported;

/// Prints expressions over integers of this width.
pub(super) struct Expressions {
    pub width: Width,
}

impl Expressions {
    /// A constant; an error if it does not fit the width.
    pub fn constant(&self, value: i64, span: Span) -> Result<String, Unsupported> {
        if !self.width.contains(value) {
            let why = format!("{value} does not fit {} bits", self.width.bits());
            return Err(Unsupported::new(why, Some(span)));
        }
        Ok(constant(value, self.width == Width::Bits64))
    }

    /// Prints an expression; `leaf` prints its leaves.
    pub fn write<L>(
        &self,
        expr: &Expr<L>,
        span: Span,
        leaf: &dyn Fn(&L) -> String,
    ) -> Result<String, Unsupported> {
        let write = |e| self.write(e, span, leaf);
        Ok(match expr {
            Expr::Const(value) => self.constant(*value, span)?,
            Expr::Leaf(l) => leaf(l),
            Expr::Unary(op, operand) => self.unary(*op, &write(operand)?),
            Expr::Binary(op, left, right) => binary(*op, &write(left)?, &write(right)?),
            Expr::If(condition, then, otherwise) => {
                format!("({} ? {} : {})", write(condition)?, write(then)?, write(otherwise)?)
            }
        })
    }

    /// Prints a unary operation. Wrapping to a width smaller than that of the C program keeps the low bits. Wrapping to the same or a larger width
    /// changes no value, but an execution that converts a negative value to an unsigned type of such a width is cut off.
    fn unary(&self, op: UnaryOp, operand: &str) -> String {
        match op {
            UnaryOp::Neg => format!("subtract(0, {operand})"),
            UnaryOp::Not => format!("!{operand}"),
            UnaryOp::BitNot => format!("(~{operand})"),
            UnaryOp::Unsigned(width) if width.bits() < self.width.bits() => {
                format!("({operand} & {}LL)", (1_u64 << width.bits()) - 1)
            }
            UnaryOp::Signed(width) if width.bits() < self.width.bits() => {
                let sign = 1_u64 << (width.bits() - 1);
                format!("((({operand} & {}LL) ^ {sign}LL) - {sign}LL)", 2 * sign - 1)
            }
            UnaryOp::Unsigned(_) => format!("natural({operand})"),
            UnaryOp::Signed(_) => operand.to_string(),
        }
    }
}

fn binary(op: BinaryOp, left: &str, right: &str) -> String {
    use BinaryOp::*;
    let function = match op {
        Add => "add",
        Sub => "subtract",
        Mul => "multiply",
        Div => "divide",
        Rem => "remainder_of",
        Shl => "shift_left",
        Shr => "shift_right",
        Min => "least",
        Max => "greatest",
        BitAnd | BitOr | BitXor | Eq | Ne | Lt | Le | Gt | Ge | And | Or => {
            return format!("({left} {} {right})", op.symbol());
        }
    };
    format!("{function}({left}, {right})")
}
