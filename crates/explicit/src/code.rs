//! The program compiled for the explicit engine: registers and memory cells become slots of a packed state, expressions become short instruction
//! lists, and each edge records whether it can change the value of a formula that must never hold.

mod threads;

use fencewright_analysis::liveness::LiveRegisters;
use fencewright_certify::automorphism::Reductions;
use fencewright_program::{
    Action, EdgeId, Formula, LocationId, MemoryModel, Observable, Program, Range, Span,
};
use fencewright_verdict::{Limits, Reason, Task};

use super::Options;
use super::abstract_buffer::Abstraction;
use super::instructions::{ExprCode, Instruction, compile};
use super::layout::{Bounds, Sizes};
use super::liveness::Liveness;
use super::orbits::Orbits;
use super::reduction::{Reduction, Summaries};
use super::versions::Versions;
use crate::families::families;
use threads::{Visible, thread_code};

/// Maximum total number of live registers, summed over all locations, for which the lists of live registers are computed. Longer lists would take too
/// much memory. A program without these lists gets neither symmetry reduction nor versions, and no proof as a set of states.
const MOST_LIVE: usize = 1 << 22;

/// Index of a component of the state that is not a buffer.
pub type Slot = u32;

/// A program compiled for one task and one set of options. The slots of a state are, in this order: the program counters, the lock, the favourite
/// thread, the memory cells, and the slots for the registers of each thread.
pub struct Code {
    /// The memory model under which the program is explored.
    pub model: MemoryModel,
    /// The compiled threads, in the order of the program.
    pub threads: Vec<ThreadCode>,
    /// The slot of the first memory cell.
    pub memory: Slot,
    /// Whether local events come first (THESIS16 Algorithms 4.2 and 4.3).
    pub local_first: bool,
    /// The footprints of the future steps of each thread from each location, if the reduction needs them.
    pub summaries: Option<Summaries>,
    /// The number of slots of a state, buffers not included.
    pub slots: usize,
    /// For each shared variable, the slots of its cells, in ascending order.
    arrays: Vec<std::ops::Range<usize>>,
    /// The formula of each property that has one.
    pub formulas: Vec<Option<ExprCode>>,
    /// The families of threads that may be permuted (symmetry reduction).
    pub orbits: Orbits,
    /// The slots that hold versions, if states are stored up to the order of versions.
    pub versions: Option<Versions>,
    /// The abstraction of store buffers; `None` for exact buffers.
    pub abstraction: Option<Abstraction>,
    /// Whether the search is for overflow of a bounded buffer: then a store that does not fit decides the only property of the task.
    pub overflow_decides: bool,
}

/// The code of a thread, and the slots of its part of the state.
pub struct ThreadCode {
    /// For each location, the edges that leave it.
    pub edges: Vec<Box<[EdgeCode]>>,
    /// The target location of each edge, indexed by `EdgeId`.
    pub targets: Vec<u32>,
    /// The location that the thread enters when it faults.
    pub fault: u64,
    /// For each location, whether it is an end of the thread.
    pub ended: Vec<bool>,
    /// Pairs of an edge and a slot: the slot may hold a value before or during the edge and is dead after it. Sorted by edge.
    pub freed: Vec<(EdgeId, Slot)>,
    /// The slots of the thread's registers that are dead at the fault location.
    pub dead_after_fault: Vec<Slot>,
    /// The slot of each register. Registers whose live ranges do not overlap may share a slot.
    pub registers: Vec<Slot>,
    /// The range of all slots of the thread's registers.
    pub slots: std::ops::Range<Slot>,
    /// The live registers at each location. Without the live-variable reduction, all registers are live everywhere.
    pub live: LiveRegisters,
    /// The cells the thread stores to through its buffer, in ascending order; empty under SC.
    pub buffered_cells: Vec<u32>,
    /// Position in `buffered_cells` of each memory cell; `u32::MAX` for a cell that is not in `buffered_cells`.
    pub cell_kind: Vec<u32>,
    /// For each of the `buffered_cells`, whether a flush to it can change the value of the formula of a
    /// [`PropertyKind::Never`](fencewright_program::PropertyKind::Never).
    pub flush_visible: Vec<bool>,
}

/// A compiled edge of a thread.
pub struct EdgeCode {
    /// The number of the edge in the thread.
    pub id: EdgeId,
    /// The target location if the edge does not fault.
    pub to: u64,
    /// The compiled action; writes to registers that are dead afterwards only check the range.
    pub action: ActionCode,
    /// Whether the edge is local: it commutes with all steps of other threads, and is not `visible`.
    pub local: bool,
    /// Whether the edge can change the value of the formula of a [`PropertyKind::Never`](fencewright_program::PropertyKind::Never).
    pub visible: bool,
    /// Whether the edge can change the value of a disjunct of such a formula that does not depend on a single thread only. If it cannot, the order of
    /// this edge and of steps of other threads does not matter for the formula.
    pub joint: bool,
    /// The source position of the statement that the edge was made from.
    pub span: Span,
}

