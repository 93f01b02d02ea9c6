//! Sleep sets with [persistent sets](super::persistent), where states are stored (THESIS16 s.4.1, after Godefroid).
//!
//! Of two independent steps in a persistent set both are taken, one after the other, and again in the other order. A sleep set keeps apart what need not be
//! taken a second time. When the parts a, b, c of a set are taken in this order, what has been taken sleeps in the successors of what comes
//! later, and goes on sleeping until a step is taken that [depends](super::dependence) on it. What sleeps is not taken. So fewer transitions are
//! taken, and no more states found; often there are no fewer states either, for all of them are found along some order.
//!
//! Each state has a sleep set, the intersection of those it was reached with. A state that is reached again with a smaller one is expanded again: for the parts of
//! its persistent set that have woken up, or for all of this set that is awake if a part outside of it has woken up, because that one went on sleeping in
//! successors where it now must not. With a part that is taken in an expansion, those sleep on that sleep in the state or were taken before *in the same
//! expansion*; nothing that an earlier expansion has taken.
//!
//! **Nothing is lost.** Take an execution w from an initial state. As long as there is an explored state s on the way such that no step of its persistent set P(s)
//! is an initial one (can come first, up to the order of independent steps) of what remains of w, append a step of P(s) to w. It is
//! independent of what remains, so it can be taken after it, and closes no cycle, for otherwise P(s) would be everything. So only finitely many steps are appended, and
//! after that what remains has an initial step in P(s) in every state s on the way, until w itself has been taken. Now follow w such that *no part that
//! sleeps in s at the end of the search is an initial one of what remains*. This is true in the initial state, where nothing sleeps. In s consider the latest
//! expansion in which initial parts were taken, and of these the first, a. Let p sleep in the successor and be initial in what remains there. It is independent of a in
//! s, so it is initial in s too, and does not sleep in s at the end. It was not taken before a in the same expansion, because a was the first. So it slept in
//! s then, and has woken up. Therefore there was a later expansion of s: it took p if p is in P(s), and a again if not. Both contradict the choice of a.
//!
//! So everything is found that persistent sets alone find: deadlocks and final states, faults and, as visible steps depend on each
//! other, what properties see. What is explored is a part of what persistent sets explore. A step may be taken again, but only when parts outside of a persistent set wake
//! up, and that is rare. Neither the order of the search nor the number of workers plays a role in all this, and an automorphism takes sleep sets along.
//!
//! Only states in which something slept when they were found have an entry here. A state whose steps are all asleep has steps: it is no deadlock.

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

/// A sink that is told what sleeps in the successors to come.
pub trait SleepSink: Sink {
    /// These parts sleep in all successors from now on.
    fn asleep(&mut self, parts: u64);
}

/// What sleeps in one state.
#[derive(Clone, Copy)]
struct Entry {
    asleep: u64,
    /// The persistent set with which the state was expanded; nothing if it has not been.
    set: u64,
    /// The number of the state, or [`NONE`] if there is none.
    number: u32,
}

/// After so many states in a new layout it is asked whether there is time for more.
const CARRIED: usize = 256;

/// The same for entries that get another place.
const MOVED: usize = 1 << 14;

/// A table with fewer entries grows when it has to: that takes no time to speak of.
const LARGE_TABLE: usize = 1 << 18;

const EMPTY: Entry = Entry { asleep: 0, set: 0, number: NONE };

/// Takes the steps of persistent sets that are not asleep.
pub struct Sleep<'c> {
    persistent: Persistent<'c>,
    dependence: Dependence<'c>,
    /// A hash table; its length is a power of two.
    entries: Vec<Entry>,
    used: usize,
    /// States to be expanded again, for these parts.
    again: Vec<(u32, u64)>,
}

impl<'c> Sleep<'c> {
    /// For the states of a program, with buffers that are bounded or not.
    pub fn new(code: &'c Code, summaries: &'c Summaries, bounded: bool) -> Self {
        Sleep {
            persistent: Persistent::new(code, summaries),
            dependence: Dependence::new(code, summaries, bounded),
            entries: vec![EMPTY; 1 << 8],
            used: 0,
            again: Vec::new(),
        }
    }

