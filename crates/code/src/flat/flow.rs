//! Which checks can fail: an interval analysis of flat code, for all threads together.
//!
//! Registers are followed statement by statement; shared memory and arrays of registers have one range for each class, whoever writes there
//! and whenever. Checks that cannot fail are taken out, and where a value that decides something may be undefined there is a check for that: it decides if it is
//! a condition, an address or an operand, not if it is only copied. (Checks of pointers need none: no pointer is the undefined value.)

use crate::flat::CellEvent;
use std::collections::{BTreeSet, HashMap};

use fencewright_program::{BinaryOp, UnaryOp};

use crate::core::{Label, Register};
use crate::flat::ranges::{Range, Values, range_of, refine};
use crate::flat::{Cell, Program, Step, StepKind, Term, Thread, UNDEFINED};
use crate::flat::{claims, counters};
use crate::layout::classes::Layout;
use crate::statement::each_statement;
use fencewright_text::Stop;

/// After so many rounds ranges grow in large steps, and after so many without end.
const LARGE_STEPS: usize = 3;
const NO_STEPS: usize = 24;
/// After so many rounds nothing is followed any more.
const MOST_ROUNDS: usize = 200;
/// Of so many checks is known at most that they have been passed.
const MOST_PASSED: usize = 32;
/// Programs for which statements times registers are more than this are not followed statement by statement.
const MOST_WORK: usize = 20_000_000;
/// A statement is as much work as a small piece for each so many registers: what is known about all of them may be copied.
const REGISTERS_IN_A_PIECE: usize = 256;

