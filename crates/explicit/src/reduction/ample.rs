//! Ample sets (THESIS16 s. 2.2.2, Algorithm 2.2): in some states it suffices to take certain steps of one thread.
//!
//! Three kinds of candidates are tried, in this order: one flush; the edges of a thread; the edges and the flushes of a thread. A candidate is ample
//! if
//!
//! * C0: it contains a step;
//! * C1: no step that another thread may still take (flushes of its buffer included) depends on a step of the candidate or unblocks one; blocked
//!   steps of the candidate count too. While a thread holds the lock, no other thread can take a step that depends on a step of the holder. Steps of
//!   the same thread that are not in the set commute with those that are (see [`summary`](super::summary));
//! * C2: no property observes its steps;
//! * C3: none of its steps may close a cycle.

use super::summary::{ACCESS, Footprint, LOCK, Summaries, VISIBLE};
use super::{View, attempt, heads};
use crate::code::Code;
use crate::expand::{Expander, Part, Sink, Summary};
use crate::layout::{Growth, Layout};

/// Chooses an ample set in each state that is expanded, if there is one.
pub struct Ample<'c> {
    code: &'c Code,
    summaries: &'c Summaries,
    view: View,
    /// For each thread, the union of the future footprints of all other threads.
    others: Vec<Footprint>,
}

impl<'c> Ample<'c> {
    pub(super) fn new(code: &'c Code, summaries: &'c Summaries) -> Self {
        Ample { code, summaries, view: View::default(), others: Vec::new() }
    }

    pub(super) fn expand<S: Sink>(
        &mut self,
        expander: &mut Expander<'_>,
        layout: &Layout,
        state: &[u64],
        sink: &mut S,
    ) -> Result<Summary, Growth> {
        self.view.look(self.code, self.summaries, layout, state);
        self.look_at_others();
        for t in 0..layout.buffers.len() {
            let buffer = &layout.buffers[t];
            let entries = buffer.entries[..buffer.count.raw(state) as usize].iter();
            let ample = heads(self.code, t, entries.map(|(kind, _)| kind.raw(state)))
                .find(|&kind| self.is_ample(t, self.summaries.flushes[t][kind as usize]));
            if let Some(kind) = ample {
                let flush = [Part::Flushes(t, Some(kind))];
                if let Some(summary) = attempt(expander, layout, state, flush, sink)? {
                    return Ok(summary);
                }
            }
        }
        for with_flushes in [false, true] {
            for t in 0..self.view.threads.len() {
                let view = &self.view.threads[t];
                let place = &view.place;
                let waits = place.drains && view.pending;
                let eligible = place.leaves && !place.back && !place.sampled && waits == with_flushes;
                if !eligible
                    || !self.is_ample(t, place.next)
                    || (with_flushes && !self.is_ample(t, view.heads))
                {
                    continue;
                }
                let flushes = with_flushes.then_some(Part::Flushes(t, None));
                let parts = [Part::Edges(t)].into_iter().chain(flushes);
                if let Some(summary) = attempt(expander, layout, state, parts, sink)? {
                    return Ok(summary);
                }
            }
        }
        expander.expand(layout, state, sink)
    }

    fn look_at_others(&mut self) {
        let threads = &self.view.threads;
        self.others.clear();
        self.others.extend((0..threads.len()).map(|t| {
            let others = threads.iter().enumerate().filter(|(u, _)| *u != t);
            others
                .fold(Footprint::default(), |sum, (_, view)| sum.with(view.place.future).with(view.buffered))
        }));
    }

    /// Whether conditions C1 and C2 hold for steps of a thread with this footprint.
    fn is_ample(&self, t: usize, steps: Footprint) -> bool {
        let waits = self.view.is_locked_out(t) && steps.has(ACCESS | LOCK);
        let disturbed = self.view.holder != t + 1 && (waits || steps.disturbs(self.others[t]));
        !disturbed && !steps.has(VISIBLE)
    }
}
