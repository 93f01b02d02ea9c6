//! Constants: names whose value is known during lowering.

use std::collections::HashMap;

use fencewright_program::{BinaryOp, EvalError, Init, Numbers, Range, Span, UnaryOp};
use fencewright_text::Diagnostic;

use crate::ast::{self, ExprKind};

type Result<T> = std::result::Result<T, Diagnostic>;

/// The constants in scope.
#[derive(Clone, Default)]
pub struct Constants {
    /// The constants of the top level.
    global: HashMap<String, i64>,
    /// The constants of a thread, a procedure or a formula. Each list holds the constants of one name, those of inner scopes later.
    local: HashMap<String, Vec<i64>>,
    /// The data domain of the program, wherever the file declares it.
    pub numbers: Numbers,
}

/// The constants that are not from the top level.
#[derive(Default)]
pub(crate) struct LocalConstants(HashMap<String, Vec<i64>>);

/// The values of a type; `None` for `u64`, whose values do not fit signed integers of 64 bits.
pub fn values_of(wraps: UnaryOp) -> Option<Range> {
    match wraps {
        UnaryOp::Signed(width) => {
            let high = i64::MAX >> (64 - width.bits());
            Some(Range { low: -high - 1, high })
        }
        UnaryOp::Unsigned(width) if width.bits() < 64 => {
            Some(Range { low: 0, high: (1 << width.bits()) - 1 })
        }
        _ => None,
    }
}

impl Constants {
    pub(crate) fn get(&self, name: &str) -> Option<i64> {
        let local = self.local.get(name).and_then(|stack| stack.last());
        local.or_else(|| self.global.get(name)).copied()
    }

    /// Adds a constant of the top level.
    pub fn declare(&mut self, name: &str, value: i64) {
        self.global.insert(name.to_string(), value);
    }

    /// Replaces the constants that are not from the top level, and returns the previous ones. A procedure does not see the constants of its caller.
    pub(crate) fn exchange_local(&mut self, local: LocalConstants) -> LocalConstants {
        LocalConstants(std::mem::replace(&mut self.local, local.0))
    }

    pub(crate) fn push(&mut self, name: &str, value: i64) {
        self.local.entry(name.to_string()).or_default().push(value);
    }

    pub(crate) fn pop(&mut self, name: &str) {
        if let Some(stack) = self.local.get_mut(name) {
            stack.pop();
        }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let local = self.local.iter().filter(|(_, stack)| !stack.is_empty()).map(|(name, _)| name);
        local.chain(self.global.keys()).map(String::as_str)
    }

    /// The value of a constant expression.
    pub fn eval(&self, e: &ast::Expr) -> Result<i64> {
        let fail =
            |what: &str| Diagnostic::new(e.span, format!("expected a constant expression, found {what}"));
        match &e.kind {
            ExprKind::Int(value) => Ok(*value),
            ExprKind::Place(place) if place.index.is_none() => self.get(&place.name.text).ok_or_else(|| {
                Diagnostic::new(place.name.span, format!("`{}` is not a constant", place.name.text))
            }),
            ExprKind::Unary(op, operand) => op
                .apply(self.eval(operand)?)
                .map_err(|_| Diagnostic::new(e.span, "this constant does not fit 64 bits")),
            ExprKind::Binary(op, left, right) => {
                let (left, right) = (self.eval(left)?, self.eval(right)?);
                self.check_operator(*op, Some(left), Some(right), e.span)?;
                op.apply(left, right).map_err(|error| {
                    Diagnostic::new(
                        e.span,
                        match error {
                            EvalError::DivisionByZero => "division by zero in a constant",
                            EvalError::ShiftOutOfRange => {
                                "a shift by less than 0 or more than 63 in a constant"
                            }
                            EvalError::Overflow => "this constant does not fit 64 bits",
                        },
                    )
                })
            }
            ExprKind::If(condition, then, otherwise) => {
                if self.eval(condition)? != 0 {
                    self.eval(then)
                } else {
                    self.eval(otherwise)
                }
            }
            ExprKind::Place(_) => Err(fail("an array element")),
            ExprKind::Call(..) => Err(fail("a call")),
            ExprKind::Cas(..) | ExprKind::Swap(..) | ExprKind::FetchAdd(..) => {
                Err(fail("a read-modify-write operation"))
            }
            ExprKind::At(..) | ExprKind::Register(..) | ExprKind::Quantified(..) => Err(fail("a formula")),
        }
    }

    /// Checks an integer operator: over the reals, its operand must be constant.
    pub(crate) fn check_unary(&self, op: UnaryOp, operand: Option<i64>, span: Span) -> Result<()> {
        if self.numbers != Numbers::Real || operand.is_some() || !(op == UnaryOp::BitNot || op.wraps()) {
            return Ok(());
        }
        Err(Diagnostic::new(span, format!("`{}` is not supported over the reals", op.symbol())))
    }

