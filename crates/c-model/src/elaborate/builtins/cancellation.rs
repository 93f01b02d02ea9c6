//! Cancellation of threads (POSIX, XSH 2.9.5), with deferred cancelability: a request takes effect when its target calls a cancellation point.
//!
//! `pthread_cancel` sets a flag of its target, in one step that drains the buffer, as the compare-and-swap of glibc does. At a cancellation point the
//! target looks at its flag. If it is set and cancellation is enabled, the target ends as if it called `pthread_exit(PTHREAD_CANCELED)`. The model
//! header `fencewright/cancel.h` has this decision and the state that enables it.
//!
//! A thread that is blocked at a cancellation point ends when it is cancelled. Being blocked has no effect that other threads can observe, so for safety
//! properties it is equivalent that the thread is delayed before it looks at its flag. A wait for a condition variable has a second look, at its end: a
//! thread that is cancelled while it waits acquires the mutex again first. For `deadlock` and `termination` the two differ, so cancellation is refused.
//!
//! glibc acts on a request at every call that may sleep or write. POSIX leaves open whether it does if the event that the thread waits for has occurred
//! as well, so there, and for output that may stay in a buffer, both are possible.

use fencewright_c::typed::tree::FunctionId;
use fencewright_code::core::Access;
use fencewright_code::numbers::Operand;
use fencewright_program::Span;

use super::super::calls::{Argument, Outcome};
use super::super::objects::{Spot, Target};
use super::super::{Elaborator, Result};
use super::{BuiltinCall, int};

/// The function of the model headers that ends the current thread if it is cancelled.
pub(super) const TEST: &str = "__fencewright_test_cancel";
/// The function of the model headers that disables cancellation of the current thread.
const DISABLE: &str = "__fencewright_disable_cancel";

/// The operation of a function in this family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Cancel,
    Test,
    /// Whether the current thread is the target of a request.
    IsRequested,
    /// Requests take effect at any time.
    Asynchronous,
}

/// The operation of a function; `None` if the name is not in this family.
pub(super) fn named(name: &str) -> Option<Operation> {
    Some(match name {
        "pthread_cancel" => Operation::Cancel,
        "pthread_testcancel" => Operation::Test,
        "__fencewright_is_cancelled" => Operation::IsRequested,
        "__fencewright_asynchronous_cancel" => Operation::Asynchronous,
        _ => return None,
    })
}

/// Whether a call, after its effects, certainly acts on a request (`Some(true)`), or may do so (`Some(false)`). Waits look at the flag themselves.
pub(super) fn acts_at(name: &str) -> Option<bool> {
    Some(match name {
        "sleep" | "usleep" | "nanosleep" | "thrd_sleep" | "write" => true,
        "printf" | "fprintf" | "puts" | "fputs" | "putchar" | "fputc" | "putc" | "vprintf" | "vfprintf"
        | "dprintf" | "fwrite" | "fflush" | "perror" | "scanf" | "fscanf" => false,
        _ => return None,
    })
}

impl Elaborator<'_> {
    pub(super) fn cancellation(&mut self, operation: Operation, call: BuiltinCall) -> Result<Operand> {
        let span = call.span;
        match operation {
            Operation::Cancel => self.cancel(call)?,
            Operation::Test => self.act_on_cancellation(true, span)?,
            Operation::IsRequested if self.graph.cancels => {
                let own = Operand::number(self.thread().0.into());
                let requested = self.cancellation_of(&own, span)?;
                return self.read(&requested, span);
            }
            Operation::IsRequested => {}
            Operation::Asynchronous if self.graph.cancels => {
                let help = "use PTHREAD_CANCEL_DEFERRED, with `pthread_testcancel` where the thread may end";
                return self.error(span, "asynchronous cancellation is not supported", help);
            }
            Operation::Asynchronous => {}
        }
        Ok(Operand::number(0))
    }

    /// `pthread_cancel`.
    fn cancel(&mut self, call: BuiltinCall) -> Result<()> {
        let span = call.span;
        if self.options.accesses_only || !self.options.spurious {
            let message = "programs that cancel threads are checked for `assertions` and `memory` only";
            return self.error(span, message, "set a flag that the thread polls instead of cancelling it");
        }
        let thread = self.argument_value(call, 0)?;
        if thread.known().is_some_and(|number| number != 0 && self.instance(number).is_none()) {
            self.require(Operand::number(0), "a thread that does not exist is cancelled", span);
            return Ok(());
        }
        let requested = self.cancellation_of(&thread, span)?;
        self.atomically(span, |this| this.write(&requested, Operand::number(1), span))
    }

    /// The flag that says whether a thread is the target of a request.
    fn cancellation_of(&mut self, thread: &Operand, span: Span) -> Result<Target> {
        let place = self.note_of_cancellation(thread, span);
        Ok(Target::new(Spot::Memory(place), int()).accessed(Access::Own))
    }

    /// A cancellation point: the current thread ends if it is the target of a request and cancellation is enabled; if not `certain`, it may go on all the
    /// same.
    pub(in super::super) fn act_on_cancellation(&mut self, certain: bool, span: Span) -> Result<()> {
        if !self.graph.cancels {
            return Ok(());
        }
        let certain = Argument::Scalar(Operand::number(certain.into()));
        self.call_model(TEST, vec![certain], span).map(drop)
    }

    /// Disables cancellation of the current thread, because it ends.
    pub(in super::super) fn disable_cancellation(&mut self, span: Span) -> Result<()> {
        match self.graph.cancels {
            true => self.call_model(DISABLE, Vec::new(), span).map(drop),
            false => Ok(()),
        }
    }

    /// Calls a function of a model header.
    fn call_model(&mut self, name: &str, arguments: Vec<Argument>, span: Span) -> Result<Outcome> {
        if !self.writer.reachable {
            return Ok(Outcome::Nothing);
        }
        match self.unit.functions.iter().position(|function| &*function.name == name) {
            Some(function) => self.inlined(FunctionId(function as u32), arguments, span),
            None => {
                let help = "include <pthread.h>, which models it";
                self.error(span, "cancellation of threads is not declared", help)
            }
        }
    }
}
