//! The search: breadth first or depth first, on one core or several, without recursion.
//!
//! Each worker owns the states whose fixed part (program counters, lock, favourite) hashes to it, so that no two workers ever touch the
//! same table. In a round, every worker expands some of its states and posts successors that belong to others; all wait for each other;
//! every worker stores what was posted to it; all wait again and agree on what comes next: the next level, a wider layout, or the end.
//! Breadth first goes level by level, so the first violation has a shortest trace. While there is little to do, one thread does the work of
//! all workers in turn: most searches end before it pays to start others. When a property is decided and a listener wants to know at once,
//! the worker threads end for a moment, because the execution leads through states of all workers.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use fencewright_program::reference::Limit;
use fencewright_program::{EvalError, Observable, PropertyKind, Quantifier, Span};

use super::code::Code;
use super::divergence;
use super::expand::{Expander, Summary};
use super::gate::Gate;
use super::layout::{Growth, Layout, Sizes};
use super::mail::{Batch, FAULT, Origin, Sorter, VISIBLE, owner};
use super::orbits::Representatives;
use super::store::{NONE, Store, hash};
use super::versions::Renaming;
use super::{Options, Order};
use crate::task::{Limits, Progress, Reason, Task};

/// How many states a worker expands in a round.
const ROUND: usize = 4096;
/// How many successors are looked up together.
const BATCH: usize = 64;
/// A round also ends when it has made so many successors: a single state may have tens of thousands.
const SUCCESSORS: usize = 1 << 15;

/// What the search found.
pub struct Found {
    /// The states each worker stored.
    pub stores: Vec<Store>,
    /// How large everything became.
    pub sizes: Sizes,
    /// Why the search ended early, if it did.
    pub stopped: Option<Reason>,
    /// Whether a `*` was tried with samples only.
    pub sampled: bool,
    /// Whether the bound on buffers was reached.
    pub bounded: bool,
    /// An action whose result the explicit engine cannot represent.
    pub limit: Option<(Limit, Span)>,
    /// The values of the observed parts in all final states.
    pub finals: BTreeSet<Vec<i64>>,
    /// The most bytes in use at any time.
    pub bytes: u64,
}

/// A state that decides a property, among the states found so far.
pub struct Decided<'a> {
    /// The property.
    pub property: usize,
    /// The state.
    pub state: u32,
    /// The states each worker stored.
    pub stores: Vec<&'a Store>,
    /// Their layout.
    pub layout: &'a Layout,
    /// What it was made for.
    pub sizes: &'a Sizes,
    /// The most bytes in use so far.
    pub bytes: u64,
}

/// What all workers share.
struct Shared<'a> {
    task: &'a Task<'a>,
    code: &'a Code,
    options: &'a Options,
    limits: &'a Limits,
    progress: &'a Progress,
    workers: usize,
    gate: Gate,
    /// Successors posted to each worker.
    mail: Vec<Mutex<Batch>>,
    growth: Mutex<Vec<Growth>>,
    decided: Mutex<Vec<Option<u32>>>,
    undecided: AtomicUsize,
    /// Whether a property was decided that the listener, if there is one, has not heard of yet.
    news: AtomicBool,
    stopped: Mutex<Option<Reason>>,
    stop: AtomicBool,
    /// Whether the search is over.
    over: AtomicBool,
    /// How many workers have states of the current level left to expand, and how many have any states left.
    busy: AtomicUsize,
    pending: AtomicUsize,
    bytes: Vec<AtomicU64>,
    /// How many bytes each worker is about to need.
    more: Vec<AtomicU64>,
    states: Vec<AtomicU64>,
}