    /// Checks an operator: over the reals, integer operators need constant operands, and the quotient of a division must be an integer. `left` and
    /// `right` are the values of constant operands.
    pub(crate) fn check_operator(
        &self,
        op: BinaryOp,
        left: Option<i64>,
        right: Option<i64>,
        span: Span,
    ) -> Result<()> {
        use BinaryOp::*;
        if self.numbers != Numbers::Real || !matches!(op, Div | Rem | BitAnd | BitOr | BitXor | Shl | Shr) {
            return Ok(());
        }
        match (left, right) {
            (Some(left), Some(right))
                if op == Div && left.checked_rem(right).is_some_and(|rest| rest != 0) =>
            {
                Err(Diagnostic::new(span, format!("{left} / {right} is not a whole number"))
                    .help("over the reals all constants are whole; multiply the other side instead"))
            }
            (Some(_), Some(_)) => Ok(()),
            _ => Err(Diagnostic::new(span, format!("`{}` is not supported over the reals", op.symbol()))),
        }
    }

    /// The values of a range, with both ends included. The range may be empty; callers that need a value report that.
    pub fn range(&self, range: &ast::RangeExpr) -> Result<Range> {
        let low = self.eval(&range.low)?;
        let high = self.eval(&range.high)?;
        let high = if range.inclusive {
            high
        } else {
            high.checked_sub(1).ok_or_else(|| Diagnostic::new(range.span, "this range has no upper end"))?
        };
        Ok(Range { low, high })
    }

    /// The range of indices that the declaration of an array gives: from 0 for a length.
    pub fn indices(&self, size: &ast::ArraySize) -> Result<Range> {
        match size {
            ast::ArraySize::Length(length) => {
                Ok(Range { low: 0, high: self.eval(length)?.saturating_sub(1) })
            }
            ast::ArraySize::Indices(range) => self.range(range),
        }
    }

    /// The values of a range; an error if it is empty.
    pub(crate) fn nonempty_range(&self, range: &ast::RangeExpr) -> Result<Range> {
        let values = self.range(range)?;
        if values.size() == 0 {
            return Err(Diagnostic::new(range.span, "this range is empty")
                .help("`0..4` is 0, 1, 2, 3; write `0..=4` to include the upper end"));
        }
        Ok(values)
    }

    /// The values of the type of a declarator, if it has one.
    pub(crate) fn integer_type(&self, declarator: &ast::Declarator) -> Result<Option<Range>> {
        let Some(wraps) = declarator.wraps else { return Ok(None) };
        self.check_type(wraps, declarator.span).map(Some)
    }

    /// The values of a type; an error if it cannot be used in the program's data domain.
    pub(crate) fn check_type(&self, wraps: UnaryOp, span: Span) -> Result<Range> {
        let name = wraps.symbol();
        let Some(values) = values_of(wraps) else {
            return Err(Diagnostic::new(span, format!("`{name}` is not supported"))
                .help("numbers are computed in 64 bits with a sign; `i64` has as many values"));
        };
        match self.numbers {
            Numbers::Real => Err(Diagnostic::new(span, format!("`{name}` is not supported over the reals"))),
            Numbers::Nat if values.low < 0 => {
                let message = format!("`{name}` has numbers below 0, which are not natural");
                Err(Diagnostic::new(span, message))
            }
            _ => Ok(values),
        }
    }

    /// The initial contents that a declarator gives to a register or to each of `cells` cells.
    pub fn initial(
        &self,
        declarator: &ast::Declarator,
        range: Option<Range>,
        cells: usize,
    ) -> Result<Vec<Init>> {
        let value = |e: &ast::Expr| {
            let value = self.eval(e)?;
            match range {
                Some(r) if !r.contains(value) => Err(Diagnostic::new(
                    e.span,
                    format!("the initial value {value} is outside {}..={}", r.low, r.high),
                )),
                _ => Ok(Init::Value(value)),
            }
        };
        match &declarator.init {
            None => {
                if let Some(r) = range.filter(|r| !r.contains(0)) {
                    return Err(Diagnostic::new(
                        declarator.span,
                        format!(
                            "`{}` starts at 0, which is outside {}..={}",
                            declarator.name.text, r.low, r.high
                        ),
                    )
                    .help(format!("give it an initial value: `{} = {}`", declarator.name.text, r.low)));
                }
                Ok(vec![Init::Value(0); cells])
            }
            Some(ast::Initial::Value(e)) => Ok(vec![value(e)?; cells]),
            Some(ast::Initial::Any(None)) => Ok(vec![Init::Any(range); cells]),
            Some(ast::Initial::Any(Some(r))) => {
                let chosen = self.nonempty_range(r)?;
                match range {
                    Some(declared) if !(declared.contains(chosen.low) && declared.contains(chosen.high)) => {
                        Err(Diagnostic::new(r.span, "this leaves the declared range"))
                    }
                    _ => Ok(vec![Init::Any(Some(chosen)); cells]),
                }
            }
            Some(ast::Initial::List(values)) => {
                if declarator.size.is_none() || values.len() != cells {
                    return Err(Diagnostic::new(
                        declarator.span,
                        format!("{} initial values for {cells} cells", values.len()),
                    ));
                }
                values.iter().map(value).collect()
            }
        }
    }
}
