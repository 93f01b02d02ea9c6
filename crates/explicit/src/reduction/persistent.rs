//! Persistent sets (THESIS16 s. 4.1): the steps of the smallest set of threads that no other thread can disturb.
//!
//! As printed, the algorithm considers enabled steps only, and its result is not persistent (t1: `r = x`; t2: `skip; x = 1`: the load alone would be
//! chosen, although t2 will store to x). Here a set grows until it is closed with respect to all steps that *may still be taken*. Its elements are
//! parts of threads, each consisting of the outgoing edges or of the possible flushes of one thread:
//!
//! * if another thread may still take a step that depends on a step of the set, the edges of that thread are added. If flushing an entry of that
//!   thread's buffer depends on a step of the set, the possible flushes of the buffer are added, because all its later flushes come after one of
//!   these;
//! * if a step of the set waits for the empty buffer of its thread, the flushes of the thread are added; if it waits for the lock, the edges of the
//!   holder are added. While a thread holds the lock, no other thread can disturb its steps;
//! * visible steps depend on each other: if the set contains one, every part is added whose thread or buffer may still take a visible step.
//!
//! A set with an edge that may close a cycle or chooses a sampled value is not used, unless it is the full set. The checker of certificates computes
//! the same sets and chooses the same one, so a certificate need not list the chosen sets.

use super::parts::{MOST_THREADS, bits, edges, flushes, part, thread_of};
use super::summary::{ACCESS, Footprint, LOCK, Summaries, VISIBLE};
use super::{View, attempt};
use crate::code::Code;
use crate::expand::{Expander, Sink, Summary};
use crate::layout::{Growth, Layout};

/// Chooses a persistent set in each state that is expanded.
pub struct Persistent<'c> {
    code: &'c Code,
    summaries: &'c Summaries,
    pub(super) view: View,
    /// For each part, the parts that must be in every set that contains it; `None` if no set may contain the part.
    needs: Vec<Option<u64>>,
    /// The closed sets, ordered by size.
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
        // Most sets consist of a single part, so each such set is tried as soon as it is found.
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

    /// Computes the view of a state.
    pub(super) fn look(&mut self, layout: &Layout, state: &[u64]) {
        self.view.look(self.code, self.summaries, layout, state);
    }

    /// Computes the closure of each single part, and keeps those that may be used.
    pub(super) fn find_sets(&mut self) {
        self.needs.clear();
        for position in 0..self.parts() {
            self.needs.push(self.needed_by(1 << position));
        }
        self.close();
    }

    /// Computes the closures, once `needs` is known for all parts.
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

    /// The number of parts; 0 if there are too many threads.
    fn parts(&self) -> usize {
        let threads = self.view.threads.len();
        if threads > MOST_THREADS { 0 } else { 2 * threads }
    }

    /// Whether a part has any steps, enabled or not.
    fn is_there(&self, bit: u64) -> bool {
        let (t, is_flush) = thread_of(bit);
        let view = &self.view.threads[t];
        if is_flush { view.pending } else { view.place.leaves }
    }

    /// The closure of a part; `None` if it contains a step that may close a cycle or samples a `*`.
    fn closed(&self, start: u64) -> Option<u64> {
        let (mut set, mut open) = (start, start);
        while open != 0 {
            let joining = self.needs[open.trailing_zeros() as usize]? & !set;
            open = (open & (open - 1)) | joining;
            set |= joining;
        }
        Some(set)
    }

    /// The part together with the parts that must be in every set that contains it; `None` if it must not be in any set.
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
