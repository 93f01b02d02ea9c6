//! Lifetimes of local variables: from the point where control enters the block to the point where control leaves it.
//!
//! Whenever control reaches its declaration, a variable becomes undefined. A register is then assigned the undefined value
//! ([`ObjectEvent::Undefined`]); dead assignments of this kind are removed later. For a variable in memory, [`ObjectEvent::Begin`] marks the
//! declaration, and [`ObjectEvent::End`] marks the end of the lifetime if pointers to the variable may still exist. After `End`, all these pointers
//! are dangling; pointers obtained when the address is taken again ([`ObjectEvent::Take`]) refer to the new instance and are valid.
//! [`ObjectEvent::Follow`] marks accesses to a local variable of another thread or to one whose lifetime may have ended. For accesses through unknown
//! pointers, layout adds the check.

use std::ops::Range;

use fencewright_c::typed::tree::{Function, LabelId, LocalId, Statement, StatementKind};
use fencewright_code::core::{Base, Known, Location, ObjectEvent, ObjectId, Origin, StmtKind, ThreadNumber};
use fencewright_code::reuse::{self, Reuse};
use fencewright_program::Span;
use rustc_hash::{FxHashMap, FxHashSet};

use super::env::{Contents, Fact};
use super::frames::{Frame, Slot};
use super::statements::has_entry;
use super::{Elaborator, Result};

