//! Sets of thread parts as bit masks: for each thread one bit for its edges and one for its flushes.

use crate::expand::Part;

/// Maximum number of threads that fit into a word; with more, all steps are taken.
pub const MOST_THREADS: usize = 32;

/// The bit of the edges of a thread.
pub fn edges(t: usize) -> u64 {
    1 << (2 * t)
}

/// The bit of the flushes of a thread.
pub fn flushes(t: usize) -> u64 {
    2 << (2 * t)
}

/// The set of all parts of the given number of threads.
pub fn all(threads: usize) -> u64 {
    if threads == 0 { 0 } else { u64::MAX >> (64 - 2 * threads) }
}

/// The thread of a part, and whether the part is its flushes.
pub fn thread_of(bit: u64) -> (usize, bool) {
    let position = bit.trailing_zeros() as usize;
    (position / 2, position % 2 == 1)
}

/// The part with this bit.
pub fn part(bit: u64) -> Part {
    match thread_of(bit) {
        (t, false) => Part::Edges(t),
        (t, true) => Part::Flushes(t, None),
    }
}

/// Iterates over the bits of a set.
pub fn bits(mut set: u64) -> impl Iterator<Item = u64> {
    std::iter::from_fn(move || {
        let bit = set & set.wrapping_neg();
        set ^= bit;
        (bit != 0).then_some(bit)
    })
}
