//! A worker of the search: its states, the rounds it takes part in, and the facts it collects.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use fencewright_program::reference::Limit;
use fencewright_program::{EvalError, Observable, PropertyKind, Quantifier};
use fencewright_verdict::Reason;

use super::Order;
use super::code::Code;
use super::divergence;
use super::expand::{Expander, Summary};
use super::layout::{Growth, Layout, Sizes};
use super::mail::{Batch, FAULT, Origin, SleepSorter, Sorter};
use super::orbits::Representatives;
use super::reduction::{Reducer, Reduction, Sleep};
use super::search::{Found, Shared};
use super::store::Store;
use super::versions::Renaming;

/// Maximum number of states that a worker expands in a round.
const ROUND: usize = 4096;
/// Number of successors that are looked up together.
const BATCH: usize = 64;
/// A round also ends when it has produced this many successors, because a single state may have tens of thousands of them.
const SUCCESSORS: usize = 1 << 15;
/// A round also ends when its successors have this many words, because the time of a step grows with the size of a state, and the limits are polled
/// between rounds.
const WORDS: usize = 1 << 17;

/// One worker of the parallel search: it owns a part of the states, expands them, and sends successors to their owners. Threads are started for the
/// workers only when there is enough work.
pub struct Worker<'a, 's> {
    me: usize,
    shared: &'s Shared<'a>,
    pub(super) sizes: Sizes,
    pub(super) layout: Layout,
    pub(super) store: Store,
    expander: Expander<'s>,
    reducer: Option<Reducer<'s>>,
    /// The sleep sets, if the reduction uses them.
    sleep: Option<Sleep<'s>>,
    representatives: Representatives<'s>,
    renaming: Renaming,
    /// Depth first: states not yet expanded.
    stack: Vec<u32>,
    /// Breadth first: the index of the next state to expand.
    cursor: usize,
    /// Breadth first: the index after the last state of the current level.
    pub(super) level_end: usize,
    out: Vec<Batch>,
    /// Number of successors produced in this round.
    made: usize,
    /// Number of transitions taken so far; those of a state that is expanded again in a wider layout count once.
    pub(super) transitions: u64,
    /// The properties that this worker still checks. Some of them may have been decided by other workers.
    deciding: Vec<usize>,
    eval_stack: Vec<i64>,
    summary: Summary,
    finals: BTreeSet<Vec<i64>>,
    pub(super) peak: u64,
    /// The memory use, in bytes, at which the test for divergence is repeated.
    endless: u64,
}

impl<'a, 's> Worker<'a, 's> {
    /// A worker without states, which does not check properties that are `known`; `sampled` says whether the initial states are only a sample.
    pub fn new(
        me: usize,
        shared: &'s Shared<'a>,
        (sizes, layout): (&Sizes, &Layout),
        samples: &'s [i64],
        known: &[bool],
        sampled: bool,
    ) -> Self {
        Worker {
            me,
            shared,
            sizes: sizes.clone(),
            layout: layout.clone(),
            store: Store::new(layout.words),
            expander: Expander::new(shared.code, samples, shared.options.buffer_bound),
            reducer: Reducer::new(shared.code, shared.options.reduction),
            sleep: match &shared.code.summaries {
                Some(summaries) if shared.options.reduction == Reduction::Sleep => {
                    Some(Sleep::new(shared.code, summaries, shared.options.buffer_bound.is_some()))
                }
                _ => None,
            },
            representatives: Representatives::new(shared.code),
            renaming: Renaming::default(),
            stack: Vec::new(),
            cursor: 0,
            level_end: 0,
            out: (0..shared.workers).map(|_| Batch::default()).collect(),
            made: 0,
            transitions: 0,
            deciding: (0..known.len()).filter(|&n| !known[n]).collect(),
            eval_stack: Vec::new(),
            summary: Summary { sampled, ..Summary::default() },
            finals: BTreeSet::new(),
            peak: 0,
            endless: 0,
        }
    }

    /// Adds the results of this worker to those of the other workers.
    pub fn deliver(self, found: &mut Found) {
        found.sampled |= self.summary.sampled;
        found.bounded |= self.summary.bounded;
        found.limit = found.limit.or(self.summary.limit);
        found.bytes += self.peak;
        found.transitions += self.transitions;
        found.finals.extend(self.finals);
        found.stores.push(self.store);
    }

