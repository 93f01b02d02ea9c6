//! Relevant registers of a loop: those on which conditions, assertions, addresses and stored values depend. A backward analysis with a worklist; the
//! join is union.

use std::collections::BTreeSet;

use fencewright_program::{Address, Edge, Expr, LocationId, Op, RegisterId, Thread};
use rustc_hash::FxHashMap;

use super::is_quiet;

/// The relevant registers at each location of a loop.
pub(super) struct Relevance {
    at: FxHashMap<LocationId, BTreeSet<RegisterId>>,
}

impl Relevance {
    /// Computes the relevant registers for the locations of a component; `inside` says for every location whether it belongs to the component.
    pub fn new(thread: &Thread, component: &[LocationId], inside: &[bool]) -> Self {
        let mut found = Relevance { at: component.iter().map(|l| (*l, BTreeSet::new())).collect() };
        let mut before: FxHashMap<LocationId, Vec<LocationId>> = FxHashMap::default();
        for location in component {
            for (_, edge) in thread.edges_from(*location).filter(|(_, edge)| inside[edge.to.index()]) {
                before.entry(edge.to).or_default().push(*location);
            }
        }
        let mut open: Vec<LocationId> = component.to_vec();
        while let Some(location) = open.pop() {
            let mut registers = BTreeSet::new();
            for (_, edge) in thread.edges_from(location).filter(|(_, edge)| is_quiet(edge)) {
                let stays = inside[edge.to.index()];
                let behind = if stays { found.at(edge.to).clone() } else { BTreeSet::new() };
                registers.extend(before_edge(edge, behind));
            }
            if registers != *found.at(location) {
                found.at.insert(location, registers);
                open.extend(before.get(&location).into_iter().flatten());
            }
        }
        found
    }

    /// The relevant registers at a location.
    pub fn at(&self, location: LocationId) -> &BTreeSet<RegisterId> {
        static NONE: BTreeSet<RegisterId> = BTreeSet::new();
        self.at.get(&location).unwrap_or(&NONE)
    }
}

fn before_edge(edge: &Edge, mut registers: BTreeSet<RegisterId>) -> BTreeSet<RegisterId> {
    for op in edge.action.ops().iter().rev() {
        let reads = |e: &Expr<RegisterId>, registers: &mut BTreeSet<RegisterId>| {
            e.for_each_leaf(&mut |register| _ = registers.insert(*register));
        };
        let reads_index = |Address { index, .. }: &Address, registers: &mut BTreeSet<RegisterId>| {
            index.iter().for_each(|index| reads(index, registers));
        };
        match op {
            Op::Skip => {}
            Op::Assign(register, e) => {
                if registers.remove(register) {
                    reads(e, &mut registers);
                }
            }
            Op::Havoc(register, _) => _ = registers.remove(register),
            Op::Assume(e) | Op::Assert(e, _) => reads(e, &mut registers),
            Op::Load(register, address) => {
                registers.remove(register);
                reads_index(address, &mut registers);
            }
            Op::Store(address, e) => {
                reads_index(address, &mut registers);
                e.for_each_leaf(&mut |register| _ = registers.insert(*register));
            }
        }
    }
    registers
}
