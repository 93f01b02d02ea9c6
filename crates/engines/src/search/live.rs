//! The cells that matter in a control state of a machine.

use fencewright_memory::{Cell, CellId, Control, Machine};
use fencewright_program::{RegisterId, ThreadId};

use crate::liveness::{Registers, live_registers};
use crate::task::Task;

/// For each thread and location, the live registers.
pub struct LiveCells {
    registers: Vec<Vec<Registers>>,
}

impl LiveCells {
    /// For the properties of a task.
    pub fn new(task: &Task<'_>) -> Self {
        LiveCells { registers: task.program.threads().map(|(id, _)| live_registers(task, id)).collect() }
    }

    /// The live cells of a control state, sorted: memory, live registers, and the buffer cells that its shapes mention.
    pub fn of(&self, machine: &Machine<'_>, control: &Control) -> Vec<CellId> {
        let cells = &machine.cells;
        let mut live: Vec<CellId> =
            (0..machine.program.cells() as u32).map(|c| cells.id(Cell::Memory(c))).collect();
        for (t, location) in control.locations.iter().enumerate() {
            let thread = ThreadId(t as u32);
            let registers = self.registers[t][location.index()].iter().enumerate().filter(|(_, live)| **live);
            live.extend(registers.map(|(r, _)| cells.id(Cell::Register(thread, RegisterId(r as u32)))));
            let Some(shape) = control.buffers.get(t) else { continue };
            live.extend(machine.buffers.values(cells, thread, shape));
        }
        live.sort_unstable();
        live
    }
}
