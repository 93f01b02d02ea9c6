//! Atomic operations of C11 (7.17) and of gcc (`__atomic_*`, `__sync_*`).
//!
//! Signed integers wrap around, like unsigned ones. `atomic_compare_exchange_weak` never fails spuriously, as on x86. A compare-exchange drains the
//! store buffer even if it fails.

use fencewright_c::arithmetic::Arithmetic;
use fencewright_c::ast::{BinaryOp as Operator, Integer, Rank};
use fencewright_c::typed::tree::{Expr, Type, TypeKind};
use fencewright_code::core::{Access, StmtKind};
use fencewright_code::numbers::{self, Operand};
use fencewright_program::Span;

use super::super::objects::Target;
use super::super::{Elaborator, Result};
use super::BuiltinCall;

/// An atomic operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Load,
    Store,
    /// `atomic_init`: a relaxed store. It counts as an atomic access, so its races are not reported.
    Init,
    Exchange,
    /// Returns whether the exchange succeeded. On failure, writes the old value to the object that held the expected value.
    CompareExchange,
    /// Returns whether the operation succeeded, or the old value.
    CompareAndSwap(Answer),
    Modify(Modify, Answer),
    /// Sets a flag and returns its old value.
    TestAndSet,
    Clear,
    /// `atomic_is_lock_free`: always true.
    IsLockFree,
}

/// The operation by which a read-modify-write computes the new value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Modify {
    Add,
    Sub,
    And,
    Or,
    Xor,
    Nand,
    /// The smaller or greater one of the old value and the operand (clang's `__sync_fetch_and_max` and its kin).
    Extreme(Extreme),
}

/// Which of two values is kept, and with which type they are compared, whatever the type of the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extreme {
    greatest: bool,
    signed: bool,
}

/// What a read-modify-write returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Old,
    New,
    Success,
}

/// How a family of functions passes values and memory orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Convention {
    /// C11 without memory orders.
    Implicit,
    /// C11 with memory orders as last arguments.
    Explicit,
    /// gcc with memory orders as last arguments. If the place holds a pointer, the operand of an addition or subtraction counts bytes.
    Gnu,
    /// gcc with memory orders as last arguments; values are passed through pointers.
    Indirect,
    /// gcc's `__sync_*`, without memory orders. All operations are full fences, except those for locks (`lock_test_and_set`, `lock_release`).
    Sync,
}

/// The memory orders of C11; `memory_order_consume` counts as acquire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Relaxed,
    Acquire,
    Release,
    AcquireRelease,
    Sequential,
}

/// The operations of `__sync_fetch_and_*`: those of all families, and those that only clang has.
fn modify_sync(name: &str) -> Option<Modify> {
    let extreme = |greatest, signed| Some(Modify::Extreme(Extreme { greatest, signed }));
    match name {
        "max" => extreme(true, true),
        "min" => extreme(false, true),
        "umax" => extreme(true, false),
        "umin" => extreme(false, false),
        _ => modify(name),
    }
}

fn modify(name: &str) -> Option<Modify> {
    Some(match name {
        "add" => Modify::Add,
        "sub" => Modify::Sub,
        "and" => Modify::And,
        "or" => Modify::Or,
        "xor" => Modify::Xor,
        "nand" => Modify::Nand,
        _ => return None,
    })
}

/// The operation and calling convention of a function; `None` if the name is not in these families.
pub(super) fn named(name: &str) -> Option<(Operation, Convention)> {
    if let Some(rest) = name.strip_prefix("__sync_") {
        return named_sync(rest).map(|operation| (operation, Convention::Sync));
    }
    if let Some(rest) = name.strip_prefix("__atomic_") {
        return named_gnu(rest);
    }
    let (rest, explicit) = match name.strip_prefix("__c11_atomic_") {
        Some("init") => ("init", false),
        Some(rest) => (rest, true),
        None => {
            let rest = name.strip_prefix("atomic_")?;
            rest.strip_suffix("_explicit").map_or((rest, false), |rest| (rest, true))
        }
    };
    let operation = match rest {
        "load" => Operation::Load,
        "store" => Operation::Store,
        "init" => Operation::Init,
        "exchange" => Operation::Exchange,
        "compare_exchange_strong" | "compare_exchange_weak" => Operation::CompareExchange,
        "flag_test_and_set" => Operation::TestAndSet,
        "flag_clear" => Operation::Clear,
        "is_lock_free" => Operation::IsLockFree,
        _ => Operation::Modify(modify(rest.strip_prefix("fetch_")?)?, Answer::Old),
    };
    Some((operation, if explicit { Convention::Explicit } else { Convention::Implicit }))
}

