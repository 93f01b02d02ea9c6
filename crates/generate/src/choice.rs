//! Random choices. The same seed gives the same choices on every machine.

use fastrand::Rng;

/// A pseudo-random generator.
#[derive(Clone, Debug)]
pub struct Random(Rng);

impl Random {
    /// The generator for a seed.
    pub fn new(seed: u64) -> Self {
        Random(Rng::with_seed(seed))
    }

    /// A random seed with at most six digits, which is easy to type.
    pub fn fresh_seed() -> u64 {
        fastrand::u64(..1_000_000)
    }

    /// A number below `n`; 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        // `u64(..)` is used because the result of `usize(..)` depends on the word size of the machine.
        self.0.u64(..n.max(1) as u64) as usize
    }

    /// True with probability 1/n.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// A number from `low` to `high`, both included; requires `low <= high`.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        self.0.i64(low..=high)
    }

    /// A random element of `choices`, which must not be empty.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }
}
