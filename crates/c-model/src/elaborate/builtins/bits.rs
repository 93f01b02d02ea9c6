//! Compiler builtins that operate on bits or check overflow, such as `__builtin_clz`, `__builtin_popcount` and `__builtin_add_overflow`.

use fencewright_c::arithmetic::Arithmetic;
use fencewright_c::ast::{BinaryOp as Operator, Integer};
use fencewright_c::typed::tree::TypeKind;
use fencewright_code::core::Value;
use fencewright_code::numbers::{self, Operand, Sink};
use fencewright_program::BinaryOp;

use super::super::{Elaborator, Result};
use super::BuiltinCall;

/// The operation that a builtin computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    LeadingZeros,
    TrailingZeros,
    /// The index of the lowest set bit, counted from 1; 0 if no bit is set.
    FirstSet,
    Ones,
    Parity,
    /// The value with its bytes in reverse order.
    Swapped,
    /// The absolute value.
    Absolute,
    /// Stores the result through the third argument, and returns whether the operation overflowed.
    Overflow(Operator),
}

/// The operation of a function; `None` if the name is not in this family.
pub(super) fn named(name: &str) -> Option<Operation> {
    if matches!(name, "abs" | "labs" | "llabs") {
        return Some(Operation::Absolute);
    }
    let rest = name.strip_prefix("__builtin_")?;
    let overflow = |op| Some(Operation::Overflow(op));
    match rest {
        "add_overflow" => return overflow(Operator::Add),
        "sub_overflow" => return overflow(Operator::Subtract),
        "mul_overflow" => return overflow(Operator::Multiply),
        "bswap32" | "bswap64" => return Some(Operation::Swapped),
        "abs" | "labs" | "llabs" => return Some(Operation::Absolute),
        _ => {}
    }
    Some(match rest.strip_suffix("ll").or_else(|| rest.strip_suffix('l')).unwrap_or(rest) {
        "clz" => Operation::LeadingZeros,
        "ctz" => Operation::TrailingZeros,
        "ffs" => Operation::FirstSet,
        "popcount" => Operation::Ones,
        "parity" => Operation::Parity,
        _ => return None,
    })
}

/// Collects the conditions under which an operation does not overflow, instead of emitting checks for them.
struct Checks<'a, 'u> {
    elaborator: &'a mut Elaborator<'u>,
    conditions: Vec<Value>,
}

impl Sink for Checks<'_, '_> {
    fn check(&mut self, condition: Value, _: &'static str) {
        self.conditions.push(condition);
    }

    fn name(&mut self, value: Value) -> Value {
        self.elaborator.name(value)
    }
}