/// Searches from the initial states; an unbounded `*` takes the values in `samples`, and properties in `known` are not looked at.
/// `on_decided` hears of each property that a state decides.
#[allow(clippy::too_many_arguments)]
pub fn search(
    task: &Task<'_>,
    code: &Code,
    options: &Options,
    samples: &[i64],
    known: &[bool],
    limits: &Limits,
    progress: &Progress,
    on_decided: &mut dyn FnMut(&Decided<'_>),
) -> Result<Found, Reason> {
    let workers = options.workers.max(1);
    let shared = Shared {
        task,
        code,
        options,
        limits,
        progress,
        workers,
        gate: Gate::new(workers),
        mail: (0..workers).map(|_| Mutex::default()).collect(),
        growth: Mutex::default(),
        decided: Mutex::new(known.iter().map(|&known| known.then_some(NONE)).collect()),
        undecided: AtomicUsize::new(known.iter().filter(|&&known| !known).count()),
        news: AtomicBool::new(false),
        stopped: Mutex::new(None),
        stop: AtomicBool::new(false),
        over: AtomicBool::new(false),
        busy: AtomicUsize::new(0),
        pending: AtomicUsize::new(0),
        bytes: (0..workers).map(|_| AtomicU64::new(0)).collect(),
        more: (0..workers).map(|_| AtomicU64::new(0)).collect(),
        states: (0..workers).map(|_| AtomicU64::new(0)).collect(),
    };
    let (sizes, layout, initial, sampled) = super::initial::states(task, code, samples, limits);
    let mut crew: Vec<Worker<'_, '_>> = (0..workers)
        .map(|me| Worker {
            me,
            shared: &shared,
            sizes: sizes.clone(),
            layout: layout.clone(),
            store: Store::new(layout.words),
            expander: Expander::new(code, samples, options.buffer_bound),
            representatives: Representatives::new(code),
            renaming: Renaming::default(),
            stack: Vec::new(),
            cursor: 0,
            level_end: 0,
            out: (0..workers).map(|_| Batch::default()).collect(),
            made: 0,
            deciding: (0..task.properties.len()).filter(|&n| !known[n]).collect(),
            eval_stack: Vec::new(),
            summary: Summary { sampled, ..Summary::default() },
            finals: BTreeSet::new(),
            peak: 0,
            endless: 0,
        })
        .collect();
    match initial {
        Ok(states) => {
            let mut representatives = Representatives::new(code);
            let mut store = |state: &[u64]| {
                let state = representatives.of(&layout, state);
                let owner = owner(&layout, state, workers);
                crew[owner].store_new(state, Origin { hash: hash(state), parent: NONE, flags: VISIBLE });
            };
            for state in states.chunks_exact(layout.words) {
                match &code.versions {
                    None => store(state),
                    Some(versions) => {
                        let images =
                            Renaming::default().images(versions, (code, &layout), state, true, &mut store);
                        images.expect("there is room for all versions at the start");
                    }
                }
            }
        }
        Err(reason) => shared.stop_because(reason),
    }
    crew.iter_mut().for_each(|worker| worker.level_end = worker.store.len());
    let mut told = known.to_vec();
    let finished = loop {
        match catch_unwind(AssertUnwindSafe(|| shared.one_for_all(&mut crew))) {
            Ok(Pause::Over) => break Some(crew),
            Ok(Pause::News) => {}
            Ok(Pause::Crowd) => {
                let gathered: Option<Vec<_>> = std::thread::scope(|scope| {
                    let handles: Vec<_> =
                        crew.into_iter().map(|worker| scope.spawn(|| worker.run())).collect();
                    handles.into_iter().map(|h| h.join().ok().flatten()).collect()
                });
                match gathered {
                    Some(gathered) => crew = gathered,
                    None => break None,
                }
                if shared.over.load(Ordering::Relaxed) {
                    break Some(crew);
                }
            }
            Err(_) => break None,
        }
        shared.tell(&crew, &mut told, on_decided);
    };
    let Some(crew) = finished else {
        // A worker panicked: a defect of this engine, which must not become a verdict or a hang.
        return Err(Reason::Contradiction("the explicit search failed".into()));
    };
    shared.tell(&crew, &mut told, on_decided);
    let mut found = Found {
        stores: Vec::new(),
        sizes: crew[0].sizes.clone(),
        stopped: None,
        sampled: false,
        bounded: false,
        limit: None,
        finals: BTreeSet::new(),
        bytes: 0,
    };
    for worker in crew {
        found.sampled |= worker.summary.sampled;
        found.bounded |= worker.summary.bounded;
        found.limit = found.limit.or(worker.summary.limit);
        found.bytes += worker.peak;
        found.finals.extend(worker.finals);
        found.stores.push(worker.store);
    }
    found.stopped = shared.stopped.into_inner().expect("no worker panicked");
    Ok(found)
}

/// Why one thread stops doing the work of all.
enum Pause {
    /// The search is over.
    Over,
    /// There is enough work to start more threads.
    Crowd,
    /// A property was decided, and a listener wants to know at once.
    News,
}

impl Shared<'_> {
    /// Reports the properties that have been decided since the last call.
    fn tell(&self, crew: &[Worker<'_, '_>], told: &mut [bool], on_decided: &mut dyn FnMut(&Decided<'_>)) {
        self.news.store(false, Ordering::Relaxed);
        let decided = self.decided.lock().expect("no worker panicked").clone();
        for (property, state) in decided.into_iter().enumerate() {
            let Some(state) = state.filter(|_| !told[property]) else { continue };
            told[property] = true;
            on_decided(&Decided {
                property,
                state,
                stores: crew.iter().map(|worker| &worker.store).collect(),
                layout: &crew[0].layout,
                sizes: &crew[0].sizes,
                bytes: crew.iter().map(|worker| worker.peak).sum(),
            });
        }
    }

    /// Whether every open property has got its verdict elsewhere, so that the search is no longer needed.
    fn is_settled(&self) -> bool {
        let decided = self.decided.lock().expect("no worker panicked");
        let settled = |(n, state): (usize, &Option<u32>)| state.is_some() || self.task.is_settled(n);
        !decided.is_empty() && self.task.observed.is_empty() && decided.iter().enumerate().all(settled)
    }

    fn stop_because(&self, reason: Reason) {
        self.stopped.lock().expect("no worker panicked").get_or_insert(reason);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// One thread does the work of all workers in turn.
    fn one_for_all(&self, crew: &mut [Worker<'_, '_>]) -> Pause {
        let enough = if self.workers == 1 { usize::MAX } else { self.options.threads_from };
        loop {
            let waiting: usize = crew.iter().map(Worker::frontier).sum();
            if waiting >= enough {
                return Pause::Crowd;
            }
            for worker in crew.iter_mut() {
                worker.expand_some();
                worker.post();
            }
            for worker in crew.iter_mut() {
                worker.receive();
                worker.report_and_poll();
            }
            let level_done = self.busy.swap(0, Ordering::Relaxed) == 0;
            let all_done = self.pending.swap(0, Ordering::Relaxed) == 0;
            let growth = self.growth();
            if growth.is_empty() && (self.stop.load(Ordering::Relaxed) || all_done) {
                return Pause::Over;
            }
            for worker in crew.iter_mut() {
                if !growth.is_empty() {
                    worker.widen(&growth);
                }
                if level_done {
                    worker.level_end = worker.store.len();
                }
            }
            self.growth.lock().expect("no worker panicked").clear();
            if self.news.load(Ordering::Relaxed) {
                return Pause::News;
            }
        }
    }

    /// What did not fit, in an order that all workers agree on; empty if the search is to stop anyway.
    fn growth(&self) -> Vec<Growth> {
        if self.stop.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let mut requests = self.growth.lock().expect("no worker panicked").clone();
        // Buffers that grow together are asked for once.
        let first = |thread: u32| self.code.orbits.alike_threads(thread as usize)[0] as u32;
        requests.iter_mut().for_each(|growth| match growth {
            Growth::Buffer(thread) | Growth::BufferValue(thread, _) => *thread = first(*thread),
            Growth::Value(..) => {}
        });
        requests.sort_by_key(|growth| match *growth {
            Growth::Value(slot, value) => (0, slot, value),
            Growth::Buffer(thread) => (1, thread, 0),
            Growth::BufferValue(thread, value) => (2, thread, value),
        });
        requests.dedup();
        requests
    }

    /// Notes that a state decides a property; the search ends when all are decided.
    fn decide(&self, property: usize, number: u32) {
        let mut decided = self.decided.lock().expect("no worker panicked");
        if decided[property].is_none() {
            decided[property] = Some(number);
            self.news.store(self.task.is_heard(), Ordering::Relaxed);
            let undecided = self.undecided.fetch_sub(1, Ordering::Relaxed) - 1;
            if undecided == 0 && (self.task.observed.is_empty() || self.task.first_violation) {
                self.stop.store(true, Ordering::Relaxed);
            }
            let exists = PropertyKind::is_existence(&self.task.properties[property].kind);
            if self.task.first_violation && undecided > 0 && !exists {
                self.stop_because(Reason::Cancelled);
            }
        }
    }
}

/// One worker.
struct Worker<'a, 's> {
    me: usize,
    shared: &'s Shared<'a>,
    sizes: Sizes,
    layout: Layout,
    store: Store,
    expander: Expander<'s>,
    representatives: Representatives<'s>,
    renaming: Renaming,
    /// Depth first: states not yet expanded.
    stack: Vec<u32>,
    /// Breadth first: the next state to expand, and the end of the current level.
    cursor: usize,
    level_end: usize,
    out: Vec<Batch>,
    /// Successors made in this round.
    made: usize,
    /// Properties that are not decided yet, as far as this worker knows.
    deciding: Vec<usize>,
    eval_stack: Vec<i64>,
    summary: Summary,
    finals: BTreeSet<Vec<i64>>,
    peak: u64,
    /// From how many bytes on it is to be looked at again whether the search can end.
    endless: u64,
}

impl Worker<'_, '_> {
    /// Works until the threads have a reason to end; `None` if this or another worker panicked.
    fn run(self) -> Option<Self> {
        let gate = &self.shared.gate;
        let result = catch_unwind(AssertUnwindSafe(|| self.rounds()));
        if result.is_err() {
            gate.destroy();
        }
        result.ok().flatten()
    }

    /// Works until the search is over, or until there is something to tell.
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
                // No worker may start another round, and change the counters, while others still read them.
                self.shared.gate.wait()?;
                self.shared.over.store(true, Ordering::Relaxed);
                return Some(self);
            }
            // All workers have read the counters. None writes them before all have come to the next round.
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

    /// How many states wait to be expanded.
    fn frontier(&self) -> usize {
        match self.shared.options.order {
            Order::DepthFirst => self.stack.len(),
            Order::BreadthFirst => self.store.len() - self.cursor,
        }
    }

    /// Expands states until the round is over.
    fn expand_some(&mut self) {
        let depth_first = self.shared.options.order == Order::DepthFirst;
        // A single worker is strictly depth first: a state's successors are stored before the next state is taken.
        let batch = if depth_first { 1 } else { BATCH };
        for _ in 0..ROUND {
            if self.made >= SUCCESSORS || self.shared.stop.load(Ordering::Relaxed) {
                break;
            }
            let number = match depth_first {
                true => match self.stack.last() {
                    Some(&number) => number,
                    None => break,
                },
                false if self.cursor < self.level_end => self.cursor as u32,
                false => break,
            };
            if !self.expand(number) {
                break;
            }
            if !depth_first {
                self.cursor += 1;
            }
            if self.out[self.me].origins.len() >= batch {
                self.store_own();
            }
        }
        self.store_own();
    }

    /// Expands one state; false if it must be done again in a wider layout.
    fn expand(&mut self, number: u32) -> bool {
        let parent = number * self.shared.workers as u32 + self.me as u32;
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
        let expanded = self.expander.expand(&self.layout, state, &mut sorter);
        let summary = match expanded.and_then(|summary| sorter.growth.map_or(Ok(summary), Err)) {
            Ok(summary) => summary,
            Err(growth) => {
                self.shared.growth.lock().expect("no worker panicked").push(growth);
                return false;
            }
        };
        if self.shared.options.order == Order::DepthFirst {
            self.stack.pop();
        }
        self.summary.sampled |= summary.sampled;
        self.summary.bounded |= summary.bounded;
        self.summary.limit = self.summary.limit.or(summary.limit);
        if !summary.moved {
            self.at_rest(number, parent, summary);
        }
        true
    }

    /// A state without successors: final, deadlocked, or stopped by a fault or a limit.
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
        for (origins, states) in batch.origins.chunks(BATCH).zip(batch.states.chunks(BATCH * words)) {
            let touched = origins.iter().fold(0, |sum, o| sum ^ self.store.touch(o.hash));
            std::hint::black_box(touched);
            for (origin, state) in origins.iter().zip(states.chunks_exact(words)) {
                self.store_new(state, *origin);
            }
        }
    }

    /// Stores a state and, if it is new, asks the properties about it.
    #[inline]
    fn store_new(&mut self, state: &[u64], origin: Origin) {
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

    /// Posts the successors that belong to others.
    fn post(&mut self) {
        for owner in (0..self.shared.workers).filter(|&w| w != self.me) {
            self.shared.mail[owner].lock().expect("no worker panicked").append(&mut self.out[owner]);
        }
        self.made = 0;
    }

    /// Stores the successors that others have posted to this worker.
    fn receive(&mut self) {
        if self.shared.workers > 1 {
            let batch = std::mem::take(&mut *self.shared.mail[self.me].lock().expect("no worker panicked"));
            self.store_batch(&batch);
        }
    }

    /// Tells the others how far this worker is, and looks at the limits.
    fn report_and_poll(&mut self) {
        let shared = self.shared;
        let frontier = self.frontier();
        let in_level = match shared.options.order {
            Order::DepthFirst => !self.stack.is_empty(),
            Order::BreadthFirst => self.cursor < self.level_end,
        };
        shared.busy.fetch_add(usize::from(in_level), Ordering::Relaxed);
        shared.pending.fetch_add(usize::from(frontier > 0), Ordering::Relaxed);
        let bytes = self.store.bytes() as u64 + self.stack.len() as u64 * 4;
        self.peak = self.peak.max(bytes);
        shared.bytes[self.me].store(bytes, Ordering::Relaxed);
        // What the next round may need: more states, or all of them in a wider layout.
        let more = self.store.bytes_to_grow(SUCCESSORS) + self.bytes_to_widen();
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
            None => self.store.make_room(SUCCESSORS),
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

    /// How many bytes all states take in the layout that makes room for what did not fit.
    fn bytes_to_widen(&self) -> usize {
        let growth = self.shared.growth();
        if growth.is_empty() {
            return 0;
        }
        let mut sizes = self.sizes.clone();
        growth.iter().for_each(|growth| sizes.grow(self.shared.code, *growth));
        self.store.len() * Layout::words(self.shared.code, &sizes) * 8
    }

    /// Makes room for what did not fit, together with all workers; false if everything fitted.
    fn grow(&mut self) -> Option<bool> {
        let growth = self.shared.growth();
        if growth.is_empty() {
            return Some(false);
        }
        self.widen(&growth);
        if self.shared.gate.wait()? {
            self.shared.growth.lock().expect("no worker panicked").clear();
        }
        Some(true)
    }

    /// Goes over to a wider layout.
    fn widen(&mut self, growth: &[Growth]) {
        growth.iter().for_each(|growth| self.sizes.grow(self.shared.code, *growth));
        let wider = Layout::new(self.shared.code, &self.sizes);
        self.store.repack(self.shared.code, &self.layout, &wider);
        self.layout = wider;
    }
}

/// Whether a formula holds; `None` if its value does not fit 64 bits.
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
