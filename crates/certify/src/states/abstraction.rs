//! Store buffers that forget (THESIS16 s. 3.2): sets of states of machines that over-approximate the exact ones.
//!
//! The buffer of a thread has a *queue* Q of at most k stores in order (PSO: at most k to each memory cell), and a *rest* R: for each memory cell the
//! multiplicity of each value, and the value added last. A multiplicity of `many` stands for any number, including 0. Sets of values (Fig. 3.6) are k
//! = 0, many = 1; partial coherence (Fig. 3.10) is any k with many = 1; multisets (Fig. 3.8) are the limit of k = 0 for growing many.
//!
//! | | the oldest stores are kept in Q | the newest stores are kept in Q |
//! |---|---|---|
//! | a store | enters Q if Q has fewer than k and R is empty, else R | enters Q; if Q has k already, its oldest first moves to R |
//! | enters R | becomes the last value of its cell, and is counted up to many | the same |
//! | leaves Q | if it is the oldest | if it is the oldest and R is empty |
//! | leaves R | if Q is empty | always |
//! | store fence (PSO) | a barrier at the end of Q, if R is empty | a barrier at the end of Q |
//!
//! Under PSO, each rule about Q and R applies to the stores to one cell; in addition, a store leaves Q only if no barrier precedes it, and leaves R,
//! with the oldest kept, only if Q contains no barrier. A barrier at the front of Q is removed. A store can leave R in each of these ways whose
//! condition holds:
//!
//! 1. its value occurs `many` times: R is unchanged;
//! 2. its value occurs less often, and it is not the value added last or there is another copy: one copy is removed;
//! 3. its value is the one added last, this value occurs once or `many` times, and every other value of the cell occurs `many` times: the whole cell
//!    is removed.
//!
//! A load reads the newest store to its cell in Q or the value added last in R, whichever is newer, and memory if neither exists. An action that
//! waits for an empty buffer waits until both Q and R are empty.
//!
//! # Why these machines simulate the exact ones
//!
//! Say that an abstract buffer *represents* an exact one if the stores of the exact buffer are those of Q, in their order, and *other* stores, which
//! R describes as follows. A value that R has fewer than `many` times, or not at all, occurs exactly that often among the other stores. A cell has an
//! entry in R if and only if one of the other stores is to it, and then the value added last is that of the newest of them. If Q keeps the oldest
//! stores, the other stores are newer than those of Q (PSO: than those to the same cell); if Q keeps the newest stores, they are older. If a barrier
//! of Q is between two stores of Q, there is a barrier between them in the exact buffer; and, with the oldest kept, if a barrier is behind a store of
//! Q, there is a barrier between that store and each of the other stores in the exact buffer. So the abstract and the exact buffer are empty at the
//! same time, and loads read the same from them. An abstract state represents an exact state if the two differ in buffers only and the abstract
//! buffers represent the exact ones. Then the abstract machine can match every step of the exact one:
//!
//! * A store enters by the table. Counting one more copy, up to many, keeps the multiplicities exact below many; and the new store is behind all
//!   barriers.
//! * A store fence: where the table adds no barrier to Q, the definition of representing requires none.
//! * A flush of s, the oldest store (PSO: to its cell, without a barrier before it). If s is in Q, then no store in R is older, nor any in Q, and no
//!   barrier of Q precedes it: s leaves Q. Otherwise no store in Q is older; and with the oldest kept, Q contains no barrier, because a store of Q
//!   would precede this barrier, and the exact buffer would have a barrier between that store and s. So s leaves R. If s is the only one of the other
//!   stores to its cell, then its value was added last and occurs in R once or many times. Every other value of the cell does not occur among the
//!   other stores, so R has it many times or not at all: s leaves by 3. If, besides s, another store outside Q is to the cell, the newest store to
//!   the cell stays the same. If R has the value v of s many times, s leaves by 1. Otherwise the copies of v are counted exactly, and the value that
//!   was added last is a different one, or another copy of v: s leaves by 2.
//! * All other steps depend only on the properties of buffers that are described above.
//!
//! So a set of states that contains representatives of the initial states, and is closed under the steps above, contains a representative of each
//! reachable state: a state with the same locations, registers, memory and lock, which is final if the reachable state is. The reductions of [the
//! module](super) are sound for these machines too: a step changes no buffer but that of its own thread, and depends on no other buffer. A thread
//! that can move in the abstract state may be blocked in the exact one, so the set proves nothing about deadlocks.

use fencewright_program::{MemoryModel, PropertyKind};
use serde::{Deserialize, Serialize};

use super::StateSet;
use crate::certificate::KeptEnd;

/// The parameters of a buffer abstraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Abstraction {
    /// Maximum number of stores kept in order (PSO: for each memory cell).
    pub k: u32,
    /// The end of the buffer whose stores are kept in order.
    pub kept: KeptEnd,
    /// The multiplicity of a value in the rest of a buffer that stands for any number of copies.
    pub many: u32,
}

impl Abstraction {
    /// Whether a packed buffer needs a separator between queue and rest.
    pub fn has_border(self) -> bool {
        self.k > 0
    }

    /// The values of a cell that can leave the rest R of a buffer, and the effect of each on R. `values` are the values of the cell in R; the value
    /// added last is the last element.
    pub(super) fn leaving(self, values: &[i64]) -> Vec<(i64, Leaving)> {
        let is_any = |value: i64| copies(values, value) == self.many as usize;
        let mut ways = Vec::new();
        for (n, &value) in values.iter().enumerate().filter(|(n, value)| !values[..*n].contains(value)) {
            let (count, is_last) = (copies(values, value), values.last() == Some(&value));
            if is_any(value) {
                ways.push((value, Leaving::Stays));
            } else if !is_last || count > 1 {
                ways.push((value, Leaving::One(n)));
            }
            if is_last && (count == 1 || is_any(value)) && values.iter().all(|&v| v == value || is_any(v)) {
                ways.push((value, Leaving::All));
            }
        }
        ways
    }

    /// The values of a cell in R after adding `value` as the last element; the elements before it are sorted. If the cell already has `many` copies
    /// of the value, one of them is dropped.
    pub(super) fn added(self, mut values: Vec<i64>, value: i64) -> Vec<i64> {
        values.sort_unstable();
        if copies(&values, value) >= self.many as usize {
            values.remove(values.partition_point(|&v| v < value));
        }
        values.push(value);
        values
    }
}

fn copies(values: &[i64], value: i64) -> usize {
    values.iter().filter(|&&v| v == value).count()
}

/// The effect on the rest of a cell when a value leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaving {
    /// The rest is unchanged.
    Stays,
    /// The value at this position is removed.
    One(usize),
    /// The whole cell is removed.
    All,
}

/// Checks that a set with abstract buffers is not about SC, that `many` is not 0, that the set uses no incompatible reduction, and that the
/// properties are not about deadlocks.
pub(super) fn check<'a>(
    set: &StateSet,
    mut properties: impl Iterator<Item = &'a PropertyKind>,
) -> Result<(), &'static str> {
    match set.abstraction {
        Some(abstraction) if MemoryModel::from(set.model) == MemoryModel::Sc || abstraction.many == 0 => {
            Err("it has abstract buffers where there are none")
        }
        Some(_) if !set.symmetry.is_empty() || set.versions.is_some() => {
            Err("it has abstract buffers, and neither symmetry nor versions go with them")
        }
        Some(_) if properties.any(|kind| *kind == PropertyKind::NoDeadlock) => {
            Err("abstract buffers say nothing about deadlocks")
        }
        _ => Ok(()),
    }
}
