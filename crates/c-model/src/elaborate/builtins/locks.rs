//! Mutexes, spin locks and reader-writer locks of pthread, `<threads.h>` and Linux.
//!
//! A mutex holds the number of its owner plus one, or 0 if it is free. Locking is one atomic step that waits until the mutex is free; locking and
//! unlocking drain the store buffer, like the locked instructions that implement them on x86. A spin lock is locked in the same way and unlocked by a
//! plain store after a store-store fence.
//!
//! A destroyed lock holds [`DESTROYED`] until it is initialised again. Uses that POSIX leaves undefined violate `assertions`. These assertions are
//! part of the atomic steps above; the interval analysis removes them if no thread destroys the lock.

use fencewright_c::arithmetic::Arithmetic;
use fencewright_c::ast::BinaryOp as Operator;
use fencewright_c::typed::tree::Step;
use fencewright_code::core::{Access, Object, ObjectId, Origin, Purpose, StmtKind, ThreadNumber};
use fencewright_code::numbers::{self, Operand};
use fencewright_program::Span;

use super::super::objects::{Spot, Target};
use super::super::{Elaborator, MOST_THREADS, Result};
use super::mutex_types::Taking;
use super::shared_locks::Noted;
use super::{BuiltinCall, int};

/// `EBUSY`: the result of `trylock` on a lock that is held.
pub(super) const BUSY: i128 = 16;
/// `ETIMEDOUT`: the result of a timed lock after the timeout.
pub(super) const TIMED_OUT: i128 = 110;
/// `thrd_busy`: the result of `mtx_trylock` on a mutex that is held.
const THREADS_BUSY: i128 = 3;
/// `thrd_timedout`: the result of `mtx_timedlock` after the timeout.
pub(super) const THREADS_TIMED_OUT: i128 = 2;
/// The value of a destroyed lock, semaphore or condition variable. It differs from the values of free and of held locks.
pub(super) const DESTROYED: i128 = -2 * MOST_THREADS as i128;

/// The message of the assertion that fails when a thread unlocks a mutex that it does not hold.
pub(super) const NOT_HELD: &str = "a mutex is unlocked by a thread that does not hold it";

/// A thread, and a lock as an object and the path to a part of it, with the fact that a variable records.
pub(in super::super) type Holder = (ThreadNumber, ObjectId, Vec<Step>, Noted);

/// The kinds of locks; a reader-writer lock has one kind for reading and one for writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Mutex,
    /// A spin lock of POSIX: only its owner may unlock it.
    OwnedSpin,
    /// A spin lock of Linux: another thread may unlock it.
    Spin,
    Readers,
    Writer,
}

impl Kind {
    /// The name of this kind of lock in messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Mutex => "a mutex",
            Kind::OwnedSpin | Kind::Spin => "a spin lock",
            Kind::Readers | Kind::Writer => "a lock for readers and writers",
        }
    }

    /// The fact that a thread records when it has taken such a lock.
    fn noted(self) -> Option<Noted> {
        match self {
            Kind::OwnedSpin | Kind::Readers => Some(Noted::Taken),
            Kind::Writer => Some(Noted::Written),
            Kind::Mutex | Kind::Spin => None,
        }
    }
}

/// The API to which a lock function belongs. It determines the results of `trylock` and of timed locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum World {
    /// `pthread.h`: 0, or an error number.
    Posix,
    /// `threads.h`: `thrd_success`, `thrd_busy` or `thrd_timedout`.
    Threads,
    /// Linux: 1 for success, 0 otherwise.
    Linux,
}

/// The operation of a function in this family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Init(Kind),
    /// Destroys a lock, which no thread may hold, nor use afterwards.
    Destroy(Kind),
    Lock(Kind),
    /// Locks with a timeout.
    TimedLock(Kind, World),
    TryLock(Kind, World),
    Unlock(Kind),
    /// Unlocks a reader-writer lock that is held for reading or for writing.
    UnlockEither,
    /// Returns whether some thread holds the lock.
    IsLocked,
    /// Sets attributes that have no effect in the model.
    Nothing,
    /// Initialises mutex attributes with the normal type.
    Ordinary,
    /// Sets the mutex type in mutex attributes.
    SetType,
    /// Sets in mutex attributes whether a mutex is robust.
    SetRobust,
    /// Initialises thread attributes so that threads are joinable.
    Joinable,
    /// Sets in thread attributes whether threads are detached.
    SetDetached,
}

