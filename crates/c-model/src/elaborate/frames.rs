//! Stack frames of inlined functions: variables, labels, and targets of jumps.

use std::rc::Rc;

use fencewright_c::typed::tree::{FunctionId, Initial, LabelId, LocalId, TypeKind};
use fencewright_code::core::{Known, Label, ObjectId, Register};
use fencewright_program::{CallId, Span};
use rustc_hash::{FxHashMap, FxHashSet};

use super::env::{Env, Fact};
use super::labels::Join;
use super::objects::{Spot, Target};
use super::{Elaborator, Result};

/// The representation of a local variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// A scalar whose address is not taken.
    Register(Register),
    /// Any other variable: an object in memory.
    Object(ObjectId),
}

/// A function that is being inlined.
#[derive(Debug)]
pub(super) struct Frame {
    pub function: FunctionId,
    pub call: CallId,
    /// The current statement.
    pub at: Span,
    pub slots: Vec<Option<Slot>>,
    pub labels: FxHashMap<LabelId, Join>,
    /// The labels visited so far, reachable or not.
    pub placed: FxHashSet<LabelId>,
    /// The target of `return`.
    pub exit: Join,
    /// The place for the return value; `None` if the function returns `void`.
    pub result: Option<Target>,
    pub contexts: Vec<Context>,
    /// The declared variables of the open blocks; the first entry has the parameters and the variables of the outermost block.
    pub scopes: Vec<Vec<LocalId>>,
    /// The arrays of open blocks whose lengths are not constants, each with the number of blocks around its declaration.
    pub arrays: Vec<(usize, ObjectId)>,
    /// The functions that `pthread_exit` calls, innermost last, each with the number of blocks around its `pthread_cleanup_push`.
    pub cleanups: Vec<(usize, Cleanup)>,
    /// For each open block, the variables whose declarations control may jump over.
    pub passed: Vec<Vec<LocalId>>,
    /// The variables of the blocks around each label.
    pub around: FxHashMap<LabelId, Vec<LocalId>>,
    /// For each visited label to which statements after the current one jump back: the number of the last such statement.
    pub repeated: Vec<usize>,
    pub level: usize,
    /// Numbers of enclosing branches and of enclosing loops, in all functions, at the call.
    pub branches: usize,
    pub loops: usize,
    /// Number of nested calls of the function, this one included, that depend on unknown conditions; at least 1.
    pub unknown_depth: usize,
}

/// A function that the thread calls if it ends, as `pthread_cleanup_push` says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cleanup {
    pub function: FunctionId,
    /// The register that holds its argument.
    pub argument: Register,
}

/// A loop or `switch`, which `break` or `continue` can leave.
#[derive(Debug)]
pub(super) struct Context {
    pub leave: Jump,
    /// The target of `continue`; `None` for a `switch`.
    pub next: Option<Jump>,
    /// The cases of a `switch`; `None` for a loop.
    pub cases: Option<super::switches::Cases>,
    /// Number of blocks open at the statement.
    pub scopes: usize,
}

/// The target of a `break` or `continue`.
#[derive(Debug)]
pub(super) struct Jump {
    pub how: How,
    /// The join of the facts at the jumps so far; `None` if there were none.
    pub env: Option<Env>,
    /// The nesting level of the function, loop or `switch` at whose end the jump lands.
    pub level: usize,
}

/// The statement that represents a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Break,
    Continue,
    Goto(Label),
}

impl Jump {
    pub(super) fn new(how: How, level: usize) -> Self {
        Jump { how, env: None, level }
    }
}

impl Elaborator<'_> {
    pub(super) fn frame(&mut self) -> &mut Frame {
        self.writer.frames.last_mut().expect("code is in functions")
    }

    /// Runs `work` in the frame of a function; the frame is popped even if the work fails.
    pub(super) fn in_function<T>(
        &mut self,
        function: FunctionId,
        result: Option<Target>,
        span: Span,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.enter(function, result, span)?;
        let done = work(self);
        if let Some(left) = self.writer.frames.pop() {
            self.writer.loops -= left.repeated.len();
        }
        done
    }

    /// Runs `work` inside a loop or `switch`; returns the context with the facts at its jumps.
    pub(super) fn in_context(
        &mut self,
        context: Context,
        work: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<Context> {
        let contexts = &mut self.frame().contexts;
        let depth = contexts.len();
        contexts.push(context);
        let done = work(self);
        let context = self.frame().contexts.drain(depth..).next();
        done.map(|()| context.expect("work leaves the contexts around it alone"))
    }

    /// The representation of a local variable of the current function.
    pub(super) fn slot(&mut self, local: LocalId) -> Slot {
        if let Some(slot) = self.frame().slots[local.index()] {
            return slot;
        }
        let unit = self.unit;
        let variable = &unit.functions[self.frame().function.index()].locals[local.index()];
        let scalar =
            matches!(variable.ty.kind, TypeKind::Integer(_) | TypeKind::Pointer(_) | TypeKind::Floating(..));
        let slot = match scalar && !variable.address_taken {
            true => {
                let register = self.variable(Rc::clone(&variable.name), &variable.ty);
                self.writer.env.registers.insert(register, Fact::of(Known::Undefined));
                Slot::Register(register)
            }
            false => Slot::Object(self.local_object(local)),
        };
        self.frame().slots[local.index()] = Some(slot);
        slot
    }

    /// Declares a local variable, undefined or with an initial value.
    pub(super) fn declare(&mut self, local: LocalId, initial: Option<&Initial>, span: Span) -> Result<()> {
        self.begin(local, span);
        self.frame().scopes.last_mut().expect("functions have a block").push(local);
        let unit = self.unit;
        let ty = &unit.functions[self.frame().function.index()].locals[local.index()].ty;
        let target = match self.slot(local) {
            Slot::Register(register) => Target::new(Spot::Register(register), ty.clone()),
            Slot::Object(object) => Target::new(Spot::Memory(self.location(object, &[])), ty.clone()),
        };
        match initial {
            Some(initial) => self.initialize(&target, initial, span),
            None => Ok(()),
        }
    }
}
