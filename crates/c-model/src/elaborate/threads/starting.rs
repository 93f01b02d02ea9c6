//! The transition from executing `main` at translation time to emitting code.

use fencewright_c::typed::tree::Step;
use fencewright_code::core::{Base, Known, Location, ObjectId, Origin, Register, StmtKind, Value, View};
use fencewright_code::numbers;

use super::super::env::Contents;
use super::super::{Elaborator, Phase};

impl Elaborator<'_> {
    /// Starts the program where `main` creates its first thread: the contents of memory at this point become the initial state.
    pub(super) fn start_program(&mut self) {
        self.keep_initial();
        self.phase = Phase::Creating;
        let globals: Vec<ObjectId> = self.writer.env.objects.keys().copied().collect();
        for object in globals {
            if self.objects[object.0 as usize].origin != Origin::Global || self.is_private(object) {
                continue;
            }
            let location = Location {
                base: Base::Object(object),
                path: Vec::new(),
                node: self.objects[object.0 as usize].node,
                view: View::default(),
            };
            // All threads can access the variable, and every object that it points to.
            let unkept = self.uses.clone();
            self.publish(&Value::Address(Box::new(location)));
            self.uses = unkept;
        }
    }

    /// Records the contents of all objects as initial values, at a point where the buffer of `main` is empty, so that its writes so far precede all
    /// reads of other threads.
    pub(in super::super) fn keep_initial(&mut self) {
        self.unwritten.clear();
        self.take_down();
    }

    /// Records the known contents of all objects as initial values.
    pub(super) fn take_down(&mut self) {
        let objects = std::mem::take(&mut self.writer.env.objects);
        for (object, contents) in &objects {
            self.keep_contents(*object, contents);
        }
        self.writer.env.objects = objects;
    }

    /// Records the known contents of an object as its initial value.
    pub(in super::super) fn keep_contents(&mut self, object: ObjectId, contents: &Contents) {
        let last = self.open_length(object).checked_sub(1).map(Step::Element);
        let entry = &mut self.objects[object.0 as usize];
        let default = if entry.undefined { Known::Undefined } else { Known::Number(0) };
        let facts = contents
            .parts
            .iter()
            .filter_map(|(way, fact)| Some((way.clone(), fact.as_ref()?.known.clone()?)));
        let mut initial: Vec<(Vec<Step>, Known)> = facts.filter(|(_, known)| *known != default).collect();
        // The last element of a flexible array member has an initial value, which says how long the member is. It is kept although it is the default.
        let is_end = |(way, known): &&(Vec<Step>, Known)| {
            *known == default && last.is_some() && way.get(1) == last.as_ref()
        };
        let end = entry.initial.iter().find(is_end);
        let end = end.filter(|(way, _)| initial.iter().all(|(new, _)| new.get(..2) != way.get(..2))).cloned();
        initial.extend(end);
        initial.sort_by_cached_key(|(way, _)| {
            way.iter()
                .map(|step| match step {
                    Step::Field(field) => u64::from(*field),
                    Step::Element(element) => *element,
                })
                .collect::<Vec<u64>>()
        });
        entry.initial = initial;
    }

    /// Ends the execution of `main` at translation time: from here on code is emitted for `main`.
    pub(in super::super) fn run(&mut self) {
        self.take_down();
        self.phase = Phase::Running;
        self.ran_with = self.instances.len();
        let mut facts: Vec<(Register, Known, numbers::Range)> = Vec::new();
        for (register, fact) in &self.writer.env.registers {
            if let Some(known) = &fact.known {
                facts.push((*register, known.clone(), fact.range));
            }
        }
        facts.sort_by_key(|(register, ..)| *register);
        let span = self.writer.frames.last().map_or(self.writer.span, |frame| frame.at);
        for (register, known, range) in facts {
            if let Some(operand) = self.known_operand(&known, range) {
                self.kept(&operand.value);
                self.emit(StmtKind::Assign(register, operand.value), span);
            }
        }
        self.appear(span);
        // Addresses stored in private objects may be loaded through unknown pointers from here on.
        let held: Vec<Known> = self
            .writer
            .env
            .objects
            .values()
            .flat_map(|contents| contents.parts.values().flatten())
            .filter_map(|fact| fact.known.clone())
            .collect();
        for known in held {
            if let Some(operand) = self.known_operand(&known, (0, 0)) {
                self.kept(&operand.value);
            }
        }
        self.end_before(span);
    }
}
