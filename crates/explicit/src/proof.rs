//! Proofs: the set of states that a search has found, with their packing and the reductions that were used.
//!
//! Nothing in a proof is trusted: the checker of certificates checks all states again, with its own transition relation.

use std::collections::BTreeSet;

use fencewright_certify::certificate::KeptEnd;
use fencewright_certify::states::{
    Abstraction, BufferFields, Field, Layout, PackedStates, Persistent, StateSet,
};
use fencewright_memory::Kept;
use fencewright_program::Program;

use super::code::{Code, ThreadCode};
use super::layout;
use super::reduction::{Footprint, OBSERVED, Place, Summaries, UNLOCK, order};
use super::search::Found;

/// The approximate number of bytes of the hash table that the checker needs in addition to the states.
pub fn bytes_to_check(found: &Found) -> u64 {
    let states: usize = found.stores.iter().map(super::store::Store::len).sum();
    (states as u64 * 3 / 2 + 1).next_power_of_two() * 8
}

/// The states that were found, as a state set for the checker; `None` if the lists of live registers are too large.
pub fn states(program: &Program, code: &Code, found: Found) -> Option<StateSet> {
    let packing = layout::Layout::new(code, &found.sizes);
    let live = code.live()?;
    let locations: Vec<usize> = (0..code.threads.len()).collect();
    let slot = |slot: usize| field(packing.slots[slot]);
    let buffer = |(fields, thread): (&layout::BufferFields, &ThreadCode)| BufferFields {
        cells: thread.buffered_cells.clone(),
        count: field(fields.count),
        entries: fields.entries.iter().map(|&(cell, value)| (field(cell), field(value))).collect(),
    };
    let registers = |thread: &ThreadCode| thread.registers.iter().map(|&r| slot(r as usize)).collect();
    let local = |thread: &ThreadCode| {
        let edges = thread.edges.iter().flatten().filter(|edge| edge.local && code.local_first);
        let mut local: Vec<u32> = edges.map(|edge| edge.id.0).collect();
        local.sort_unstable();
        local
    };
    let memory = code.memory as usize;
    let layout = Layout {
        words: packing.words,
        locations: locations.into_iter().map(|t| slot(code.pc(t))).collect(),
        lock: slot(code.lock()),
        favourite: slot(code.favourite()),
        memory: (memory..memory + program.cells()).map(slot).collect(),
        registers: code.threads.iter().map(registers).collect(),
        buffers: packing.buffers.iter().zip(&code.threads).map(buffer).collect(),
    };
    let local = code.threads.iter().map(local).collect();
    // Only the states are still needed, so the hash tables are freed first.
    let mut parts =
        found.stores.into_iter().map(super::store::Store::into_states).collect::<Vec<_>>().into_iter();
    let mut states = parts.next().unwrap_or_default();
    states.reserve_exact(parts.as_slice().iter().map(Vec::len).sum());
    parts.for_each(|part| states.extend_from_slice(&part));
    let states = PackedStates::Plain(packing.words, states);
    let persistent = code.summaries.as_ref().map(|summaries| persistent(program, code, summaries));
    let symmetry = code.orbits.families().to_vec();
    let versions = code.versions.as_ref().map(|versions| versions.of.clone());
    let abstraction = code.abstraction.map(|abstraction| Abstraction {
        k: abstraction.k,
        kept: if abstraction.kept == Kept::Oldest { KeptEnd::Oldest } else { KeptEnd::Newest },
        many: abstraction.many,
    });
    let model = code.model.into();
    Some(StateSet { model, abstraction, layout, live, local, symmetry, persistent, versions, states })
}

/// The summaries of the threads, in the form from which the checker recomputes persistent sets.
fn persistent(program: &Program, code: &Code, summaries: &Summaries) -> Persistent {
    let footprint = |place: &Place| {
        let Footprint { reads, writes, marks } = place.future;
        [reads, writes, u64::from(marks & !(UNLOCK | OBSERVED))]
    };
    let mut order: Vec<Vec<u32>> = program.threads.iter().map(order).collect();
    for family in code.orbits.families() {
        // The edges of the members may be listed in different orders. The numbering of the first member's locations is used for all members, so that
        // the same edges count as back edges.
        let first = order[family.threads[0] as usize].clone();
        family.threads.iter().for_each(|&t| order[t as usize].clone_from(&first));
    }
    // Visible edges and cells are part of the proof, because they depend on all properties of the search, while the proof may be about some of these
    // properties only.
    let visible = |thread: &ThreadCode| {
        let edges = thread.edges.iter().flatten().filter(|edge| edge.joint);
        let mut edges: Vec<u32> = edges.map(|edge| edge.id.0).collect();
        edges.sort_unstable();
        edges
    };
    let flushed = code.threads.iter().flat_map(|t| t.buffered_cells.iter().zip(&t.flush_visible));
    let cells: BTreeSet<u32> = flushed.filter(|(_, visible)| **visible).map(|(cell, _)| *cell).collect();
    Persistent {
        classes: summaries.classes.clone(),
        order,
        future: summaries.places.iter().map(|places| places.iter().map(footprint).collect()).collect(),
        edges: code.threads.iter().map(visible).collect(),
        cells: cells.into_iter().collect(),
    }
}

fn field(field: layout::Field) -> Field {
    let (word, shift, bits, low) = field.place();
    Field::new(word, shift, bits, low).expect("a field lies within a word")
}
