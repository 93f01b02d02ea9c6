//! What multisets for buffers reach, decided backward (THESIS16 Theorem 15, Appendix B): a second implementation, to compare the engine with.
//!
//! A state of the multiset machine (Fig. 3.8) is a *skeleton* (locations, registers, memory, lock, and the value that each thread added last for each memory
//! cell) with *counts*: how often each value of each cell is in the buffer of each thread. States are ordered: `s <= s'` if they have the same skeleton and each count of
//! `s'` is at least that of `s`. Where there are finitely many skeletons and values, this is a well-quasi-order, and what `s` can do, a larger state can do too, perhaps after
//! some more flushes of the same cell. So the states from which a violation can be reached are the upward closure of finitely many minimal ones. These are found
//! going backward from the minimal violations, until nothing new is found (Lemma 36). If one of them is an initial state, it reaches a violation.
//!
//! What must be counted before a step, for at least `n` to be counted after it:
//!
//! | step | before it |
//! |---|---|
//! | a store of `v`, the value added last before it being `u` | one `v` less, if there is one; at least one `u` |
//! | a store of `v` to a cell of which nothing was buffered | nothing of the cell; possible only if `n` has at most one `v` and nothing else of it |
//! | a flush of `v`, others of its cell stay | one `v` more |
//! | a flush of `v`, the only one of its cell, which was added last | one `v`, and nothing else of the cell |
//! | any other | `n` |
//!
//! Every state counts at least one of each value that was added last. The table is what items 1 and 2 of `minpred` must mean: as printed they speak of the last value of the wrong state.
//!
//! Which skeletons and values there are is found first, going forward with sets of values for buffers: one set for each skeleton, which only grows. If there are
//! infinitely many, some limit is reached and there is no answer. Skeletons are states of the reference semantics with one store for each cell that is buffered, and their
//! steps are taken by it: this is to be compared with, not to be fast.
//!
//! Under PSO the machine is the same. A multiset forgets the order of stores to different cells, which is all that PSO allows more than TSO; and a store fence, which puts
//! some of that order back, orders nothing inside a multiset.

use std::collections::VecDeque;

use fencewright_executions::oracle::{Incomplete, initial_states};
use fencewright_program::reference::{Access, Buffered, Limit, Refusal, holds};
use fencewright_program::{
    EventKind, MemoryModel, Program, Property, PropertyKind, Reference, State, ThreadId,
};
use fencewright_verdict::{Limits, Reason};
use rustc_hash::{FxHashMap, FxHashSet};

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether multisets reach no violation. Then there is none; otherwise there may be one.
    pub safe: bool,
    /// How many skeletons there are, at most.
    pub skeletons: usize,
    /// How many minimal states from which a violation is reached were found.
    pub minimal: usize,
}

/// Decides whether a violation of `property` can be reached if buffers are multisets. The property is about reachable states; values must be finitely many.
pub fn decide(
    program: &Program,
    model: MemoryModel,
    property: &Property,
    limits: &Limits,
) -> Result<Decision, Reason> {
    let model = if model == MemoryModel::Pso { MemoryModel::Tso } else { model };
    let reference = Reference::new(program, model);
    let mut graph = Graph::new(limits);
    graph.explore(&reference)?;
    let mut goals = Vec::new();
    for (n, skeleton) in graph.skeletons.iter().enumerate() {
        if n % 256 == 0 {
            graph.check_limits()?;
        }
        if is_violation(&reference, skeleton, property)? {
            goals.push(n);
        }
    }
    let mut closure = Closure::new(&graph);
    let safe = closure.go_backward(&goals)?;
    let minimal = closure.minimal.iter().map(Vec::len).sum();
    Ok(Decision { safe, skeletons: graph.skeletons.len(), minimal })
}

fn is_violation(reference: &Reference<'_>, state: &State, property: &Property) -> Result<bool, Reason> {
    match &property.kind {
        PropertyKind::Never(formula) => {
            holds(state, formula).ok_or(Reason::Limit(Limit::Overflow, property.span))
        }
        PropertyKind::Assertions => Ok(reference.has_fault(state)),
        PropertyKind::NoDeadlock | PropertyKind::Finally(..) => {
            Err(unsupported("multisets are decided for properties of reachable states only"))
        }
    }
}

