//! Cells: the integer variables that the commands of a machine read and write.

use fencewright_program::{Program, RegisterId, ThreadId};

/// The number of a cell.
pub type CellId = u32;

/// The content of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cell {
    /// The value in a memory cell.
    Memory(u32),
    /// The value of a register of a thread.
    Register(ThreadId, RegisterId),
    /// The value of the buffer entry at this position, oldest first.
    Entry(ThreadId, u32),
    /// The value of the newest store to a memory cell among the stores in the set part of the buffer.
    Last(ThreadId, u32),
    /// The values of all stores to a memory cell in the set part of the buffer: a summary cell.
    Forgotten(ThreadId, u32),
}

/// All cells of a machine: maps the content of a cell to its number and back.
///
/// # Summary cells
///
/// A cell holds one integer, but a *summary cell* stands for several values: a non-empty set of integers. The set is meaningful only in control
/// states in which the machine keeps a value in the cell; in other control states no command reads it. The effect of commands on a summary cell s
/// that stands for the set S:
///
/// | command | S afterwards |
/// |---|---|
/// | `Assign(s, e)` | {e}: the cell held nothing before, and e is the first value |
/// | `Fold(s, e)` | S with e added |
/// | `Expand(c, s)` | S; the ordinary cell c takes one of its values; each `Expand` chooses independently |
///
/// No command reads s in an expression: the value that `s < 3` refers to would be ambiguous. (Renaming cells, as symmetry reduction does, is an
/// assignment `t := s` after which s is dead, and moves the whole set.)
///
/// A conjunction of constraints over cells holds in a state with summary cells if it holds for *every* choice of one value for each of them; so a
/// constraint on two summary cells speaks about all pairs. A disjunction holds if *one of its conjunctions* holds for all choices. It is not enough
/// that each choice satisfies some disjunct: if s stands for 0 and 1, then "s = 0 or s = 1" does not hold.
#[derive(Clone, Debug)]
pub struct Cells {
    memory: u32,
    /// The first register cell of each thread, and the end of the last thread's register cells. Register cells come after memory cells.
    registers: Vec<u32>,
    /// The first entry cell. The entry cells of the threads follow each other, in the order of the threads.
    entries: u32,
    /// The number of entry cells per thread.
    positions: u32,
    /// The first of the cells [`Cell::Last`].
    last: u32,
    /// The first summary cell; summary cells come last. Equal to `total` if there are none.
    forgotten: u32,
    total: u32,
}

impl Cells {
    /// The cells for a program whose buffers have at most `positions` ordered entries, with or without summary cells.
    pub fn new(program: &Program, positions: u32, summaries: bool) -> Self {
        let memory = program.cells() as u32;
        let mut next = memory;
        let mut registers = Vec::with_capacity(program.threads.len() + 1);
        for thread in &program.threads {
            registers.push(next);
            next += thread.registers.len() as u32;
        }
        registers.push(next);
        let threads = program.threads.len() as u32;
        let entries = next;
        let last = entries + threads * positions;
        let forgotten = last + threads * memory;
        let total = if summaries { forgotten + threads * memory } else { forgotten };
        Cells { memory, registers, entries, positions, last, forgotten, total }
    }

    /// The number of memory cells.
    pub fn memory(&self) -> u32 {
        self.memory
    }

    /// The cells of the program itself: memory and registers.
    pub fn variables(&self) -> std::ops::Range<CellId> {
        0..self.entries
    }

    /// The number of cells.
    pub fn len(&self) -> usize {
        self.total as usize
    }

    /// Whether there are no cells.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// The number of the cell with this content.
    pub fn id(&self, cell: Cell) -> CellId {
        match cell {
            Cell::Memory(c) => c,
            Cell::Register(t, r) => self.registers[t.index()] + r.0,
            Cell::Entry(t, position) => {
                assert!(position < self.positions, "entry {position} of a buffer with {}", self.positions);
                self.entries + t.0 * self.positions + position
            }
            Cell::Last(t, c) => self.last + t.0 * self.memory + c,
            Cell::Forgotten(t, c) => {
                debug_assert!(self.total > self.forgotten, "a machine without summaries");
                self.forgotten + t.0 * self.memory + c
            }
        }
    }

    /// The content of the cell with this number.
    pub fn cell(&self, id: CellId) -> Cell {
        if id < self.memory {
            Cell::Memory(id)
        } else if id < self.entries {
            let thread = self.registers.partition_point(|&first| first <= id) - 1;
            Cell::Register(ThreadId(thread as u32), RegisterId(id - self.registers[thread]))
        } else if id < self.last {
            let n = id - self.entries;
            Cell::Entry(ThreadId(n / self.positions), n % self.positions)
        } else if id < self.forgotten {
            let n = id - self.last;
            Cell::Last(ThreadId(n / self.memory), n % self.memory)
        } else {
            let n = id - self.forgotten;
            Cell::Forgotten(ThreadId(n / self.memory), n % self.memory)
        }
    }

    /// Whether a cell stands for several values ([summary cells](Cells#summary-cells)).
    pub fn is_summary(&self, id: CellId) -> bool {
        (self.forgotten..self.total).contains(&id)
    }

    /// The name of a cell for messages, with the names of the program.
    pub fn name(&self, program: &Program, id: CellId) -> String {
        match self.cell(id) {
            Cell::Memory(c) => program.cell_name(c),
            Cell::Register(t, r) => {
                let thread = program.thread(t);
                format!("{}.{}", thread.name, thread.registers[r.index()].name)
            }
            Cell::Entry(t, position) => format!("buffer({})[{position}]", program.thread(t).name),
            Cell::Last(t, c) => format!("last({}, {})", program.thread(t).name, program.cell_name(c)),
            Cell::Forgotten(t, c) => {
                format!("forgotten({}, {})", program.thread(t).name, program.cell_name(c))
            }
        }
    }
}
