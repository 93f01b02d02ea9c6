//! Forward data-flow analyses, in which the facts at a point describe the executions that lead to it, and passes that rewrite statements by such
//! facts in the same walk.
//!
//! Facts are an `Option`: `None` at unreachable points. Cycles are treated in one of two ways ([`Forward::ITERATES`]):
//!
//! - An iterating analysis keeps facts at the heads of loops and at labels ([`Cycles`]) and weakens them until a walk changes none: a fixpoint.
//! - Any other analysis makes one walk. At the head of a loop it keeps the facts that the body preserves ([`Forward::preserved`]). At a label to
//!   which a later statement jumps, and at the head of a loop that is entered by a jump, it has no facts except those that hold in every state
//!   ([`Forward::nothing`]).

use fencewright_text::Stop;
use rustc_hash::FxHashMap;

use crate::statement::{Label, Stage, Stmt, StmtKind, each_statement};

/// A forward analysis, or a pass that rewrites code by its facts.
pub(crate) trait Forward<S: Stage> {
    /// The facts at one point.
    type Facts: Clone;

    /// Whether walks are repeated until a fixpoint.
    const ITERATES: bool;

    /// The join: facts that hold on both of two paths.
    fn join(&self, one: Self::Facts, other: Self::Facts) -> Self::Facts;

    /// The transfer function, from the facts before a statement to those after it; `None` if the statement never completes. Not called for statements
    /// with blocks, labels, jumps and stops.
    fn transfer(&mut self, kind: &StmtKind<S>, facts: Self::Facts) -> Option<Self::Facts>;

    /// The facts in the branch where a condition holds, or does not hold; `None` if that branch is unreachable.
    fn branch(&self, condition: &S::Value, holds: bool, facts: Self::Facts) -> Option<Self::Facts>;

    /// Called before each statement; returns whether the statement is kept. May rewrite the statement, add statements around it, and add facts that
    /// hold when it is executed.
    fn rewrite(
        &mut self,
        _statement: &mut Stmt<S>,
        _facts: &mut Option<Self::Facts>,
        _added: &mut Added<S>,
    ) -> Keep {
        Keep::Yes
    }

    /// Called after each statement, when the blocks in it have been rewritten.
    fn rewritten(&mut self, _statement: &mut Stmt<S>) {}

    /// For iterating analyses: weakens the facts kept for a loop head or a label so that they hold wherever the facts `by` hold.
    fn weaken(&mut self, _kept: &mut Option<Self::Facts>, _by: &Self::Facts) {}

    /// For one-walk analyses: those facts from before a loop that hold at the start of every iteration.
    fn preserved(&self, _body: &[Stmt<S>], facts: Self::Facts) -> Self::Facts {
        facts
    }

    /// For one-walk analyses: the facts that hold in every state. Iterating analyses do not need them.
    fn nothing(&self) -> Option<Self::Facts> {
        None
    }

    /// The cost of a statement with these facts, in units of work; the stop flag is polled after a fixed number of units.
    fn cost(&self, _facts: &Option<Self::Facts>) -> usize {
        1
    }
}

/// Whether a statement stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// The statement stays.
    Yes,
    /// The statement is removed, but the transfer function is still applied.
    Effect,
    /// The statement is removed, and the transfer function is not applied.
    No,
}

/// Statements that a pass adds around a statement.
pub(crate) struct Added<S: Stage> {
    /// The statements to insert before it; the facts already contain their effects.
    pub before: Vec<Stmt<S>>,
    /// The statement to insert after it, if any; the walk visits the inserted statement next.
    pub behind: Option<Stmt<S>>,
}

/// The facts that an iterating analysis keeps from walk to walk.
pub(crate) struct Cycles<F> {
    labels: FxHashMap<Label, Option<F>>,
    /// The facts at the heads of loops, in source order.
    heads: Vec<Option<F>>,
}

impl<F> Default for Cycles<F> {
    fn default() -> Self {
        Cycles { labels: FxHashMap::default(), heads: Vec::new() }
    }
}

/// One walk through the code of a thread.
pub(crate) fn walk<S: Stage, A: Forward<S>>(
    code: &mut Vec<Stmt<S>>,
    start: A::Facts,
    analysis: &mut A,
    cycles: &mut Cycles<A::Facts>,
    stop: &Stop<'_>,
) {
    let mut jumps: FxHashMap<Label, Jumps> = FxHashMap::default();
    if !A::ITERATES {
        each_jump(code, stop, &mut |label| jumps.entry(label).or_default().all += 1);
    }
    let mut walk = Walk { analysis, cycles, stop, jumps, loops: 0, around: Vec::new() };
    walk.block(code, Some(start));
}

fn each_jump<S: Stage>(code: &[Stmt<S>], stop: &Stop<'_>, visit: &mut dyn FnMut(Label)) {
    each_statement(code, stop, &mut |statement| {
        if let StmtKind::Goto(label) = &statement.kind {
            visit(*label);
        }
    });
}

/// For an analysis of one walk: the number of all jumps to a label, and of the reachable ones already visited.
#[derive(Default)]
struct Jumps {
    all: usize,
    passed: usize,
}

/// A loop that encloses the current statement.
struct Around<F> {
    number: usize,
    /// The join of the facts at its `break` statements; `None` if none of them is reachable.
    left: Option<F>,
}