/// An action of the program with compiled operations.
pub enum ActionCode {
    /// A single operation outside of atomic steps.
    Op(OpCode),
    /// See [`Action::Fence`].
    Fence,
    /// See [`Action::StoreFence`].
    StoreFence,
    /// See [`Action::Lock`].
    Lock,
    /// See [`Action::Unlock`].
    Unlock,
    /// See [`Action::Atomic`].
    Atomic {
        /// The operations, which are performed in one step.
        ops: Box<[OpCode]>,
        /// Whether the step waits until the buffer of the thread is empty.
        drains: bool,
    },
}

/// The destination of a value. A value outside the range is a fault, even if the register is dead afterwards.
pub struct Target {
    /// The slot; `None` if the register is dead afterwards.
    pub slot: Option<Slot>,
    /// The values that may be written; any other value is a fault.
    pub range: Range,
}

/// An operation of the program on slots and cells.
pub enum OpCode {
    /// See [`Op::Skip`](fencewright_program::Op::Skip).
    Skip,
    /// See [`Op::Assign`](fencewright_program::Op::Assign).
    Assign(Target, ExprCode),
    /// See [`Op::Havoc`](fencewright_program::Op::Havoc).
    Havoc {
        /// The register that receives the value.
        target: Target,
        /// The values to choose from: all of them or, if `sampled`, the samples among them.
        range: Range,
        /// Whether only samples are tried, because the step has infinitely or very many choices.
        sampled: bool,
    },
    /// See [`Op::Assume`](fencewright_program::Op::Assume).
    Assume(ExprCode),
    /// See [`Op::Assert`](fencewright_program::Op::Assert).
    Assert(ExprCode),
    /// See [`Op::Load`](fencewright_program::Op::Load).
    Load(Target, AddressCode),
    /// See [`Op::Store`](fencewright_program::Op::Store).
    Store(AddressCode, Range, ExprCode),
}

/// An address of the program, resolved to cells.
pub enum AddressCode {
    /// The cell with this number: a scalar, or an array element with a constant index in range.
    Cell(u32),
    /// An array element with a computed index, or with a constant index out of range.
    Computed {
        /// Computes the index from registers.
        index: ExprCode,
        /// The indices of the array.
        indices: Range,
        /// The cell of the element with the least index.
        base: u32,
        /// Whether the array is open: an index out of range is then a limit of the model, not a fault.
        open: bool,
    },
}

impl Code {
    /// Compiles a task for a search with the reductions in `options`.
    pub fn new(
        task: &Task<'_>,
        options: &Options,
        abstraction: Option<Abstraction>,
        limits: &Limits,
    ) -> Result<Self, Reason> {
        let program = task.program;
        let threads = program.threads.len();
        let memory = threads as Slot + 2;
        let mut next = memory + program.cells() as Slot;
        let (visible, jointly) = (Visible::new(task), Visible::jointly(task));
        let mut compiled = Vec::with_capacity(threads);
        for (id, _) in program.threads() {
            let liveness = Liveness::new(task, id, options.live_variables, limits)?;
            let first = next;
            next += liveness.fields as Slot;
            limits.exceeded(0).map_or(Ok(()), Err)?;
            compiled.push(thread_code(task, id, liveness, first, (&visible, &jointly)));
            limits.exceeded(0).map_or(Ok(()), Err)?;
        }
        let mut code = Code {
            model: task.model,
            threads: compiled,
            memory,
            local_first: options.reduction == Reduction::Local,
            summaries: None,
            slots: next as usize,
            arrays: program
                .variables
                .iter()
                .map(|v| v.cells().start + memory as usize..v.cells().end + memory as usize)
                .collect(),
            formulas: Vec::new(),
            orbits: Orbits::default(),
            versions: None,
            abstraction: abstraction.filter(|_| task.model != MemoryModel::Sc),
            overflow_decides: false,
        };
        if options.reduction.needs_summaries() && abstraction.is_none() {
            code.summaries = Some(Summaries::new(program, task.model, &code.threads, limits)?);
        }
        code.formulas = task.properties.iter().map(|p| p.formula().map(|f| code.formula(f))).collect();
        // Threads are not permuted if final states are observed, because the observed values may distinguish the threads.
        if options.symmetry
            && abstraction.is_none()
            && task.observed.is_empty()
            && let Some(live) = code.live()
        {
            let reductions = Reductions { live: &live, local: &code.local() };
            let families = families(task, reductions, limits);
            code.orbits = Orbits::new(program, &code, families);
        }
        if options.versions
            && abstraction.is_none()
            && task.observed.is_empty()
            && let Some(live) = code.live()
        {
            code.versions = Versions::new(program, &task.properties, &code, &live);
        }
        Ok(code)
    }

