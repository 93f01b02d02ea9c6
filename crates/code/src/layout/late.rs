//! Tests, where the lifetime of an object ends, whether a store of another thread to the object is still in its buffer, as
//! [late stores](crate::late_stores) may be under PSO. If so, the model ends, because the store may overwrite another object at the same address.
//!
//! The thread that ends the lifetime makes one cell of the object undefined (C says that all of them are), and reads the cell again. If a store of
//! another thread has reached memory in between, the value has changed. Each late store reaches memory in between in some execution, because a
//! buffered store may reach memory at any time. Which cell is tested is a nondeterministic choice. A late store may itself store an undefined value;
//! for such cells the number 0 is tried as well.
//!
//! In an atomic section no buffer changes, so the cell is read again after the section, if the object has not been allocated again by then. At other
//! points where buffers do not change ([`Held::Otherwise`]), the model ends.

use std::collections::{BTreeMap, BTreeSet};

use fencewright_program::BinaryOp;

use crate::core::{Access, Core, ObjectId, Register, ThreadNumber};
use crate::flat::{Cell, Mark, Step, StepKind, Term, UNDEFINED};
use crate::late_stores::{Held, Late};
use crate::layout::classes::{Layout, Placed};
use crate::layout::resolve::Resolver;
use crate::reuse::Reuse;

/// Cells of an object whose lifetime is about to end: their class and numbers. If the object has the number `start`, the cells have the numbers
/// `width * start + base + offset` for offsets from 0 to `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tested {
    class: usize,
    width: i64,
    base: i64,
    last: i64,
}

/// A test that waits for the end of an atomic section.
pub(crate) struct Postponed {
    /// The register that says whether the test has begun.
    begun: Register,
    /// The condition that the object has not been allocated again.
    is_gone: Term,
    /// The part of the test after the section: loads the cell, and ends the model if a late store has changed the value.
    rest: Vec<Step>,
}

/// The object that is tested, given by its number and by the array of registers that contains its mark.
#[derive(Clone, Copy)]
struct Tests<'a> {
    marks: usize,
    start: &'a Term,
}

impl Layout {
    /// Records that the threads that end the lifetimes of objects access the cells that they test, and that threads whose allocations return objects
    /// filled with zeros access the cells that they clear when such an object was used before.
    pub(super) fn share_late(&mut self, core: &Core, reuse: Reuse) {
        if reuse != Reuse::Never {
            self.share_cleared(core);
        }
        let allocating: BTreeSet<ThreadNumber> =
            self.classes.iter().flat_map(|class| &class.used.allocated_by).copied().collect();
        let placed = (0..).map(ObjectId).zip(&self.objects).map(|(object, &placed)| (object, placed));
        let mut tested: BTreeMap<usize, BTreeSet<ThreadNumber>> = BTreeMap::new();
        for (object, placed) in placed.filter(|&(object, _)| self.is_freed(object)) {
            let ended_by = match placed.heap {
                true => {
                    let used = &self.classes[placed.class].used;
                    let reclaimed_by = allocating.iter().filter(|_| used.retired);
                    used.freed_by.iter().chain(reclaimed_by).copied().collect()
                }
                false => self.ended.get(&object).cloned().unwrap_or_default(),
            };
            for time in 0..placed.times as i64 {
                let start = placed.first + time * placed.stride;
                for (class, _) in self.scalars_of(placed.class, start, placed.elements) {
                    if self.late.contains_key(&class) {
                        tested.entry(class).or_default().extend(&ended_by);
                    }
                }
            }
        }
        for (class, threads) in tested {
            self.classes[class].used.accessed_by.extend(threads);
        }
    }

    fn share_cleared(&mut self, core: &Core) {
        for (object, placed) in core.objects.iter().zip(self.objects.clone()) {
            if !placed.heap || object.undefined {
                continue;
            }
            let clearing = self.classes[placed.class].used.allocated_by.clone();
            for (class, _) in self.scalars_of(placed.class, placed.first, placed.elements) {
                let is_tested = self.late.contains_key(&class);
                let used = &mut self.classes[class].used;
                if is_tested || !used.accessed_by.is_empty() {
                    used.accessed_by.extend(&clearing);
                }
            }
        }
    }

    /// Whether there are late stores, so that the program may contain tests for them.
    pub(crate) fn has_late_stores(&self) -> bool {
        !self.late.is_empty()
    }

