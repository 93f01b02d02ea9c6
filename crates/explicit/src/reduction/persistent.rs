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
//! A set that may close a cycle is not taken, unless it is everything. The checker of certificates computes the same sets and takes the same one, so
//! that it needs the states only.

use super::parts::{MOST_THREADS, bits, edges, flushes, part, thread_of};
use super::summary::{ACCESS, Footprint, LOCK, Summaries, VISIBLE};
use super::{View, attempt};
use crate::code::Code;
use crate::expand::{Expander, Sink, Summary};
use crate::layout::{Growth, Layout};

/// Chooses persistent sets.
pub struct Persistent<'c> {
    code: &'c Code,
    summaries: &'c Summaries,
    pub(super) view: View,
    /// What each part needs.
    needs: Vec<Option<u64>>,
    /// The closed sets, smallest first.
    pub(super) sets: Vec<u64>,
}

impl<'c> Persistent<'c> {
    pub(super) fn new(code: &'c Code, summaries: &'c Summaries) -> Self {
        Persistent { code, summaries, view: View::default(), needs: Vec::new(), sets: Vec::new() }
    }

    pub(super) fn expand<S: Sink>(
        &mut self,
        expander: &mut Expander<'_>,
        layout: &Layout,
        state: &[u64],
        sink: &mut S,
    ) -> Result<Summary, Growth> {
        self.look(layout, state);
        self.needs.clear();
        // Most sets are single parts: those are tried as soon as they are found.
        for position in 0..self.parts() {
            let single = 1 << position;
            let needed = self.needed_by(single);
            self.needs.push(needed);
            if needed == Some(single) && self.is_there(single) {
                let tried = attempt(expander, layout, state, [part(single)], sink)?;
                if let Some(summary) = tried {
                    return Ok(summary);
                }
            }
        }
        self.close();
        for &set in self.sets.iter().filter(|set| set.count_ones() > 1) {
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
        self.needs.clear();
        for position in 0..self.parts() {
            self.needs.push(self.needed_by(1 << position));
        }
        self.close();
    }

    /// The sets of all parts, of which it is known what they need.
    fn close(&mut self) {
        self.sets.clear();
        for position in 0..self.needs.len() {
            let single = 1 << position;
            if self.is_there(single) {
                self.sets.extend(self.closed(single));
            }
        }
        self.sets.sort_unstable_by_key(|set| (set.count_ones(), *set));
        self.sets.dedup();
    }

    /// How many parts there are; none if there are too many threads.
    fn parts(&self) -> usize {
        let threads = self.view.threads.len();
        if threads > MOST_THREADS { 0 } else { 2 * threads }
    }

    /// Whether a part has any steps, possible or not.
    fn is_there(&self, bit: u64) -> bool {
        let (t, is_flush) = thread_of(bit);
        let view = &self.view.threads[t];
        if is_flush { view.pending } else { view.place.leaves }
    }

    /// The closure of a part; nothing if it has a step that may close a cycle, or one of which only samples are tried.
    fn closed(&self, start: u64) -> Option<u64> {
        let (mut set, mut open) = (start, start);
        while open != 0 {
            let joining = self.needs[open.trailing_zeros() as usize]? & !set;
            open = (open & (open - 1)) | joining;
            set |= joining;
        }
        Some(set)
    }

    /// The parts that must be in a set with this part, and the part; nothing if it must not be in any.
    fn needed_by(&self, part: u64) -> Option<u64> {
        let (t, is_flush) = thread_of(part);
        let view = &self.view;
        let own = &view.threads[t];
        if !is_flush && (own.place.back || own.place.sampled) {
            return None;
        }
        let steps = if is_flush { own.heads } else { own.place.next };
        let mut needed = part;
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
        Some(needed)
    }
}
