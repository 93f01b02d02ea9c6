//! The states that a search has found, as a proof: how they are packed, and what the reductions have left out.
//!
//! Nothing of this is believed: the checker of certificates goes over all states again, with steps of its own.

use fencewright_certify::certificate::KeptEnd;
use fencewright_certify::states::{Abstraction, BufferFields, Field, Layout, PackedStates, StateSet};
use fencewright_memory::Kept;
use fencewright_program::Program;

use super::code::{Code, ThreadCode};
use super::layout;
use super::search::Found;

/// How many more bytes checking takes than the states themselves: a table with the number of each.
pub fn bytes_to_check(found: &Found) -> u64 {
    let states: usize = found.stores.iter().map(super::store::Store::len).sum();
    (states as u64 * 3 / 2 + 1).next_power_of_two() * 8
}

/// All states that were found; nothing if what is live takes too much room.
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
    // Only the states are needed any more, not the tables: freeing these first makes room.
    let mut parts =
        found.stores.into_iter().map(super::store::Store::into_states).collect::<Vec<_>>().into_iter();
    let mut states = parts.next().unwrap_or_default();
    states.reserve_exact(parts.as_slice().iter().map(Vec::len).sum());
    parts.for_each(|part| states.extend_from_slice(&part));
    let states = PackedStates::Plain(packing.words, states);
    let symmetry = code.orbits.families().to_vec();
    let versions = code.versions.as_ref().map(|versions| versions.of.clone());
    let abstraction = code.abstraction.map(|abstraction| Abstraction {
        k: abstraction.k,
        kept: if abstraction.kept == Kept::Oldest { KeptEnd::Oldest } else { KeptEnd::Newest },
        many: abstraction.many,
    });
    Some(StateSet { model: code.model.into(), abstraction, layout, live, local, symmetry, versions, states })
}

fn field(field: layout::Field) -> Field {
    let (word, shift, bits, low) = field.place();
    Field::new(word, shift, bits, low).expect("a field lies within a word")
}