/// Takes out checks and assertions that cannot fail, and adds checks of values that may be undefined, unless it is time to stop: then some code is missing.
pub(crate) fn check(program: &mut Program, layout: &Layout, stop: &Stop<'_>) {
    let stations = stations(program, stop);
    let memory: Vec<Range> = layout.classes.iter().map(|class| join_all(class.values())).collect();
    let mut known: Vec<Known> = program.threads.iter().map(|thread| Known::new(thread, stop)).collect();
    let bounds = counters::bounds(program, layout, stop);
    let mut shared = Shared { memory, bounds, stations, round: 0, changed: true };
    while shared.changed {
        shared.changed = false;
        for (thread, known) in program.threads.iter_mut().zip(&mut known) {
            Flow::run(thread, known, &mut shared, false, stop);
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
        Flow::run(thread, known, &mut shared, true, stop);
    }
}

fn join_all(values: impl IntoIterator<Item = i64>) -> Range {
    values.into_iter().map(Range::of).fold(Range::NOTHING, Range::joined)
}

/// The numbers in a program, and those beside them.
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

/// What is known about all threads.
struct Shared {
    memory: Vec<Range>,
    /// For each class what it can hold at most, if that is known beforehand.
    bounds: Vec<Option<Range>>,
    stations: Vec<i64>,
    round: usize,
    changed: bool,
}

impl Shared {
    /// Makes a range cover another one.
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

    fn grow_state(&mut self, known: &mut Option<State>, by: &State) {
        match known {
            None => {
                self.changed = true;
                *known = Some(by.clone());
            }
            Some(known) => {
                for (range, &by) in known.registers.iter_mut().zip(&by.registers) {
                    *range = self.grow(*range, by);
                }
                let before = known.passed.len();
                known.passed.retain(|check| by.passed.contains(check));
                self.changed |= known.passed.len() != before;
            }
        }
    }
}

/// What is known about one thread.
struct Known {
    arrays: Vec<Range>,
    labels: HashMap<Label, Option<State>>,
    /// The heads of loops, in the order of the text.
    heads: Vec<Option<State>>,
    /// Whether registers are followed.
    followed: bool,
}

impl Known {
    fn new(thread: &Thread, stop: &Stop<'_>) -> Self {
        let arrays = thread.arrays.iter().map(|array| join_all(array.init.iter().copied())).collect();
        let mut statements = 0;
        each_statement(&thread.code, stop, &mut |_| statements += 1);
        let followed = statements * thread.registers.len() <= MOST_WORK;
        Known { arrays, labels: HashMap::new(), heads: Vec::new(), followed }
    }
}

/// What is known at some point: what registers can hold, and which checks they have passed since they were written.
#[derive(Clone)]
struct State {
    /// None if registers are not followed.
    registers: Vec<Range>,
    passed: Vec<Term>,
}

impl State {
    fn set(&mut self, register: Register, range: Range) {
        if let Some(known) = self.registers.get_mut(register.0 as usize) {
            *known = range;
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

struct Flow<'a> {
    known: &'a mut Known,
    shared: &'a mut Shared,
    /// How many loops have begun.
    loops: usize,
    /// For each loop around the current statement, what is known where it is left, and its number.
    around: Vec<(Option<State>, usize)>,
    /// Whether this is the last round, in which code is changed.
    last: bool,
    stop: &'a Stop<'a>,
}

impl Flow<'_> {
    fn run(thread: &mut Thread, known: &mut Known, shared: &mut Shared, last: bool, stop: &Stop<'_>) {
        let followed = thread.registers.iter().filter(|_| known.followed);
        let registers = followed.map(|register| Range::of(register.init)).collect();
        let mut flow = Flow { stop, known, shared, loops: 0, around: Vec::new(), last };
        flow.block(&mut thread.code, Some(State { registers, passed: Vec::new() }));
    }

    fn at<'s>(&'s self, state: &'s State) -> At<'s> {
        At { state, arrays: &self.known.arrays, followed: self.known.followed }
    }

    fn range(&self, state: &State, term: &Term) -> Range {
        range_of(term, &self.at(state))
    }

    /// What is known if a condition holds, or does not; nothing if that cannot be.
    fn where_(&self, state: Option<State>, condition: &Term, holds: bool) -> Option<State> {
        let mut state = state?;
        if self.range(&state, condition).truth() == Some(!holds) {
            return None;
        }
        let mut learned = Vec::new();
        refine(condition, holds, &self.at(&state), &mut |register, range| learned.push((register, range)));
        for (register, range) in learned {
            let Some(now) = state.registers.get_mut(register.0 as usize) else { continue };
            *now = now.both(range);
            if self.known.followed && now.is_nothing() {
                return None;
            }
        }
        Some(state)
    }

    fn block(&mut self, block: &mut Vec<Step>, mut state: Option<State>) -> Option<State> {
        let mut done = Vec::with_capacity(block.len());
        let mut rest = std::mem::take(block);
        rest.reverse();
        while let Some(mut step) = rest.pop() {
            let registers = state.as_ref().map_or(0, |state| state.registers.len());
            if self.stop.after(1 + registers / REGISTERS_IN_A_PIECE) {
                break;
            }
            let span = step.span;
            let checks = match &state {
                Some(state) => self.undefined(state, &step.kind),
                None => Vec::new(),
            };
            for check in checks {
                let StepKind::Check(condition, ..) = &check else { continue };
                state = self.where_(state, condition, true);
                if self.last {
                    done.push(Step { kind: check, span });
                }
            }
            if self.last
                && let Some(state) = &state
            {
                rest.extend(self.prepare(&mut step, state));
            }
            let kind = &mut step.kind;
            let useless = match (&*kind, &state) {
                (StepKind::Check(condition, ..), Some(state)) => {
                    self.range(state, condition).truth() == Some(true) || state.passed.contains(condition)
                }
                (StepKind::Beyond(condition, _), Some(state)) => {
                    let holds_not = Term::unary(UnaryOp::Not, condition.clone());
                    self.range(state, condition).truth() == Some(false) || state.passed.contains(&holds_not)
                }
                (StepKind::Assert(condition, _), Some(state)) => {
                    self.range(state, condition).truth() == Some(true)
                }
                _ => false,
            };
            state = self.step(kind, state);
            if !(useless && self.last) {
                done.push(step);
            }
        }
        *block = done;
        state
    }

    /// Checks that what decides something in a statement is not undefined.
    fn undefined(&self, state: &State, step: &StepKind) -> Vec<StepKind> {
        let mut found = Vec::new();
        let mut decides = |term: &Term| self.decides(state, term, false, &None, &mut found);
        match step {
            StepKind::Assign(_, value) => self.decides(state, value, true, &None, &mut found),
            StepKind::Special(CellEvent::Set(_, index, value)) => {
                decides(index);
                self.decides(state, value, true, &None, &mut found);
            }
            StepKind::Load(_, cell, _) => cell.index.iter().for_each(&mut decides),
            StepKind::Store(cell, value, _) => {
                cell.index.iter().for_each(&mut decides);
                self.decides(state, value, true, &None, &mut found);
            }
            StepKind::Update { place: cell, old, when, new, .. } => {
                // Whether the old value is undefined is checked when it is known.
                let mut bound = state.clone();
                bound.set(*old, Range::of(0));
                cell.index
                    .iter()
                    .chain(when)
                    .for_each(|term| self.decides(&bound, term, false, &None, &mut found));
                self.decides(&bound, new, true, &None, &mut found);
            }
            StepKind::Await { register, place: cell, until: condition, .. } => {
                let mut bound = state.clone();
                bound.set(*register, Range::of(0));
                let terms = cell.index.iter().chain([condition]);
                terms.for_each(|term| self.decides(&bound, term, false, &None, &mut found));
            }
            StepKind::Assume(term)
            | StepKind::Assert(term, _)
            | StepKind::If(term, ..)
            | StepKind::Beyond(term, _) => decides(term),
            _ => {}
        }
        found
    }

    /// Collects checks of the registers and elements in a term that may be undefined and decide something. `when` says when the term is computed.
    fn decides(
        &self,
        state: &State,
        term: &Term,
        copied: bool,
        when: &Option<Term>,
        found: &mut Vec<StepKind>,
    ) {
        let guarded = |guard: Term| {
            Some(match when {
                None => guard,
                Some(when) => when.clone().and(guard),
            })
        };
        match term {
            Term::Number(_) => {}
            Term::Register(_) | Term::Element(..) => {
                if let Term::Element(_, index) = term {
                    self.decides(state, index, false, when, found);
                }
                if !copied && self.range(state, term).undefined {
                    let is_defined = term.clone().with(BinaryOp::Ne, UNDEFINED);
                    let condition = match when {
                        None => is_defined,
                        Some(when) => Term::unary(UnaryOp::Not, when.clone()).or(is_defined),
                    };
                    let check = claims::defined(condition.clone(), term.clone());
                    if !found
                        .iter()
                        .any(|other| matches!(other, StepKind::Check(other, ..) if *other == condition))
                    {
                        found.push(check);
                    }
                }
            }
            Term::Unary(_, a) => self.decides(state, a, false, when, found),
            Term::Binary(BinaryOp::And, a, b) => {
                self.decides(state, a, false, when, found);
                self.decides(state, b, false, &guarded((**a).clone()), found);
            }
            Term::Binary(BinaryOp::Or, a, b) => {
                self.decides(state, a, false, when, found);
                self.decides(state, b, false, &guarded(Term::unary(UnaryOp::Not, (**a).clone())), found);
            }
            Term::Binary(_, a, b) => {
                self.decides(state, a, false, when, found);
                self.decides(state, b, false, when, found);
            }
            Term::If(condition, a, b) => {
                self.decides(state, condition, false, when, found);
                self.decides(state, a, copied, &guarded((**condition).clone()), found);
                self.decides(
                    state,
                    b,
                    copied,
                    &guarded(Term::unary(UnaryOp::Not, (**condition).clone())),
                    found,
                );
            }
        }
    }

    /// Where memory that is read and decides something at once may be undefined, reading and deciding become two statements with a check
    /// between them. What comes behind the statement then.
    fn prepare(&self, statement: &mut Step, state: &State) -> Option<Step> {
        let span = statement.span;
        let step = |kind| Step { kind, span };
        let is_defined = |register: Register| Term::Register(register).with(BinaryOp::Ne, UNDEFINED);
        match &mut statement.kind {
            StepKind::Update { place: cell, old, when, new, access }
                if self.shared.memory[cell.class].undefined =>
            {
                let mut bound = state.clone();
                bound.set(*old, self.shared.memory[cell.class]);
                let mut found = Vec::new();
                when.iter().for_each(|when| self.decides(&bound, when, false, &None, &mut found));
                self.decides(&bound, new, true, &None, &mut found);
                if found.is_empty() {
                    return None;
                }
                // Nothing is equal to the undefined value, so a comparison fails and writes nothing.
                let compares = |when: &Term| matches!(when, Term::Binary(BinaryOp::Eq, left, right) if **left == Term::Register(*old) && !right.has(*old));
                if when.as_ref().is_some_and(compares) && !new.has(*old) {
                    let check = claims::defined(is_defined(*old), Term::Register(*old));
                    return Some(step(check));
                }
                let (old, cell, new, access) = (*old, cell.clone(), new.clone(), *access);
                let write = step(StepKind::Store(cell.clone(), new, access));
                let write = match when.clone() {
                    None => write,
                    Some(when) => step(StepKind::If(when, vec![write], Vec::new())),
                };
                statement.kind = StepKind::Atomic(vec![step(StepKind::Load(old, cell, access)), write]);
                None
            }
            StepKind::Await { register, place: cell, until: condition, .. }
                if self.shared.memory[cell.class].undefined =>
            {
                let register = *register;
                let undefined = Term::Register(register).with(BinaryOp::Eq, UNDEFINED);
                *condition = undefined.or(condition.clone());
                let check = claims::defined(is_defined(register), Term::Register(register));
                Some(step(check))
            }
            _ => None,
        }
    }

    fn store(&mut self, cell: &Cell, value: Range) {
        let bound = self.shared.bounds[cell.class];
        let value = bound.map_or(value, |bound| value.both(bound));
        let grown = self.shared.grow(self.shared.memory[cell.class], value);
        self.shared.memory[cell.class] = bound.map_or(grown, |bound| grown.both(bound));
    }

    fn step(&mut self, step: &mut StepKind, state: Option<State>) -> Option<State> {
        // Loops count even where they are not reached.
        match step {
            StepKind::Label(label) => return self.label(*label, state),
            StepKind::Loop(body) => return self.endless(body, state),
            StepKind::Steps(block) | StepKind::Block(block) | StepKind::Atomic(block) => {
                return self.block(block, state);
            }
            StepKind::If(condition, then, otherwise) => {
                let (yes, no) =
                    (self.where_(state.clone(), condition, true), self.where_(state, condition, false));
                let yes = self.block(then, yes);
                let no = self.block(otherwise, no);
                return joined(yes, no);
            }
            StepKind::Choose(ways) => {
                let ways = ways.iter_mut().map(|way| self.block(way, state.clone()));
                return ways.collect::<Vec<_>>().into_iter().fold(None, joined);
            }
            _ => {}
        }
        let mut state = state?;
        if let Some(register) = step.writes() {
            state.passed.retain(|check| !check.has(register));
        }
        match step {
            StepKind::Assign(register, value) => {
                let value = self.range(&state, value);
                state.set(*register, value);
            }
            StepKind::Special(CellEvent::Set(array, _, value)) => {
                let value = self.range(&state, value);
                self.known.arrays[*array] = self.shared.grow(self.known.arrays[*array], value);
            }
            StepKind::Havoc(register, low, high) => {
                state.set(*register, Range::new(*low, *high));
            }
            StepKind::Load(register, cell, _) => {
                state.set(*register, self.shared.memory[cell.class]);
            }
            StepKind::Store(cell, value, _) => {
                let value = self.range(&state, value);
                self.store(cell, value);
            }
            StepKind::Update { place: cell, old, when, new, .. } => {
                state.set(*old, self.shared.memory[cell.class]);
                let written = match when {
                    None => Some(state.clone()),
                    Some(when) => self.where_(Some(state.clone()), when, true),
                };
                if let Some(written) = written {
                    let value = self.range(&written, new);
                    self.store(cell, value);
                }
            }
            StepKind::Await { register, place: cell, until: condition, .. } => {
                state.set(*register, self.shared.memory[cell.class]);
                let undefined = Term::Register(*register).with(BinaryOp::Eq, UNDEFINED);
                return self.where_(Some(state), &undefined.or(condition.clone()), true);
            }
            StepKind::Check(condition, ..) => {
                let mut passed = self.where_(Some(state), condition, true)?;
                if passed.passed.len() < MOST_PASSED && !condition.has_element() {
                    passed.passed.push(condition.clone());
                }
                return Some(passed);
            }
            StepKind::Assume(condition) | StepKind::Assert(condition, _) => {
                return self.where_(Some(state), condition, true);
            }
            StepKind::Break => {
                if let Some((left, _)) = self.around.last_mut() {
                    *left = joined(left.take(), Some(state));
                }
                return None;
            }
            StepKind::Continue => {
                if let Some(&(_, number)) = self.around.last() {
                    self.shared.grow_state(&mut self.known.heads[number], &state);
                }
                return None;
            }
            StepKind::Goto(label) => {
                let at = self.known.labels.entry(*label).or_default();
                self.shared.grow_state(at, &state);
                return None;
            }
            StepKind::Beyond(condition, _) => {
                let holds_not = Term::unary(UnaryOp::Not, condition.clone());
                let mut passed = self.where_(Some(state), condition, false)?;
                if passed.passed.len() < MOST_PASSED && !condition.has_element() {
                    passed.passed.push(holds_not);
                }
                return Some(passed);
            }
            StepKind::Stop => return None,
            _ => {}
        }
        Some(state)
    }

    fn label(&mut self, label: Label, state: Option<State>) -> Option<State> {
        joined(state, self.known.labels.get(&label).cloned().flatten())
    }

    fn endless(&mut self, body: &mut Vec<Step>, state: Option<State>) -> Option<State> {
        let number = self.loops;
        self.loops += 1;
        if self.known.heads.len() == number {
            self.known.heads.push(None);
        }
        if let Some(state) = &state {
            self.shared.grow_state(&mut self.known.heads[number], state);
        }
        let head = self.known.heads[number].clone();
        self.around.push((None, number));
        let end = self.block(body, head);
        if let Some(end) = end {
            self.shared.grow_state(&mut self.known.heads[number], &end);
        }
        self.around.pop().and_then(|(left, _)| left)
    }
}

fn joined(a: Option<State>, b: Option<State>) -> Option<State> {
    match (a, b) {
        (Some(mut a), Some(b)) => {
            for (range, &other) in a.registers.iter_mut().zip(&b.registers) {
                *range = range.joined(other);
            }
            a.passed.retain(|check| b.passed.contains(check));
            Some(a)
        }
        (a, None) => a,
        (None, b) => b,
    }
}
