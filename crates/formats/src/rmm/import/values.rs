//! Expressions and conditions of memorax programs, with bounds of their values derived from the domains of registers.

use fencewright_fw::ast::{Expr, ExprKind, Statement};
use fencewright_fw::build::{self, DEPTH_LIMIT};
use fencewright_program::{BinaryOp, Span, UnaryOp};
use fencewright_text::Diagnostic;

use super::Domain;
use super::process::Text;
use super::tokens::Kind;

/// An expression with bounds of its value.
#[derive(Clone)]
pub(super) struct Value {
    pub(super) expr: Expr,
    /// The least possible value according to the domains of the registers; `None` if it is not bounded.
    pub(super) low: Option<i128>,
    /// The greatest possible value according to the domains of the registers; `None` if it is not bounded.
    pub(super) high: Option<i128>,
    pub(super) depth: usize,
}

impl Text<'_, '_> {
    pub(super) fn expression(&mut self) -> Result<Value, Diagnostic> {
        let start = self.cursor.at;
        let mut left = self.unit()?;
        loop {
            let op = if self.cursor.accept("+") {
                BinaryOp::Add
            } else if self.cursor.accept("-") {
                BinaryOp::Sub
            } else {
                return Ok(left);
            };
            let right = self.unit()?;
            let sum = |a: Option<i128>, b: Option<i128>, minus: bool| {
                a.zip(b).and_then(|(a, b)| if minus { a.checked_sub(b) } else { a.checked_add(b) })
            };
            let (low, high) = match op {
                BinaryOp::Add => (sum(left.low, right.low, false), sum(left.high, right.high, false)),
                _ => (sum(left.low, right.high, true), sum(left.high, right.low, true)),
            };
            let span = self.cursor.span_from(start);
            let expr = build::binary(op, left.expr, right.expr, span);
            left = Value { expr, low, high, depth: left.depth.max(right.depth) + 1 };
            if left.depth > DEPTH_LIMIT {
                return Err(Diagnostic::new(span, "the expression is too long"));
            }
        }
    }

    fn unit(&mut self) -> Result<Value, Diagnostic> {
        let start = self.cursor.at;
        let token = self.cursor.peek();
        match (token.kind, token.text) {
            (Kind::Register, _) => {
                let (register, domain) = self.register()?;
                let (low, high) = domain.map_or((None, None), |(l, h)| (Some(l.into()), Some(h.into())));
                Ok(Value { expr: build::variable(register, token.span), low, high, depth: 1 })
            }
            (Kind::Number, _) => {
                let number = self.cursor.number()?;
                let known = Some(i128::from(number));
                Ok(Value { expr: build::int(number, token.span), low: known, high: known, depth: 1 })
            }
            (Kind::Operator, "-") => {
                self.cursor.at += 1;
                let operand = self.nested(Self::unit)?;
                let negated = |bound: Option<i128>| bound.and_then(i128::checked_neg);
                let (low, high) = (negated(operand.high), negated(operand.low));
                let span = self.cursor.span_from(start);
                let expr = match operand.expr.kind {
                    ExprKind::Int(number) => build::int(-number, span),
                    _ => build::unary(UnaryOp::Neg, operand.expr, span),
                };
                Ok(Value { expr, low, high, depth: operand.depth + 1 })
            }
            (Kind::Operator, "(") => {
                self.cursor.at += 1;
                let inside = self.nested(Self::expression)?;
                self.cursor.expect(")")?;
                Ok(inside)
            }
            (Kind::Word, "me" | "other") | (Kind::Operator, "@") => {
                Err(Diagnostic::new(token.span, format!("`{}` is not supported", token.text)))
            }
            _ => Err(self.cursor.expected("a register or a number")),
        }
    }

    /// `conj || conj`
    pub(super) fn condition(&mut self) -> Result<Expr, Diagnostic> {
        self.chain("||", BinaryOp::Or, |text| text.chain("&&", BinaryOp::And, Self::literal))
    }

    fn chain(
        &mut self,
        symbol: &str,
        op: BinaryOp,
        part: impl Fn(&mut Self) -> Result<Expr, Diagnostic>,
    ) -> Result<Expr, Diagnostic> {
        let start = self.cursor.at;
        let mut parts = vec![part(self)?];
        while self.cursor.accept(symbol) {
            parts.push(part(self)?);
        }
        Ok(build::balanced(op, parts, self.cursor.span_from(start)))
    }

    fn literal(&mut self) -> Result<Expr, Diagnostic> {
        let start = self.cursor.at;
        let negated = self.cursor.accept("not");
        let atom = self.atom()?;
        Ok(if negated { build::unary(UnaryOp::Not, atom, self.cursor.span_from(start)) } else { atom })
    }

    fn atom(&mut self) -> Result<Expr, Diagnostic> {
        let start = self.cursor.at;
        for (word, value) in [("true", 1), ("false", 0)] {
            if self.cursor.accept(word) {
                return Ok(build::int(value, self.cursor.span_from(start)));
            }
        }
        if self.cursor.accept("[") {
            let inside = self.nested(Self::condition)?;
            self.cursor.expect("]")?;
            return Ok(inside);
        }
        let left = self.expression()?;
        let op = match self.cursor.peek().text {
            "=" => BinaryOp::Eq,
            "!=" => BinaryOp::Ne,
            "<" => BinaryOp::Lt,
            ">" => BinaryOp::Gt,
            "<=" => BinaryOp::Le,
            ">=" => BinaryOp::Ge,
            _ => return Err(self.cursor.expected("a comparison")),
        };
        self.cursor.at += 1;
        let right = self.expression()?;
        Ok(build::binary(op, left.expr, right.expr, self.cursor.span_from(start)))
    }
}

impl Value {
    pub(super) fn constant(&self) -> Option<i128> {
        self.low.filter(|_| self.low == self.high && !has_register(&self.expr))
    }

    pub(super) fn may_be(&self, value: i64) -> bool {
        let value = i128::from(value);
        self.low.is_none_or(|low| low <= value) && self.high.is_none_or(|high| value <= high)
    }

    /// Appends an `assume` that the value lies in the domain, unless that is certain.
    pub(super) fn keep_in(&self, domain: Domain, span: Span, out: &mut Vec<Statement>) {
        let Some((low, high)) = domain else { return };
        let compare = |op, bound| build::binary(op, self.expr.clone(), build::int(bound, span), span);
        let mut checks = Vec::new();
        if self.low.is_none_or(|least| least < low.into()) {
            checks.push(compare(BinaryOp::Ge, low));
        }
        if self.high.is_none_or(|greatest| greatest > high.into()) {
            checks.push(compare(BinaryOp::Le, high));
        }
        if !checks.is_empty() {
            out.push(build::assume(build::balanced(BinaryOp::And, checks, span), span));
        }
    }
}

fn has_register(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Unary(_, operand) => has_register(operand),
        ExprKind::Binary(_, left, right) => has_register(left) || has_register(right),
        ExprKind::Int(_) => false,
        _ => true,
    }
}