struct Walk<'a, S: Stage, A: Forward<S>> {
    analysis: &'a mut A,
    cycles: &'a mut Cycles<A::Facts>,
    stop: &'a Stop<'a>,
    jumps: FxHashMap<Label, Jumps>,
    /// Number of loops that this walk has entered so far.
    loops: usize,
    around: Vec<Around<A::Facts>>,
}

impl<S: Stage, A: Forward<S>> Walk<'_, S, A> {
    fn join(&self, one: Option<A::Facts>, other: Option<A::Facts>) -> Option<A::Facts> {
        match (one, other) {
            (Some(one), Some(other)) => Some(self.analysis.join(one, other)),
            (one, other) => one.or(other),
        }
    }

    /// The facts after a block; `None` if the point after it is unreachable. When it is time to stop, the rest of the block is dropped.
    fn block(&mut self, code: &mut Vec<Stmt<S>>, mut facts: Option<A::Facts>) -> Option<A::Facts> {
        let mut done = Vec::with_capacity(code.len());
        let mut added = Added { before: Vec::new(), behind: None };
        let mut rest = std::mem::take(code).into_iter();
        while let Some(mut statement) = added.behind.take().or_else(|| rest.next()) {
            if self.stop.after(self.analysis.cost(&facts)) {
                break;
            }
            let keep = self.analysis.rewrite(&mut statement, &mut facts, &mut added);
            done.append(&mut added.before);
            if keep == Keep::No {
                continue;
            }
            facts = self.statement(&mut statement.kind, facts);
            self.analysis.rewritten(&mut statement);
            if keep == Keep::Yes {
                done.push(statement);
            }
        }
        *code = done;
        facts
    }

    fn statement(&mut self, kind: &mut StmtKind<S>, facts: Option<A::Facts>) -> Option<A::Facts> {
        match kind {
            StmtKind::Label(label) => return self.label(*label, facts),
            StmtKind::Loop(body) => return self.endless(body, facts),
            StmtKind::Steps(block) | StmtKind::Block(block) | StmtKind::Atomic(block) => {
                return self.block(block, facts);
            }
            StmtKind::If(condition, then, otherwise) => {
                let yes = facts.clone().and_then(|facts| self.analysis.branch(condition, true, facts));
                let no = facts.and_then(|facts| self.analysis.branch(condition, false, facts));
                let yes = self.block(then, yes);
                let no = self.block(otherwise, no);
                return self.join(yes, no);
            }
            StmtKind::Choose(ways) => {
                let mut any = None;
                for way in ways {
                    let behind = self.block(way, facts.clone());
                    any = self.join(any, behind);
                }
                return any;
            }
            _ => {}
        }
        let facts = facts?;
        match kind {
            StmtKind::Break => {
                if let Some(Around { number, left }) = self.around.pop() {
                    let left = self.join(left, Some(facts));
                    self.around.push(Around { number, left });
                }
                None
            }
            StmtKind::Continue => {
                if A::ITERATES
                    && let Some(around) = self.around.last()
                {
                    self.analysis.weaken(&mut self.cycles.heads[around.number], &facts);
                }
                None
            }
            StmtKind::Goto(label) => {
                let kept = self.cycles.labels.entry(*label).or_default();
                if A::ITERATES {
                    self.analysis.weaken(kept, &facts);
                } else {
                    let before = kept.take();
                    let joined = self.join(before, Some(facts));
                    self.cycles.labels.insert(*label, joined);
                    self.jumps.entry(*label).or_default().passed += 1;
                }
                None
            }
            StmtKind::Stop => None,
            kind => self.analysis.transfer(kind, facts),
        }
    }

    fn label(&mut self, label: Label, facts: Option<A::Facts>) -> Option<A::Facts> {
        if let Some(Jumps { all, passed }) = self.jumps.get(&label)
            && passed < all
        {
            return self.analysis.nothing();
        }
        let kept = self.cycles.labels.get(&label).cloned().flatten();
        self.join(facts, kept)
    }

    fn endless(&mut self, body: &mut Vec<Stmt<S>>, facts: Option<A::Facts>) -> Option<A::Facts> {
        let number = self.loops;
        self.loops += 1;
        let head = if A::ITERATES {
            if self.cycles.heads.len() == number {
                self.cycles.heads.push(None);
            }
            if let Some(facts) = &facts {
                self.analysis.weaken(&mut self.cycles.heads[number], facts);
            }
            self.cycles.heads[number].clone()
        } else if self.is_entered(body) {
            self.analysis.nothing()
        } else {
            facts.map(|facts| self.analysis.preserved(body, facts))
        };
        self.around.push(Around { number, left: None });
        let end = self.block(body, head);
        if A::ITERATES
            && let Some(end) = end
        {
            self.analysis.weaken(&mut self.cycles.heads[number], &end);
        }
        self.around.pop().and_then(|around| around.left)
    }

    /// Whether a jump from outside enters some code.
    fn is_entered(&self, body: &[Stmt<S>]) -> bool {
        let mut inside: FxHashMap<Label, usize> = FxHashMap::default();
        each_jump(body, self.stop, &mut |label| *inside.entry(label).or_default() += 1);
        let mut entered = false;
        each_statement(body, self.stop, &mut |statement| {
            if let StmtKind::Label(label) = &statement.kind {
                let all = self.jumps.get(label).map_or(0, |jumps| jumps.all);
                entered |= all > inside.get(label).copied().unwrap_or(0);
            }
        });
        entered
    }
}
