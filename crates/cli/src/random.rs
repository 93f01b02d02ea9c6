//! Random numbers that can be repeated: SplitMix64 (Steele, Lea and Flood 2014).

use std::hash::{BuildHasher, RandomState};

/// A source of random numbers.
pub struct Random {
    state: u64,
}

impl Random {
    /// The numbers that belong to a seed.
    pub fn new(seed: u64) -> Self {
        Random { state: seed }
    }

    /// A seed that nobody can foresee, short enough to type.
    pub fn fresh_seed() -> u64 {
        RandomState::new().hash_one(0) % 1_000_000
    }

    /// The next number.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not 0. The bias is far below what anybody could see.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