fn named_gnu(rest: &str) -> Option<(Operation, Convention)> {
    let (rest, convention) = match rest.strip_suffix("_n") {
        Some(rest) => (rest, Convention::Gnu),
        None => (rest, Convention::Indirect),
    };
    let operation = match rest {
        "load" => Operation::Load,
        "store" => Operation::Store,
        "exchange" => Operation::Exchange,
        "compare_exchange" => Operation::CompareExchange,
        "test_and_set" => return Some((Operation::TestAndSet, Convention::Gnu)),
        "clear" => return Some((Operation::Clear, Convention::Gnu)),
        "always_lock_free" | "is_lock_free" => return Some((Operation::IsLockFree, Convention::Gnu)),
        _ => {
            let old = rest.strip_prefix("fetch_").and_then(modify).map(|modify| (modify, Answer::Old));
            let new = || rest.strip_suffix("_fetch").and_then(modify).map(|modify| (modify, Answer::New));
            let (modify, answer) = old.or_else(new)?;
            return Some((Operation::Modify(modify, answer), Convention::Gnu));
        }
    };
    Some((operation, convention))
}

fn named_sync(rest: &str) -> Option<Operation> {
    // The name may end in the size of the operand in bytes.
    let rest = ["_1", "_2", "_4", "_8"].into_iter().find_map(|size| rest.strip_suffix(size)).unwrap_or(rest);
    Some(match rest {
        "bool_compare_and_swap" => Operation::CompareAndSwap(Answer::Success),
        "val_compare_and_swap" => Operation::CompareAndSwap(Answer::Old),
        "lock_test_and_set" | "swap" => Operation::Exchange,
        "lock_release" => Operation::Clear,
        _ => {
            let old =
                rest.strip_prefix("fetch_and_").and_then(modify_sync).map(|modify| (modify, Answer::Old));
            let new = || rest.strip_suffix("_and_fetch").and_then(modify).map(|modify| (modify, Answer::New));
            let (modify, answer) = old.or_else(new)?;
            Operation::Modify(modify, answer)
        }
    })
}

