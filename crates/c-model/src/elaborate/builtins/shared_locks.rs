//! Reader-writer locks: unlocking them, and locking those of POSIX while the thread holds them for writing.
//!
//! A lock holds the number of readers, or the negated number of the writer ([`super::locks`] has the other operations). glibc compares the writer of the lock with the calling thread before anything else, and returns `EDEADLK`. `trylock` functions return `EBUSY`, as
//! for a lock that another thread holds. A thread that holds the lock for reading and asks for it for writing waits for itself.
//!
//! A variable of the thread ([`Noted::Written`]) records whether the thread may hold the lock for writing, so that the lock is read only then. In
//! programs that take such locks through unknown pointers there is no variable, and each call reads the lock.

use fencewright_c::arithmetic::Arithmetic;
use fencewright_c::ast::BinaryOp as Operator;
use fencewright_code::numbers::{self, Operand};
use fencewright_program::Span;

use super::super::objects::Target;
use super::super::{Elaborator, Result};
use super::int;
use super::locks::Kind;
use super::mutex_types::DEADLOCK;

/// A fact about a thread and a lock that the value of the lock does not tell, and that the thread therefore records in a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) enum Noted {
    /// Whether the thread holds a spin lock, or has ever taken a reader-writer lock for reading.
    Taken,
    /// Whether the thread may hold a reader-writer lock for writing.
    Written,
}

/// The facts that are recorded in no variable, because the program computes the address of a lock that it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Computed {
    taken: bool,
    written: bool,
}

impl Computed {
    /// The facts of both.
    pub(in super::super) fn and(self, other: Computed) -> Computed {
        Computed { taken: self.taken || other.taken, written: self.written || other.written }
    }

    pub(super) fn of(&mut self, noted: Noted) -> &mut bool {
        match noted {
            Noted::Taken => &mut self.taken,
            Noted::Written => &mut self.written,
        }
    }
}

impl Elaborator<'_> {
    /// Takes a reader-writer lock by `take`, which returns the result of the call. If the current thread holds the lock for writing, the result is an
    /// error instead.
    pub(super) fn take_shared(
        &mut self,
        lock: &Target,
        take: impl FnOnce(&mut Self) -> Result<Operand>,
        span: Span,
    ) -> Result<Operand> {
        let result = self.temporary("result", &int());
        let own = self.may_write(lock, span)?;
        let refused = |this: &mut Self| this.write_register(result, Operand::number(DEADLOCK), span);
        let takes = |this: &mut Self| {
            let says = take(this)?;
            this.write_register(result, says, span)
        };
        self.branch(own, span, refused, takes)?;
        Ok(self.register_value(result))
    }

    /// Whether the current thread holds a lock for writing.
    fn may_write(&mut self, lock: &Target, span: Span) -> Result<Operand> {
        let Some(written) = self.noted(Noted::Written, lock, span) else { return self.writes(lock, span) };
        let written = self.read(&written, span)?;
        let own = self.temporary("own", &int());
        let looks = |this: &mut Self| {
            let writes = this.writes(lock, span)?;
            this.write_register(own, writes, span)
        };
        let knows = |this: &mut Self| this.write_register(own, Operand::number(0), span);
        self.branch(written, span, looks, knows)?;
        Ok(self.register_value(own))
    }

    /// Reads from a lock whether the current thread holds it for writing. A load suffices, because no other thread can change the answer.
    fn writes(&mut self, lock: &Target, span: Span) -> Result<Operand> {
        let is_own = |this: &mut Self, held: &Operand| {
            let owner = this.writing_owner();
            numbers::binary(this, Operator::Equal, Arithmetic::INT, held.clone(), owner)
        };
        if let Some(guess) = self.guess(span) {
            let sees = |this: &mut Self| this.see(lock, is_own, span).map(|_| ());
            self.branch(guess.clone(), span, sees, |_| Ok(()))?;
            return Ok(guess);
        }
        let held = self.read(lock, span)?;
        Ok(is_own(self, &held))
    }

    /// The value of a reader-writer lock that the current thread holds for writing.
    pub(super) fn writing_owner(&self) -> Operand {
        numbers::wrapping(Operator::Subtract, Arithmetic::INT, Operand::number(0), self.owner())
    }

    /// Releases a reader-writer lock. `reads` is the variable, if any, that records whether the current thread has ever taken the lock for reading.
    pub(super) fn release_shared(&mut self, lock: &Target, reads: Option<Target>, span: Span) -> Result<()> {
        let reads = reads.map(|reads| self.read(&reads, span)).transpose()?;
        self.atomically(span, |this| {
            let held = this.read(lock, span)?;
            this.require_usable(Kind::Writer.name(), &held, span);
            let (owner, zero) = (this.writing_owner(), Operand::number(0));
            let own = numbers::binary(this, Operator::Equal, Arithmetic::INT, held.clone(), owner);
            let read = numbers::binary(this, Operator::Greater, Arithmetic::INT, held.clone(), zero.clone());
            let text = "a lock is unlocked by a thread that does not hold it";
            let either = numbers::binary(this, Operator::Or, Arithmetic::INT, own.clone(), read.clone());
            this.require(either, text, span);
            if let Some(reads) = reads {
                let either = numbers::binary(this, Operator::Or, Arithmetic::INT, own, reads);
                this.require(either, text, span);
            }
            let fewer = numbers::wrapping(Operator::Subtract, Arithmetic::INT, held, Operand::number(1));
            this.write(lock, numbers::choose(read, fewer, zero), span)
        })
    }
}