/// The operation of a function; `None` if the name is not in this family.
pub(super) fn named(name: &str) -> Option<Operation> {
    if let Some(rest) = name.strip_prefix("pthread_") {
        return named_pthread(rest);
    }
    if let Some(rest) = name.strip_prefix("mtx_") {
        return Some(match rest {
            "init" => Operation::Init(Kind::Mutex),
            "destroy" => Operation::Destroy(Kind::Mutex),
            "lock" => Operation::Lock(Kind::Mutex),
            "timedlock" => Operation::TimedLock(Kind::Mutex, World::Threads),
            "trylock" => Operation::TryLock(Kind::Mutex, World::Threads),
            "unlock" => Operation::Unlock(Kind::Mutex),
            _ => return None,
        });
    }
    named_linux(name)
}

fn named_pthread(rest: &str) -> Option<Operation> {
    Some(match rest {
        "mutex_init" => Operation::Init(Kind::Mutex),
        "mutex_destroy" => Operation::Destroy(Kind::Mutex),
        "spin_destroy" => Operation::Destroy(Kind::OwnedSpin),
        "rwlock_destroy" => Operation::Destroy(Kind::Writer),
        "mutex_lock" => Operation::Lock(Kind::Mutex),
        "mutex_timedlock" | "mutex_clocklock" => Operation::TimedLock(Kind::Mutex, World::Posix),
        "mutex_trylock" => Operation::TryLock(Kind::Mutex, World::Posix),
        "mutex_unlock" => Operation::Unlock(Kind::Mutex),
        "spin_init" => Operation::Init(Kind::OwnedSpin),
        "spin_lock" => Operation::Lock(Kind::OwnedSpin),
        "spin_trylock" => Operation::TryLock(Kind::OwnedSpin, World::Posix),
        "spin_unlock" => Operation::Unlock(Kind::OwnedSpin),
        "rwlock_init" => Operation::Init(Kind::Writer),
        "rwlock_rdlock" => Operation::Lock(Kind::Readers),
        "rwlock_wrlock" => Operation::Lock(Kind::Writer),
        "rwlock_timedrdlock" | "rwlock_clockrdlock" => Operation::TimedLock(Kind::Readers, World::Posix),
        "rwlock_timedwrlock" | "rwlock_clockwrlock" => Operation::TimedLock(Kind::Writer, World::Posix),
        "rwlock_tryrdlock" => Operation::TryLock(Kind::Readers, World::Posix),
        "rwlock_trywrlock" => Operation::TryLock(Kind::Writer, World::Posix),
        "rwlock_unlock" => Operation::UnlockEither,
        "attr_init" => Operation::Joinable,
        "attr_setdetachstate" => Operation::SetDetached,
        "mutexattr_init" => Operation::Ordinary,
        "mutexattr_settype" => Operation::SetType,
        "mutexattr_setrobust" | "mutexattr_setrobust_np" => Operation::SetRobust,
        // What these write through their second argument, and the kinds that these set, are not modelled.
        _ if rest.contains("attr_get") || rest.ends_with("attr_setkind_np") => return None,
        _ if ["attr_", "mutexattr_", "condattr_", "rwlockattr_", "barrierattr_"]
            .iter()
            .any(|kind| rest.starts_with(kind)) =>
        {
            Operation::Nothing
        }
        "setname_np" | "setaffinity_np" | "setschedparam" | "setschedprio" | "setconcurrency" => {
            Operation::Nothing
        }
        _ => return None,
    })
}