    /// Whether there are late stores to the objects that allocations of a class return.
    pub(super) fn has_late(&self, class: usize) -> bool {
        let mut objects = self.objects.iter().filter(|placed| placed.heap && placed.class == class);
        objects.any(|placed| {
            let mut scalars = self.scalars_of(class, placed.first, placed.elements).into_iter();
            scalars.any(|(scalar, _)| self.late.contains_key(&scalar))
        })
    }

    /// The late stores of other threads to a class.
    fn late_to(&self, class: usize, thread: ThreadNumber) -> impl Iterator<Item = &Late> {
        self.late.get(&class).into_iter().flatten().filter(move |late| late.thread != thread)
    }
}

impl Resolver<'_> {
    /// The steps that test for late stores to an allocated object of this class, which this thread has just freed.
    pub(super) fn test_freed(&mut self, class: usize, start: &Term, marks: usize) -> Vec<Step> {
        if !self.layout.given_out.contains(&self.thread) {
            return Vec::new();
        }
        let objects = (0..self.core.objects.len() as u32).map(|object| self.layout.placed(ObjectId(object)));
        let of_class: Vec<_> = objects.filter(|placed| placed.heap && placed.class == class).collect();
        let mut steps = Vec::new();
        for placed in of_class {
            let starts: Vec<i64> =
                (0..placed.times as i64).map(|time| placed.first + time * placed.stride).collect();
            let here: Vec<Step> = self.tests(class, &starts, placed.elements, Tests { marks, start });
            if here.is_empty() {
                continue;
            }
            let runs: Vec<(i64, i64)> = starts.iter().map(|&start| (start, start)).collect();
            let is_here = crate::layout::classes::among(&runs, start);
            match is_here.number() {
                Some(0) => {}
                Some(_) => steps.extend(here),
                None => steps.push(self.step(StepKind::If(is_here, here, Vec::new()))),
            }
        }
        steps
    }

    /// The steps that test for late stores to an allocated object of this class, which this thread has just taken for an allocation.
    pub(super) fn test_reclaimed(&mut self, class: usize, number: i64) -> Vec<Step> {
        let objects = (0..self.core.objects.len() as u32).map(|object| self.layout.placed(ObjectId(object)));
        let mut here = objects.filter(|placed| placed.heap && placed.class == class);
        let times = |placed: &Placed| (number - placed.first) / placed.stride.max(1);
        let Some(placed) = here.find(|placed| number >= placed.first && times(placed) < placed.times as i64)
        else {
            return Vec::new();
        };
        let marks = self.marks(class, Mark::Freed);
        let start = &Term::Number(number);
        self.tests(class, &[number], placed.elements, Tests { marks, start })
    }

    /// The steps that test for late stores to a local variable of this thread, whose lifetime has just ended.
    pub(super) fn test_ended(&mut self, object: ObjectId, marks: usize) -> Vec<Step> {
        let placed = self.layout.placed(object);
        let start = &Term::Number(placed.first);
        self.tests(placed.class, &[placed.first], 1, Tests { marks, start })
    }

    /// The tests for an object that has one of several numbers.
    fn tests(&mut self, class: usize, starts: &[i64], elements: u64, on: Tests<'_>) -> Vec<Step> {
        let mut ways = Vec::new();
        let is_postponed = self.layout.held.get(&(self.thread, self.span)) == Some(&Held::Section);
        for tested in self.tested(class, starts, elements) {
            ways.push(self.test(tested, on, UNDEFINED));
            if self.layout.late_to(tested.class, self.thread).any(|late| late.undefined) {
                ways.push(self.test(tested, on, 0));
            }
        }
        // The section may end the lifetimes of several objects here, and the end of the section tests only one of them.
        if is_postponed && !ways.is_empty() {
            ways.push(Vec::new());
        }
        match ways.len() {
            0 => Vec::new(),
            1 => ways.pop().unwrap_or_default(),
            _ => vec![self.step(StepKind::Choose(ways))],
        }
    }

    /// The cells of an object that late stores of other threads may change. The number of the object is one of `starts`. Consecutive cells are
    /// combined.
    fn tested(&self, class: usize, starts: &[i64], elements: u64) -> Vec<Tested> {
        let (Some(&first), Some(&last)) = (starts.first(), starts.last()) else { return Vec::new() };
        let mut found: Vec<Tested> = Vec::new();
        let ends = self.layout.scalars_of(class, last, elements);
        let mut cells: Vec<_> =
            self.layout.scalars_of(class, first, elements).into_iter().zip(ends).collect();
        cells.sort_unstable();
        for ((class, number), (_, at_end)) in cells {
            if self.layout.late_to(class, self.thread).next().is_none() {
                continue;
            }
            // The numbers of a part are a linear function of the numbers of the structure.
            let width = if last == first { 0 } else { (at_end - number) / (last - first) };
            let base = number - width * first;
            match found.last_mut() {
                Some(before)
                    if (before.class, before.width) == (class, width)
                        && before.base + before.last + 1 == base =>
                {
                    before.last += 1;
                }
                _ => found.push(Tested { class, width, base, last: 0 }),
            }
        }
        found
    }

    fn test(&mut self, tested: Tested, on: Tests<'_>, value: i64) -> Vec<Step> {
        let Tested { class, width, base, last } = tested;
        let mut steps = Vec::new();
        let held = self.layout.held.get(&(self.thread, self.span)).copied();
        let mut start = on.start.clone();
        if held == Some(Held::Section) {
            // The registers that the number of the object depends on may change before the end of the section.
            let object = self.register("object", 0);
            steps.push(self.step(StepKind::Assign(object, start)));
            start = Term::Register(object);
        }
        let mut number = start.clone().times(width).plus(base);
        if width == 0 {
            number = Term::Number(base);
        }
        if last > 0 {
            let offset = self.register("offset", 0);
            steps.push(self.step(StepKind::Havoc(offset, 0, last)));
            number = Term::binary(BinaryOp::Add, number, Term::Register(offset));
        }
        let index = (!self.layout.classes[class].is_single()).then_some(number);
        let cell = Cell { class, index };
        let there = self.register("there", 0);
        steps.push(self.step(StepKind::Store(cell.clone(), Term::Number(value), Access::Own)));
        let mut rest = vec![self.step(StepKind::Load(there, cell, Access::Own))];
        let there = Term::Register(there);
        let mut changed = there.clone().with(BinaryOp::Ne, UNDEFINED);
        if value != UNDEFINED {
            changed = there.clone().with(BinaryOp::Eq, UNDEFINED).or(there.with(BinaryOp::Ne, value));
        }
        if held == Some(Held::Otherwise) {
            changed = Term::Number(1);
        }
        let text = self.too_late(class);
        rest.push(self.step(StepKind::Beyond(changed, text)));
        match held {
            Some(Held::Section) => {
                let begun = self.register("tested", 0);
                steps.push(self.step(StepKind::Assign(begun, Term::Number(1))));
                let is_gone = Term::Element(on.marks, Box::new(start));
                self.postponed.push(Postponed { begun, is_gone: is_gone.with(BinaryOp::Eq, 1), rest });
            }
            _ => steps.extend(rest),
        }
        steps
    }

    /// Inserts the postponed tests after the end of every atomic section.
    pub(super) fn test_after_sections(&mut self, code: &mut Vec<Step>) {
        if self.postponed.is_empty() {
            return;
        }
        let mut done = Vec::with_capacity(code.len());
        for mut step in std::mem::take(code) {
            step.kind.blocks_mut().for_each(|block| self.test_after_sections(block));
            let is_end = step.kind == StepKind::Unlock;
            done.push(step);
            if is_end {
                for Postponed { begun, is_gone, rest } in &self.postponed {
                    let is_tested = Term::Register(*begun).with(BinaryOp::Eq, 1).and(is_gone.clone());
                    done.push(self.step(StepKind::If(is_tested, rest.clone(), Vec::new())));
                    done.push(self.step(StepKind::Assign(*begun, Term::Number(0))));
                }
            }
        }
        *code = done;
    }

    fn too_late(&self, class: usize) -> String {
        let line = |span| self.sources.position(span).line_name();
        let mut lines: Vec<String> = Vec::new();
        for late in self.layout.late_to(class, self.thread) {
            let line = line(late.span);
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        let (lines, end) = (lines.join(" or "), line(self.span));
        format!(
            "line {lines} may store to an object after line {end} has ended its lifetime (PSO delays the store, and the memory may be in use again): \
             use a release store, or a store-store fence, for what tells other threads that line {lines} is done"
        )
    }
}
