//! Chains of `&&` and of `||` as balanced trees. Both operators are associative, even with short-circuit evaluation. So a balanced tree is equivalent
//! to a left-leaning one, and its depth is logarithmic in the length of the chain.

use fencewright_program::{BinaryOp, Span};

use crate::ast::*;

/// A conjunction or disjunction of parts, from left to right, as the balanced tree that the parser builds for it. Parts that are themselves chains of
/// the same operator are flattened first. Without parts the result is the neutral constant: 1 for `&&`, 0 for `||`.
pub fn chain(op: BinaryOp, parts: Vec<Expr>) -> Expr {
    fn flatten(op: BinaryOp, expr: Expr, flat: &mut Vec<(Expr, usize)>) {
        match expr.kind {
            ExprKind::Binary(inner, left, right) if inner == op => {
                flatten(op, *left, flat);
                flatten(op, *right, flat);
            }
            _ => flat.push((expr, 0)),
        }
    }
    let mut flat = Vec::with_capacity(parts.len());
    parts.into_iter().for_each(|part| flatten(op, part, &mut flat));
    match balance(op, flat) {
        Some((expr, _)) => expr,
        None => Expr { kind: ExprKind::Int(i64::from(op == BinaryOp::And)), span: Span::default() },
    }
}

/// Joins neighbours until one tree is left; each tree is paired with its depth. `None` if there are no parts.
fn balance(op: BinaryOp, mut parts: Vec<(Expr, usize)>) -> Option<(Expr, usize)> {
    while parts.len() > 1 {
        let mut halved = Vec::with_capacity(parts.len().div_ceil(2));
        let mut rest = parts.into_iter();
        while let Some((left, left_depth)) = rest.next() {
            halved.push(match rest.next() {
                Some((right, right_depth)) => (binary(op, left, right), 1 + left_depth.max(right_depth)),
                None => (left, left_depth),
            });
        }
        parts = halved;
    }
    parts.pop()
}

pub fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    let span = left.span.to(right.span);
    Expr { kind: ExprKind::Binary(op, Box::new(left), Box::new(right)), span }
}

/// An operand; if it is a chain, further parts may still be joined to it.
pub enum Operand {
    Single(Expr, usize),
    Chain(BinaryOp, Vec<(Expr, usize)>, Span),
}

impl Operand {
    pub fn leaf(kind: ExprKind, span: Span) -> Self {
        Operand::Single(Expr { kind, span }, 1)
    }

    pub fn span(&self) -> Span {
        match self {
            Operand::Single(expr, _) => expr.span,
            Operand::Chain(_, _, span) => *span,
        }
    }

    /// The operand with the span of the parentheses around it.
    pub fn at(self, span: Span) -> Self {
        match self {
            Operand::Single(expr, depth) => Operand::Single(Expr { span, ..expr }, depth),
            Operand::Chain(op, parts, _) => Operand::Chain(op, parts, span),
        }
    }

    pub fn finish(self) -> (Expr, usize) {
        match self {
            Operand::Single(expr, depth) => (expr, depth),
            Operand::Chain(op, parts, span) => match balance(op, parts) {
                Some((expr, depth)) => (Expr { span, ..expr }, depth),
                None => (Expr { kind: ExprKind::Int(i64::from(op == BinaryOp::And)), span }, 1),
            },
        }
    }

    /// The parts that the operand contributes to a chain of this operator, each with the depth of its tree.
    pub fn parts(self, op: BinaryOp) -> Vec<(Expr, usize)> {
        match self {
            Operand::Chain(own, parts, _) if own == op => parts,
            other => vec![other.finish()],
        }
    }
}