    /// Runs rounds until the threads have to stop; `None` if this or another worker panicked.
    pub(super) fn run(self) -> Option<Self> {
        let gate = &self.shared.gate;
        let result = catch_unwind(AssertUnwindSafe(|| self.rounds()));
        if result.is_err() {
            gate.destroy();
        }
        result.ok().flatten()
    }

    /// Runs rounds until the search is over, or until a decided property is to be reported; `None` if another worker panicked.
    fn rounds(mut self) -> Option<Self> {
        loop {
            self.expand_some();
            self.post();
            self.shared.gate.wait()?;
            self.receive();
            self.report_and_poll();
            self.shared.gate.wait()?;
            let level_done = self.shared.busy.load(Ordering::Relaxed) == 0;
            let all_done = self.shared.pending.load(Ordering::Relaxed) == 0;
            let news = self.shared.news.load(Ordering::Relaxed);
            if !self.grow()? && (self.shared.stop.load(Ordering::Relaxed) || all_done) {
                // No worker may start another round and change the counters while others still read them.
                self.shared.gate.wait()?;
                self.shared.over.store(true, Ordering::Relaxed);
                return Some(self);
            }
            // All workers have read the counters, and none adds to them before all have reached the next round, so one worker can reset them.
            if self.shared.gate.wait()? {
                self.shared.busy.store(0, Ordering::Relaxed);
                self.shared.pending.store(0, Ordering::Relaxed);
            }
            if level_done {
                self.level_end = self.store.len();
            }
            if news {
                return Some(self);
            }
        }
    }

    /// The number of states that wait to be expanded.
    pub(super) fn frontier(&self) -> usize {
        let new = match self.shared.options.order {
            Order::DepthFirst => self.stack.len(),
            Order::BreadthFirst => self.store.len() - self.cursor,
        };
        new + self.woken()
    }

    /// The number of states that wait to be expanded again, because parts (the edges or the flushes of a thread) are no longer in their sleep sets.
    fn woken(&self) -> usize {
        self.sleep.as_ref().map_or(0, Sleep::waiting)
    }

    /// Expands states until none is left (breadth first: none of the current level), the round has reached one of its maximum numbers, or a value
    /// does not fit into the layout.
    pub(super) fn expand_some(&mut self) {
        let depth_first = self.shared.options.order == Order::DepthFirst;
        // A single worker is strictly depth first: the successors of a state are stored before the next state is taken.
        let batch = if depth_first { 1 } else { BATCH };
        let successors = SUCCESSORS.min(WORDS / self.layout.words).max(1);
        for _ in 0..ROUND {
            if self.made >= successors || self.shared.stop.load(Ordering::Relaxed) {
                break;
            }
            let woken = self.sleep.as_ref().and_then(Sleep::next);
            let number = match depth_first {
                _ if let Some((number, _)) = woken => number,
                true => match self.stack.last() {
                    Some(&number) => number,
                    None => break,
                },
                false if self.cursor < self.level_end => self.cursor as u32,
                false => break,
            };
            if !self.expand(number, woken.map(|(_, parts)| parts)) {
                break;
            }
            if self.out[self.me].origins.len() >= batch {
                self.store_own();
            }
        }
        self.store_own();
    }

