//! Interval analysis of flat code, for all threads together: removes checks that cannot fail.
//!
//! A forward analysis. Facts: an interval for each register, and the checks passed since their registers were written. Join: the convex hull, and the
//! checks passed on both paths. Each class of shared memory and each array of registers has one flow-insensitive interval, so the walks through all
//! threads are repeated until nothing changes. Checks that cannot fail are removed, and checks of values that may be undefined are added
//! ([`undefined`]).

mod undefined;

use std::collections::BTreeSet;

use fencewright_program::{BinaryOp, UnaryOp};
use fencewright_text::Stop;

use super::ranges::{Range, Values, range_of, refine};
use super::{Cell, CellEvent, Flat, Program, Step, StepKind, Term, Thread, UNDEFINED, counters};
use crate::core::Register;
use crate::dataflow::forward::{Added, Cycles, Forward, Keep, walk};
use crate::layout::classes::Layout;
use crate::statement::each_statement;

/// Number of rounds after which growing intervals are widened to the next constant of the program or neighbour of one.
const LARGE_STEPS: usize = 3;
/// Number of rounds after which growing intervals are widened to infinity.
const NO_STEPS: usize = 24;
/// Number of rounds after which the analysis gives up: all intervals become unbounded.
const MOST_ROUNDS: usize = 200;
/// Maximum number of passed checks recorded at one point.
const MOST_PASSED: usize = 32;
/// Maximum product of the numbers of statements and registers of a thread whose registers are tracked.
const MOST_WORK: usize = 20_000_000;
/// Number of registers whose intervals are copied in one unit of work. A statement may copy the intervals of all registers.
const REGISTERS_IN_A_PIECE: usize = 256;

/// Removes checks and assertions that cannot fail and ends of the model that cannot be reached, and adds checks of values that may be
/// undefined. If `stop` ends the analysis early, statements are missing, so the program must not be used.
pub(crate) fn check(program: &mut Program, layout: &Layout, stop: &Stop<'_>) {
    let memory: Vec<Range> = layout.classes.iter().map(|class| join_all(class.values())).collect();
    let bounds = counters::bounds(program, layout, stop);
    let stations = stations(program, stop);
    let mut shared = Shared { memory, bounds, stations, round: 0, changed: true };
    let mut known: Vec<Known> = program.threads.iter().map(|thread| Known::new(thread, stop)).collect();
    while shared.changed {
        shared.changed = false;
        for (thread, known) in program.threads.iter_mut().zip(&mut known) {
            known.walk(thread, &mut shared, false, stop);
        }
        shared.round += 1;
        if shared.round == MOST_ROUNDS {
            shared.memory.fill(Range::EVERYTHING);
            for known in &mut known {
                known.arrays.fill(Range::EVERYTHING);
                known.followed = false;
            }
        }
    }
    for (thread, known) in program.threads.iter_mut().zip(&mut known) {
        known.walk(thread, &mut shared, true, stop);
    }
}

fn join_all(values: impl IntoIterator<Item = i64>) -> Range {
    values.into_iter().map(Range::of).fold(Range::NOTHING, Range::joined)
}

/// The widening thresholds: the constants of the program with their neighbours, sorted.
fn stations(program: &Program, stop: &Stop<'_>) -> Vec<i64> {
    fn numbers(term: &Term, found: &mut BTreeSet<i64>) {
        match term {
            Term::Number(number) => {
                found.extend([number.saturating_sub(1), *number, number.saturating_add(1)])
            }
            Term::Register(_) => {}
            Term::Element(_, a) | Term::Unary(_, a) => numbers(a, found),
            Term::Binary(_, a, b) => {
                numbers(a, found);
                numbers(b, found);
            }
            Term::If(a, b, c) => {
                numbers(a, found);
                numbers(b, found);
                numbers(c, found);
            }
        }
    }
    let mut found = BTreeSet::from([0, 1]);
    for thread in &program.threads {
        each_statement(&thread.code, stop, &mut |step| {
            step.kind.values(&mut |term| numbers(term, &mut found));
        });
    }
    found.into_iter().collect()
}

/// Facts about all threads.
struct Shared {
    /// The values of each class.
    memory: Vec<Range>,
    /// For each class, an interval that contains its values, from `counters`; `None` if none is known.
    bounds: Vec<Option<Range>>,
    stations: Vec<i64>,
    round: usize,
    /// Whether facts have changed in this round.
    changed: bool,
}

