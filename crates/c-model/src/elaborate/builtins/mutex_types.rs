//! Mutexes of pthread with a type other than normal: recursive and error-checking ones.
//!
//! If a program sets such a type anywhere, every mutex has a member for its type and a member for its depth: how many times its owner has locked it
//! beyond the first time. The atomic step that locks or unlocks a mutex reads both members. A thread that locks such a mutex while it holds it, or
//! unlocks it without releasing it, executes only loads and stores, because POSIX does not promise that store buffers are drained in these cases. In
//! all other programs, mutexes are normal ([`super::locks`]).

use fencewright_c::arithmetic::Arithmetic;
use fencewright_c::ast::BinaryOp as Operator;
use fencewright_code::core::{Access, StmtKind};
use fencewright_code::numbers::{self, Operand};
use fencewright_program::Span;

use super::super::objects::Target;
use super::super::{Elaborator, Result};
use super::locks::{BUSY, Kind, NOT_HELD, TIMED_OUT};
use super::{BuiltinCall, int, unconverted};

/// The index of the member of `pthread_mutex_t` that holds the type.
const TYPE: u32 = 1;
/// The index of the member of `pthread_mutex_t` that holds the depth.
const DEPTH: u32 = 2;
/// `PTHREAD_MUTEX_RECURSIVE`.
const RECURSIVE: i128 = 1;
/// `PTHREAD_MUTEX_ERRORCHECK`.
const CHECKED: i128 = 2;
/// `EPERM`: the result of unlocking a mutex that the calling thread does not hold.
pub(super) const NOT_OWNER: i128 = 1;
/// `EDEADLK`: the result of locking an error-checking mutex, or a reader-writer lock for writing, that the calling thread holds.
pub(super) const DEADLOCK: i128 = 35;

/// The name of a mutex in messages.
const MUTEX: &str = "a mutex";

/// What a call does if another thread holds the mutex: `lock` waits, `trylock` fails, `timedlock` may give up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taking {
    Waits,
    Tries,
    GivesUp,
}

/// The places of the members of a mutex.
struct Mutex {
    owner: Target,
    ty: Target,
    depth: Target,
}

/// The contents of a mutex. `held` is its owner; `own` says whether the current thread is the owner.
struct Found {
    held: Operand,
    own: Operand,
    recursive: Operand,
    checked: Operand,
    depth: Operand,
}

