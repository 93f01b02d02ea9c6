//! A hash set of packed states, with lookups in batches.

use std::hash::{BuildHasher, RandomState};

use fencewright_proof::Stop;

/// The states in one array, and hash tables with their numbers.
pub(super) struct Table<'a> {
    words: usize,
    /// Chosen at random, so that an attacker cannot prepare states with equal hashes.
    seed: u64,
    states: &'a [u64],
    /// The hash tables. The hash of a state determines its shard; shards are built in parallel.
    shards: Vec<Shard>,
}

/// A hash table with open addressing. A slot holds half of the hash of a state and the number of the state plus 1; a free slot is 0.
struct Shard {
    slots: Vec<u64>,
}

/// Number of states between two polls of `stop`.
const POLLED: usize = 1 << 14;

fn hash(state: &[u64], seed: u64) -> u64 {
    let mix = |hash: u64, word: &u64| {
        let mixed = (hash ^ word).wrapping_mul(0xa076_1d64_78bd_642f);
        (mixed ^ (mixed >> 29)).wrapping_mul(0xe703_7ed1_a0b4_28db)
    };
    let hash = state.iter().fold(seed, mix);
    hash ^ (hash >> 32)
}

impl<'a> Table<'a> {
    /// Builds the table of these states with `workers` threads; `None` if `stop` returned true.
    pub fn new(states: &'a [u64], words: usize, workers: usize, stop: &Stop) -> Option<Self> {
        let seed = RandomState::new().hash_one(words);
        let shard = |own: usize| {
            let mut count = 0;
            for part in states.chunks(POLLED * words) {
                if stop() {
                    return None;
                }
                count += part.chunks_exact(words).filter(|s| shard_of(hash(s, seed), workers) == own).count();
            }
            let mut slots = vec![0u64; (count * 3 / 2 + 1).next_power_of_two()];
            let mask = slots.len() - 1;
            for (n, state) in states.chunks_exact(words).enumerate() {
                if n % POLLED == 0 && stop() {
                    return None;
                }
                let hash = hash(state, seed);
                if shard_of(hash, workers) != own {
                    continue;
                }
                let mut place = hash as usize & mask;
                while slots[place] != 0 {
                    place = (place + 1) & mask;
                }
                slots[place] = (hash >> 32 << 32) | (n as u64 + 1);
            }
            Some(Shard { slots })
        };
        let shards: Option<Vec<Shard>> = match workers {
            1 => Some(vec![shard(0)?]),
            _ => std::thread::scope(|scope| {
                let made: Vec<_> = (0..workers).map(|own| scope.spawn(move || shard(own))).collect();
                made.into_iter().map(|made| made.join().expect("no worker panics")).collect()
            }),
        };
        Some(Table { words, seed, states, shards: shards? })
    }

    /// The position of the first of `states` that is not in the set and for which `otherwise` is false. All slots are read before any is compared, so
    /// that the cache misses overlap; by measurement, this halves the time of a check. `places` is scratch space.
    pub fn missing(
        &self,
        states: &[u64],
        places: &mut Vec<(u64, u64)>,
        otherwise: &mut impl FnMut(&[u64]) -> bool,
    ) -> Option<usize> {
        places.clear();
        for state in states.chunks_exact(self.words) {
            let hash = hash(state, self.seed);
            let slots = &self.shards[shard_of(hash, self.shards.len())].slots;
            places.push((hash, slots[hash as usize & (slots.len() - 1)]));
        }
        let mut asked = states.chunks_exact(self.words).zip(&*places);
        asked.position(|(state, &(hash, slot))| {
            !self.is_at(slot, hash, state) && !self.contains(state, hash) && !otherwise(state)
        })
    }

    /// Whether a state is in the set.
    pub fn has(&self, state: &[u64]) -> bool {
        self.contains(state, hash(state, self.seed))
    }

    /// Whether a slot with this content refers to the given state, which has this hash.
    #[inline]
    fn is_at(&self, slot: u64, hash: u64, state: &[u64]) -> bool {
        if slot == 0 || slot >> 32 != hash >> 32 {
            return false;
        }
        let start = (slot as u32 - 1) as usize * self.words;
        self.states[start..start + self.words].iter().eq(state)
    }

    fn contains(&self, state: &[u64], hash: u64) -> bool {
        let slots = &self.shards[shard_of(hash, self.shards.len())].slots;
        let mut place = hash as usize & (slots.len() - 1);
        while slots[place] != 0 {
            if self.is_at(slots[place], hash, state) {
                return true;
            }
            place = (place + 1) & (slots.len() - 1);
        }
        false
    }
}

fn shard_of(hash: u64, shards: usize) -> usize {
    (hash >> 32) as usize % shards
}
