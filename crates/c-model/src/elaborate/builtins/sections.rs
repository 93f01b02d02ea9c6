//! Atomic sections of verification tools: `__VERIFIER_atomic_begin` to `__VERIFIER_atomic_end`, and functions that are atomic because of their name.
//!
//! A section is like one read-modify-write: the buffer of the thread is drained at its begin and at its end, and in between no other thread loads, no
//! store of another thread reaches memory, and no other section begins. It is a lock that keeps out all accesses ([`StmtKind::Lock`]), so that it may
//! contain loops, calls and failing assertions. If the thread has to wait in a section, nothing can end the wait, so the execution ends there;
//! executions in which it does not have to wait cover what happens if the section begins later.
//!
//! While `main` is the only thread, a section has no effect. A section that a thread does not end ends with the thread.

use fencewright_code::core::StmtKind;
use fencewright_program::Span;

use super::super::env::Section;
use super::super::{Elaborator, Phase, Result};

/// The advice for unbalanced sections.
const BALANCE: &str = "begin and end each section once on every way through the function";

impl Elaborator<'_> {
    /// Whether a call of this function starts an atomic section: by a convention of SV-COMP, the name says so, unless the call is already in such a
    /// section.
    pub(in super::super) fn indivisible(&self, name: &str) -> bool {
        name.starts_with("__VERIFIER_atomic_") && self.writer.env.section == Section::Outside
    }

    /// Begins or ends a section of ESBMC inside of another one: ESBMC counts nested sections. Returns whether this was such a section.
    pub(super) fn inner_section(&mut self, name: &str, begin: bool) -> bool {
        let Section::Inside(depth) = self.writer.env.section else { return false };
        let after =
            if begin { depth.checked_add(1) } else { depth.checked_sub(1).filter(|after| *after > 0) };
        match after {
            Some(after) if name.starts_with("__ESBMC_") => {
                self.writer.env.section = Section::Inside(after);
                true
            }
            _ => false,
        }
    }

    /// Begins or ends an atomic section.
    pub(in super::super) fn section(&mut self, begin: bool, span: Span) -> Result<()> {
        if !self.writer.reachable {
            return Ok(());
        }
        let (before, after, kind) = match begin {
            true => (Section::Outside, Section::Inside(1), StmtKind::Lock),
            false => (Section::Inside(1), Section::Outside, StmtKind::Unlock),
        };
        if self.writer.env.section != before {
            let message = match begin {
                true => "an indivisible section begins where the thread is, or may be, in one already",
                false => "an indivisible section ends where the thread is not, or may not be, in one",
            };
            return self.error(span, message, BALANCE);
        }
        self.writer.env.section = after;
        if self.phase != Phase::Alone {
            self.emit(kind, span);
        }
        Ok(())
    }

    /// Ends the atomic section that the thread is in, because the thread ends.
    pub(in super::super) fn leave_section(&mut self, span: Span) -> Result<()> {
        match self.writer.env.section {
            _ if !self.writer.reachable => Ok(()),
            Section::Outside => Ok(()),
            Section::Inside(_) => {
                self.writer.env.section = Section::Inside(1);
                self.section(false, span)
            }
            Section::Unclear => self.error(
                span,
                "the thread ends where it is in an atomic section on some paths and not on others",
                BALANCE,
            ),
        }
    }

    /// Ends the attempt to execute `main` at translation time if `main` creates the first other thread inside a section: a section that began while
    /// `main` was alone does not take the lock, so it would not keep the new thread out.
    pub(in super::super) fn creates_in_section(&mut self) {
        if self.phase == Phase::Alone && self.writer.env.section != Section::Outside {
            self.refuted = true;
        }
    }

    /// Warns if the thread may wait here inside of an atomic section.
    pub(in super::super) fn may_wait(&mut self, span: Span) {
        if self.writer.env.section != Section::Outside {
            self.warn(span, "no other thread can end a wait inside of an atomic section: executions in which this has to wait end here");
        }
    }
}
