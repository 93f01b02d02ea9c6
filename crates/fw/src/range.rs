//! Parsing of ranges, and of the binders of quantifiers.

use fencewright_program::BinaryOp;

use super::parser::{Parse, Parser};
use super::token::{Keyword, TokenKind};
use crate::ast::*;

impl Parser<'_> {
    /// `low..high` or `low..=high`
    pub(super) fn range(&mut self) -> Parse<RangeExpr> {
        let low = self.range_bound()?;
        self.range_from(low)
    }

    /// The rest of a range after its lower end.
    pub(super) fn range_from(&mut self, low: Expr) -> Parse<RangeExpr> {
        let inclusive = self.at(TokenKind::DotDotEqual);
        if !inclusive && !self.at(TokenKind::DotDot) {
            let help = "`0..4` is 0, 1, 2, 3 and `0..=3` is the same";
            return Err(self.expected_with("`..` and the end of the range", Some(help.into())));
        }
        self.bump();
        let high = self.range_bound()?;
        let span = low.span.to(high.span);
        Ok(RangeExpr { low, high, inclusive, span })
    }

    /// Whether the next tokens begin binders rather than a formula.
    pub(super) fn at_binder(&self) -> bool {
        let is_in = |ahead| self.peek_at(ahead) == TokenKind::Keyword(Keyword::In);
        let relation = matches!(self.peek_at(1), TokenKind::Operator(op) if op.is_comparison());
        self.at(TokenKind::Name) && (is_in(1) || relation && self.peek_at(2) == TokenKind::Name && is_in(3))
    }

    /// `i in 0..N, j < k in 0..N:` including the colon.
    pub(super) fn binders(&mut self) -> Parse<Vec<Binder>> {
        let mut binders = vec![self.binder()?];
        while self.eat(TokenKind::Comma) {
            binders.push(self.binder()?);
        }
        self.expect(TokenKind::Colon, "`:` and a formula after the binders")?;
        Ok(binders)
    }

    fn binder(&mut self) -> Parse<Binder> {
        let first = self.name("a variable, as in `i in 0..N`")?;
        let relation = match self.peek() {
            TokenKind::Operator(BinaryOp::Lt) => Some(BinderRelation::Less),
            TokenKind::Operator(BinaryOp::Ne) => Some(BinderRelation::NotEqual),
            TokenKind::Operator(op) if op.is_comparison() => {
                let help = "two variables are bound by `i < j in 0..N` or `i != j in 0..N`";
                self.expected_with("`<`, `!=` or `in`", Some(help.into()));
                Some(BinderRelation::NotEqual)
            }
            _ => None,
        };
        let second = match relation {
            Some(relation) => {
                self.bump();
                Some((relation, self.name("a second variable, as in `i < j in 0..N`")?))
            }
            None => None,
        };
        self.expect(TokenKind::Keyword(Keyword::In), "`in` and a range")?;
        Ok(Binder { first, second, range: self.range()? })
    }
}
