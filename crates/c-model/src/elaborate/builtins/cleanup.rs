//! What a thread executes when it ends: the functions of `pthread_cleanup_push`, and the destructors of thread-specific data.
//!
//! `pthread_exit` leaves the functions that the thread is in, from the innermost one outwards, and calls the pushed functions on the way. Destructors
//! are called when all local variables have ended; thread-local variables end after that.
//!
//! The macros of `<pthread.h>` make the code between `pthread_cleanup_push` and `pthread_cleanup_pop` a block, as POSIX demands, so that the pushed
//! functions are known at each place of the text. `pthread_cleanup_pop`, `pthread_exit` and cancellation call them.

use fencewright_c::arithmetic::Arithmetic;
use fencewright_c::ast::BinaryOp as Operator;
use fencewright_c::typed::tree::FunctionId;
use fencewright_code::core::{StmtKind, Value};
use fencewright_code::numbers::{self, Operand};
use fencewright_program::Span;

use super::super::calls::Argument;
use super::super::frames::Cleanup;
use super::super::{Elaborator, Result};
use super::{BuiltinCall, cancellation};

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
    /// A key gets a number, if the model has one more key.
    NewKey,
}

/// The operation of a function, by its name; `None` if it is not in this family.
pub(super) fn named(name: &str) -> Option<Operation> {
    Some(match name {
        "__fencewright_cleanup_push" => Operation::Push,
        "__fencewright_cleanup_pop" => Operation::Pop,
        "__fencewright_destructor_of_a_key" => Operation::Destructor,
        "__fencewright_new_key" => Operation::NewKey,
        _ => return None,
    })
}

impl Elaborator<'_> {
    pub(super) fn cleanup(&mut self, operation: Operation, call: BuiltinCall) -> Result<Operand> {
        match operation {
            Operation::Push => self.push_cleanup(call)?,
            Operation::Pop => self.pop_cleanup(call)?,
            Operation::Destructor => self.destructors = true,
            Operation::NewKey => return self.new_key(call),
        }
        Ok(Operand::number(0))
    }

    /// The number of a new key. The model ends in executions that create more keys than it has.
    fn new_key(&mut self, call: BuiltinCall) -> Result<Operand> {
        let number = self.argument_value(call, 0)?;
        let number = self.kept_value(number, call.ty, call.span)?;
        let most = self.argument_value(call, 1)?;
        let text = format!("more than {} keys of thread-specific data", most.known().unwrap_or_default());
        let beyond = numbers::binary(self, Operator::GreaterOrEqual, Arithmetic::INT, number.clone(), most);
        let end = |this: &mut Self| {
            this.emit(StmtKind::Beyond(Value::Number(1), text), call.span);
            this.writer.reachable = false;
            Ok(())
        };
        self.branch(beyond, call.span, end, |_| Ok(()))?;
        Ok(number)
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

    /// Leaves all functions that the current thread is in: ends the lifetimes of their variables, and calls the pushed functions, the latest first.
    /// When one is called, the blocks inside of its `pthread_cleanup_push` have been left. The variables of `main` live until the program ends.
    fn unwind(&mut self, span: Span) -> Result<()> {
        let is_main = self.thread().0 == 0;
        let end = |this: &mut Self, frame, blocks| {
            if !is_main {
                this.end_blocks(frame, blocks, span)
            }
        };
        for frame in (0..self.writer.frames.len()).rev() {
            let mut open = self.writer.frames[frame].scopes.len();
            let cleanups = self.writer.frames[frame].cleanups.clone();
            for (blocks, cleanup) in cleanups.into_iter().rev() {
                let around = blocks - 1;
                end(self, frame, around..open);
                open = around;
                self.run_cleanup(cleanup, span)?;
            }
            end(self, frame, 0..open);
        }
        Ok(())
    }

    /// Asserts that a thread calls `pthread_exit` only while it does not end yet. In a function that `pthread_once` calls it is refused: other threads
    /// would call that function again.
    pub(in super::super) fn exits_once(&mut self, span: Span) -> Result<()> {
        if self.writer.in_once {
            let text = "`pthread_exit` in a function that `pthread_once` calls is not supported";
            return self.error(span, text, "return from the function, and exit after `pthread_once`");
        }
        if self.writer.ending {
            let function = self.frame().function;
            match &*self.unit.functions[function.index()].name {
                // POSIX leaves open what a request does that arrives in a destructor.
                cancellation::TEST => {
                    let text = "a thread that is cancelled while it ends".to_string();
                    self.emit(StmtKind::Beyond(Value::Number(1), text), span);
                    self.writer.reachable = false;
                }
                _ => {
                    let text = "pthread_exit is called while the thread ends: by a clean-up function or a destructor";
                    self.require(Operand::number(0), text, span);
                }
            }
        }
        Ok(())
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

    /// What a thread executes when it ends; `destructs` says whether this includes the destructors of its thread-specific data. An atomic section ends
    /// with its thread.
    pub(in super::super) fn leave_thread(&mut self, destructs: bool, span: Span) -> Result<()> {
        if !self.writer.reachable {
            return Ok(());
        }
        let before = std::mem::replace(&mut self.writer.ending, true);
        let done =
            self.unwind(span).and_then(|()| if destructs { self.destroy_values(span) } else { Ok(()) });
        self.writer.ending = before;
        done?;
        self.leave_section(span)?;
        self.end_own(span);
        Ok(())
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
