//! What a thread executes when it ends: the functions of `pthread_cleanup_push`, and the destructors of thread-specific data.
//!
//! The macros of `<pthread.h>` make the code between `pthread_cleanup_push` and `pthread_cleanup_pop` a block, as POSIX demands, so that the pushed
//! functions are known at each place of the text. `pthread_cleanup_pop`, `pthread_exit` and cancellation call them.

use fencewright_c::typed::tree::FunctionId;
use fencewright_code::core::{StmtKind, Value};
use fencewright_code::numbers::Operand;
use fencewright_program::Span;

use super::super::calls::Argument;
use super::super::frames::Cleanup;
use super::super::{Elaborator, Result};
use super::BuiltinCall;

/// The function of the model headers that calls the destructors of the thread-specific data of a thread.
const DESTROYS: &str = "__fencewright_destroy_values";

/// The operation of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// `pthread_cleanup_push`.
    Push,
    /// `pthread_cleanup_pop`, whose argument says whether the function is called.
    Pop,
    /// A key gets a destructor.
    Destructor,
    /// There are more keys than the model has.
    MoreKeys,
}

/// The operation of a function, by its name; `None` if it is not in this family.
pub(super) fn named(name: &str) -> Option<Operation> {
    Some(match name {
        "__fencewright_cleanup_push" => Operation::Push,
        "__fencewright_cleanup_pop" => Operation::Pop,
        "__fencewright_destructor_of_a_key" => Operation::Destructor,
        "__fencewright_more_keys" => Operation::MoreKeys,
        _ => return None,
    })
}

impl Elaborator<'_> {
    pub(super) fn cleanup(&mut self, operation: Operation, call: BuiltinCall) -> Result<Operand> {
        match operation {
            Operation::Push => self.push_cleanup(call)?,
            Operation::Pop => self.pop_cleanup(call)?,
            Operation::Destructor => self.destructors = true,
            Operation::MoreKeys => {
                let text = "more than 8 keys of thread-specific data".to_string();
                self.emit(StmtKind::Beyond(Value::Number(1), text), call.span);
                self.writer.reachable = false;
            }
        }
        Ok(Operand::number(0))
    }

    fn push_cleanup(&mut self, call: BuiltinCall) -> Result<()> {
        let Value::Function(function) = self.argument_value(call, 0)?.value else {
            return self.error(
                call.span,
                "the function to call at the end is unknown",
                "pass it by its name",
            );
        };
        let value = self.argument_value(call, 1)?;
        let argument = self.temporary("argument", &self.argument(call, 1)?.ty);
        self.write_register(argument, value, call.span)?;
        let frame = self.frame();
        let cleanup = Cleanup { function: FunctionId(function), argument };
        frame.cleanups.push((frame.scopes.len(), cleanup));
        Ok(())
    }

    fn pop_cleanup(&mut self, call: BuiltinCall) -> Result<()> {
        let executes = self.argument_value(call, 0)?;
        let Some((_, cleanup)) = self.frame().cleanups.pop() else {
            return self.error(call.span, "there is no function to take off", "push it in the same block");
        };
        self.branch(executes, call.span, |this| this.run_cleanup(cleanup, call.span), |_| Ok(()))
    }

    fn run_cleanup(&mut self, cleanup: Cleanup, span: Span) -> Result<()> {
        let argument = self.register_value(cleanup.argument);
        self.called(cleanup.function, vec![Argument::Scalar(argument)], span).map(|_| ())
    }

    /// Calls the pushed functions of all active function calls, the latest first, because the thread ends. Each is taken off before it is called.
    pub(in super::super) fn clean_up(&mut self, span: Span) -> Result<()> {
        let pushed: Vec<Vec<(usize, Cleanup)>> =
            self.writer.frames.iter_mut().map(|frame| std::mem::take(&mut frame.cleanups)).collect();
        let latest_first = pushed.iter().rev().flat_map(|frame| frame.iter().rev());
        let done = latest_first.clone().try_for_each(|(_, cleanup)| self.run_cleanup(*cleanup, span));
        // Control may pass another branch, in which the pushed functions have not been called, so they are put back.
        for (frame, cleanups) in self.writer.frames.iter_mut().zip(pushed) {
            frame.cleanups = cleanups;
        }
        done
    }

    /// Asserts that control leaves no block between `pthread_cleanup_push` and `pthread_cleanup_pop`: the blocks of the current function from this
    /// depth on end here.
    pub(in super::super) fn keeps_cleanups(&mut self, depth: usize, span: Span) {
        if self.frame().cleanups.iter().any(|(blocks, _)| *blocks > depth) {
            let text = "control leaves the code between pthread_cleanup_push and pthread_cleanup_pop";
            self.require(Operand::number(0), text, span);
        }
    }

    /// Fails between `pthread_cleanup_push` and `pthread_cleanup_pop`, where jumps may leave or enter the code between the two.
    pub(in super::super) fn without_cleanups(&mut self, span: Span) -> Result<()> {
        if self.frame().cleanups.is_empty() {
            return Ok(());
        }
        let message = "jumps between pthread_cleanup_push and pthread_cleanup_pop are not supported";
        self.error(span, message, "write them as loops and conditions")
    }

    /// What a thread executes when it ends: the destructors of its thread-specific data, unless the process ends. An atomic section ends with its
    /// thread.
    pub(in super::super) fn leave_thread(&mut self, destructs: bool, span: Span) -> Result<()> {
        if destructs {
            self.destroy_values(span)?;
        }
        self.leave_section(span)
    }

    /// Calls the destructors of the thread-specific data of the current thread, which ends here.
    fn destroy_values(&mut self, span: Span) -> Result<()> {
        if !(self.premises.destructors && self.writer.reachable) {
            return Ok(());
        }
        let destroys = self.unit.functions.iter().position(|function| &*function.name == DESTROYS);
        match destroys {
            Some(function) => self.inlined(FunctionId(function as u32), Vec::new(), span).map(|_| ()),
            None => Ok(()),
        }
    }
}
