//! Cartesian vectors (THESIS16 s.4.3.2, Figs. 4.5 and 4.6): every thread goes on by itself until its steps may depend on those of others.
//!
//! A cartesian vector has a prefix of an execution for each thread such that at most the last steps of two prefixes depend on each other. From a
//! state with such a vector, one successor for each prefix is enough, and what lies between is not stored. For take any execution from
//! the state. If some thread comes to the end of its prefix, let it be the first one to do so: all that the others have done by then is independent
//! of its prefix, which may as well come first. If none does, every thread can go on to its end, and the property has seen nothing yet: visible
//! steps end a prefix. A run of the thread of the first step can then be put in front. Either way what remains is shorter, so
//! nothing is put off forever, and cycles need no more than this: a prefix ends with a step that may close one, so it is finite.
//!
//! Where a thread can go on in several ways its prefix is a tree. Edges and flushes of a thread are processes of their own; the prefix of
//! the flushes is one flush. A store that makes a flush possible which was not ends a prefix: otherwise there would be steps outside of all prefixes.
//! A blocked thread takes part with what it waits for. While a thread holds the lock, its steps depend on nothing but giving it back.
//!
//! Prefixes are found thread by thread. One that is already found counts with what its steps touch, one that is not yet with all that the thread may
//! still do. So in Fig. 4.5 the first thread ends at its first store, because the second will load that variable, and the second
//! goes on until it does: the vector of the text.

use fencewright_program::MemoryModel;

use super::View;
use super::summary::{ACCESS, Footprint, LOCK, Place, Summaries, UNLOCK};
use crate::code::Code;
use crate::expand::{Expander, Part, Sink, Step, StepKind, Summary};
use crate::layout::{Growth, Layout};

/// A prefix with so many steps, on all its ways together, ends wherever it is.
const LONGEST: usize = 256;

/// Runs threads along cartesian vectors.
pub struct Cartesian<'c> {
    code: &'c Code,
    summaries: &'c Summaries,
    view: View,
    /// For each thread, what its prefix may depend on or, if it has been found, what it touches.
    touched: Vec<Footprint>,
    /// States inside the present prefix, one after the other, that have not been left yet.
    inside: Vec<u64>,
    /// The one of them that is being left.
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
            // A thread that has ended or is blocked inside its prefix is at an end of it.
            if taken == 0 && !is_start {
                let step = Step { thread: t as u32, kind: StepKind::Run, visible: false, fault: false };
                sink.take(step, &self.here);
            }
            summary = summary.with(left);
        }
        self.touched[t] = touched;
        Ok(summary)
    }

    /// What the prefixes of other threads touch.
    fn others(&self, t: usize) -> Footprint {
        let both = self.touched.iter().zip(&self.view.threads).enumerate();
        let others = both.filter(|(u, _)| *u != t);
        others.fold(Footprint::default(), |sum, (_, (touched, view))| sum.with(*touched).with(view.heads))
    }

    /// Whether the edges that leave the present state inside a prefix end it.
    fn ends(&self, layout: &Layout, t: usize, place: &Place, others: Footprint) -> bool {
        let holds_lock = layout.slots[self.code.lock()].raw(&self.here) as usize == t + 1;
        let depends = match holds_lock {
            true => place.next.has(UNLOCK),
            false => place.next.disturbs(others),
        };
        let locked_out = self.view.is_locked_out(t) && place.next.has(ACCESS | LOCK);
        // Under PSO it is not known which cell is stored, so any may be new in the buffer.
        let enables = place.stores
            && (self.code.model == MemoryModel::Pso || layout.buffers[t].count.raw(&self.here) == 0);
        depends || locked_out || enables || !place.may_be_passed()
    }
}

/// Keeps states inside a prefix and passes on those at its ends.
struct Between<'a, S> {
    sink: &'a mut S,
    /// Where states inside go; nothing if all steps are the last ones.
    inside: Option<&'a mut Vec<u64>>,
    taken: usize,
}

impl<S: Sink> Sink for Between<'_, S> {
    fn take(&mut self, step: Step<'_>, state: &[u64]) {
        self.taken += 1;
        match &mut self.inside {
            // A fault is an end, whatever else there is.
            Some(inside) if !step.fault => inside.extend_from_slice(state),
            _ => self.sink.take(step, state),
        }
    }
}
