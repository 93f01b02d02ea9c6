//! The full expressions of a C program, which reports show as one step each.
//!
//! The translation splits `while (interested[1 - me] && last == me)` into several steps, because other threads may take steps between its reads. In a
//! report, these steps are shown as one if no other thread takes a step between them.

use std::cmp::Reverse;

use fencewright_c::ast::{
    BinaryOp, Block, Expr, ExprKind, Initializer, Item, Statement, StatementKind, Unit,
};
use fencewright_front_end::facts::Whole;
use fencewright_text::Stop;

use crate::parts::{self, Inner, Part};

/// All full expressions, ordered by position: conditions, values, initialisers and expression statements.
pub fn steps(unit: &Unit, stop: &Stop<'_>) -> Vec<Whole> {
    let mut walk = Walk { stop, steps: Vec::new(), decides: false };
    for item in &unit.items {
        if let Item::Function(function) = item {
            walk.block(&function.body);
        }
    }
    // Of two expressions that start at the same position, the outer one comes first. A backward search from a position then finds the innermost
    // expression first.
    let order = |whole: &Whole| (whole.span.file, whole.span.start, Reverse(whole.span.end), !whole.decides);
    walk.steps.sort_unstable_by_key(order);
    walk.steps.dedup_by_key(|whole| whole.span);
    walk.steps
}

struct Walk<'s> {
    stop: &'s Stop<'s>,
    steps: Vec<Whole>,
    /// Whether the full expression being visited contains a part that decides where control goes, such as `&&`.
    decides: bool,
}

impl Walk<'_> {
    fn block(&mut self, block: &Block) {
        for statement in self.stop.polled(&block.statements) {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Statement) {
        parts::of_statement(statement, &mut |part| match part {
            Part::Full(e) => self.full(e),
            Part::Condition(e) => self.condition(e),
            Part::Initial(initial) => self.initial(initial),
            Part::Operand(e) => self.inside(e),
            Part::Block(block) => self.block(block),
            Part::Body(inner) | Part::First(inner) | Part::Cases(inner) | Part::Labelled(inner) => {
                self.statement(inner);
            }
        });
        // The translated steps have the span of the whole statement, including the semicolon, so the expression is recorded with that span too.
        if let StatementKind::Expression(e) = &statement.kind
            && let Some(whole) = self.steps.last_mut()
            && statement.span.file == e.span.file
            && statement.span.start <= e.span.start
            && e.span.end <= statement.span.end
        {
            whole.span = statement.span;
        }
    }

    fn initial(&mut self, initial: &Initializer) {
        match initial {
            Initializer::Expression(e) => self.full(e),
            Initializer::List(values, _) => values.iter().for_each(|(_, value)| self.initial(value)),
        }
    }

    fn full(&mut self, e: &Expr) {
        let around = std::mem::replace(&mut self.decides, false);
        self.inside(e);
        let decides = std::mem::replace(&mut self.decides, around);
        self.steps.push(Whole { span: e.span, decides });
    }

    /// Visits a full expression that decides where control goes.
    fn condition(&mut self, e: &Expr) {
        self.full(e);
        if let Some(whole) = self.steps.last_mut() {
            whole.decides = true;
        }
    }

    /// Visits the statement expressions inside an expression, and sets `decides` for operators that branch.
    fn inside(&mut self, e: &Expr) {
        if let ExprKind::Binary(BinaryOp::And | BinaryOp::Or, ..) | ExprKind::Conditional(..) = e.kind {
            self.decides = true;
        }
        parts::of_expression(e, &mut |inner| match inner {
            Inner::Operand(e) | Inner::Initial(Initializer::Expression(e)) => self.inside(e),
            Inner::Initial(list) => self.initial(list),
            Inner::Block(block) => self.block(block),
        });
    }
}
