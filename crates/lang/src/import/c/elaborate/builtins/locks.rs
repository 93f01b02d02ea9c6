//! Mutexes, spin locks and locks for readers and writers: of pthread, `<threads.h>` and Linux.
//!
//! A mutex holds the number of its owner plus one, or 0. Taking it is one indivisible step that waits until it is free; taking it and giving it back drain,
//! as the locked instructions do with which x86 implements them. A spin lock is taken in the same way and given back by a plain store, with a store-store fence before it.

use fencewright_c::arithmetic::Arithmetic;
use fencewright_c::ast::BinaryOp as Operator;
use fencewright_program::Span;

use super::super::super::core::{Access, StmtKind};
use super::super::super::numbers::{self, Operand};
use super::super::memory::Target;
use super::super::{Elaborator, Result};
use super::mutex_types::Taking;
use super::{BuiltinCall, int};

/// What `trylock` says of a lock that is taken.
pub(super) const BUSY: i128 = 16;
/// What locks with a limit of time say when it is over.
pub(super) const TIMED_OUT: i128 = 110;
/// What `<threads.h>` says instead of them.
const THREADS_BUSY: i128 = 3;
pub(super) const THREADS_TIMED_OUT: i128 = 2;

/// Which lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Mutex,
    Spin,
    Readers,
    Writer,
}

/// What a lock says of success, or that it is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum World {
    /// 0, or a number of an error.
    Posix,
    /// `thrd_success`, `thrd_busy`.
    Threads,
    /// 1, or 0.
    Linux,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Init(Kind),
    /// No thread has the lock any more.
    Destroy,
    Lock(Kind),
    /// The same within a limit of time.
    TimedLock(Kind, World),
    TryLock(Kind, World),
    Unlock(Kind),
    /// A lock for readers and writers, whoever has it.
    UnlockEither,
    /// Whether anybody has it.
    IsLocked,
    /// Attributes that change nothing here.
    Nothing,
    /// The attributes of an ordinary mutex.
    Ordinary,
    /// A type of mutexes as an attribute.
    SetType,
}

