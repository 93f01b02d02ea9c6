//! States of the interpreter of the stateless search.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

/// Marks the absence of an event.
pub const NONE: u32 = u32::MAX;

/// Added to the location of a thread that has stopped at a limit.
const STOPPED: i64 = 1 << 32;

/// A state of the whole program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The index of the lock's holder plus 1 (0 if the lock is free), then the locations of the threads ([`STOPPED`] is added to that of a thread
    /// that has stopped), their registers, and the memory cells.
    pub values: Vec<i64>,
    /// All buffered stores; those of each thread in the order in which they were issued.
    pub buffers: Vec<Buffered>,
    /// For each thread, the numbers of stores and of store fences it has issued; empty under SC.
    pub issued: Vec<[u32; 2]>,
}

/// A store that has not reached memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffered {
    /// The thread that issued the store.
    pub thread: u32,
    /// The memory cell that a flush of the store writes.
    pub cell: u32,
    /// The value that a flush of the store writes.
    pub value: i64,
    /// The numbers of stores and of store fences that the thread issued before this store.
    pub issued: [u32; 2],
    /// The event that issued the store.
    pub event: u32,
    /// The last event that loaded the store from the buffer, or [`NONE`].
    pub reader: u32,
}

impl State {
    /// Whether a thread has stopped: its next step cannot be computed.
    pub fn is_stopped(&self, thread: usize) -> bool {
        self.values[1 + thread] & STOPPED != 0
    }

    /// Undoes a partly performed step: restores the state before the step, and marks the thread as stopped. Buffered stores keep the event that last
    /// read them, because the footprint of the step contains these reads.
    pub fn stop(&mut self, before: &State, thread: usize) {
        self.values.clone_from(&before.values);
        self.buffers.truncate(before.buffers.len());
        self.issued.clone_from(&before.issued);
        self.values[1 + thread] |= STOPPED;
    }

    /// A hash of the components that determine the future behaviour.
    pub fn identity(&self) -> u64 {
        let mut hasher = FxHasher::default();
        self.values.hash(&mut hasher);
        for (n, store) in self.buffers.iter().enumerate() {
            // A store fence matters only while a store before it is buffered.
            let mine = |b: &&Buffered| b.thread == store.thread;
            let fenced = self.buffers[n + 1..].iter().find(mine).map(|next| next.issued[1]);
            let fenced = fenced.unwrap_or(self.issued[store.thread as usize][1]) > store.issued[1];
            (store.thread, store.cell, store.value, fenced).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// Whether the states are equal up to the indices of events.
    pub fn is_like(&self, other: &State) -> bool {
        let store = |b: &Buffered| (b.thread, b.cell, b.value, b.issued);
        let stores = |state: &State, thread: u32| {
            state.buffers.iter().filter(|b| b.thread == thread).map(store).collect::<Vec<_>>()
        };
        self.values == other.values
            && self.issued == other.issued
            && (0..self.issued.len() as u32).all(|thread| stores(self, thread) == stores(other, thread))
    }

    /// Memory use in bytes.
    pub fn bytes(&self) -> usize {
        size_of::<State>()
            + size_of_val(&*self.values)
            + size_of_val(&*self.buffers)
            + size_of_val(&*self.issued)
    }
}
