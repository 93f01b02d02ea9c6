//! Makes faults explicit as control: each edge that may fault is replaced by edges that cannot fault, and by edges to a *doomed* location. From there
//! the thread faults without further accesses.
//!
//! When a thread faults, the stores in its buffer still reach memory, but the stores delayed in auxiliary registers do not. With explicit faults the
//! last access before a fault is an edge like any other. So delayed stores can be performed between this edge and the fault, and no edge along which
//! stores are delayed can fault.
//!
//! Two kinds of edges remain unchanged in programs without locks:
//!
//! * an edge that waits for an empty buffer: when it faults, no store is left behind in the buffer;
//! * a store to an open array whose value may fault: the value is checked only if the index is inside the window. No store is delayed along such an
//!   edge.
//!
//! In programs with locks, unchanged edges would lose executions: a doomed thread can still release its lock, a faulted thread cannot (see
//! [`Extended::released`](super::Extended::released)). There an edge of the first kind is replaced like any other, and a program with an edge of the
//! second kind is refused.

use fencewright_kit::accesses::only_cell;
use fencewright_program::{
    Action, BinaryOp, Checks, Edge, Expr, Fault, LocationId, Op, Program, Range, RegisterId, Span,
};

use super::{Builder, Origin, Refused, auxiliary};

/// Maximum number of operations in all replaced edges of a thread together. An atomic step with n operations that may fault becomes about n + 1
/// edges, each of which repeats the operations before the fault.
const MOST_OPERATIONS: usize = 1 << 17;

/// The thread with explicit faults.
pub(super) fn made_explicit(
    mut builder: Builder,
    fault: LocationId,
    program: &Program,
) -> Result<Builder, Refused> {
    let locks = program.threads.iter().any(|t| t.edges.iter().any(|e| e.action == Action::Lock));
    let edges = std::mem::take(&mut builder.edges);
    let doomed = builder.copy_of(fault, None);
    let faulting = Origin { step: None, faults: true };
    builder.op(doomed, fault, Op::Assert(Expr::Const(0), Fault::Assertion(None)), Span::default(), faulting);
    let mut operations = 0;
    for (edge, origin) in edges {
        if !origin.faults {
            builder.edges.push((edge, origin));
            continue;
        }
        let mut guard = Guard { builder: &mut builder, program, locks, doomed, edge: &edge, origin };
        operations += guard.operations();
        let refused = |why| Err(Refused { why, span: Some(edge.span) });
        if operations > MOST_OPERATIONS {
            return refused("an indivisible step with too many operations that may fault");
        }
        match guard.stays() {
            true if locks => {
                return refused("a store to an open array whose value may fault, in a program with locks");
            }
            true => guard.keep(),
            false => guard.split(),
        }
    }
    Ok(builder)
}

/// An edge that is being split.
struct Guard<'a> {
    builder: &'a mut Builder,
    program: &'a Program,
    /// Whether any thread takes the lock.
    locks: bool,
    doomed: LocationId,
    edge: &'a Edge,
    origin: Origin,
}

