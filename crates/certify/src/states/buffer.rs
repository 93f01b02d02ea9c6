//! The unpacked store buffer of the thread that moves: all of its stores in order, or, with an [`abstraction`](super::abstraction), a queue and a
//! rest.

use fencewright_program::MemoryModel;
use fencewright_program::reference::Buffered;

use super::abstraction::{Abstraction, Leaving};
use super::{BufferFields, Field, StateSet};
use crate::certificate::KeptEnd;

/// The store buffer of the moving thread, unpacked.
pub(super) struct Buffer {
    abstraction: Option<Abstraction>,
    pso: bool,
    /// Ordered stores, oldest first, and barriers.
    queue: Vec<Buffered>,
    /// With an abstraction, all other stores: sorted by cell, each cell with its values in the form of [`Abstraction::added`].
    rest: Vec<(u32, Vec<i64>)>,
}

/// A store that can leave the buffer.
#[derive(Clone, Copy)]
pub(super) struct Flush {
    pub cell: u32,
    pub value: i64,
    way: Way,
}

#[derive(Clone, Copy)]
enum Way {
    /// The store leaves from this position of the queue.
    Queue(usize),
    /// The store leaves from the rest, in which its cell has this position.
    Rest(usize, Leaving),
}

impl Buffer {
    pub fn new(set: &StateSet) -> Self {
        let pso = MemoryModel::from(set.model) == MemoryModel::Pso;
        Buffer { abstraction: set.abstraction, pso, queue: Vec::new(), rest: Vec::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.rest.is_empty()
    }

    /// The value of the newest store to a cell.
    pub fn newest(&self, cell: u32) -> Option<i64> {
        let in_order = self.queue.iter().rev().find_map(|entry| match entry {
            Buffered::Store { cell: c, value } if *c == cell => Some(*value),
            _ => None,
        });
        let other =
            || self.rest.iter().find(|(c, _)| *c == cell).and_then(|(_, values)| values.last().copied());
        if self.keeps(KeptEnd::Oldest) { other().or(in_order) } else { in_order.or_else(other) }
    }

    /// Adds a store.
    pub fn store(&mut self, cell: u32, value: i64) {
        let Some(abstraction) = self.abstraction else { return self.enqueue(cell, value) };
        let alike = |e: &Buffered| *e != Buffered::Barrier && (!self.pso || is_to(e, cell));
        let full = self.queue.iter().filter(|e| alike(e)).count() >= abstraction.k as usize;
        match abstraction.kept {
            KeptEnd::Oldest if full || self.rest.iter().any(|(c, _)| !self.pso || *c == cell) => {
                self.forget(abstraction, cell, value);
            }
            KeptEnd::Newest if full => match self.queue.iter().position(alike) {
                Some(oldest) => {
                    if let Buffered::Store { cell, value } = self.dequeue(oldest) {
                        self.forget(abstraction, cell, value);
                    }
                    self.enqueue(cell, value);
                }
                None => self.forget(abstraction, cell, value),
            },
            KeptEnd::Oldest | KeptEnd::Newest => self.enqueue(cell, value),
        }
    }

    /// Adds a store fence.
    pub fn fence(&mut self) {
        let hidden = self.keeps(KeptEnd::Oldest) && !self.rest.is_empty();
        if self.pso && !hidden && !matches!(self.queue.last(), None | Some(Buffered::Barrier)) {
            self.queue.push(Buffered::Barrier);
        }
    }

    /// Collects all flushes that are possible.
    pub fn flushes(&self, ways: &mut Vec<Flush>) {
        for (position, entry) in self.queue.iter().enumerate() {
            let Buffered::Store { cell, value } = *entry else { break };
            if position > 0 && !self.pso {
                break;
            }
            let older = self.keeps(KeptEnd::Newest) && self.rest.iter().any(|(c, _)| !self.pso || *c == cell);
            if !older && !self.queue[..position].iter().any(|e| is_to(e, cell)) {
                ways.push(Flush { cell, value, way: Way::Queue(position) });
            }
        }
        let Some(abstraction) = self.abstraction else { return };
        for (n, (cell, values)) in self.rest.iter().enumerate() {
            let older = |e: &Buffered| !self.pso || *e == Buffered::Barrier || is_to(e, *cell);
            if !self.keeps(KeptEnd::Oldest) || !self.queue.iter().any(older) {
                let leaving = abstraction.leaving(values).into_iter();
                ways.extend(leaving.map(|(value, way)| Flush { cell: *cell, value, way: Way::Rest(n, way) }));
            }
        }
    }

    /// Removes the store of a flush from the buffer.
    pub fn leave(&mut self, flush: Flush) {
        match flush.way {
            Way::Queue(position) => _ = self.dequeue(position),
            Way::Rest(_, Leaving::Stays) => {}
            Way::Rest(n, Leaving::One(position)) => _ = self.rest[n].1.remove(position),
            Way::Rest(n, Leaving::All) => _ = self.rest.remove(n),
        }
    }

    /// Whether the buffer is abstract and keeps this end in order.
    fn keeps(&self, end: KeptEnd) -> bool {
        self.abstraction.is_some_and(|abstraction| abstraction.kept == end)
    }

    /// Adds a store to the queue. Under PSO the entries after the last barrier are sorted by cell, and those of the same cell by age.
    fn enqueue(&mut self, cell: u32, value: i64) {
        let mut position = self.queue.len();
        if self.pso {
            let later = |e: &&Buffered| matches!(e, Buffered::Store { cell: c, .. } if *c > cell);
            position -= self.queue.iter().rev().take_while(later).count();
        }
        self.queue.insert(position, Buffered::Store { cell, value });
    }

    /// Removes a store from the queue. A barrier that is then at the front or behind another barrier is removed too.
    fn dequeue(&mut self, position: usize) -> Buffered {
        let taken = self.queue.remove(position);
        self.queue.dedup_by(|e, before| *e == Buffered::Barrier && *before == Buffered::Barrier);
        if self.queue.first() == Some(&Buffered::Barrier) {
            self.queue.remove(0);
        }
        taken
    }

    /// Adds a store to the rest, where its order is forgotten.
    fn forget(&mut self, abstraction: Abstraction, cell: u32, value: i64) {
        let n = self.rest.partition_point(|(c, _)| *c < cell);
        match self.rest.get_mut(n) {
            Some((c, values)) if *c == cell => *values = abstraction.added(std::mem::take(values), value),
            _ => self.rest.insert(n, (cell, vec![value])),
        }
    }

    /// Reads a packed buffer; without fields it is empty.
    pub fn unpack(&mut self, fields: Option<&BufferFields>, state: &[u64]) {
        self.queue.clear();
        self.rest.clear();
        let Some(fields) = fields else { return };
        let entries = &fields.entries[..fields.count.get(state) as usize];
        let is_border = |(kind, _): &(Field, Field)| kind.get(state) > fields.cells.len() as i64;
        let rest = match self.abstraction {
            None => 0..0,
            Some(abstraction) => match (abstraction.kept, entries.iter().position(is_border)) {
                (KeptEnd::Oldest, Some(border)) => border..entries.len(),
                (KeptEnd::Newest, Some(border)) => 0..border + 1,
                (_, None) => 0..if abstraction.has_border() { 0 } else { entries.len() },
            },
        };
        for (n, (kind, value)) in entries.iter().enumerate() {
            let (cell, value) = (fields.cells.get(kind.get(state) as usize), value.get(state));
            match (cell, rest.contains(&n), self.rest.last_mut()) {
                (Some(&cell), false, _) => self.queue.push(Buffered::Store { cell, value }),
                (Some(&cell), true, Some((last, values))) if *last == cell => values.push(value),
                (Some(&cell), true, _) => self.rest.push((cell, vec![value])),
                (None, false, _) => self.queue.push(Buffered::Barrier),
                (None, true, _) => {}
            }
        }
    }

    /// Packs the buffer, older stores first; `None` if the fields cannot hold it.
    pub fn pack(&self, fields: Option<&BufferFields>, state: &mut [u64]) -> Option<()> {
        let Some(fields) = fields else { return Some(()) };
        let rest: usize = self.rest.iter().map(|(_, values)| values.len()).sum();
        let border = (rest > 0 && self.abstraction?.has_border()) as usize;
        let count = self.queue.len() + border + rest;
        fields.count.put(state, count as i64)?;
        if count > fields.entries.len() {
            return None;
        }
        for (kind, value) in &fields.entries {
            kind.clear(state);
            value.clear(state);
        }
        let (in_order, others) = match self.keeps(KeptEnd::Newest) {
            true => (rest + border, 0),
            false => (0, self.queue.len() + border),
        };
        if border > 0 {
            fields.entries[in_order.max(others) - 1].0.put(state, fields.cells.len() as i64 + 1)?;
        }
        let number = |cell: u32| fields.cells.binary_search(&cell).ok().map(|number| number as i64);
        for (entry, (kind, value)) in self.queue.iter().zip(&fields.entries[in_order..]) {
            match *entry {
                Buffered::Barrier => kind.put(state, fields.cells.len() as i64)?,
                Buffered::Store { cell, value: stored } => {
                    kind.put(state, number(cell)?)?;
                    value.put(state, stored)?;
                }
            }
        }
        let forgotten = self.rest.iter().flat_map(|(cell, values)| values.iter().map(|v| (*cell, *v)));
        for ((cell, stored), (kind, value)) in forgotten.zip(&fields.entries[others..]) {
            kind.put(state, number(cell)?)?;
            value.put(state, stored)?;
        }
        Some(())
    }
}

/// Whether an entry is a store to the cell.
fn is_to(entry: &Buffered, cell: u32) -> bool {
    matches!(entry, Buffered::Store { cell: c, .. } if *c == cell)
}
