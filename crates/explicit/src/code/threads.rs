//! The edges of one thread, compiled.

use std::collections::BTreeSet;

use fencewright_analysis::looks::Looks;
use fencewright_kit::accesses::{cells_of, written_register};
use fencewright_program::{
    Action, Address, Disjunct, Edge, EdgeId, Expr, LocationId, MemoryModel, Observable, Op, Program,
    PropertyKind, RegisterId, ThreadId,
};
use fencewright_verdict::Task;

use super::{ActionCode, AddressCode, EdgeCode, OpCode, Slot, Target, ThreadCode};
use crate::instructions::{Instruction, compile};
use crate::liveness::Liveness;

/// The parts of the state that the formulas of [`PropertyKind::Never`], or some of their disjuncts, depend on. Below, a formula is one of these.
pub(super) struct Visible {
    /// For each thread, the partition of its locations into classes: no formula distinguishes two locations of one class.
    labels: Vec<Looks>,
    /// For each thread and register, whether a formula depends on it.
    registers: Vec<Vec<bool>>,
    /// For each memory cell, whether a formula depends on it.
    memory: Vec<bool>,
}

impl Visible {
    /// What all disjuncts depend on.
    pub(super) fn new(task: &Task<'_>) -> Self {
        Visible::in_disjuncts(task, |_| true)
    }

    /// What those disjuncts depend on that do not depend on a single thread only.
    pub(super) fn jointly(task: &Task<'_>) -> Self {
        Visible::in_disjuncts(task, |disjunct| disjunct.own.is_none())
    }

    fn in_disjuncts(task: &Task<'_>, is_kept: impl Fn(&Disjunct<'_>) -> bool) -> Self {
        let program = task.program;
        let mut visible = Visible {
            labels: program.threads.iter().map(|t| Looks::alike(t.locations.len())).collect(),
            registers: program.threads.iter().map(|t| vec![false; t.registers.len()]).collect(),
            memory: vec![false; program.cells()],
        };
        for property in &task.properties {
            let PropertyKind::Never(formula) = &property.kind else { continue };
            let mut note = |leaf: &Observable| match leaf {
                Observable::At(thread, at) => visible.labels[thread.index()].tell_apart(at),
                Observable::Register(thread, register) => {
                    visible.registers[thread.index()][register.index()] = true;
                }
                Observable::Memory(cell) => visible.memory[*cell as usize] = true,
            };
            let disjuncts = formula.disjuncts().into_iter().filter(&is_kept);
            disjuncts.for_each(|disjunct| disjunct.formula.for_each_leaf(&mut note));
        }
        visible
    }

    /// Whether an edge may change the value of a formula when its thread takes it. Under TSO and PSO a store that enters the buffer changes no
    /// formula; the later flush may, see [`ThreadCode::flush_visible`].
    fn sees(&self, task: &Task<'_>, id: ThreadId, edge: &Edge) -> bool {
        let (program, ops) = (task.program, edge.action.ops());
        let thread = program.thread(id);
        let labels = &self.labels[id.index()];
        let moves = !labels.is_alike(edge.from, edge.to)
            || (program.edge_may_fault(thread, edge) && !labels.is_alike(edge.from, thread.fault));
        let observed = &self.registers[id.index()];
        let writes_register = ops.iter().any(|op| written_register(op).is_some_and(|r| observed[r.index()]));
        let direct = task.model == MemoryModel::Sc || matches!(edge.action, Action::Atomic { .. });
        let writes_memory = direct
            && ops.iter().any(|op| match op {
                Op::Store(a, _) => cells_of(program, a).any(|c| self.memory[c as usize]),
                _ => false,
            });
        moves || writes_register || writes_memory
    }
}

