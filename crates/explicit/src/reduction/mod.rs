//! Partial order reductions: steps whose order does not matter are not explored in all orders.
//!
//! [`Reduction::Local`] is built into the transition relation (`expand.rs`). The other reductions choose in each state a subset of the steps that
//! suffices, based on static [summaries](summary) of the steps that threads may still take:
//!
//! * [`ample`]: the steps of one thread, or some of them (THESIS16 s.2.2.2, Algorithm 2.2, conditions C0 to C3);
//! * [`persistent`]: the steps of the smallest set of threads that no other thread can disturb (s. 4.1);
//! * [`sleep`]: of a persistent set, the steps that were not already taken in another order (s. 4.1);
//! * [`cartesian`]: for each thread, all steps up to the first that may depend on others, in one go (s. 4.3.2).
//!
//! **What is preserved.** All choices satisfy condition C1 (persistence): all steps that threads may take without taking a chosen one are independent
//! of all chosen steps. C1 alone preserves all states without successors, hence all deadlocks and final states. With a bound on how long a step can
//! be postponed (C3), every execution is part of an explored one, up to the order of independent steps, so faults are preserved too. The formulas of
//! `forbid` and `invariant` require more (C2): `ample` never chooses visible steps unless it takes all steps; `persistent` treats visible steps as
//! dependent on each other; `cartesian` ends a prefix with a visible step. So formulas take the same values in the same order in the explored
//! execution.
//!
//! **The cycle proviso.** No step is postponed forever, because no choice of `ample`, `persistent` or `sleep` but the full one contains an edge that
//! may close a cycle in a control-flow graph. A run of chosen steps moves every thread along an acyclic graph and otherwise only flushes buffers, so
//! it terminates. This depends neither on the search order nor on the number of workers nor on symmetry: automorphisms map back edges to back edges.
//! In `cartesian`, an edge that may close a cycle ends a prefix.
//!
//! **Assumptions.** None about programs: loops, locks, atomic steps, faults and unbounded values are covered. Where a step reaches a limit of the
//! engine, or a `*` is sampled, all steps are taken (in `cartesian`, a sampled `*` ends a prefix). The states of a reduced search are not an
//! inductive invariant. For persistent sets the checker of certificates can still check that the states suffice, because it recomputes the sets; with
//! the other choices a proof relies on the engine, and is confirmed only if a second search, with persistent sets, yields a certificate, or if the
//! reference semantics can be explored too.

mod ample;
mod cartesian;
mod dependence;
mod parts;
mod persistent;
mod sleep;
mod summary;
#[cfg(test)]
mod tests;

use super::code::Code;
use super::expand::{Expander, Part, Sink, Summary};
use super::layout::{Growth, Layout};
use ample::Ample;
use cartesian::Cartesian;
use parts::MOST_THREADS;
use persistent::Persistent;
pub use sleep::{Sleep, SleepSink};
pub use summary::{Footprint, OBSERVED, Place, Summaries, UNLOCK, order};

/// Maximum number of threads for which [`Reduction::Suited`] is [`Reduction::Local`]: few threads have few interleavings.
const FEW_THREADS: usize = 2;

/// The partial order reduction of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reduction {
    /// Local events first for at most two threads, which gives the shortest counterexamples, and if buffers are bounded or there are too many threads
    /// for persistent sets; otherwise persistent sets, because the number of interleavings dominates.
    Suited,
    /// None: every interleaving is explored.
    None,
    /// Ample sets: steps of one thread that no other thread can disturb.
    Ample,
    /// Local events first: a thread goes on until it takes a step that others can observe.
    #[default]
    Local,
    /// Persistent sets: steps of a set of threads that no other thread can disturb.
    Persistent,
    /// Persistent sets with sleep sets: steps that were already taken in another order are not repeated.
    Sleep,
    /// Cartesian vectors: each thread goes on until its steps may depend on those of others; intermediate states are not stored.
    Cartesian,
    /// Dynamic partial order reduction: explores one execution of each trace (executions that differ only in the order of independent events have the
    /// same trace) and stores no states. It proves only programs whose executions all terminate.
    Dynamic,
}

impl Reduction {
    /// All reductions of a search that stores states; each of them gives the same answers.
    pub const ALL: [Reduction; 6] = [
        Reduction::None,
        Reduction::Ample,
        Reduction::Local,
        Reduction::Persistent,
        Reduction::Sleep,
        Reduction::Cartesian,
    ];

    /// Whether the reduction is based on summaries of the threads. Also true of `Suited`, which may choose such a reduction, and of `Dynamic`.
    pub fn needs_summaries(self) -> bool {
        !matches!(self, Reduction::None | Reduction::Local)
    }

    /// Whether the states found by a search with this reduction are a checkable proof.
    pub fn has_proof(self) -> bool {
        matches!(self, Reduction::None | Reduction::Local | Reduction::Persistent)
    }

