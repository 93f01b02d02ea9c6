//! From tokens to a syntax tree: the parser itself, with its error recovery, and everything that stands at the top
//! level. Statements are in [`super::statement`], expressions in [`super::expression`].
//!
//! An error is reported where it is found and unwinds to the statement or item around it as [`Reported`]; there
//! the parser skips to where the next one begins. So one run reports all independent errors, each of them once.

use std::cell::OnceCell;
use std::collections::HashSet;

use fencewright_program::{BinaryOp, Numbers, Span};

use super::lexer::{self, Lexed, MAX_DIAGNOSTICS, MAX_TOKENS, clip, lex};
use super::slips;
use super::token::{Keyword, Token, TokenKind};
use crate::ast::*;
use crate::diagnostic::Diagnostic;

/// How deep blocks and expressions may be nested in each other.
pub(super) const MAX_NESTING: usize = 100;

/// Reads a file. The tree is complete if there are no diagnostics; otherwise it holds what could be understood.
pub fn parse(text: &str) -> (File, Vec<Diagnostic>) {
    let Lexed { tokens, diagnostics, .. } = lex(text, MAX_TOKENS);
    parse_tokens(text, &tokens, diagnostics)
}

/// Reads a file that is tokens already; `diagnostics` are those of the lexer.
pub(super) fn parse_tokens(
    text: &str,
    tokens: &[Token],
    diagnostics: Vec<Diagnostic>,
) -> (File, Vec<Diagnostic>) {
    let reported = diagnostics.iter().map(|d| d.span.start).collect();
    let mut parser = Parser {
        text,
        tokens,
        position: 0,
        nesting: 0,
        inner_depth: 0,
        diagnostics,
        reported,
        line_breaks: OnceCell::new(),
    };
    let file = parser.file();
    let mut diagnostics = parser.diagnostics;
    diagnostics.sort_by_key(|d| d.span.start);
    (file, diagnostics)
}

/// An error that has been reported.
#[derive(Debug)]
pub(super) struct Reported;

/// What a parsing function gives.
pub(super) type Parse<T> = Result<T, Reported>;

/// The tokens that are left, and the errors so far.
pub(super) struct Parser<'a> {
    text: &'a str,
    tokens: &'a [Token],
    position: usize,
    pub(super) nesting: usize,
    /// The depth of the deepest expression that was finished inside the one at hand.
    pub(super) inner_depth: usize,
    diagnostics: Vec<Diagnostic>,
    /// Where errors were reported: one place has one error.
    reported: HashSet<u32>,
    /// Where lines end; found out when a message first needs to know.
    line_breaks: OnceCell<Vec<u32>>,
}

/// Looking at tokens.
impl<'a> Parser<'a> {
    pub(super) fn token(&self) -> Token {
        self.tokens[self.position]
    }

    pub(super) fn peek(&self) -> TokenKind {
        self.token().kind
    }

    /// The token `ahead` of this one, or the end.
    pub(super) fn peek_at(&self, ahead: usize) -> TokenKind {
        self.tokens.get(self.position + ahead).map_or(TokenKind::End, |t| t.kind)
    }

    pub(super) fn at(&self, kind: TokenKind) -> bool {
        self.peek() == kind
    }

    pub(super) fn at_keyword(&self, keyword: Keyword) -> bool {
        self.at(TokenKind::Keyword(keyword))
    }

    /// Takes a token; the end is never passed.
    pub(super) fn bump(&mut self) -> Token {
        let token = self.token();
        if token.kind != TokenKind::End {
            self.position += 1;
        }
        token
    }

    pub(super) fn eat(&mut self, kind: TokenKind) -> bool {
        let there = self.at(kind);
        if there {
            self.bump();
        }
        there
    }

    pub(super) fn eat_keyword(&mut self, keyword: Keyword) -> bool {
        self.eat(TokenKind::Keyword(keyword))
    }

    pub(super) fn text_of(&self, span: Span) -> &'a str {
        &self.text[span.start as usize..span.end as usize]
    }

    /// The end of the token taken last.
    pub(super) fn previous_end(&self) -> Span {
        let end = self.position.checked_sub(1).map_or(0, |previous| self.tokens[previous].span.end);
        Span { start: end, end }
    }

    /// From the start of `span` to the end of the token taken last.
    pub(super) fn since(&self, span: Span) -> Span {
        span.to(self.previous_end())
    }

    /// Whether this token is the first one on its line.
    pub(super) fn first_on_line(&self) -> bool {
        let gap = self.previous_end().end as usize..self.token().span.start as usize;
        self.position == 0 || self.text[gap].contains('\n')
    }

    /// Whether one of the next tokens on this line is a `{`, and nothing before it ends a statement.
    fn brace_follows(&self) -> bool {
        self.tokens[self.position..]
            .iter()
            .take(50)
            .take_while(|t| !matches!(t.kind, TokenKind::Semicolon | TokenKind::CloseBrace | TokenKind::End))
            .find(|t| t.kind == TokenKind::OpenBrace)
            .is_some_and(|brace| {
                let from = self.token().span.start as usize;
                !self.text[from..brace.span.start as usize].contains('\n')
            })
    }
}

