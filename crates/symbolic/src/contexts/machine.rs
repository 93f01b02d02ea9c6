//! The machine `contexts`: executions in which threads take turns (CONTEXT24 s.6.2, Fig. 4).
//!
//! An execution is a sequence of contexts. In each context one thread is *active*: only this thread takes edges, and only its buffer is flushed. No
//! other thread loads in between, so the point of the context at which stores leave is irrelevant: here they leave at its end, or where the thread
//! needs an empty buffer. Stores that leave together form a [group](super::groups).
//!
//! | Fig. 4 | here |
//! |---|---|
//! | init | any thread is active first |
//! | local, buffer read, memory read | the edge, as in every [`Machine`] |
//! | write | the edge; the context in which the store leaves is not chosen yet |
//! | buffer arw, memory arw (atomic read-writes) | all groups leave, then the edge, on memory; so do fences and locks |
//! | context switch | any number of the oldest groups leave, and another thread becomes active |
//!
//! Differences from CONTEXT24:
//! * The paper guesses in advance which thread is active in each context and, at each write, in which context the write leaves the buffer. Here the
//!   active thread is chosen when a context begins, and the writes that leave are chosen when a context ends.
//! * The paper requires every write to leave in one of the k contexts. Here an execution may end with buffered stores; otherwise the store buffering
//!   test would not show its violation in two contexts.
//! * In the paper, memory arw writes memory although an older write of the same context to the same variable may still be buffered. At the end of the
//!   context the older write then overwrites the newer value. Here the older writes leave first.
//!
//! Under SC there are no buffers, and the search is an ordinary context-bounded search.

use fencewright_memory::{
    BufferMachine, Cell, CellId, Cells, Command, Contents, Control, Evidence, Machine, Outcome, Step,
};
use fencewright_program::{EdgeId, MemoryModel, Observable, Op, Program, Property, PropertyKind, ThreadId};

use super::groups::{GroupedBuffers, Groups};

/// A control state of the buffer machine, and the active thread.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ContextControl {
    /// The control state of the buffer machine: locations, groups of stores, the lock.
    pub control: Control,
    /// The thread that takes steps in the present context.
    pub active: ThreadId,
}

/// The name of a step, unique among the steps of a control state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextStepName {
    /// The thread that is active before the step.
    pub thread: ThreadId,
    /// The action of the step.
    pub what: Move,
}

/// The action of a step of the context machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// The active thread takes an edge.
    Edge {
        /// The edge of the active thread.
        edge: EdgeId,
        /// The number of the case of the edge; see [`case`](fencewright_memory::StepName::case).
        case: u32,
        /// Number of groups that leave before the step along the edge.
        flushed: u32,
        /// For a store that merges two groups, the index of the older one; `None` for all other edges.
        merged: Option<u32>,
    },
    /// The context ends.
    Switch {
        /// Number of groups that leave before the switch.
        flushed: u32,
        /// The next active thread.
        to: ThreadId,
    },
}

/// A step of the context machine.
pub type ContextStep = Step<ContextStepName, ContextControl>;

/// A subset of the steps of a control state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextPhase {
    /// The steps inside the context: edges of the active thread.
    Inside,
    /// The switches to another thread, which end the context.
    Switch,
}

/// The context machine of a program.
#[derive(Clone, Debug)]
pub struct Contexts<'p> {
    machine: BufferMachine<'p, GroupedBuffers>,
}

impl<'p> Contexts<'p> {
    /// The machine of a program with at most `groups` groups in each buffer; `None` under PSO.
    pub fn new(program: &'p Program, model: MemoryModel, groups: u32) -> Option<Self> {
        let buffers = GroupedBuffers { model, groups };
        (model != MemoryModel::Pso).then(|| Contexts { machine: BufferMachine::new(program, buffers) })
    }

    /// The same machine, with the same cells, but with at most `groups` groups.
    pub fn with_groups(&self, groups: u32) -> Self {
        let buffers = GroupedBuffers { groups, ..self.machine.buffers };
        Contexts { machine: BufferMachine { buffers, ..self.machine.clone() } }
    }

