//! Detection of data races: plain accesses, which a compiler may reorder, that conflict with accesses of another thread.
//!
//! Two accesses of different threads race if at least one is a store, at least one is plain, and some state reachable under SC has both as next
//! steps. C programs must not contain data races (C11 5.1.2.4). Reported races are real: such a state was reached by steps of the reference
//! semantics. Races may be missed.
//!
//! States are explored by random executions. In each execution, one thread is paused at a location before an access that may race, while the other
//! threads continue; a race is found when another thread is about to perform a conflicting access (active testing, as in Sen's RaceFuzzer, PLDI
//! 2008). This takes milliseconds where an exhaustive search takes seconds. The random choices are the same in every run, so the results are too,
//! unless a limit stops the search.

use std::collections::{BTreeMap, BTreeSet};

use fencewright_generate::Random;
use fencewright_program::{
    Action, Address, Event, EventKind, LocationId, MemoryModel, Op, Program, Reference, Span, State,
    ThreadId, VariableId,
};
use fencewright_verdict::Limits;

use crate::chance;

/// Maximum number of reported races.
const MOST_RACES: usize = 64;
/// Maximum number of steps of an execution.
const LONGEST: usize = 2_000;
/// The search ends when this many successive rounds have found no new race. A round has one execution for each location at which a thread is paused.
const ROUNDS: usize = 3;
/// Maximum number of steps of all executions together.
const MOST_STEPS: usize = 40_000;
/// Maximum number of values written in total. Every step copies the state, so it writes as many values as the state has.
const MOST_VALUES: usize = 8_000_000;
/// In each step, the paused thread may continue with probability 1 / `PATIENCE` even if another thread has an enabled step.
const PATIENCE: usize = 100;

/// A race between two places in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Race {
    /// The source position of a plain access.
    pub plain: Span,
    /// The source position of the access of the other thread, plain or not.
    pub other: Span,
    /// The variable that both accesses denote.
    pub variable: VariableId,
}

/// A memory access that is a step by itself, not part of an atomic step.
#[derive(Clone, Copy)]
struct Access<'p> {
    address: &'p Address,
    stores: bool,
    plain: bool,
    span: Span,
}

/// Searches for races within the limits; `is_plain` says which source spans are plain accesses.
pub fn races(program: &Program, is_plain: &dyn Fn(Span) -> bool, limits: &Limits) -> Vec<Race> {
    let accesses = accesses(program, is_plain);
    if accesses.values().flatten().all(|access| !access.plain) {
        return Vec::new();
    }
    let reference = Reference::new(program, MemoryModel::Sc);
    let mut random = Random::new(1);
    let mut found = BTreeSet::new();
    let values = program.variables.iter().map(|v| v.init.len()).sum::<usize>()
        + program.threads.iter().map(|t| t.registers.len() + 8).sum::<usize>();
    let mut steps = MOST_STEPS.min(MOST_VALUES / values);
    let mut idle = 0;
    while idle < ROUNDS {
        let before = found.len();
        for &place in accesses.keys() {
            let state = chance::initial(&reference, &mut random);
            let mut walk =
                Walk { reference: &reference, accesses: &accesses, place, state, random: &mut random };
            walk.look(place.0, &mut found);
            for _ in 0..LONGEST {
                let is_over = steps == 0 || steps.is_multiple_of(64) && limits.exceeded(0).is_some();
                if is_over || found.len() >= MOST_RACES {
                    return found.into_iter().collect();
                }
                steps -= 1;
                let Some(thread) = walk.step() else { break };
                walk.look(thread, &mut found);
            }
        }
        idle = if found.len() > before { 0 } else { idle + 1 };
    }
    found.into_iter().collect()
}

/// The accesses that may race, by their threads and the locations before them.
type Accesses<'p> = BTreeMap<(ThreadId, LocationId), Vec<Access<'p>>>;

