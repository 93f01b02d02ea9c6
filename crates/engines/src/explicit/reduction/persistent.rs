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
//!
//! There are no sleep sets. Where states are stored, a sleep set leaves out transitions to states that are found anyway, but no states. It would have to be
//! stored with each state, and a state that is reached again with a smaller one expanded again. Here a transition costs less than that: most
//! states are one word, of which the table of states has neither a number nor room for anything beside it.

use super::summary::{ACCESS, Footprint, LOCK, Summaries, VISIBLE};
use super::{View, attempt};
use crate::explicit::code::Code;
use crate::explicit::expand::{Expander, Part, Sink, Summary};
use crate::explicit::layout::{Growth, Layout};

/// Sets of parts are bits of a word; beyond so many threads all steps are taken.
const MOST_THREADS: usize = 32;

/// Chooses persistent sets.
pub struct Persistent<'c> {
    code: &'c Code,
    summaries: &'c Summaries,
    view: View,
    /// The closed sets, smallest first.
    sets: Vec<u64>,
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
        self.view.look(self.code, self.summaries, layout, state);
        self.find_sets();
        for &set in &self.sets {
            if let Some(summary) = attempt(expander, layout, state, parts(set), sink)? {
                return Ok(summary);
            }
        }
        expander.expand(layout, state, sink)
    }

    /// Closes the set of each single part, and keeps those that may be taken.
    fn find_sets(&mut self) {
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

/// The bit of the edges of a thread.
fn edges(t: usize) -> u64 {
    1 << (2 * t)
}

/// The bit of the flushes of a thread.
fn flushes(t: usize) -> u64 {
    2 << (2 * t)
}

/// The thread of a part, and whether it is its flushes.
fn thread_of(bit: u64) -> (usize, bool) {
    let position = bit.trailing_zeros() as usize;
    (position / 2, position % 2 == 1)
}

/// The parts of a set.
fn parts(mut set: u64) -> impl Iterator<Item = Part> {
    std::iter::from_fn(move || {
        let bit = set & set.wrapping_neg();
        set ^= bit;
        (bit != 0).then(|| match thread_of(bit) {
            (t, false) => Part::Edges(t),
            (t, true) => Part::Flushes(t, None),
        })
    })
}
