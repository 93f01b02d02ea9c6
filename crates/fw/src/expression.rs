//! Parsing of expressions and formulas.
//!
//! Expressions are parsed by operator precedence with an explicit stack. Only brackets, calls, conditional expressions and quantifiers recurse, so
//! the depth of the recursion is the nesting depth in the text. Chains of `&&` and of `||` become balanced trees ([`chain`](super::chain)).

use fencewright_program::{BinaryOp, Span, UnaryOp, Width};
use fencewright_text::Diagnostic;

use super::chain::{Operand, binary};
use super::lexer::{NumberValue, clip, number_value};
use super::parser::{Parse, Parser, Reported};
use super::token::{Keyword, TokenKind};
use crate::ast::*;

/// The operator that wraps around to the integer type with this name; `None` if there is no such type.
pub fn integer_type(name: &str) -> Option<UnaryOp> {
    let all = Width::ALL.into_iter().flat_map(|width| [UnaryOp::Unsigned(width), UnaryOp::Signed(width)]);
    all.into_iter().find(|op| op.symbol() == name)
}

/// Whether this is the name of a built-in operator that is written like a function.
pub fn is_built_in(name: &str) -> bool {
    matches!(name, "min" | "max") || integer_type(name).is_some()
}

/// Maximum depth of the tree of an expression, for example the length of a chain of `+`.
const MAX_DEPTH: usize = 1_000;

/// An operator on the stack that waits for its (right) operand.
enum Pending {
    Unary(UnaryOp, Span),
    Binary(BinaryOp, Span),
}