impl Elaborator<'_> {
    /// Begins the lifetime of a local variable of the current function: the variable becomes undefined. If control may have reached the declaration
    /// before, the event is emitted.
    pub(super) fn begin(&mut self, local: LocalId, span: Span) {
        let again = self.repeated() || self.frame().slots[local.index()].is_some();
        let written = again && !self.executing();
        match self.slot(local) {
            Slot::Register(register) => {
                self.writer.env.registers.insert(register, Fact::of(Known::Undefined));
                if written {
                    self.emit(StmtKind::Special(ObjectEvent::Undefined(register)), span);
                }
            }
            Slot::Object(object) => {
                self.writer.env.gone.remove(&object);
                match again {
                    true => self.writer.env.taken.remove(&object),
                    false => self.writer.env.taken.insert(object),
                };
                if self.is_private(object) {
                    self.writer.env.objects.insert(object, Contents::all(Known::Undefined));
                }
                if written {
                    self.emit(StmtKind::Special(ObjectEvent::Begin(object)), span);
                }
            }
        }
    }

    /// Runs `work` inside a block, and ends the lifetimes of the block's variables at its end, including those of `passed`, whose declarations
    /// control may jump over.
    pub(super) fn scope<T>(
        &mut self,
        passed: Vec<LocalId>,
        span: Span,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let depth = self.frame().scopes.len();
        self.frame().scopes.push(Vec::new());
        self.frame().passed.push(passed);
        let done = work(self);
        if done.is_ok() {
            self.end_scopes(depth, span);
        }
        let frame = self.frame();
        frame.scopes.truncate(depth);
        frame.passed.truncate(depth);
        frame.arrays.retain(|(blocks, _)| *blocks <= depth);
        frame.cleanups.retain(|(blocks, _)| *blocks <= depth);
        done
    }

    /// Ends the lifetimes of the variables of the blocks that control leaves: all open blocks of the current function from index `depth` on.
    pub(super) fn end_scopes(&mut self, depth: usize, span: Span) {
        self.keeps_cleanups(depth, span);
        let blocks = depth..self.frame().scopes.len();
        self.end_blocks(self.writer.frames.len() - 1, blocks, span);
    }

    /// Ends the lifetimes of the variables of these open blocks of a function, which is given by the index of its frame.
    pub(super) fn end_blocks(&mut self, frame: usize, blocks: Range<usize>, span: Span) {
        let Frame { scopes, passed, slots, arrays, .. } = &self.writer.frames[frame];
        let mut seen = FxHashSet::default();
        let mut locals: Vec<LocalId> =
            scopes[blocks.clone()].iter().chain(&passed[blocks.clone()]).flatten().copied().collect();
        locals.retain(|local| seen.insert(*local));
        let objects = locals.into_iter().filter_map(|local| match slots[local.index()] {
            Some(Slot::Object(object)) => Some(object),
            _ => None,
        });
        let here = arrays.iter().filter(|(open, _)| blocks.start < *open && *open <= blocks.end);
        let objects: Vec<ObjectId> = objects.chain(here.map(|(_, array)| *array)).collect();
        objects.into_iter().for_each(|object| self.end_object(object, span));
    }

    /// Ends the lifetimes of the thread-local variables of the current thread at its end. Those of `main` live until the program ends.
    pub(super) fn end_own(&mut self, span: Span) {
        if self.thread().0 == 0 {
            return;
        }
        let thread = Some(self.thread());
        let own = self.globals.iter().filter(|((_, of), _)| *of == thread).map(|(_, object)| *object);
        let mut own: Vec<ObjectId> = own.collect();
        own.sort();
        own.into_iter().for_each(|object| self.end_object(object, span));
    }

    fn end(&mut self, local: LocalId, span: Span) {
        if let Some(Slot::Object(object)) = self.frame().slots[local.index()] {
            self.end_object(object, span);
        }
    }

    fn end_object(&mut self, object: ObjectId, span: Span) {
        if !self.writer.reachable {
            return;
        }
        let reach = self.reach[object.0 as usize];
        if !self.executing() {
            // The address of the variable was never stored, so all accesses use its name and need no check.
            if !(reach.pointed || reach.shared) {
                return;
            }
            self.emit(StmtKind::Special(ObjectEvent::End(object)), span);
            // Pointers to the variable become unknown, so that accesses through these pointers are checked.
            self.writer.env.forget_pointers(object);
        }
        self.writer.env.taken.remove(&object);
        self.writer.env.gone.insert(object);
        self.writer.env.objects.remove(&object);
    }

    /// The variables whose lifetimes have ended, but to which pointers may still exist.
    pub(super) fn left_behind(&self) -> impl Iterator<Item = ObjectId> {
        let reach = &self.reach;
        let kept =
            move |object: &&ObjectId| reach[object.0 as usize].pointed || reach[object.0 as usize].shared;
        self.writer.env.gone.iter().filter(kept).copied()
    }

    /// Whether the object `new` may reuse the address of `old`.
    pub(super) fn may_replace(&self, old: ObjectId, new: ObjectId) -> bool {
        match (self.objects[old.0 as usize].origin, self.objects[new.0 as usize].origin) {
            (Origin::Local(one), Origin::Local(other)) if one == other => self.writer.env.gone.contains(&old),
            // An over-approximation: layout later also considers when threads are created and when they end.
            (Origin::Local(one), Origin::Local(_)) => one != ThreadNumber(0),
            (Origin::Local(one), new) => one != ThreadNumber(0) && reuse::is_later(new),
            (Origin::Heap { .. }, Origin::Local(other)) => other != ThreadNumber(0),
            (Origin::Heap { .. }, new) => self.options.reuse == Reuse::Compared && reuse::is_later(new),
            _ => false,
        }
    }

    /// Emits, where the execution at translation time ends and code begins, `End` for each lifetime that has ended so far.
    pub(super) fn end_before(&mut self, span: Span) {
        let mut gone: Vec<ObjectId> = self.left_behind().collect();
        gone.sort();
        gone.into_iter().for_each(|object| self.emit(StmtKind::Special(ObjectEvent::End(object)), span));
    }

    /// Prepares a jump to a label: ends the lifetimes of variables in blocks that the jump leaves, and begins those in blocks that it enters.
    pub(super) fn jump_to(&mut self, label: LabelId, span: Span) {
        if !self.writer.reachable {
            return;
        }
        let around = self.frame().around.get(&label).cloned().unwrap_or_default();
        let here: Vec<LocalId> = self.frame().scopes.iter().skip(1).flatten().copied().collect();
        for local in here.iter().filter(|local| !around.contains(local)) {
            self.end(*local, span);
        }
        for local in around.into_iter().filter(|local| !here.contains(local)) {
            self.begin(local, span);
        }
    }

    /// Begins the lifetimes of the variables that the body of a `switch` declares, because a jump to a case may skip their declarations.
    pub(super) fn begin_in(&mut self, body: &Statement, span: Span) {
        let StatementKind::Block(block) = &body.kind else { return };
        if self.writer.reachable {
            declared(&block.statements).into_iter().for_each(|local| self.begin(local, span));
        }
    }

    /// Records that the address of a place is taken.
    pub(super) fn take_address(&mut self, place: &Location, span: Span) {
        let Base::Object(object) = place.base else { return };
        let own = self.objects[object.0 as usize].origin == Origin::Local(self.thread());
        if own && self.writer.reachable && self.writer.env.taken.insert(object) && !self.executing() {
            self.emit(StmtKind::Special(ObjectEvent::Take(object)), span);
        }
    }

    /// Marks an access to a local variable of another thread, or to one whose lifetime may have ended, so that the access is checked.
    pub(super) fn follow(&mut self, place: &Location, span: Span) {
        let Base::Object(object) = place.base else { return };
        let Origin::Local(thread) = self.objects[object.0 as usize].origin else { return };
        if thread != self.thread() || self.writer.env.gone.contains(&object) {
            self.emit(StmtKind::Special(ObjectEvent::Follow(object)), span);
        }
    }
}

