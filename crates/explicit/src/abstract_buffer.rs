//! Abstract store buffers on packed states (THESIS16 s. 3.2): the order of a bounded number of stores is kept; of all other stores only the number of
//! occurrences of each value, per cell.
//!
//! An abstract buffer is a *queue* of at most k stores (PSO: k per memory cell) and a *rest*: for each cell a multiset of values and the value that
//! was added last. Counts saturate at `many`, which stands for any number of copies, even 0: flushing a copy does not decrease it.
//!
//! | | k | many | figure |
//! |---|---|---|---|
//! | `set` | 0 | 1 | Fig. 3.6 |
//! | `multiset`, enlarged | 0 | the bound on copies | Fig. 3.8 |
//! | `partial:k` | k | 1 | Fig. 3.10 |
//!
//! [The checker](fencewright_certify::states::abstraction) defines the transition rules and proves that they simulate exact buffers. Fig. 3.6 has one
//! more rule (WM-D), by which a flushed value other than the last one is removed from the set. This rule is not needed: a buffer that keeps the value
//! has all behaviours of the buffer that drops it, because the flush of the value added last removes all other values of its cell. Omitting the rule
//! saves transitions but hardly any states: 254 of the 256 states of Fig. 3.3 remain, and 3,043,468 of the 3,047,655 states of random programs under
//! all abstractions.
//!
//! Multisets can also be *expanded* (`cut`): they are counted exactly, and a store of a value that already occurs `many` times is not explored. Such
//! a search under-approximates the multiset machine, so it can find violations but not prove their absence.
//!
//! In packed states a buffer is a sequence of entries from old to new, like an exact buffer. The entries of the rest are sorted by cell and value,
//! except that one copy of the value added last is the last entry of its cell. Hence loading from the newest entry of a cell is correct for abstract
//! buffers too. If k > 0, a *border* entry separates queue and rest, unless the rest is empty.

use fencewright_memory::Kept;

use super::code::ThreadCode;
use super::layout::{BufferFields, Growth};

/// The parameters of an abstract buffer: which stores it keeps in order, and how it counts all other stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abstraction {
    /// Maximum number of stores kept in order (PSO: per memory cell).
    pub k: u32,
    /// Whether the oldest or the newest stores are kept in order.
    pub kept: Kept,
    /// At least 1. Copies of a value are counted up to `many`; unless `cut`, a count of `many` stands for any number of copies, even 0.
    pub many: u32,
    /// Whether a store is cut off, that is, not explored, if the buffer already has `many` copies of its value. Otherwise the count saturates.
    pub cut: bool,
}

impl Abstraction {
    /// For each cell, the set of buffered values and the value added last; the number of copies of a value is not kept.
    pub const SET: Abstraction = Abstraction::multiset(1);

    /// Multisets in which a count of `many` stands for any number of copies, even 0.
    pub const fn multiset(many: u32) -> Self {
        Abstraction { k: 0, kept: Kept::Oldest, many, cut: false }
    }

    /// `k` stores in order, and sets of values for all other stores.
    pub const fn partial(k: u32, kept: Kept) -> Self {
        Abstraction { k, kept, many: 1, cut: false }
    }

    /// Whether a border entry separates the queue from a non-empty rest.
    pub fn has_border(self) -> bool {
        self.k > 0
    }

    fn is_any(self, count: usize) -> bool {
        !self.cut && count == self.many as usize
    }
}

/// A buffered store: its cell, as an index into `buffered_cells`, and its value. A barrier has `ThreadCode::barrier` in place of the cell.
type Entry = (u64, i64);

/// An abstract buffer, unpacked from a state. Both lists have the form that the module comment defines, without the border.
#[derive(Default)]
pub struct AbstractBuffer {
    queue: Vec<Entry>,
    rest: Vec<Entry>,
}

/// A flush that the rules allow for the current contents of an abstract buffer. One buffered value may have several flushes, which leave different
/// buffers behind.
pub struct Leaving {
    /// The cell that the flush writes, as an index into `buffered_cells`.
    pub kind: u64,
    /// The value that the flush writes to memory.
    pub value: i64,
    way: Way,
}

/// Which entry is flushed, and how the buffer changes.
enum Way {
    /// Flushes the entry at this position of the queue and removes it from the queue.
    Queue(usize),
    /// Flushes the entry at this position of the rest and removes only this entry.
    Rest(usize),
    /// Flushes an entry of the rest whose count is `many`; the buffer does not change.
    Any,
    /// Flushes the value that was added last for the cell, and removes all entries of the cell from the rest.
    Cell,
}

impl AbstractBuffer {
    /// Unpacks the buffer of one thread from a packed state.
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

    /// Packs the buffer into the fields of thread `t`.
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

    /// Enqueues a store. Returns false if the store is not explored (`cut`).
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
        // Under PSO stores to different cells between two barriers are unordered, so they are kept sorted by cell.
        let newer = |&(kind, _): &Entry| pso && new.0 < kind && kind < thread.barrier();
        let position = self.queue.iter().rposition(|entry| !newer(entry)).map_or(0, |before| before + 1);
        self.queue.insert(position, new);
        true
    }

    /// `sfence` under PSO: appends a barrier to the queue, unless the queue is empty or ends with a barrier. No barrier is added either if the oldest
    /// stores are kept and the rest is not empty: the newest stores are then in the rest, which contains no barriers.
    pub fn barrier(&mut self, abstraction: Abstraction, thread: &ThreadCode) {
        let hidden = abstraction.kept == Kept::Oldest && !self.rest.is_empty();
        if !hidden && self.queue.last().is_some_and(|last| last.0 != thread.barrier()) {
            self.queue.push((thread.barrier(), 0));
        }
    }

    /// Adds one more copy of a value to the rest, unless it has `many` copies already, and makes the value the last one of its cell. Returns false if
    /// the store is cut off, because the value already has `many` copies and `cut` is set.
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
        // Now all copies of the new value are at the end. Only the last copy stays there; the others are sorted among the other values.
        let but_one = end - start - 1;
        cell[..but_one].sort_unstable();
        !abstraction.cut
    }

    /// Removes an entry from the queue, and a barrier that is then at the front or right behind another barrier.
    fn unqueue(&mut self, thread: &ThreadCode, position: usize) {
        self.queue.remove(position);
        let is_barrier = |n: usize| self.queue.get(n).is_some_and(|entry| entry.0 == thread.barrier());
        if (position == 0 || is_barrier(position - 1)) && is_barrier(position) {
            self.queue.remove(position);
        }
    }

    /// Replaces the contents of `out` by all flushes that are enabled, whether or not another thread holds the lock.
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

    /// Changes the buffer as the chosen flush requires; `Way::Any` leaves it unchanged.
    pub fn leave(&mut self, thread: &ThreadCode, leaving: &Leaving) {
        match leaving.way {
            Way::Queue(position) => self.unqueue(thread, position),
            Way::Rest(position) => _ = self.rest.remove(position),
            Way::Any => {}
            Way::Cell => self.rest.retain(|entry| entry.0 != leaving.kind),
        }
    }
}