fn unsupported(what: &str) -> Reason {
    Reason::Unsupported(what.into(), None)
}

/// A value of a memory cell in the buffer of a thread.
type Pair = (ThreadId, u32, i64);

/// How often each pair occurs, at least once; sorted.
type Counts = Vec<(Pair, u32)>;

/// What a step does to counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Change {
    /// Nothing.
    None,
    /// One more.
    Store(Pair),
    /// One less; others of its cell stay.
    Flush(Pair),
    /// One less; it was the only one of its cell.
    FlushOnly(Pair),
}

/// All skeletons, and the steps between them.
struct Graph<'l> {
    skeletons: Vec<State>,
    numbers: FxHashMap<State, usize>,
    /// For each skeleton, a set of pairs that contains all that can be in its buffers.
    pairs: Vec<FxHashSet<Pair>>,
    /// For each skeleton, the steps that lead to it.
    into: Vec<FxHashSet<(usize, Change)>>,
    /// How many of the first skeletons are initial.
    initial: usize,
    /// Roughly how many bytes all this takes.
    bytes: u64,
    limits: &'l Limits,
}

impl<'l> Graph<'l> {
    fn new(limits: &'l Limits) -> Self {
        Graph {
            skeletons: Vec::new(),
            numbers: FxHashMap::default(),
            pairs: Vec::new(),
            into: Vec::new(),
            initial: 0,
            bytes: 0,
            limits,
        }
    }

    fn check_limits(&self) -> Result<(), Reason> {
        self.limits.exceeded(self.bytes).map_or(Ok(()), Err)
    }

    /// Finds all skeletons, with sets of values for buffers: one set for each skeleton. A set that has grown is looked at again.
    fn explore(&mut self, reference: &Reference<'_>) -> Result<(), Reason> {
        let mut reason = None;
        let mut stop = || {
            reason = self.limits.exceeded(0);
            reason.is_some()
        };
        let initial = initial_states(reference, MOST_INITIAL, &mut stop);
        let initial = initial.map_err(|why| match (reason, why) {
            (Some(reason), _) => reason,
            (None, Incomplete::UnboundedChoice) => unsupported(UNBOUNDED),
            (None, _) => unsupported("there are too many initial states"),
        })?;
        for skeleton in initial {
            self.number(skeleton);
        }
        self.initial = self.skeletons.len();
        let mut queue: VecDeque<usize> = (0..self.initial).collect();
        let mut is_queued = vec![true; self.initial];
        while let Some(n) = queue.pop_front() {
            is_queued[n] = false;
            for (next, change) in self.steps(reference, n)? {
                let known = self.skeletons.len();
                let m = self.number(next);
                if self.into[m].insert((n, change)) {
                    self.bytes += 64;
                }
                is_queued.resize(self.skeletons.len(), false);
                let grows = self.grow(n, m, change);
                if (grows || m == known) && !is_queued[m] {
                    is_queued[m] = true;
                    queue.push_back(m);
                }
            }
        }
        Ok(())
    }

    fn number(&mut self, skeleton: State) -> usize {
        if let Some(&n) = self.numbers.get(&skeleton) {
            return n;
        }
        let n = self.skeletons.len();
        let words = |values: &[Vec<i64>]| values.iter().map(|v| 3 + v.len() as u64).sum::<u64>();
        let stores: u64 = skeleton.buffers.iter().map(|b| 3 + 2 * b.len() as u64).sum();
        let words = words(&skeleton.registers) + stores + skeleton.memory.len() as u64;
        self.bytes += 2 * (160 + 8 * words) + 128;
        self.numbers.insert(skeleton.clone(), n);
        self.skeletons.push(skeleton);
        self.pairs.push(FxHashSet::default());
        self.into.push(FxHashSet::default());
        n
    }