pub(super) fn thread_code(
    task: &Task<'_>,
    id: ThreadId,
    liveness: Liveness,
    first: Slot,
    (visible, jointly): (&Visible, &Visible),
) -> ThreadCode {
    let program = task.program;
    let thread = program.thread(id);
    let registers: Vec<Slot> = liveness.colours.iter().map(|&c| first + c as Slot).collect();
    let buffered_cells = buffered_cells(program, id, task.model);
    let mut cell_kind = vec![u32::MAX; program.cells()];
    for (kind, &cell) in buffered_cells.iter().enumerate() {
        cell_kind[cell as usize] = kind as u32;
    }
    let edge_code = |(edge_id, edge): (EdgeId, &Edge)| {
        let writes = liveness.live_writes(thread, edge_id);
        let sampled = program.is_sampled(&edge.action);
        let compile_op = |(op, live): (&Op, bool)| op_code(program, id, &registers, op, live, sampled);
        let mut compiled = edge.action.ops().iter().zip(writes).map(compile_op);
        let action = match &edge.action {
            Action::Op(_) => ActionCode::Op(compiled.next().expect("one operation")),
            Action::Atomic { drains, .. } => ActionCode::Atomic { ops: compiled.collect(), drains: *drains },
            Action::Fence => ActionCode::Fence,
            Action::StoreFence => ActionCode::StoreFence,
            Action::Lock => ActionCode::Lock,
            Action::Unlock => ActionCode::Unlock,
        };
        let seen = visible.sees(task, id, edge);
        EdgeCode {
            id: edge_id,
            to: u64::from(edge.to.0),
            local: !seen && is_local(&edge.action, task.model),
            visible: seen,
            joint: jointly.sees(task, id, edge),
            action,
            span: edge.span,
        }
    };
    let leaving = |location: usize| thread.edges_from(LocationId(location as u32)).map(edge_code).collect();
    let edges = (0..thread.locations.len()).map(leaving).collect();
    let slot = |field: usize| first + field as Slot;
    let mut dead_after_fault: Vec<Slot> = (0..liveness.fields).map(slot).collect();
    let live_after_fault: BTreeSet<Slot> =
        liveness.live.at(thread.fault).map(|r| registers[r.index()]).collect();
    dead_after_fault.retain(|slot| !live_after_fault.contains(slot));
    ThreadCode {
        edges,
        targets: thread.edges.iter().map(|edge| edge.to.0).collect(),
        fault: u64::from(thread.fault.0),
        ended: (0..thread.locations.len()).map(|l| thread.is_end(LocationId(l as u32))).collect(),
        freed: liveness.freed.iter().map(|&(edge, field)| (edge, slot(field))).collect(),
        dead_after_fault,
        registers,
        slots: first..first + liveness.fields as Slot,
        live: liveness.live,
        flush_visible: buffered_cells.iter().map(|&c| visible.memory[c as usize]).collect(),
        buffered_cells,
        cell_kind,
    }
}

/// Whether an action is a local event (THESIS16 s. 4.3): all actions are, except loads, atomic steps and lock operations. Under SC a store writes
/// memory immediately, so it is not local.
fn is_local(action: &Action, model: MemoryModel) -> bool {
    match action {
        Action::Op(Op::Load(..)) | Action::Atomic { .. } | Action::Lock | Action::Unlock => false,
        Action::Op(Op::Store(..)) => model != MemoryModel::Sc,
        Action::Op(_) | Action::Fence | Action::StoreFence => true,
    }
}

/// The cells that a thread stores to through its buffer.
fn buffered_cells(program: &Program, id: ThreadId, model: MemoryModel) -> Vec<u32> {
    if model == MemoryModel::Sc {
        return Vec::new();
    }
    let edges = &program.thread(id).edges;
    let stores = edges.iter().filter_map(|e| match &e.action {
        Action::Op(Op::Store(address, _)) => Some(address),
        _ => None,
    });
    let mut cells: Vec<u32> = stores.flat_map(|a| cells_of(program, a)).collect();
    cells.sort_unstable();
    cells.dedup();
    cells
}

fn op_code(
    program: &Program,
    id: ThreadId,
    registers: &[Slot],
    op: &Op,
    live: bool,
    sampled: bool,
) -> OpCode {
    let value = |e: &Expr<RegisterId>| compile(e, &|r| Instruction::Slot(registers[r.index()]));
    let target = |r: RegisterId| Target {
        slot: live.then(|| registers[r.index()]),
        range: program.writable(program.thread(id).registers[r.index()].range).range(),
    };
    let address = |a: &Address| {
        let variable = &program.variables[a.variable.index()];
        match (&a.index, variable.indices) {
            (Some(index), Some(range)) => match index.constant() {
                Some(i) if range.contains(i) => AddressCode::Cell(variable.base + (i - range.low) as u32),
                _ => AddressCode::Computed {
                    index: value(index),
                    indices: range,
                    base: variable.base,
                    open: variable.open,
                },
            },
            _ => AddressCode::Cell(variable.base),
        }
    };
    match op {
        Op::Skip => OpCode::Skip,
        Op::Assign(r, e) => OpCode::Assign(target(*r), value(e)),
        Op::Havoc(r, range) => OpCode::Havoc {
            target: target(*r),
            range: program.chosen(*range).range(),
            sampled: sampled || range.is_none(),
        },
        Op::Assume(e) => OpCode::Assume(value(e)),
        Op::Assert(e, _) => OpCode::Assert(value(e)),
        Op::Load(r, a) => OpCode::Load(target(*r), address(a)),
        Op::Store(a, e) => {
            let writable = program.writable(program.variables[a.variable.index()].range);
            OpCode::Store(address(a), writable.range(), value(e))
        }
    }
}
