//! Dynamic partial order reduction: explores one execution of each trace and stores no states (THESIS16 s. 4.2 and s. 4.3.1; Algorithm 4.4 with
//! source sets and wakeup trees in place of its backtracking sets).
//!
//! # Traces
//!
//! Two executions are equivalent if they have the same trace, `Tr` = po, fo and cf (THESIS16 s.4.2): program order of each thread, each
//! store before its flush, and the order of conflicting accesses. Equivalent executions reach the same state (Lemma 18). The
//! search explores exactly one execution of each maximal trace.
//!
//! An *agent* is the program of a thread, or a buffer: under TSO a thread has one buffer, under PSO one for each cell. Two events of one agent are
//! dependent. Events of different agents are dependent if their footprints conflict:
//!
//! | event | reads | writes |
//! |---|---|---|
//! | register work, `sfence`, a store into the buffer | | |
//! | load from memory | the cell | |
//! | load from the own buffer | that buffered store | |
//! | flush | | the cell; that buffered store |
//! | store under SC | | the cell |
//! | fence | | |
//! | `lock`, `unlock` | | the lock |
//! | atomic step, read-modify-write | the cells it loads | the cells it stores to |
//!
//! Independently of footprints, a flush happens after the event that issued its store; under PSO also after the flushes of stores that an `sfence`
//! orders before it; and a step that waits for an empty buffer happens after the flushes that empty it. These dependencies need no footprint: only
//! the earlier events enable the later one, and nothing disables it.
//!
//! # Waiting and choosing
//!
//! The algorithm was designed for programs in which an enabled step stays enabled until it is taken, and in which each process has one next step.
//! Here steps may wait and choose, so three rules add dependences:
//! * **Steps that wait.** An access of a thread reads the lock, if the program has one, because the access waits while another thread holds the lock.
//!   An atomic step that loads and then assumes waits for values. If several cells are awaited at one location, a write to one of them counts as a
//!   write to all. So the writes to the objects that a step waits for are totally ordered in every execution. Leaving out such a write and the events
//!   after it gives an earlier point of the execution; the search thus finds a point at which the step was enabled, even if it is never taken.
//! * **Locations with several outgoing edges.** A thread observes which of them are enabled. A step from such a location reads everything that any of
//!   the edges waits for: the lock, cells, and whether the thread's own buffer is empty if only some of the edges wait for that.
//! * **Alternatives.** Edges that leave one location and are enabled together, and the values of a `*`, are alternatives of one step: each is
//!   explored, and each has the footprint of all of them. So all alternatives of a step are independent of the same events, and exploring one
//!   alternative never makes another redundant.
//!
//! On programs without locks whose threads choose by their registers or by one cell (`if`, `while`, `await`, `cas`, `*`) these rules add nothing to
//! `Tr`. Waiting loops, such as `await`, become steps that wait: see `awaits`. An `await` on registers involves its thread alone: if the condition is
//! false, the thread waits forever.
//!
//! # Properties
//!
//! * `assertions`: a fault is an event of its thread. Every execution is a prefix of a maximal one, whose trace is that of an explored execution with
//!   the same events.
//! * `deadlock` and `finally` depend on the last states of maximal executions, and a trace determines its last state.
//! * A formula that must never hold depends on every state, also between independent events. So events that may change its value are made dependent:
//!   each writes the formula. They are totally ordered in a trace, so the formula takes the same values in every execution of the trace. (The thesis
//!   turns goals into atomic writes that count threads at their goals, s. 4.2.1, which orders these events and more.) A disjunct that depends on one
//!   thread only, and can hold at certain locations only, needs no such order: the thread has the same sequence of locations and registers in every
//!   execution of the trace, and the formula is evaluated at these locations.
//!
//! # Assumptions
//!
//! A proof requires that all executions terminate. An execution that returns to an earlier state, or is very long, is cut; then the answer is
//! `unknown`, unless an execution decides the property. A proof has no set of states to be checked. If certificates are requested, a search with
//! persistent sets follows and may supply one. Otherwise the check of verdicts explores small programs again or enumerates their executions, and
//! marks the verdicts of larger ones as depending on the engine alone.

mod awaits;
mod explore;
mod footprint;
mod machine;
mod ops;
mod outcome;
mod races;
mod state;
mod waits;
mod wakeup;

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use fencewright_analysis::loops::loop_depths;
use fencewright_program::reference::{Limit, decided_by};
use fencewright_program::{EvalError, Event, Formula, Init, Observable, Program, PropertyKind, Span, Trace};
use fencewright_verdict::{
    Answer, Author, Counts, Early, EngineName, Limits, Progress, Reason, Report, Seen, Task, Work,
};