fn named_linux(name: &str) -> Option<Operation> {
    let rest = name.strip_prefix("raw_").or_else(|| name.strip_prefix("arch_")).unwrap_or(name);
    // Interrupts are not modelled, so the variants with these suffixes are equivalent to those without.
    let rest = ["_irqsave", "_irqrestore", "_irq", "_bh"]
        .iter()
        .find_map(|end| rest.strip_suffix(end))
        .unwrap_or(rest);
    Some(match rest {
        "spin_lock_init" => Operation::Init(Kind::Spin),
        "spin_lock" => Operation::Lock(Kind::Spin),
        "spin_trylock" => Operation::TryLock(Kind::Spin, World::Linux),
        "spin_unlock" => Operation::Unlock(Kind::Spin),
        "spin_is_locked" | "mutex_is_locked" => Operation::IsLocked,
        "mutex_init" => Operation::Init(Kind::Mutex),
        "mutex_destroy" => Operation::Destroy(Kind::Mutex),
        "mutex_lock" => Operation::Lock(Kind::Mutex),
        "mutex_trylock" => Operation::TryLock(Kind::Mutex, World::Linux),
        "mutex_unlock" => Operation::Unlock(Kind::Mutex),
        "rwlock_init" => Operation::Init(Kind::Writer),
        "read_lock" | "down_read" => Operation::Lock(Kind::Readers),
        "write_lock" | "down_write" => Operation::Lock(Kind::Writer),
        "read_unlock" | "up_read" => Operation::Unlock(Kind::Readers),
        "write_unlock" | "up_write" => Operation::Unlock(Kind::Writer),
        "read_trylock" => Operation::TryLock(Kind::Readers, World::Linux),
        "write_trylock" => Operation::TryLock(Kind::Writer, World::Linux),
        _ => return None,
    })
}

