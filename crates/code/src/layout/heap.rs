//! Allocation and deallocation: the object that an allocation returns, and the marks of freed objects.
//!
//! An allocation in a loop returns its objects one after the other, counted by a register; after the last one the model ends. A freed object is
//! marked in registers of the thread that freed it, so that marking is not an event of the memory model. With reuse, an allocation may instead return
//! an object of the same class and size that its thread has freed, and clears the mark. Where dangling pointers are compared, an object may also be
//! passed to other threads: the freeing thread sets a flag in shared memory, and the allocating thread reads it. A local variable to which pointers
//! may exist after its lifetime is marked in the same way while its lifetime is over.

use fencewright_front_end::facts::Kind;
use fencewright_program::BinaryOp;

use crate::core::{Access, Freeing, NodeId, ObjectId, Purpose, Register, Value};
use crate::flat::claims::About;
use crate::flat::{Array, Cell, CellEvent, Mark, Step, StepKind, Term, Touching, UNDEFINED, Wrong};
use crate::layout::classes::among;
use crate::layout::resolve::Resolver;
use crate::layout::uses::allocations_at;
use crate::reuse::{Reuse, is_later};

impl Resolver<'_> {
    /// An allocation: the register gets a pointer to a new object, or to a freed one.
    pub(crate) fn allocate(&mut self, register: Register, object: ObjectId) {
        let placed = self.layout.placed(object);
        let scale = self.layout.classes[placed.class].scale;
        let mut fresh = Vec::new();
        let number = if placed.times == 1 {
            Term::Number(placed.first)
        } else {
            let counter = self.counter(object);
            let count = Term::Register(counter);
            let full = count.clone().with(BinaryOp::Eq, placed.times as i64);
            fresh.push(self.step(StepKind::Beyond(full, self.too_many(object))));
            count.times(placed.stride).plus(placed.first)
        };
        fresh.push(self.step(StepKind::Assign(register, number.clone().times(scale))));
        fresh.extend(self.may_be_cleared(object, &number));
        if placed.times != 1 {
            let counter = self.counter(object);
            fresh.push(self.step(StepKind::Assign(counter, Term::Register(counter).plus(1))));
        }
        let mut ways = vec![fresh];
        let reuse = self.options.reuse == Reuse::Allocated;
        if reuse && self.layout.classes[placed.class].used.freed_by.contains(&self.thread) {
            for number in self.like(object) {
                let marks = self.marks(placed.class, Mark::Freed);
                let mark = Term::Element(marks, Box::new(Term::Number(number)));
                let taken = vec![
                    self.step(StepKind::Assume(mark.with(BinaryOp::Eq, 1))),
                    self.step(StepKind::Special(CellEvent::Set(
                        marks,
                        Term::Number(number),
                        Term::Number(0),
                    ))),
                ];
                ways.push(self.again(taken, register, object, number));
            }
        }
        if let Some(returned) = self.layout.passed_to(placed.class, self.thread) {
            for number in self.like(object) {
                let taken = vec![self.take(returned, placed.class, number)];
                ways.push(self.again(taken, register, object, number));
            }
        }
        for number in self.like(object) {
            let Some(taken) = self.take_retired(placed.class, number) else { break };
            let mut taken = vec![taken];
            taken.extend(self.test_reclaimed(placed.class, number));
            ways.push(self.again(taken, register, object, number));
        }
        if is_later(self.core.objects[object.0 as usize].origin) {
            ways.extend(self.test_others(object));
        }
        match <[_; 1]>::try_from(ways) {
            Ok([fresh]) => self.out.extend(fresh),
            Err(ways) => self.push(StepKind::Choose(ways)),
        }
    }

    /// The tests for late stores to retired objects of other sizes, whose memory this allocation may use: one for each such object. An execution in
    /// which a test finds no late store ends, because the one without this test covers it.
    fn test_others(&mut self, object: ObjectId) -> Vec<Vec<Step>> {
        let same = self.like(object);
        let class = self.layout.placed(object).class;
        let mut ways = Vec::new();
        for (other, number) in self.layout.reused() {
            if other == class && same.contains(&number) {
                continue;
            }
            let tests = self.test_reclaimed(other, number);
            if tests.is_empty() {
                continue;
            }
            let mut way: Vec<Step> = self.take_retired(other, number).into_iter().collect();
            way.extend(tests);
            way.push(self.step(StepKind::Assume(Term::Number(0))));
            ways.push(way);
        }
        ways
    }

    fn too_many(&self, object: ObjectId) -> String {
        let (times, span) = (self.layout.placed(object).times, self.core.objects[object.0 as usize].span);
        self.with_line(&format!("more than {times} objects"), span)
    }

    fn counter(&mut self, object: ObjectId) -> Register {
        if let Some(&counter) = self.counters.get(&object) {
            return counter;
        }
        let name = format!("{}_count", self.core.objects[object.0 as usize].name);
        let counter = self.register(name, 0);
        self.counters.insert(object, counter);
        counter
    }

    /// The numbers of all objects whose memory this allocation may return: those of the same size.
    fn like(&self, object: ObjectId) -> Vec<i64> {
        let wanted = self.size(object);
        let objects = (0..self.core.objects.len() as u32).map(ObjectId);
        let alike = objects.filter(|other| self.layout.placed(*other).heap && self.size(*other) == wanted);
        alike
            .map(|other| self.layout.placed(other))
            .flat_map(|other| (0..other.times as i64).map(move |time| other.first + time * other.stride))
            .collect()
    }

    /// The size of an object: its class, its number of elements, and the length of its flexible array member, if it has one.
    pub(crate) fn size(&self, object: ObjectId) -> (usize, u64, Option<u64>) {
        let placed = self.layout.placed(object);
        let lengths = self.layout.classes.iter().filter_map(|class| class.lengths.as_ref());
        let length = lengths.filter_map(|lengths| lengths.get(&object).copied()).next();
        (placed.class, placed.elements, length)
    }

    /// Takes an object that another thread has freed, with an atomic step that drains the store buffer, as allocators do.
    fn take(&mut self, returned: usize, class: usize, number: i64) -> Step {
        let there = self.register("returned", 0);
        let cell = self.returned(returned, Term::Number(number));
        let steps = vec![
            self.step(StepKind::Load(there, cell.clone(), Access::Own)),
            self.step(StepKind::Assume(Term::Register(there).with(BinaryOp::Eq, 1))),
            self.step(StepKind::Store(cell, Term::Number(0), Access::Own)),
            self.pass(class, Term::Number(number)),
        ];
        self.step(StepKind::Atomic(steps))
    }

    /// The flag that says whether other threads may allocate the freed object with this number; `class` is the class of the flags.
    fn returned(&self, class: usize, number: Term) -> Cell {
        let index = (!self.layout.classes[class].is_single()).then_some(number);
        Cell { class, index }
    }

    /// Flips the parity of the transfers of an object by this thread ([`Mark::Passed`]).
    fn pass(&mut self, class: usize, number: Term) -> Step {
        let passed = self.marks(class, Mark::Passed);
        let before = Term::Element(passed, Box::new(number.clone()));
        self.step(StepKind::Special(CellEvent::Set(passed, number, before.with(BinaryOp::Eq, 0))))
    }

    /// One alternative of an allocation: it returns an existing object, which the steps `taken` acquire. `calloc` clears this object.
    fn again(&mut self, taken: Vec<Step>, register: Register, object: ObjectId, number: i64) -> Vec<Step> {
        let placed = self.layout.placed(object);
        let scale = self.layout.classes[placed.class].scale;
        let mut steps = taken;
        steps.push(self.step(StepKind::Assign(register, Term::Number(number * scale))));
        if !self.core.objects[object.0 as usize].undefined {
            steps.extend(self.cleared(object, number));
        }
        steps
    }

    /// The steps that fill the instance of an allocation with this number with zeros.
    fn cleared(&mut self, object: ObjectId, number: i64) -> Vec<Step> {
        let placed = self.layout.placed(object);
        let mut steps = Vec::new();
        for (class, number) in self.layout.scalars_of(placed.class, number, placed.elements) {
            if self.layout.classes[class].used.accessed_by.is_empty() {
                continue;
            }
            steps.push(match self.home(class) {
                Some(home) => {
                    self.step(crate::layout::resolve::write(home, Term::Number(number), Term::Number(0)))
                }
                None => {
                    let index = (!self.layout.classes[class].is_single()).then_some(Term::Number(number));
                    self.step(StepKind::Store(Cell { class, index }, Term::Number(0), Access::Own))
                }
            });
        }
        steps
    }

    /// Where new objects stand for freed memory as well ([`Reuse::Compared`]), `calloc` may fill a new object, which has the number `number`, with
    /// zeros by stores. They change nothing, but they may be late.
    fn may_be_cleared(&mut self, object: ObjectId, number: &Term) -> Option<Step> {
        let placed = self.layout.placed(object);
        let clears = !self.core.objects[object.0 as usize].undefined && self.layout.has_late(placed.class);
        if !clears || self.options.reuse != Reuse::Compared {
            return None;
        }
        let mut ways = vec![Vec::new()];
        for time in 0..placed.times as i64 {
            let one = placed.first + time * placed.stride;
            let is_it = self.step(StepKind::Assume(number.clone().with(BinaryOp::Eq, one)));
            ways.push([vec![is_it], self.cleared(object, one)].concat());
        }
        Some(self.step(StepKind::Choose(ways)))
    }

    /// The array of registers of this thread that marks freed objects of a class.
    pub(crate) fn marks(&mut self, class: usize, mark: Mark) -> usize {
        if let Some(&marks) = self.marks.get(&(class, mark)) {
            return marks;
        }
        let of = &self.layout.classes[class];
        let what = match mark {
            Mark::Passed => "passed",
            Mark::Freed if of.used.freed_by.is_empty() => "gone",
            Mark::Freed => "freed",
        };
        let (name, init) = (format!("{what}_{}", of.name), vec![0; of.places.len()]);
        self.arrays.push(Array {
            name,
            first: of.first,
            init,
            class: None,
            kind: Kind::Number,
            marks: Some((class, mark)),
        });
        self.marks.insert((class, mark), self.arrays.len() - 1);
        self.arrays.len() - 1
    }

    /// The declaration of a local variable is reached, maybe again. If only this thread accesses it, its contents become undefined; a shared variable
    /// keeps the value written last.
    pub(crate) fn begin(&mut self, object: ObjectId) {
        let placed = self.layout.placed(object);
        if self.layout.classes[placed.class].places.is_empty() {
            return;
        }
        for (class, number) in self.layout.scalars_of(placed.class, placed.first, 1) {
            if let Some(home) = self.home(class) {
                self.push(crate::layout::resolve::write(home, Term::Number(number), Term::Number(UNDEFINED)));
            }
        }
    }

    /// Marks a local variable where its lifetime ends (`gone`) or begins again.
    pub(crate) fn mark_local(&mut self, object: ObjectId, gone: bool) {
        if self.layout.is_freed(object) {
            let placed = self.layout.placed(object);
            let marks = self.marks(placed.class, Mark::Freed);
            self.push(StepKind::Special(CellEvent::Set(
                marks,
                Term::Number(placed.first),
                Term::Number(gone.into()),
            )));
            if gone {
                let tests = self.test_ended(object, marks);
                self.out.extend(tests);
            }
        }
    }

    /// Frees an object. Either this thread may allocate it again, or other threads may.
    fn give_back(&mut self, class: usize, number: Term, freeing: Freeing) {
        let marks = self.marks(class, Mark::Freed);
        let kept = self.step(StepKind::Special(CellEvent::Set(marks, number.clone(), Term::Number(1))));
        let tests = self.test_freed(class, &number, marks);
        if freeing == Freeing::Retire {
            return self.retire(class, number, [vec![kept], tests].concat());
        }
        let Some(returned) = self.layout.passed_from(class, self.thread) else {
            self.out.push(kept);
            return self.out.extend(tests);
        };
        let cell = self.returned(returned, number.clone());
        let mut given = vec![self.pass(class, number)];
        // In an atomic section, only memory that stays with this thread is tested. The test ends after the section, and memory that was passed to
        // another thread may be in use by then.
        if !self.layout.held.contains_key(&(self.thread, self.span)) {
            given.extend(tests.iter().cloned());
        }
        // With this fence, the thread that takes the object also sees the stores before the store to the flag.
        given.push(self.step(StepKind::StoreFence));
        given.push(self.step(StepKind::Store(cell, Term::Number(1), Access::Own)));
        let kept = [vec![kept], tests].concat();
        self.push(StepKind::Choose(vec![kept, given]));
    }

    /// `free`: without effect if the pointer is null.
    pub(crate) fn free(&mut self, pointer: &Value, node: NodeId, freeing: Freeing) {
        let pointer = self.value(pointer);
        if pointer.number() == Some(0) {
            return;
        }
        let outside = std::mem::take(&mut self.out);
        match self.layout.class(self.nodes, node) {
            None => self.check(Term::Number(0), Wrong::Free),
            Some(class) => self.free_at(class, &pointer, node, freeing),
        }
        let steps = std::mem::replace(&mut self.out, outside);
        match pointer.number() {
            Some(_) => self.out.extend(steps),
            None => self.push(StepKind::If(pointer.with(BinaryOp::Ne, 0), steps, Vec::new())),
        }
    }

    /// The condition that a number is none of an object of `alloca` in this class.
    fn is_not_on_stack(&self, class: usize, number: &Term) -> Term {
        let objects = (0..).map(ObjectId).zip(&self.core.objects);
        let on_stack = objects.filter(|(_, object)| object.purpose == Purpose::Stack);
        let placed =
            on_stack.map(|(object, _)| self.layout.placed(object)).filter(|placed| placed.class == class);
        let starts = placed
            .flat_map(|placed| (0..placed.times as i64).map(move |time| placed.first + time * placed.stride));
        starts.map(|start| number.clone().with(BinaryOp::Ne, start)).fold(Term::Number(1), Term::and)
    }

    /// `free` of a non-null pointer into a class: the pointer must be to the start of an allocation of this class, or to the first member or element
    /// of an allocation.
    fn free_at(&mut self, class: usize, pointer: &Term, node: NodeId, freeing: Freeing) {
        let of = &self.layout.classes[class];
        let number = pointer.clone().with(BinaryOp::Div, of.scale);
        let whole = pointer.clone().with(BinaryOp::Rem, of.scale).with(BinaryOp::Eq, 0);
        let mut found = Vec::new();
        for outer in allocations_at(self.core, self.nodes, node) {
            let Some(path) = self.nodes.path_to_start(outer, node) else { continue };
            let Some(allocated) = self.layout.class(self.nodes, outer) else { continue };
            let Some((_, width, base)) = self.layout.way(self.nodes, allocated, &path) else { continue };
            let distance = number.clone().plus(-base);
            let start = distance.clone().with(BinaryOp::Div, width);
            let on_heap = self.is_not_on_stack(allocated, &start);
            let mut is_start = among(&self.layout.allocations(allocated), &start).and(on_heap);
            if width != 1 {
                is_start = distance.with(BinaryOp::Rem, width).with(BinaryOp::Eq, 0).and(is_start);
            }
            if of.scale != 1 {
                is_start = whole.clone().and(is_start);
            }
            found.push((allocated, start, is_start));
        }
        let is_start = found.iter().map(|(.., is_start)| is_start.clone()).reduce(Term::or);
        self.claim(is_start.unwrap_or(Term::Number(0)), Wrong::Free, About::Free, Some((class, number)));
        let several = found.len() > 1;
        for (allocated, start, is_start) in found {
            let outside = std::mem::take(&mut self.out);
            let start = self.in_registers(start);
            self.push(StepKind::Special(CellEvent::Touch(allocated, start.clone(), Touching::Free)));
            self.give_back(allocated, start, freeing);
            let steps = std::mem::replace(&mut self.out, outside);
            match several {
                true => self.push(StepKind::If(is_start, steps, Vec::new())),
                false => self.out.extend(steps),
            }
        }
    }
}