use crate::initial;
pub use awaits::Waiting;
use explore::{Observer, Search};
pub use fencewright_verdict::Executions;
use footprint::Item;
use machine::Machine;
use state::State;

/// What the search does at an execution that does not terminate or is very long. With either choice there is no proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endless {
    /// Cut the execution, and continue with other executions to find violations.
    Cut,
    /// Stop the whole search.
    GiveUp,
}

impl Endless {
    /// Number of events at which an execution is cut and counts as infinite. The memory for sequences to be explored is quadratic in the length of
    /// executions.
    fn longest(self) -> usize {
        match self {
            Endless::Cut => 4_000,
            Endless::GiveUp => 2_000,
        }
    }
}

/// Explores one execution of each trace. An unbounded `*` is tried with the samples, which include all values within `radius`.
pub(crate) fn run(
    task: &Task<'_>,
    samples: &[i64],
    radius: i64,
    endless: Endless,
    limits: &Limits,
    progress: &Progress,
) -> Report {
    let waiting = Waiting::new(task, limits);
    let other = waiting.as_ref().map(|w| task.about(&w.program, task.model, task.properties.clone()));
    let explored = other.as_ref().unwrap_or(task);
    let loops = explored.program.threads.iter().any(|t| loop_depths(t).iter().any(|depth| *depth > 0));
    let machine = Machine::new(explored, samples, waiting.as_ref().map(|w| &w.origins));
    let mut search = Search::new(machine, loops, endless.longest());
    let mut judge = Judge::new(task, limits, progress, endless);
    judge.given = waiting.is_some().then(|| Machine::new(task, samples, None));
    let mut initial = Initial::new(task.program, samples);
    let mut ended = true;
    while let Some((registers, memory)) = initial.next() {
        let mut prelude = Vec::new();
        let state = search.machine.initial(&registers, &memory, Some(&mut prelude));
        judge.start = (registers, memory, prelude);
        if judge.begins(&search.machine, &state) && search.run(state, &mut judge) {
            continue;
        }
        ended = false;
        break;
    }
    let executions = search.count;
    let incomplete = match judge.stopped.take() {
        Some(reason) => Some(reason),
        None if !ended => None,
        None if executions.cut > 0 => Some(Reason::Unsupported(ENDLESS.into(), None)),
        None => match search.machine.limit.or(judge.limit) {
            Some((limit, span)) => Some(Reason::Limit(limit, span)),
            None => (search.machine.sampled || initial.sampled).then_some(Reason::UnboundedChoice(radius)),
        },
    };
    judge.report(ended, incomplete, executions)
}

const ENDLESS: &str = "some execution does not end, or has very many events: a search that keeps no states cannot see all of it";

/// The observer of the search: evaluates the properties.
struct Judge<'a> {
    task: &'a Task<'a>,
    limits: &'a Limits,
    progress: &'a Progress,
    endless: Endless,
    /// The original program, if the explored one was transformed by `awaits`.
    given: Option<Machine<'a>>,
    /// The initial registers and memory of the current executions, and the initial local steps of the threads.
    start: (Vec<Vec<i64>>, Vec<i64>, Vec<Event>),
    answers: Vec<Option<Answer>>,
    finals: BTreeSet<Vec<i64>>,
    stopped: Option<Reason>,
    /// Set if the value of some formula did not fit into 64 bits.
    limit: Option<(Limit, Span)>,
    bytes: u64,
    count: Executions,
}

impl<'a> Judge<'a> {
    fn new(task: &'a Task<'a>, limits: &'a Limits, progress: &'a Progress, endless: Endless) -> Self {
        Judge {
            task,
            limits,
            progress,
            endless,
            given: None,
            start: Default::default(),
            answers: vec![None; task.properties.len()],
            finals: BTreeSet::new(),
            stopped: None,
            limit: None,
            bytes: 0,
            count: Executions::default(),
        }
    }

    fn is_open(&self, property: usize) -> bool {
        self.answers[property].is_none() && !self.task.is_settled(property)
    }