impl Elaborator<'_> {
    pub(super) fn lock_operation(&mut self, operation: Operation, call: BuiltinCall) -> Result<Operand> {
        let span = call.span;
        let typed = self.has_types() && call.name.starts_with("pthread_");
        let ignored = match operation {
            Operation::Nothing | Operation::SetRobust => true,
            Operation::Ordinary | Operation::SetType => !typed,
            Operation::Joinable | Operation::SetDetached => !self.graph.detached_by_attributes,
            _ => false,
        };
        if operation == Operation::SetRobust && self.argument_value(call, 1)?.known() != Some(0) {
            let help = "a thread that ends while it holds a mutex keeps it in the model: unlock it before";
            return self.error(span, "robust mutexes are not supported", help);
        }
        if ignored {
            self.evaluated(call)?;
            return Ok(Operand::number(0));
        }
        let lock = self.argument_target(call, 0)?.accessed(Access::Own);
        match operation {
            Operation::Init(_) => {
                let recursive = call.name == "mtx_init"
                    && self.argument_value(call, 1)?.known().is_none_or(|known| known & 1 != 0);
                if recursive {
                    return self.recursive(span);
                }
                self.write(&lock, Operand::number(0), span)?;
                if typed && call.name == "pthread_mutex_init" {
                    self.init_typed(call)?;
                }
            }
            Operation::Ordinary | Operation::Joinable => self.write(&lock, Operand::number(0), span)?,
            Operation::SetType | Operation::SetDetached => {
                let ty = self.argument_value(call, 1)?;
                self.write(&lock, ty, span)?;
            }
            Operation::Destroy(kind) => self.destroy(kind, &lock, span)?,
            Operation::IsLocked => return self.read(&lock, span).map(numbers::truth),
            Operation::Lock(Kind::Mutex) if typed => {
                self.may_wait(span);
                return self.lock_typed(call, Taking::Waits);
            }
            Operation::TryLock(Kind::Mutex, World::Posix) if typed => {
                return self.lock_typed(call, Taking::Tries);
            }
            Operation::TimedLock(Kind::Mutex, World::Posix) if typed => {
                return self.lock_typed(call, Taking::GivesUp);
            }
            Operation::Unlock(Kind::Mutex) if typed => return self.unlock_typed(call),
            Operation::Lock(kind @ (Kind::Readers | Kind::Writer)) if call.name.starts_with("pthread_") => {
                self.may_wait(span);
                let take = |this: &mut Self| this.acquire(kind, &lock, span).map(|()| Operand::number(0));
                return self.take_shared(&lock, take, span);
            }
            Operation::Lock(kind) => {
                self.may_wait(span);
                self.acquire(kind, &lock, span)?;
            }
            Operation::TryLock(kind, world) => {
                let free = self.try_acquire(kind, world, &lock, span)?;
                return Ok(answer(world, free));
            }
            Operation::TimedLock(kind, world) => return self.timed_lock(kind, world, &lock, span),
            Operation::Unlock(kind) => self.release(Some(kind), &lock, span)?,
            Operation::UnlockEither => self.release(None, &lock, span)?,
            Operation::Nothing | Operation::SetRobust => {}
        }
        Ok(Operand::number(0))
    }

    /// A timed lock succeeds if the lock is free at this step, and times out otherwise: other threads cannot see how long this one has waited.
    fn timed_lock(&mut self, kind: Kind, world: World, lock: &Target, span: Span) -> Result<Operand> {
        let late = if world == World::Threads { THREADS_TIMED_OUT } else { TIMED_OUT };
        let take = |this: &mut Self| {
            let free = this.try_acquire(kind, world, lock, span)?;
            Ok(numbers::choose(free, Operand::number(0), Operand::number(late)))
        };
        match kind {
            Kind::Readers | Kind::Writer => self.take_shared(lock, take, span),
            _ => take(self),
        }
    }

    fn recursive<T>(&self, span: Span) -> Result<T> {
        let help = "lock it once, in the outermost function, and call functions that expect it to be locked";
        self.error(span, "recursive mutexes are not supported", help)
    }

    /// The value of a mutex that the current thread holds.
    pub(super) fn owner(&self) -> Operand {
        Operand::number(i128::from(self.thread().0) + 1)
    }

    /// For a lock with the value `held`: its value after the current thread has taken it, and the condition under which the thread can take it.
    fn taken(&mut self, kind: Kind, held: Operand) -> (Operand, Operand) {
        let compare =
            |this: &mut Self, op, held| numbers::binary(this, op, Arithmetic::INT, held, Operand::number(0));
        match kind {
            Kind::Mutex => (self.owner(), compare(self, Operator::Equal, held)),
            Kind::OwnedSpin | Kind::Spin => (Operand::number(1), compare(self, Operator::Equal, held)),
            Kind::Writer => (self.writing_owner(), compare(self, Operator::Equal, held)),
            Kind::Readers => {
                let more =
                    numbers::wrapping(Operator::Add, Arithmetic::INT, held.clone(), Operand::number(1));
                (more, compare(self, Operator::GreaterOrEqual, held))
            }
        }
    }

    /// Takes a lock, after waiting until the lock is free.
    pub(super) fn acquire(&mut self, kind: Kind, lock: &Target, span: Span) -> Result<()> {
        self.atomically(span, |this| {
            let held = this.read(lock, span)?;
            this.require_usable(kind.name(), &held, span);
            let (taken, free) = this.taken(kind, held);
            this.assume(free, span);
            this.write(lock, taken, span)
        })?;
        self.note_taken(kind, lock, span)
    }

    /// The variable that records a fact about the current thread and a lock. `None` if the place of the lock is not constant, or if the program
    /// somewhere computes the address of a lock that it takes. Constant propagation removes the variable if the fact always follows from the code, for
    /// example if the thread releases only locks that it has taken.
    pub(super) fn noted(&mut self, noted: Noted, lock: &Target, span: Span) -> Option<Target> {
        if *self.premises.computed_locks.of(noted) {
            return None;
        }
        let (object, way) = lock.known()?;
        let thread = self.thread();
        let holder = (thread, object, way, noted);
        let held = match self.held.get(&holder) {
            Some(&held) => held,
            None => {
                let what = if noted == Noted::Taken { "held" } else { "written" };
                let name = format!("{}_{what}", self.objects[object.0 as usize].name);
                let (ty, node) = (Some(int()), self.nodes.object(&int(), span));
                let (origin, initial) = (Origin::Local(thread), Vec::new());
                let purpose = Purpose::Translation;
                let held =
                    self.object(Object { name, ty, node, origin, initial, undefined: false, purpose, span });
                if !self.executing() {
                    // In a loop, an earlier iteration may already have written the variable, so its value is unknown.
                    self.writer.env.objects.remove(&held);
                }
                self.held.insert(holder, held);
                held
            }
        };
        Some(Target::new(Spot::Memory(self.location(held, &[])), int()).accessed(Access::Own))
    }

    /// Records that the current thread has taken a lock.
    fn note_taken(&mut self, kind: Kind, lock: &Target, span: Span) -> Result<()> {
        let Some(noted) = kind.noted() else { return Ok(()) };
        // If the address of the lock is computed here, but the lock is released by its name elsewhere, the variable would be wrong. So the next
        // attempt uses no such variables.
        *self.computed_locks.of(noted) |= lock.known().is_none();
        let Some(held) = self.noted(noted, lock, span) else { return Ok(()) };
        self.write(&held, Operand::number(1), span)
    }

    /// Takes a lock if it is free, and returns whether it was free. Linux locks and reader-writer locks load the value first, and drain the store
    /// buffer only if they write.
    fn try_acquire(&mut self, kind: Kind, world: World, lock: &Target, span: Span) -> Result<Operand> {
        if world == World::Linux || matches!(kind, Kind::Readers | Kind::Writer) {
            let takes = |this: &mut Self, held: &Operand| {
                let (taken, free) = this.taken(kind, held.clone());
                (free, taken)
            };
            let held = self.looking_update(lock, takes, span)?;
            self.require_usable(kind.name(), &held, span);
            let free = self.taken(kind, held).1;
            self.branch(free.clone(), span, |this| this.note_taken(kind, lock, span), |_| Ok(()))?;
            return Ok(free);
        }
        let held = self.update(
            lock,
            |this, held| {
                let (taken, free) = this.taken(kind, held.clone());
                Ok((Some(free), taken))
            },
            span,
        )?;
        self.require_usable(kind.name(), &held, span);
        let free = self.taken(kind, held).1;
        if kind == Kind::OwnedSpin {
            self.branch(free.clone(), span, |this| this.note_taken(kind, lock, span), |_| Ok(()))?;
        }
        Ok(free)
    }

    /// Asserts that a lock, semaphore or condition variable whose value is `held` has not been destroyed.
    pub(super) fn require_usable(&mut self, what: &str, held: &Operand, span: Span) {
        let there = self.differs(held, DESTROYED);
        self.require(there, &format!("{what} is used after it was destroyed"), span);
    }

    fn differs(&mut self, held: &Operand, from: i128) -> Operand {
        numbers::binary(self, Operator::NotEqual, Arithmetic::INT, held.clone(), Operand::number(from))
    }

    /// Destroys a lock: asserts that the lock is free and has not been destroyed before, and writes `DESTROYED` to it.
    fn destroy(&mut self, kind: Kind, lock: &Target, span: Span) -> Result<()> {
        self.destroying(span, |this| {
            let held = this.read(lock, span)?;
            this.require_usable(kind.name(), &held, span);
            let free = numbers::not(held);
            this.require(free, &format!("{} is destroyed while a thread holds it", kind.name()), span);
            this.write(lock, Operand::number(DESTROYED), span)
        })
    }

    /// Releases a lock of the given kind; `None` stands for a reader-writer lock held for reading or for writing.
    pub(super) fn release(&mut self, kind: Option<Kind>, lock: &Target, span: Span) -> Result<()> {
        match kind {
            Some(Kind::OwnedSpin) => self.release_spin(true, lock, span),
            Some(Kind::Spin) => self.release_spin(false, lock, span),
            Some(Kind::Mutex) => self.release_mutex(lock, NOT_HELD, span),
            Some(Kind::Readers | Kind::Writer) => self.release_shared(lock, None, span),
            None => {
                let reads = self.noted(Noted::Taken, lock, span);
                self.release_shared(lock, reads, span)?;
                let written = self.noted(Noted::Written, lock, span);
                written.map_or(Ok(()), |written| self.write(&written, Operand::number(0), span))
            }
        }
    }

    fn release_spin(&mut self, owned: bool, lock: &Target, span: Span) -> Result<()> {
        if let Some(held) = if owned { self.noted(Noted::Taken, lock, span) } else { None } {
            let has = self.read(&held, span)?;
            self.require(has, "a spin lock is unlocked by a thread that does not hold it", span);
            self.write(&held, Operand::number(0), span)?;
        }
        self.emit(StmtKind::StoreFence, span);
        self.write(lock, Operand::number(0), span)
    }

    /// Releases a mutex. `otherwise` is the message of the assertion that fails if the current thread does not hold the mutex.
    pub(super) fn release_mutex(&mut self, lock: &Target, otherwise: &str, span: Span) -> Result<()> {
        self.atomically(span, |this| {
            let held = this.read(lock, span)?;
            this.require_usable(Kind::Mutex.name(), &held, span);
            this.require_own(held, otherwise, span);
            this.write(lock, Operand::number(0), span)
        })
    }

    fn require_own(&mut self, held: Operand, otherwise: &str, span: Span) {
        let owner = self.owner();
        let own = numbers::binary(self, Operator::Equal, Arithmetic::INT, held, owner);
        self.require(own, otherwise, span);
    }
}

/// The result of `trylock` in an API; `free` says whether the lock was free.
fn answer(world: World, free: Operand) -> Operand {
    let busy = match world {
        World::Linux => return free,
        World::Posix => BUSY,
        World::Threads => THREADS_BUSY,
    };
    numbers::choose(free, Operand::number(0), Operand::number(busy))
}
