//! The search: breadth first or depth first, on one or several cores, without recursion.
//!
//! Each worker owns the states whose fixed part (program counters, lock, favourite) hashes to it, so that no two workers access the same table. In a
//! round, every worker expands some of its states and posts successors to their owners. When all have arrived at a [`Gate`], every worker stores the
//! states posted to it. After a second gate, all agree on the next action: the next level, a wider layout, or the end. Breadth-first search proceeds
//! level by level, so the first violation has a shortest trace among those that the reduction leaves.
//!
//! While there is little work, one thread acts for all workers in turn, because most searches end before starting threads pays off. When a state
//! decides a property and a listener has to be notified at once, the worker threads are stopped for a moment, because the execution to this state
//! leads through states of all workers.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use fencewright_program::reference::Limit;
use fencewright_program::{PropertyKind, Span};
use fencewright_verdict::{Limits, Progress, Reason, Task};

use super::Options;
use super::code::Code;
use super::gate::Gate;
use super::layout::{Growth, Layout, Sizes};
use super::mail::{Batch, Origin, VISIBLE, owner};
use super::orbits::Representatives;
use super::store::{NONE, Store, hash};
use super::versions::Renaming;
use super::worker::Worker;

/// The states and facts that a search has collected.
pub struct Found {
    /// For each worker, the states that it owns.
    pub stores: Vec<Store>,
    /// The sizes of all components in the last layout.
    pub sizes: Sizes,
    /// Why the search ended early, if it did.
    pub stopped: Option<Reason>,
    /// Whether some `*` or initial value was tried with samples only.
    pub sampled: bool,
    /// Whether a store was not explored, because of the bound on buffers or because an abstract buffer cut it off.
    pub bounded: bool,
    /// A [`Limit`] that an action or a formula reached, with its source position; `None` if none did.
    pub limit: Option<(Limit, Span)>,
    /// The values of the task's observables in all final states.
    pub finals: BTreeSet<Vec<i64>>,
    /// Peak memory use in bytes.
    pub bytes: u64,
    /// The number of transitions taken; those of a state that is expanded again in a wider layout count once.
    pub transitions: u64,
}

/// A state that decides a property, found by a running search.
pub struct Decided<'a> {
    /// The index of the property in the task.
    pub property: usize,
    /// The global index of the state: its index in the store of its owner, times the number of workers, plus the number of the owner.
    pub state: u32,
    /// For each worker, the states that it owns.
    pub stores: Vec<&'a Store>,
    /// The layout of all stored states.
    pub layout: &'a Layout,
    /// The sizes that the layout was made for.
    pub sizes: &'a Sizes,
    /// Peak memory use so far, in bytes.
    pub bytes: u64,
    /// The number of transitions taken so far.
    pub transitions: u64,
}

/// The data through which workers communicate.
pub(super) struct Shared<'a> {
    pub(super) task: &'a Task<'a>,
    pub(super) code: &'a Code,
    pub(super) options: &'a Options,
    pub(super) limits: &'a Limits,
    pub(super) progress: &'a Progress,
    pub(super) workers: usize,
    pub(super) gate: Gate,
    /// For each worker, the successors that other workers have posted to it.
    pub(super) mail: Vec<Mutex<Batch>>,
    pub(super) growth: Mutex<Vec<Growth>>,
    pub(super) decided: Mutex<Vec<Option<u32>>>,
    pub(super) undecided: AtomicUsize,
    /// Whether a property was decided that has not been reported to the listener yet. Always false without a listener.
    pub(super) news: AtomicBool,
    pub(super) stopped: Mutex<Option<Reason>>,
    pub(super) stop: AtomicBool,
    /// Whether the search is over: no state is left to expand, or the search was stopped.
    pub(super) over: AtomicBool,
    /// The number of workers with states of the current level left to expand.
    pub(super) busy: AtomicUsize,
    /// The number of workers with any states left to expand.
    pub(super) pending: AtomicUsize,
    pub(super) bytes: Vec<AtomicU64>,
    /// The memory that each worker needs for the next round, in bytes.
    pub(super) more: Vec<AtomicU64>,
    pub(super) states: Vec<AtomicU64>,
}

/// Searches from the initial states. An unbounded `*` takes the values in `samples`; the properties for which `known` is true are not checked.
/// `on_decided` is called for each property that a state decides.
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
    let mut crew: Vec<Worker<'_, '_>> =
        (0..workers).map(|me| Worker::new(me, &shared, (&sizes, &layout), samples, known, sampled)).collect();
    match initial {
        Ok(states) => store_initial(code, &layout, &states, &mut crew),
        Err(reason) => shared.stop_because(reason),
    }
    crew.iter_mut().for_each(|worker| worker.level_end = worker.store.len());
    let mut told = known.to_vec();
    let finished = loop {
        match catch_unwind(AssertUnwindSafe(|| shared.one_for_all(&mut crew))) {
            Ok(Pause::Over) => break Some(crew),
            Ok(Pause::News) => {}
            Ok(Pause::Crowd) => {
                let Some(gathered) = in_threads(&shared.gate, crew)? else { break None };
                crew = gathered;
                if shared.over.load(Ordering::Relaxed) {
                    break Some(crew);
                }
            }
            Err(_) => break None,
        }
        shared.tell(&crew, &mut told, on_decided);
    };
    let Some(crew) = finished else {
        // A worker panicked. That is a defect of the engine, which must lead neither to a verdict nor to a hang.
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
        transitions: 0,
    };
    for worker in crew {
        worker.deliver(&mut found);
    }
    found.stopped = shared.stopped.into_inner().expect("no worker panicked");
    Ok(found)
}