fn accesses<'p>(program: &'p Program, is_plain: &dyn Fn(Span) -> bool) -> Accesses<'p> {
    let mut all = Vec::new();
    for (thread, code) in program.threads() {
        for edge in &code.edges {
            let (address, stores) = match &edge.action {
                Action::Op(Op::Load(_, address)) => (address, false),
                Action::Op(Op::Store(address, _)) => (address, true),
                _ => continue,
            };
            let span = edge.span.text();
            all.push((thread, edge.from, Access { address, stores, plain: is_plain(span), span }));
        }
    }
    // A variable that only one thread accesses, or that is never stored to, has no races.
    let mut shared: BTreeMap<VariableId, (ThreadId, bool, bool)> = BTreeMap::new();
    for (thread, _, access) in &all {
        let (first, several, stored) =
            shared.entry(access.address.variable).or_insert((*thread, false, false));
        *several |= first != thread;
        *stored |= access.stores;
    }
    let mut accesses = Accesses::default();
    for (thread, from, access) in all {
        let (_, several, stored) = shared[&access.address.variable];
        if several && stored {
            accesses.entry((thread, from)).or_default().push(access);
        }
    }
    accesses
}

/// A random execution in which one thread is paused.
struct Walk<'w, 'p> {
    reference: &'w Reference<'p>,
    accesses: &'w Accesses<'p>,
    /// The thread that is paused in this execution, and the location at which it is paused.
    place: (ThreadId, LocationId),
    state: State,
    random: &'w mut Random,
}

impl<'w, 'p> Walk<'w, 'p> {
    /// Takes a step of a random thread, and returns that thread; `None` if no step is enabled.
    fn step(&mut self) -> Option<ThreadId> {
        let threads = self.state.locations.len();
        let first = self.random.below(threads);
        let (waiting, at) = self.place;
        let waits = self.state.locations[waiting.index()] == at && !self.random.one_in(PATIENCE);
        let others = (0..threads).map(|n| ThreadId(((first + n) % threads) as u32));
        let others = others.filter(|&t| !(waits && t == waiting));
        others.chain(waits.then_some(waiting)).find(|&t| self.take_step_of(t))
    }

    fn take_step_of(&mut self, thread: ThreadId) -> bool {
        let program = self.reference.program;
        let edges: Vec<_> = program.thread(thread).edges_from(self.state.locations[thread.index()]).collect();
        let first = self.random.below(edges.len());
        for n in 0..edges.len() {
            let (edge, code) = edges[(first + n) % edges.len()];
            let chosen = chance::values(&code.action, program.numbers, self.random);
            let event = Event { thread, kind: EventKind::Step { edge, chosen } };
            if let Ok((after, _)) = self.reference.step(&self.state, &event) {
                self.state = after;
                return true;
            }
        }
        false
    }

    /// The accesses of a thread that may race and begin at its current location; `None` if there are none.
    fn next(&self, thread: ThreadId) -> Option<&'w [Access<'p>]> {
        let place = (thread, self.state.locations[thread.index()]);
        self.accesses.get(&place).map(Vec::as_slice)
    }

    /// Records the races between the next accesses of a thread and those of all other threads in the current state.
    fn look(&self, thread: ThreadId, found: &mut BTreeSet<Race>) {
        let Some(own) = self.next(thread) else { return };
        for other in self.reference.program.threads().map(|(id, _)| id).filter(|&id| id != thread) {
            for a in own {
                for b in self.next(other).unwrap_or_default() {
                    let conflict = a.address.variable == b.address.variable
                        && (a.stores || b.stores)
                        && (a.plain || b.plain)
                        && self.index(a, thread).is_some_and(|index| self.index(b, other) == Some(index));
                    if conflict {
                        found.insert(race(a, b));
                    }
                }
            }
        }
    }

    /// The index of the accessed array element, 0 for a variable that is not an array; `None` if the index cannot be computed.
    fn index(&self, access: &Access<'_>, thread: ThreadId) -> Option<i64> {
        let registers = &self.state.registers[thread.index()];
        let Some(index) = &access.address.index else { return Some(0) };
        index.eval(&mut |register| registers[register.index()]).ok()
    }
}

/// The race of two accesses, at least one of which is plain. If both are plain, the one that is first in the source becomes [`Race::plain`].
fn race(a: &Access<'_>, b: &Access<'_>) -> Race {
    let (plain, other) = match (a.plain, b.plain) {
        (true, true) => (a.span.min(b.span), a.span.max(b.span)),
        (true, false) => (a.span, b.span),
        (false, _) => (b.span, a.span),
    };
    Race { plain, other, variable: a.address.variable }
}
