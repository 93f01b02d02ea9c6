//! C's integer arithmetic in `.fw`: the [`Value`] of an operation, the checks before it, and the range of its result.
//!
//! A value of C is a mathematical integer in the range of its type, and so is its number in `.fw`, with one exception: numbers of `.fw` have 64 bits
//! and a sign, so a value of an unsigned 64-bit type from 2^63 on is represented by itself minus 2^64, the number with the same bits in two's
//! complement. Addition, multiplication and bit operations work on this representation directly. Comparison, division and right shifts have to
//! distinguish such values, unless the ranges of the operands exclude them.
//!
//! Unsigned results wrap around. Signed overflow, bad shifts and division by zero are faults ([`Sink::check`]). Wrapping and checks are omitted where
//! the ranges of the operands show that they are not needed. Arithmetic on constants is in [`fencewright_c::arithmetic`].

mod binary;
mod condition;
#[cfg(test)]
mod tests;

use fencewright_c::arithmetic::Arithmetic;
use fencewright_c::ast::Integer;
use fencewright_program::{BinaryOp, UnaryOp, Width};

use crate::core::{HIGHEST_ADDRESS, LOWEST_ADDRESS, NodeId, Register, Value};
pub use binary::{binary, wrapping};
pub use condition::{compare, implied, not, truth};

/// The least and the greatest possible value, both included, as values of C.
pub type Range = (i128, i128);

/// The range of addresses, including the address one past the end of the last object.
pub const ADDRESSES: Range = (LOWEST_ADDRESS as i128, HIGHEST_ADDRESS as i128 + 1);

/// A value of C that has been computed.
#[derive(Clone, Debug)]
pub struct Operand {
    /// The number of `.fw` that represents the C value.
    pub value: Value,
    /// The range of the C value.
    pub range: Range,
    /// The node that the value points to, if it is a pointer or was computed from one.
    pub points: Option<NodeId>,
}

/// Receives the statements that an operation needs before its result can be used.
pub trait Sink {
    /// Adds a check: unless the condition holds, the program has this fault.
    fn check(&mut self, condition: Value, fault: &'static str);

    /// Assigns a value to a register, because the value is needed more than once.
    fn name(&mut self, value: Value) -> Value;
}

const OVERFLOW: &str = "signed overflow";
const DIVISION: &str = "division by zero";
const SHIFT: &str = "shift by a negative number or by too many bits";
const NEGATIVE_SHIFT: &str = "shift of a negative number to the left";

impl Operand {
    /// A value in a range; a constant if the range has one value.
    pub fn new(value: Value, range: Range) -> Self {
        match range.0 == range.1 {
            true => Operand::number(range.0),
            false => Operand { value, range, points: None },
        }
    }

    /// An operand that may have any value of its type.
    pub fn of(value: Value, ty: Arithmetic) -> Self {
        Operand::new(value, (ty.least(), ty.greatest()))
    }

    /// A constant of C: from -2^63 to 2^64 - 1.
    pub fn number(number: i128) -> Self {
        Operand { value: Value::Number(number as i64), range: (number, number), points: None }
    }

    /// A pointer into a node, null, or a number converted to such a pointer.
    pub fn pointer(value: Value, points: NodeId) -> Self {
        let range = match value {
            Value::Number(number) => (i128::from(number as u64), i128::from(number as u64)),
            _ => (0, u64::MAX.into()),
        };
        Operand { value, range, points: Some(points) }
    }

    /// The value, if it is a constant.
    pub fn known(&self) -> Option<i128> {
        (matches!(self.value, Value::Number(_)) && self.range.0 == self.range.1).then_some(self.range.0)
    }

    /// Narrows the range, given a range of the number that represents the value.
    pub fn narrowed(mut self, numbers: Range) -> Self {
        let (low, high) = self.represented();
        let (low, high) = (low.max(numbers.0), high.min(numbers.1));
        if (self.is_exact() || low >= 0) && low <= high {
            self.range = (low, high);
        }
        self
    }

    /// Whether the range shows that the value is always 0 or 1.
    pub fn is_truth(&self) -> bool {
        self.range.0 >= 0 && self.range.1 <= 1
    }