    /// Expands a state, or only the parts in `woken` after a change of its sleep set. Returns false if it has to be repeated in a wider layout.
    fn expand(&mut self, number: u32, woken: Option<u64>) -> bool {
        let parent = number * self.shared.workers as u32 + self.me as u32;
        let made = self.made;
        let mut sorter = Sorter {
            code: self.shared.code,
            layout: &self.layout,
            representatives: &mut self.representatives,
            renaming: &mut self.renaming,
            growth: None,
            out: &mut self.out,
            parent,
            made: &mut self.made,
        };
        let state = self.store.state(number);
        let expanded = match (&mut self.reducer, &mut self.sleep) {
            (None, None) => self.expander.expand(&self.layout, state, &mut sorter),
            (Some(reducer), _) => reducer.expand(&mut self.expander, &self.layout, state, &mut sorter),
            (None, Some(sleep)) => {
                let mut sorter = SleepSorter { sorter: &mut sorter, asleep: 0 };
                let state = (&self.store, number);
                sleep.expand(&mut self.expander, &self.layout, state, woken, &mut sorter)
            }
        };
        let summary = match expanded.and_then(|summary| sorter.growth.map_or(Ok(summary), Err)) {
            Ok(summary) => summary,
            Err(growth) => {
                self.shared.growth.lock().expect("no worker panicked").push(growth);
                return false;
            }
        };
        self.transitions += (self.made - made) as u64;
        match (&mut self.sleep, self.shared.options.order) {
            (Some(sleep), _) if woken.is_some() => sleep.done(),
            (_, Order::DepthFirst) => _ = self.stack.pop(),
            (_, Order::BreadthFirst) => self.cursor += 1,
        }
        self.summary = self.summary.with(Summary { moved: false, ..summary });
        if summary.bounded && self.shared.code.overflow_decides {
            self.shared.decide(0, parent);
        }
        if !summary.moved {
            self.at_rest(number, parent, summary);
        }
        true
    }

    /// Handles a state without successors: it is final, deadlocked, or stopped by a fault, a limit, or a store that is not explored.
    fn at_rest(&mut self, number: u32, global: u32, summary: Summary) {
        let code = self.shared.code;
        let state = self.store.state(number);
        let location = |t: usize| self.layout.slots[code.pc(t)].raw(state) as usize;
        let ended = |t: usize| code.threads[t].ended[location(t)];
        let faulted = |t: usize| location(t) as u64 == code.threads[t].fault;
        let empty = self.layout.buffers.iter().all(|b| b.count.raw(state) == 0);
        let is_final = empty && (0..code.threads.len()).all(ended);
        let is_deadlock = !(0..code.threads.len()).all(|t| ended(t) || faulted(t))
            && summary.limit.is_none()
            && !summary.bounded;
        for (n, property) in self.shared.task.properties.iter().enumerate() {
            let decided = match &property.kind {
                PropertyKind::NoDeadlock => is_deadlock,
                PropertyKind::Finally(quantifier, _) if is_final => {
                    match formula_holds(code, &self.layout, n, state, &mut self.eval_stack) {
                        Some(holds) => (*quantifier == Quantifier::Forall) != holds,
                        None => {
                            self.summary.limit = Some((Limit::Overflow, property.span));
                            false
                        }
                    }
                }
                _ => false,
            };
            if decided {
                self.shared.decide(n, global);
            }
        }
        if is_final && !self.shared.task.observed.is_empty() {
            let value = |o: &Observable| match o {
                Observable::At(t, at) => at.iter().any(|l| l.index() == location(t.index())) as i64,
                Observable::Register(t, r) => {
                    self.layout.slots[code.threads[t.index()].registers[r.index()] as usize].get(state)
                }
                Observable::Memory(cell) => self.layout.slots[(code.memory + cell) as usize].get(state),
            };
            self.finals.insert(self.shared.task.observed.iter().map(value).collect());
        }
    }

    /// Stores the successors that belong to this worker.
    fn store_own(&mut self) {
        let mut batch = std::mem::take(&mut self.out[self.me]);
        self.store_batch(&batch);
        batch.clear();
        self.out[self.me] = batch;
    }

    fn store_batch(&mut self, batch: &Batch) {
        let words = self.layout.words;
        if self.sleep.is_some() {
            let states = batch.states.chunks_exact(words).zip(&batch.origins);
            states.zip(&batch.asleep).for_each(|((state, origin), asleep)| {
                self.store_asleep(state, *origin, *asleep);
            });
            return;
        }
        for (origins, states) in batch.origins.chunks(BATCH).zip(batch.states.chunks(BATCH * words)) {
            let touched = origins.iter().fold(0, |sum, o| sum ^ self.store.touch(o.hash));
            std::hint::black_box(touched);
            for (origin, state) in origins.iter().zip(states.chunks_exact(words)) {
                self.store_new(state, *origin);
            }
        }
    }

