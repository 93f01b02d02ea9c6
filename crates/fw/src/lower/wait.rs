//! `await` where it blocks ([`Awaits::Block`]): whoever waits in vain has no step to take.
//!
//! A condition may hold access by access although it never holds at once, so it is evaluated as it is where `await` spins. But if it fails, the thread does
//! not go back to the `head`; it goes to a *waiting place*:
//!
//! ```text
//! head    -> ...     the accesses, one after the other
//! ...     -> next    the condition holds
//! ...     -> waiting it does not
//! ...     -> head    it does not, where it may have changed memory
//! waiting -> next    the condition holds: the whole evaluation as one indivisible step
//! waiting -> head    it does not, but evaluating it would change memory
//! ```
//!
//! *Nothing is lost.* An evaluation that fails and changes nothing can be left out of an execution: the thread stays at its head instead, and can evaluate later.
//! One that changes memory cannot be left out, so after it the thread may also be at its head, from where the condition can hold access by access.
//! The waiting place has the labels of the head, so no formula tells them apart.
//!
//! *A thread is blocked at its waiting place for ever* if and only if nothing changes any more and the condition fails with memory as it is, which is what
//! `deadlock` asks about. A thread at the head with such a condition is not blocked yet, but nothing keeps it from evaluating and coming to the waiting place.
//!
//! Blocks of a `choose` share their head. There the waiting place has the other steps from the head too: while one condition is waited for, the other
//! blocks can still be chosen.

use std::ops::Range;

use fencewright_program::{Action, BinaryOp, Edge, Expr, Op, RegisterId, Span};
use fencewright_text::Diagnostic;

use super::graph::Node;
use super::thread::{ThreadLowering, Within};
use crate::ast;
use crate::lower::Awaits;

type Result<T> = std::result::Result<T, Diagnostic>;

/// An `await` with a waiting place.
pub struct Wait {
    head: Node,
    waiting: Node,
    /// The edges that evaluate the condition, among those of the graph.
    evaluation: Range<usize>,
}

/// The ways through the evaluation of a condition.
struct Evaluation {
    holds: Vec<Vec<Op>>,
    fails: Vec<Vec<Op>>,
}

impl Evaluation {
    fn stores(&self) -> bool {
        self.holds.iter().any(|way| stores(way)) || self.fails_after_a_store()
    }

    fn fails_after_a_store(&self) -> bool {
        self.fails.iter().any(|way| stores(way))
    }
}

fn stores(way: &[Op]) -> bool {
    way.iter().any(|op| matches!(op, Op::Store(..)))
}

impl<'a> ThreadLowering<'a, '_> {
    /// `await e`, where `e` has an access.
    pub fn wait(&mut self, e: &'a ast::Expr, at: Option<Node>, next: Node, span: Span) -> Result<Node> {
        let head = at.unwrap_or_else(|| self.graph.node());
        if self.awaits == Awaits::Spin {
            return self.condition(e, Some(head), Some(next), Some(head));
        }
        // Before the temporaries of the evaluation, which it is used beside.
        let held = self.temporary();
        let Some(evaluation) = self.evaluation(e, span) else { return self.undecided(e, head, next, span) };
        let drains = evaluation.stores();
        let waiting = self.graph.node();
        let first = self.graph.edges().len();
        self.condition(e, Some(head), Some(next), Some(waiting))?;
        if evaluation.fails_after_a_store() {
            self.graph.also_to(head, first..self.graph.edges().len(), waiting);
        }
        self.waits.push(Wait { head, waiting, evaluation: first..self.graph.edges().len() });
        let changes = evaluation.fails.iter().flat_map(|way| changes(way, held)).map(|ops| (head, ops));
        for (to, ops) in evaluation.holds.into_iter().map(|ops| (next, ops)).chain(changes) {
            self.graph.arc(Some(waiting), to, Action::Atomic { ops, drains }, span);
        }
        Ok(head)
    }

    /// The ways through the evaluation, if it can be one step.
    fn evaluation(&mut self, e: &'a ast::Expr, span: Span) -> Option<Evaluation> {
        let errors = self.diagnostics.len();
        let holds =
            self.ways(Within::Evaluation, span, |this, exit| this.condition(e, None, Some(exit), None));
        let fails =
            self.ways(Within::Evaluation, span, |this, exit| this.condition(e, None, None, Some(exit)));
        let is_one_step = self.diagnostics.len() == errors;
        self.diagnostics.truncate(errors);
        Some(Evaluation { holds: holds.ok()?, fails: fails.ok()? }).filter(|_| is_one_step)
    }

    /// Reports that the condition is wrong by itself, or that it only cannot be evaluated in one step.
    fn undecided(&mut self, e: &'a ast::Expr, head: Node, next: Node, span: Span) -> Result<Node> {
        let errors = self.diagnostics.len();
        self.condition(e, Some(head), Some(next), Some(head))?;
        if self.diagnostics.len() > errors {
            return Ok(head);
        }
        let message =
            "whether this `await` blocks is not decided: its condition cannot be evaluated in one step";
        let help = "`deadlock` knows conditions with any accesses, and calls of procedures without loops, fences, locks and labels";
        Err(Diagnostic::new(span, message).help(help))
    }

    /// Completes the waiting places when the steps from all heads are known.
    pub fn complete_waits(&mut self) {
        let waits = std::mem::take(&mut self.waits);
        let lowered: Vec<Edge> = self.graph.edges().iter().map(|(edge, ())| edge.clone()).collect();
        for (n, wait) in waits.iter().enumerate() {
            let head = self.graph.find(wait.head);
            let shares_head = |other: &&Wait| self.graph.find(other.head) == head;
            if let Some(earlier) = waits[..n].iter().find(shares_head) {
                self.graph.join(Some(wait.waiting), earlier.waiting, Span::default());
                continue;
            }
            let evaluations: Vec<&Wait> = waits.iter().filter(shares_head).collect();
            let others = lowered.iter().enumerate().filter(|(n, edge)| {
                self.graph.find(edge.from) == head
                    && !evaluations.iter().any(|wait| wait.evaluation.contains(n))
            });
            let others: Vec<&Edge> = others.map(|(_, edge)| edge).collect();
            for edge in others {
                self.graph.copy(edge, wait.waiting);
            }
            self.graph.label_like(wait.waiting, head);
        }
    }
}

/// The beginnings of an evaluation up to a store that changes memory, as conditions: nothing is stored. `held` is for what memory holds.
fn changes(way: &[Op], held: RegisterId) -> Vec<Vec<Op>> {
    let (mut begun, mut changes): (Vec<Op>, Vec<Vec<Op>>) = (Vec::new(), Vec::new());
    for op in way {
        let Op::Store(address, value) = op else {
            begun.push(op.clone());
            continue;
        };
        let compare = |op| Op::Assume(Expr::binary(op, Expr::Leaf(held), value.clone()));
        begun.push(Op::Load(held, address.clone()));
        changes.push([&begun[..], &[compare(BinaryOp::Ne)]].concat());
        begun.push(compare(BinaryOp::Eq));
    }
    changes
}