impl Parser<'_> {
    /// An expression or formula.
    pub(super) fn expression(&mut self) -> Parse<Expr> {
        self.operators(true).map(|operand| self.finish(operand))
    }

    /// An end of a range: an expression after which `=` is not reported as a slip for `==`.
    pub(super) fn range_bound(&mut self) -> Parse<Expr> {
        self.operators(false).map(|operand| self.finish(operand))
    }

    fn finish(&mut self, operand: Operand) -> Expr {
        let (expr, depth) = operand.finish();
        self.inner_depth = self.inner_depth.max(depth);
        expr
    }

    /// The result of `parse`, and the depth of the tree that it builds: one more than that of the deepest expression inside.
    fn measured<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<(T, usize)> {
        let outside = std::mem::take(&mut self.inner_depth);
        let result = parse(self);
        let depth = 1 + std::mem::replace(&mut self.inner_depth, outside);
        Ok((result?, depth))
    }

    /// Operands and operators, or `c ? a : b`. With `equals_is_slip`, a `=` is reported and read as `==`.
    fn operators(&mut self, equals_is_slip: bool) -> Parse<Operand> {
        let condition = self.binary_operators(equals_is_slip)?;
        if !self.at(TokenKind::Question) {
            return Ok(condition);
        }
        self.enter()?;
        self.bump();
        let (condition, depth) = condition.finish();
        let ((then, otherwise), inner_depth) = self.measured(|parser| {
            let then = parser.expression()?;
            let help = "it is written `c ? a : b`: `a` if `c` holds, otherwise `b`";
            if !parser.eat(TokenKind::Colon) {
                return Err(parser.expected_with("`:` and the other value", Some(help.into())));
            }
            let otherwise = parser.operators(equals_is_slip)?;
            Ok((then, parser.finish(otherwise)))
        })?;
        self.nesting -= 1;
        let span = condition.span.to(otherwise.span);
        let kind = ExprKind::If(Box::new(condition), Box::new(then), Box::new(otherwise));
        Ok(Operand::Single(Expr { kind, span }, inner_depth.max(depth + 1)))
    }

    fn binary_operators(&mut self, equals_is_slip: bool) -> Parse<Operand> {
        let mut operands: Vec<Operand> = Vec::new();
        let mut pending: Vec<Pending> = Vec::new();
        loop {
            while let Some((op, span)) = self.prefix_operator() {
                pending.push(Pending::Unary(op, span));
                if pending.len() > MAX_DEPTH {
                    return Err(self.too_deep(span));
                }
            }
            let operand = self.operand(equals_is_slip)?;
            self.push(&mut operands, operand)?;
            while let Some(&Pending::Unary(..)) = pending.last() {
                self.apply(&mut pending, &mut operands)?;
            }
            let Some((op, span)) = self.infix_operator(equals_is_slip) else { break };
            while let Some(&Pending::Binary(before, before_span)) = pending.last()
                && super::precedence(before) >= super::precedence(op)
            {
                if before.is_comparison() && op.is_comparison() {
                    self.chained_comparison(&operands, before_span, span);
                }
                self.apply(&mut pending, &mut operands)?;
            }
            pending.push(Pending::Binary(op, span));
        }
        while !pending.is_empty() {
            self.apply(&mut pending, &mut operands)?;
        }
        operands.pop().ok_or(Reported)
    }

    /// Applies the topmost operator to its operands, which are complete.
    fn apply(&mut self, pending: &mut Vec<Pending>, operands: &mut Vec<Operand>) -> Parse<()> {
        let (Some(operator), Some(right)) = (pending.pop(), operands.pop()) else { return Ok(()) };
        let result = match operator {
            Pending::Unary(op, span) => {
                let (expr, depth) = right.finish();
                let span = span.to(expr.span);
                Operand::Single(Expr { kind: ExprKind::Unary(op, Box::new(expr)), span }, depth + 1)
            }
            Pending::Binary(op, _) => {
                let Some(left) = operands.pop() else { return Ok(()) };
                let span = left.span().to(right.span());
                if matches!(op, BinaryOp::And | BinaryOp::Or) {
                    let mut parts = left.parts(op);
                    parts.append(&mut right.parts(op));
                    Operand::Chain(op, parts, span)
                } else {
                    let ((left, left_depth), (right, right_depth)) = (left.finish(), right.finish());
                    Operand::Single(binary(op, left, right), 1 + left_depth.max(right_depth))
                }
            }
        };
        self.push(operands, result)
    }

    fn push(&mut self, operands: &mut Vec<Operand>, operand: Operand) -> Parse<()> {
        if let Operand::Single(Expr { span, .. }, depth) = operand
            && depth > MAX_DEPTH
        {
            // The whole expression may be pages long, so the message points at its end, where the limit was exceeded.
            return Err(self.too_deep(Span { start: span.end.saturating_sub(1), ..span }));
        }
        operands.push(operand);
        Ok(())
    }

    fn prefix_operator(&mut self) -> Option<(UnaryOp, Span)> {
        let op = match self.peek() {
            TokenKind::Not => UnaryOp::Not,
            TokenKind::Tilde => UnaryOp::BitNot,
            // A minus sign directly before a number is part of the number, so that the least 64-bit number, -2^63, can be written.
            TokenKind::Operator(BinaryOp::Sub) if self.peek_at(1) != TokenKind::Number => UnaryOp::Neg,
            TokenKind::Name if self.text_of(self.token().span) == "not" && self.operand_follows() => {
                self.expected_with("an expression", Some("negation is written `!`".into()));
                UnaryOp::Not
            }
            _ => return None,
        };
        Some((op, self.bump().span))
    }

    fn operand_follows(&self) -> bool {
        use Keyword::{Cas, Exists, False, FetchAdd, Forall, Swap, True};
        match self.peek_at(1) {
            TokenKind::Name | TokenKind::Number | TokenKind::OpenParenthesis => true,
            TokenKind::Keyword(keyword) => {
                matches!(keyword, Cas | Swap | FetchAdd | Exists | Forall | True | False)
            }
            _ => false,
        }
    }

    /// The operator at this position, if any. An operator of another language is reported, and replaced by the .fw operator that was probably meant.
    fn infix_operator(&mut self, equals_is_slip: bool) -> Option<(BinaryOp, Span)> {
        let token = self.token();
        let (op, help) = match (token.kind, self.text_of(token.span)) {
            (TokenKind::Operator(op), _) => (op, None),
            (TokenKind::Assign, _) if equals_is_slip => {
                (BinaryOp::Eq, Some("`=` assigns, and is no part of an expression; `==` compares"))
            }
            (TokenKind::Keyword(Keyword::Or), _) => (
                BinaryOp::Or,
                Some("`or` stands between the blocks of a `choose`; in expressions, write `||`"),
            ),
            (TokenKind::Name, "and") => (BinaryOp::And, Some("write `&&`")),
            (TokenKind::Name, "xor") => (BinaryOp::BitXor, Some("write `^`, or `!=` for truth values")),
            (TokenKind::Name, "mod") => (BinaryOp::Rem, Some("write `%`")),
            (TokenKind::Name, "div") => (BinaryOp::Div, Some("write `/`")),
            (TokenKind::Foreign, "<>") => (BinaryOp::Ne, Some("write `!=`")),
            (TokenKind::Foreign, "=<") => (BinaryOp::Le, Some("write `<=`")),
            _ => return None,
        };
        if let Some(help) = help {
            self.expected_with(&format!("`{}`", op.symbol()), Some(help.into()));
        }
        self.bump();
        Some((op, token.span))
    }

    /// Reports `a < b < c`; `operands` end with the first two operands, and `first` and `second` are the spans of the two operators.
    fn chained_comparison(&mut self, operands: &[Operand], first: Span, second: Span) {
        let help = match operands {
            [.., a, b] => {
                let [a, b, first, second] =
                    [a.span(), b.span(), first, second].map(|s| clip(self.text_of(s)));
                format!("write `{a} {first} {b} && {b} {second} ...`, or use parentheses")
            }
            _ => "use `&&` or parentheses".into(),
        };
        self.report(Diagnostic::new(second, "comparisons do not chain").help(help));
    }

    fn operand(&mut self, equals_is_slip: bool) -> Parse<Operand> {
        let token = self.token();
        match token.kind {
            TokenKind::Number => {
                self.bump();
                Ok(self.number_operand(token.span, token.span, false))
            }
            TokenKind::Operator(BinaryOp::Sub) if self.peek_at(1) == TokenKind::Number => {
                self.bump();
                let digits = self.bump().span;
                Ok(self.number_operand(digits, token.span.to(digits), true))
            }
            TokenKind::OpenParenthesis => {
                self.enter()?;
                self.bump();
                let inner = self.operators(true)?;
                self.expect(TokenKind::CloseParenthesis, "`)`")?;
                self.nesting -= 1;
                Ok(inner.at(self.since(token.span)))
            }
            TokenKind::Name if self.at_built_in() => {
                let (built_in, depth) = self.measured(Self::built_in)?;
                Ok(Operand::Single(built_in, depth))
            }
            TokenKind::Name if self.at_call() => {
                let (call, depth) = self.measured(Self::call)?;
                Ok(Operand::Single(call, depth))
            }
            TokenKind::Name => {
                let (atom, depth) = self.measured(Self::atom)?;
                if self.at(TokenKind::OpenParenthesis) {
                    return Err(self.no_call());
                }
                Ok(Operand::Single(atom, depth))
            }
            TokenKind::Keyword(keyword) => self.keyword_operand(keyword, equals_is_slip),
            TokenKind::Operator(BinaryOp::Mul) => {
                let help = "`*`, any value, stands directly after `=`: `r = *;` or `r = * in 0..4;`";
                Err(self.expected_with("an expression", Some(help.into())))
            }
            TokenKind::Operator(BinaryOp::Add) => {
                Err(self.expected_with("an expression", Some("there is no unary `+`".into())))
            }
            TokenKind::Assign => Err(self.expected_with("an expression", Some("is `==` meant?".into()))),
            _ => Err(self.expected("an expression")),
        }
    }

    fn number_operand(&mut self, digits: Span, span: Span, negative: bool) -> Operand {
        let text = self.text_of(digits);
        let value = number(text, negative).unwrap_or_else(|| {
            let message = format!("the number {} does not fit 64 bits", clip(self.text_of(span)));
            let help = "numbers go from -9223372036854775808 to 9223372036854775807";
            self.report(Diagnostic::new(span, message).help(help));
            0
        });
        Operand::leaf(ExprKind::Int(value), span)
    }

    fn keyword_operand(&mut self, keyword: Keyword, equals_is_slip: bool) -> Parse<Operand> {
        let span = self.token().span;
        match keyword {
            Keyword::True | Keyword::False => {
                self.bump();
                Ok(Operand::leaf(ExprKind::Int(i64::from(keyword == Keyword::True)), span))
            }
            Keyword::Exists | Keyword::Forall => {
                self.enter()?;
                self.bump();
                let ((binders, body), depth) = self.measured(|parser| {
                    let binders = parser.binders()?;
                    let body = parser.operators(equals_is_slip)?;
                    Ok((binders, parser.finish(body)))
                })?;
                self.nesting -= 1;
                let kind = if keyword == Keyword::Exists { Quantified::Exists } else { Quantified::Forall };
                let span = self.since(span);
                let kind = ExprKind::Quantified(kind, binders, Box::new(body));
                Ok(Operand::Single(Expr { kind, span }, depth))
            }
            _ if keyword.begins_operation() => {
                let (operation, depth) = self.measured(|parser| parser.operation(keyword))?;
                Ok(Operand::Single(operation, depth))
            }
            // If a new statement begins here, the expression is missing.
            _ if self.first_on_line() => Err(self.expected("an expression")),
            _ => {
                self.keyword_as_name(keyword);
                self.bump();
                let name = Name { text: keyword.text().to_owned(), span };
                let place = Place { name, index: None };
                Ok(Operand::leaf(ExprKind::Place(place), span))
            }
        }
    }

    /// `cas(x, old, new)`, `swap(x, v)` or `fetch_add(x, v)`
    pub(super) fn operation(&mut self, keyword: Keyword) -> Parse<Expr> {
        let start = self.token().span;
        self.enter()?;
        self.bump();
        self.expect(TokenKind::OpenParenthesis, &format!("`(` after `{}`", keyword.text()))?;
        if !self.at(TokenKind::Name) {
            return Err(self.expected("a shared variable"));
        }
        let place = self.place()?;
        let first = self.argument(keyword)?;
        let kind = match keyword {
            Keyword::Cas => ExprKind::Cas(place, first, self.argument(keyword)?),
            Keyword::Swap => ExprKind::Swap(place, first),
            _ => ExprKind::FetchAdd(place, first),
        };
        if self.at(TokenKind::Comma) {
            return Err(self.expected_with("`)`", Some(operation_usage(keyword))));
        }
        self.expect(TokenKind::CloseParenthesis, "`)` after the last argument")?;
        self.nesting -= 1;
        Ok(Expr { kind, span: self.since(start) })
    }

    fn argument(&mut self, keyword: Keyword) -> Parse<Box<Expr>> {
        if !self.eat(TokenKind::Comma) {
            return Err(self.expected_with("`,` and another argument", Some(operation_usage(keyword))));
        }
        self.expression().map(Box::new)
    }

    /// Reports a call of an unknown procedure; the name has been consumed and `(` is next.
    pub(super) fn no_call(&mut self) -> Reported {
        let help = "no procedure is called so; the operations are `cas(x, old, new)`, `swap(x, v)` and `fetch_add(x, v)`";
        self.expected_with("an operator or `;`", Some(help.into()))
    }

    /// Whether the next tokens begin a built-in operator that is written like a function.
    fn at_built_in(&self) -> bool {
        let name = self.text_of(self.token().span);
        self.at(TokenKind::Name) && self.peek_at(1) == TokenKind::OpenParenthesis && is_built_in(name)
    }

    /// `min(a, b)`, `max(a, b)`, or `u8(e)` with any integer type; the name is the next token.
    fn built_in(&mut self) -> Parse<Expr> {
        self.enter()?;
        let start = self.bump().span;
        let name = self.text_of(start);
        self.bump();
        let first = Box::new(self.expression()?);
        let kind = match (integer_type(name), name) {
            (Some(wraps), _) => ExprKind::Unary(wraps, first),
            (None, name) => {
                if !self.eat(TokenKind::Comma) {
                    let help = format!("it is written `{name}(a, b)`");
                    return Err(self.expected_with("`,` and another argument", Some(help)));
                }
                let op = if name == "min" { BinaryOp::Min } else { BinaryOp::Max };
                ExprKind::Binary(op, first, Box::new(self.expression()?))
            }
        };
        self.expect(TokenKind::CloseParenthesis, "`)` after the last argument")?;
        self.nesting -= 1;
        Ok(Expr { kind, span: self.since(start) })
    }

    /// Whether the next tokens begin a call.
    pub(super) fn at_call(&self) -> bool {
        let name = self.text_of(self.token().span);
        self.at(TokenKind::Name)
            && self.peek_at(1) == TokenKind::OpenParenthesis
            && self.procedures.contains(name)
    }

    /// `f(a, b)`; the name is the next token.
    pub(super) fn call(&mut self) -> Parse<Expr> {
        self.enter()?;
        let span = self.bump().span;
        let name = Name { text: self.text_of(span).to_owned(), span };
        self.bump();
        let mut arguments = Vec::new();
        while !self.at(TokenKind::CloseParenthesis) {
            arguments.push(self.expression()?);
            if !self.eat(TokenKind::Comma) {
                break;
            }
        }
        self.expect(TokenKind::CloseParenthesis, "`,` or `)` after an argument")?;
        self.nesting -= 1;
        Ok(Expr { kind: ExprKind::Call(name, arguments), span: self.since(span) })
    }

    /// `x` or `a[e]`; the name (or a keyword that was reported) is the next token.
    pub(super) fn place(&mut self) -> Parse<Place> {
        let span = self.bump().span;
        let name = Name { text: self.text_of(span).to_owned(), span };
        Ok(Place { name, index: self.index()? })
    }

    fn index(&mut self) -> Parse<Option<Box<Expr>>> {
        if !self.at(TokenKind::OpenBracket) {
            return Ok(None);
        }
        self.enter()?;
        self.bump();
        let index = self.expression()?;
        self.expect(TokenKind::CloseBracket, "`]` after the index")?;
        self.nesting -= 1;
        if self.at(TokenKind::OpenBracket) {
            let help = "arrays have one dimension: write `a[i * N + j]`";
            return Err(self.expected_with("an operator", Some(help.into())));
        }
        Ok(Some(Box::new(index)))
    }

    /// `x`, `a[e]`, `p.r`, `p[e].r`, `p@label` or `p[e]@label`; the name is the next token.
    pub(super) fn atom(&mut self) -> Parse<Expr> {
        let start = self.token().span;
        let place = self.place()?;
        let kind = if self.eat(TokenKind::At) {
            let thread = ThreadRef { name: place.name, index: place.index };
            let label = if self.at_keyword(Keyword::End) {
                let span = self.bump().span;
                Name { text: self.text_of(span).to_owned(), span }
            } else {
                let label = self.name("a label")?;
                self.qualified(label, "a label of the procedure")?
            };
            ExprKind::At(thread, label)
        } else if self.eat(TokenKind::Dot) {
            let thread = ThreadRef { name: place.name, index: place.index };
            let register = self.name("the name of a register")?;
            let name = self.qualified(register, "a register of the procedure")?;
            ExprKind::Register(thread, Place { name, index: self.index()? })
        } else {
            ExprKind::Place(place)
        };
        Ok(Expr { kind, span: self.since(start) })
    }

    /// A name, or `procedure.name`
    fn qualified(&mut self, name: Name, what: &str) -> Parse<Name> {
        if !self.eat(TokenKind::Dot) {
            return Ok(name);
        }
        let inner = self.name(what)?;
        Ok(Name { text: format!("{}.{}", name.text, inner.text), span: name.span.to(inner.span) })
    }
}

fn operation_usage(keyword: Keyword) -> String {
    match keyword {
        Keyword::Cas => "it is written `cas(x, old, new)`".into(),
        _ => format!("it is written `{}(x, v)`", keyword.text()),
    }
}

/// The value of a number token; `negative` if a minus sign directly precedes it. `None` if the value does not fit an `i64`, 0 for a malformed token.
fn number(text: &str, negative: bool) -> Option<i64> {
    match number_value(text) {
        NumberValue::Fits(value) if negative => 0_i64.checked_sub_unsigned(value),
        NumberValue::Fits(value) => i64::try_from(value).ok(),
        NumberValue::TooLarge => None,
        NumberValue::Malformed => Some(0),
    }
}
