//! Lowers conditions to edges that lead to two targets: one if the condition holds, the other if it does not.

use fencewright_program::{Action, BinaryOp, Expr, Op, Span, UnaryOp};
use fencewright_text::Diagnostic;

use super::expression::Pure;
use super::graph::Node;
use super::thread::ThreadLowering;
use crate::ast::{self, ExprKind};

type Result<T> = std::result::Result<T, Diagnostic>;

impl<'a> ThreadLowering<'a, '_> {
    /// Branches to `then` if the condition holds and to `otherwise` if not. One of the two targets may be missing: instead of branching to the
    /// missing target, the thread is blocked.
    pub fn condition(
        &mut self,
        e: &'a ast::Expr,
        at: Option<Node>,
        then: Option<Node>,
        otherwise: Option<Node>,
    ) -> Result<Node> {
        let mark = self.mark();
        let node = match &e.kind {
            ExprKind::Unary(UnaryOp::Not, operand) if self.takes_steps(operand) => {
                self.condition(operand, at, otherwise, then)?
            }
            ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), left, right) if self.takes_steps(e) => {
                match self.decided(*op, left) {
                    Some(true) => {
                        let value = self.never_evaluated(*op, right)?;
                        self.branch(value, at, then, otherwise, e.span)
                    }
                    Some(false) => self.condition(right, at, then, otherwise)?,
                    None => {
                        let right = Some(self.condition(right, None, then, otherwise)?);
                        match op {
                            BinaryOp::And => self.condition(left, at, right, otherwise)?,
                            _ => self.condition(left, at, then, right)?,
                        }
                    }
                }
            }
            ExprKind::If(condition, first, second) if self.takes_steps(e) => match self.constant(condition) {
                Some(value) => {
                    let (chosen, other) = if value != 0 { (first, second) } else { (second, first) };
                    self.flatten(other, &mut Vec::new())?;
                    self.condition(chosen, at, then, otherwise)?
                }
                None => {
                    let first = self.condition(first, None, then, otherwise)?;
                    let second = self.condition(second, None, then, otherwise)?;
                    self.condition(condition, at, Some(first), Some(second))?
                }
            },
            ExprKind::Cas(place, ..) => {
                let mut before = Vec::new();
                let (address, arguments) = self.rmw_arguments(e, place, &mut before)?;
                let load = Op::Load(self.temporary(), address.clone());
                self.precede(before, at, |this, at| {
                    let from = at.unwrap_or_else(|| this.graph.node());
                    let [success, failure] = [then, otherwise].map(|to| to.map(|node| (Vec::new(), node)));
                    this.cas(e.span, load, address, arguments, from, success, failure);
                    Ok(from)
                })?
            }
            _ => {
                let mut before = Vec::new();
                let pure = self.flatten(e, &mut before)?;
                self.precede(before, at, |this, at| Ok(this.branch(pure, at, then, otherwise, e.span)))?
            }
        };
        self.release(mark);
        Ok(node)
    }

    /// Whether the left side of `&&` or `||` decides the value alone; `None` if the left side is not constant.
    pub fn decided(&self, op: BinaryOp, left: &ast::Expr) -> Option<bool> {
        Some((self.constant(left)? != 0) == (op == BinaryOp::Or))
    }

    /// The value of `&&` or `||` whose left side decides the value. The right side is still checked for errors.
    pub fn never_evaluated(&mut self, op: BinaryOp, right: &'a ast::Expr) -> Result<Pure> {
        self.flatten(right, &mut Vec::new())?;
        Ok(Expr::Const(i64::from(op == BinaryOp::Or)))
    }

    fn branch(
        &mut self,
        pure: Pure,
        at: Option<Node>,
        then: Option<Node>,
        otherwise: Option<Node>,
        span: Span,
    ) -> Node {
        let decided = pure.constant().and_then(|value| if value != 0 { then } else { otherwise });
        if let Some(target) = decided {
            return self.jump(at, target, span);
        }
        // A constant condition without a target for its value becomes an assumption too, so that the thread is blocked here and does not count as
        // terminated.
        let from = at.unwrap_or_else(|| self.graph.node());
        for (target, condition) in [(then, pure.clone()), (otherwise, negated(pure))] {
            if let Some(target) = target {
                self.graph.arc(Some(from), target, Action::Op(Op::Assume(condition)), span);
            }
        }
        from
    }
}

/// The negation of a condition; a comparison is inverted.
fn negated(e: Pure) -> Pure {
    use BinaryOp::*;
    let flipped = |op| match op {
        Eq => Some(Ne),
        Ne => Some(Eq),
        Lt => Some(Ge),
        Le => Some(Gt),
        Gt => Some(Le),
        Ge => Some(Lt),
        _ => None,
    };
    match e {
        Expr::Unary(UnaryOp::Not, operand) => *operand,
        Expr::Binary(op, left, right) => match flipped(op) {
            Some(op) => Expr::Binary(op, left, right),
            None => Expr::Binary(op, left, right).not(),
        },
        e => e.not(),
    }
}
