//! Statements: sequences, branches, labels and jumps.

use std::num::NonZeroU32;

use fencewright_c::ast::Definition;
use fencewright_c::typed::tree::{Block, Expr, LabelId, Statement, StatementKind};
use fencewright_code::core::Value;
use fencewright_code::numbers::truth;
use fencewright_program::{Call, CallId, Span};

use super::labels::Join;
use super::lifetimes::passed;
use super::{Elaborator, Result};

impl Elaborator<'_> {
    pub(super) fn statement(&mut self, statement: &Statement) -> Result<()> {
        let span = statement.span;
        if let Some(number) = self.graph.number(statement) {
            // Once the last statement that jumps back to a label has been passed, the label no longer makes code repeated.
            let before = self.frame().repeated.len();
            self.frame().repeated.retain(|until| *until >= number);
            let after = self.frame().repeated.len();
            self.writer.loops -= before - after;
        }
        if !self.writer.reachable && !has_entry(statement) {
            return Ok(());
        }
        self.step(span)?;
        let before = std::mem::replace(&mut self.frame().at, span);
        let result = self.deeper(span, |this| this.statement_inside(statement));
        self.frame().at = before;
        result
    }

    fn statement_inside(&mut self, statement: &Statement) -> Result<()> {
        let span = self.stands(statement);
        match &statement.kind {
            StatementKind::Empty => Ok(()),
            StatementKind::Expression(expression) => self.group(span, |this| this.effect(expression)),
            StatementKind::Declare(local, initial) => {
                self.group(span, |this| this.declare(*local, initial.as_ref(), span))
            }
            StatementKind::Block(block) => {
                let passed = passed(&block.statements, block.statements.iter());
                self.scope(passed, span, |this| this.statements(block))
            }
            StatementKind::If(branches, otherwise) => {
                self.group(span, |this| this.branches(branches, otherwise.as_deref()))
            }
            StatementKind::While(condition, body) => self.while_loop(condition, body, span),
            StatementKind::DoWhile(body, condition) => self.do_loop(body, condition, span),
            StatementKind::For(first, condition, step, body) => {
                self.for_loop(first, condition.as_ref(), step.as_ref(), body, span)
            }
            StatementKind::Switch(value, body) => self.switch(value, body, span),
            StatementKind::Case(low, high, inner) => self.case(Some((*low, *high)), inner, span),
            StatementKind::Default(inner) => self.case(None, inner, span),
            StatementKind::Label(label, inner) => self.labelled(*label, inner, span),
            StatementKind::Goto(label) => self.goto(*label, span),
            StatementKind::Break => self.leave_context(false, span),
            StatementKind::Continue => self.leave_context(true, span),
            StatementKind::Return(value) => self.group(span, |this| this.return_value(value.as_ref(), span)),
            StatementKind::Assembly(assembly) => self.group(span, |this| this.assembly(assembly, span)),
        }
    }

    /// The span of a statement in the source. For a statement in the definition of a macro, this is its span there, and the use of the macro is
    /// recorded as a call.
    fn stands(&mut self, statement: &Statement) -> Span {
        let Some(Definition { name, span, used, .. }) = statement.definition.as_deref() else {
            return statement.span;
        };
        let at = self.here(*used);
        if !self.calls.last().is_some_and(|last| last.at == at && last.what == **name) {
            self.calls.push(Call { what: name.to_string(), at });
        }
        span.called(CallId(NonZeroU32::new(self.calls.len() as u32)))
    }

    pub(super) fn statements(&mut self, block: &Block) -> Result<()> {
        block.statements.iter().try_for_each(|statement| self.statement(statement))
    }

    /// An expression statement.
    pub(super) fn effect(&mut self, expression: &Expr) -> Result<()> {
        if !self.writer.reachable {
            return Ok(());
        }
        self.dropped(expression)
    }

    fn branches(&mut self, branches: &[(Expr, Statement)], otherwise: Option<&Statement>) -> Result<()> {
        let Some(((condition, then), rest)) = branches.split_first() else {
            return otherwise.map_or(Ok(()), |otherwise| self.statement(otherwise));
        };
        if !self.writer.reachable {
            return self.entered(then, rest, otherwise);
        }
        let span = condition.span;
        let condition = self.value(condition)?;
        let decided = truth(condition.clone()).known();
        let skipped_entry = match decided {
            Some(0) => has_entry(then),
            Some(_) => rest.iter().any(|(_, body)| has_entry(body)) || otherwise.is_some_and(has_entry),
            None => false,
        };
        if skipped_entry {
            // A jump from elsewhere may enter the branch that the condition excludes, so both branches are elaborated.
            let number = Value::Number(i64::from(decided != Some(0)));
            return self.both(number, then, rest, otherwise, decided != Some(0), span);
        }
        self.branch(
            condition,
            span,
            |this| this.statement(then),
            |this| this.deeper(span, |this| this.group(span, |this| this.branches(rest, otherwise))),
        )
    }

    /// An `if` that control does not reach itself, but whose branches it may enter by jumps.
    fn entered(
        &mut self,
        then: &Statement,
        rest: &[(Expr, Statement)],
        otherwise: Option<&Statement>,
    ) -> Result<()> {
        let number = Value::Number(0);
        self.both_unreachable(number, then, rest, otherwise)
    }

    fn both(
        &mut self,
        condition: Value,
        then: &Statement,
        rest: &[(Expr, Statement)],
        otherwise: Option<&Statement>,
        first: bool,
        span: Span,
    ) -> Result<()> {
        self.must_run();
        let env = self.writer.env.clone();
        self.writer.reachable = first;
        let then = self.in_branch(|this| this.written(|this| this.statement(then)))?;
        let (after, comes) = (
            std::mem::replace(&mut self.writer.env, env),
            std::mem::replace(&mut self.writer.reachable, !first),
        );
        let otherwise = self.in_branch(|this| this.written(|this| this.branches(rest, otherwise)))?;
        self.meet(condition, (then, after, comes), otherwise, span);
        Ok(())
    }

    fn both_unreachable(
        &mut self,
        condition: Value,
        then: &Statement,
        rest: &[(Expr, Statement)],
        otherwise: Option<&Statement>,
    ) -> Result<()> {
        let span = then.span;
        self.must_run();
        let then = self.in_branch(|this| this.written(|this| this.statement(then)))?;
        let (after, comes) = (self.writer.env.clone(), std::mem::replace(&mut self.writer.reachable, false));
        let otherwise = self.in_branch(|this| this.written(|this| this.branches(rest, otherwise)))?;
        self.meet(condition, (then, after, comes), otherwise, span);
        Ok(())
    }

    /// Emits a branch whose two blocks have been elaborated, and joins the facts at those of their ends that control reaches. `then` is the first
    /// block, `after` has the facts at its end, and `comes` says whether control reaches that end; the current facts are those at the end of the
    /// second block.
    fn meet(
        &mut self,
        condition: Value,
        (then, after, comes): (Vec<super::Stmt>, super::Env, bool),
        otherwise: Vec<super::Stmt>,
        span: Span,
    ) {
        let also = self.writer.reachable;
        match (comes, also) {
            (true, true) => self.writer.env.join(&after, false),
            (true, false) => self.writer.env = after,
            _ => {}
        }
        self.writer.reachable = true;
        self.emit(super::StmtKind::If(condition, then, otherwise), span);
        self.writer.reachable = comes || also;
    }

    fn labelled(&mut self, label: LabelId, inner: &Statement, span: Span) -> Result<()> {
        let unit = self.unit;
        let name = &unit.functions[self.frame().function.index()].labels[label.index()].name;
        if name.starts_with("__CPROVER_ASYNC_") {
            return self.asynchronous(inner, span);
        }
        let mut join = match self.frame().labels.remove(&label) {
            Some(join) => join,
            None => self.join(),
        };
        self.frame().placed.insert(label);
        // A label is emitted only if some statement jumps to it.
        let function = self.frame().function;
        if self.graph.is_target(function, label) {
            self.without_cleanups(span)?;
            if let Some(until) = self.graph.repeated_until(function, label) {
                self.must_run();
                self.frame().repeated.push(until);
                self.writer.loops += 1;
            }
            self.arrive(&mut join, span);
        }
        self.frame().labels.insert(label, join);
        self.statement(inner)
    }

    fn goto(&mut self, label: LabelId, span: Span) -> Result<()> {
        self.without_cleanups(span)?;
        let mut join: Join = match self.frame().labels.remove(&label) {
            Some(join) => join,
            None => self.join(),
        };
        self.jump_to(label, span);
        self.note(&mut join.env);
        let to = join.label;
        self.frame().labels.insert(label, join);
        let level = self.frame().level;
        self.divert(level);
        if !self.executing() {
            self.emit(super::StmtKind::Goto(to), span);
        }
        self.writer.reachable = false;
        Ok(())
    }

    fn leave_context(&mut self, next: bool, span: Span) -> Result<()> {
        if !self.writer.reachable {
            return Ok(());
        }
        let mut contexts = std::mem::take(&mut self.frame().contexts);
        let jump = contexts.iter_mut().rev().find_map(|context| match next {
            true => context.next.as_mut().map(|jump| (jump, context.scopes)),
            false => Some((&mut context.leave, context.scopes)),
        });
        let result = match jump {
            Some((jump, scopes)) => {
                self.end_scopes(scopes, span);
                self.leave(jump, span);
                Ok(())
            }
            None => {
                self.error(span, "there is nothing to leave here", "`break` and `continue` stand in loops")
            }
        };
        self.frame().contexts = contexts;
        result
    }
}

