//! Faults as control: each edge that could fault becomes edges that cannot, and edges that lead to a place where the thread is
//! doomed, from where it faults without looking at anything.
//!
//! A thread that faults leaves its buffer behind, and the stores in it still reach memory. Auxiliary registers do not. With
//! faults as control the last look at registers and memory before a fault is an edge like any other, so stores can be
//! made to happen behind it, and no edge along which stores are delayed can fault.
//!
//! Some edges stay as they are, unless there are locks (a doomed thread can still give its lock back, a faulted one cannot: see
//! [`Extended::released`](super::Extended::released)):
//!
//! * one that waits for an empty buffer: it leaves no store behind;
//! * one with a store to an open array whose value may fault, for whether it does is asked only if the index is inside the window. Stores
//!   are not delayed along it.

use fencewright_kit::accesses::only_cell;
use fencewright_program::{
    Action, BinaryOp, Checks, Edge, Expr, Fault, LocationId, Op, Program, Range, RegisterId, Span,
};

use super::{Builder, Origin, Refused, auxiliary};

/// An indivisible step with many operations that may fault becomes one edge for each of them, which repeats all before it. In all
/// edges of a thread together there are at most so many operations.
const MOST_OPERATIONS: usize = 1 << 17;

/// The same thread with faults as control.
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

/// An edge that is being taken apart.
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

    /// Whether the edge stays as it is.
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

    /// Roughly how many operations there are in the edges that it becomes.
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
                // A load waits while another thread holds the lock, even if it is going to fault: so these are indivisible steps.
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

    /// A place between two parts of the edge, where the original thread is still at its start.
    fn step_aside(&mut self) -> LocationId {
        self.builder.copy_of(self.edge.from, Some(self.edge.span))
    }

    fn indivisible(&mut self, to: LocationId, ops: Vec<Op>, drains: bool, origin: Origin) {
        self.builder.edge(self.edge.from, to, Action::Atomic { ops, drains }, self.edge.span, origin);
    }

    /// One edge for each operation that may fault, which does all before it, and one on which none does.
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

    /// `register := *` with those values only that fit, if any does.
    fn fitting_choice(&self, register: RegisterId, range: Option<Range>) -> Option<Op> {
        let writable = self.program.writable(self.builder.registers[register.index()].range);
        let fitting = self.program.chosen(range).and(writable).range();
        (fitting.size() > 0).then_some(Op::Havoc(register, Some(fitting)))
    }

    /// The edge on which some operations are done and then a condition does not hold.
    fn refuse(&mut self, done: &[Op], condition: Expr<RegisterId>, drains: bool, origin: Origin) {
        let refuses = [done, &[Op::Assume(condition.not())]].concat();
        self.indivisible(self.doomed, refuses, drains, origin);
    }
}