    /// The program that the machine runs.
    pub fn program(&self) -> &'p Program {
        self.machine.program
    }

    /// The numbering of memory cells, registers and values in groups.
    pub fn cells(&self) -> &Cells {
        &self.machine.cells
    }

    /// The groups of a thread's buffer.
    pub fn groups(&self, control: &Control, thread: ThreadId) -> Groups {
        control.buffers.get(thread.index()).map_or_else(Groups::default, Groups::of)
    }

    /// The number of groups in the buffer of the active thread.
    pub fn pending(&self, at: &ContextControl) -> u32 {
        self.groups(&at.control, at.active).0.len() as u32
    }

    /// The edges that the active thread can take; `None` if `stop` interrupts the computation.
    pub fn edges(&self, at: &ContextControl, stop: &dyn Fn() -> bool) -> Option<Vec<ContextStep>> {
        let thread = at.active;
        let code = self.program().thread(thread);
        let mut steps = Vec::new();
        for (edge, e) in code.edges_from(at.control.locations[thread.index()]) {
            if stop() {
                return None;
            }
            let pending = if e.action.drains() { self.pending(at) } else { 0 };
            if pending > 0 && !at.control.may_access(thread) {
                continue;
            }
            let (before, control) = self.flushed(&at.control, thread, pending);
            let mut edge_steps = Vec::new();
            self.machine.edge_steps(&control, thread, edge, &mut edge_steps);
            let mut variants = (0, 0);
            for step in edge_steps {
                let case = step.name.case;
                variants = if case == variants.0 { (case, variants.1 + 1) } else { (case, 1) };
                steps.push(self.edge_step(&control, pending, &before, step, variants.1 - 1));
            }
        }
        Some(steps)
    }

    fn edge_step(
        &self,
        control: &Control,
        flushed: u32,
        before: &[Command],
        step: Step,
        variant: u32,
    ) -> ContextStep {
        let thread = step.name.thread;
        let edge = step.name.edge.expect("it is an edge");
        // If a store was added and the number of groups is unchanged, two groups were merged.
        let merged = match &step.outcome {
            Outcome::Control(next) => {
                let fault = next.locations[thread.index()] == self.program().thread(thread).fault;
                let action = &self.program().thread(thread).edge(edge).action;
                let stores = action.ops().iter().any(|op| matches!(op, Op::Store(..)));
                let count = |c: &Control| self.groups(c, thread).0.len();
                let full = !self.machine.is_direct(action) && count(next) == count(control);
                (stores && !fault && full).then_some(variant)
            }
            Outcome::Beyond(..) => None,
        };
        let outcome = match step.outcome {
            Outcome::Control(control) => Outcome::Control(ContextControl { control, active: thread }),
            Outcome::Beyond(what, span) => Outcome::Beyond(what, span),
        };
        let commands = before.iter().cloned().chain(step.commands).collect();
        let what = Move::Edge { edge, case: step.name.case, flushed, merged };
        Step { name: ContextStepName { thread, what }, commands, outcome }
    }

    /// Ends the context: the `flushed` oldest groups leave and another thread becomes active. `None` if groups are to leave while another thread
    /// holds the lock.
    pub fn switch(&self, at: &ContextControl, flushed: u32, to: ThreadId) -> Option<ContextStep> {
        if flushed > 0 && !at.control.may_access(at.active) {
            return None;
        }
        let (commands, control) = self.flushed(&at.control, at.active, flushed);
        let name = ContextStepName { thread: at.active, what: Move::Switch { flushed, to } };
        Some(Step { name, commands, outcome: Outcome::Control(ContextControl { control, active: to }) })
    }

    /// Flushes the oldest groups of a thread.
    fn flushed(&self, control: &Control, thread: ThreadId, count: u32) -> (Vec<Command>, Control) {
        let mut next = control.clone();
        if count == 0 {
            return (Vec::new(), next);
        }
        let change = self.groups(control, thread).flushed(self.cells(), thread, count as usize);
        next.buffers[thread.index()] = change.shape;
        (change.commands, next)
    }
}

impl Machine for Contexts<'_> {
    type Control = ContextControl;
    type Name = ContextStepName;
    type Phase = ContextPhase;

    /// One initial control state for each thread, because any thread may be active first.
    fn initial_controls(&self) -> Vec<ContextControl> {
        let control = self.machine.initial();
        let first = |(active, _)| ContextControl { control: control.clone(), active };
        self.program().threads().map(first).collect()
    }

    fn initial_values(&self) -> Vec<Command> {
        self.machine.initial_values()
    }

    fn steps_in(
        &self,
        phase: ContextPhase,
        at: &ContextControl,
        stop: &dyn Fn() -> bool,
    ) -> Option<Vec<ContextStep>> {
        match phase {
            ContextPhase::Inside => self.edges(at, stop),
            ContextPhase::Switch => {
                let others = self.program().threads().map(|(to, _)| to).filter(|&to| to != at.active);
                let ways = others.flat_map(|to| (0..=self.pending(at)).map(move |count| (count, to)));
                Some(ways.filter_map(|(count, to)| self.switch(at, count, to)).collect())
            }
        }
    }

    /// At most one piece of evidence for each number of groups that may be flushed at the end of the execution; this number is its `case`. `None` for
    /// deadlocks, which the machine does not support.
    fn evidence(&self, at: &ContextControl, property: &Property) -> Option<Vec<Evidence>> {
        let all = self.pending(at);
        let mut sees_memory = false;
        let formula = property.formula();
        formula.inspect(|f| f.for_each_leaf(&mut |o| sees_memory |= matches!(o, Observable::Memory(_))));
        let flushes = match &property.kind {
            PropertyKind::Finally(..) => all..=all,
            PropertyKind::Never(_) if sees_memory => 0..=all,
            PropertyKind::Never(_) | PropertyKind::Assertions => 0..=0,
            PropertyKind::NoDeadlock => return None,
        };
        let mut found = Vec::new();
        for count in flushes {
            if count > 0 && !at.control.may_access(at.active) {
                continue;
            }
            let (mut commands, control) = self.flushed(&at.control, at.active, count);
            let condition = self.machine.evidence_condition(&control, property)?;
            if condition.constant() != Some(0) {
                commands.push(Command::Assume(condition));
                found.push(Evidence { case: count, commands });
            }
        }
        Some(found)
    }

    /// Memory, all registers, and the values in all groups.
    fn live(&self, at: &ContextControl) -> Vec<CellId> {
        let mut live: Vec<CellId> = self.cells().variables().collect();
        for (t, _) in self.program().threads() {
            live.extend(self.groups(&at.control, t).values(self.cells(), t).map(|(_, _, id)| id));
        }
        live.sort_unstable();
        live
    }

    fn contents(&self) -> Vec<Contents> {
        let memory = |c: u32| self.cells().id(Cell::Memory(c));
        let contents = |id: CellId| match self.cells().cell(id) {
            Cell::Memory(_) | Cell::Register(..) => Contents::Own,
            Cell::Entry(_, position) => Contents::StoresTo(memory(position % self.cells().memory())),
            Cell::Last(_, c) => Contents::StoresTo(memory(c)),
            Cell::Forgotten(_, c) => Contents::Summary(memory(c)),
        };
        (0..self.cells().len() as CellId).map(contents).collect()
    }
}
