//! Blocking `await` ([`Awaits::Block`]): a thread whose condition never becomes true has no enabled step.
//!
//! Where `await` spins, its condition is evaluated access by access. Since other threads take steps between the accesses, the result may be true
//! although the condition is false in every single state. A blocking `await` evaluates its condition in the same way, starting at a location called
//! the *head*. But if the condition is false, the thread does not return to the head; it goes to another location, the *waiting location*:
//!
//! ```text
//! head    -> ...     the accesses, one after the other
//! ...     -> next    the condition is true
//! ...     -> waiting it is false
//! ...     -> head    it is false, and evaluating it may have changed memory
//! waiting -> next    the condition is true: the whole evaluation as one indivisible step
//! waiting -> head    it is false, but evaluating it would change memory
//! ```
//!
//! *No execution is lost.* Consider an evaluation whose result is false. If it changes nothing, it can be removed from the execution: the thread
//! stays at its head instead and can evaluate the condition later. If it changes memory, it cannot be removed. So it may also lead back to the head,
//! from where a later evaluation, access by access, can have the result true. The waiting location has the labels of the head, so no formula
//! distinguishes the two.
//!
//! *A thread is blocked at its waiting location forever* if and only if memory does not change any more and the condition is false in this memory,
//! which is what `deadlock` reports. A thread at its head is not blocked yet, even if its condition is false: it can evaluate the condition and so
//! reach the waiting location.
//!
//! The blocks of a `choose` that start with an `await` share their head, and also one waiting location. This location has the other steps of the
//! head too: while the thread waits for one condition, it can still choose the other blocks.

use std::ops::Range;

use fencewright_program::{Action, BinaryOp, Edge, Expr, Op, RegisterId, Span};
use fencewright_text::Diagnostic;

use super::graph::Node;
use super::thread::{ThreadLowering, Within};
use crate::ast;
use crate::lower::Awaits;

type Result<T> = std::result::Result<T, Diagnostic>;

/// An `await` with its waiting location.
pub struct Wait {
    head: Node,
    waiting: Node,
    /// The indices of the edges that evaluate the condition, from the head on.
    evaluation: Range<usize>,
}

/// The paths through the evaluation of a condition, by its result.
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
    /// `await e`, where `e` accesses memory.
    pub fn wait(&mut self, e: &'a ast::Expr, at: Option<Node>, next: Node, span: Span) -> Result<Node> {
        let head = at.unwrap_or_else(|| self.graph.node());
        if self.awaits == Awaits::Spin {
            return self.condition(e, Some(head), Some(next), Some(head));
        }
        // This register is allocated before the temporaries of the evaluation, because its live range overlaps theirs.
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

    /// The paths through the evaluation of a condition; `None` if it cannot be a single step.
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

    /// Reports either that the condition itself is wrong, or that it cannot be evaluated in one step.
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

    /// Gives all waits with the same head one waiting location, and this location the other steps of the head. Called when the steps of all heads are
    /// known.
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

/// For each store of a path, the operations that lead to the store and check that it would change memory, without storing. The register `held`
/// receives the current content of the location to store to.
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
