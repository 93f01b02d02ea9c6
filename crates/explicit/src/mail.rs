//! What workers send each other: successors, sorted by the worker they belong to.

use super::code::Code;
use super::expand::{Sink, Step};
use super::layout::{Growth, Layout};
use super::orbits::Representatives;
use super::reduction::SleepSink;
use super::store::hash;
use super::versions::Renaming;

/// Successors waiting to be looked up.
#[derive(Default)]
pub struct Batch {
    /// The states, one after the other.
    pub states: Vec<u64>,
    /// For each state where it comes from.
    pub origins: Vec<Origin>,
    /// For each state the parts of threads that sleep in it; nothing if there are no sleep sets.
    pub asleep: Vec<u64>,
}

/// Where a successor comes from.
#[derive(Clone, Copy)]
pub struct Origin {
    /// The hash of the state.
    pub hash: u64,
    /// The number, over all workers, of the state it succeeds.
    pub parent: u32,
    /// [`VISIBLE`] and [`FAULT`].
    pub flags: u32,
}

impl Batch {
    /// Forgets everything but keeps the allocated memory.
    pub fn clear(&mut self) {
        self.states.clear();
        self.origins.clear();
        self.asleep.clear();
    }

    /// Takes over what another batch has.
    pub fn append(&mut self, other: &mut Batch) {
        self.states.append(&mut other.states);
        self.origins.append(&mut other.origins);
        self.asleep.append(&mut other.asleep);
    }
}

/// A formula may have changed its value.
pub const VISIBLE: u32 = 1;
/// The thread faulted.
pub const FAULT: u32 = 2;

/// The worker that a state belongs to. It depends only on the part of the state that is the same in every layout.
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

/// Sorts successors by the worker they belong to.
pub struct Sorter<'w, 'c> {
    /// The program.
    pub code: &'c Code,
    /// The layout of the states.
    pub layout: &'w Layout,
    /// Finds out which state stands for a successor.
    pub representatives: &'w mut Representatives<'c>,
    /// Renames versions, if there are any.
    pub renaming: &'w mut Renaming,
    /// What the layout has no room for after versions were renamed.
    pub growth: Option<Growth>,
    /// A batch for each worker.
    pub out: &'w mut [Batch],
    /// The state that is being expanded.
    pub parent: u32,
    /// How many successors were made in this round.
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

/// Sorts successors, each with what sleeps in it.
pub struct SleepSorter<'s, 'w, 'c> {
    /// Where they go.
    pub sorter: &'s mut Sorter<'w, 'c>,
    /// What sleeps in them.
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
