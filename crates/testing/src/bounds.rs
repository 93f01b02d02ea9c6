//! Random bounds on store buffers, and a function that checks whether a state of the reference semantics exceeds such a bound.

use fencewright_memory::{Bound, CellBounds};
use fencewright_program::State;
use fencewright_program::reference::Buffered;

use crate::Random;

/// A small random bound, per thread or per memory cell.
pub fn bound(random: &mut Random) -> Bound {
    if random.one_in(2) {
        return Bound::Thread(random.below(4) as u32);
    }
    let bounds: Vec<u8> = (0..1 + random.below(4)).map(|_| random.below(3) as u8).collect();
    Bound::Cell(CellBounds::new(&bounds).expect("a few bounds"))
}

/// Whether some buffer holds more stores than the bound allows.
pub fn exceeds(state: &State, bound: Bound) -> bool {
    state.buffers.iter().any(|buffer| {
        let cells: Vec<u32> = buffer
            .iter()
            .filter_map(|entry| match entry {
                Buffered::Store { cell, .. } => Some(*cell),
                Buffered::Barrier => None,
            })
            .collect();
        match bound {
            Bound::Thread(most) => cells.len() > most as usize,
            Bound::Cell(bounds) => cells
                .iter()
                .any(|cell| cells.iter().filter(|other| *other == cell).count() > bounds.of(*cell) as usize),
        }
    })
}
