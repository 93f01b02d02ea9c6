//! Condition variables, barriers, semaphores and `pthread_once`.
//!
//! POSIX and C11 allow spurious wakeups. So for safety properties, a wait for a condition variable only unlocks and relocks the mutex. For `deadlock`
//! and `termination`, spurious wakeups would hide lost signals, so they are not modelled: the condition variable has a bit for each waiting thread, a
//! signal clears one bit, and a broadcast clears all bits.
//!
//! A barrier counts the threads that have arrived. The last thread to arrive lets all of them leave, and no thread can arrive again before all have
//! left. A program cannot distinguish a thread that waits for this from a thread that arrives late. An uninitialised or destroyed barrier has the
//! count 0.
//!
//! If condition variables may be used after their destruction, each has a state: usable, destroyed, or abandoned. Abandoned means that some thread
//! waits for a signal that does not come before the destruction. For safety properties, a thread that begins to wait guesses whether it will be
//! abandoned. If it guesses so, it never continues, and executions in which a signal does follow are discarded. So signals need no stores and do not
//! drain the store buffer.

mod barriers;

use fencewright_c::arithmetic::Arithmetic;
use fencewright_c::ast::{BinaryOp as Operator, Integer, Rank};
use fencewright_c::typed::tree::FunctionId;
use fencewright_code::core::{Access, Base, ObjectEvent, Origin, StmtKind, ThreadNumber, Value};
use fencewright_code::numbers::{self, Operand};
use fencewright_program::Span;

use super::super::objects::{Spot, Target, is_certain};
use super::super::{Elaborator, Result};
use super::locks::{DESTROYED, Kind, THREADS_TIMED_OUT, TIMED_OUT};
use super::mutex_types::NOT_OWNER;
use super::{BuiltinCall, int, unconverted};

/// The integer type whose bits are the waiting threads of a condition variable.
const BITS: Arithmetic = Arithmetic::Integer(Integer { rank: Rank::Long, signed: false });

/// The name of a condition variable in messages.
const CONDITION: &str = "a condition variable";
/// The name of a semaphore in messages.
const SEMAPHORE: &str = "a semaphore";
/// The message of the assertion that fails when a thread waits with a mutex that it does not hold.
const WAITS_WITHOUT: &str = "a thread waits for a condition variable with a mutex that it does not hold";
/// The index of the member of a condition variable that holds the state.
const STATE: u32 = 1;
/// The state in which some thread waits that will never be woken.
const ABANDONED: i128 = 1;
/// `EAGAIN`.
const AGAIN: i128 = 11;
/// `EINVAL`: the result of initialising a barrier for no threads, or of allocating with an invalid alignment, and the error number of a semaphore with
/// too great a value.
pub(super) const INVALID: i128 = 22;

/// The operation of a function in this family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    InitCondition,
    Wait,
    /// Waits with a timeout; the number is the result of the call after the timeout.
    TimedWait(i128),
    Signal,
    Broadcast,
    DestroyCondition,
    InitBarrier,
    Barrier,
    DestroyBarrier,
    Once,
    InitSemaphore,
    Down,
    /// Decrements the semaphore and returns 0 if its value is positive, otherwise returns -1, with this error number in `errno`.
    TryDown(i128),
    Up,
    /// Stores the value of a semaphore through the second argument.
    Count,
    DestroySemaphore,
}

/// The operation of a function; `None` if the name is not in this family.
pub(super) fn named(name: &str) -> Option<Operation> {
    Some(match name {
        "pthread_cond_init" | "cnd_init" => Operation::InitCondition,
        "pthread_cond_wait" | "cnd_wait" => Operation::Wait,
        "pthread_cond_timedwait" | "pthread_cond_clockwait" => Operation::TimedWait(TIMED_OUT),
        "cnd_timedwait" => Operation::TimedWait(THREADS_TIMED_OUT),
        "pthread_cond_signal" | "cnd_signal" => Operation::Signal,
        "pthread_cond_broadcast" | "cnd_broadcast" => Operation::Broadcast,
        "pthread_cond_destroy" | "cnd_destroy" => Operation::DestroyCondition,
        "pthread_barrier_init" => Operation::InitBarrier,
        "pthread_barrier_wait" => Operation::Barrier,
        "pthread_barrier_destroy" => Operation::DestroyBarrier,
        "pthread_once" | "call_once" => Operation::Once,
        "sem_init" => Operation::InitSemaphore,
        "sem_wait" => Operation::Down,
        "sem_trywait" => Operation::TryDown(AGAIN),
        // As for timed locks, the call times out if the semaphore is not positive at this step.
        "sem_timedwait" | "sem_clockwait" => Operation::TryDown(TIMED_OUT),
        "sem_post" => Operation::Up,
        "sem_getvalue" => Operation::Count,
        "sem_destroy" => Operation::DestroySemaphore,
        _ => return None,
    })
}