impl Shared {
    /// The join of two intervals, widened in later rounds.
    fn grow(&mut self, range: Range, by: Range) -> Range {
        let joined = range.joined(by);
        if joined == range {
            return range;
        }
        self.changed = true;
        match self.round {
            0..LARGE_STEPS => joined,
            LARGE_STEPS..NO_STEPS => range.widened(joined, &self.stations),
            _ => range.widened(joined, &[]),
        }
    }

    fn store(&mut self, cell: &Cell, value: Range) {
        let bound = self.bounds[cell.class];
        let value = bound.map_or(value, |bound| value.both(bound));
        let grown = self.grow(self.memory[cell.class], value);
        self.memory[cell.class] = bound.map_or(grown, |bound| grown.both(bound));
    }
}

/// Facts about one thread, kept from round to round.
struct Known {
    /// The values of each array of registers.
    arrays: Vec<Range>,
    cycles: Cycles<State>,
    /// Whether registers are tracked.
    followed: bool,
}

impl Known {
    fn new(thread: &Thread, stop: &Stop<'_>) -> Self {
        let arrays = thread.arrays.iter().map(|array| join_all(array.init.iter().copied())).collect();
        let mut statements = 0;
        each_statement(&thread.code, stop, &mut |_| statements += 1);
        let followed = statements * thread.registers.len() <= MOST_WORK;
        Known { arrays, cycles: Cycles::default(), followed }
    }

    fn walk(&mut self, thread: &mut Thread, shared: &mut Shared, last: bool, stop: &Stop<'_>) {
        let followed = thread.registers.iter().filter(|_| self.followed);
        let registers = followed.map(|register| Range::of(register.init)).collect();
        let start = State { registers, passed: Vec::new() };
        let mut intervals = Intervals { arrays: &mut self.arrays, followed: self.followed, shared, last };
        walk(&mut thread.code, start, &mut intervals, &mut self.cycles, stop);
    }
}

/// Facts at one point.
#[derive(Clone)]
struct State {
    /// The intervals of registers; empty if registers are not tracked.
    registers: Vec<Range>,
    /// Checks passed since their registers were written.
    passed: Vec<Term>,
}

impl State {
    fn set(&mut self, register: Register, range: Range) {
        if let Some(known) = self.registers.get_mut(register.0 as usize) {
            *known = range;
        }
    }

    fn pass(&mut self, check: Term) {
        if self.passed.len() < MOST_PASSED && !check.has_element() {
            self.passed.push(check);
        }
    }
}

struct At<'a> {
    state: &'a State,
    arrays: &'a [Range],
    followed: bool,
}

impl Values for At<'_> {
    fn register(&self, register: Register) -> Range {
        if self.followed { self.state.registers[register.0 as usize] } else { Range::EVERYTHING }
    }

    fn element(&self, array: usize) -> Range {
        self.arrays[array]
    }
}

struct Intervals<'a> {
    arrays: &'a mut [Range],
    /// Whether registers are tracked.
    followed: bool,
    shared: &'a mut Shared,
    /// Whether this is the last walk, which changes the code.
    last: bool,
}

impl Intervals<'_> {
    fn at<'s>(&'s self, state: &'s State) -> At<'s> {
        At { state, arrays: self.arrays, followed: self.followed }
    }

    fn range(&self, state: &State, term: &Term) -> Range {
        range_of(term, &self.at(state))
    }

    /// Whether a statement is a check or an assertion that cannot fail, or an end of the model that cannot be reached.
    fn is_useless(&self, kind: &StepKind, state: &State) -> bool {
        match kind {
            StepKind::Check(condition, ..) => {
                self.range(state, condition).truth() == Some(true) || state.passed.contains(condition)
            }
            StepKind::Beyond(condition, _) => {
                let holds_not = Term::unary(UnaryOp::Not, condition.clone());
                self.range(state, condition).truth() == Some(false) || state.passed.contains(&holds_not)
            }
            StepKind::Assert(condition, _) => self.range(state, condition).truth() == Some(true),
            _ => false,
        }
    }
}

