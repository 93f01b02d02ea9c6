//! Sleep sets combined with [persistent sets](super::persistent), for a search that stores states (THESIS16 s. 4.1, after Godefroid).
//!
//! If a persistent set contains two independent steps, both orders are explored. Sleep sets avoid the redundant order. When the parts a, b, c of a
//! set (a part is the edges or the flushes of a thread) are taken in this order, each part is asleep in the successors of those later parts that do
//! not [depend](super::dependence) on it, and stays asleep until a step is taken that depends on it. Sleeping parts are not taken. So fewer
//! transitions are taken and no additional states found; often the number of states is unchanged, because each state is still found along some order.
//!
//! The sleep set of a state is the intersection of the sleep sets with which the state was reached. If a state is reached again with a smaller sleep
//! set, the state is expanded again. If only parts of its persistent set have woken up, these are taken; if a part outside of the set has woken up,
//! all awake parts of the set are taken, because the woken part may no longer sleep in their successors. In the successors of a part taken in an
//! expansion, a part sleeps if it does not depend on the taken part, and it sleeps in the state or was taken earlier *in the same expansion*. That a
//! part was taken in an earlier expansion of the state does not make it sleep there.
//!
//! **Correctness.** Take an execution w from an initial state. As long as there is an explored state s along w such that no step of its persistent
//! set P(s) is an initial of the rest of w (can come first, up to the order of independent steps), append a step of P(s) to w. The appended step is
//! independent of the rest, so it can be taken after the rest; and it closes no cycle, for otherwise P(s) would be the full set. So only finitely
//! many steps are appended, and after that the rest has an initial in P(s) in every state s along w, until w itself has been taken. Now follow w with
//! the invariant that *no part that sleeps in s at the end of the search is an initial of the rest*. It holds in the initial state, whose sleep set
//! is empty. In s consider the latest expansion in which initial parts were taken, and of these the first, a. Let p sleep in the successor by a and
//! be an initial of the rest there. Since p is independent of a in s, it is an initial in s too, so it does not sleep in s at the end. It was not
//! taken before a in the same expansion, because a was the first. So it slept in s then, and has woken up. Therefore there was a later expansion of
//! s, which took p if p is in P(s), and a again if not. Both contradict the choice of a.
//!
//! So the search finds everything that a search with persistent sets alone finds: deadlocks and final states, faults and, because visible steps
//! depend on each other, all values of observed formulas. The explored graph is a subgraph of the one explored with persistent sets. Steps are
//! repeated only in the rare case that parts outside of a persistent set wake up. The argument depends neither on the search order nor on the number
//! of workers, and automorphisms map sleep sets to sleep sets.
//!
//! Only states whose first sleep set was not empty have an entry here. A state whose steps are all asleep does have steps, so it is not a deadlock.

use super::View;
use super::dependence::Dependence;
use super::parts::{MOST_THREADS, all, bits, part};
use super::persistent::Persistent;
use super::summary::Summaries;
use crate::code::Code;
use crate::expand::{Expander, Sink, Summary};
use crate::layout::{Growth, Layout, LiveSlots};
use crate::orbits::Representatives;
use crate::store::{NONE, Store, hash};

/// A sink that receives the sleep sets of successors.
pub trait SleepSink: Sink {
    /// Sets the sleep set of all following successors.
    fn asleep(&mut self, parts: u64);
}

/// The sleep set of one state, as a set of parts.
#[derive(Clone, Copy)]
struct Entry {
    asleep: u64,
    /// The persistent set with which the state was expanded; 0 if the state has not been expanded.
    set: u64,
    /// The index of the state, or [`NONE`] for an empty entry.
    number: u32,
}

/// Number of states moved to a new layout between two polls of the limits.
const CARRIED: usize = 256;

/// Number of entries moved to a new table between two polls of the limits.
const MOVED: usize = 1 << 14;

/// Tables with fewer entries grow on demand, because that takes negligible time.
const LARGE_TABLE: usize = 1 << 18;

const EMPTY: Entry = Entry { asleep: 0, set: 0, number: NONE };

/// Takes the steps of persistent sets that are not asleep.
pub struct Sleep<'c> {
    persistent: Persistent<'c>,
    dependence: Dependence<'c>,
    /// An open-addressing hash table; its length is a power of two.
    entries: Vec<Entry>,
    used: usize,
    /// States to be expanded again, each with the parts to expand.
    again: Vec<(u32, u64)>,
}