/// What a name means.
pub(super) fn named(name: &str) -> Option<Operation> {
    if let Some(rest) = name.strip_prefix("pthread_") {
        return named_pthread(rest);
    }
    if let Some(rest) = name.strip_prefix("mtx_") {
        return Some(match rest {
            "init" => Operation::Init(Kind::Mutex),
            "destroy" => Operation::Destroy,
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
        "mutex_destroy" | "spin_destroy" | "rwlock_destroy" => Operation::Destroy,
        "mutex_lock" => Operation::Lock(Kind::Mutex),
        "mutex_timedlock" | "mutex_clocklock" => Operation::TimedLock(Kind::Mutex, World::Posix),
        "mutex_trylock" => Operation::TryLock(Kind::Mutex, World::Posix),
        "mutex_unlock" => Operation::Unlock(Kind::Mutex),
        "spin_init" => Operation::Init(Kind::Spin),
        "spin_lock" => Operation::Lock(Kind::Spin),
        "spin_trylock" => Operation::TryLock(Kind::Spin, World::Posix),
        "spin_unlock" => Operation::Unlock(Kind::Spin),
        "rwlock_init" => Operation::Init(Kind::Writer),
        "rwlock_rdlock" => Operation::Lock(Kind::Readers),
        "rwlock_wrlock" => Operation::Lock(Kind::Writer),
        "rwlock_timedrdlock" => Operation::TimedLock(Kind::Readers, World::Posix),
        "rwlock_timedwrlock" => Operation::TimedLock(Kind::Writer, World::Posix),
        "rwlock_tryrdlock" => Operation::TryLock(Kind::Readers, World::Posix),
        "rwlock_trywrlock" => Operation::TryLock(Kind::Writer, World::Posix),
        "rwlock_unlock" => Operation::UnlockEither,
        "mutexattr_init" => Operation::Ordinary,
        "mutexattr_settype" => Operation::SetType,
        _ if ["attr_", "mutexattr_", "condattr_", "rwlockattr_", "barrierattr_"]
            .iter()
            .any(|kind| rest.starts_with(kind)) =>
        {
            Operation::Nothing
        }
        "setcancelstate" | "setcanceltype" | "testcancel" | "setname_np" | "setaffinity_np" => {
            Operation::Nothing
        }
        _ => return None,
    })
}

fn named_linux(name: &str) -> Option<Operation> {
    let rest = name.strip_prefix("raw_").or_else(|| name.strip_prefix("arch_")).unwrap_or(name);
    // Interrupts are not modelled.
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
        "mutex_destroy" => Operation::Destroy,
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
        if operation == Operation::Nothing
            || !typed && matches!(operation, Operation::Ordinary | Operation::SetType)
        {
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
            Operation::Ordinary => self.write(&lock, Operand::number(0), span)?,
            Operation::SetType => {
                let ty = self.argument_value(call, 1)?;
                self.write(&lock, ty, span)?;
            }
            Operation::Destroy => {}
            Operation::IsLocked => return self.read(&lock, span).map(numbers::truth),
            Operation::Lock(Kind::Mutex) if typed => return self.lock_typed(call, Taking::Waits),
            Operation::TryLock(Kind::Mutex, World::Posix) if typed => {
                return self.lock_typed(call, Taking::Tries);
            }
            Operation::TimedLock(Kind::Mutex, World::Posix) if typed => {
                return self.lock_typed(call, Taking::GivesUp);
            }
            Operation::Unlock(Kind::Mutex) if typed => return self.unlock_typed(call),
            Operation::Lock(kind) => self.acquire(kind, &lock, span)?,
            Operation::TryLock(kind, world) => {
                let free = self.try_acquire(kind, world, &lock, span)?;
                return Ok(answer(world, free));
            }
            Operation::TimedLock(kind, world) => {
                let late = self.any("late", &int(), (0, 1), span);
                let result = match world {
                    World::Threads => THREADS_TIMED_OUT,
                    _ => TIMED_OUT,
                };
                let condition = late.clone();
                self.branch(condition, span, |_| Ok(()), |this| this.acquire(kind, &lock, span))?;
                return Ok(numbers::choose(late, Operand::number(result), Operand::number(0)));
            }
            Operation::Unlock(kind) => self.release(Some(kind), &lock, span)?,
            Operation::UnlockEither => self.release(None, &lock, span)?,
            Operation::Nothing => {}
        }
        Ok(Operand::number(0))
    }

    fn recursive<T>(&self, span: Span) -> Result<T> {
        let help = "take it once, in the outermost function, and call functions that expect it to be taken";
        self.error(span, "mutexes that their owner can take again are not understood", help)
    }

    /// What a lock holds that this thread has.
    pub(super) fn owner(&self) -> Operand {
        Operand::number(i128::from(self.thread().0) + 1)
    }

    /// What a lock holds once this thread has taken it, and whether it could take it.
    fn taken(&mut self, kind: Kind, held: Operand) -> (Operand, Operand) {
        let compare =
            |this: &mut Self, op, held| numbers::binary(this, op, Arithmetic::INT, held, Operand::number(0));
        match kind {
            Kind::Mutex => (self.owner(), compare(self, Operator::Equal, held)),
            Kind::Spin => (Operand::number(1), compare(self, Operator::Equal, held)),
            Kind::Writer => {
                let owner =
                    numbers::wrapping(Operator::Subtract, Arithmetic::INT, Operand::number(0), self.owner());
                (owner, compare(self, Operator::Equal, held))
            }
            Kind::Readers => {
                let more =
                    numbers::wrapping(Operator::Add, Arithmetic::INT, held.clone(), Operand::number(1));
                (more, compare(self, Operator::GreaterOrEqual, held))
            }
        }
    }

    /// Takes a lock, and waits for it if it must.
    pub(super) fn acquire(&mut self, kind: Kind, lock: &Target, span: Span) -> Result<()> {
        self.atomically(span, |this| {
            let held = this.read(lock, span)?;
            let (taken, free) = this.taken(kind, held);
            this.assume(free, span);
            this.write(lock, taken, span)
        })
    }

    /// Takes a lock if it is free; whether it was. Locks of Linux, and those for readers and writers, look before they do anything that drains.
    fn try_acquire(&mut self, kind: Kind, world: World, lock: &Target, span: Span) -> Result<Operand> {
        if world == World::Linux || matches!(kind, Kind::Readers | Kind::Writer) {
            let takes = |this: &mut Self, held: &Operand| {
                let (taken, free) = this.taken(kind, held.clone());
                (free, taken)
            };
            let held = self.looking_update(lock, takes, span)?;
            return Ok(self.taken(kind, held).1);
        }
        let held = self.update(
            lock,
            |this, held| {
                let (taken, free) = this.taken(kind, held.clone());
                Ok((Some(free), taken))
            },
            span,
        )?;
        Ok(self.taken(kind, held).1)
    }

    /// Gives a lock back.
    pub(super) fn release(&mut self, kind: Option<Kind>, lock: &Target, span: Span) -> Result<()> {
        match kind {
            Some(Kind::Spin) => {
                self.emit(StmtKind::StoreFence, span);
                return self.write(lock, Operand::number(0), span);
            }
            Some(Kind::Mutex) => {}
            Some(_) | None => return self.release_shared(lock, span),
        }
        self.atomically(span, |this| {
            let held = this.read(lock, span)?;
            let owner = this.owner();
            let own = numbers::binary(this, Operator::Equal, Arithmetic::INT, held, owner);
            this.require(own, "a mutex is given back by a thread that does not have it", span);
            this.write(lock, Operand::number(0), span)
        })
    }

    fn release_shared(&mut self, lock: &Target, span: Span) -> Result<()> {
        self.atomically(span, |this| {
            let held = this.read(lock, span)?;
            let owner =
                numbers::wrapping(Operator::Subtract, Arithmetic::INT, Operand::number(0), this.owner());
            let zero = Operand::number(0);
            let own = numbers::binary(this, Operator::Equal, Arithmetic::INT, held.clone(), owner);
            let read = numbers::binary(this, Operator::Greater, Arithmetic::INT, held.clone(), zero.clone());
            let either = numbers::binary(this, Operator::Or, Arithmetic::INT, own, read.clone());
            this.require(either, "a lock is given back by a thread that does not have it", span);
            let fewer = numbers::wrapping(Operator::Subtract, Arithmetic::INT, held, Operand::number(1));
            this.write(lock, numbers::choose(read, fewer, zero), span)
        })
    }
}

/// What `trylock` says.
fn answer(world: World, free: Operand) -> Operand {
    let busy = match world {
        World::Linux => return free,
        World::Posix => BUSY,
        World::Threads => THREADS_BUSY,
    };
    numbers::choose(free, Operand::number(0), Operand::number(busy))
}
