//! Departures of an execution from SC: steps that would do something else if every store had reached memory at once.
//!
//! Under SC a store reaches memory at once. So a load would have read the store to its cell that was *issued* last, and no store would
//! overwrite one that was issued after it. An execution in which neither goes otherwise is one under SC: take the flushes out. So
//! every execution that SC does not have has a departure; the opposite does not hold, because independent steps may be in an order in which SC would
//! have taken them later.

use std::collections::VecDeque;

use fencewright_program::reference::Access;
use fencewright_program::{EventKind, Program, Replayed};

/// What SC would have done otherwise in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The cell.
    pub cell: u32,
    /// The step that has issued the store which counts under SC, counted from 0.
    pub store: usize,
    /// What it stores.
    pub value: i64,
    /// What happened instead.
    pub instead: Instead,
}

/// What happened instead of what SC would have done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instead {
    /// A load saw an older store, or how memory was at the start, with this value.
    Read(i64),
    /// The store of this step reached memory after one that was issued later.
    Overwritten(usize),
}

/// The departures of each step.
pub fn departures(program: &Program, replayed: &Replayed) -> Vec<Vec<Departure>> {
    // For each cell the store that was issued last, and the one that memory has.
    let mut issued: Vec<Option<(usize, i64)>> = vec![None; program.cells()];
    let mut memory: Vec<Option<usize>> = vec![None; program.cells()];
    let mut pending: Vec<VecDeque<(usize, u32)>> = vec![VecDeque::new(); program.threads.len()];
    let mut all = Vec::with_capacity(replayed.events.len());
    for (n, (event, effect)) in replayed.events.iter().zip(&replayed.effects).enumerate() {
        let own = &mut pending[event.thread.index()];
        let mut found = Vec::new();
        if let EventKind::Flush { cell } = &event.kind {
            let oldest = own.iter().position(|(_, c)| c == cell).and_then(|place| own.remove(place));
            if let Some((step, _)) = oldest {
                let c = *cell as usize;
                if let (true, Some((store, value))) = (memory[c] > Some(step), issued[c]) {
                    found.push(Departure { cell: *cell, store, value, instead: Instead::Overwritten(step) });
                }
                memory[c] = Some(step);
            }
            all.push(found);
            continue;
        }
        for access in effect {
            match *access {
                Access::Read { cell, value: read, buffered } => {
                    let own_store = || own.iter().rev().find(|(_, c)| *c == cell).map(|(step, _)| *step);
                    let seen = if buffered { own_store() } else { memory[cell as usize] };
                    if let Some((store, value)) =
                        issued[cell as usize].filter(|(store, _)| Some(*store) != seen)
                    {
                        found.push(Departure { cell, store, value, instead: Instead::Read(read) });
                    }
                }
                Access::Write { cell, value, buffered } => {
                    issued[cell as usize] = Some((n, value));
                    match buffered {
                        true => own.push_back((n, cell)),
                        false => memory[cell as usize] = Some(n),
                    }
                }
                Access::Fault(_) => {}
            }
        }
        all.push(found);
    }
    all
}
