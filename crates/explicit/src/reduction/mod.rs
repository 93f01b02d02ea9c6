//! Partial order reductions: which steps are left out because their order does not matter.
//!
//! [`Reduction::Local`] is built into the steps themselves (`expand.rs`); the others decide state by state, from static [summaries](summary)
//! of what threads may still do, which steps are enough:
//!
//! * [`ample`]: the steps of one thread, or some of them (THESIS16 s.2.2.2, Algorithm 2.2, conditions C0 to C3);
//! * [`persistent`]: the steps of the smallest group of threads that nobody outside can disturb (s.4.1);
//! * [`sleep`]: of these, the ones that were not taken already, in another order (s.4.1);
//! * [`cartesian`]: for each thread everything up to the first step that may depend on others, in one go (s.4.3.2).
//!
//! **What is preserved.** All these choices satisfy one condition (C1, persistence): whatever threads do without taking a chosen step is
//! independent of all chosen steps. By it alone every state without successors is found, hence all deadlocks and final states. With a bound on how long a
//! step can be put off (C3) every execution is a part of one that is explored, up to the order of independent steps, so a fault is found too.
//! What a `forbid` or `invariant` looks at needs more (C2): `ample` never chooses visible steps unless it takes all;
//! `persistent` takes visible steps to depend on each other; `cartesian` ends a prefix with a visible step. So the explored execution shows
//! the property the same values in the same order.
//!
//! **The cycle proviso.** Steps are not put off forever, because no choice but "all" contains an edge of a thread that may close a cycle of its
//! control-flow graph. A run of chosen steps moves every thread along a graph without cycles and otherwise only flushes what is in buffers,
//! so it ends. The search order and the number of workers play no role in this, nor does symmetry: an automorphism maps each of these edges to one.
//!
//! **What is assumed.** Nothing about programs: with loops, locks, indivisible steps, faults and unbounded values all this holds. Where
//! a step is cut off by a limit of the engine, or a `*` is sampled, all steps are taken. What a reduced search has seen is no inductive
//! invariant. With persistent sets the checker of certificates can tell that it is enough all the same, because it computes these sets
//! again; with the other choices a proof stands on the engine, and is confirmed only where the reference semantics can be explored too.

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
pub use summary::{Footprint, Place, Summaries, UNLOCK, order};

/// So many threads have few interleavings.
const FEW_THREADS: usize = 2;

/// Which interleavings a search leaves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reduction {
    /// Local events first where there are at most two threads, which gives the shortest counterexamples; persistent sets where there are more,
    /// because the interleavings of many threads are what makes a search long.
    Suited,
    /// None: every interleaving is explored.
    None,
    /// Ample sets: steps of one thread that nobody can disturb.
    Ample,
    /// Local events first: a thread goes on until it does something that others can see.
    #[default]
    Local,
    /// Persistent sets: steps of a group of threads that nobody outside can disturb.
    Persistent,
    /// Persistent sets, and sleep sets: steps that were taken already, in another order, are not taken again.
    Sleep,
    /// Cartesian: each thread goes on until its steps may depend on those of others, and states in between are not stored.
    Cartesian,
    /// Dynamic: one execution of each trace, and no states are stored. Only for programs all of whose executions end.
    Dynamic,
}

impl Reduction {
    /// All reductions of a search that stores states: they decide what is decided without them.
    pub const ALL: [Reduction; 6] = [
        Reduction::None,
        Reduction::Ample,
        Reduction::Local,
        Reduction::Persistent,
        Reduction::Sleep,
        Reduction::Cartesian,
    ];

    /// Whether it decides by what threads may still do, or have done.
    pub fn needs_summaries(self) -> bool {
        !matches!(self, Reduction::None | Reduction::Local)
    }

    /// Whether the states it finds are a proof that can be checked.
    pub fn has_proof(self) -> bool {
        matches!(self, Reduction::None | Reduction::Local | Reduction::Persistent)
    }

    /// This one, or another one if there are more threads than persistent sets are computed for, or if buffers are bounded: a flush makes room
    /// for a store that was cut off, which the checker of certificates, who knows no bound, does not see.
    pub fn suited(self, threads: usize, bounded: bool) -> Self {
        let fits = !bounded && threads <= MOST_THREADS;
        match self {
            Reduction::Suited if fits && threads > FEW_THREADS => Reduction::Persistent,
            Reduction::Suited => Reduction::Local,
            Reduction::Persistent if !fits => Reduction::Local,
            _ => self,
        }
    }

    /// This one, or another one if it does not know what threads may still do because buffers forget or versions have no values.
    pub fn without_summaries(self) -> Self {
        if self.needs_summaries() { Reduction::Local } else { self }
    }
}

/// What a reduction has to know about a thread in a state.
#[derive(Clone, Copy, Debug, Default)]
struct ThreadView {
    place: Place,
    /// What flushes of anything in the buffer touch.
    buffered: Footprint,
    /// What flushes that are possible at once touch.
    heads: Footprint,
    /// Whether there is anything in the buffer.
    pending: bool,
}

/// What a reduction has to know about a state.
#[derive(Debug, Default)]
struct View {
    /// Who holds the lock: 0 for nobody, else the thread plus 1.
    holder: usize,
    threads: Vec<ThreadView>,
}

impl View {
    /// Looks at a state.
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

/// The kinds of entries that may leave a buffer at once, given all its entries: the oldest, and under PSO all before the first barrier.
fn heads(code: &Code, t: usize, entries: impl Iterator<Item = u64>) -> impl Iterator<Item = u64> {
    let most = if code.model == fencewright_program::MemoryModel::Pso { usize::MAX } else { 1 };
    let barrier = code.threads[t].barrier();
    entries.take(most).take_while(move |&kind| kind != barrier)
}

/// A reduction at work.
pub enum Reducer<'c> {
    /// Ample sets.
    Ample(Ample<'c>),
    /// Persistent sets.
    Persistent(Persistent<'c>),
    /// Cartesian vectors.
    Cartesian(Cartesian<'c>),
}

impl<'c> Reducer<'c> {
    /// What decides about the states of a program, one by one; nothing if the steps themselves do, or if it matters how a state was reached.
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

    /// Gives enough steps from `state` to the sink, as [`Expander::expand`] does with all steps.
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

/// Tries a choice of steps: nothing if it has none, or if one of them was cut off, so that the choice may not be good enough.
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
