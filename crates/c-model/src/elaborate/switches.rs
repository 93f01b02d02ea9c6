//! `switch`: a sequence of comparisons with jumps to the cases.

use fencewright_c::ast::BinaryOp as Operator;
use fencewright_c::typed::tree::{Expr, Statement, StatementKind, TypeKind};
use fencewright_program::Span;
use rustc_hash::FxHashMap;

use super::frames::{Context, How, Jump};
use super::labels::Join;
use super::{Elaborator, Result};
use fencewright_c::arithmetic::Arithmetic;
use fencewright_code::numbers::{Operand, binary};

/// The lowest and highest value of a `case`; `None` for `default`.
type Key = Option<(i128, i128)>;

/// The cases of a `switch`, with the facts at the jumps to them.
#[derive(Debug)]
pub(super) struct Cases {
    joins: Vec<(Key, Join)>,
    numbers: FxHashMap<Key, usize>,
}

impl Cases {
    fn new(joins: Vec<(Key, Join)>) -> Self {
        let numbers = joins.iter().enumerate().rev().map(|(n, (key, _))| (*key, n)).collect();
        Cases { joins, numbers }
    }
}

impl Elaborator<'_> {
    pub(super) fn switch(&mut self, value: &Expr, body: &Statement, span: Span) -> Result<()> {
        self.nested(|this| this.switch_inside(value, body, span))
    }

    fn switch_inside(&mut self, value: &Expr, body: &Statement, span: Span) -> Result<()> {
        let mut keys = Vec::new();
        collect(body, &mut keys);
        let exit = self.label();
        let mut leave = Jump::new(How::Goto(exit), self.writer.level);
        let mut cases: Vec<(Key, Join)> = keys.into_iter().map(|key| (key, self.join())).collect();
        if self.writer.reachable {
            self.group(value.span, |this| this.dispatch(value, body, &mut cases, &mut leave))?;
        }
        let scopes = self.frame().scopes.len();
        let context = Context { leave, next: None, cases: Some(Cases::new(cases)), scopes };
        let context = self.in_context(context, |this| this.statement(body))?;
        self.land(context.leave, span);
        Ok(())
    }

    fn dispatch(
        &mut self,
        value: &Expr,
        body: &Statement,
        cases: &mut [(Key, Join)],
        leave: &mut Jump,
    ) -> Result<()> {
        let operand = self.value(value)?;
        let operand = self.kept_value(operand, &value.ty, value.span)?;
        self.begin_in(body, value.span);
        let TypeKind::Integer(ty) = value.ty.kind else {
            return self.error(value.span, "`switch` needs an integer", "");
        };
        for (key, join) in cases.iter_mut() {
            let Some(range) = key else { continue };
            let condition = self.within(&operand, *range, ty);
            self.branch(condition, value.span, |this| this.take(join, value.span), |_| Ok(()))?;
            if !self.writer.reachable {
                return Ok(());
            }
        }
        match cases.iter_mut().find(|(key, _)| key.is_none()) {
            Some((_, join)) => self.take(join, value.span),
            None => {
                self.leave(leave, value.span);
                Ok(())
            }
        }
    }

    fn within(&mut self, operand: &Operand, (low, high): (i128, i128), ty: Arithmetic) -> Operand {
        let number = Operand::number;
        if low == high {
            return binary(self, Operator::Equal, ty, operand.clone(), number(low));
        }
        let above = binary(self, Operator::GreaterOrEqual, ty, operand.clone(), number(low));
        let below = binary(self, Operator::LessOrEqual, ty, operand.clone(), number(high));
        binary(self, Operator::And, Arithmetic::INT, above, below)
    }

    fn take(&mut self, join: &mut Join, span: Span) -> Result<()> {
        let mut jump = Jump { how: How::Goto(join.label), env: join.env.take(), level: self.writer.level };
        self.leave(&mut jump, span);
        join.env = jump.env;
        Ok(())
    }

    /// Elaborates a `case` or `default` of the enclosing `switch`.
    pub(super) fn case(&mut self, key: Key, inner: &Statement, span: Span) -> Result<()> {
        let Some(join) = self.case_join(key) else { return self.statement(inner) };
        let label = join.label;
        let mut join = std::mem::replace(join, Join { label, env: None, supposed: None });
        if join.env.is_some() {
            self.arrive(&mut join, span);
        }
        // If a loop inside the `switch` contains this case, the loop may be elaborated again and reach the case again, so the facts at the jumps are
        // put back.
        if let (true, Some(place)) = (self.repeated(), self.case_join(key)) {
            *place = join;
        }
        self.statement(inner)
    }

    /// The facts at the jumps to a case of the innermost `switch`; `None` if this `switch` has no such case.
    fn case_join(&mut self, key: Key) -> Option<&mut Join> {
        let mut contexts = self.frame().contexts.iter_mut().rev();
        let cases = contexts.find_map(|context| context.cases.as_mut())?;
        let number = *cases.numbers.get(&key)?;
        Some(&mut cases.joins[number].1)
    }
}

/// Collects the cases of the `switch` with this body, in the order of the text.
fn collect(statement: &Statement, keys: &mut Vec<Key>) {
    match &statement.kind {
        StatementKind::Case(low, high, inner) => {
            keys.push(Some((*low, *high)));
            collect(inner, keys);
        }
        StatementKind::Default(inner) => {
            keys.push(None);
            collect(inner, keys);
        }
        StatementKind::Label(_, inner) => collect(inner, keys),
        StatementKind::Block(block) => block.statements.iter().for_each(|statement| collect(statement, keys)),
        StatementKind::If(branches, otherwise) => {
            branches.iter().for_each(|(_, body)| collect(body, keys));
            otherwise.iter().for_each(|body| collect(body, keys));
        }
        StatementKind::While(_, body) | StatementKind::DoWhile(body, _) | StatementKind::For(.., body) => {
            collect(body, keys)
        }
        _ => {}
    }
}
