//! Persistent sets (THESIS16 s.4.1): the steps of the smallest group of threads that nobody outside can disturb.
//!
//! As printed, the algorithm looks at enabled steps only, and what it computes is not persistent (t1: `r = x`; t2: `skip; x = 1`: the load alone would
//! be chosen, although t2 will store x). Here a set grows until it is closed under what *may still happen*. Its elements are parts of threads,
//! the edges that leave its location or the flushes that are possible:
//!
//! * if another thread may still do something that depends on a step of the set, its edges join. If something in its buffer does, its
//!   flushes join: all that comes later comes after one of these;
//! * if a step of the set waits for the empty buffer of its thread, the flushes of the thread join; if it waits for the lock, the edges of the
//!   thread that holds it. While a thread holds the lock, nobody else can disturb what it does;
//! * visible steps depend on each other: with one in the set, every part joins after which there may be another.
//!
//! A set that may close a cycle is not taken, unless it is everything.

use super::parts::{MOST_THREADS, bits, edges, flushes, part, thread_of};
use super::summary::{ACCESS, Footprint, LOCK, Summaries, VISIBLE};
use super::{View, attempt};
use crate::explicit::code::Code;
use crate::explicit::expand::{Expander, Sink, Summary};
use crate::explicit::layout::{Growth, Layout};

/// Chooses persistent sets.
pub struct Persistent<'c> {
    code: &'c Code,
    summaries: &'c Summaries,
    pub(super) view: View,
    /// The closed sets, smallest first.
    pub(super) sets: Vec<u64>,
}

impl<'c> Persistent<'c> {
    pub(super) fn new(code: &'c Code, summaries: &'c Summaries) -> Self {
        Persistent { code, summaries, view: View::default(), sets: Vec::new() }
    }

    pub(super) fn expand<S: Sink>(
        &mut self,
        expander: &mut Expander<'_>,
        layout: &Layout,
        state: &[u64],
        sink: &mut S,
    ) -> Result<Summary, Growth> {
        self.look(layout, state);
        self.find_sets();
        for &set in &self.sets {
            if let Some(summary) = attempt(expander, layout, state, bits(set).map(part), sink)? {
                return Ok(summary);
            }
        }
        expander.expand(layout, state, sink)
    }

    /// Looks at a state.
    pub(super) fn look(&mut self, layout: &Layout, state: &[u64]) {
        self.view.look(self.code, self.summaries, layout, state);
    }

    /// Closes the set of each single part, and keeps those that may be taken.
    pub(super) fn find_sets(&mut self) {
        self.sets.clear();
        let threads = self.view.threads.len();
        if threads > MOST_THREADS {
            return;
        }
        for t in 0..threads {
            let view = &self.view.threads[t];
            if view.place.leaves {
                self.sets.extend(self.closed(edges(t)));
            }
            if view.pending {
                self.sets.extend(self.closed(flushes(t)));
            }
        }
        self.sets.sort_unstable_by_key(|set| (set.count_ones(), *set));
        self.sets.dedup();
    }

    /// The closure of a part; nothing if it has a step that may close a cycle, or one of which only samples are tried.
    fn closed(&self, start: u64) -> Option<u64> {
        let (mut set, mut open) = (start, start);
        while open != 0 {
            let bit = open & open.wrapping_neg();
            open ^= bit;
            let (t, is_flush) = thread_of(bit);
            let place = &self.view.threads[t].place;
            if !is_flush && (place.back || place.sampled) {
                return None;
            }
            let joining = self.needed_by(t, is_flush) & !set;
            set |= joining;
            open |= joining;
        }
        Some(set)
    }

    /// The parts that must be in a set with this part.
    fn needed_by(&self, t: usize, is_flush: bool) -> u64 {
        let view = &self.view;
        let own = &view.threads[t];
        let steps = if is_flush { own.heads } else { own.place.next };
        let mut needed = 0;
        if !is_flush && own.place.drains && own.pending {
            needed |= flushes(t);
        }
        if view.is_locked_out(t) && steps.has(ACCESS | LOCK) {
            needed |= edges(view.holder - 1);
        }
        let seen = |other: Footprint| steps.has(VISIBLE) && other.has(VISIBLE);
        for (u, other) in view.threads.iter().enumerate() {
            let disturbs = |future: Footprint| u != t && view.holder != t + 1 && steps.disturbs(future);
            if disturbs(other.place.future) || seen(other.place.future) {
                needed |= edges(u);
            }
            if disturbs(other.buffered) || seen(other.buffered) {
                needed |= flushes(u);
            }
        }
        needed
    }
}