    /// How many bytes the sleep sets occupy.
    pub fn bytes(&self) -> usize {
        self.entries.len() * size_of::<Entry>() + self.again.len() * size_of::<(u32, u64)>()
    }

    /// How many more bytes are needed at once for `more` states.
    pub fn bytes_to_grow(&self, more: usize) -> usize {
        let table = match self.is_full(more) {
            true => self.entries.len() * 2 * size_of::<Entry>(),
            false => 0,
        };
        table + more * size_of::<(u32, u64)>()
    }

    /// How many states wait to be expanded again.
    pub fn waiting(&self) -> usize {
        self.again.len()
    }

    /// A state to be expanded again, and for which parts.
    pub fn next(&self) -> Option<(u32, u64)> {
        self.again.last().copied()
    }

    /// The next state has been expanded again.
    pub fn done(&mut self) {
        self.again.pop();
    }

    /// A new state was reached with this sleep set.
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

    /// Makes room for `more` entries, unless `go_on`, which is asked after every few milliseconds, says no: then there is as much as before.
    pub fn make_room(&mut self, store: &Store, more: usize, go_on: &mut dyn FnMut() -> bool) {
        if self.entries.len() >= LARGE_TABLE && self.is_full(more) {
            self.replace(store, self.entries.len() * 2, go_on);
        }
    }

    /// Whether the table is too small for `more` entries.
    fn is_full(&self, more: usize) -> bool {
        (self.used + more) * 4 > self.entries.len() * 3
    }

    /// Goes over to a table of that length, with every entry where it belongs; false, and nothing has changed, if `go_on` says no.
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

    /// A known state was reached again with this sleep set.
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

    /// Gives the steps from a state that are needed to the sink: those of a persistent set, or of parts that have woken up.
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
            // Something has slept here, so there are steps.
            return Ok(Summary { moved: true, ..summary });
        }
        let (summary, set) = self.first(expander, layout, state, asleep, sink)?;
        if let Some(n) = entry {
            self.entries[n].set = set;
        }
        Ok(summary)
    }

    /// Expands a state for the first time; also the persistent set.
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
            // Nothing ever sleeps.
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

    /// Prepares for a wider layout: threads that change places there take along whether they sleep. False, and of no use any more, if
    /// `go_on` says that there is no time for it.
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

    /// Puts every sleep set where it belongs after the states have been packed anew; false if `go_on` says that there is no time for it.
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

/// Where in a table the entry of a state with this hash belongs.
fn slot(entries: &[Entry], hash: u64) -> usize {
    (hash >> (64 - entries.len().trailing_zeros())) as usize
}

/// Puts an entry into the first free place from where it belongs.
fn place(entries: &mut [Entry], store: &Store, entry: Entry) {
    let mut slot = slot(entries, hash(store.state(entry.number)));
    while entries[slot].number != NONE {
        slot = (slot + 1) & (entries.len() - 1);
    }
    entries[slot] = entry;
}

/// A state of which some parts are awake.
struct Awake<'a, 'c, S> {
    expander: &'a mut Expander<'c>,
    layout: &'a Layout,
    state: &'a [u64],
    sink: &'a mut S,
}

impl<S: SleepSink> Awake<'_, '_, S> {
    /// Takes the steps of a set of parts, one part after the other, but for those that sleep.
    fn take(
        self,
        view: &View,
        dependence: &mut Dependence<'_>,
        set: u64,
        mut asleep: u64,
    ) -> Result<Summary, Growth> {
        let Awake { expander, layout, state, sink } = self;
        // What sleeps has steps.
        let mut summary = Summary { moved: set & asleep != 0, ..Summary::default() };
        dependence.look(view, layout, state, set | asleep);
        for bit in bits(set & !asleep) {
            sink.asleep(asleep & !dependence.on(view, bit, asleep));
            let taken = expander.expand_parts(layout, state, [part(bit)], sink)?;
            // A part of which a step was cut off is not known in full, and what it waits for is in no persistent set.
            asleep |= if taken.moved && taken.is_complete() { bit } else { 0 };
            summary = summary.with(taken);
        }
        Ok(summary)
    }
}