    /// Whether the search has to go on: some property is open, or the task has no properties or asks for all final states. False once a violation was
    /// found, if one is enough for the task.
    fn goes_on(&self) -> bool {
        let violated = |answer: &Option<Answer>| matches!(answer, Some(Answer::Violated(_)));
        if self.task.first_violation && self.answers.iter().any(violated) {
            return false;
        }
        !self.task.observed.is_empty()
            || self.task.properties.is_empty()
            || (0..self.answers.len()).any(|n| self.is_open(n))
    }

    /// Checks the initial state. Returns whether to go on.
    fn begins(&mut self, machine: &Machine<'_>, state: &State) -> bool {
        for n in 0..self.answers.len() {
            let decided = match &self.task.properties[n].kind {
                _ if !self.is_open(n) => false,
                PropertyKind::Never(formula) => self.holds(machine, state, formula) == Some(true),
                PropertyKind::Assertions => self
                    .task
                    .program
                    .threads()
                    .any(|(t, thread)| machine.location(state, t.index()) == thread.fault),
                PropertyKind::NoDeadlock | PropertyKind::Finally(..) => false,
            };
            if decided {
                let events = self.start.2.clone();
                self.decide(n, events);
            }
        }
        self.goes_on()
    }

    /// Whether a formula holds; `None` if its value overflows. A formula that divides by zero or shifts out of range does not hold.
    fn holds(&mut self, machine: &Machine<'_>, state: &State, formula: &Formula) -> Option<bool> {
        match formula.eval(&mut |leaf| observe(machine, state, leaf)) {
            Ok(value) => Some(value != 0),
            Err(EvalError::DivisionByZero | EvalError::ShiftOutOfRange) => Some(false),
            Err(EvalError::Overflow) => {
                self.limit.get_or_insert((Limit::Overflow, Span::default()));
                None
            }
        }
    }

    /// Whether some thread can move in the original program, although no thread can move in the transformed one. Such a thread is in a waiting loop.
    /// False if the program was not transformed.
    fn goes_round(&mut self, state: &State) -> bool {
        self.given.as_mut().is_some_and(|given| {
            (0..given.tables.agents.count()).any(|agent| given.step(state, agent, 0, None).is_some())
        })
    }

    /// Records the current execution as the one that decides a property.
    fn decide_by(&mut self, property: usize, search: &mut Search<'_>) {
        self.count = Executions { complete: search.count.complete + 1, ..search.count };
        let mut events = self.start.2.clone();
        events.extend(search.happened());
        self.decide(property, events);
    }

    fn decide(&mut self, property: usize, events: Vec<Event>) {
        let (registers, memory, _) = &self.start;
        let trace = Trace { registers: registers.clone(), memory: memory.clone(), events };
        let exists = self.task.properties[property].kind.is_existence();
        let answer = if exists { Answer::Holds(Some(trace)) } else { Answer::Violated(Some(trace)) };
        self.answers[property] = Some(answer.clone());
        let counts = Counts::Executions(self.count);
        let work = Work { states: self.count.events, bytes: self.bytes, counts };
        let early = Early { answer, author: Author { engine: EngineName::Explicit, work } };
        self.task.tell(property, early);
    }

    fn report(self, ended: bool, incomplete: Option<Reason>, executions: Executions) -> Report {
        let answer = |n: usize| match (&self.answers[n], &incomplete) {
            (Some(answer), _) => answer.clone(),
            (None, _) if self.task.is_settled(n) => Answer::Open,
            (None, Some(reason)) => Answer::Unknown(reason.clone()),
            (None, None) if !ended => Answer::Open,
            (None, None) if self.task.properties[n].kind.is_existence() => Answer::Violated(None),
            (None, None) => Answer::Holds(None),
        };
        let counts = Counts::Executions(executions);
        Report {
            answers: (0..self.answers.len()).map(answer).collect(),
            work: Work { states: executions.events, bytes: self.bytes, counts },
            seen: match incomplete {
                Some(reason) => Seen::Until(reason),
                None if ended => Seen::All,
                None => Seen::UntilDecided,
            },
            finals: self.finals.into_iter().collect(),
            ..Report::default()
        }
    }
}

