//! The set of visited states: packed, in order of discovery, with a hash table for look-up.
//!
//! The order of discovery doubles as the queue of a breadth-first search. A slot of the table has 64 bits. If a state is one word, the slot *is* the
//! state, so a look-up touches one cache line. Otherwise the slot holds 32 bits of the hash and the index of the state, so a look-up rarely touches a
//! stored state other than the requested one. In both cases the upper bits of the hash give the position of a slot, and the position can be computed
//! from the slot alone: a table grows in one sequential pass over the old and the new table.
//!
//! That pass takes seconds for a table of gigabytes. A large table therefore grows between two rounds of the search ([`Store::make_room`]) and polls
//! the limits; the old table remains valid until the new one is complete.

use super::code::Code;
use super::layout::{Layout, LiveSlots};
use super::orbits::Representatives;

/// Marks the absence of a state.
pub const NONE: u32 = u32::MAX;

/// A slot without a state.
const EMPTY: u64 = 0;

/// Number of words repacked between two polls of the limits, which takes some milliseconds.
const REPACKED_WORDS: usize = 1 << 16;

/// Number of slots moved between two polls of the limits, which takes about a millisecond.
const MOVED_SLOTS: usize = 1 << 16;

/// Tables with fewer slots grow on demand, because that takes negligible time.
const LARGE_TABLE: usize = 1 << 18;

/// A set of packed states, each with its predecessor.
pub struct Store {
    words: usize,
    states: Vec<u64>,
    parents: Vec<u32>,
    /// The length is a power of two.
    table: Vec<u64>,
    /// 64 minus the binary logarithm of the length of the table.
    shift: u32,
    /// Whether the set contains the one-word state that has the same bits as an empty slot.
    has_empty: bool,
}

/// The hash of a packed state. Its upper bits determine the position in tables.
#[inline]
pub fn hash(state: &[u64]) -> u64 {
    match state {
        [word] => hash_word(*word),
        words => hash_words(words),
    }
}

