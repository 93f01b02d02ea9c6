//! Atomic operations of the Linux kernel: `atomic_t` and related types, `xchg` and `cmpxchg`, acquire loads and release stores.
//!
//! The memory orders of read-modify-writes are ignored, because every read-modify-write drains the store buffer. `add_unless`, `inc_not_zero` and
//! `dec_if_positive` load the value first, and drain the buffer only if they write.

use fencewright_c::arithmetic::Arithmetic;
use fencewright_c::ast::BinaryOp as Operator;
use fencewright_c::typed::tree::TypeKind;
use fencewright_code::core::Access;
use fencewright_code::numbers::{self, Operand};

use super::super::objects::Target;
use super::super::{Elaborator, Result};
use super::BuiltinCall;
use super::atomics::{Modify, Order};

/// The operation of a function in this family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Load,
    Store(Order),
    Exchange,
    /// Returns the old value.
    CompareExchange,
    /// Returns whether the exchange succeeded. On failure, writes the old value to the object that held the expected value.
    TryCompareExchange,
    /// A read-modify-write. With `not`, the operand is complemented first, so that `And` clears the bits set in it.
    Modify {
        modify: Modify,
        not: bool,
        by: By,
        answer: Answer,
    },
    /// Adds to the value unless the value equals a given number.
    AddUnless {
        by: By,
        answer: Answer,
    },
    DecrementIfPositive,
    /// `BUG_ON`: an assertion that the condition does not hold.
    BugOn,
    /// `WARN_ON`: returns the condition.
    WarnOn,
    Nothing,
}

/// The second operand of a read-modify-write: 1, or an argument of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    One,
    Argument,
}

/// What a read-modify-write returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Old,
    New,
    /// Whether the new value is 0.
    Zero,
    /// Whether the new value is negative.
    Negative,
    /// Whether a value was written.
    Success,
}

/// The operation of a function; `None` if the name is not in this family.
pub(super) fn named(name: &str) -> Option<Operation> {
    match name {
        "smp_load_acquire" => return Some(Operation::Load),
        "smp_store_release" => return Some(Operation::Store(Order::Release)),
        "smp_store_mb" | "set_mb" => return Some(Operation::Store(Order::Sequential)),
        "BUG_ON" => return Some(Operation::BugOn),
        "WARN_ON" | "WARN_ON_ONCE" => return Some(Operation::WarnOn),
        "local_irq_disable" | "local_irq_enable" => return Some(Operation::Nothing),
        "atomic_read_acquire" | "atomic64_read_acquire" | "atomic_long_read_acquire" => {
            return Some(Operation::Load);
        }
        "atomic_set_release" | "atomic64_set_release" | "atomic_long_set_release" => {
            return Some(Operation::Store(Order::Release));
        }
        _ => {}
    }
    let rest = ["_relaxed", "_acquire", "_release", "_local"]
        .into_iter()
        .find_map(|order| name.strip_suffix(order))
        .unwrap_or(name);
    match rest {
        "xchg" => return Some(Operation::Exchange),
        "cmpxchg" | "cmpxchg64" => return Some(Operation::CompareExchange),
        "try_cmpxchg" => return Some(Operation::TryCompareExchange),
        "xadd" => {
            let (modify, by, answer) = (Modify::Add, By::Argument, Answer::Old);
            return Some(Operation::Modify { modify, not: false, by, answer });
        }
        _ => {}
    }
    let prefixes = ["atomic_long_", "atomic64_", "atomic_"];
    named_counter(prefixes.into_iter().find_map(|prefix| rest.strip_prefix(prefix))?)
}

/// The operation of a function on `atomic_t`, by its name without the prefix `atomic_` and the like; `None` if there is no such function.
fn named_counter(rest: &str) -> Option<Operation> {
    Some(match rest {
        "read" => Operation::Load,
        "set" => Operation::Store(Order::Relaxed),
        "xchg" => Operation::Exchange,
        "cmpxchg" => Operation::CompareExchange,
        "try_cmpxchg" => Operation::TryCompareExchange,
        "add_unless" => Operation::AddUnless { by: By::Argument, answer: Answer::Success },
        "fetch_add_unless" => Operation::AddUnless { by: By::Argument, answer: Answer::Old },
        "inc_not_zero" => Operation::AddUnless { by: By::One, answer: Answer::Success },
        "dec_if_positive" => Operation::DecrementIfPositive,
        _ => {
            let (rest, answer) = if let Some(rest) = rest.strip_suffix("_return") {
                (rest, Answer::New)
            } else if let Some(rest) = rest.strip_prefix("fetch_") {
                (rest, Answer::Old)
            } else if let Some(rest) = rest.strip_suffix("_and_test") {
                (rest, Answer::Zero)
            } else if let Some(rest) = rest.strip_suffix("_negative") {
                (rest, Answer::Negative)
            } else {
                (rest, Answer::Old)
            };
            let (modify, not, by) = match rest {
                "add" => (Modify::Add, false, By::Argument),
                "sub" => (Modify::Sub, false, By::Argument),
                "and" => (Modify::And, false, By::Argument),
                "andnot" => (Modify::And, true, By::Argument),
                "or" => (Modify::Or, false, By::Argument),
                "xor" => (Modify::Xor, false, By::Argument),
                "inc" => (Modify::Add, false, By::One),
                "dec" => (Modify::Sub, false, By::One),
                _ => return None,
            };
            Operation::Modify { modify, not, by, answer }
        }
    })
}