    /// Whether the number that represents the value is the value itself.
    fn is_exact(&self) -> bool {
        self.range.1 <= i64::MAX.into()
    }

    /// The range of the number that represents the value.
    fn represented(&self) -> Range {
        match self.is_exact() {
            true => self.range,
            false => (i64::MIN.into(), i64::MAX.into()),
        }
    }
}

impl Value {
    /// `a op b`.
    pub fn binary(op: BinaryOp, a: Value, b: Value) -> Value {
        Value::Binary(op, Box::new(a), Box::new(b))
    }

    /// `op a`.
    pub fn unary(op: UnaryOp, a: Value) -> Value {
        Value::Unary(op, Box::new(a))
    }

    /// `condition ? then : otherwise`.
    pub fn choice(condition: Value, then: Value, otherwise: Value) -> Value {
        Value::If(Box::new(condition), Box::new(then), Box::new(otherwise))
    }

    /// `a op number`.
    fn with(self, op: BinaryOp, number: i128) -> Value {
        Value::binary(op, self, Value::Number(number as i64))
    }
}

impl From<Register> for Value {
    fn from(register: Register) -> Self {
        Value::Register(register)
    }
}

/// A value converted to another type (C11 6.3.1.2, 6.3.1.3; wrapping around for signed types too).
pub fn convert(to: Arithmetic, operand: Operand) -> Operand {
    let Arithmetic::Integer(ty) = to else { return truth(operand) };
    let range = converted_range(to, operand.range);
    if range == operand.range {
        return operand;
    }
    let value = match ty.bits() {
        64 => operand.value,
        _ => wrap(ty, operand.value),
    };
    Operand { points: operand.points, ..Operand::new(value, range) }
}

/// `-a`, for a promoted value.
pub fn negate(sink: &mut dyn Sink, ty: Arithmetic, operand: Operand) -> Operand {
    binary(sink, fencewright_c::ast::BinaryOp::Subtract, ty, Operand::number(0), operand)
}

/// `~a`, for a promoted value.
pub fn complement(ty: Arithmetic, operand: Operand) -> Operand {
    let integer = ty.promoted();
    let range = converted_range(ty, (!operand.range.1, !operand.range.0));
    let flipped = Value::unary(UnaryOp::BitNot, operand.value);
    let value = match !integer.signed && integer.bits() < 64 {
        true => wrap(integer, flipped),
        false => flipped,
    };
    Operand { points: operand.points, ..Operand::new(value, range) }
}

/// `condition ? a : b`, for two values of the same type without side effects.
pub fn choose(condition: Operand, a: Operand, b: Operand) -> Operand {
    match condition.known() {
        Some(0) => b,
        Some(_) => a,
        None => Operand {
            range: (a.range.0.min(b.range.0), a.range.1.max(b.range.1)),
            points: a.points.or(b.points),
            value: Value::choice(truth(condition).value, a.value, b.value),
        },
    }
}

/// A range that contains the values of a range after conversion to a type.
fn converted_range(to: Arithmetic, (low, high): Range) -> Range {
    let (first, last) = (to.converted(low), to.converted(high));
    // The conversion moves all values by the same multiple of 2^n, unless the range crosses a wrap-around.
    match last - first == high - low {
        true => (first, last),
        false => (to.least(), to.greatest()),
    }
}

/// The representation of the value modulo 2^n. An inner wrap to at least as many bits is dropped.
fn wrap(ty: Integer, value: Value) -> Value {
    let width = match ty.bits() {
        8 => Width::Bits8,
        16 => Width::Bits16,
        32 => Width::Bits32,
        _ => Width::Bits64,
    };
    let inner = match value {
        Value::Unary(UnaryOp::Signed(inner) | UnaryOp::Unsigned(inner), operand) if inner >= width => {
            *operand
        }
        other => other,
    };
    match ty.signed || width == Width::Bits64 {
        true => Value::unary(UnaryOp::Signed(width), inner),
        false => Value::unary(UnaryOp::Unsigned(width), inner),
    }
}
