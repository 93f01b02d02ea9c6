//! Integer arithmetic of C: promotions, the usual arithmetic conversions, wraparound, and undefined behaviour (C11 6.3.1, 6.5).
//!
//! Operands and results are exact integers (`i128`), each paired with a C type that determines its range. Signed overflow, invalid shifts and
//! division by zero are faults. As in gcc, shifting a negative number to the right preserves its sign, and converting a value to a signed type that
//! cannot represent the value wraps around.

use crate::ast::{BinaryOp, Integer, Rank, UnaryOp};

/// An integer type, including `_Bool`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// `_Bool`: 0 or 1.
    Bool,
    /// Any other integer type.
    Integer(Integer),
}

/// The kinds of undefined behaviour of integer arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The result does not fit a signed type.
    Overflow,
    /// Division by zero.
    Division,
    /// A shift by a negative number, a shift by at least the width of the type, or a left shift of a negative number.
    Shift,
}

impl Arithmetic {
    /// `int`.
    pub const INT: Arithmetic = Arithmetic::Integer(Integer::INT);

    /// The least value that the type can represent.
    pub fn least(self) -> i128 {
        match self {
            Arithmetic::Integer(ty) if ty.signed => -(1 << (ty.bits() - 1)),
            _ => 0,
        }
    }

    /// The greatest value that the type can represent.
    pub fn greatest(self) -> i128 {
        match self {
            Arithmetic::Bool => 1,
            Arithmetic::Integer(ty) => (1 << (ty.bits() - u32::from(ty.signed))) - 1,
        }
    }

    /// Whether the type can represent a value.
    pub fn has(self, value: i128) -> bool {
        (self.least()..=self.greatest()).contains(&value)
    }

    /// Converts a value to this type (C11 6.3.1.2, 6.3.1.3).
    pub fn converted(self, value: i128) -> i128 {
        match self {
            Arithmetic::Bool => i128::from(value != 0),
            Arithmetic::Integer(ty) => {
                let low = value & ((1 << ty.bits()) - 1);
                if low > self.greatest() { low - (1 << ty.bits()) } else { low }
            }
        }
    }

    /// The promoted type of an operand (C11 6.3.1.1 p. 2).
    pub fn promoted(self) -> Integer {
        match self {
            Arithmetic::Integer(ty) if ty.rank >= Rank::Int => ty,
            _ => Integer::INT,
        }
    }

    /// The common type of two operands (C11 6.3.1.8).
    pub fn common(self, other: Arithmetic) -> Integer {
        let (a, b) = (self.promoted(), other.promoted());
        if a.signed == b.signed {
            return if a.rank >= b.rank { a } else { b };
        }
        let (signed, unsigned) = if a.signed { (a, b) } else { (b, a) };
        if unsigned.rank >= signed.rank {
            unsigned
        } else if signed.bits() > unsigned.bits() {
            signed
        } else {
            Integer { signed: false, ..signed }
        }
    }
}

/// The type of a binary operation.
pub fn binary_type(op: BinaryOp, a: Arithmetic, b: Arithmetic) -> Integer {
    use BinaryOp::*;
    match op {
        Less | Greater | LessOrEqual | GreaterOrEqual | Equal | NotEqual | And | Or => Integer::INT,
        ShiftLeft | ShiftRight => a.promoted(),
        Multiply | Divide | Remainder | Add | Subtract | BitAnd | BitXor | BitOr => a.common(b),
    }
}

/// Applies a binary operation to two values with their types.
pub fn binary(
    op: BinaryOp,
    (a, a_type): (i128, Arithmetic),
    (b, b_type): (i128, Arithmetic),
) -> Result<i128, Fault> {
    use BinaryOp::*;
    let common = Arithmetic::Integer(a_type.common(b_type));
    let ty = binary_type(op, a_type, b_type);
    let (x, y) = match op {
        ShiftLeft | ShiftRight | And | Or => (a, b),
        _ => (common.converted(a), common.converted(b)),
    };
    let exact = match op {
        // Operands have at most 64 bits, so only a product of two unsigned numbers can overflow `i128`, and then only its low bits matter.
        Multiply => x.wrapping_mul(y),
        Divide => x.checked_div(y).ok_or(Fault::Division)?,
        Remainder => {
            let quotient = x.checked_div(y).ok_or(Fault::Division)?;
            if !common.has(quotient) {
                return Err(Fault::Overflow);
            }
            x % y
        }
        Add => x + y,
        Subtract => x - y,
        BitAnd => x & y,
        BitXor => x ^ y,
        BitOr => x | y,
        ShiftLeft | ShiftRight => {
            let by = u32::try_from(y).ok().filter(|&by| by < ty.bits()).ok_or(Fault::Shift)?;
            match op {
                ShiftLeft if ty.signed && x < 0 => return Err(Fault::Shift),
                ShiftLeft => x << by,
                _ => x >> by,
            }
        }
        Less => i128::from(x < y),
        Greater => i128::from(x > y),
        LessOrEqual => i128::from(x <= y),
        GreaterOrEqual => i128::from(x >= y),
        Equal => i128::from(x == y),
        NotEqual => i128::from(x != y),
        And => i128::from(x != 0 && y != 0),
        Or => i128::from(x != 0 || y != 0),
    };
    result(exact, ty)
}

/// Applies a unary operation, other than `*` and `&`, to a value with its type.
pub fn unary(op: UnaryOp, (value, ty): (i128, Arithmetic)) -> Result<(i128, Integer), Fault> {
    let promoted = ty.promoted();
    let exact = match op {
        UnaryOp::Minus => -value,
        UnaryOp::Complement => !value,
        UnaryOp::Not => return Ok((i128::from(value == 0), Integer::INT)),
        UnaryOp::Plus | UnaryOp::Dereference | UnaryOp::Address => value,
    };
    Ok((result(exact, promoted)?, promoted))
}

/// The exact result of a computation, reduced to the type in which it was computed: a fault if a signed type overflows; unsigned types wrap around.
fn result(exact: i128, ty: Integer) -> Result<i128, Fault> {
    let values = Arithmetic::Integer(ty);
    match ty.signed && !values.has(exact) {
        true => Err(Fault::Overflow),
        false => Ok(values.converted(exact)),
    }
}

/// The type of an integer constant (C11 6.4.4.1 p. 5): the first candidate that can represent its value, if any can.
pub fn constant_type(literal: &crate::literal::Literal) -> Option<Integer> {
    let ranks = [Rank::Int, Rank::Long, Rank::LongLong].into_iter().skip(literal.long.min(2).into());
    let candidates = ranks.flat_map(|rank| {
        let signed = (!literal.unsigned).then_some(Integer { rank, signed: true });
        let unsigned = (literal.unsigned || !literal.decimal).then_some(Integer { rank, signed: false });
        signed.into_iter().chain(unsigned)
    });
    candidates.into_iter().find(|&ty| Arithmetic::Integer(ty).has(literal.value.into()))
}