impl Elaborator<'_> {
    pub(super) fn bits(&mut self, operation: Operation, call: BuiltinCall) -> Result<Operand> {
        if let Operation::Overflow(op) = operation {
            return self.overflow(op, call);
        }
        let argument = self.argument(call, 0)?;
        let ty = self.arithmetic(&argument.ty, argument.span)?.promoted();
        let value = self.value(argument)?;
        if operation == Operation::Absolute {
            let ty = Arithmetic::Integer(ty);
            let negative = numbers::binary(self, Operator::Less, ty, value.clone(), Operand::number(0));
            let opposite = numbers::negate(self, ty, value.clone());
            return Ok(numbers::choose(negative, opposite, value));
        }
        let bits = i128::from(ty.bits());
        if let Some(known) = value.known() {
            let low = (known & ((1 << bits) - 1)) as u64;
            let zeros = |zeros: u32| i128::from(zeros);
            match operation {
                Operation::LeadingZeros if low != 0 => {
                    return Ok(Operand::number(zeros(low.leading_zeros()) - (64 - bits)));
                }
                Operation::TrailingZeros if low != 0 => {
                    return Ok(Operand::number(zeros(low.trailing_zeros())));
                }
                Operation::FirstSet => {
                    return Ok(Operand::number(if low == 0 { 0 } else { zeros(low.trailing_zeros()) + 1 }));
                }
                Operation::Ones => return Ok(Operand::number(zeros(low.count_ones()))),
                Operation::Swapped if bits == 32 => {
                    return Ok(Operand::number((low as u32).swap_bytes().into()));
                }
                Operation::Swapped => return Ok(Operand::number(low.swap_bytes().into())),
                Operation::Parity => return Ok(Operand::number(zeros(low.count_ones() & 1))),
                _ => {}
            }
        }
        if matches!(operation, Operation::LeadingZeros | Operation::TrailingZeros) {
            let text = "the number of leading or trailing zeros of 0 is undefined";
            self.require(numbers::truth(value.clone()), text, call.span);
        }
        if operation == Operation::Swapped {
            let help = "keep numbers in the byte order of the machine";
            return self.error(call.span, "the bytes of an unknown number are swapped", help);
        }
        let value = self.name(value.value);
        Ok(counted(operation, &value, bits))
    }

    fn overflow(&mut self, op: Operator, call: BuiltinCall) -> Result<Operand> {
        let span = call.span;
        let place = self.argument_target(call, 2)?;
        let TypeKind::Integer(wanted) = place.ty.kind else {
            return self.error(span, "the result is no integer", "pass a pointer to an integer");
        };
        let (one, other) = (self.argument(call, 0)?, self.argument(call, 1)?);
        let types = (self.arithmetic(&one.ty, one.span)?, self.arithmetic(&other.ty, other.span)?);
        let (a, b) = (self.value(one)?, self.value(other)?);
        let long = Arithmetic::Integer(Integer { rank: fencewright_c::ast::Rank::Long, signed: true });
        let fits = |operand: &Operand| long.has(operand.range.0) && long.has(operand.range.1);
        if types.0 == wanted && types.1 == wanted && !fits_unsigned(wanted) || fits(&a) && fits(&b) {
            // The operation overflows unless it is exact in 64 bits (which the collected conditions say) and the exact result equals the result
            // wrapped to the target type.
            let mut checks = Checks { elaborator: self, conditions: Vec::new() };
            let exact = numbers::binary(&mut checks, op, long, a.clone(), b.clone());
            let conditions = checks.conditions;
            let result = numbers::convert(wanted, numbers::wrapping(op, long, a, b));
            let mut fits = numbers::binary(self, Operator::Equal, long, exact, result.clone());
            for condition in conditions {
                let condition = Operand::new(condition, (0, 1));
                fits = numbers::binary(self, Operator::And, Arithmetic::INT, condition, fits);
            }
            self.write(&place, result, span)?;
            return Ok(numbers::not(fits));
        }
        let help = "use integers of at most 32 bits, or signed ones";
        self.error(span, "overflow of 64-bit unsigned numbers is not supported here", help)
    }
}

/// Whether a type has values greater than those of a signed 64-bit type.
fn fits_unsigned(ty: Arithmetic) -> bool {
    ty.greatest() > i64::MAX.into()
}

/// Computes an operation that counts bits of a value which is not constant.
pub(super) fn counted(operation: Operation, value: &Value, bits: i128) -> Operand {
    let number = |number: i128| Value::Number(number as i64);
    let bit = |n: i128| {
        let shifted = Value::binary(BinaryOp::Shr, value.clone(), number(n));
        Value::binary(BinaryOp::BitAnd, shifted, number(1))
    };
    let sum = || (1..bits).fold(bit(0), |sum, n| Value::binary(BinaryOp::Add, sum, bit(n)));
    match operation {
        Operation::Ones => Operand::new(sum(), (0, bits)),
        Operation::Parity => Operand::new(Value::binary(BinaryOp::BitAnd, sum(), number(1)), (0, 1)),
        Operation::LeadingZeros => {
            let chain = (0..bits - 1).fold(number(bits - 1), |rest, n| {
                // The fold builds the chain of tests from the inside out. It starts with the lowest bit, so that the highest bit is tested first.
                match n {
                    0 => rest,
                    _ => Value::choice(bit(n), number(bits - 1 - n), rest),
                }
            });
            Operand::new(Value::choice(bit(bits - 1), number(0), chain), (0, bits - 1))
        }
        _ => {
            let first = i128::from(operation == Operation::FirstSet);
            let none = if first == 1 { number(0) } else { number(bits - 1) };
            let chain = (0..bits).rev().fold(none, |rest, n| Value::choice(bit(n), number(n + first), rest));
            Operand::new(chain, (0, bits - 1 + first))
        }
    }
}
