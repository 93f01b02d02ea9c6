//! Backward reachability for multiset buffers (THESIS16 Theorem 15, Appendix B). It decides the same question as engine `buffers`, which searches
//! forward.
//!
//! A state of the multiset machine (Fig. 3.8) consists of a *skeleton* (locations, registers, memory, lock, and for each thread and memory cell the
//! value buffered last) and *counts*: how often each value of each cell occurs in the buffer of each thread. States are ordered: `s <= s'` if they
//! have the same skeleton and each count of `s'` is at least that of `s`. If there are finitely many skeletons and values, this is a
//! well-quasi-order, and transitions are monotone up to additional flushes of the same cell. So the set of states from which a violation is reachable
//! is the upward closure of finitely many minimal states. The minimal states are computed backward from the minimal violations, until a fixpoint is
//! reached (Lemma 36). A violation is reachable if and only if one of the minimal states is an initial state.
//!
//! The table shows the least counts before a step such that the counts after the step are at least `n`:
//!
//! | step | counts before the step |
//! |---|---|
//! | a store of `v` to a cell whose last value is `u` | one `v` less, if `n` has one; at least one `u` |
//! | a store of `v` to a cell without buffered values | no value of the cell; possible only if `n` has at most one `v` and no other value of the cell |
//! | a flush of `v` after which other values of its cell are buffered | one `v` more |
//! | a flush of `v`, the only buffered value of its cell | one `v`, and no other value of the cell |
//! | any other step | `n` |
//!
//! In every state, the value that was added last for a cell has a count of at least one. The table corrects items 1 and 2 of the definition of
//! `minpred` in the thesis, which as printed refer to the last value of the wrong state.
//!
//! The skeletons and values are computed first, by a forward search in which buffers are sets of values. There is one such set for each skeleton, and
//! it only grows. If there are infinitely many skeletons, the memory limit is reached and there is no answer. A skeleton is a state of the reference
//! semantics with one store for each buffered cell, and the reference semantics computes its steps: this code is meant for comparison, not for speed.
//!
//! The machine for PSO is the same. PSO relaxes only the order of stores to different cells, which multisets ignore anyway; and a store fence,
//! which restores part of that order, has no effect on a multiset.

use std::collections::VecDeque;

use fencewright_executions::oracle::initial_states;
use fencewright_program::reference::{Access, Buffered, Refusal, holds};
use fencewright_program::{
    EventKind, MemoryModel, Program, Property, PropertyKind, Reference, State, ThreadId,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// The result of [`decide`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Whether no violation is reachable in the multiset machine. Then none is reachable in the program either. The converse does not hold, because
    /// the machine has more behaviours than the program.
    pub safe: bool,
    /// The number of skeletons found by the forward search, an upper bound on the number of reachable skeletons.
    pub skeletons: usize,
    /// The number of minimal states from which a violation is reachable. The search stops early if one of them is an initial state.
    pub minimal: usize,
}

/// Decides whether a violation of `property` is reachable with multiset buffers. `None` if the property is not about single states, if a `*` has
/// infinitely many values, if a step or the formula cannot be computed, or if the search needs more than `most_bytes` bytes of memory.
pub fn decide(
    program: &Program,
    model: MemoryModel,
    property: &Property,
    most_bytes: u64,
) -> Option<Decision> {
    let model = if model == MemoryModel::Pso { MemoryModel::Tso } else { model };
    let reference = Reference::new(program, model);
    let mut graph = Graph::new(most_bytes);
    graph.explore(&reference)?;
    let mut goals = Vec::new();
    for (n, skeleton) in graph.skeletons.iter().enumerate() {
        if is_violation(&reference, skeleton, property)? {
            goals.push(n);
        }
    }
    let mut closure = Closure::new(&graph);
    let safe = closure.go_backward(&goals)?;
    let minimal = closure.minimal.iter().map(Vec::len).sum();
    Some(Decision { safe, skeletons: graph.skeletons.len(), minimal })
}

/// Whether a state violates a property; `None` if the property is not about single states, or if its formula cannot be computed.
fn is_violation(reference: &Reference<'_>, state: &State, property: &Property) -> Option<bool> {
    match &property.kind {
        PropertyKind::Never(formula) => holds(state, formula),
        PropertyKind::Assertions => Some(reference.has_fault(state)),
        PropertyKind::NoDeadlock | PropertyKind::Finally(..) => None,
    }
}

/// A buffered value: the thread, the memory cell, and the value.
type Pair = (ThreadId, u32, i64);

/// The number of occurrences of each pair, at least 1; sorted.
type Counts = Vec<(Pair, u32)>;

/// How a step changes the counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Change {
    /// The step does not change the counts.
    None,
    /// The step adds a copy of the pair.
    Store(Pair),
    /// The step removes a copy of the pair; other values of the cell, or other copies, remain in the buffer.
    Flush(Pair),
    /// The step removes the pair, which was the only buffered value of its cell.
    FlushOnly(Pair),
}

/// All reachable skeletons, and the steps between them.
struct Graph {
    skeletons: Vec<State>,
    numbers: FxHashMap<State, usize>,
    /// For each skeleton, a superset of the pairs that its buffers can contain.
    pairs: Vec<FxHashSet<Pair>>,
    /// For each skeleton, the incoming steps: the index of the skeleton before the step, and the change of counts.
    into: Vec<FxHashSet<(usize, Change)>>,
    /// Skeletons with a smaller index than this are initial.
    initial: usize,
    /// Estimated memory use, in bytes.
    bytes: u64,
    most_bytes: u64,
}