impl Elaborator<'_> {
    pub(super) fn linux(&mut self, operation: Operation, call: BuiltinCall) -> Result<Operand> {
        let span = call.span;
        match operation {
            Operation::BugOn => {
                let condition = self.argument_value(call, 0)?;
                self.require(numbers::not(condition), "BUG_ON", span);
                return Ok(Operand::number(0));
            }
            Operation::WarnOn => return self.argument_value(call, 0).map(numbers::truth),
            Operation::Nothing => return Ok(Operand::number(0)),
            _ => {}
        }
        // The counter is the last argument of functions like `atomic_add(i, v)`, and the first argument of other functions.
        let pointer = |argument: usize| match call.arguments.get(argument) {
            Some(argument) => matches!(argument.ty.kind, TypeKind::Pointer(_)),
            None => false,
        };
        let at = usize::from(!pointer(0));
        let place = self.argument_target(call, at)?.accessed(Access::Atomic);
        match operation {
            Operation::Load => self.read(&place, span),
            Operation::Store(order) => {
                let value = self.typed_argument(call, 1, &place)?;
                self.ordered_store(&place, value, order, span)?;
                Ok(Operand::number(0))
            }
            Operation::Exchange => {
                let value = self.typed_argument(call, 1, &place)?;
                self.swapped(&place, value, span)
            }
            Operation::CompareExchange => {
                let expected = self.typed_argument(call, 1, &place)?;
                let desired = self.typed_argument(call, 2, &place)?;
                self.compare_and_swap(&place, expected, desired, span).map(|(old, _)| old)
            }
            Operation::TryCompareExchange => {
                let desired = self.typed_argument(call, 2, &place)?;
                self.compare_exchange(&place, call, 1, desired)
            }
            Operation::Modify { modify, not, by, answer } => {
                let mut by = match by {
                    By::One => Operand::number(1),
                    By::Argument => self.typed_argument(call, 1 - at, &place)?,
                };
                let arithmetic = self.arithmetic(&place.ty, span)?;
                if not {
                    by = numbers::complement(Arithmetic::Integer(arithmetic.promoted()), by);
                }
                let old = self.atomic_modify(&place, modify, by.clone(), span)?;
                let new = self.modified(&place.ty, modify, old.clone(), by, span)?;
                Ok(match answer {
                    Answer::New => new,
                    Answer::Zero => numbers::not(new),
                    Answer::Negative => {
                        numbers::binary(self, Operator::Less, arithmetic, new, Operand::number(0))
                    }
                    Answer::Old | Answer::Success => old,
                })
            }
            Operation::AddUnless { by, answer } => {
                let (by, unless) = match by {
                    By::One => (Operand::number(1), Operand::number(0)),
                    By::Argument => {
                        (self.typed_argument(call, 1, &place)?, self.typed_argument(call, 2, &place)?)
                    }
                };
                let arithmetic = self.arithmetic(&place.ty, span)?;
                let more = |this: &mut Self, old: &Operand| {
                    let differs =
                        numbers::binary(this, Operator::NotEqual, arithmetic, old.clone(), unless.clone());
                    (differs, numbers::wrapping(Operator::Add, arithmetic, old.clone(), by.clone()))
                };
                let old = self.looking_update(&place, more, span)?;
                Ok(match answer {
                    Answer::Success => numbers::binary(self, Operator::NotEqual, arithmetic, old, unless),
                    _ => old,
                })
            }
            Operation::DecrementIfPositive => {
                let arithmetic = self.arithmetic(&place.ty, span)?;
                let less = |old: &Operand| {
                    numbers::wrapping(Operator::Subtract, arithmetic, old.clone(), Operand::number(1))
                };
                let fewer = |this: &mut Self, old: &Operand| {
                    let zero = Operand::number(0);
                    (numbers::binary(this, Operator::Greater, arithmetic, old.clone(), zero), less(old))
                };
                let old = self.looking_update(&place, fewer, span)?;
                Ok(less(&old))
            }
            Operation::BugOn | Operation::WarnOn | Operation::Nothing => Ok(Operand::number(0)),
        }
    }

    /// An argument, converted to the type of a place.
    fn typed_argument(&mut self, call: BuiltinCall, number: usize, place: &Target) -> Result<Operand> {
        let argument = self.argument(call, number)?;
        let value = self.value(argument)?;
        self.cast(value, &argument.ty, &place.ty, argument.span)
    }
}