    /// This reduction, with `Suited` resolved. `Persistent` is replaced by `Local` if there are more threads than persistent sets support. It is also
    /// replaced if buffers are bounded, because then a flush enables a store that was cut off, and the checker of certificates, whose buffers are
    /// unbounded, does not account for that.
    pub fn suited(self, threads: usize, bounded: bool) -> Self {
        let fits = !bounded && threads <= MOST_THREADS;
        match self {
            Reduction::Suited if fits && threads > FEW_THREADS => Reduction::Persistent,
            Reduction::Suited => Reduction::Local,
            Reduction::Persistent if !fits => Reduction::Local,
            _ => self,
        }
    }

    /// This reduction, or a replacement if it needs summaries, which support neither abstract buffers nor versions.
    pub fn without_summaries(self) -> Self {
        if self.needs_summaries() { Reduction::Local } else { self }
    }
}

/// The facts that reductions need about a thread in a state.
#[derive(Clone, Copy, Debug, Default)]
struct ThreadView {
    place: Place,
    /// The footprint of flushes of all entries in the buffer.
    buffered: Footprint,
    /// The footprint of the flushes that are enabled now, unless another thread holds the lock.
    heads: Footprint,
    /// Whether the buffer is not empty.
    pending: bool,
}

/// The facts that reductions need about a state.
#[derive(Debug, Default)]
struct View {
    /// The holder of the lock: 0 if it is free, otherwise the index of the thread plus 1.
    holder: usize,
    threads: Vec<ThreadView>,
}

impl View {
    /// Computes the view of a state.
    fn look(&mut self, code: &Code, summaries: &Summaries, layout: &Layout, state: &[u64]) {
        self.holder = layout.slots[code.lock()].raw(state) as usize;
        self.threads.clear();
        for t in 0..code.threads.len() {
            let place = *summaries.place(code, layout, state, t);
            let mut view = ThreadView { place, ..ThreadView::default() };
            if let Some(buffer) = layout.buffers.get(t) {
                let count = buffer.count.raw(state) as usize;
                view.pending = count > 0;
                let all = buffer.entries[..count].iter().map(|(kind, _)| kind.raw(state));
                let flushes = &summaries.flushes[t];
                let stores = all.clone().filter(|&kind| kind != code.threads[t].barrier());
                view.buffered =
                    stores.fold(Footprint::default(), |sum, kind| sum.with(flushes[kind as usize]));
                let heads = heads(code, t, all);
                view.heads = heads.fold(Footprint::default(), |sum, kind| sum.with(flushes[kind as usize]));
            }
            self.threads.push(view);
        }
    }

    /// Whether another thread holds the lock.
    fn is_locked_out(&self, t: usize) -> bool {
        self.holder != 0 && self.holder != t + 1
    }
}

/// The kinds of the entries of a buffer that can be flushed now: the oldest one, and under PSO all before the first barrier.
fn heads(code: &Code, t: usize, entries: impl Iterator<Item = u64>) -> impl Iterator<Item = u64> {
    let most = if code.model == fencewright_program::MemoryModel::Pso { usize::MAX } else { 1 };
    let barrier = code.threads[t].barrier();
    entries.take(most).take_while(move |&kind| kind != barrier)
}

/// A reduction that chooses steps state by state.
pub enum Reducer<'c> {
    /// Ample sets.
    Ample(Ample<'c>),
    /// Persistent sets.
    Persistent(Persistent<'c>),
    /// Cartesian vectors.
    Cartesian(Cartesian<'c>),
}

impl<'c> Reducer<'c> {
    /// The reducer for a reduction; `None` for the reductions that are built into the transition relation, for `Sleep`, whose choice depends on how a
    /// state was reached, and for `Suited` and `Dynamic`.
    pub fn new(code: &'c Code, reduction: Reduction) -> Option<Self> {
        let summaries = code.summaries.as_ref()?;
        match reduction {
            Reduction::Suited
            | Reduction::None
            | Reduction::Local
            | Reduction::Sleep
            | Reduction::Dynamic => None,
            Reduction::Ample => Some(Reducer::Ample(Ample::new(code, summaries))),
            Reduction::Persistent => Some(Reducer::Persistent(Persistent::new(code, summaries))),
            Reduction::Cartesian => Some(Reducer::Cartesian(Cartesian::new(code, summaries))),
        }
    }

    /// Passes a sufficient subset of the successors of `state` to the sink; see [`Expander::expand`].
    pub fn expand<S: Sink>(
        &mut self,
        expander: &mut Expander<'_>,
        layout: &Layout,
        state: &[u64],
        sink: &mut S,
    ) -> Result<Summary, Growth> {
        match self {
            Reducer::Ample(ample) => ample.expand(expander, layout, state, sink),
            Reducer::Persistent(persistent) => persistent.expand(expander, layout, state, sink),
            Reducer::Cartesian(cartesian) => cartesian.expand(expander, layout, state, sink),
        }
    }
}

/// Passes the steps of a choice to the sink. Returns `None` if none of them is enabled, or if successors were left out because of a limit, the bound
/// on buffers, or sampling: then the choice may be insufficient.
fn attempt<S: Sink>(
    expander: &mut Expander<'_>,
    layout: &Layout,
    state: &[u64],
    parts: impl IntoIterator<Item = Part>,
    sink: &mut S,
) -> Result<Option<Summary>, Growth> {
    let summary = expander.expand_parts(layout, state, parts, sink)?;
    Ok((summary.moved && summary.is_complete()).then_some(summary))
}