impl Graph {
    fn new(most_bytes: u64) -> Self {
        Graph {
            skeletons: Vec::new(),
            numbers: FxHashMap::default(),
            pairs: Vec::new(),
            into: Vec::new(),
            initial: 0,
            bytes: 0,
            most_bytes,
        }
    }

    fn fits(&self) -> Option<()> {
        (self.bytes <= self.most_bytes).then_some(())
    }

    /// Computes all skeletons, with one set of pairs for each. When the set of a skeleton has grown, its steps are computed again.
    fn explore(&mut self, reference: &Reference<'_>) -> Option<()> {
        let initial = initial_states(reference, MOST_INITIAL, &mut || false).ok()?;
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
        Some(())
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

    /// Adds to the pairs of skeleton `m` the pairs that a step from `n` keeps or adds. Returns whether `m` has new pairs.
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

    /// The outgoing steps of a skeleton, each with the skeleton after it; `None` if one cannot be computed.
    fn steps(&self, reference: &Reference<'_>, n: usize) -> Option<Vec<(State, Change)>> {
        let skeleton = &self.skeletons[n];
        if reference.has_unbounded_choice(skeleton) {
            return None;
        }
        let mut steps = Vec::new();
        for event in reference.candidates(skeleton, &[]) {
            self.fits()?;
            if let EventKind::Flush { cell } = event.kind {
                self.flushes(n, event.thread, cell, &mut steps);
                continue;
            }
            let (mut next, accesses) = match reference.step(skeleton, &event) {
                Ok(stepped) => stepped,
                Err(Refusal::Disabled(_)) => continue,
                Err(Refusal::Limit(..)) => return None,
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
        Some(steps)
    }

    /// Adds the flushes of stores to one cell from the buffer of one thread.
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

/// Maximum number of initial states that are enumerated.
const MOST_INITIAL: usize = 1 << 16;

/// The cell and the value of an entry of a skeleton's buffer.
fn store(entry: &Buffered) -> (u32, i64) {
    match entry {
        Buffered::Store { cell, value } => (*cell, *value),
        Buffered::Barrier => unreachable!("under TSO there are no barriers"),
    }
}

/// The value that a thread buffered last for a cell; `None` if the buffer has no store to the cell.
fn last(skeleton: &State, thread: ThreadId, cell: u32) -> Option<i64> {
    skeleton.buffers[thread.index()].iter().map(store).find(|(c, _)| *c == cell).map(|(_, value)| value)
}

/// The skeleton after a thread has buffered another value for a cell.
fn with_last(mut skeleton: State, (thread, cell, value): Pair) -> State {
    let buffer = &mut skeleton.buffers[thread.index()];
    buffer.retain(|entry| store(entry).0 != cell);
    buffer.push(Buffered::Store { cell, value });
    buffer.sort_by_key(|entry| store(entry).0);
    skeleton
}

/// An upward closed set of states from which a violation is reachable, represented by its minimal states.
struct Closure<'g> {
    graph: &'g Graph,
    /// For each skeleton, the counts of the minimal states with this skeleton.
    minimal: Vec<Vec<Counts>>,
    /// The worklist: states whose predecessors have not been computed.
    queue: VecDeque<(usize, Counts)>,
    bytes: u64,
}

impl<'g> Closure<'g> {
    fn new(graph: &'g Graph) -> Self {
        Closure {
            graph,
            minimal: vec![Vec::new(); graph.skeletons.len()],
            queue: VecDeque::new(),
            bytes: graph.bytes,
        }
    }

    /// Computes the set of states from which a state with a goal skeleton is reachable. Returns true if it contains no initial state; `None` if the
    /// memory limit is reached.
    fn go_backward(&mut self, goals: &[usize]) -> Option<bool> {
        for &n in goals {
            let buffers = self.graph.skeletons[n].buffers.iter().zip(0..);
            let last = buffers.flat_map(|(b, t)| b.iter().map(move |e| (ThreadId(t), store(e))));
            let counts = last.map(|(thread, (cell, value))| ((thread, cell, value), 1)).collect();
            if self.add(n, counts) {
                return Some(false);
            }
        }
        while let Some((m, counts)) = self.queue.pop_front() {
            // A smaller state may have replaced this state after it was queued. Then its predecessors are not needed.
            if !self.minimal[m].contains(&counts) {
                continue;
            }
            for &(n, change) in &self.graph.into[m] {
                if self.bytes > self.graph.most_bytes {
                    return None;
                }
                let before = self.before(n, change, &counts);
                if before.is_some_and(|before| self.add(n, before)) {
                    return Some(false);
                }
            }
        }
        Some(true)
    }

    /// The least counts before a step from skeleton `n` such that the counts after the step are at least `counts`; `None` if there are no such
    /// counts.
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
        // Counts of values that the buffers of `n` can never contain are unreachable.
        before.iter().all(|(pair, _)| self.graph.pairs[n].contains(pair)).then_some(before)
    }

    /// Adds the upward closure of a state, unless it is in the set already. Returns whether an initial state was added.
    fn add(&mut self, n: usize, counts: Counts) -> bool {
        if self.minimal[n].iter().any(|smaller| is_at_most(smaller, &counts)) {
            return false;
        }
        self.minimal[n].retain(|larger| !is_at_most(&counts, larger));
        self.bytes += 2 * (48 + 32 * counts.len() as u64);
        self.minimal[n].push(counts.clone());
        self.queue.push_back((n, counts));
        // The buffers of an initial state are empty, so its counts are empty.
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

/// Whether each count of `smaller` is at most that of `larger`.
fn is_at_most(smaller: &Counts, larger: &Counts) -> bool {
    smaller.iter().all(|&(pair, n)| n <= count(larger, pair))
}