impl Guard<'_> {
    fn checks(&self, op: &Op) -> Checks {
        self.program.checks(&self.builder.registers, op)
    }

    /// Whether the edge remains unchanged.
    fn stays(&self) -> bool {
        let action = &self.edge.action;
        let unsplit = |op: &Op| match op {
            Op::Store(address, _) => {
                let open = self.program.variables[address.variable.index()].open;
                open && only_cell(self.program, address).is_none() && self.checks(op).before.is_some()
            }
            _ => false,
        };
        action.drains() && !self.locks || action.ops().iter().any(unsplit)
    }

    /// Approximate number of operations in the edges that replace this edge.
    fn operations(&self) -> usize {
        let ops = self.edge.action.ops();
        let faulting = ops.iter().filter(|op| self.program.op_may_fault(&self.builder.registers, op)).count();
        if self.stays() { ops.len() } else { ops.len() * (1 + faulting) }
    }

    fn split(&mut self) {
        let (edge, origin) = (self.edge, Origin { faults: false, ..self.origin });
        let silent = Origin::SILENT;
        match &edge.action {
            Action::Atomic { ops, drains } => self.split_indivisible(ops, *drains, origin),
            Action::Op(op) => match (op, self.checks(op)) {
                // A load waits while another thread holds the lock, even if it is going to fault; so the edge to the doomed location is an atomic
                // step, which waits too.
                (Op::Load(..), Checks { before: Some(guard), value: None }) => {
                    let refuses = vec![Op::Assume(guard.clone().not())];
                    self.indivisible(self.doomed, refuses, false, origin);
                    let ready = self.step_aside();
                    self.builder.op(edge.from, ready, Op::Assume(guard), edge.span, silent);
                    self.builder.op(ready, edge.to, op.clone(), edge.span, origin);
                }
                (Op::Load(..), _) => self.split_indivisible(std::slice::from_ref(op), false, origin),
                (Op::Havoc(register, range), _) => {
                    self.builder.op(edge.from, self.doomed, Op::Skip, edge.span, origin);
                    if let Some(fits) = self.fitting_choice(*register, *range) {
                        self.builder.op(edge.from, edge.to, fits, edge.span, origin);
                    }
                }
                (_, Checks { before: Some(guard), .. }) => {
                    self.builder.op(
                        edge.from,
                        self.doomed,
                        Op::Assume(guard.clone().not()),
                        edge.span,
                        origin,
                    );
                    match op {
                        Op::Assert(..) => {
                            self.builder.op(edge.from, edge.to, Op::Assume(guard), edge.span, origin)
                        }
                        Op::Assume(e) => {
                            let both = Expr::binary(BinaryOp::And, guard, e.clone());
                            self.builder.op(edge.from, edge.to, Op::Assume(both), edge.span, origin);
                        }
                        _ => {
                            let ready = self.step_aside();
                            self.builder.op(edge.from, ready, Op::Assume(guard), edge.span, silent);
                            self.builder.op(ready, edge.to, op.clone(), edge.span, origin);
                        }
                    }
                }
                _ => self.keep(),
            },
            Action::Fence | Action::StoreFence | Action::Lock | Action::Unlock => self.keep(),
        }
    }

    fn keep(&mut self) {
        self.builder.edges.push((self.edge.clone(), self.origin));
    }

    /// A new location in the middle of the split edge. It corresponds to the start of the edge in the original thread.
    fn step_aside(&mut self) -> LocationId {
        self.builder.copy_of(self.edge.from, Some(self.edge.span))
    }

    fn indivisible(&mut self, to: LocationId, ops: Vec<Op>, drains: bool, origin: Origin) {
        self.builder.edge(self.edge.from, to, Action::Atomic { ops, drains }, self.edge.span, origin);
    }

    /// Adds one edge for each check that an operation may fail, which performs the operations before it and then leads to the doomed location; and
    /// one edge on which no operation faults.
    fn split_indivisible(&mut self, ops: &[Op], drains: bool, origin: Origin) {
        let mut done: Vec<Op> = Vec::new();
        for op in ops {
            let Checks { before, value } = self.checks(op);
            if let Some(guard) = before {
                self.refuse(&done, guard.clone(), drains, origin);
                done.push(Op::Assume(guard));
            }
            match (op, value) {
                (Op::Assert(..), _) => {}
                (Op::Havoc(register, range), Some(_)) => {
                    self.indivisible(self.doomed, done.clone(), drains, origin);
                    match self.fitting_choice(*register, *range) {
                        Some(fits) => done.push(fits),
                        None => return,
                    }
                }
                (Op::Load(register, address), Some(bounds)) => {
                    let seen: RegisterId = auxiliary(self.builder, "seen");
                    done.push(Op::Load(seen, address.clone()));
                    if let Some(fits) = bounds.condition(&Expr::Leaf(seen)) {
                        self.refuse(&done, fits.clone(), drains, origin);
                        done.push(Op::Assume(fits));
                    }
                    done.push(Op::Assign(*register, Expr::Leaf(seen)));
                }
                _ => done.push(op.clone()),
            }
        }
        self.indivisible(self.edge.to, done, drains, origin);
    }

    /// The operation `register := *` restricted to the values that fit the register; `None` if no value fits.
    fn fitting_choice(&self, register: RegisterId, range: Option<Range>) -> Option<Op> {
        let writable = self.program.writable(self.builder.registers[register.index()].range);
        let fitting = self.program.chosen(range).and(writable).range();
        (fitting.size() > 0).then_some(Op::Havoc(register, Some(fitting)))
    }

    /// Adds the edge to the doomed location that performs the operations `done` and then continues only if `condition` is false.
    fn refuse(&mut self, done: &[Op], condition: Expr<RegisterId>, drains: bool, origin: Origin) {
        let refuses = [done, &[Op::Assume(condition.not())]].concat();
        self.indivisible(self.doomed, refuses, drains, origin);
    }
}