    /// Adds to the pairs of skeleton `m` those that a step from `n` leaves or makes. Says whether there are new ones.
    fn grow(&mut self, n: usize, m: usize, change: Change) -> bool {
        let stays = |pair: &&Pair| match change {
            Change::FlushOnly((thread, cell, _)) => (pair.0, pair.1) != (thread, cell),
            Change::None | Change::Store(_) | Change::Flush(_) => true,
        };
        let mut pairs: Vec<Pair> = self.pairs[n].iter().filter(stays).copied().collect();
        if let Change::Store(pair) = change {
            pairs.push(pair);
        }
        let known = &mut self.pairs[m];
        let before = known.len();
        known.extend(pairs);
        self.bytes += 32 * (known.len() - before) as u64;
        known.len() > before
    }

    /// The steps that leave a skeleton.
    fn steps(&self, reference: &Reference<'_>, n: usize) -> Result<Vec<(State, Change)>, Reason> {
        let skeleton = &self.skeletons[n];
        if reference.has_unbounded_choice(skeleton) {
            return Err(unsupported(UNBOUNDED));
        }
        let mut steps = Vec::new();
        for event in reference.candidates(skeleton, &[]) {
            self.check_limits()?;
            if let EventKind::Flush { cell } = event.kind {
                self.flushes(n, event.thread, cell, &mut steps);
                continue;
            }
            let (mut next, accesses) = match reference.step(skeleton, &event) {
                Ok(stepped) => stepped,
                Err(Refusal::Disabled(_)) => continue,
                Err(Refusal::Limit(limit, span)) => return Err(Reason::Limit(limit, span)),
            };
            let stored = accesses.iter().find_map(|access| match *access {
                Access::Write { cell, value, buffered: true } => Some((event.thread, cell, value)),
                _ => None,
            });
            next.buffers.clone_from(&skeleton.buffers);
            steps.push(match stored {
                None => (next, Change::None),
                Some(pair) => (with_last(next, pair), Change::Store(pair)),
            });
        }
        Ok(steps)
    }

    /// The flushes of one cell of one thread.
    fn flushes(&self, n: usize, thread: ThreadId, cell: u32, steps: &mut Vec<(State, Change)>) {
        let skeleton = &self.skeletons[n];
        if skeleton.lock.is_some_and(|holder| holder != thread) {
            return;
        }
        for &pair in self.pairs[n].iter().filter(|pair| (pair.0, pair.1) == (thread, cell)) {
            let mut next = skeleton.clone();
            next.memory[cell as usize] = pair.2;
            steps.push((next.clone(), Change::Flush(pair)));
            if last(skeleton, thread, cell) == Some(pair.2) {
                next.buffers[thread.index()].retain(|entry| store(entry).0 != cell);
                steps.push((next, Change::FlushOnly(pair)));
            }
        }
    }
}

/// More initial states than this are not tried.
const MOST_INITIAL: usize = 1 << 16;
const UNBOUNDED: &str =
    "`*` has infinitely many values, and what multisets reach is decided for finitely many only";

/// The cell and the value of an entry of a skeleton's buffer.
fn store(entry: &Buffered) -> (u32, i64) {
    match entry {
        Buffered::Store { cell, value } => (*cell, *value),
        Buffered::Barrier => unreachable!("under TSO there are no barriers"),
    }
}

/// The value that a thread added last for a cell.
fn last(skeleton: &State, thread: ThreadId, cell: u32) -> Option<i64> {
    skeleton.buffers[thread.index()].iter().map(store).find(|(c, _)| *c == cell).map(|(_, value)| value)
}

/// The skeleton with another value that was added last.
fn with_last(mut skeleton: State, (thread, cell, value): Pair) -> State {
    let buffer = &mut skeleton.buffers[thread.index()];
    buffer.retain(|entry| store(entry).0 != cell);
    buffer.push(Buffered::Store { cell, value });
    buffer.sort_by_key(|entry| store(entry).0);
    skeleton
}