impl Elaborator<'_> {
    /// Translates a call of an atomic operation.
    pub(super) fn atomic(
        &mut self,
        operation: Operation,
        convention: Convention,
        call: BuiltinCall,
    ) -> Result<Operand> {
        if operation == Operation::IsLockFree {
            return Ok(Operand::number(1));
        }
        let place = self.argument_target(call, 0)?.accessed(Access::Atomic);
        let span = call.span;
        match operation {
            Operation::IsLockFree => Ok(Operand::number(1)),
            Operation::Load => match convention {
                Convention::Indirect => {
                    self.order(call, convention, 2)?;
                    let value = self.read(&place, span)?;
                    self.passed_back(call, 1, value)
                }
                _ => {
                    self.order(call, convention, 1)?;
                    self.read(&place, span)
                }
            },
            Operation::Store => {
                let value = self.passed(call, convention, 1)?;
                let order = self.order(call, convention, 2)?;
                self.ordered_store(&place, value, order, span)?;
                Ok(Operand::number(0))
            }
            Operation::Init => {
                let value = self.argument_value(call, 1)?;
                self.write(&place, value, span)?;
                Ok(Operand::number(0))
            }
            Operation::Exchange => {
                let value = self.passed(call, convention, 1)?;
                let old = self.swapped(&place, value, span)?;
                match convention {
                    Convention::Indirect => self.passed_back(call, 2, old),
                    _ => Ok(old),
                }
            }
            Operation::CompareExchange => {
                let desired = self.passed(call, convention, 2)?;
                self.compare_exchange(&place, call, 1, desired)
            }
            Operation::CompareAndSwap(answer) => {
                let (expected, desired) = (self.argument_value(call, 1)?, self.argument_value(call, 2)?);
                let (old, success) = self.compare_and_swap(&place, expected, desired, span)?;
                Ok(if answer == Answer::Old { old } else { success })
            }
            Operation::Modify(modify, answer) => {
                let by = self.argument_value(call, 1)?;
                let order = self.order(call, convention, 2)?;
                let bytes = matches!(convention, Convention::Gnu | Convention::Sync);
                let by = self.elements(&place.ty, modify, by, bytes, span)?;
                let keeps = matches!(modify, Modify::Add | Modify::Sub | Modify::Or | Modify::Xor);
                let nothing = by.known() == Some(0) && keeps;
                if nothing && !call.used && matches!(order, Order::Relaxed | Order::Acquire) {
                    // The operation leaves memory unchanged, and its result is unused. Compilers translate it to a load, and so does the model.
                    return self.read(&place, span);
                }
                let old = self.atomic_modify(&place, modify, by.clone(), span)?;
                match answer {
                    Answer::New => self.modified(&place.ty, modify, old, by, span),
                    _ => Ok(old),
                }
            }
            Operation::TestAndSet => {
                let old = self.swapped(&place, Operand::number(1), span)?;
                Ok(numbers::truth(old))
            }
            Operation::Clear => {
                // `__sync_lock_release` is a release store.
                let order = match convention {
                    Convention::Sync => Order::Release,
                    _ => self.order(call, convention, 1)?,
                };
                self.ordered_store(&place, Operand::number(0), order, span)?;
                Ok(Operand::number(0))
            }
        }
    }

    /// The memory order of a call: the argument `number`, or sequentially consistent if the convention has no memory orders.
    fn order(&mut self, call: BuiltinCall, convention: Convention, number: usize) -> Result<Order> {
        if matches!(convention, Convention::Implicit | Convention::Sync) {
            return Ok(Order::Sequential);
        }
        let argument = self.argument(call, number)?;
        self.order_of(argument)
    }

    /// The memory order that an argument denotes.
    pub(super) fn order_of(&mut self, argument: &Expr) -> Result<Order> {
        let order = self.value(argument)?;
        Ok(match order.known().map(|known| known & 0xffff) {
            Some(0) => Order::Relaxed,
            Some(1 | 2) => Order::Acquire,
            Some(3) => Order::Release,
            Some(4) => Order::AcquireRelease,
            Some(5) => Order::Sequential,
            Some(_) => {
                let help =
                    "use one of `memory_order_relaxed`, `_acquire`, `_release`, `_acq_rel`, `_seq_cst`";
                return self.error(argument.span, "this is no memory order", help);
            }
            None => {
                self.warn(
                    argument.span,
                    "the memory order is not a constant: taken as seq_cst, as compilers do",
                );
                Order::Sequential
            }
        })
    }

    /// An operand: the value of an argument or, by the convention `Indirect`, the value to which the argument points.
    fn passed(&mut self, call: BuiltinCall, convention: Convention, number: usize) -> Result<Operand> {
        match convention {
            Convention::Indirect => {
                let place = self.argument_target(call, number)?;
                self.read(&place, call.span)
            }
            _ => self.argument_value(call, number),
        }
    }

    /// Writes a result to the object to which an argument points.
    fn passed_back(&mut self, call: BuiltinCall, number: usize, value: Operand) -> Result<Operand> {
        let place = self.argument_target(call, number)?;
        self.write(&place, value, call.span)?;
        Ok(Operand::number(0))
    }

    /// A store with a memory order: a swap if it is sequentially consistent; otherwise with a store-store fence before it unless it is relaxed.
    pub(super) fn ordered_store(
        &mut self,
        place: &Target,
        value: Operand,
        order: Order,
        span: Span,
    ) -> Result<()> {
        match order {
            Order::Sequential => self.exchanged(place, value, span),
            Order::Relaxed => self.write(place, value, span),
            Order::Release | Order::AcquireRelease | Order::Acquire => {
                if order != Order::Release {
                    self.warn(span, "a store cannot acquire: taken as release");
                }
                self.emit(StmtKind::StoreFence, span);
                self.write(place, value, span)
            }
        }
    }

    /// Atomically writes a value to a place. Returns the old value.
    pub(super) fn swapped(&mut self, place: &Target, value: Operand, span: Span) -> Result<Operand> {
        self.update(place, |_, _| Ok((None, value)), span)
    }

    /// Compare-and-swap. Returns the old value, and whether the operation succeeded.
    pub(super) fn compare_and_swap(
        &mut self,
        place: &Target,
        expected: Operand,
        desired: Operand,
        span: Span,
    ) -> Result<(Operand, Operand)> {
        let (ty, wanted) = (place.ty.clone(), expected.clone());
        let old = self.update(
            place,
            |this, old| Ok((Some(this.same(&ty, old.clone(), wanted, span)?), desired)),
            span,
        )?;
        let success = self.same(&place.ty, old.clone(), expected, span)?;
        Ok((old, success))
    }

    /// A compare-and-swap whose expected value is in an object; on failure, this object gets the old value.
    pub(super) fn compare_exchange(
        &mut self,
        place: &Target,
        call: BuiltinCall,
        number: usize,
        desired: Operand,
    ) -> Result<Operand> {
        let span = call.span;
        let holder = self.argument_target(call, number)?;
        let expected = self.read(&holder, span)?;
        let expected = self.kept_value(expected, &holder.ty, span)?;
        let (old, success) = self.compare_and_swap(place, expected, desired, span)?;
        match self.is_own(&holder) {
            // On success, the object already holds the old value, so it may be written in both cases.
            true => self.write(&holder, old, span)?,
            false => {
                let write = |this: &mut Self| this.write(&holder, old, span);
                self.branch(success.clone(), span, |_| Ok(()), write)?;
            }
        }
        Ok(success)
    }

    /// Whether only the current thread can access the place.
    fn is_own(&self, target: &Target) -> bool {
        match target.known() {
            Some((object, _)) => self.is_private(object),
            None => matches!(target.spot, super::super::objects::Spot::Register(_)),
        }
    }

    /// If the place holds a pointer and the operand counts `bytes`, converts the operand to a number of elements; otherwise returns it unchanged.
    fn elements(
        &mut self,
        ty: &Type,
        modify: Modify,
        by: Operand,
        bytes: bool,
        span: Span,
    ) -> Result<Operand> {
        let TypeKind::Pointer(to) = &ty.kind else { return Ok(by) };
        let size = i128::from(self.size(to).max(1));
        let help = "move it with `+` on the pointer, and exchange it with a compare-and-swap";
        if !matches!(modify, Modify::Add | Modify::Sub) {
            return self.error(span, "the bits of a pointer are changed here", help);
        }
        match (bytes, by.known()) {
            (false, _) => Ok(by),
            (true, Some(known)) if known % size == 0 => Ok(Operand::number(known / size)),
            (true, _) => {
                self.error(span, "this moves a pointer by a number of bytes that is not known", help)
            }
        }
    }

    /// Performs a read-modify-write. Returns the old value.
    pub(super) fn atomic_modify(
        &mut self,
        place: &Target,
        modify: Modify,
        by: Operand,
        span: Span,
    ) -> Result<Operand> {
        let ty = place.ty.clone();
        self.update(place, |this, old| Ok((None, this.modified(&ty, modify, old.clone(), by, span)?)), span)
    }

    /// The new value that a read-modify-write computes from the old one.
    pub(super) fn modified(
        &mut self,
        ty: &Type,
        modify: Modify,
        old: Operand,
        by: Operand,
        span: Span,
    ) -> Result<Operand> {
        let arithmetic = match &ty.kind {
            TypeKind::Integer(arithmetic) => *arithmetic,
            TypeKind::Pointer(to) => {
                let long = Arithmetic::Integer(Integer { rank: Rank::Long, signed: true });
                let by = match modify {
                    Modify::Sub => numbers::wrapping(Operator::Subtract, long, Operand::number(0), by),
                    _ => by,
                };
                return self.moved(old, by, to, span);
            }
            _ => return self.error(span, "this is no integer", "use an atomic integer"),
        };
        let op = match modify {
            Modify::Add => Operator::Add,
            Modify::Sub => Operator::Subtract,
            Modify::Or => Operator::BitOr,
            Modify::Xor => Operator::BitXor,
            Modify::And | Modify::Nand => Operator::BitAnd,
            Modify::Extreme(extreme) => return Ok(self.extreme(extreme, arithmetic, old, by)),
        };
        let result = numbers::wrapping(op, arithmetic, old, by);
        Ok(match modify {
            Modify::Nand => {
                let promoted = Arithmetic::Integer(arithmetic.promoted());
                numbers::convert(arithmetic, numbers::complement(promoted, result))
            }
            _ => result,
        })
    }

    /// The smaller or greater one of two values.
    fn extreme(&mut self, extreme: Extreme, ty: Arithmetic, old: Operand, by: Operand) -> Operand {
        let compared = match ty {
            Arithmetic::Integer(integer) => {
                Arithmetic::Integer(Integer { signed: extreme.signed, ..integer })
            }
            Arithmetic::Bool => Arithmetic::INT,
        };
        let (one, other) = (numbers::convert(compared, old.clone()), numbers::convert(compared, by.clone()));
        let op = if extreme.greatest { Operator::Greater } else { Operator::Less };
        let keeps = numbers::binary(self, op, compared, one, other);
        numbers::choose(keeps, old, by)
    }
}
