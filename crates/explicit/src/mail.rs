//! Batches of successors that workers of a parallel search send to each other.

use super::code::Code;
use super::expand::{Sink, Step};
use super::layout::{Growth, Layout};
use super::orbits::Representatives;
use super::reduction::SleepSink;
use super::store::hash;
use super::versions::Renaming;

/// Successors waiting to be looked up by their owner.
#[derive(Default)]
pub struct Batch {
    /// The packed states, one after the other.
    pub states: Vec<u64>,
    /// For each state, its hash, its predecessor, and facts about the step to it.
    pub origins: Vec<Origin>,
    /// For each state, its sleep set; empty without sleep sets.
    pub asleep: Vec<u64>,
}

/// Facts about a successor that its owner needs to store it.
#[derive(Clone, Copy)]
pub struct Origin {
    /// The `store::hash` of the packed state.
    pub hash: u64,
    /// The global index of the predecessor; see `Sorter::parent`.
    pub parent: u32,
    /// A combination of [`VISIBLE`] and [`FAULT`].
    pub flags: u32,
}

impl Batch {
    /// Clears the batch but keeps its allocations.
    pub fn clear(&mut self) {
        self.states.clear();
        self.origins.clear();
        self.asleep.clear();
    }

    /// Moves the contents of another batch here.
    pub fn append(&mut self, other: &mut Batch) {
        self.states.append(&mut other.states);
        self.origins.append(&mut other.origins);
        self.asleep.append(&mut other.asleep);
    }
}

/// Flag: the step may have changed the value of a formula.
pub const VISIBLE: u32 = 1;
/// Flag: the thread faulted.
pub const FAULT: u32 = 2;

/// The worker that owns a state. It is determined by those components of the state that have the same position in every layout.
#[inline]
pub fn owner(layout: &Layout, state: &[u64], workers: usize) -> usize {
    if workers == 1 {
        return 0;
    }
    let mut mixed = 0u64;
    for (&word, &mask) in state.iter().zip(&layout.fixed) {
        mixed = (mixed ^ (word & mask)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^= mixed >> 29;
    }
    ((u128::from(mixed.wrapping_mul(0xa076_1d64_78bd_642f)) * workers as u128) >> 64) as usize
}

/// Distributes successors to the batches of their owners.
pub struct Sorter<'w, 'c> {
    /// The compiled program that is explored.
    pub code: &'c Code,
    /// The layout of the expanded state and of its successors.
    pub layout: &'w Layout,
    /// Replaces each successor by the representative of its orbit.
    pub representatives: &'w mut Representatives<'c>,
    /// Renames the version numbers in each successor to a canonical form (`versions.rs`); unused if no variable of the program holds version numbers.
    pub renaming: &'w mut Renaming,
    /// Set if a successor did not fit into the layout after its versions were renamed.
    pub growth: Option<Growth>,
    /// For each worker, the batch of the successors that it owns.
    pub out: &'w mut [Batch],
    /// The global index of the state that is being expanded: its index in the store of its owner, times the number of workers, plus the number of the
    /// owner.
    pub parent: u32,
    /// Number of successors produced in this round.
    pub made: &'w mut usize,
}

impl Sink for Sorter<'_, '_> {
    #[inline]
    fn take(&mut self, step: Step<'_>, state: &[u64]) {
        let flags = (u32::from(step.visible) * VISIBLE) | (u32::from(step.fault) * FAULT);
        let Sorter { code, layout, representatives, renaming, out, .. } = self;
        let (parent, layout) = (self.parent, *layout);
        let mut sort = |state: &[u64]| {
            let state = representatives.of(layout, state);
            let owner = owner(layout, state, out.len());
            let batch = &mut out[owner];
            match state {
                [word] => batch.states.push(*word),
                words => batch.states.extend_from_slice(words),
            }
            batch.origins.push(Origin { hash: hash(state), parent, flags });
            *self.made += 1;
        };
        match &code.versions {
            None => sort(state),
            Some(versions) => {
                let renamed = renaming.images(versions, (code, layout), state, false, &mut sort);
                self.growth = self.growth.or(renamed.err());
            }
        }
    }
}

/// Distributes successors together with their sleep set.
pub struct SleepSorter<'s, 'w, 'c> {
    /// Assigns the successors to their owners.
    pub sorter: &'s mut Sorter<'w, 'c>,
    /// The sleep set of the successors that follow, as a set of parts.
    pub asleep: u64,
}

impl Sink for SleepSorter<'_, '_, '_> {
    fn take(&mut self, step: Step<'_>, state: &[u64]) {
        let sorter = &mut self.sorter;
        let asleep = sorter.representatives.carry(sorter.layout, state, self.asleep);
        sorter.take(step, state);
        for batch in sorter.out.iter_mut() {
            batch.asleep.resize(batch.origins.len(), asleep);
        }
    }
}

impl SleepSink for SleepSorter<'_, '_, '_> {
    fn asleep(&mut self, parts: u64) {
        self.asleep = parts;
    }
}