impl<'c> Sleep<'c> {
    /// Sleep sets for the states of the given program; `bounded` says whether buffers are bounded.
    pub fn new(code: &'c Code, summaries: &'c Summaries, bounded: bool) -> Self {
        Sleep {
            persistent: Persistent::new(code, summaries),
            dependence: Dependence::new(code, summaries, bounded),
            entries: vec![EMPTY; 1 << 8],
            used: 0,
            again: Vec::new(),
        }
    }

    /// Memory use in bytes.
    pub fn bytes(&self) -> usize {
        self.entries.len() * size_of::<Entry>() + self.again.len() * size_of::<(u32, u64)>()
    }

    /// The additional memory needed for `more` states, in bytes.
    pub fn bytes_to_grow(&self, more: usize) -> usize {
        let table = match self.is_full(more) {
            true => self.entries.len() * 2 * size_of::<Entry>(),
            false => 0,
        };
        table + more * size_of::<(u32, u64)>()
    }

    /// The number of states to be expanded again.
    pub fn waiting(&self) -> usize {
        self.again.len()
    }

    /// The next state to be expanded again, with the parts to expand; `None` if no state is waiting.
    pub fn next(&self) -> Option<(u32, u64)> {
        self.again.last().copied()
    }

    /// Removes the state that [`next`](Self::next) returned.
    pub fn done(&mut self) {
        self.again.pop();
    }

    /// Records the sleep set of a new state.
    pub fn meet(&mut self, store: &Store, number: u32, asleep: u64) {
        if asleep == 0 {
            return;
        }
        if self.is_full(1) {
            self.replace(store, self.entries.len() * 2, &mut || true);
        }
        self.used += 1;
        place(&mut self.entries, store, Entry { asleep, set: 0, number });
    }

    /// Makes room for `more` entries in a large table; a small one grows when an entry is added. `go_on` is called every few milliseconds; if it
    /// returns false, the table stays as it is.
    pub fn make_room(&mut self, store: &Store, more: usize, go_on: &mut dyn FnMut() -> bool) {
        if self.entries.len() >= LARGE_TABLE && self.is_full(more) {
            self.replace(store, self.entries.len() * 2, go_on);
        }
    }

    /// Whether `more` entries would exceed the maximum load of the table.
    fn is_full(&self, more: usize) -> bool {
        (self.used + more) * 4 > self.entries.len() * 3
    }

    /// Moves all entries to a table of the given length. If `go_on` returns false, the table stays as it is, and the result is false.
    fn replace(&mut self, store: &Store, length: usize, go_on: &mut dyn FnMut() -> bool) -> bool {
        let mut table = vec![EMPTY; length];
        for entries in self.entries.chunks(MOVED) {
            if !go_on() {
                return false;
            }
            let used = entries.iter().filter(|entry| entry.number != NONE);
            used.for_each(|entry| place(&mut table, store, *entry));
        }
        self.entries = table;
        true
    }

    /// Intersects the sleep set of a known state with the sleep set with which it was reached again, and schedules the expansion that this requires.
    pub fn meet_again(&mut self, store: &Store, state: &[u64], hash: u64, asleep: u64) {
        let Some(n) = self.find(store, state, hash) else { return };
        let entry = &mut self.entries[n];
        let woken = entry.asleep & !asleep;
        entry.asleep &= asleep;
        let parts = if woken & !entry.set == 0 { woken } else { entry.set & !entry.asleep };
        if parts & entry.set != 0 {
            self.again.push((entry.number, parts));
        }
    }

    /// Passes the required successors of a state to the sink: those of a persistent set or, if the state is expanded again, of the parts in `woken`;
    /// without those of sleeping parts.
    pub fn expand<S: SleepSink>(
        &mut self,
        expander: &mut Expander<'_>,
        layout: &Layout,
        (store, number): (&Store, u32),
        woken: Option<u64>,
        sink: &mut S,
    ) -> Result<Summary, Growth> {
        let state = store.state(number);
        let entry = self.find(store, state, hash(state));
        let asleep = entry.map_or(0, |n| self.entries[n].asleep);
        self.persistent.look(layout, state);
        if let Some(woken) = woken {
            let awake = Awake { expander, layout, state, sink };
            let summary = awake.take(&self.persistent.view, &mut self.dependence, woken, asleep)?;
            // The state has an entry, so some part slept in it. A part that sleeps has steps, so the state is not a deadlock.
            return Ok(Summary { moved: true, ..summary });
        }
        let (summary, set) = self.first(expander, layout, state, asleep, sink)?;
        if let Some(n) = entry {
            self.entries[n].set = set;
        }
        Ok(summary)
    }