    /// For each edge of each thread, whether it is treated as local; without the local-events-first reduction no edge is.
    fn local(&self) -> Vec<Vec<bool>> {
        let of = |thread: &ThreadCode| {
            let mut local = vec![false; thread.targets.len()];
            let edges = thread.edges.iter().flatten();
            edges.for_each(|edge| local[edge.id.index()] = edge.local && self.local_first);
            local
        };
        self.threads.iter().map(of).collect()
    }

    /// For each thread and location, the live registers; `None` if the lists together have more than [`MOST_LIVE`] entries.
    pub fn live(&self) -> Option<Vec<Vec<Vec<u32>>>> {
        let mut sum = 0;
        let mut at = |thread: &ThreadCode, location: usize| {
            let live: Vec<u32> = thread.live.at(LocationId(location as u32)).map(|r| r.0).collect();
            sum += live.len();
            (sum <= MOST_LIVE).then_some(live)
        };
        let mut of = |thread: &ThreadCode| (0..thread.edges.len()).map(|l| at(thread, l)).collect();
        self.threads.iter().map(&mut of).collect()
    }

    /// The slot of a thread's program counter, which holds the location of the thread.
    pub fn pc(&self, thread: usize) -> usize {
        thread
    }

    /// The slot of the lock. Its value is 0 if the lock is free, otherwise the index of the holder plus 1.
    pub fn lock(&self) -> usize {
        self.threads.len()
    }

    /// The slot of the favourite thread, whose local events come first. Its value is 0 if there is no favourite, otherwise the index of the thread
    /// plus 1.
    pub fn favourite(&self) -> usize {
        self.threads.len() + 1
    }

    /// The slots that get more bits together with `slot` when a value does not fit. For an array element: all elements of the array, because
    /// programs treat them alike. For a register: the corresponding slots of all threads that may be permuted with its thread.
    pub fn together(&self, slot: Slot) -> Vec<usize> {
        let after = self.arrays.partition_point(|range| range.start <= slot as usize);
        match after.checked_sub(1).map(|n| &self.arrays[n]) {
            Some(range) if range.contains(&(slot as usize)) => range.clone().collect(),
            _ => self.orbits.alike(self, slot).into_iter().map(|slot| slot as usize).collect(),
        }
    }

    /// The slot of the first register of the first thread; all slots before it belong to control or memory.
    pub fn first_register(&self) -> usize {
        self.arrays.last().map_or(self.memory as usize, |cells| cells.end)
    }

    /// The number of slots whose width never changes.
    pub fn fixed_slots(&self) -> usize {
        self.threads.len() + 2
    }

    /// The initial sizes of the slots: program counters get their full range, and so do the lock and the favourite if they are used. Every other slot
    /// holds only the value 0, and buffers have no entries.
    pub fn sizes(&self, program: &Program) -> Sizes {
        let zero = Bounds { low: 0, high: 0 };
        let mut values = vec![zero; self.slots];
        for (bounds, thread) in values.iter_mut().zip(&program.threads) {
            bounds.high = thread.locations.len() as i64 - 1;
        }
        let uses_lock =
            program.threads.iter().any(|t| t.edges.iter().any(|e| matches!(e.action, Action::Lock)));
        if uses_lock {
            values[self.lock()].high = self.threads.len() as i64;
        }
        if self.local_first {
            values[self.favourite()].high = self.threads.len() as i64;
        }
        let buffers = if self.model == MemoryModel::Sc { 0 } else { self.threads.len() };
        Sizes { values, entries: vec![0; buffers], buffered: vec![zero; buffers] }
    }

    fn formula(&self, formula: &Formula) -> ExprCode {
        compile(formula, &|leaf| match leaf {
            Observable::At(thread, at) => {
                let mut locations: Vec<u64> = at.iter().map(|l| u64::from(l.0)).collect();
                locations.sort_unstable();
                Instruction::At(self.pc(thread.index()) as Slot, locations.into())
            }
            Observable::Register(thread, register) => {
                Instruction::Slot(self.threads[thread.index()].registers[register.index()])
            }
            Observable::Memory(cell) => Instruction::Slot(self.memory + cell),
        })
    }
}

impl ThreadCode {
    /// The number of kinds of entries in an exact buffer: the kind of a store is the index of its cell in `buffered_cells`, and the last kind is that
    /// of barriers.
    pub fn buffer_kinds(&self) -> usize {
        self.buffered_cells.len() + 1
    }

    /// The kind of a barrier: the number after those of the `buffered_cells`.
    pub fn barrier(&self) -> u64 {
        self.buffered_cells.len() as u64
    }

    /// The kind of the border in an abstract buffer, if the abstraction has one.
    pub fn border(&self) -> u64 {
        self.barrier() + 1
    }
}
