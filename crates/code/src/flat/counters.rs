//! Bounds on counters: variables to which constants are added, by statements each of which is executed at most once.
//!
//! Every value of such a variable is a constant written to it, or a value read from it earlier plus a constant. On the chain of reads back to a
//! written constant, each adding statement occurs at most once. So every value is at least the least written constant plus all negative additions,
//! and at most the greatest written constant plus all positive additions, in any order of execution and even if updates are lost.

use std::collections::{HashMap, HashSet};

use fencewright_program::BinaryOp;
use fencewright_text::Stop;

use crate::core::{Label, Register};
use crate::flat::ranges::Range;
use crate::flat::{Program, Step, StepKind, Term, Thread, UNDEFINED};
use crate::layout::classes::Layout;

/// Bounds on the values of one class, collected from the statements that write to it.
#[derive(Clone, Copy)]
struct Counter {
    /// The least and the greatest constant written.
    written: (i128, i128),
    /// The sum of all negative and of all positive additions.
    added: (i128, i128),
}

impl Counter {
    fn write(&mut self, number: i64) {
        self.written = (self.written.0.min(number.into()), self.written.1.max(number.into()));
    }

    fn add(&mut self, number: i64) {
        self.added = (self.added.0 + i128::from(number.min(0)), self.added.1 + i128::from(number.max(0)));
    }

    fn range(&self) -> Option<Range> {
        let low = i64::try_from(self.written.0 + self.added.0).ok()?;
        let high = i64::try_from(self.written.1 + self.added.1).ok()?;
        Some(Range::new(low, high))
    }
}

/// For each class that is a counter, an interval that contains its values; `None` for any other class.
pub(crate) fn bounds(program: &Program, layout: &Layout, stop: &Stop<'_>) -> Vec<Option<Range>> {
    let mut counters: Vec<Option<Counter>> =
        layout.classes.iter().map(|class| started(class.values())).collect();
    for thread in &program.threads {
        let thread = Counting::of(thread, stop);
        for (step, once) in stop.polled(&thread.steps) {
            let (class, change) = match &step.kind {
                StepKind::Store(cell, value, _) => (cell.class, thread.change(value, cell.class)),
                StepKind::Update { place: cell, old, new, .. } => {
                    (cell.class, difference(new, *old).map(Change::Add))
                }
                _ => continue,
            };
            let Some(counter) = &mut counters[class] else { continue };
            match change {
                Some(Change::Write(number)) => counter.write(number),
                Some(Change::Add(number)) if *once => {
                    // The register that the statement reads may not have been loaded yet. Then it holds 0, and the statement writes 0 plus the
                    // number.
                    counter.write(0);
                    counter.add(number);
                }
                _ => counters[class] = None,
            }
        }
    }
    counters.into_iter().map(|counter| counter?.range()).collect()
}

fn started(values: impl IntoIterator<Item = i64>) -> Option<Counter> {
    let mut counter: Option<Counter> = None;
    for value in values {
        if value == UNDEFINED {
            return None;
        }
        let number = i128::from(value);
        counter.get_or_insert(Counter { written: (number, number), added: (0, 0) }).write(value);
    }
    counter
}

enum Change {
    Write(i64),
    Add(i64),
}

/// `n` if a term is the register plus `n`.
fn difference(term: &Term, register: Register) -> Option<i64> {
    let Term::Binary(op, left, right) = term else { return None };
    let number = right.number().filter(|_| **left == Term::Register(register))?;
    match op {
        BinaryOp::Add => Some(number),
        BinaryOp::Sub => number.checked_neg(),
        _ => None,
    }
}

/// The statements of a thread, in source order.
struct Counting<'a> {
    thread: &'a Thread,
    /// Each statement, and whether it is executed at most once.
    steps: Vec<(&'a Step, bool)>,
    /// For each register that is written: the class from which all writes to it load; `None` if there is no such class.
    loaded: HashMap<Register, Option<usize>>,
}

impl<'a> Counting<'a> {
    fn of(thread: &'a Thread, stop: &Stop<'_>) -> Self {
        let mut counting = Counting { thread, steps: Vec::new(), loaded: HashMap::new() };
        counting.block(&thread.code, true, stop);
        // After a backward jump any statement may be executed again.
        let mut labels: HashSet<Label> = HashSet::new();
        let back = counting.steps.iter().any(|(step, _)| match &step.kind {
            StepKind::Label(label) => !labels.insert(*label),
            StepKind::Goto(label) => labels.contains(label),
            _ => false,
        });
        if back {
            counting.steps.iter_mut().for_each(|(_, once)| *once = false);
        }
        counting
    }

    fn block(&mut self, code: &'a [Step], once: bool, stop: &Stop<'_>) {
        for step in stop.polled(code) {
            self.steps.push((step, once));
            if let Some(register) = step.kind.writes() {
                let class = match &step.kind {
                    StepKind::Load(_, cell, _) => Some(cell.class),
                    _ => None,
                };
                let of = self.loaded.entry(register).or_insert(class);
                if *of != class {
                    *of = None;
                }
            }
            let once = once && !matches!(step.kind, StepKind::Loop(_));
            step.kind.blocks().for_each(|block| self.block(block, once, stop));
        }
    }

    /// The effect of a store on a class: a constant written or added. `None` for any other effect.
    fn change(&self, value: &Term, class: usize) -> Option<Change> {
        if let Some(number) = value.number().filter(|number| *number != UNDEFINED) {
            return Some(Change::Write(number));
        }
        let Term::Binary(_, left, _) = value else { return None };
        let Term::Register(register) = **left else { return None };
        let loaded = self.loaded.get(&register) == Some(&Some(class));
        let starts_at_0 = self.thread.registers[register.0 as usize].init == 0;
        difference(value, register).filter(|_| loaded && starts_at_0).map(Change::Add)
    }
}