    /// Stores a state with its sleep set.
    fn store_asleep(&mut self, state: &[u64], origin: Origin, asleep: u64) {
        let number = self.store.len();
        self.store_new(state, origin);
        let sleep = self.sleep.as_mut().expect("only a search with sleep sets has them");
        match self.store.len() > number {
            true => sleep.meet(&self.store, number as u32, asleep),
            false => sleep.meet_again(&self.store, state, origin.hash, asleep),
        }
    }

    /// Stores a state and, if it is new and the step to it was visible or a fault, evaluates the properties.
    #[inline]
    pub(super) fn store_new(&mut self, state: &[u64], origin: Origin) {
        let Some(number) = self.store.insert(state, origin.hash, origin.parent) else { return };
        if self.shared.options.order == Order::DepthFirst {
            self.stack.push(number);
        }
        if origin.flags != 0 {
            self.examine(number, state, origin.flags);
        }
    }

    #[cold]
    fn examine(&mut self, number: u32, state: &[u64], flags: u32) {
        let global = number * self.shared.workers as u32 + self.me as u32;
        let mut n = 0;
        while n < self.deciding.len() {
            let property = self.deciding[n];
            let violated = match &self.shared.task.properties[property].kind {
                PropertyKind::Never(_) => {
                    let code = self.shared.code;
                    let holds = formula_holds(code, &self.layout, property, state, &mut self.eval_stack);
                    if holds.is_none() {
                        let span = self.shared.task.properties[property].span;
                        self.summary.limit = Some((Limit::Overflow, span));
                    }
                    holds == Some(true)
                }
                PropertyKind::Assertions => flags & FAULT != 0,
                PropertyKind::NoDeadlock | PropertyKind::Finally(..) => false,
            };
            if violated {
                self.shared.decide(property, global);
                self.deciding.swap_remove(n);
            } else {
                n += 1;
            }
        }
    }

    /// Posts each successor owned by another worker to the mail of its owner.
    pub(super) fn post(&mut self) {
        for owner in (0..self.shared.workers).filter(|&w| w != self.me) {
            self.shared.mail[owner].lock().expect("no worker panicked").append(&mut self.out[owner]);
        }
        self.made = 0;
    }

    /// Stores the successors posted to this worker.
    pub(super) fn receive(&mut self) {
        if self.shared.workers > 1 {
            let batch = std::mem::take(&mut *self.shared.mail[self.me].lock().expect("no worker panicked"));
            self.store_batch(&batch);
        }
    }

    /// Publishes the counters of this worker, and polls the limits.
    pub(super) fn report_and_poll(&mut self) {
        let shared = self.shared;
        let frontier = self.frontier();
        let in_level = match shared.options.order {
            _ if self.woken() > 0 => true,
            Order::DepthFirst => !self.stack.is_empty(),
            Order::BreadthFirst => self.cursor < self.level_end,
        };
        shared.busy.fetch_add(usize::from(in_level), Ordering::Relaxed);
        shared.pending.fetch_add(usize::from(frontier > 0), Ordering::Relaxed);
        let asleep = self.sleep.as_ref().map_or(0, Sleep::bytes);
        let bytes = (self.store.bytes() + asleep) as u64 + self.stack.len() as u64 * 4;
        self.peak = self.peak.max(bytes);
        shared.bytes[self.me].store(bytes, Ordering::Relaxed);
        // An upper bound on the memory of the next round, which may add states and may move all states to a wider layout.
        let more_asleep = self.sleep.as_ref().map_or(0, |sleep| sleep.bytes_to_grow(SUCCESSORS));
        let more = self.store.bytes_to_grow(SUCCESSORS) + self.bytes_to_widen() + more_asleep;
        shared.more[self.me].store(more as u64, Ordering::Relaxed);
        shared.states[self.me].store(self.store.len() as u64, Ordering::Relaxed);
        let sum = |counters: &[AtomicU64]| counters.iter().map(|c| c.load(Ordering::Relaxed)).sum::<u64>();
        let used = sum(&shared.bytes);
        if self.me == 0 {
            shared.progress.states.store(sum(&shared.states), Ordering::Relaxed);
            shared.progress.frontier.store(frontier as u64 * shared.workers as u64, Ordering::Relaxed);
            shared.progress.bytes.store(used, Ordering::Relaxed);
        }
        let needed = used + sum(&shared.more);
        if self.me == 0 && shared.limits.for_endless().is_some_and(|most| needed > most.max(self.endless)) {
            self.endless = 2 * needed;
            if divergence::is_endless(shared.task.program, shared.code, &self.sizes) {
                shared.stop_because(Reason::Endless);
            }
        }
        match shared.limits.exceeded_with(used, sum(&shared.more)) {
            Some(reason) => shared.stop_because(reason),
            None => {
                self.store.make_room(SUCCESSORS, &mut || shared.goes_on());
                if let Some(sleep) = &mut self.sleep {
                    sleep.make_room(&self.store, SUCCESSORS, &mut || shared.goes_on());
                }
            }
        }
        if shared.task.is_heard() {
            self.deciding.retain(|&n| !shared.task.is_settled(n));
            if self.me == 0 && shared.is_settled() {
                shared.stop_because(Reason::Cancelled);
            }
        }
        if self.store.len() as u64 * shared.workers as u64 > u64::from(u32::MAX / 2) {
            shared.stop_because(Reason::Memory(used));
        }
    }