/// Stores the initial states, each at the worker that owns it.
fn store_initial(code: &Code, layout: &Layout, states: &[u64], crew: &mut [Worker<'_, '_>]) {
    let workers = crew.len();
    let mut representatives = Representatives::new(code);
    let mut store = |state: &[u64]| {
        let state = representatives.of(layout, state);
        let owner = owner(layout, state, workers);
        crew[owner].store_new(state, Origin { hash: hash(state), parent: NONE, flags: VISIBLE });
    };
    for state in states.chunks_exact(layout.words) {
        match &code.versions {
            None => store(state),
            Some(versions) => {
                let images = Renaming::default().images(versions, (code, layout), state, true, &mut store);
                images.expect("there is room for all versions at the start");
            }
        }
    }
}

/// Runs each worker in a separate thread, until all workers pause; `None` if one of them panicked, an error if not all threads could be started.
fn in_threads<'s, 'a>(gate: &Gate, crew: Vec<Worker<'s, 'a>>) -> Result<Option<Vec<Worker<'s, 'a>>>, Reason> {
    let workers = crew.len();
    let mut started = 0;
    let gathered = std::thread::scope(|scope| {
        let mut handles = Vec::new();
        for worker in crew {
            let thread = std::thread::Builder::new().spawn_scoped(scope, || worker.run());
            // Each worker owns some of the states, so the others would wait forever for a worker whose thread was not started.
            let Ok(thread) = thread else {
                gate.destroy();
                break;
            };
            started += 1;
            handles.push(thread);
        }
        handles.into_iter().map(|h| h.join().ok().flatten()).collect()
    });
    if started < workers {
        return Err(Reason::TooFewThreads { started, wanted: workers });
    }
    Ok(gathered)
}

/// Why a single thread stops acting for all workers.
enum Pause {
    /// The search is over.
    Over,
    /// There is enough work to start worker threads.
    Crowd,
    /// A property was decided, and the listener has to be notified at once.
    News,
}

impl Shared<'_> {
    /// Reports the properties decided since the last call.
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
                transitions: crew.iter().map(|worker| worker.transitions).sum(),
            });
        }
    }

    /// Whether the search is no longer needed, because all open properties have been answered elsewhere. False if the task has no properties or
    /// observes final states.
    pub(super) fn is_settled(&self) -> bool {
        let decided = self.decided.lock().expect("no worker panicked");
        let settled = |(n, state): (usize, &Option<u32>)| state.is_some() || self.task.is_settled(n);
        !decided.is_empty() && self.task.observed.is_empty() && decided.iter().enumerate().all(settled)
    }

    /// Stops the search if a limit is reached. Returns whether the search goes on.
    pub(super) fn goes_on(&self) -> bool {
        let used = self.bytes.iter().map(|bytes| bytes.load(Ordering::Relaxed)).sum();
        if let Some(reason) = self.limits.exceeded(used) {
            self.stop_because(reason);
        }
        !self.stop.load(Ordering::Relaxed)
    }

    pub(super) fn stop_because(&self, reason: Reason) {
        self.stopped.lock().expect("no worker panicked").get_or_insert(reason);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Runs the rounds of all workers in one thread, one worker after the other.
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
            if !growth.is_empty() {
                let wider: Vec<_> = crew.iter_mut().map(|worker| worker.widened(&growth)).collect();
                crew.iter_mut().zip(wider).for_each(|(worker, wider)| worker.adopt(wider));
            }
            if level_done {
                crew.iter_mut().for_each(|worker| worker.level_end = worker.store.len());
            }
            self.growth.lock().expect("no worker panicked").clear();
            if self.news.load(Ordering::Relaxed) {
                return Pause::News;
            }
        }
    }

    /// The requested growth, in an order that all workers agree on; empty if the search is being stopped.
    pub(super) fn growth(&self) -> Vec<Growth> {
        if self.stop.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let mut requests = self.growth.lock().expect("no worker panicked").clone();
        // Requests for buffers that grow together are merged.
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

    /// Records that a state decides a property. The search ends when all properties are decided, unless the task observes final states and wants more
    /// than the first violation. It also ends at the first violation if the task wants no more.
    pub(super) fn decide(&self, property: usize, number: u32) {
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
