//! Backward data-flow analyses: the facts at a point describe the executions that follow it.

use fencewright_text::Stop;
use rustc_hash::FxHashMap;

use crate::statement::{Expression, Label, Stage, Stmt, StmtKind};

/// A backward analysis. Facts form a lattice of finite height. The least element is the default value; it describes the end of a thread.
pub(crate) trait Backward<S: Stage> {
    /// The facts at one point.
    type Facts: Clone + Default + PartialEq;

    /// Joins the facts `other` of another path into `facts`.
    fn join(&self, facts: &mut Self::Facts, other: &Self::Facts);

    /// The transfer function, from the facts after a statement to those before it; for an `if`, only the effect of its condition. Monotone.
    fn transfer(&self, kind: &StmtKind<S>, facts: &mut Self::Facts);

    /// Whether a statement can be removed, given the facts after it. Antitone: more facts never make a statement superfluous.
    fn is_superfluous(&self, kind: &StmtKind<S>, facts: &Self::Facts) -> bool;
}

/// Computes the least fixpoint, removes the superfluous statements, and returns the facts at the start of the code. When it is time to stop, the code
/// may be incomplete.
pub(crate) fn eliminate<S: Stage, A: Backward<S>>(
    code: &mut Vec<Stmt<S>>,
    analysis: &A,
    stop: &Stop<'_>,
) -> A::Facts {
    let mut walk = Walk {
        analysis,
        stop,
        labels: FxHashMap::default(),
        heads: Vec::new(),
        loops: 0,
        changed: true,
        removes: false,
    };
    while std::mem::take(&mut walk.changed) {
        walk.start(code);
    }
    walk.removes = true;
    walk.start(code)
}

/// The facts at the targets of `break` and `continue`.
#[derive(Default)]
struct Around<F> {
    leave: F,
    again: F,
}

struct Walk<'a, S: Stage, A: Backward<S>> {
    analysis: &'a A,
    stop: &'a Stop<'a>,
    labels: FxHashMap<Label, A::Facts>,
    /// The facts at the heads of loops, in the order in which a walk visits the loops.
    heads: Vec<A::Facts>,
    /// Number of loops visited so far in this walk.
    loops: usize,
    /// Whether facts at a label or a head have grown in this walk.
    changed: bool,
    removes: bool,
}

impl<S: Stage, A: Backward<S>> Walk<'_, S, A> {
    fn start(&mut self, code: &mut Vec<Stmt<S>>) -> A::Facts {
        self.loops = 0;
        self.block(code, A::Facts::default(), &Around::default())
    }

    fn block(&mut self, code: &mut Vec<Stmt<S>>, mut facts: A::Facts, around: &Around<A::Facts>) -> A::Facts {
        // Indices of the statements to remove, in descending order.
        let mut superfluous = Vec::new();
        for (n, statement) in self.stop.polled(code.iter_mut().enumerate().rev()) {
            if self.analysis.is_superfluous(&statement.kind, &facts) {
                superfluous.push(n);
            } else {
                facts = self.statement(&mut statement.kind, facts, around);
            }
        }
        if self.removes && !superfluous.is_empty() {
            let mut n = 0;
            code.retain(|_| {
                n += 1;
                superfluous.pop_if(|next| *next == n - 1).is_none()
            });
        }
        facts
    }

    fn statement(
        &mut self,
        kind: &mut StmtKind<S>,
        mut facts: A::Facts,
        around: &Around<A::Facts>,
    ) -> A::Facts {
        match kind {
            StmtKind::Steps(block) | StmtKind::Block(block) | StmtKind::Atomic(block) => {
                return self.block(block, facts, around);
            }
            StmtKind::If(_, then, otherwise) => {
                let mut either = self.block(otherwise, facts.clone(), around);
                self.analysis.join(&mut either, &self.block(then, facts, around));
                facts = either;
            }
            StmtKind::Choose(ways) => {
                let mut any = A::Facts::default();
                for way in ways {
                    self.analysis.join(&mut any, &self.block(way, facts.clone(), around));
                }
                return any;
            }
            StmtKind::Loop(body) => return self.endless(body, facts),
            StmtKind::Break => return around.leave.clone(),
            StmtKind::Continue => return around.again.clone(),
            StmtKind::Label(label) => {
                let known = self.labels.entry(*label).or_default();
                let before = known.clone();
                self.analysis.join(known, &facts);
                self.changed |= before != *known;
                return facts;
            }
            StmtKind::Goto(label) => return self.labels.get(label).cloned().unwrap_or_default(),
            StmtKind::Stop => return A::Facts::default(),
            StmtKind::Beyond(condition, _) if condition.number().is_some_and(|number| number != 0) => {
                return A::Facts::default();
            }
            _ => {}
        }
        self.analysis.transfer(kind, &mut facts);
        facts
    }

    /// The facts before a loop. The facts at its head are kept from walk to walk, so that nested loops do not multiply the number of iterations.
    fn endless(&mut self, body: &mut Vec<Stmt<S>>, leave: A::Facts) -> A::Facts {
        let number = self.loops;
        self.loops += 1;
        if self.heads.len() == number {
            self.heads.push(A::Facts::default());
        }
        let mut head = self.heads[number].clone();
        let inside = Around { leave, again: head.clone() };
        let before = self.block(body, head.clone(), &inside);
        self.analysis.join(&mut head, &before);
        self.changed |= head != self.heads[number];
        self.heads[number].clone_from(&head);
        head
    }
}