impl Elaborator<'_> {
    /// Whether the program sets the type of some mutex to recursive or error-checking.
    pub(super) fn has_types(&self) -> bool {
        self.graph.typed_mutexes
    }

    fn mutex(&mut self, call: BuiltinCall, argument: usize) -> Result<Mutex> {
        let pointer = unconverted(self.argument(call, argument)?);
        let whole = self.pointed_by(pointer)?;
        let mut part =
            |number| -> Result<Target> { Ok(self.member(&whole, number, call.span)?.accessed(Access::Own)) };
        Ok(Mutex { owner: part(0)?, ty: part(TYPE)?, depth: part(DEPTH)? })
    }

    /// Initialises a mutex with the type that its attributes give.
    pub(super) fn init_typed(&mut self, call: BuiltinCall) -> Result<()> {
        let Mutex { ty, depth, .. } = self.mutex(call, 0)?;
        let attributes = self.argument_value(call, 1)?;
        let kind = match attributes.known() {
            Some(0) => Operand::number(0),
            _ => {
                let from = self.argument_target(call, 1)?.accessed(Access::Own);
                self.read(&from, call.span)?
            }
        };
        self.write(&ty, kind, call.span)?;
        self.write(&depth, Operand::number(0), call.span)
    }

    fn found(&mut self, mutex: &Mutex, span: Span) -> Result<Found> {
        let held = self.read(&mutex.owner, span)?;
        let ty = self.read(&mutex.ty, span)?;
        let depth = self.read(&mutex.depth, span)?;
        let owner = self.owner();
        let own = self.compared_numbers(Operator::Equal, held.clone(), owner);
        let recursive = self.compared_numbers(Operator::Equal, ty.clone(), Operand::number(RECURSIVE));
        let checked = self.compared_numbers(Operator::Equal, ty, Operand::number(CHECKED));
        Ok(Found { held, own, recursive, checked, depth })
    }

    /// Whether a call returns an error because the mutex is error-checking and the current thread does not hold it.
    pub(super) fn is_told(&mut self, call: BuiltinCall, argument: usize) -> Result<Operand> {
        let mutex = self.mutex(call, argument)?;
        let own = self.is_owner(&mutex, call.span)?;
        let ty = self.read(&mutex.ty, call.span)?;
        let checked = self.compared_numbers(Operator::Equal, ty, Operand::number(CHECKED));
        let told = self.compared_numbers(Operator::And, numbers::not(own), checked);
        self.kept_value(told, &int(), call.span)
    }

    /// Asserts that the current thread, which is about to wait for a condition variable, has locked the mutex only once.
    pub(super) fn taken_once(&mut self, call: BuiltinCall, argument: usize) -> Result<()> {
        let span = call.span;
        if !self.has_types() {
            return Ok(());
        }
        let Mutex { depth, .. } = self.mutex(call, argument)?;
        self.atomically(span, |this| {
            let depth = this.read(&depth, span)?;
            let once = this.compared_numbers(Operator::Equal, depth, Operand::number(0));
            this.require(
                once,
                "a thread waits for a condition variable with a mutex that it has locked twice",
                span,
            );
            Ok(())
        })
    }

    fn compared_numbers(&mut self, op: Operator, a: Operand, b: Operand) -> Operand {
        numbers::binary(self, op, Arithmetic::INT, a, b)
    }

    /// Locks a mutex. Returns the result of the call.
    pub(super) fn lock_typed(&mut self, call: BuiltinCall, taking: Taking) -> Result<Operand> {
        let span = call.span;
        let mutex = self.mutex(call, 0)?;
        let result = self.temporary("result", &int());
        let takes = |this: &mut Self| {
            let says = this.take_typed(&mutex, taking, span)?;
            this.write_register(result, says, span)
        };
        let has = |this: &mut Self| {
            let (recursive, tells) = this.type_of(&mutex, span)?;
            let again = |this: &mut Self| {
                let refused = if taking == Taking::Tries { BUSY } else { DEADLOCK };
                let says = numbers::choose(recursive.clone(), Operand::number(0), Operand::number(refused));
                this.write_register(result, says, span)?;
                this.branch(recursive, span, |this| this.count_typed(&mutex, 1, span), |_| Ok(()))
            };
            this.branch(tells, span, again, takes)
        };
        if let Some(guess) = self.guess(span) {
            let has = |this: &mut Self| {
                let is_own = |this: &mut Self, held: &Operand| {
                    let owner = this.owner();
                    this.compared_numbers(Operator::Equal, held.clone(), owner)
                };
                this.see(&mutex.owner, is_own, span)?;
                has(this)
            };
            let has_not = |this: &mut Self| {
                let says = this.take_from_others(&mutex, taking, span)?;
                this.write_register(result, says, span)
            };
            self.branch(guess, span, has, has_not)?;
            return Ok(self.register_value(result));
        }
        let own = self.is_owner(&mutex, span)?;
        self.branch(own, span, has, takes)?;
        Ok(self.register_value(result))
    }

    /// Locks a mutex that the current thread does not hold. Its type and depth do not matter then. Returns the result of the call.
    fn take_from_others(&mut self, mutex: &Mutex, taking: Taking, span: Span) -> Result<Operand> {
        let take = |this: &mut Self| this.acquire(Kind::Mutex, &mutex.owner, span);
        match taking {
            Taking::Waits => take(self).map(|()| Operand::number(0)),
            Taking::Tries | Taking::GivesUp => {
                let free = self.any("free", &int(), (0, 1), span);
                let is_taken = |this: &mut Self, held: &Operand| {
                    let owner = this.owner();
                    let other = this.compared_numbers(Operator::NotEqual, held.clone(), owner);
                    this.compared_numbers(Operator::And, held.clone(), other)
                };
                let finds_taken = |this: &mut Self| {
                    this.emit(StmtKind::Fence, span);
                    this.see(&mutex.owner, is_taken, span).map(|_| ())
                };
                self.branch(free.clone(), span, take, finds_taken)?;
                let fails = if taking == Taking::Tries { BUSY } else { TIMED_OUT };
                Ok(numbers::choose(free, Operand::number(0), Operand::number(fails)))
            }
        }
    }

    /// Whether the current thread holds a mutex. A load suffices, because no other thread can change the answer. A destroyed mutex has no owner.
    fn is_owner(&mut self, mutex: &Mutex, span: Span) -> Result<Operand> {
        let held = self.read(&mutex.owner, span)?;
        self.require_usable(MUTEX, &held, span);
        let owner = self.owner();
        Ok(self.compared_numbers(Operator::Equal, held, owner))
    }

    /// Two truth values: whether a mutex is recursive, and whether it is recursive or error-checking.
    fn type_of(&mut self, mutex: &Mutex, span: Span) -> Result<(Operand, Operand)> {
        let ty = self.read(&mutex.ty, span)?;
        let recursive = self.compared_numbers(Operator::Equal, ty.clone(), Operand::number(RECURSIVE));
        let checked = self.compared_numbers(Operator::Equal, ty, Operand::number(CHECKED));
        let tells = self.compared_numbers(Operator::Or, recursive.clone(), checked);
        Ok((recursive, tells))
    }

    /// Adds a number to the depth of a mutex that the current thread holds.
    fn count_typed(&mut self, mutex: &Mutex, by: i128, span: Span) -> Result<()> {
        let depth = self.read(&mutex.depth, span)?;
        let depth = numbers::wrapping(Operator::Add, Arithmetic::INT, depth, Operand::number(by));
        self.write(&mutex.depth, depth, span)
    }

    /// Locks a mutex in one atomic step that may wait. Returns the result of the call.
    fn take_typed(&mut self, mutex: &Mutex, taking: Taking, span: Span) -> Result<Operand> {
        let mut result = Operand::number(0);
        self.atomically(span, |this| {
            let Found { held, own, recursive, checked, depth } = this.found(mutex, span)?;
            this.require_usable(MUTEX, &held, span);
            let free = this.compared_numbers(Operator::Equal, held.clone(), Operand::number(0));
            let again = this.compared_numbers(Operator::And, own.clone(), recursive);
            let told = this.compared_numbers(Operator::And, own, checked);
            let takes = this.compared_numbers(Operator::Or, free, again.clone());
            let (takes, says) = match taking {
                Taking::Tries => {
                    (takes.clone(), numbers::choose(takes, Operand::number(0), Operand::number(BUSY)))
                }
                Taking::GivesUp => {
                    let fails = numbers::choose(told, Operand::number(DEADLOCK), Operand::number(TIMED_OUT));
                    (takes.clone(), numbers::choose(takes, Operand::number(0), fails))
                }
                Taking::Waits => {
                    let ends = this.compared_numbers(Operator::Or, takes.clone(), told.clone());
                    this.assume(ends, span);
                    (takes, numbers::choose(told, Operand::number(DEADLOCK), Operand::number(0)))
                }
            };
            result = this.kept_value(says, &int(), span)?;
            let owner = this.owner();
            this.write(&mutex.owner, numbers::choose(takes.clone(), owner, held), span)?;
            let deeper = this.compared_numbers(Operator::And, takes, again);
            let more = numbers::wrapping(Operator::Add, Arithmetic::INT, depth.clone(), Operand::number(1));
            this.write(&mutex.depth, numbers::choose(deeper, more, depth), span)
        })?;
        Ok(result)
    }

    /// Unlocks a mutex. Returns the result of the call.
    pub(super) fn unlock_typed(&mut self, call: BuiltinCall) -> Result<Operand> {
        let span = call.span;
        let mutex = self.mutex(call, 0)?;
        let result = self.temporary("result", &int());
        let gives = |this: &mut Self| {
            let says = this.give_typed(&mutex, span)?;
            this.write_register(result, says, span)
        };
        let has = |this: &mut Self| {
            let depth = this.read(&mutex.depth, span)?;
            let deep = this.compared_numbers(Operator::Greater, depth, Operand::number(0));
            let keeps = |this: &mut Self| {
                this.write_register(result, Operand::number(0), span)?;
                this.count_typed(&mutex, -1, span)
            };
            this.branch(deep, span, keeps, gives)
        };
        let has_not = |this: &mut Self| {
            let (_, tells) = this.type_of(&mutex, span)?;
            let told = |this: &mut Self| this.write_register(result, Operand::number(NOT_OWNER), span);
            this.branch(tells, span, told, gives)
        };
        let own = self.is_owner(&mutex, span)?;
        self.branch(own, span, has, has_not)?;
        Ok(self.register_value(result))
    }

    /// Unlocks a mutex in one atomic step. Returns the result of the call.
    fn give_typed(&mut self, mutex: &Mutex, span: Span) -> Result<Operand> {
        let mut result = Operand::number(0);
        self.atomically(span, |this| {
            let Found { held, own, recursive, checked, depth } = this.found(mutex, span)?;
            this.require_usable(MUTEX, &held, span);
            let tells = this.compared_numbers(Operator::Or, recursive, checked);
            let fine = this.compared_numbers(Operator::Or, own.clone(), tells);
            this.require(fine, NOT_HELD, span);
            let says = numbers::choose(own.clone(), Operand::number(0), Operand::number(NOT_OWNER));
            result = this.kept_value(says, &int(), span)?;
            let deep = this.compared_numbers(Operator::Greater, depth.clone(), Operand::number(0));
            let inner = this.compared_numbers(Operator::And, own.clone(), deep);
            let kept = numbers::choose(inner.clone(), held.clone(), Operand::number(0));
            this.write(&mutex.owner, numbers::choose(own, kept, held), span)?;
            let fewer =
                numbers::wrapping(Operator::Subtract, Arithmetic::INT, depth.clone(), Operand::number(1));
            this.write(&mutex.depth, numbers::choose(inner, fewer, depth), span)
        })?;
        Ok(result)
    }
}
