//! Sets of parts of threads as the bits of a word: for each thread its edges and its flushes.

use crate::expand::Part;

/// Beyond so many threads a word does not have enough bits, and all steps are taken.
pub const MOST_THREADS: usize = 32;

/// The bit of the edges of a thread.
pub fn edges(t: usize) -> u64 {
    1 << (2 * t)
}

/// The bit of the flushes of a thread.
pub fn flushes(t: usize) -> u64 {
    2 << (2 * t)
}

/// All parts of so many threads.
pub fn all(threads: usize) -> u64 {
    if threads == 0 { 0 } else { u64::MAX >> (64 - 2 * threads) }
}

/// The thread of a part, and whether it is its flushes.
pub fn thread_of(bit: u64) -> (usize, bool) {
    let position = bit.trailing_zeros() as usize;
    (position / 2, position % 2 == 1)
}

/// The part of a bit.
pub fn part(bit: u64) -> Part {
    match thread_of(bit) {
        (t, false) => Part::Edges(t),
        (t, true) => Part::Flushes(t, None),
    }
}

/// The bits of a set, one by one.
pub fn bits(mut set: u64) -> impl Iterator<Item = u64> {
    std::iter::from_fn(move || {
        let bit = set & set.wrapping_neg();
        set ^= bit;
        (bit != 0).then_some(bit)
    })
}
