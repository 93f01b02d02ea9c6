//! The full expressions of a C program, which reports show as one step each.
//!
//! The translation splits `while (interested[1 - me] && last == me)` into several steps, because other threads may take steps between its reads.
//! If no other thread takes a step in between, reports join these steps again.

use std::cmp::Reverse;

use fencewright_c::ast::{
    BinaryOp, Block, Expr, ExprKind, Initializer, Item, Statement, StatementKind, Unit,
};
use fencewright_front_end::facts::Whole;
use fencewright_program::Span;
use fencewright_text::Stop;

/// All full expressions ordered by position: conditions, values, initialisers and expression statements.
pub fn steps(unit: &Unit, stop: &Stop<'_>) -> Vec<Whole> {
    let mut walk = Walk { stop, steps: Vec::new(), decides: false };
    for item in &unit.items {
        if let Item::Function(function) = item {
            walk.block(&function.body);
        }
    }
    // Of two expressions that start at the same position, the outer one comes first: a backward search from a position then finds the innermost
    // expression around that position first.
    let order = |whole: &Whole| (whole.span.file, whole.span.start, Reverse(whole.span.end), !whole.decides);
    walk.steps.sort_unstable_by_key(order);
    walk.steps.dedup_by_key(|whole| whole.span);
    walk.steps
}

struct Walk<'s> {
    stop: &'s Stop<'s>,
    steps: Vec<Whole>,
    /// Whether control flow depends on a part of the current expression.
    decides: bool,
}

impl Walk<'_> {
    fn block(&mut self, block: &Block) {
        for statement in self.stop.polled(&block.statements) {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Statement) {
        match &statement.kind {
            StatementKind::Empty
            | StatementKind::Unsupported(_)
            | StatementKind::Goto(_)
            | StatementKind::Break
            | StatementKind::Continue => {}
            StatementKind::Expression(e) => {
                self.full(e);
                // Steps of the translation have the span of the whole statement, which ends with a semicolon; so the expression gets that span too.
                let contains = |span: Span| span.start <= e.span.start && e.span.end <= span.end;
                if let Some(whole) = self.steps.last_mut()
                    && statement.span.file == e.span.file
                    && contains(statement.span)
                {
                    whole.span = statement.span;
                }
            }
            StatementKind::Declaration(declaration) => {
                for declarator in &declaration.declarators {
                    declarator.initial.iter().for_each(|initial| self.initial(initial));
                }
            }
            StatementKind::Block(block) => self.block(block),
            StatementKind::If(branches, otherwise) => {
                for (condition, then) in branches {
                    self.condition(condition);
                    self.statement(then);
                }
                otherwise.iter().for_each(|otherwise| self.statement(otherwise));
            }
            StatementKind::While(condition, body) | StatementKind::DoWhile(body, condition) => {
                self.condition(condition);
                self.statement(body);
            }
            StatementKind::For(first, condition, step, body) => {
                first.iter().for_each(|first| self.statement(first));
                condition.iter().for_each(|condition| self.condition(condition));
                step.iter().for_each(|step| self.full(step));
                self.statement(body);
            }
            StatementKind::Switch(value, body) => {
                self.condition(value);
                self.statement(body);
            }
            StatementKind::Case(_, _, inner)
            | StatementKind::Default(inner)
            | StatementKind::Label(_, inner) => self.statement(inner),
            StatementKind::Return(value) => value.iter().for_each(|value| self.full(value)),
            StatementKind::Assembly(assembly) => {
                assembly.outputs.iter().chain(&assembly.inputs).for_each(|(_, e)| self.inside(e));
            }
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

    /// A full expression as a condition: control flow depends on its value.
    fn condition(&mut self, e: &Expr) {
        self.full(e);
        if let Some(whole) = self.steps.last_mut() {
            whole.decides = true;
        }
    }

    /// Visits the statement expressions inside an expression.
    fn inside(&mut self, e: &Expr) {
        match &e.kind {
            ExprKind::Name(_)
            | ExprKind::Integer(_)
            | ExprKind::Character(_)
            | ExprKind::Unsupported(_)
            | ExprKind::String(_)
            | ExprKind::SizeOf(_)
            | ExprKind::SizeOfType(_)
            | ExprKind::AlignOf(_)
            | ExprKind::OffsetOf(..)
            | ExprKind::TypesCompatible(..) => {}
            ExprKind::Unary(_, inner)
            | ExprKind::Step(_, inner)
            | ExprKind::Cast(_, inner)
            | ExprKind::Member(inner, _)
            | ExprKind::Arrow(inner, _) => self.inside(inner),
            ExprKind::Binary(BinaryOp::And | BinaryOp::Or, a, b) => {
                [a, b].into_iter().for_each(|e| self.inside(e));
                self.decides = true;
            }
            ExprKind::Binary(_, a, b)
            | ExprKind::Assign(_, a, b)
            | ExprKind::Comma(a, b)
            | ExprKind::Index(a, b) => [a, b].into_iter().for_each(|e| self.inside(e)),
            ExprKind::Conditional(condition, then, otherwise) => {
                self.inside(condition);
                then.iter().for_each(|then| self.inside(then));
                self.inside(otherwise);
                self.decides = true;
            }
            ExprKind::Call(called, arguments) => {
                self.inside(called);
                arguments.iter().for_each(|argument| self.inside(argument));
            }
            ExprKind::Compound(_, initial) => match &**initial {
                Initializer::Expression(e) => self.inside(e),
                list => self.initial(list),
            },
            ExprKind::Statements(block) => self.block(block),
            ExprKind::Generic(_, choices) => choices.iter().for_each(|(_, e)| self.inside(e)),
        }
    }
}