impl Forward<Flat> for Intervals<'_> {
    type Facts = State;

    const ITERATES: bool = true;

    fn join(&self, mut one: State, other: State) -> State {
        for (range, &other) in one.registers.iter_mut().zip(&other.registers) {
            *range = range.joined(other);
        }
        one.passed.retain(|check| other.passed.contains(check));
        one
    }

    fn weaken(&mut self, kept: &mut Option<State>, by: &State) {
        let Some(kept) = kept else {
            self.shared.changed = true;
            *kept = Some(by.clone());
            return;
        };
        for (range, &by) in kept.registers.iter_mut().zip(&by.registers) {
            *range = self.shared.grow(*range, by);
        }
        let before = kept.passed.len();
        kept.passed.retain(|check| by.passed.contains(check));
        self.shared.changed |= kept.passed.len() != before;
    }

    fn cost(&self, state: &Option<State>) -> usize {
        1 + state.as_ref().map_or(0, |state| state.registers.len()) / REGISTERS_IN_A_PIECE
    }

    fn branch(&self, condition: &Term, holds: bool, mut state: State) -> Option<State> {
        if self.range(&state, condition).truth() == Some(!holds) {
            return None;
        }
        let mut learned = Vec::new();
        refine(condition, holds, &self.at(&state), &mut |register, range| learned.push((register, range)));
        for (register, range) in learned {
            let Some(now) = state.registers.get_mut(register.0 as usize) else { continue };
            *now = now.both(range);
            if self.followed && now.is_nothing() {
                return None;
            }
        }
        Some(state)
    }

    fn rewrite(&mut self, step: &mut Step, facts: &mut Option<State>, added: &mut Added<Flat>) -> Keep {
        let span = step.span;
        let checks = facts.as_ref().map_or(Vec::new(), |state| self.undefined(state, &step.kind));
        for check in checks {
            let StepKind::Check(condition, ..) = &check else { continue };
            *facts = facts.take().and_then(|state| self.branch(condition, true, state));
            if self.last {
                added.before.push(Step { kind: check, span });
            }
        }
        let Some(state) = facts else { return Keep::Yes };
        if !self.last {
            return Keep::Yes;
        }
        added.behind = self.prepare(step, state);
        if self.is_useless(&step.kind, state) { Keep::Effect } else { Keep::Yes }
    }

    fn transfer(&mut self, kind: &StepKind, mut state: State) -> Option<State> {
        if let Some(register) = kind.writes() {
            state.passed.retain(|check| !check.has(register));
        }
        match kind {
            StepKind::Assign(register, value) => {
                let value = self.range(&state, value);
                state.set(*register, value);
            }
            StepKind::Special(CellEvent::Set(array, _, value)) => {
                let value = self.range(&state, value);
                self.arrays[*array] = self.shared.grow(self.arrays[*array], value);
            }
            StepKind::Havoc(register, low, high) => {
                state.set(*register, Range::new(*low, *high));
            }
            StepKind::Load(register, cell, _) => {
                state.set(*register, self.shared.memory[cell.class]);
            }
            StepKind::Store(cell, value, _) => {
                let value = self.range(&state, value);
                self.shared.store(cell, value);
            }
            StepKind::Update { place: cell, old, when, new, .. } => {
                state.set(*old, self.shared.memory[cell.class]);
                let written = match when {
                    None => Some(state.clone()),
                    Some(when) => self.branch(when, true, state.clone()),
                };
                if let Some(written) = written {
                    let value = self.range(&written, new);
                    self.shared.store(cell, value);
                }
            }
            StepKind::Await { register, place: cell, until, .. } => {
                state.set(*register, self.shared.memory[cell.class]);
                let undefined = Term::Register(*register).with(BinaryOp::Eq, UNDEFINED);
                return self.branch(&undefined.or(until.clone()), true, state);
            }
            StepKind::Check(condition, ..) => {
                let mut passed = self.branch(condition, true, state)?;
                passed.pass(condition.clone());
                return Some(passed);
            }
            StepKind::Assume(condition) | StepKind::Assert(condition, _) => {
                return self.branch(condition, true, state);
            }
            StepKind::Beyond(condition, _) => {
                let mut passed = self.branch(condition, false, state)?;
                passed.pass(Term::unary(UnaryOp::Not, condition.clone()));
                return Some(passed);
            }
            _ => {}
        }
        Some(state)
    }
}
