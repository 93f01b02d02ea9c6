//! Departures from SC: the steps of an execution that would have a different effect if every store reached memory immediately.
//!
//! Under SC a load reads from the last store *issued* to its cell, and no store overwrites a store that was issued later. If both hold for every
//! step, the execution without its flushes is an SC execution. So every execution that is impossible under SC has a departure. The converse does not
//! hold: reordering independent steps may turn an execution with departures into an SC execution.

use std::collections::VecDeque;

use fencewright_program::reference::Access;
use fencewright_program::{EventKind, Program, Replayed};

/// A step's difference from SC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The memory cell that the step reads or writes.
    pub cell: u32,
    /// The index of the step that issued the last store to the cell, which would be in memory under SC.
    pub store: usize,
    /// The value of that store.
    pub value: i64,
    /// The actual effect of the step.
    pub instead: Instead,
}

/// The effect of a step that departs from SC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instead {
    /// A load read this value, from an older store or from the initial memory.
    Read(i64),
    /// The flushed store, which the step with this index issued, overwrote a store that was issued later.
    Overwritten(usize),
}

/// The departures of each step of an execution.
pub fn departures(program: &Program, replayed: &Replayed) -> Vec<Vec<Departure>> {
    // For each cell, the last store issued to it, and the store whose value is in memory.
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
