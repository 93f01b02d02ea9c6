//! Live registers, and how registers share fields.
//!
//! A register is live at a location if its value there can still matter. In a stored state a dead register is always 0, so states
//! that differ only in dead registers are one state (the live-variable reduction of THESIS16 ch. 5). And two registers that
//! are never live together share one field of the packed state: the temporaries of all statements usually fit into one.

use fencewright_program::{Op, RegisterId, Thread, ThreadId};

use crate::liveness::{Registers, live_registers, step_back};
use crate::task::Task;

/// Which registers are live where, and which field each one has.
pub struct Liveness {
    /// For each location, the registers that are live there.
    pub live: Vec<Registers>,
    /// The field of each register, counted from 0.
    pub colours: Vec<usize>,
    /// How many fields there are.
    pub fields: usize,
}

impl Liveness {
    /// Analyses one thread. Without `reduce`, every register is live everywhere and has its own field.
    pub fn new(task: &Task<'_>, id: ThreadId, reduce: bool) -> Self {
        let thread = task.program.thread(id);
        let registers = thread.registers.len();
        if !reduce {
            let live = vec![vec![true; registers]; thread.locations.len()];
            return Liveness { live, colours: (0..registers).collect(), fields: registers };
        }
        let live = live_registers(task, id);
        let (colours, fields) = colour(thread, &live);
        Liveness { live, colours, fields }
    }
}

/// Finding out which registers could share a field takes at most so many operations on words, a fraction of a second.
const MOST_WORK: usize = 1 << 28;

/// Fields for registers such that no two that are live together share one; greedy, in the order of declaration. Where that
/// would take too long, every register has its own.
fn colour(thread: &Thread, live: &[Registers]) -> (Vec<usize>, usize) {
    let registers = thread.registers.len();
    // One row of bits for each register: those it conflicts with.
    let words = registers.div_ceil(64);
    let points = live.len() + thread.edges.iter().map(|edge| edge.action.ops().len()).sum::<usize>();
    let most = live.iter().map(|set| set.iter().filter(|live| **live).count()).max().unwrap_or(0);
    if points.saturating_mul(most).saturating_mul(words) > MOST_WORK {
        return ((0..registers).collect(), registers);
    }
    let mut conflicts = vec![vec![0u64; words]; registers];
    let conflict_all = |set: &Registers, conflicts: &mut Vec<Vec<u64>>| {
        let mut bits = vec![0u64; words];
        set.iter().enumerate().filter(|(_, live)| **live).for_each(|(r, _)| bits[r / 64] |= 1 << (r % 64));
        for (r, _) in set.iter().enumerate().filter(|(_, live)| **live) {
            conflicts[r].iter_mut().zip(&bits).for_each(|(row, bits)| *row |= bits);
        }
    };
    for set in live {
        conflict_all(set, &mut conflicts);
    }
    let everywhere = &live[thread.fault.index()];
    for edge in &thread.edges {
        let mut after = live[edge.to.index()].clone();
        for op in edge.action.ops().iter().rev() {
            // Also within an indivisible step a write must not hit a value that is still needed.
            conflict_all(&after, &mut conflicts);
            step_back(op, &mut after, everywhere);
        }
    }
    let mut colours = vec![0; registers];
    let mut fields = 0;
    for r in 0..registers {
        let mut taken = vec![false; r + 1];
        let conflicting = (0..r).filter(|&other| conflicts[r][other / 64] >> (other % 64) & 1 == 1);
        conflicting.for_each(|other| taken[colours[other]] = true);
        colours[r] = taken.iter().position(|taken| !taken).expect("one of r + 1 colours is free");
        fields = fields.max(colours[r] + 1);
    }
    (colours, fields)
}

/// For each operation of an edge whether the register it writes is live afterwards: a dead write must not happen, because
/// its field may belong to another register. `everywhere` are the registers that are live where a fault leads.
pub fn live_writes(ops: &[Op], live_after: &[bool], everywhere: &Registers) -> Vec<Option<RegisterId>> {
    let mut live = live_after.to_vec();
    let mut writes: Vec<Option<RegisterId>> = ops
        .iter()
        .rev()
        .map(|op| {
            let written = op.written_register().filter(|r| live[r.index()]);
            step_back(op, &mut live, everywhere);
            written
        })
        .collect();
    writes.reverse();
    writes
}