/// The index of the member of a barrier that holds the number of threads for which it waits.
const COUNT: u32 = 0;
/// The index of the member that counts the threads that have arrived.
const ARRIVED: u32 = 1;
/// The index of the member that counts the threads that still have to leave.
const LEAVING: u32 = 2;

impl Elaborator<'_> {
    pub(super) fn waiting(&mut self, operation: Operation, call: BuiltinCall) -> Result<Operand> {
        let span = call.span;
        match operation {
            Operation::InitCondition => {
                let condition = self.argument_target(call, 0)?.accessed(Access::Own);
                self.write(&condition, Operand::number(0), span)?;
                if let Some(state) = self.condition_state(call)? {
                    self.write(&state, Operand::number(0), span)?;
                }
            }
            Operation::Wait => return self.wait(call, None),
            Operation::TimedWait(result) => return self.wait(call, Some(result)),
            Operation::Signal | Operation::Broadcast => {
                let condition = self.argument_target(call, 0)?.accessed(Access::Own);
                if self.options.spurious {
                    self.reach(&condition, span);
                }
                if let Some(state) = self.condition_state(call)? {
                    let state = self.read(&state, span)?;
                    self.require_usable(CONDITION, &state, span);
                    let unsignalled = self.is_abandoned(state);
                    self.assume(numbers::not(unsignalled), span);
                }
                if !self.options.spurious {
                    self.wake(&condition, operation == Operation::Broadcast, span)?;
                }
            }
            Operation::DestroyCondition => self.destroy_condition(call)?,
            Operation::InitBarrier => return self.init_barrier(call),
            Operation::Barrier => {
                self.may_wait(span);
                return self.barrier_wait(call);
            }
            Operation::DestroyBarrier => self.destroy_barrier(call)?,
            Operation::Once => self.once(call)?,
            Operation::InitSemaphore
            | Operation::Down
            | Operation::TryDown(_)
            | Operation::Up
            | Operation::Count
            | Operation::DestroySemaphore => return self.semaphore(operation, call),
        }
        Ok(Operand::number(0))
    }

    /// Waits for a condition variable. For a wait with a timeout, `late` is the result after the timeout has passed.
    fn wait(&mut self, call: BuiltinCall, late: Option<i128>) -> Result<Operand> {
        self.may_wait(call.span);
        if !(self.has_types() && call.name.starts_with("pthread_")) {
            return self.wait_with(call, late);
        }
        self.taken_once(call, 1)?;
        let told = self.is_told(call, 1)?;
        let result = self.temporary("waited", &int());
        self.write_register(result, Operand::number(NOT_OWNER), call.span)?;
        let waits = |this: &mut Self| {
            let waited = this.wait_with(call, late)?;
            this.write_register(result, waited, call.span)
        };
        self.branch(told, call.span, |_| Ok(()), waits)?;
        Ok(self.register_value(result))
    }

    /// Waits for a condition variable with a mutex that the thread has to hold. A timed wait may end at any moment, so it never blocks.
    fn wait_with(&mut self, call: BuiltinCall, late: Option<i128>) -> Result<Operand> {
        let span = call.span;
        let times_out = match late {
            Some(_) => self.any("late", &int(), (0, 1), span),
            None => Operand::number(0),
        };
        let result = |late_now: Operand| {
            numbers::choose(late_now, Operand::number(late.unwrap_or_default()), Operand::number(0))
        };
        let condition = self.argument_target(call, 0)?.accessed(Access::Own);
        let mutex = self.argument_target(call, 1)?.accessed(Access::Own);
        let state = self.condition_state(call)?;
        if self.graph.cancels && state.is_some() {
            let message =
                "a condition variable that is destroyed is not supported in programs that cancel threads";
            return self.error(span, message, "do not destroy it while threads may use it");
        }
        if self.options.spurious {
            self.act_on_cancellation(false, span)?;
            self.reach(&condition, span);
            if let Some(state) = &state {
                self.wait_abandoned(state, &mutex, span)?;
                self.usable_condition(state, span)?;
            }
            self.release_mutex(&mutex, WAITS_WITHOUT, span)?;
            self.acquire(Kind::Mutex, &mutex, span)?;
            self.act_on_cancellation(false, span)?;
            return Ok(result(times_out));
        }
        if let Some(state) = &state {
            self.usable_condition(state, span)?;
        }
        if self.thread().0 >= 64 {
            return self.error(
                span,
                "more than 64 threads with condition variables",
                "make the harness smaller",
            );
        }
        let own = Operand::number(1 << self.thread().0);
        let bit = own.clone();
        // The bit is set before the mutex is unlocked, so that a signal in between finds the thread waiting.
        self.atomically(span, |this| {
            let waiting = this.read(&condition, span)?;
            this.write(&condition, numbers::wrapping(Operator::BitOr, BITS, waiting, bit), span)
        })?;
        self.release_mutex(&mutex, WAITS_WITHOUT, span)?;
        let late_now = self.temporary("late", &int());
        self.atomically(span, |this| {
            let waiting = this.read(&condition, span)?;
            let still = numbers::wrapping(Operator::BitAnd, BITS, waiting.clone(), own.clone());
            let still = numbers::truth(still);
            if late.is_none() {
                this.assume(numbers::not(still.clone()), span);
            }
            let ends = numbers::binary(this, Operator::Or, Arithmetic::INT, still, times_out);
            this.write_register(late_now, ends, span)?;
            let others = numbers::complement(BITS, own);
            this.write(&condition, numbers::wrapping(Operator::BitAnd, BITS, waiting, others), span)
        })?;
        self.acquire(Kind::Mutex, &mutex, span)?;
        Ok(if late.is_some() { result(self.register_value(late_now)) } else { Operand::number(0) })
    }

    /// Emits a check that a condition variable exists, unless that is certain. With spurious wakeups, waits and signals do not access the variable
    /// otherwise.
    fn reach(&mut self, condition: &Target, span: Span) {
        let Spot::Memory(place) = &condition.spot else { return };
        let is_there = match place.base {
            Base::Object(object) => match self.objects[object.0 as usize].origin {
                Origin::Global => true,
                Origin::Local(thread) => thread == self.thread() && !self.writer.env.gone.contains(&object),
                // An allocation may have been freed, except while `main` is executed at translation time.
                Origin::Heap { .. } => self.executing(),
            },
            Base::Pointed(..) => false,
        };
        if !(is_there && is_certain(place)) {
            self.emit(StmtKind::Special(ObjectEvent::Reach(place.clone())), span);
        }
    }

    /// The state of a condition variable. `None` if no condition variable can be used after its destruction, or if only accesses matter, because the
    /// state exists only in the model.
    fn condition_state(&mut self, call: BuiltinCall) -> Result<Option<Target>> {
        if self.options.accesses_only {
            return Ok(None);
        }
        self.outlived |= self.destroyed.is_some() && self.thread() == ThreadNumber(0);
        if !self.premises.outlived {
            return Ok(None);
        }
        let pointer = self.argument(call, 0)?;
        let condition = self.pointed_by(unconverted(pointer))?;
        Ok(Some(self.member(&condition, STATE, call.span)?.accessed(Access::Own)))
    }

    fn usable_condition(&mut self, state: &Target, span: Span) -> Result<()> {
        let state = self.read(state, span)?;
        self.require_usable(CONDITION, &state, span);
        Ok(())
    }

    fn is_abandoned(&mut self, state: Operand) -> Operand {
        numbers::binary(self, Operator::Equal, Arithmetic::INT, state, Operand::number(ABANDONED))
    }

    /// Lets the current thread guess whether it waits forever, because no signal comes before the condition variable is destroyed.
    fn wait_abandoned(&mut self, state: &Target, mutex: &Target, span: Span) -> Result<()> {
        let for_ever = self.any("abandoned", &int(), (0, 1), span);
        let waits = |this: &mut Self| {
            this.atomically(span, |this| {
                this.usable_condition(state, span)?;
                this.write(state, Operand::number(ABANDONED), span)
            })?;
            this.release_mutex(mutex, WAITS_WITHOUT, span)?;
            this.end_execution(span);
            Ok(())
        };
        self.branch(for_ever, span, waits, |_| Ok(()))
    }

    /// Destroys a condition variable. Unlike a wait, this does not drain the store buffer, unless all other threads have ended (see `destroying`).
    fn destroy_condition(&mut self, call: BuiltinCall) -> Result<()> {
        let span = call.span;
        let condition = self.argument_target(call, 0)?.accessed(Access::Own);
        self.reach(&condition, span);
        if self.options.accesses_only {
            return Ok(());
        }
        let place = self.condition_state(call)?;
        self.outlived |= !self.is_alone() || self.repeated();
        self.destroyed = Some(self.instances.len());
        let Some(place) = place else { return Ok(()) };
        self.destroying(span, |this| {
            let state = this.read(&place, span)?;
            this.require_usable(CONDITION, &state, span);
            let waiting = match this.options.spurious {
                true => this.is_abandoned(state),
                false => this.read(&condition, span)?,
            };
            let unused = numbers::not(waiting);
            this.require(unused, "a condition variable is destroyed while a thread waits for it", span);
            this.write(&place, Operand::number(DESTROYED), span)
        })
    }

    /// Wakes all waiting threads if `all` is true, otherwise one waiting thread, if there is one.
    fn wake(&mut self, condition: &Target, all: bool, span: Span) -> Result<()> {
        let ty = condition.ty.clone();
        let chosen = match all {
            true => None,
            false => Some(self.any("woken", &int(), (0, 63), span)),
        };
        self.atomically(span, |this| {
            let Some(chosen) = chosen else { return this.write(condition, Operand::number(0), span) };
            let waiting = this.read(condition, span)?;
            let waiting = this.kept_value(waiting, &ty, span)?;
            let bit = numbers::binary(this, Operator::ShiftLeft, BITS, Operand::number(1), chosen);
            let rest =
                numbers::wrapping(Operator::BitAnd, BITS, waiting.clone(), numbers::complement(BITS, bit));
            let chosen = numbers::binary(this, Operator::NotEqual, BITS, waiting.clone(), rest.clone());
            // If the chosen thread is not waiting, the first waiting thread is woken instead, so that no signal is lost while a thread waits.
            let less = numbers::wrapping(Operator::Subtract, BITS, waiting.clone(), Operand::number(1));
            let first = numbers::wrapping(Operator::BitAnd, BITS, waiting, less);
            this.write(condition, numbers::choose(chosen, rest, first), span)
        })
    }

    /// Translates a semaphore operation; `sem_wait` waits until the value is positive.
    fn semaphore(&mut self, operation: Operation, call: BuiltinCall) -> Result<Operand> {
        let span = call.span;
        let place = self.argument_target(call, 0)?.accessed(Access::Own);
        let add =
            |count, number| numbers::wrapping(Operator::Add, Arithmetic::INT, count, Operand::number(number));
        let positive = |this: &mut Self, count| {
            numbers::binary(this, Operator::Greater, Arithmetic::INT, count, Operand::number(0))
        };
        match operation {
            Operation::InitSemaphore => {
                let count = self.argument_value(call, 2)?;
                return self.init_semaphore(&place, count, span);
            }
            Operation::Down => {
                self.may_wait(span);
                self.act_on_cancellation(false, span)?;
                self.atomically(span, |this| {
                    let count = this.read(&place, span)?;
                    this.require_usable(SEMAPHORE, &count, span);
                    let some = positive(this, count.clone());
                    this.assume(some, span);
                    this.write(&place, add(count, -1), span)
                })?;
            }
            Operation::TryDown(fails) => {
                if fails == TIMED_OUT {
                    self.act_on_cancellation(false, span)?;
                }
                let work = |this: &mut Self, count: &Operand| {
                    (positive(this, count.clone()), add(count.clone(), -1))
                };
                let count = self.looking_update(&place, work, span)?;
                self.require_usable(SEMAPHORE, &count, span);
                let some = positive(self, count);
                let failed = |this: &mut Self| this.set_error(Operand::number(fails), span);
                self.branch(some.clone(), span, |_| Ok(()), failed)?;
                return Ok(numbers::choose(some, Operand::number(0), Operand::number(-1)));
            }
            Operation::Count => {
                let count = self.read(&place, span)?;
                self.require_usable(SEMAPHORE, &count, span);
                let result = self.argument_target(call, 1)?;
                self.write(&result, count, span)?;
            }
            // If a thread is waiting for the semaphore, the check in `Down` fails when that thread continues.
            Operation::DestroySemaphore => self.destroying(span, |this| {
                let count = this.read(&place, span)?;
                this.require_usable(SEMAPHORE, &count, span);
                this.write(&place, Operand::number(DESTROYED), span)
            })?,
            _ => {
                let count = self.update(&place, |_, count| Ok((None, add(count.clone(), 1))), span)?;
                self.require_usable(SEMAPHORE, &count, span);
            }
        }
        Ok(Operand::number(0))
    }

    /// Initialises a semaphore, unless the number is greater than `SEM_VALUE_MAX`.
    fn init_semaphore(&mut self, place: &Target, count: Operand, span: Span) -> Result<Operand> {
        let most = Operand::number(Arithmetic::INT.greatest());
        let fits = numbers::compare(Operator::LessOrEqual, count.clone(), most);
        let init = |this: &mut Self| this.write(place, numbers::convert(Arithmetic::INT, count), span);
        let fails = |this: &mut Self| this.set_error(Operand::number(INVALID), span);
        self.branch(fits.clone(), span, init, fails)?;
        Ok(numbers::choose(fits, Operand::number(0), Operand::number(-1)))
    }

    /// `pthread_once`: calls a function unless some thread has called it before. If another thread is executing the function, waits until it returns.
    fn once(&mut self, call: BuiltinCall) -> Result<()> {
        const RUNNING: i128 = 1;
        const DONE: i128 = 2;
        let span = call.span;
        let once = self.argument_target(call, 0)?.accessed(Access::Own);
        let Value::Function(function) = self.argument_value(call, 1)?.value else {
            return self.error(span, "the function to call once is unknown", "pass it by its name");
        };
        if self.graph.cancels {
            let message = "`pthread_once` is not supported in programs that cancel threads";
            return self.error(span, message, "call the function before the threads are created");
        }
        let differs = |this: &mut Self, state: Operand, from| {
            numbers::binary(this, Operator::NotEqual, Arithmetic::INT, state, Operand::number(from))
        };
        let calls = |this: &mut Self| {
            let first = this.temporary("first", &once.ty);
            this.atomically(span, |this| {
                let state = this.read(&once, span)?;
                let idle = differs(this, state.clone(), RUNNING);
                this.assume(idle, span);
                if this.options.accesses_only {
                    let not_done = differs(this, state.clone(), DONE);
                    this.assume(not_done, span);
                }
                this.write_register(first, numbers::not(state.clone()), span)?;
                let state = numbers::choose(state, Operand::number(DONE), Operand::number(RUNNING));
                this.write(&once, state, span)
            })?;
            let first = this.register_value(first);
            let call = |this: &mut Self| {
                let before = std::mem::replace(&mut this.writer.in_once, true);
                let called = this.inlined(FunctionId(function), Vec::new(), span);
                this.writer.in_once = before;
                called?;
                this.atomically(span, |this| this.write(&once, Operand::number(DONE), span))
            };
            this.branch(first, span, call, |_| Ok(()))
        };
        if let Some(guess) = self.guess(span) {
            let looks = |this: &mut Self| {
                let is_done = |this: &mut Self, state: &Operand| {
                    let not_done = differs(this, state.clone(), DONE);
                    numbers::not(not_done)
                };
                this.see(&once, is_done, span).map(|_| ())
            };
            return self.branch(guess, span, calls, looks);
        }
        // If the function has already returned, `pthread_once` executes only this load.
        let state = self.read(&once, span)?;
        let not_done = differs(self, state, DONE);
        self.branch(not_done, span, calls, |_| Ok(()))
    }
}