/// Errors and recovery.
impl Parser<'_> {
    pub(super) fn report(&mut self, diagnostic: Diagnostic) -> Reported {
        if self.reported.insert(diagnostic.span.start) {
            self.diagnostics.push(diagnostic);
        }
        if self.diagnostics.len() >= MAX_DIAGNOSTICS {
            self.position = self.tokens.len() - 1;
        }
        Reported
    }

    /// The next token in words.
    pub(super) fn found(&self) -> String {
        match self.token() {
            Token { kind: TokenKind::End, .. } => "the end of the file".into(),
            Token { kind: TokenKind::Keyword(_), span } => format!("the keyword `{}`", self.text_of(span)),
            Token { span, .. } => format!("`{}`", clip(self.text_of(span))),
        }
    }

    /// Reports that something else was expected here.
    pub(super) fn expected(&mut self, what: &str) -> Reported {
        self.expected_with(what, None)
    }

    /// Reports that something else was expected here, with advice.
    pub(super) fn expected_with(&mut self, what: &str, help: Option<String>) -> Reported {
        let token = self.token();
        if token.kind == TokenKind::Unknown {
            return Reported;
        }
        let help = help.or_else(|| {
            let foreign = token.kind == TokenKind::Foreign;
            foreign.then(|| slips::foreign_operator(self.text_of(token.span), None))
        });
        let message = format!("expected {what}, found {}", self.found());
        self.report(Diagnostic { help, ..Diagnostic::new(token.span, message) })
    }

    pub(super) fn expect(&mut self, kind: TokenKind, what: &str) -> Parse<Token> {
        if self.at(kind) { Ok(self.bump()) } else { Err(self.expected(what)) }
    }

    /// The `;` after something. Where it is missing at the end of a line, the line is taken to end there.
    pub(super) fn semicolon(&mut self, after: &str) -> Parse<()> {
        if self.eat(TokenKind::Semicolon) {
            return Ok(());
        }
        let ends = self.first_on_line() || matches!(self.peek(), TokenKind::CloseBrace | TokenKind::End);
        if !ends || matches!(self.peek(), TokenKind::Unknown | TokenKind::Foreign) {
            return Err(self.expected(&format!("`;` after {after}")));
        }
        let message = format!("expected `;` after {after}, found {}", self.found());
        self.report(Diagnostic::new(self.previous_end(), message).label("`;` is missing here"));
        Ok(())
    }

    /// A name that is declared or meant. A keyword in its place is reported and taken for a name.
    pub(super) fn name(&mut self, what: &str) -> Parse<Name> {
        match self.peek() {
            TokenKind::Name => {}
            TokenKind::Keyword(keyword) if !(keyword.begins_item() && self.first_on_line()) => {
                self.keyword_as_name(keyword);
            }
            _ => return Err(self.expected(what)),
        }
        let span = self.bump().span;
        Ok(Name { text: self.text_of(span).to_owned(), span })
    }

    pub(super) fn keyword_as_name(&mut self, keyword: Keyword) -> Reported {
        let text = keyword.text();
        let message = format!("`{text}` is a keyword and cannot be used as a name");
        self.report(Diagnostic::new(self.token().span, message).help(format!("another name would be `{text}_`")))
    }

    /// One level deeper; the caller takes the level back when it is done. After an error, those who recover do.
    pub(super) fn enter(&mut self) -> Parse<()> {
        if self.nesting >= MAX_NESTING {
            return Err(self.too_deep(self.token().span));
        }
        self.nesting += 1;
        Ok(())
    }

    pub(super) fn too_deep(&mut self, span: Span) -> Reported {
        self.report(Diagnostic::new(span, "this is nested too deeply").help("give a part of it a name of its own"))
    }

    /// Skips to the next item.
    fn skip_item(&mut self) {
        let mut depth = 0_usize;
        loop {
            match self.peek() {
                TokenKind::End => return,
                TokenKind::Keyword(k) if k.begins_only_items() && (depth == 0 || self.first_on_line()) => return,
                TokenKind::Keyword(Keyword::Const) if depth == 0 => return,
                TokenKind::OpenBrace => depth += 1,
                TokenKind::CloseBrace => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.bump();
        }
    }

    /// Skips a `{` and everything up to the `}` that belongs to it.
    pub(super) fn skip_braces(&mut self) {
        let mut depth = 0_usize;
        loop {
            match self.bump().kind {
                TokenKind::End => return,
                TokenKind::OpenBrace => depth += 1,
                TokenKind::CloseBrace => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return;
            }
        }
    }

    /// Where a `{` should be and is not: reports it, and goes to the next `{` if there is one on the line.
    pub(super) fn missing_brace(&mut self, after: &str) -> Parse<()> {
        let help = "a body stands in braces: `{ ... }`";
        let reported = self.expected_with(&format!("`{{` after {after}"), Some(help.into()));
        if !self.brace_follows() {
            return Err(reported);
        }
        while !self.at(TokenKind::OpenBrace) {
            self.bump();
        }
        Ok(())
    }

    /// The line on which an offset stands, counted from 1.
    pub(super) fn line_of(&self, span: Span) -> usize {
        let breaks = self.line_breaks.get_or_init(|| {
            let breaks = self.text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
            breaks.map(|(offset, _)| Span::new(offset, offset).start).collect()
        });
        breaks.partition_point(|&offset| offset < span.start) + 1
    }
}

