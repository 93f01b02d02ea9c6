//! Store buffers that forget (THESIS16 s. 3.2), on packed states: some stores in order, of all others how often each value of each cell occurs.
//!
//! A buffer is a *queue* of at most k stores (PSO: k of each memory cell) and a *rest*: for each cell a multiset of values and which of them was
//! added last. Counts go up to `many`, which means any number.
//!
//! | | k | many | figure |
//! |---|---|---|---|
//! | `set` | 0 | 1 | Fig. 3.6 |
//! | `multiset`, enlarged | 0 | B | Fig. 3.8 |
//! | `partial:k` | k | 1 | Fig. 3.10 |
//!
//! [The checker](fencewright_certify::states::abstraction) has the rules, and the reason why everything that exact buffers do is done by these. Fig. 3.6
//! also has a rule by which one of several values leaves for good (WM-D). A buffer that keeps it can do all that the smaller one can, if the value that was
//! added last takes the others with it, so that rule is not needed. That saves steps more than states: 254 are left of the 256 of Fig. 3.3, and of random
//! programs, with all abstractions, 3,043,468 of 3,047,655.
//!
//! There is a second way to count, for multisets that are *expanded* (`cut`): exactly, and a store of which there are `many` already is left out. What
//! such a search reaches multisets do reach, so there is no proof by multisets.
//!
//! In packed states a buffer is a sequence of entries, as an exact one is, from old to new. The entries of the rest are sorted by cell and value, but for one
//! copy of the value that was added last, which is the last entry of its cell. So to load from the newest entry of a cell is right for these buffers too. Where k > 0, a
//! *border* stands between queue and rest, unless there is no rest.

use fencewright_memory::Kept;

use super::code::ThreadCode;
use super::layout::{BufferFields, Growth};

/// What buffers remember.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abstraction {
    /// How many stores are kept in order (PSO: of each memory cell).
    pub k: u32,
    /// Which ones.
    pub kept: Kept,
    /// Up to how many copies of a value are counted, at least 1: so many stand for any number.
    pub many: u32,
    /// Whether one more copy than `many` is left out instead.
    pub cut: bool,
}

impl Abstraction {
    /// Sets of values.
    pub const SET: Abstraction = Abstraction::multiset(1);

    /// Multisets in which so many copies of a value stand for any number.
    pub const fn multiset(many: u32) -> Self {
        Abstraction { k: 0, kept: Kept::Oldest, many, cut: false }
    }

    /// So many stores in order, and the values of the others.
    pub const fn partial(k: u32, kept: Kept) -> Self {
        Abstraction { k, kept, many: 1, cut: false }
    }

    /// Whether there is an entry between queue and rest.
    pub fn has_border(self) -> bool {
        self.k > 0
    }

    fn is_any(self, count: usize) -> bool {
        !self.cut && count == self.many as usize
    }
}

/// The cell (as its position among the cells the thread stores to, or the barrier) and the value of a buffered store.
type Entry = (u64, i64);

/// An abstract buffer, unpacked.
#[derive(Default)]
pub struct AbstractBuffer {
    queue: Vec<Entry>,
    rest: Vec<Entry>,
}

/// A way for a store to leave a buffer.
pub struct Leaving {
    /// The cell it goes to.
    pub kind: u64,
    /// Its value.
    pub value: i64,
    way: Way,
}

/// Where a store leaves from, and what stays.
enum Way {
    /// The entry of the queue at this position.
    Queue(usize),
    /// The entry of the rest at this position; all others stay.
    Rest(usize),
    /// Any number of copies in the rest: so many stay.
    Any,
    /// The rest of the cell: nothing of it stays.
    Cell,
}

impl AbstractBuffer {
    /// Unpacks the buffer of a thread.
    pub fn read(
        &mut self,
        abstraction: Abstraction,
        thread: &ThreadCode,
        fields: &BufferFields,
        state: &[u64],
    ) {
        self.queue.clear();
        self.rest.clear();
        let count = fields.count.raw(state) as usize;
        let entry = |n: usize| (fields.entries[n].0.raw(state), fields.entries[n].1.get(state));
        let border = (0..count).find(|&n| fields.entries[n].0.raw(state) == thread.border());
        let (queue, rest) = match (border, abstraction.kept) {
            (Some(border), Kept::Oldest) => (0..border, border + 1..count),
            (Some(border), Kept::Newest) => (border + 1..count, 0..border),
            (None, _) if abstraction.has_border() => (0..count, 0..0),
            (None, _) => (0..0, 0..count),
        };
        self.queue.extend(queue.map(entry));
        self.rest.extend(rest.map(entry));
    }

    /// Packs the buffer of the thread with this number.
    pub fn write(
        &self,
        abstraction: Abstraction,
        (t, thread): (usize, &ThreadCode),
        fields: &BufferFields,
        state: &mut [u64],
    ) -> Result<(), Growth> {
        let border: &[Entry] = match abstraction.has_border() && !self.rest.is_empty() {
            true => &[(thread.border(), 0)],
            false => &[],
        };
        let (older, newer) = match abstraction.kept {
            Kept::Oldest => (&self.queue, &self.rest),
            Kept::Newest => (&self.rest, &self.queue),
        };
        let count = older.len() + border.len() + newer.len();
        if count > fields.entries.len() {
            return Err(Growth::Buffer(t as u32));
        }
        fields.count.set_raw(state, count as u64);
        let mut places = fields.entries.iter();
        for (&(kind, value), place) in older.iter().chain(border).chain(newer).zip(&mut places) {
            place.0.set_raw(state, kind);
            match kind < thread.barrier() {
                true if !place.1.set(state, value) => return Err(Growth::BufferValue(t as u32, value)),
                true => {}
                false => place.1.set_raw(state, 0),
            }
        }
        for place in places {
            place.0.set_raw(state, 0);
            place.1.set_raw(state, 0);
        }
        Ok(())
    }