/// Whether control can enter a statement other than from the statement before it: by a jump to a label or a case.
pub(super) fn has_entry(statement: &Statement) -> bool {
    match &statement.kind {
        StatementKind::Case(..) | StatementKind::Default(_) | StatementKind::Label(..) => true,
        StatementKind::Block(block) => block.statements.iter().any(has_entry),
        StatementKind::If(branches, otherwise) => {
            branches.iter().any(|(_, body)| has_entry(body)) || otherwise.as_deref().is_some_and(has_entry)
        }
        StatementKind::While(_, body) | StatementKind::DoWhile(body, _) | StatementKind::For(.., body) => {
            has_entry(body)
        }
        // The cases of a `switch` are entered from its start, so only labels count here.
        StatementKind::Switch(_, body) => has_label(body),
        _ => false,
    }
}

/// Whether a statement contains a label.
fn has_label(statement: &Statement) -> bool {
    match &statement.kind {
        StatementKind::Label(..) => true,
        StatementKind::Case(_, _, inner) | StatementKind::Default(inner) => has_label(inner),
        StatementKind::Block(block) => block.statements.iter().any(has_label),
        StatementKind::If(branches, otherwise) => {
            branches.iter().any(|(_, body)| has_label(body)) || otherwise.as_deref().is_some_and(has_label)
        }
        StatementKind::While(_, body)
        | StatementKind::DoWhile(body, _)
        | StatementKind::For(.., body)
        | StatementKind::Switch(_, body) => has_label(body),
        _ => false,
    }
}
