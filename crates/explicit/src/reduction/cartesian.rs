//! Cartesian vectors (THESIS16 s. 4.3.2, Figs. 4.5 and 4.6): every thread runs on its own until its steps may depend on those of others.
//!
//! A cartesian vector has a prefix of an execution for each thread such that only the last steps of two prefixes may depend on each other. From a
//! state with such a vector it suffices to explore one successor per prefix, and the states inside the prefixes are not stored. Proof: take any
//! execution from the state. If some thread completes its prefix, consider the first thread that does. All steps that other threads have taken by
//! then are independent of this prefix, so the prefix can be moved to the front. If no thread completes its prefix, all threads can complete their
//! prefixes afterwards, and the property has observed nothing yet, because visible steps end a prefix. Then the prefix of the thread that takes the
//! first step can be moved to the front. Either way the remaining execution is shorter, so no step is postponed forever. No cycle proviso is needed:
//! a prefix ends with a step that may close a cycle, so it is finite.
//!
//! If a thread branches, its prefix is a tree. Edges and flushes of a thread are separate processes; the prefix of the flushes is one flush. A store
//! into an empty buffer ends a prefix: it enables a flush, which would belong to no prefix. For a blocked thread, the footprint of its blocked steps
//! counts. While a thread holds the lock, no step of another thread depends on a step of the holder other than the release of the lock.
//!
//! Prefixes are computed thread by thread. A prefix that has been computed counts with the footprint of its steps, any other with everything that its
//! thread may still do. So in Fig. 4.5 the prefix of the first thread ends at its first store, because the second thread will load the stored
//! variable, and the prefix of the second thread extends to this load, as the text of THESIS16 says.

use fencewright_program::MemoryModel;

use super::View;
use super::summary::{ACCESS, Footprint, LOCK, Place, Summaries, UNLOCK};
use crate::code::Code;
use crate::expand::{Expander, Part, Sink, Step, StepKind, Summary};
use crate::layout::{Growth, Layout};

/// Once a prefix has this many steps, over all its branches, every further step ends it.
const LONGEST: usize = 256;

/// Computes the cartesian vector of each state that is expanded, and takes its steps.
pub struct Cartesian<'c> {
    code: &'c Code,
    summaries: &'c Summaries,
    view: View,
    /// For each thread, the footprint of its prefix, or everything it may still do if the prefix has not been computed.
    touched: Vec<Footprint>,
    /// The worklist: states inside the current prefix that have not been expanded.
    inside: Vec<u64>,
    /// The state that is being expanded; it lies inside the current prefix.
    here: Vec<u64>,
}

impl<'c> Cartesian<'c> {
    pub(super) fn new(code: &'c Code, summaries: &'c Summaries) -> Self {
        let (touched, inside, here) = (Vec::new(), Vec::new(), Vec::new());
        Cartesian { code, summaries, view: View::default(), touched, inside, here }
    }

    pub(super) fn expand<S: Sink>(
        &mut self,
        expander: &mut Expander<'_>,
        layout: &Layout,
        state: &[u64],
        sink: &mut S,
    ) -> Result<Summary, Growth> {
        self.view.look(self.code, self.summaries, layout, state);
        self.touched.clear();
        self.touched.extend(self.view.threads.iter().map(|view| view.place.future));
        let mut summary = Summary::default();
        for t in 0..self.view.threads.len() {
            summary = summary.with(self.prefix(expander, layout, state, t, sink)?);
            let flushes = expander.expand_parts(layout, state, [Part::Flushes(t, None)], sink)?;
            summary = summary.with(flushes);
        }
        Ok(summary)
    }

    /// Runs the edges of a thread to the ends of its prefix.
    fn prefix<S: Sink>(
        &mut self,
        expander: &mut Expander<'_>,
        layout: &Layout,
        state: &[u64],
        t: usize,
        sink: &mut S,
    ) -> Result<Summary, Growth> {
        let others = self.others(t);
        let mut touched = Footprint::default();
        let mut summary = Summary::default();
        let mut steps = 0;
        self.inside.clear();
        self.inside.extend_from_slice(state);
        while let Some(start) = self.inside.len().checked_sub(layout.words) {
            self.here.clear();
            self.here.extend(self.inside.drain(start..));
            let is_start = steps == 0;
            let place = self.summaries.place(self.code, layout, &self.here, t);
            let goes_on = steps < LONGEST && !self.ends(layout, t, place, others);
            touched = touched.with(place.next);
            let mut between =
                Between { sink: &mut *sink, inside: goes_on.then_some(&mut self.inside), taken: 0 };
            let left = expander.expand_parts(layout, &self.here, [Part::Edges(t)], &mut between)?;
            let taken = between.taken;
            steps += taken.max(1);
            // If the thread has ended or is blocked inside its prefix, this state is a leaf of the prefix.
            if taken == 0 && !is_start {
                let step = Step { thread: t as u32, kind: StepKind::Run, visible: false, fault: false };
                sink.take(step, &self.here);
            }
            summary = summary.with(left);
        }
        self.touched[t] = touched;
        Ok(summary)
    }

    /// The union of what is `touched` by the other threads and of the footprints of their enabled flushes.
    fn others(&self, t: usize) -> Footprint {
        let both = self.touched.iter().zip(&self.view.threads).enumerate();
        let others = both.filter(|(u, _)| *u != t);
        others.fold(Footprint::default(), |sum, (_, (touched, view))| sum.with(*touched).with(view.heads))
    }

    /// Whether the edges that leave the current state end the prefix.
    fn ends(&self, layout: &Layout, t: usize, place: &Place, others: Footprint) -> bool {
        let holds_lock = layout.slots[self.code.lock()].raw(&self.here) as usize == t + 1;
        let depends = match holds_lock {
            true => place.next.has(UNLOCK),
            false => place.next.disturbs(others),
        };
        let locked_out = self.view.is_locked_out(t) && place.next.has(ACCESS | LOCK);
        // Under PSO the stored cell is not known here, so the store may be the first one to its cell in the buffer.
        let enables = place.stores
            && (self.code.model == MemoryModel::Pso || layout.buffers[t].count.raw(&self.here) == 0);
        depends || locked_out || enables || !place.may_be_passed()
    }
}

/// Collects states inside a prefix, and passes on those at its leaves.
struct Between<'a, S> {
    sink: &'a mut S,
    /// The worklist for inner states; `None` if every step ends the prefix.
    inside: Option<&'a mut Vec<u64>>,
    taken: usize,
}

impl<S: Sink> Sink for Between<'_, S> {
    fn take(&mut self, step: Step<'_>, state: &[u64]) {
        self.taken += 1;
        match &mut self.inside {
            // A fault always ends a prefix.
            Some(inside) if !step.fault => inside.extend_from_slice(state),
            _ => self.sink.take(step, state),
        }
    }
}
