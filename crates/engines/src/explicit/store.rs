//! The states seen so far: packed, in the order in which they were found, with a hash table of their numbers.
//!
//! A table slot holds 32 bits of the hash and the number of the state, so that a look-up touches a stored state only if it is
//! very likely the one looked for. The order of discovery doubles as the queue of a breadth-first search.

use super::layout::Layout;
use crate::explicit::code::Code;

/// The number of no state.
pub const NONE: u32 = u32::MAX;

/// A set of packed states with, for each, the state it was reached from.
pub struct Store {
    words: usize,
    states: Vec<u64>,
    parents: Vec<u32>,
    /// Hash (upper half) and number plus 1 (lower half); 0 is empty. The length is a power of two.
    table: Vec<u64>,
}

/// The hash of a packed state.
#[inline]
pub fn hash(state: &[u64]) -> u64 {
    let mut hash = 0x243f_6a88_85a3_08d3_u64;
    for &word in state {
        let product = u128::from(hash ^ word) * 0x9e37_79b9_7f4a_7c15_u128;
        hash = (product as u64) ^ ((product >> 64) as u64) ^ word.rotate_left(32);
    }
    let product = u128::from(hash) * 0xa076_1d64_78bd_642f_u128;
    (product as u64) ^ ((product >> 64) as u64)
}

impl Store {
    /// An empty store for states of so many words.
    pub fn new(words: usize) -> Self {
        Store { words, states: Vec::new(), parents: Vec::new(), table: vec![0; 1 << 10] }
    }

    /// How many states there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.parents.len()
    }

    /// The state with this number.
    #[inline]
    pub fn state(&self, number: u32) -> &[u64] {
        let start = number as usize * self.words;
        &self.states[start..start + self.words]
    }

    /// The state it was reached from.
    pub fn parent(&self, number: u32) -> u32 {
        self.parents[number as usize]
    }

    /// How many bytes the store occupies.
    pub fn bytes(&self) -> usize {
        self.states.len() * 8 + self.parents.len() * 4 + self.table.len() * 8
    }

    /// How many bytes it would occupy while it doubles its table.
    pub fn bytes_to_grow(&self) -> usize {
        self.table.len() * 16
    }

    /// Brings what a look-up of this hash needs into the cache: many of these in a row wait for memory at the same time,
    /// where look-ups one after the other would wait in turn.
    #[inline]
    pub fn touch(&self, hash: u64) -> u64 {
        let slot = self.table[hash as usize & (self.table.len() - 1)];
        match slot >> 32 == hash >> 32 && slot != 0 {
            true => self.states[((slot as u32) - 1) as usize * self.words],
            false => slot,
        }
    }

    /// Adds a state; its number if it is new.
    #[inline]
    pub fn insert(&mut self, state: &[u64], hash: u64, parent: u32) -> Option<u32> {
        let mask = self.table.len() - 1;
        let tag = hash >> 32 << 32;
        let mut position = hash as usize & mask;
        loop {
            let slot = self.table[position];
            if slot == 0 {
                break;
            }
            if slot >> 32 << 32 == tag && self.state(slot as u32 - 1) == state {
                return None;
            }
            position = (position + 1) & mask;
        }
        let number = self.parents.len() as u32;
        self.table[position] = tag | u64::from(number + 1);
        self.states.extend_from_slice(state);
        self.parents.push(parent);
        if self.parents.len() * 4 > self.table.len() * 3 {
            self.rehash(self.table.len() * 2);
        }
        Some(number)
    }

    fn rehash(&mut self, length: usize) {
        self.table = Vec::new();
        let mut table = vec![0u64; length];
        let mask = length - 1;
        for (n, state) in self.states.chunks_exact(self.words).enumerate() {
            let hash = hash(state);
            let mut position = hash as usize & mask;
            while table[position] != 0 {
                position = (position + 1) & mask;
            }
            table[position] = (hash >> 32 << 32) | (n as u64 + 1);
        }
        self.table = table;
    }

    /// Packs all states anew.
    pub fn repack(&mut self, code: &Code, old: &Layout, new: &Layout) {
        let mut states = vec![0; self.len() * new.words];
        for (from, to) in self.states.chunks_exact(self.words).zip(states.chunks_exact_mut(new.words)) {
            new.repack(code, old, from, to);
        }
        self.states = states;
        self.words = new.words;
        self.rehash(self.table.len());
    }
}