impl Observer for Judge<'_> {
    fn reached(&mut self, search: &mut Search<'_>, thread: usize, footprint: &[Item]) -> bool {
        let location = search.machine.location(search.state(), thread);
        let faulted = location == self.task.program.threads[thread].fault;
        let is_own = search.machine.tables.own[thread][location.index()];
        let mut decided = false;
        for n in 0..self.answers.len() {
            let now = match &self.task.properties[n].kind {
                PropertyKind::Assertions => faulted && self.is_open(n),
                PropertyKind::Never(formula) => {
                    let key = search.machine.tables.formula(n);
                    (is_own || footprint.iter().any(|item| item.key == key))
                        && self.is_open(n)
                        && self.holds(&search.machine, search.state(), formula) == Some(true)
                }
                PropertyKind::NoDeadlock | PropertyKind::Finally(..) => false,
            };
            if now {
                self.decide_by(n, search);
                decided = true;
            }
        }
        !decided || self.goes_on()
    }

    fn ended(&mut self, search: &mut Search<'_>, sampled: bool) -> Option<bool> {
        let (machine, state) = (&search.machine, search.state());
        let threads =
            || self.task.program.threads().map(|(t, thread)| (thread, machine.location(state, t.index())));
        let is_at_limit = (0..self.task.program.threads.len()).any(|thread| state.is_stopped(thread));
        let blocked = threads().any(|(thread, at)| at != thread.fault && !thread.is_end(at));
        let is_final = machine.is_drained(state) && threads().all(|(thread, at)| thread.is_end(at));
        if is_final && !self.task.observed.is_empty() {
            let values = self.task.observed.iter().map(|leaf| observe(machine, state, leaf));
            self.finals.insert(values.collect());
        }
        for n in 0..self.answers.len() {
            let decided = match &self.task.properties[n].kind {
                _ if !self.is_open(n) => false,
                PropertyKind::NoDeadlock => {
                    blocked && !is_at_limit && !sampled && !self.goes_round(search.state())
                }
                PropertyKind::Finally(quantifier, formula) if is_final => {
                    let holds = self.holds(&search.machine, search.state(), formula);
                    holds.is_some_and(|holds| decided_by(*quantifier, holds).is_some())
                }
                _ => false,
            };
            if decided {
                self.decide_by(n, search);
            }
        }
        self.goes_on().then_some(blocked)
    }

    fn poll(&mut self, bytes: u64, count: &Executions) -> bool {
        self.bytes = self.bytes.max(bytes);
        self.count = *count;
        self.progress.states.store(count.events, Ordering::Relaxed);
        self.progress.bytes.store(bytes, Ordering::Relaxed);
        let endless = || Reason::Unsupported(ENDLESS.into(), None);
        let gives_up = (count.cut > 0 && self.endless == Endless::GiveUp).then(endless);
        self.stopped = gives_up.or_else(|| self.limits.exceeded(bytes));
        self.stopped.is_some() || !self.goes_on()
    }
}

/// The value of an observable in a state.
fn observe(machine: &Machine<'_>, state: &State, leaf: &Observable) -> i64 {
    match leaf {
        Observable::At(thread, at) => at.contains(&machine.location(state, thread.index())) as i64,
        Observable::Register(thread, register) => machine.register(state, thread.index(), *register),
        Observable::Memory(cell) => machine.cell(state, *cell),
    }
}

/// Enumerates all combinations of initial registers and memory.
struct Initial {
    choices: Vec<Vec<i64>>,
    /// For each choice, the index of its current value; `None` before the first combination.
    positions: Option<Vec<usize>>,
    /// The number of registers of each thread.
    registers: Vec<usize>,
    /// Whether some values were only sampled.
    sampled: bool,
}

impl Initial {
    fn new(program: &Program, samples: &[i64]) -> Self {
        let mut sampled = false;
        let mut values = |init: Init| initial::values(program, init, samples, &mut sampled);
        let registers = program.threads.iter().flat_map(|t| t.registers.iter().map(|r| r.init));
        let memory = program.variables.iter().flat_map(|v| v.init.iter().copied());
        let choices = registers.chain(memory).map(&mut values).collect();
        let registers = program.threads.iter().map(|t| t.registers.len()).collect();
        Initial { choices, positions: None, registers, sampled }
    }

    fn next(&mut self) -> Option<(Vec<Vec<i64>>, Vec<i64>)> {
        match &mut self.positions {
            None => self.positions = Some(vec![0; self.choices.len()]),
            Some(positions) => {
                let turn = (0..positions.len()).find(|&n| positions[n] + 1 < self.choices[n].len())?;
                positions[turn] += 1;
                positions[..turn].fill(0);
            }
        }
        let positions = self.positions.as_ref()?;
        let mut values = self.choices.iter().zip(positions).map(|(values, n)| values[*n]);
        let registers = self.registers.iter().map(|n| values.by_ref().take(*n).collect()).collect();
        Some((registers, values.collect()))
    }
}
