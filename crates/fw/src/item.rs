//! Parsing of top-level items and of declarations.

use fencewright_program::{BinaryOp, Numbers, UnaryOp};
use fencewright_text::Diagnostic;

use super::expression::{integer_type, is_built_in};
use super::parser::{Parse, Parser, Reported};
use super::slips;
use super::token::{Keyword, TokenKind};
use crate::ast::*;

/// Help text that lists the supported integer types.
const TYPES: &str = "the types are `u8`, `u16`, `u32`, `i8`, `i16`, `i32` and `i64`";

impl Parser<'_> {
    pub(super) fn item(&mut self) -> Parse<Item> {
        let start = self.token().span;
        let TokenKind::Keyword(keyword) = self.peek() else {
            return if self.at_mutex() { self.mutexes() } else { Err(self.no_item()) };
        };
        match keyword {
            Keyword::Const => self.constant().map(Item::Const),
            Keyword::Numbers => {
                self.bump();
                let numbers = match self.peek() {
                    TokenKind::Keyword(Keyword::Int) => Numbers::Int,
                    TokenKind::Keyword(Keyword::Nat) => Numbers::Nat,
                    TokenKind::Keyword(Keyword::Real) => Numbers::Real,
                    _ => return Err(self.expected("`int`, `nat` or `real`")),
                };
                self.bump();
                self.semicolon("the numbers")?;
                Ok(Item::Numbers(numbers, self.since(start)))
            }
            Keyword::Shared => {
                self.bump();
                let declarators = self.declarators(false)?;
                self.semicolon("the declaration")?;
                Ok(Item::Shared(declarators))
            }
            Keyword::Fn => self.procedure().map(Item::Procedure),
            Keyword::Thread => self.thread().map(Item::Thread),
            Keyword::Forbid | Keyword::Invariant | Keyword::Finally => {
                self.property(keyword).map(Item::Property)
            }
            Keyword::Predicates => self.predicates(),
            Keyword::Spare => {
                self.bump();
                let place = self.code_place()?;
                self.semicolon("the place")?;
                Ok(Item::Spare(place, self.since(start)))
            }
            Keyword::Cost => {
                self.bump();
                let target = match self.peek() {
                    TokenKind::Keyword(Keyword::Fence) => CostTarget::Fence,
                    TokenKind::Keyword(Keyword::StoreFence) => CostTarget::StoreFence,
                    TokenKind::Keyword(Keyword::Swap) => CostTarget::Swap,
                    _ => CostTarget::Place(self.code_place()?),
                };
                if !matches!(target, CostTarget::Place(_)) {
                    self.bump();
                }
                let price = self.expression()?;
                self.semicolon("the price")?;
                Ok(Item::Cost(target, price, self.since(start)))
            }
            _ => Err(self.no_item()),
        }
    }

    /// Reports a token that cannot begin an item.
    fn no_item(&mut self) -> Reported {
        let token = self.token();
        let help = match token.kind {
            TokenKind::CloseBrace => {
                let message = "this `}` closes nothing";
                return self.report(Diagnostic::new(token.span, message));
            }
            TokenKind::Semicolon => Some("no `;` stands after a `}`".into()),
            TokenKind::Name => slips::keyword_meant(self.text_of(token.span), Keyword::begins_item)
                .map(|keyword| format!("is `{}` meant?", keyword.text())),
            TokenKind::Keyword(Keyword::Var) => {
                Some("variables of all threads are declared with `shared`".into())
            }
            TokenKind::Keyword(keyword) if keyword.begins_statement() => {
                Some("statements stand inside a thread or a procedure: `thread NAME { ... }`".into())
            }
            _ => None,
        };
        self.expected_with("a declaration, a procedure, a thread or a property", help)
    }

    /// `const NAME = value;`
    pub(super) fn constant(&mut self) -> Parse<Const> {
        self.bump();
        let name = self.name("the name of a constant")?;
        self.assign_sign("`=` and the value of the constant")?;
        let value = self.expression()?;
        self.semicolon("the constant")?;
        Ok(Const { name, value })
    }

    /// Consumes `=`. A `:=` or `==` in its place is reported and consumed.
    pub(super) fn assign_sign(&mut self, what: &str) -> Parse<()> {
        let foreign = self.at(TokenKind::Foreign) && self.text_of(self.token().span) == ":=";
        if foreign || self.at(TokenKind::Operator(BinaryOp::Eq)) {
            let help = if foreign {
                slips::foreign_operator(":=", None)
            } else {
                "`==` compares, `=` assigns".into()
            };
            self.expected_with("`=`", Some(help));
            self.bump();
            return Ok(());
        }
        self.expect(TokenKind::Assign, what).map(|_| ())
    }

    /// The variables of a `shared` or (for registers) `var` declaration.
    pub(super) fn declarators(&mut self, registers: bool) -> Parse<Vec<Declarator>> {
        if let TokenKind::Keyword(Keyword::Int | Keyword::Nat | Keyword::Real) = self.peek()
            && self.peek_at(1) == TokenKind::Name
        {
            let word = if registers { "var" } else { "shared" };
            let diagnostic = Diagnostic::new(self.token().span, "a type stands behind the name").help(format!(
                "write `{word} x;` or `{word} x: i32;`; `numbers nat;` at the top level makes all numbers natural"
            ));
            self.report(diagnostic);
            self.bump();
        }
        let mut declarators = vec![self.declarator()?];
        while self.eat(TokenKind::Comma) {
            declarators.push(self.declarator()?);
        }
        if self.at_keyword(Keyword::Open) {
            let help = "`open` stands directly after the size of an array: `mem[64] open`";
            return Err(self.expected_with("`,` or `;`", Some(help.into())));
        }
        Ok(declarators)
    }

    fn declarator(&mut self) -> Parse<Declarator> {
        let name = self.name("the name of a variable")?;
        let size = if self.eat(TokenKind::OpenBracket) {
            let size = self.array_size()?;
            self.expect(TokenKind::CloseBracket, "`]` after the size of the array")?;
            Some(size)
        } else {
            None
        };
        let open = size.is_some() && self.eat_keyword(Keyword::Open);
        let (range, wraps) = match self.eat(TokenKind::Colon) {
            false => (None, None),
            true => match self.integer_type() {
                Some(wraps) => (None, Some(wraps)),
                None => (Some(self.range()?), None),
            },
        };
        let initial =
            matches!(self.peek(), TokenKind::Assign | TokenKind::Foreign | TokenKind::Operator(BinaryOp::Eq));
        let init = if initial {
            self.assign_sign("`=` and the initial value")?;
            Some(self.initial()?)
        } else {
            None
        };
        let span = self.since(name.span);
        Ok(Declarator { name, size, open, range, wraps, init, span })
    }

    /// Parses an integer type, if there is one. A name at the start of a range is a constant, not a type.
    fn integer_type(&mut self) -> Option<UnaryOp> {
        use TokenKind::{DotDot, DotDotEqual, OpenBracket, OpenParenthesis, Operator, Question};
        let goes_on = matches!(
            self.peek_at(1),
            DotDot | DotDotEqual | OpenBracket | OpenParenthesis | Operator(_) | Question
        );
        let found =
            (self.at(TokenKind::Name) && !goes_on).then(|| integer_type(self.text_of(self.token().span)));
        let found = found.flatten();
        if found.is_some() {
            self.bump();
        }
        found
    }

    fn array_size(&mut self) -> Parse<ArraySize> {
        let low = self.range_bound()?;
        if matches!(self.peek(), TokenKind::DotDot | TokenKind::DotDotEqual) {
            return self.range_from(low).map(ArraySize::Indices);
        }
        Ok(ArraySize::Length(low))
    }

    fn initial(&mut self) -> Parse<Initial> {
        if self.eat(TokenKind::Operator(BinaryOp::Mul)) {
            return self.optional_range().map(Initial::Any);
        }
        if !self.eat(TokenKind::OpenBracket) {
            return self.expression().map(Initial::Value);
        }
        let mut values = Vec::new();
        while !self.at(TokenKind::CloseBracket) {
            values.push(self.expression()?);
            if !self.eat(TokenKind::Comma) {
                break;
            }
        }
        self.expect(TokenKind::CloseBracket, "`,` or `]` after a value of the array")?;
        Ok(Initial::List(values))
    }

    /// An optional `in low..high`.
    pub(super) fn optional_range(&mut self) -> Parse<Option<RangeExpr>> {
        if self.eat_keyword(Keyword::In) { self.range().map(Some) } else { Ok(None) }
    }

    /// Whether the next tokens declare mutexes. `mutex` is not a keyword, because properties may have that name.
    pub(super) fn at_mutex(&self) -> bool {
        self.at(TokenKind::Name)
            && self.text_of(self.token().span) == "mutex"
            && self.peek_at(1) == TokenKind::Name
    }

    /// `mutex m, locks[8];`
    fn mutexes(&mut self) -> Parse<Item> {
        self.bump();
        let mut mutexes = Vec::new();
        loop {
            let declared = self.declarator()?;
            let more = declared.range.is_some() || declared.wraps.is_some() || declared.init.is_some();
            if declared.open || more {
                let diagnostic = Diagnostic::new(declared.span, "a mutex has a name and perhaps a size")
                    .help("it is free at first; in properties it is 0 while it is free");
                self.report(diagnostic);
            }
            mutexes.push(declared);
            if !self.eat(TokenKind::Comma) {
                break;
            }
        }
        self.semicolon("the declaration")?;
        Ok(Item::Mutex(mutexes))
    }

    /// `i` or `i: u8`
    fn parameter(&mut self) -> Parse<Parameter> {
        let name = self.name("the name of a parameter")?;
        let wraps = match self.eat(TokenKind::Colon) {
            false => None,
            true => match self.integer_type() {
                Some(wraps) => Some(wraps),
                None => return Err(self.expected_with("a type", Some(TYPES.into()))),
            },
        };
        Ok(Parameter { name, wraps })
    }

    /// `fn acquire(i) { ... }`
    fn procedure(&mut self) -> Parse<Procedure> {
        let start = self.bump().span;
        let name = self.name("the name of the procedure")?;
        if is_built_in(&name.text) {
            let message = format!("`{}` is built in and cannot be declared", name.text);
            self.report(Diagnostic::new(name.span, message));
        }
        self.expect(TokenKind::OpenParenthesis, "`(` and the parameters")?;
        let mut parameters = Vec::new();
        while !self.at(TokenKind::CloseParenthesis) {
            parameters.push(self.parameter()?);
            if !self.eat(TokenKind::Comma) {
                break;
            }
        }
        self.expect(TokenKind::CloseParenthesis, "`,` or `)` after a parameter")?;
        if self.at(TokenKind::Foreign) && self.text_of(self.token().span) == "->" {
            let help = "a result has no type: `return e;` gives it back";
            self.expected_with("`{` after the parameters", Some(help.into()));
        }
        if !self.at(TokenKind::OpenBrace) {
            self.missing_brace("the parameters")?;
        }
        let body = self.block()?;
        Ok(Procedure { name, parameters, body, span: self.since(start) })
    }

    fn thread(&mut self) -> Parse<Thread> {
        let start = self.bump().span;
        let name = self.name("the name of the thread")?;
        let family = if self.eat(TokenKind::OpenBracket) {
            let index = self.name("the name of the index, as in `[i in 0..N]`")?;
            self.expect(TokenKind::Keyword(Keyword::In), "`in` and a range, as in `[i in 0..N]`")?;
            let range = self.range()?;
            self.expect(TokenKind::CloseBracket, "`]` after the range")?;
            Some((index, range))
        } else {
            None
        };
        if !self.at(TokenKind::OpenBrace) {
            self.missing_brace("the name of the thread")?;
        }
        let body = self.block()?;
        Ok(Thread { name, family, body, span: self.since(start) })
    }

    fn property(&mut self, keyword: Keyword) -> Parse<Property> {
        let start = self.bump().span;
        let named = matches!(self.peek(), TokenKind::Name | TokenKind::Keyword(_));
        let name = if named && self.peek_at(1) == TokenKind::Colon {
            let name = self.name("the name of the property")?;
            self.bump();
            Some(name)
        } else {
            None
        };
        let kind = match (keyword, self.peek()) {
            (Keyword::Forbid, _) => PropertyKind::Forbid,
            (Keyword::Invariant, _) => PropertyKind::Invariant,
            (_, TokenKind::Keyword(Keyword::Exists)) => PropertyKind::FinallyExists,
            (_, TokenKind::Keyword(Keyword::Never)) => PropertyKind::FinallyNever,
            (_, TokenKind::Keyword(Keyword::Forall)) => PropertyKind::FinallyForall,
            _ => {
                let help = "`finally exists f;` says that some final state satisfies `f`".to_string();
                return Err(self.expected_with("`exists`, `never` or `forall`", Some(help)));
            }
        };
        if keyword == Keyword::Finally {
            self.bump();
        }
        let binders = if self.at_binder() { self.binders()? } else { Vec::new() };
        let formula = self.expression()?;
        if name.is_none() && self.at(TokenKind::Name) && matches!(formula.kind, ExprKind::Place(_)) {
            let word = keyword.text();
            let help = format!("the name of a property is followed by a colon: `{word} NAME: formula;`");
            return Err(self.expected_with("`:` after the name", Some(help)));
        }
        self.semicolon("the formula")?;
        Ok(Property { name, kind, binders, formula, span: self.since(start) })
    }

    fn predicates(&mut self) -> Parse<Item> {
        let start = self.bump().span;
        self.expect(TokenKind::OpenBrace, "`{` after `predicates`")?;
        let mut formulas = Vec::new();
        while !matches!(self.peek(), TokenKind::CloseBrace | TokenKind::End) {
            formulas.push(self.expression()?);
            while self.eat(TokenKind::Comma) {
                formulas.push(self.expression()?);
            }
            self.semicolon("the predicates")?;
        }
        self.expect(TokenKind::CloseBrace, "`}` after the predicates")?;
        Ok(Item::Predicates(formulas, self.since(start)))
    }

    /// `p@label` or `p[0]@label`
    fn code_place(&mut self) -> Parse<Expr> {
        if !self.at(TokenKind::Name) {
            return Err(self.expected("a place, as in `p@label`"));
        }
        let atom = self.atom()?;
        if !matches!(atom.kind, ExprKind::At(..)) {
            return Err(self.expected("`@` and a label"));
        }
        Ok(atom)
    }
}
