//! Stack frames of inlined functions: their variables, labels, and jump targets.

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
    /// The statement being elaborated.
    pub at: Span,
    pub slots: Vec<Option<Slot>>,
    pub labels: FxHashMap<LabelId, Join>,
    /// The labels that have been reached in the text so far, even where the code is unreachable.
    pub placed: FxHashSet<LabelId>,
    /// The label to which `return` jumps.
    pub exit: Join,
    /// The place that receives the return value; `None` if the function returns `void`.
    pub result: Option<Target>,
    pub contexts: Vec<Context>,
    /// For each open block, the variables declared so far; the first entry has the parameters and the variables of the outermost block.
    pub scopes: Vec<Vec<LocalId>>,
    /// The live arrays whose lengths are not constants, each with the number of blocks that are open at its declaration.
    pub arrays: Vec<(usize, ObjectId)>,
    /// The functions that `pthread_exit` calls, innermost last, each with the number of blocks around its `pthread_cleanup_push`.
    pub cleanups: Vec<(usize, Cleanup)>,
    /// For each open block, the variables whose declarations control may jump over.
    pub passed: Vec<Vec<LocalId>>,
    /// For each label, the variables of the blocks that contain it.
    pub around: FxHashMap<LabelId, Vec<LocalId>>,
    /// For each label reached so far to which a later statement jumps back: the number of the last such statement.
    pub repeated: Vec<usize>,
    pub level: usize,
    /// The numbers of branches and of loops, in all functions, that enclose the call.
    pub branches: usize,
    pub loops: usize,
    /// The number of nested calls of this function that depend on unknown conditions, including this call; the outermost call counts as 1.
    pub unknown_depth: usize,
}

/// A function that the thread calls if it ends, as `pthread_cleanup_push` says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cleanup {
    pub function: FunctionId,
    /// The register that holds its argument.
    pub argument: Register,
}

/// An enclosing loop or `switch`, which is the target of `break` or `continue`.
#[derive(Debug)]
pub(super) struct Context {
    pub leave: Jump,
    /// The target of `continue`; `None` for a `switch`.
    pub next: Option<Jump>,
    /// The cases of a `switch`; `None` for a loop.
    pub cases: Option<super::switches::Cases>,
    /// The number of blocks that are open where the loop or `switch` begins.
    pub scopes: usize,
}

/// The target of a `break` or `continue`.
#[derive(Debug)]
pub(super) struct Jump {
    pub how: How,
    /// The join of the facts at the jumps so far; `None` if there was no jump.
    pub env: Option<Env>,
    /// The nesting level (of functions, loops and `switch`es) whose end is the target of the jump.
    pub level: usize,
}

/// The statement of core code that performs a jump.
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

    /// Pushes a frame for a function and runs `work`. The frame is popped even if `work` fails.
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

    /// Runs `work` inside a loop or `switch`. Returns its context, which then contains the facts at the jumps that leave it.
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

    /// Begins the lifetime of a local variable at its declaration, with or without an initial value.
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
