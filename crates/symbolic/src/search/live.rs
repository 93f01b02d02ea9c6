//! The live cells of a control state: those whose values may still be read.

use fencewright_analysis::liveness::LiveRegisters;
use fencewright_memory::{BufferMachine, Cell, CellId, Command, Control};
use fencewright_program::ThreadId;
use fencewright_verdict::{Limits, Reason, Task};

/// For each thread and location, the live registers.
pub struct LiveCells {
    registers: Vec<LiveRegisters>,
}

impl LiveCells {
    /// Analyses all threads for the properties of a task.
    pub fn new(task: &Task<'_>, limits: &Limits) -> Result<Self, Reason> {
        let of_thread = |(id, _)| LiveRegisters::new(task, id, limits);
        Ok(LiveCells { registers: task.program.threads().map(of_thread).collect::<Result<_, Reason>>()? })
    }

    /// The live cells of a control state, sorted: memory, live registers, and the buffer cells that its shapes mention.
    pub fn of(&self, machine: &BufferMachine<'_>, control: &Control) -> Vec<CellId> {
        let cells = &machine.cells;
        let mut live: Vec<CellId> =
            (0..machine.program.cells() as u32).map(|c| cells.id(Cell::Memory(c))).collect();
        for (t, location) in control.locations.iter().enumerate() {
            let thread = ThreadId(t as u32);
            live.extend(self.registers[t].at(*location).map(|r| cells.id(Cell::Register(thread, r))));
            let Some(shape) = control.buffers.get(t) else { continue };
            live.extend(machine.buffers.values(cells, thread, shape));
        }
        live.sort_unstable();
        live
    }
}

/// Of the commands that describe the initial contents of cells, keeps those that concern live cells. Each command is about one cell, and most cells
/// may be dead.
pub fn known_at_first(mut commands: Vec<Command>, live: &[CellId]) -> Vec<Command> {
    commands.retain(|command| {
        let mut matters = false;
        let mut look = |cell: &CellId| matters |= live.binary_search(cell).is_ok();
        match command {
            Command::Assume(e) => e.for_each_leaf(&mut look),
            Command::Assign(cell, _)
            | Command::Havoc(cell)
            | Command::Fold(cell, _)
            | Command::Expand(cell, _) => look(cell),
        }
        matters
    });
    commands
}