    /// A store enters; false if it is left out.
    pub fn store(&mut self, abstraction: Abstraction, thread: &ThreadCode, pso: bool, new: Entry) -> bool {
        let alike = |&(kind, _): &Entry| if pso { kind == new.0 } else { kind < thread.barrier() };
        let full = self.queue.iter().filter(|entry| alike(entry)).count() >= abstraction.k as usize;
        match abstraction.kept {
            Kept::Oldest if full || self.rest.iter().any(alike) => return self.forget(abstraction, new),
            Kept::Newest if abstraction.k == 0 => return self.forget(abstraction, new),
            Kept::Newest if full => {
                let oldest = self.queue.iter().position(alike).expect("the queue is full");
                let forgotten = self.queue[oldest];
                self.unqueue(thread, oldest);
                if !self.forget(abstraction, forgotten) {
                    return false;
                }
            }
            Kept::Oldest | Kept::Newest => {}
        }
        // Under PSO the order of cells between two barriers means nothing.
        let newer = |&(kind, _): &Entry| pso && new.0 < kind && kind < thread.barrier();
        let position = self.queue.iter().rposition(|entry| !newer(entry)).map_or(0, |before| before + 1);
        self.queue.insert(position, new);
        true
    }

    /// `sfence` under PSO: a barrier at the end of the queue. Between stores in the rest there are none, and so there is none that such a store is behind
    /// and another one of the queue before.
    pub fn barrier(&mut self, abstraction: Abstraction, thread: &ThreadCode) {
        let hidden = abstraction.kept == Kept::Oldest && !self.rest.is_empty();
        if !hidden && self.queue.last().is_some_and(|last| last.0 != thread.barrier()) {
            self.queue.push((thread.barrier(), 0));
        }
    }

    /// One more copy of a value in the rest, which becomes the last one of its cell.
    fn forget(&mut self, abstraction: Abstraction, new: Entry) -> bool {
        let end = self.rest.partition_point(|entry| entry.0 <= new.0);
        let start = self.rest[..end].partition_point(|entry| entry.0 < new.0);
        let cell = &mut self.rest[start..end];
        if cell.iter().filter(|entry| **entry == new).count() < abstraction.many as usize {
            cell.sort_unstable();
            self.rest.insert(end, new);
            return true;
        }
        cell.sort_unstable_by_key(|entry| (*entry == new, *entry));
        // Now all copies are at the end, and all but one of them belong to where they are in order.
        let but_one = end - start - 1;
        cell[..but_one].sort_unstable();
        !abstraction.cut
    }

    /// Takes an entry out of the queue. A barrier is needed only between two stores.
    fn unqueue(&mut self, thread: &ThreadCode, position: usize) {
        self.queue.remove(position);
        let is_barrier = |n: usize| self.queue.get(n).is_some_and(|entry| entry.0 == thread.barrier());
        if (position == 0 || is_barrier(position - 1)) && is_barrier(position) {
            self.queue.remove(position);
        }
    }

    /// All ways for a store to leave.
    pub fn leaving(&self, abstraction: Abstraction, thread: &ThreadCode, pso: bool, out: &mut Vec<Leaving>) {
        out.clear();
        let in_order =
            self.queue.iter().take(if pso { usize::MAX } else { 1 }).take_while(|e| e.0 < thread.barrier());
        for (position, &(kind, value)) in in_order.enumerate() {
            let is_oldest = self.queue[..position].iter().all(|older| older.0 != kind);
            let waits =
                abstraction.kept == Kept::Newest && self.rest.iter().any(|older| !pso || older.0 == kind);
            if is_oldest && !waits {
                out.push(Leaving { kind, value, way: Way::Queue(position) });
            }
        }
        for cell in self.rest.chunk_by(|a, b| a.0 == b.0) {
            let kind = cell[0].0;
            let older = |entry: &Entry| !pso || entry.0 == kind || entry.0 == thread.barrier();
            if abstraction.kept == Kept::Oldest && self.queue.iter().any(older) {
                continue;
            }
            let start = self.rest.partition_point(|entry| entry.0 < kind);
            let copies = |value: i64| cell.iter().filter(|entry| entry.1 == value).count();
            let last = cell[cell.len() - 1].1;
            for (n, &(_, value)) in cell.iter().enumerate() {
                if cell[..n].iter().any(|entry| entry.1 == value) {
                    continue;
                }
                let count = copies(value);
                let mut leaves = |way: Way| out.push(Leaving { kind, value, way });
                if abstraction.is_any(count) {
                    leaves(Way::Any);
                } else if value != last || count > 1 {
                    leaves(Way::Rest(start + n));
                }
                let goes = |entry: &Entry| entry.1 == value || abstraction.is_any(copies(entry.1));
                if value == last && (count == 1 || abstraction.is_any(count)) && cell.iter().all(goes) {
                    leaves(Way::Cell);
                }
            }
        }
    }

    /// What stays after a store has left.
    pub fn leave(&mut self, thread: &ThreadCode, leaving: &Leaving) {
        match leaving.way {
            Way::Queue(position) => self.unqueue(thread, position),
            Way::Rest(position) => _ = self.rest.remove(position),
            Way::Any => {}
            Way::Cell => self.rest.retain(|entry| entry.0 != leaving.kind),
        }
    }
}
