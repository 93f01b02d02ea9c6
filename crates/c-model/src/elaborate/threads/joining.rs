//! Joining and detaching threads. Both release a thread, which is allowed at most once.

use std::rc::Rc;

use fencewright_c::ast::BinaryOp as Operator;
use fencewright_c::typed::tree::{Expr, Step, Type, TypeKind};
use fencewright_code::core::{Access, Known, Location, ObjectId, Projection, Purpose, ThreadNumber, Value};
use fencewright_code::numbers::{self, Operand};
use fencewright_program::{BinaryOp, Span};

use super::super::objects::{Spot, Target};
use super::super::{Elaborator, Instance, Result};
use super::{Note, RELEASED, THREADS, int};

impl Elaborator<'_> {
    /// Joins a thread and stores its result through the pointer `result`, unless that is null.
    pub(super) fn wait_for(&mut self, thread: Operand, result: Operand, to: &Type, span: Span) -> Result<()> {
        let wanted = !Self::is_null(&result);
        self.reclaim();
        self.require_other(&thread, span);
        if !self.writer.reachable {
            return Ok(());
        }
        let (done, value, released) = match thread.known() {
            Some(number) => {
                let Some(instance) = self.created(number) else {
                    return self.error(
                        span,
                        "this is not a thread that was created",
                        "join each thread once, after it is created",
                    );
                };
                self.instances[instance].state.joined = true;
                self.instances[instance].state.wanted |= wanted;
                let result = wanted.then(|| self.thread_note(Note::Result, instance, to, span));
                let released = self.thread_note(Note::Released, instance, &int(), span);
                (self.thread_note(Note::Done, instance, &int(), span), result, released)
            }
            None => {
                self.shared.dynamic = true;
                let length = self.premises.threads.unwrap_or(1);
                let element = |this: &mut Self, cells| {
                    let mut place = this.location(cells, &[Step::Element(0)]);
                    place.path = vec![Projection::Element(thread.value.clone(), length)];
                    place
                };
                let done = self.notes(Note::Done, length, &int(), span);
                let done = element(self, done);
                let results = wanted.then(|| {
                    let cells = self.notes(Note::Result, length, to, span);
                    element(self, cells)
                });
                let released = self.notes(Note::Released, length, &int(), span);
                (done, results, element(self, released))
            }
        };
        let released = Target::new(Spot::Memory(released), int()).accessed(Access::Own);
        self.require_unreleased(&released, span)?;
        self.write(&released, Operand::number(1), span)?;
        let register = self.temporary("done", &int());
        let ended = Value::binary(BinaryOp::Ne, Value::Register(register), Value::Number(0));
        self.emit_await(register, done, ended, Access::Own, span);
        if let Some(place) = value {
            let cell = Target::new(Spot::Memory(place), to.clone()).accessed(Access::Own);
            let operand = self.read(&cell, span)?;
            let target = self.pointed(&result, to, span)?;
            self.write(&target, operand, span)?;
        }
        if let Some(instance) = thread.known().and_then(|number| self.created(number))
            && self.writer.reachable
            && !self.repeated()
            && self.writer.branches == 0
            && self.writer.pending.is_empty()
        {
            self.writer.joined.insert(instance);
        }
        Ok(())
    }

    /// Whether the current thread is `main`, all other threads are known to have ended, and no thread other than `main` creates threads.
    pub(in super::super) fn is_alone(&self) -> bool {
        let ended = |n| self.writer.joined.contains(&n);
        let alone = self.thread() == ThreadNumber(0) && (1..self.instances.len()).all(ended);
        alone && !self.premises.descendants
    }

    /// The thread with this number, if it was created and is not `main`.
    pub(super) fn created(&self, number: i128) -> Option<usize> {
        usize::try_from(number).ok().filter(|n| (1..self.instances.len()).contains(n))
    }

    /// Emits an assertion that the current thread does not join itself.
    pub(super) fn require_other(&mut self, thread: &Operand, span: Span) {
        let own = Operand::number(self.thread().0.into());
        let (op, kind) = (Operator::NotEqual, THREADS);
        let other = numbers::binary(self, op, kind, thread.clone(), own);
        self.require(other, "a thread joins itself", span);
    }

    pub(super) fn require_unreleased(&mut self, released: &Target, span: Span) -> Result<()> {
        let before = self.read(released, span)?;
        self.require(numbers::not(before), RELEASED, span);
        Ok(())
    }

    /// Detaches a thread. Threads whose number is not a constant are not tracked.
    pub(super) fn detach(&mut self, thread: &Operand, span: Span) -> Result<()> {
        self.reclaim();
        let instance = match thread.known() {
            None | Some(0) => return Ok(()),
            Some(number) => self.created(number),
        };
        let Some(instance) = instance else {
            self.require(Operand::number(0), "a thread that does not exist is detached", span);
            return Ok(());
        };
        if self.executing() && !self.instances[instance].state.detached {
            self.instances[instance].state.detached = true;
            return Ok(());
        }
        let released = self.thread_note(Note::Released, instance, &int(), span);
        let released = Target::new(Spot::Memory(released), int()).accessed(Access::Own);
        self.require_unreleased(&released, span)?;
        self.write(&released, Operand::number(1), span)
    }

    /// Detaches a thread at its creation, if `kind` is not 0.
    pub(super) fn start_detached(&mut self, instance: usize, kind: Operand, span: Span) -> Result<()> {
        if kind.known() != Some(0) {
            self.reclaim();
        }
        if let Some(kind) = kind.known() {
            self.instances[instance].state.detached = kind != 0;
            return Ok(());
        }
        let releases = |this: &mut Self| {
            let released = this.thread_note(Note::Released, instance, &int(), span);
            let released = Target::new(Spot::Memory(released), int()).accessed(Access::Own);
            this.write(&released, Operand::number(1), span)
        };
        self.branch(kind, span, releases, |_| Ok(()))
    }

    /// A number that is not 0 if these thread attributes make a thread detached.
    pub(super) fn detached_by(&mut self, attributes: &Expr) -> Result<Operand> {
        let pointer = self.value(attributes)?;
        if !self.graph.detached_by_attributes || Self::is_null(&pointer) {
            return Ok(Operand::number(0));
        }
        let to = crate::elaborate::expressions::pointee(&attributes.ty);
        let place = self.pointed(&pointer, &to, attributes.span)?;
        let place = self.scalar(place, attributes.span)?.accessed(Access::Own);
        self.read(&place, attributes.span)
    }

    /// The place that holds a note about a thread: an element of the array for all threads if their number is known, otherwise a variable of its own.
    pub(super) fn thread_note(&mut self, note: Note, instance: usize, ty: &Type, span: Span) -> Location {
        if let Some(length) = self.premises.threads {
            let all = self.notes(note, length, ty, span);
            return self.location(all, &[Step::Element(instance as u64)]);
        }
        let object = self.instances[instance].state.notes.get(note);
        let object = object
            .unwrap_or_else(|| self.own_object(format!("{}_{instance}", note.name()), ty.clone(), span));
        if note == Note::Done {
            self.objects[object.0 as usize].purpose = Purpose::Ended(ThreadNumber(instance as u32));
        }
        self.instances[instance].state.notes.set(note, object);
        self.location(object, &[])
    }

    /// The thread with this number, if it exists.
    pub(in super::super) fn instance(&self, number: i128) -> Option<usize> {
        usize::try_from(number).ok().filter(|n| *n < self.instances.len())
    }

    /// The place that says whether a thread was cancelled.
    pub(in super::super) fn note_of_cancellation(&mut self, thread: &Operand, span: Span) -> Location {
        if let Some(instance) = thread.known().and_then(|number| self.instance(number)) {
            return self.thread_note(Note::Cancelled, instance, &int(), span);
        }
        self.shared.dynamic = true;
        let length = self.premises.threads.unwrap_or(1);
        let cells = self.notes(Note::Cancelled, length, &int(), span);
        let mut place = self.location(cells, &[Step::Element(0)]);
        place.path = vec![Projection::Element(thread.value.clone(), length)];
        place
    }

    /// The array that holds a kind of note about all threads.
    fn notes(&mut self, note: Note, length: u64, ty: &Type, span: Span) -> ObjectId {
        if let Some(object) = self.shared.notes.get(note) {
            return object;
        }
        let ty = Type { kind: TypeKind::Array(Rc::new(ty.clone()), length), atomic: false, volatile: false };
        let object = self.own_object(note.name().into(), ty, span);
        if note == Note::Done {
            self.objects[object.0 as usize].purpose = Purpose::AllEnded;
        }
        self.shared.notes.set(note, object);
        object
    }

    /// Sets the initial value of `released` for threads that were detached at translation time.
    pub(in super::super) fn keep_detached(&mut self) {
        for (n, Instance { state, .. }) in self.instances.iter().enumerate() {
            let (object, way) = match (state.notes.get(Note::Released), self.shared.notes.get(Note::Released))
            {
                _ if !state.detached => continue,
                (Some(object), _) => (object, Vec::new()),
                (None, Some(all)) => (all, vec![Step::Element(n as u64)]),
                (None, None) => continue,
            };
            self.objects[object.0 as usize].initial.push((way, Known::Number(1)));
        }
    }
}