/// The upward closed set of states from which a violation can be reached.
struct Closure<'g> {
    graph: &'g Graph<'g>,
    /// For each skeleton, the counts of the minimal states with it.
    minimal: Vec<Vec<Counts>>,
    /// Those from which no step back was made so far.
    queue: VecDeque<(usize, Counts)>,
    bytes: u64,
}

impl<'g> Closure<'g> {
    fn new(graph: &'g Graph<'g>) -> Self {
        Closure {
            graph,
            minimal: vec![Vec::new(); graph.skeletons.len()],
            queue: VecDeque::new(),
            bytes: graph.bytes,
        }
    }

    /// Goes back from these skeletons with whatever counts until nothing new is found. Says whether there is no initial state among it.
    fn go_backward(&mut self, goals: &[usize]) -> Result<bool, Reason> {
        for &n in goals {
            let buffers = self.graph.skeletons[n].buffers.iter().zip(0..);
            let last = buffers.flat_map(|(b, t)| b.iter().map(move |e| (ThreadId(t), store(e))));
            let counts = last.map(|(thread, (cell, value))| ((thread, cell, value), 1)).collect();
            if self.add(n, counts) {
                return Ok(false);
            }
        }
        while let Some((m, counts)) = self.queue.pop_front() {
            // A smaller state may have been found since.
            if !self.minimal[m].contains(&counts) {
                continue;
            }
            for &(n, change) in &self.graph.into[m] {
                if let Some(reason) = self.graph.limits.exceeded(self.bytes) {
                    return Err(reason);
                }
                let before = self.before(n, change, &counts);
                if before.is_some_and(|before| self.add(n, before)) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// The smallest counts before a step from skeleton `n` such that there are at least these after it; none if there are no such.
    fn before(&self, n: usize, change: Change, counts: &Counts) -> Option<Counts> {
        let mut before = counts.clone();
        match change {
            Change::None => {}
            Change::Store(stored) => {
                let (thread, cell, _) = stored;
                let stores_before = count(&before, stored).saturating_sub(1);
                set_count(&mut before, stored, stores_before);
                match last(&self.graph.skeletons[n], thread, cell) {
                    Some(value) => {
                        let pair = (thread, cell, value);
                        let at_least_one = count(&before, pair).max(1);
                        set_count(&mut before, pair, at_least_one);
                    }
                    None if before.iter().any(|(pair, _)| (pair.0, pair.1) == (thread, cell)) => return None,
                    None => {}
                }
            }
            Change::Flush(pair) | Change::FlushOnly(pair) => {
                let one_more = count(&before, pair).saturating_add(1);
                set_count(&mut before, pair, one_more);
            }
        }
        // What can be in the buffers is known, at least which values.
        before.iter().all(|(pair, _)| self.graph.pairs[n].contains(pair)).then_some(before)
    }

    /// Adds a state and all larger ones. Says whether an initial state is among them.
    fn add(&mut self, n: usize, counts: Counts) -> bool {
        if self.minimal[n].iter().any(|smaller| is_at_most(smaller, &counts)) {
            return false;
        }
        self.minimal[n].retain(|larger| !is_at_most(&counts, larger));
        self.bytes += 2 * (48 + 32 * counts.len() as u64);
        self.minimal[n].push(counts.clone());
        self.queue.push_back((n, counts));
        // Nothing is buffered in an initial state, and so nothing is counted.
        n < self.graph.initial
    }
}

fn count(counts: &Counts, pair: Pair) -> u32 {
    counts.binary_search_by_key(&pair, |entry| entry.0).map_or(0, |position| counts[position].1)
}

fn set_count(counts: &mut Counts, pair: Pair, count: u32) {
    match (counts.binary_search_by_key(&pair, |entry| entry.0), count) {
        (Ok(position), 0) => _ = counts.remove(position),
        (Ok(position), _) => counts[position].1 = count,
        (Err(_), 0) => {}
        (Err(position), _) => counts.insert(position, (pair, count)),
    }
}

/// Whether each count is at most the other one.
fn is_at_most(smaller: &Counts, larger: &Counts) -> bool {
    smaller.iter().all(|&(pair, n)| n <= count(larger, pair))
}
