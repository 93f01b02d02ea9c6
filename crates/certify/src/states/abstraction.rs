//! Store buffers that forget (THESIS16 s. 3.2): states of machines that can do more than the exact ones.
//!
//! The buffer of a thread has a *queue* Q, of at most k stores in order (PSO: at most k to each memory cell), and a *rest* R: for each memory cell
//! how often each value occurs, and which value was added last. Where a value occurs `many` times, this stands for any number.
//! Sets of values (Fig. 3.6) are k = 0, many = 1; partial coherence (Fig. 3.10) is any k with many = 1; multisets (Fig. 3.8) are the limit of k = 0 for growing many.
//!
//! | | the oldest stores are kept in Q | the newest stores are kept in Q |
//! |---|---|---|
//! | a store | enters Q if that has fewer than k and R is empty, else R | enters Q; if that has k already, the oldest of them goes to R before |
//! | enters R | becomes the last one of its cell, and is counted up to many | the same |
//! | leaves Q | if it is the oldest one | if it is the oldest one and R is empty |
//! | leaves R | if Q is empty | always |
//! | store fence (PSO) | a barrier at the end of Q, if R is empty | a barrier at the end of Q |
//!
//! Under PSO, what a rule says about Q and R is about the stores to the cell; besides, a store leaves Q only if no barrier is before it, and R, the oldest being kept, only if there is
//! no barrier in Q. A barrier that no store of Q is before is gone. To leave R is one of these:
//!
//! 1. a value that occurs `many` times stays as it is;
//! 2. of a value that occurs less often one copy goes, if it is not the last one added or there is another copy;
//! 3. with the value that was added last all of its cell goes, if it occurs once or `many` times, and every other one of the cell `many` times.
//!
//! A load takes the newest store to its cell in Q or the value added last in R, whichever is newer, and memory if there is none. What waits for an empty buffer waits for both.
//!
//! # Why everything that exact buffers do is done by these
//!
//! Say that an abstract buffer *stands for* an exact one if the stores of the exact one are those of Q, in their order, and *others* that are in R: a value that R has
//! fewer than `many` times, or not at all, occurs exactly so often among these others; a cell has an entry in R if and only if one of them is to it, and then the value added last is that
//! of the newest of them. With the oldest kept the others are newer than the stores of Q (PSO: than those to the same cell), with the newest kept older. Where a barrier of Q is between two stores of
//! Q there is one between them in the exact buffer; and, the oldest being kept, where one is behind a store of Q there is one between that store and each of the others. So the two
//! buffers are empty at the same time, and loads read the same from them. Let a state stand for another one if they differ in buffers only and its buffers stand for the others.
//! Every step of the exact machine can be followed:
//!
//! * A store: by the table. Counting one more copy, up to many, is right; and the new store is behind all barriers.
//! * A store fence: where the table has no barrier, none has to be there.
//! * A flush of s, the oldest store (PSO: to its cell, without a barrier before it). If s is in Q, then nothing of R is older, nor anything of Q, nor is a barrier of Q before it: it
//!   leaves Q. Otherwise nothing of Q is older, and the oldest being kept there is no barrier in Q, because the store before it would have one between itself and s: s leaves R. If s is the only one of the others to
//!   its cell, then it was added last, R has it once or many times, and every other value of the cell, which does not occur, many times or not at all: by 3. If there is another one, the newest to the
//!   cell stays the same; if R has the value v of s many times, by 1. Otherwise v is counted exactly; the value that was added last is another one, or another copy of v: by 2.
//! * All other steps do not look at buffers but as said above.
//!
//! So a set of states that contains what stands for the initial states, and with each state those that the steps above lead to, has for each reachable state
//! one that stands for it: with the same locations, registers, memory and lock, final if that is final. The reductions of [the module](super) are right for these machines too: a
//! step changes nothing but the buffer of its own thread, and depends on no other one. A thread that can move here may be unable to move there, so nothing follows about deadlocks.

use fencewright_program::{MemoryModel, PropertyKind};
use serde::{Deserialize, Serialize};

use super::StateSet;
use crate::certificate::KeptEnd;

/// How store buffers forget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Abstraction {
    /// How many stores are kept in order (PSO: of each memory cell).
    pub k: u32,
    /// Which ones.
    pub kept: KeptEnd,
    /// How many copies of a value stand for any number.
    pub many: u32,
}

impl Abstraction {
    /// Whether there is an entry between queue and rest.
    pub fn has_border(self) -> bool {
        self.k > 0
    }

    /// Which of these values of a cell, the last one of which was added last, can leave the rest, and how.
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

    /// The values of a cell with one more, which is the last one; but for the last one they are sorted.
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

/// What happens to the rest of a cell when a value leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaving {
    /// Nothing.
    Stays,
    /// This one goes.
    One(usize),
    /// All go.
    All,
}

/// Checks that a set whose buffers forget is one about buffers, and is asked nothing that they cannot answer.
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
