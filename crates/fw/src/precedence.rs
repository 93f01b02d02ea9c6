//! Precedence of operators.

use fencewright_program::BinaryOp;

/// The precedence of an operator; larger numbers bind tighter. Comparisons do not chain.
pub fn precedence(op: BinaryOp) -> u8 {
    use BinaryOp::*;
    match op {
        Or => 1,
        And => 2,
        Eq | Ne | Lt | Le | Gt | Ge => 3,
        BitOr => 4,
        BitXor => 5,
        BitAnd => 6,
        Shl | Shr => 7,
        Add | Sub => 8,
        Mul | Div | Rem => 9,
        // These operators are written like functions, so their operands need no parentheses.
        Min | Max => 10,
    }
}