/// The hash of a state of one word. When a table of one-word states grows, it computes the hashes again from its slots.
#[inline]
pub fn hash_word(word: u64) -> u64 {
    let product = u128::from(word ^ 0x243f_6a88_85a3_08d3) * 0x9e37_79b9_7f4a_7c15_u128;
    (product as u64 ^ (product >> 64) as u64).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

fn hash_words(words: &[u64]) -> u64 {
    words.iter().fold(0x1319_8a2e_0370_7344, |hash: u64, &word| hash_word(word ^ hash.rotate_left(23)))
}

impl Store {
    /// An empty store for states of the given number of words.
    pub fn new(words: usize) -> Self {
        let bits = 12;
        Store {
            words,
            states: Vec::new(),
            parents: Vec::new(),
            table: vec![EMPTY; 1 << bits],
            shift: 64 - bits,
            has_empty: false,
        }
    }

    /// The number of stored states.
    #[inline]
    pub fn len(&self) -> usize {
        self.parents.len()
    }

    /// The packed state with this index, in the order of discovery.
    #[inline]
    pub fn state(&self, number: u32) -> &[u64] {
        let start = number as usize * self.words;
        &self.states[start..start + self.words]
    }

    /// The predecessor of a state, or [`NONE`].
    pub fn parent(&self, number: u32) -> u32 {
        self.parents[number as usize]
    }

    /// The words of all states, in the order of discovery.
    pub fn into_states(self) -> Vec<u64> {
        self.states
    }

    /// Memory use in bytes.
    pub fn bytes(&self) -> usize {
        self.states.len() * 8 + self.parents.len() * 4 + self.table.len() * 8
    }

    /// The additional memory needed to add `more` states, in bytes: a table of twice the size beside the current one, and the states.
    pub fn bytes_to_grow(&self, more: usize) -> usize {
        let table = match self.is_full(more) {
            true => self.table.len() * 16,
            false => 0,
        };
        let states = match self.states.len() + more * self.words > self.states.capacity() {
            true => self.extension(more) * (self.words * 8 + 4),
            false => 0,
        };
        table + states
    }

    /// Makes room for `more` states. `go_on` is called every few milliseconds; if it returns false, the table is not enlarged. Capacity grows by a
    /// quarter, where a vector would double it.
    pub fn make_room(&mut self, more: usize, go_on: &mut dyn FnMut() -> bool) {
        if self.states.len() + more * self.words > self.states.capacity() {
            let extension = self.extension(more);
            self.states.reserve_exact(extension * self.words);
            self.parents.reserve_exact(extension);
        }
        if self.table.len() >= LARGE_TABLE && self.is_full(more) {
            self.enlarge(go_on);
        }
    }

    /// Whether `more` states would exceed the maximum load of the table.
    #[inline]
    fn is_full(&self, more: usize) -> bool {
        (self.len() + more) * 4 > self.table.len() * 3
    }

    fn extension(&self, more: usize) -> usize {
        more.max(self.len() / 4)
    }

    /// Prefetches the memory that a look-up of this hash accesses. Several prefetches in a row overlap their cache misses, while look-ups would wait
    /// for one miss after the other. The result has no meaning; returning it only keeps the compiler from dropping the accesses.
    #[inline]
    pub fn touch(&self, hash: u64) -> u64 {
        let slot = self.table[(hash >> self.shift) as usize];
        match self.words > 1 && slot != EMPTY && slot >> 32 == hash >> 32 {
            true => self.states[(slot as u32 - 1) as usize * self.words],
            false => slot,
        }
    }

    /// Adds a state. Returns its index if it is new.
    #[inline]
    pub fn insert(&mut self, state: &[u64], hash: u64, parent: u32) -> Option<u32> {
        let number = self.parents.len() as u32;
        let mask = self.table.len() - 1;
        let mut position = (hash >> self.shift) as usize;
        if let [word] = *state {
            if word == EMPTY {
                if std::mem::replace(&mut self.has_empty, true) {
                    return None;
                }
            } else {
                loop {
                    let slot = self.table[position];
                    if slot == word {
                        return None;
                    }
                    if slot == EMPTY {
                        break;
                    }
                    position = (position + 1) & mask;
                }
                self.table[position] = word;
            }
            self.states.push(word);
        } else {
            loop {
                let slot = self.table[position];
                if slot == EMPTY {
                    break;
                }
                if slot >> 32 == hash >> 32 && self.state(slot as u32 - 1) == state {
                    return None;
                }
                position = (position + 1) & mask;
            }
            self.table[position] = (hash >> 32 << 32) | u64::from(number + 1);
            self.states.extend_from_slice(state);
        }
        self.parents.push(parent);
        if self.is_full(0) {
            self.enlarge(&mut || true);
        }
        Some(number)
    }

    /// Doubles the table. If `go_on` returns false, the table stays as it is.
    #[cold]
    fn enlarge(&mut self, go_on: &mut dyn FnMut() -> bool) {
        let shift = self.shift - 1;
        let mut larger = vec![EMPTY; self.table.len() * 2];
        // A probe sequence may wrap around the end of the old table; starting after an empty slot keeps the order of its slots.
        let start = self.table.iter().position(|&slot| slot == EMPTY).unwrap_or(0);
        let (wrapped, first) = self.table.split_at(start);
        for slots in first.chunks(MOVED_SLOTS).chain(wrapped.chunks(MOVED_SLOTS)) {
            if !go_on() {
                return;
            }
            for &slot in slots.iter().filter(|&&slot| slot != EMPTY) {
                let hash = if self.words == 1 { hash_word(slot) } else { slot };
                place(&mut larger, shift, hash, slot);
            }
        }
        (self.table, self.shift) = (larger, shift);
    }

    /// The same states in a wider layout; their predecessors are added by [`Store::adopt`]. Since this may take seconds, `go_on` is called every few
    /// milliseconds; the result is `None` if `go_on` returns false.
    pub fn repacked(
        &self,
        code: &Code,
        old: &Layout,
        new: &Layout,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Option<Store> {
        let mut states = vec![0; self.len() * new.words];
        let mut wider = Store {
            words: new.words,
            states: Vec::new(),
            parents: Vec::new(),
            table: vec![EMPTY; self.table.len()],
            shift: self.shift,
            has_empty: false,
        };
        let mut live = LiveSlots::default();
        let mut representatives = Representatives::new(code);
        let often = REPACKED_WORDS.div_ceil(new.words);
        let pairs = self.states.chunks_exact(self.words).zip(states.chunks_exact_mut(new.words));
        for (n, (from, to)) in pairs.enumerate() {
            if n % often == 0 && !go_on() {
                return None;
            }
            new.repack(code, &mut live, old, from, to);
            representatives.replace(new, to);
            let hash = hash(to);
            match *to {
                [EMPTY] => wider.has_empty = true,
                [word] => place(&mut wider.table, wider.shift, hash, word),
                _ => place(&mut wider.table, wider.shift, hash, (hash >> 32 << 32) | (n as u64 + 1)),
            }
        }
        wider.states = states;
        Some(wider)
    }

    /// Replaces the states by the result of [`Store::repacked`].
    pub fn adopt(&mut self, wider: Store) {
        let parents = std::mem::take(&mut self.parents);
        *self = Store { parents, ..wider };
    }

    /// The memory that [`Store::repacked`] needs, in bytes.
    pub fn bytes_to_repack(&self, words: usize) -> usize {
        (self.len() * words + self.table.len()) * 8
    }
}

/// Inserts a slot at the first free position, starting from the position that its hash gives.
fn place(table: &mut [u64], shift: u32, hash: u64, slot: u64) {
    let mask = table.len() - 1;
    let mut position = (hash >> shift) as usize;
    while table[position] != EMPTY {
        position = (position + 1) & mask;
    }
    table[position] = slot;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_table_grows_as_a_whole_or_not_at_all() {
        // As many states as fit into a large table.
        let count = LARGE_TABLE as u64 / 4 * 3;
        for words in [1, 2] {
            let mut store = Store::new(words);
            let insert = |store: &mut Store, n: u64| {
                let state = vec![n; words];
                store.insert(&state, hash(&state), NONE)
            };
            assert!((0..count).all(|n| insert(&mut store, n).is_some()));
            assert_eq!(store.table.len(), LARGE_TABLE);
            let needed = store.bytes_to_grow(1_000);
            assert!(needed >= 2 * LARGE_TABLE * 8, "{needed}");
            // Time runs out half-way.
            let mut asked = 0;
            store.make_room(1_000, &mut || {
                asked += 1;
                asked <= LARGE_TABLE / MOVED_SLOTS / 2
            });
            assert_eq!((store.table.len(), asked), (LARGE_TABLE, LARGE_TABLE / MOVED_SLOTS / 2 + 1));
            assert!((0..count).all(|n| insert(&mut store, n).is_none()));
            store.make_room(1_000, &mut || true);
            assert_eq!(store.table.len(), 2 * LARGE_TABLE);
            assert!((0..count).all(|n| insert(&mut store, n).is_none()));
            assert!((count..count + 1_000).all(|n| insert(&mut store, n).is_some()));
        }
    }
}
