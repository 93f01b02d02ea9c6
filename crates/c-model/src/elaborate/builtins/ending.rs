//! Assertions, assumptions, nondeterministic values, atomic sections, and the end of the process.

use fencewright_c::typed::tree::{Expr, TypeKind};
use fencewright_code::core::{Label, StmtKind};
use fencewright_code::numbers::Operand;
use fencewright_program::Span;

use super::super::{Elaborator, Result};
use super::{BuiltinCall, strings, unconverted};

/// The latest time in seconds: programs may compute nanoseconds from it without an overflow.
pub(super) const LATEST: i128 = (1 << 33) - 1;

/// The operation of a function in this family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Assert,
    Assume,
    /// Fails if the call is reached.
    Fail,
    /// Ends the process without an error.
    End,
    /// Returns any value of the result type.
    Any,
    /// Returns any nonnegative value of the result type.
    AnyNatural,
    /// Begins an atomic section: until its end, no other thread loads, and no store of another thread reaches memory.
    Begin,
    Finish,
    /// A hint without effect.
    Nothing,
}

/// The operation of a function; `None` if the name is not in this family.
pub(super) fn named(name: &str) -> Option<Operation> {
    if name.starts_with("__VERIFIER_nondet_") || name.starts_with("nondet_") {
        return Some(Operation::Any);
    }
    Some(match name {
        "assert" | "__fencewright_assert" | "__VERIFIER_assert" | "__CPROVER_assert" | "__ESBMC_assert" => {
            Operation::Assert
        }
        "__VERIFIER_assume" | "__CPROVER_assume" | "__ESBMC_assume" | "__builtin_assume" | "assume" => {
            Operation::Assume
        }
        "__VERIFIER_error" | "reach_error" | "__assert_fail" | "__assert_rtn" | "__assert" => Operation::Fail,
        "__builtin_unreachable" | "BUG" => Operation::Fail,
        "abort" | "exit" | "_exit" | "_Exit" | "quick_exit" | "__builtin_trap" | "__builtin_abort"
        | "__builtin_exit" | "panic" => Operation::End,
        "rand" | "random" | "time" | "clock" | "sched_getcpu" | "getpid" | "gettid" => Operation::AnyNatural,
        "__VERIFIER_atomic_begin" | "__CPROVER_atomic_begin" | "__ESBMC_atomic_begin" => Operation::Begin,
        "__VERIFIER_atomic_end" | "__CPROVER_atomic_end" | "__ESBMC_atomic_end" => Operation::Finish,
        "__VERIFIER_loop_end"
        | "__VERIFIER_loop_bound"
        | "__VERIFIER_loop_begin"
        | "__VERIFIER_spin_start"
        | "__VERIFIER_spin_end" => Operation::Nothing,
        "__CPROVER_cover" | "__CPROVER_input" | "__CPROVER_output" | "__VERIFIER_ignore" => {
            Operation::Nothing
        }
        "__ESBMC_yield" | "__ESBMC_cover" => Operation::Nothing,
        _ => return None,
    })
}

impl Elaborator<'_> {
    pub(super) fn ending(&mut self, operation: Operation, call: BuiltinCall) -> Result<Operand> {
        let span = call.span;
        match operation {
            Operation::Assert => {
                let condition = self.argument_value(call, 0)?;
                let text = call.arguments.get(1).and_then(|text| strings::text(self.unit, text));
                self.require(condition, &text.unwrap_or_default(), span);
            }
            Operation::Assume => {
                let condition = self.argument_value(call, 0)?;
                match self.options.spurious {
                    true => self.assume(condition, span),
                    false => self.branch(condition, span, |_| Ok(()), |this| this.end_all(span))?,
                }
            }
            Operation::Fail => {
                let text = match call.name {
                    "__builtin_unreachable" => "an error location is reached".to_string(),
                    name => call
                        .arguments
                        .first()
                        .and_then(|text| strings::text(self.unit, text))
                        .unwrap_or_else(|| name.to_string()),
                };
                self.require(Operand::number(0), &text, span);
            }
            Operation::End => {
                self.evaluated(call)?;
                self.end_all(span)?;
            }
            Operation::Any | Operation::AnyNatural => {
                let stored = call.arguments.first().filter(|_| call.name == "time");
                if stored.is_none() {
                    self.evaluated(call)?;
                }
                let TypeKind::Integer(ty) = call.ty.kind else {
                    let help =
                        "choose between addresses that the program has: `__VERIFIER_nondet_int() ? &a : &b`";
                    return self.error(
                        span,
                        format!("`{}` returns something other than an integer", call.name),
                        help,
                    );
                };
                let (least, most) = match (operation, call.name) {
                    (Operation::Any, _) => (ty.least(), ty.greatest()),
                    (_, "time" | "clock") => (0, LATEST.min(ty.greatest())),
                    _ => (0, ty.greatest()),
                };
                let value = self.any("any", call.ty, (least, most), span);
                if let Some(argument) = stored {
                    self.store_time(argument, value.clone(), span)?;
                }
                return Ok(value);
            }
            Operation::Begin if self.inner_section(call.name, true) => {}
            Operation::Finish if self.inner_section(call.name, false) => {}
            Operation::Begin => self.section(true, span)?,
            Operation::Finish => self.section(false, span)?,
            Operation::Nothing => self.evaluated(call)?,
        }
        Ok(Operand::number(0))
    }

    /// Ends the process. For safety properties, the execution is discarded. For `deadlock` and `termination`, the thread jumps to the loop at
    /// [`Label::EXIT`], so that it does not count as blocked.
    fn end_all(&mut self, span: Span) -> Result<()> {
        match self.options.spurious {
            true => self.assume(Operand::number(0), span),
            false => {
                self.emit(StmtKind::Goto(Label::EXIT), span);
                self.writer.exits |= self.writer.reachable;
                self.writer.reachable = false;
            }
        }
        Ok(())
    }

    /// Stores the result of `time` also in the place to which its argument points, unless the argument is null.
    fn store_time(&mut self, argument: &Expr, value: Operand, span: Span) -> Result<()> {
        let ty = super::super::expressions::pointee(&unconverted(argument).ty);
        let pointer = self.value(argument)?;
        if ty.kind == TypeKind::Void || pointer.known() == Some(0) {
            return Ok(());
        }
        let write = |this: &mut Self| {
            let place = this.pointed(&pointer, &ty, span)?;
            this.write(&place, value, span)
        };
        self.branch(pointer.clone(), span, write, |_| Ok(()))
    }

    /// Evaluates the arguments of a call for their side effects only.
    pub(super) fn evaluated(&mut self, call: BuiltinCall) -> Result<()> {
        for argument in call.arguments {
            if strings::text(self.unit, argument).is_none() {
                self.value(argument)?;
            }
        }
        Ok(())
    }
}
