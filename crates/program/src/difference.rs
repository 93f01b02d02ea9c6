//! Sequences of states, stored as the first state and the differences between neighbours, so that long executions fit into memory.

use crate::model::{LocationId, ThreadId};
use crate::reference::{Buffered, State};

/// One difference between a state and its successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Difference {
    /// A thread moves to another location: thread, location.
    Location(u32, LocationId),
    /// A register changes: thread, register, new value.
    Register(u32, u32, i64),
    /// A memory cell changes: cell, new value.
    Memory(u32, i64),
    /// A buffer loses the entry at a position: thread, position.
    Removed(u32, u32),
    /// A buffer gains an entry at a position: thread, position, entry.
    Inserted(u32, u32, Buffered),
    /// The holder of the global lock changes to this thread; `None` if the lock becomes free.
    Lock(Option<ThreadId>),
}

/// A sequence of states: the first, the last, and the differences from each state to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct States {
    first: Box<State>,
    last: Box<State>,
    differences: Vec<Difference>,
    /// For each state but the first, the end of its differences in `differences`.
    ends: Vec<usize>,
}

impl States {
    /// The sequence of this single state.
    pub fn new(first: State) -> Self {
        States {
            last: Box::new(first.clone()),
            first: Box::new(first),
            differences: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Appends a state, as its differences from the last one. The numbers of threads, registers and cells must be the same.
    pub fn push(&mut self, next: State) {
        let before = &self.last;
        let found = &mut self.differences;
        for (t, (&old, &new)) in before.locations.iter().zip(&next.locations).enumerate() {
            found.extend((old != new).then_some(Difference::Location(t as u32, new)));
        }
        for (t, (old, new)) in before.registers.iter().zip(&next.registers).enumerate() {
            let changed = old.iter().zip(new).enumerate().filter(|(_, (old, new))| old != new);
            found.extend(changed.map(|(r, (_, &new))| Difference::Register(t as u32, r as u32, new)));
        }
        let changed = before.memory.iter().zip(&next.memory).enumerate().filter(|(_, (old, new))| old != new);
        found.extend(changed.map(|(cell, (_, &new))| Difference::Memory(cell as u32, new)));
        for (t, (old, new)) in before.buffers.iter().zip(&next.buffers).enumerate() {
            let same = |(a, b): &(&Buffered, &Buffered)| a == b;
            let front = old.iter().zip(new).take_while(same).count();
            let back = old[front..].iter().rev().zip(new[front..].iter().rev()).take_while(same).count();
            let (t, at) = (t as u32, front as u32);
            found.extend((front..old.len() - back).map(|_| Difference::Removed(t, at)));
            let inserted = new[front..new.len() - back].iter().enumerate();
            found.extend(inserted.map(|(n, &entry)| Difference::Inserted(t, at + n as u32, entry)));
        }
        found.extend((before.lock != next.lock).then_some(Difference::Lock(next.lock)));
        self.ends.push(found.len());
        *self.last = next;
    }

    /// The first state.
    pub fn first(&self) -> &State {
        &self.first
    }

    /// The last state.
    pub fn last(&self) -> &State {
        &self.last
    }

    /// The number of states; at least 1.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.ends.len() + 1
    }

    /// Changes `state`, which must be the state with this number (counted from 0), into the next one.
    pub fn advance(&self, state: &mut State, number: usize) {
        let start = number.checked_sub(1).map_or(0, |n| self.ends[n]);
        for difference in &self.differences[start..self.ends[number]] {
            match *difference {
                Difference::Location(t, location) => state.locations[t as usize] = location,
                Difference::Register(t, r, value) => state.registers[t as usize][r as usize] = value,
                Difference::Memory(cell, value) => state.memory[cell as usize] = value,
                Difference::Removed(t, at) => _ = state.buffers[t as usize].remove(at as usize),
                Difference::Inserted(t, at, entry) => state.buffers[t as usize].insert(at as usize, entry),
                Difference::Lock(holder) => state.lock = holder,
            }
        }
    }

    /// Visits all states in order, with their numbers from 0.
    pub fn for_each(&self, mut visit: impl FnMut(usize, &State)) {
        let mut state = State::clone(&self.first);
        for number in 0..self.len() {
            visit(number, &state);
            if number + 1 < self.len() {
                self.advance(&mut state, number);
            }
        }
    }
}