/// The top level.
impl Parser<'_> {
    fn file(&mut self) -> File {
        let mut items = Vec::new();
        while !self.at(TokenKind::End) {
            let before = self.position;
            match self.item() {
                Ok(item) => items.push(item),
                Err(Reported) => {
                    self.nesting = 0;
                    if self.position == before {
                        self.bump();
                    }
                    self.skip_item();
                }
            }
        }
        File { items }
    }

    fn item(&mut self) -> Parse<Item> {
        let start = self.token().span;
        let TokenKind::Keyword(keyword) = self.peek() else {
            return Err(self.no_item());
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
            Keyword::Thread => self.thread().map(Item::Thread),
            Keyword::Forbid | Keyword::Invariant | Keyword::Finally => self.property(keyword).map(Item::Property),
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

    /// Reports what stands where an item should.
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
            TokenKind::Keyword(Keyword::Var) => Some("variables of all threads are declared with `shared`".into()),
            TokenKind::Keyword(keyword) if keyword.begins_statement() => {
                Some("statements stand inside a thread: `thread NAME { ... }`".into())
            }
            _ => None,
        };
        self.expected_with("a declaration, a thread or a property", help)
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

    /// `=`, or what others write for it.
    pub(super) fn assign_sign(&mut self, what: &str) -> Parse<()> {
        let foreign = self.at(TokenKind::Foreign) && self.text_of(self.token().span) == ":=";
        if foreign || self.at(TokenKind::Operator(BinaryOp::Eq)) {
            let help = if foreign { slips::foreign_operator(":=", None) } else { "`==` compares, `=` assigns".into() };
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
            let diagnostic = Diagnostic::new(self.token().span, "variables have no type of their own")
                .help(format!("write `{word} x;`; `numbers nat;` at the top level makes all numbers natural"));
            self.report(diagnostic);
            self.bump();
        }
        let mut declarators = vec![self.declarator(registers)?];
        while self.eat(TokenKind::Comma) {
            declarators.push(self.declarator(registers)?);
        }
        if self.at_keyword(Keyword::Open) {
            let help = "`open` stands directly after the size of an array: `mem[64] open`";
            return Err(self.expected_with("`,` or `;`", Some(help.into())));
        }
        Ok(declarators)
    }

    fn declarator(&mut self, register: bool) -> Parse<Declarator> {
        let name = self.name("the name of a variable")?;
        let bracket = self.token().span;
        let size = if self.eat(TokenKind::OpenBracket) {
            if register {
                let diagnostic = Diagnostic::new(bracket, "a register cannot be an array")
                    .help("arrays are declared with `shared` at the top level");
                self.report(diagnostic);
            }
            let size = self.array_size()?;
            self.expect(TokenKind::CloseBracket, "`]` after the size of the array")?;
            Some(size)
        } else {
            None
        };
        let open = size.is_some() && self.eat_keyword(Keyword::Open);
        let range = if self.eat(TokenKind::Colon) { Some(self.range()?) } else { None };
        let initial = matches!(
            self.peek(),
            TokenKind::Assign | TokenKind::Foreign | TokenKind::Operator(BinaryOp::Eq)
        );
        let init = if initial {
            self.assign_sign("`=` and the initial value")?;
            Some(self.initial()?)
        } else {
            None
        };
        let span = self.since(name.span);
        Ok(Declarator { name, size, open, range, init, span })
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

    /// `in low..high`, or nothing.
    pub(super) fn optional_range(&mut self) -> Parse<Option<RangeExpr>> {
        if self.eat_keyword(Keyword::In) { self.range().map(Some) } else { Ok(None) }
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

/// A number token as a value; `negative` if a minus sign stands directly before it.
pub(super) fn number(text: &str, negative: bool) -> Option<i64> {
    match lexer::number_value(text) {
        lexer::NumberValue::Fits(value) if negative => 0_i64.checked_sub_unsigned(value),
        lexer::NumberValue::Fits(value) => i64::try_from(value).ok(),
        lexer::NumberValue::TooLarge => None,
        lexer::NumberValue::Malformed => Some(0),
    }
}
