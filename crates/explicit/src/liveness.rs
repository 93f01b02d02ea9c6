//! Live registers, and the assignment of registers to fields (register allocation).
//!
//! A register is live at a location if its value there may still be read. In a stored state a field without a live register is 0, so states that
//! differ only in dead registers are identified (the live-variable reduction of THESIS16 ch. 5). Registers whose live ranges do not overlap share one
//! field of the packed state; usually one field suffices for the temporaries of all statements.

use std::collections::BTreeMap;
use std::ops::Range;

use fencewright_analysis::liveness::LiveRegisters;
use fencewright_kit::accesses::written_register;
use fencewright_program::{EdgeId, RegisterId, Thread, ThreadId};
use fencewright_verdict::{Limits, Reason, Task};

/// Liveness of registers, and the field of each one.
pub struct Liveness {
    /// The live registers. The engine must skip a write to a dead register, because its field may belong to another register.
    pub live: LiveRegisters,
    /// The field of each register, numbered from 0.
    pub colours: Vec<usize>,
    /// The number of fields that the registers need.
    pub fields: usize,
    /// Pairs of an edge and a field: the field may hold a value before or during the edge and is dead after it. Sorted by edge.
    pub freed: Vec<(EdgeId, usize)>,
}

impl Liveness {
    /// Analyses one thread. Without `reduce`, every register is live everywhere and has its own field.
    pub fn new(task: &Task<'_>, id: ThreadId, reduce: bool, limits: &Limits) -> Result<Self, Reason> {
        let thread = task.program.thread(id);
        let registers = thread.registers.len();
        if !reduce {
            let (live, colours) = (LiveRegisters::everywhere(thread), (0..registers).collect());
            return Ok(Liveness { live, colours, fields: registers, freed: Vec::new() });
        }
        let live = LiveRegisters::where_observed(task, id, limits)?;
        let (colours, fields) = colour(registers, &live, limits)?;
        // The field stays in use if the edge writes another register that has this field and is live after the edge.
        let taken_over = |edge: EdgeId, field: usize| {
            let to = thread.edge(edge).to;
            let written = thread.edge(edge).action.ops().iter().filter_map(written_register);
            written.into_iter().any(|r| colours[r.index()] == field && live.is_live(r, to))
        };
        let mut freed: Vec<(EdgeId, usize)> =
            live.ends(limits)?.into_iter().map(|(edge, r)| (edge, colours[r.index()])).collect();
        freed.retain(|&(edge, field)| !taken_over(edge, field));
        Ok(Liveness { live, colours, fields, freed })
    }

    /// For each operation of an edge, whether it writes a register that is live after it.
    pub fn live_writes<'a>(&'a self, thread: &'a Thread, edge: EdgeId) -> impl Iterator<Item = bool> + 'a {
        let ops = thread.edge(edge).action.ops().iter().enumerate();
        ops.map(move |(n, op)| written_register(op).is_some_and(|r| self.live.is_live_after(r, edge, n)))
    }
}

/// Maximum number of attempts to put a register into a field that is already in use; this many attempts take a fraction of a second. After that, each
/// remaining register gets its own field.
const MOST_TRIES: usize = 1 << 20;

/// Assigns fields to registers such that live ranges in one field do not overlap. Greedy, in the order of declaration.
fn colour(registers: usize, live: &LiveRegisters, limits: &Limits) -> Result<(Vec<usize>, usize), Reason> {
    // For each field, the ranges of points at which the field is occupied: a map from the start of each range to its end.
    let mut taken: Vec<BTreeMap<u32, u32>> = Vec::new();
    let mut tries = 0;
    let mut colours = Vec::with_capacity(registers);
    for r in 0..registers {
        if r % 256 == 0
            && let Some(reason) = limits.exceeded(0)
        {
            return Err(reason);
        }
        let ranges = live.ranges(RegisterId(r as u32));
        let free = |field: &BTreeMap<u32, u32>| {
            let meets = |range: &Range<u32>| {
                field.range(..range.end).next_back().is_some_and(|(_, &end)| end > range.start)
            };
            !ranges.iter().any(meets)
        };
        let found = match tries < MOST_TRIES {
            true => taken.iter().position(free),
            false => None,
        };
        tries += found.unwrap_or(taken.len());
        let field = found.unwrap_or(taken.len());
        if field == taken.len() {
            taken.push(BTreeMap::new());
        }
        taken[field].extend(ranges.into_iter().map(|range| (range.start, range.end)));
        colours.push(field);
    }
    Ok((colours, taken.len()))
}