/// The variables whose declarations control may jump over: all variables of a block if the block contains labels or cases.
pub(super) fn passed<'s>(
    declarations: &[Statement],
    mut inside: impl Iterator<Item = &'s Statement>,
) -> Vec<LocalId> {
    if inside.any(has_entry) { declared(declarations) } else { Vec::new() }
}

/// The variables that a block declares itself, not in inner blocks.
pub(super) fn declared(statements: &[Statement]) -> Vec<LocalId> {
    let mut locals = Vec::new();
    for mut statement in statements {
        while let StatementKind::Case(.., inner)
        | StatementKind::Default(inner)
        | StatementKind::Label(_, inner) = &statement.kind
        {
            statement = inner;
        }
        if let StatementKind::Declare(local, _) = &statement.kind {
            locals.push(*local);
        }
    }
    locals
}

/// For each label of a function, the variables of the blocks that contain the label, except the outermost block.
pub(super) fn around_labels(function: &Function) -> FxHashMap<LabelId, Vec<LocalId>> {
    let mut found = FxHashMap::default();
    function.body.statements.iter().for_each(|statement| around(statement, &mut Vec::new(), &mut found));
    found
}

fn around(statement: &Statement, open: &mut Vec<LocalId>, found: &mut FxHashMap<LabelId, Vec<LocalId>>) {
    match &statement.kind {
        StatementKind::Label(label, inner) => {
            found.insert(*label, open.clone());
            around(inner, open, found);
        }
        StatementKind::Case(.., inner) | StatementKind::Default(inner) => around(inner, open, found),
        StatementKind::Block(block) => {
            let before = open.len();
            open.extend(declared(&block.statements));
            block.statements.iter().for_each(|statement| around(statement, open, found));
            open.truncate(before);
        }
        StatementKind::For(first, _, _, body) => {
            let before = open.len();
            open.extend(declared(first));
            around(body, open, found);
            open.truncate(before);
        }
        StatementKind::If(branches, otherwise) => {
            branches.iter().for_each(|(_, body)| around(body, open, found));
            otherwise.iter().for_each(|body| around(body, open, found));
        }
        StatementKind::While(_, body) | StatementKind::DoWhile(body, _) | StatementKind::Switch(_, body) => {
            around(body, open, found)
        }
        _ => {}
    }
}