    /// The memory that the states of this worker need in the layout that satisfies the requested growth, in bytes.
    fn bytes_to_widen(&self) -> usize {
        let growth = self.shared.growth();
        if growth.is_empty() {
            return 0;
        }
        let mut sizes = self.sizes.clone();
        growth.iter().for_each(|growth| sizes.grow(self.shared.code, *growth));
        self.store.bytes_to_repack(Layout::words(self.shared.code, &sizes))
    }

    /// Adopts a wider layout together with all workers, if growth was requested. Returns whether it was; `None` if a worker panicked.
    fn grow(&mut self) -> Option<bool> {
        let growth = self.shared.growth();
        if growth.is_empty() {
            return Some(false);
        }
        // No worker may stop the search while others still test whether to grow.
        self.shared.gate.wait()?;
        let wider = self.widened(&growth);
        if self.shared.gate.wait()? {
            self.shared.growth.lock().expect("no worker panicked").clear();
        }
        self.adopt(wider);
        Some(true)
    }

    /// A wider layout with all states repacked. If a limit is reached, returns `None`, and the search stops.
    pub(super) fn widened(&mut self, growth: &[Growth]) -> Option<Wider> {
        let (shared, code) = (self.shared, self.shared.code);
        let mut go_on = || shared.goes_on();
        let mut sizes = self.sizes.clone();
        growth.iter().for_each(|growth| sizes.grow(code, *growth));
        let layout = Layout::new(code, &sizes);
        if let Some(sleep) = &mut self.sleep
            && !sleep.repack(code, &self.store, &self.layout, &layout, &mut go_on)
        {
            return None;
        }
        let store = self.store.repacked(code, &self.layout, &layout, &mut go_on)?;
        if let Some(sleep) = &mut self.sleep
            && !sleep.rehash(&store, &mut go_on)
        {
            return None;
        }
        Some(Wider { sizes, layout, store })
    }

    /// Adopts a wider layout unless the search stops: traces lead through the states of all workers, so all must have the same layout.
    pub(super) fn adopt(&mut self, wider: Option<Wider>) {
        let Some(wider) = wider.filter(|_| !self.shared.stop.load(Ordering::Relaxed)) else { return };
        self.store.adopt(wider.store);
        self.layout = wider.layout;
        self.sizes = wider.sizes;
    }
}

/// A wider layout, and the states of a worker repacked for it.
pub(super) struct Wider {
    sizes: Sizes,
    layout: Layout,
    store: Store,
}

/// Whether a formula holds; `None` if a value in it does not fit into 64 bits. It does not hold if it divides by zero or shifts out of range.
fn formula_holds(
    code: &Code,
    layout: &Layout,
    property: usize,
    state: &[u64],
    stack: &mut Vec<i64>,
) -> Option<bool> {
    let formula = code.formulas[property].as_ref().expect("this property has a formula");
    match formula.eval(&layout.slots, state, stack) {
        Ok(value) => Some(value != 0),
        Err(EvalError::DivisionByZero | EvalError::ShiftOutOfRange) => Some(false),
        Err(EvalError::Overflow) => None,
    }
}
