//! Functions that are being inlined: their variables, their labels, and where they go on.

use std::rc::Rc;

use fencewright_c::typed::tree::{FunctionId, Initial, LabelId, LocalId, TypeKind};
use fencewright_code::core::{Known, Label, ObjectId, Register};
use fencewright_program::{CallId, Span};
use rustc_hash::{FxHashMap, FxHashSet};

use super::env::{Env, Fact};
use super::labels::Join;
use super::objects::{Spot, Target};
use super::{Elaborator, Result};

/// Where a local variable is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// A scalar whose address nobody takes.
    Register(Register),
    /// Anything else.
    Object(ObjectId),
}

/// A function that is being inlined.
#[derive(Debug)]
pub(super) struct Frame {
    pub function: FunctionId,
    pub call: CallId,
    /// The statement in hand.
    pub at: Span,
    pub slots: Vec<Option<Slot>>,
    pub labels: FxHashMap<LabelId, Join>,
    /// The labels that stand in what was walked, reachable or not.
    pub placed: FxHashSet<LabelId>,
    /// Where `return` goes.
    pub exit: Join,
    /// Where the value goes.
    pub result: Option<Target>,
    pub contexts: Vec<Context>,
    /// The variables of the blocks that are open, as far as they are declared; first the parameters, and variables of the function's own block.
    pub scopes: Vec<Vec<LocalId>>,
    /// For each block that is open, the variables over whose declarations control may jump.
    pub passed: Vec<Vec<LocalId>>,
    /// The variables of the blocks around each label.
    pub around: FxHashMap<LabelId, Vec<LocalId>>,
    /// The numbers of the last statements that jump back to labels that control has passed.
    pub repeated: Vec<usize>,
    pub level: usize,
}

/// Something that `break` or `continue` can leave.
#[derive(Debug)]
pub(super) struct Context {
    pub leave: Jump,
    /// `None` for a `switch`.
    pub next: Option<Jump>,
    /// The cases of a `switch`.
    pub cases: Option<super::switches::Cases>,
    /// How many blocks are open where it stands.
    pub scopes: usize,
}

/// Where a `break` or `continue` goes.
#[derive(Debug)]
pub(super) struct Jump {
    pub how: How,
    /// What is known there, from the jumps so far.
    pub env: Option<Env>,
    /// At the end of which level it lands.
    pub level: usize,
}

/// How a jump is written.
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

    /// Work in the frame of a function, which is popped also if the work fails: callers then look at their own frame.
    pub(super) fn in_function<T>(
        &mut self,
        function: FunctionId,
        result: Option<Target>,
        span: Span,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.enter(function, result, span);
        let done = work(self);
        if let Some(left) = self.writer.frames.pop() {
            self.writer.loops -= left.repeated.len();
        }
        done
    }

    /// Work inside of something that `break` or `continue` can leave; gives the context back with the jumps to its ends.
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

    /// Where a local variable of the function in hand is kept.
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

    /// A local variable comes into being: its value is not defined, or this one.
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