    /// Expands a state for the first time. Returns its persistent set too.
    fn first<S: SleepSink>(
        &mut self,
        expander: &mut Expander<'_>,
        layout: &Layout,
        state: &[u64],
        asleep: u64,
        sink: &mut S,
    ) -> Result<(Summary, u64), Growth> {
        self.persistent.find_sets();
        let threads = self.persistent.view.threads.len();
        if threads > MOST_THREADS {
            // There are too many threads for bit masks, so no part ever sleeps.
            return Ok((expander.expand(layout, state, sink)?, 0));
        }
        for set in self.persistent.sets.iter().copied() {
            let awake = Awake { expander, layout, state, sink };
            let summary = awake.take(&self.persistent.view, &mut self.dependence, set, asleep)?;
            if summary.moved && summary.is_complete() {
                return Ok((summary, set));
            }
        }
        let awake = Awake { expander, layout, state, sink };
        let set = all(threads);
        Ok((awake.take(&self.persistent.view, &mut self.dependence, set, asleep)?, set))
    }

    /// Prepares for a wider layout: where the permutation of threads in the representative changes, sleep sets are permuted too. If `go_on` returns
    /// false, the result is false, and the sleep sets are unusable.
    pub fn repack(
        &mut self,
        code: &Code,
        store: &Store,
        old: &Layout,
        new: &Layout,
        go_on: &mut dyn FnMut() -> bool,
    ) -> bool {
        let mut representatives = Representatives::new(code);
        let (mut live, mut packed) = (LiveSlots::default(), vec![0; new.words]);
        let mut carry = |number: u32, parts: u64| {
            new.repack(code, &mut live, old, store.state(number), &mut packed);
            representatives.carry(new, &packed, parts)
        };
        for (n, entry) in self.entries.iter_mut().filter(|entry| entry.asleep != 0).enumerate() {
            if n % CARRIED == 0 && !go_on() {
                return false;
            }
            entry.asleep = carry(entry.number, entry.asleep);
            entry.set = carry(entry.number, entry.set);
        }
        for (n, (number, parts)) in self.again.iter_mut().enumerate() {
            if n % CARRIED == 0 && !go_on() {
                return false;
            }
            *parts = carry(*number, *parts);
        }
        true
    }

    /// Rebuilds the table after the states have been repacked. Returns false if `go_on` returns false.
    pub fn rehash(&mut self, store: &Store, go_on: &mut dyn FnMut() -> bool) -> bool {
        self.replace(store, self.entries.len(), go_on)
    }

    fn find(&self, store: &Store, state: &[u64], hash: u64) -> Option<usize> {
        let mut slot = slot(&self.entries, hash);
        loop {
            match self.entries[slot].number {
                NONE => return None,
                number if store.state(number) == state => return Some(slot),
                _ => slot = (slot + 1) & (self.entries.len() - 1),
            }
        }
    }
}

/// The preferred position in a table of the entry of a state with this hash.
fn slot(entries: &[Entry], hash: u64) -> usize {
    (hash >> (64 - entries.len().trailing_zeros())) as usize
}

/// Inserts an entry at the first free position from its preferred one.
fn place(entries: &mut [Entry], store: &Store, entry: Entry) {
    let mut slot = slot(entries, hash(store.state(entry.number)));
    while entries[slot].number != NONE {
        slot = (slot + 1) & (entries.len() - 1);
    }
    entries[slot] = entry;
}

/// The expansion of one state: the state, and the sink for its successors.
struct Awake<'a, 'c, S> {
    expander: &'a mut Expander<'c>,
    layout: &'a Layout,
    state: &'a [u64],
    sink: &'a mut S,
}

impl<S: SleepSink> Awake<'_, '_, S> {
    /// Takes the steps of a set of parts, except for sleeping parts, one part after the other.
    fn take(
        self,
        view: &View,
        dependence: &mut Dependence<'_>,
        set: u64,
        mut asleep: u64,
    ) -> Result<Summary, Growth> {
        let Awake { expander, layout, state, sink } = self;
        // A sleeping part has steps, so the state counts as one that can move.
        let mut summary = Summary { moved: set & asleep != 0, ..Summary::default() };
        dependence.look(view, layout, state, set | asleep);
        for bit in bits(set & !asleep) {
            sink.asleep(asleep & !dependence.on(view, bit, asleep));
            let taken = expander.expand_parts(layout, state, [part(bit)], sink)?;
            // A part with a step that was cut off is not put to sleep, because it is not fully explored and because parts that its steps wait for may
            // be missing from the persistent set.
            asleep |= if taken.moved && taken.is_complete() { bit } else { 0 };
            summary = summary.with(taken);
        }
        Ok(summary)
    }
}
