//! Control states: everything in a state of a machine except the integers.

use fencewright_program::{LocationId, Program, ThreadId};

/// A control state: everything in a state except the values of cells.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Control {
    /// The control location of each thread.
    pub locations: Vec<LocationId>,
    /// The shape of each buffer; empty under SC.
    pub buffers: Vec<BufferShape>,
    /// The holder of the global lock; `None` if it is free.
    pub lock: Option<ThreadId>,
}

/// The shape of a buffer: the memory cells of its stores, in order as far as their order is known. The values are in cells of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferShape {
    /// Ordered entries, oldest first; the value of position n is in [`Cell::Entry`](crate::Cell::Entry).
    pub queue: Vec<Entry>,
    /// Memory cells with stores whose order and number is forgotten, sorted.
    pub set: Vec<u32>,
}

/// An entry of the ordered part of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Entry {
    /// A store to this memory cell.
    Store(u32),
    /// A store-store fence. Machines outside this crate may use it as a separator between entries.
    Barrier,
}

impl Entry {
    /// The memory cell of a store; `None` for a barrier.
    pub fn cell(&self) -> Option<u32> {
        match self {
            Entry::Store(cell) => Some(*cell),
            Entry::Barrier => None,
        }
    }
}

impl BufferShape {
    /// Whether nothing is buffered.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.set.is_empty()
    }
}

impl Control {
    /// Whether no other thread holds the lock. While another thread holds it, this thread can neither access memory nor flush its buffer.
    pub fn may_access(&self, thread: ThreadId) -> bool {
        self.lock.is_none_or(|holder| holder == thread)
    }

    /// Whether the buffer of the thread is empty.
    pub fn drained(&self, thread: ThreadId) -> bool {
        self.buffers.get(thread.index()).is_none_or(BufferShape::is_empty)
    }

    /// Whether all threads have terminated and all buffers are empty.
    pub fn is_final(&self, program: &Program) -> bool {
        program.threads().all(|(t, code)| code.is_end(self.locations[t.index()]) && self.drained(t))
    }

    /// Whether some thread has faulted.
    pub fn has_fault(&self, program: &Program) -> bool {
        program.threads().any(|(t, code)| self.locations[t.index()] == code.fault)
    }
}
