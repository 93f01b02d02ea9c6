//! The parser's state and its error recovery. The grammar is in [`super::item`], [`super::statement`] and [`super::expression`].
//!
//! An error is reported where it is found and propagates as [`Reported`] to the enclosing statement or item; there the parser skips to the start of
//! the next statement or item. So one run reports all independent errors, each of them once, up to a maximum number.

use std::cell::OnceCell;
use std::collections::HashSet;

use fencewright_program::Span;
use fencewright_text::diagnostic::MAX_DIAGNOSTICS;
use fencewright_text::{Diagnostic, Stop};

use super::lexer::{Lexed, MAX_TOKENS, clip, lex_unless};
use super::slips;
use super::token::{Keyword, Token, TokenKind};
use crate::ast::{File, Name};

/// Maximum nesting depth of blocks and expressions.
pub(super) const MAX_NESTING: usize = 100;

/// Parses a file. The tree is complete if there are no diagnostics; otherwise it contains the parts that could be parsed.
pub fn parse(text: &str) -> (File, Vec<Diagnostic>) {
    parse_unless(&Stop::never(), text)
}

/// The same as [`parse`], but if `stop` asks to stop, the result is meaningless.
pub fn parse_unless(stop: &Stop<'_>, text: &str) -> (File, Vec<Diagnostic>) {
    let Lexed { tokens, diagnostics, .. } = lex_unless(stop, text, MAX_TOKENS);
    parse_tokens(text, &tokens, diagnostics, stop)
}

/// Parses the tokens of a file; `diagnostics` are those of the lexer.
pub(super) fn parse_tokens(
    text: &str,
    tokens: &[Token],
    diagnostics: Vec<Diagnostic>,
    stop: &Stop<'_>,
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
        procedures: procedures(text, tokens),
        stop,
    };
    let file = parser.file();
    let mut diagnostics = parser.diagnostics;
    diagnostics.sort_by_key(|d| d.span.start);
    (file, diagnostics)
}

/// The names of all procedures: the names after `fn`.
fn procedures<'a>(text: &'a str, tokens: &[Token]) -> HashSet<&'a str> {
    let declared = tokens
        .windows(2)
        .filter(|pair| pair[0].kind == TokenKind::Keyword(Keyword::Fn) && pair[1].kind == TokenKind::Name);
    declared.map(|pair| &text[pair[1].span.range()]).collect()
}

/// An error that has been reported.
#[derive(Debug)]
pub(super) struct Reported;

/// The result of a parsing function.
pub(super) type Parse<T> = Result<T, Reported>;

/// The parser: the remaining tokens, and the errors so far.
pub(super) struct Parser<'a> {
    text: &'a str,
    tokens: &'a [Token],
    position: usize,
    pub(super) nesting: usize,
    /// The depth of the deepest expression that was completed inside the current one.
    pub(super) inner_depth: usize,
    diagnostics: Vec<Diagnostic>,
    /// The offsets where an error has been reported; further errors there are suppressed.
    reported: HashSet<u32>,
    /// Offsets of line ends, computed on demand.
    line_breaks: OnceCell<Vec<u32>>,
    /// The names of all procedures, wherever they are declared.
    pub(super) procedures: HashSet<&'a str>,
    stop: &'a Stop<'a>,
}

/// Access to tokens.
impl<'a> Parser<'a> {
    pub(super) fn token(&self) -> Token {
        self.tokens[self.position]
    }

    pub(super) fn peek(&self) -> TokenKind {
        self.token().kind
    }

    /// The kind of the token `ahead` positions later, or `End`.
    pub(super) fn peek_at(&self, ahead: usize) -> TokenKind {
        self.tokens.get(self.position + ahead).map_or(TokenKind::End, |t| t.kind)
    }

    pub(super) fn at(&self, kind: TokenKind) -> bool {
        self.peek() == kind
    }

    pub(super) fn at_keyword(&self, keyword: Keyword) -> bool {
        self.at(TokenKind::Keyword(keyword))
    }

    /// Consumes a token; never moves beyond the end.
    pub(super) fn bump(&mut self) -> Token {
        let token = self.token();
        if token.kind != TokenKind::End {
            // After `stop` asked to stop, the parser behaves as if the file ended here.
            self.position = if self.stop.now() { self.tokens.len() - 1 } else { self.position + 1 };
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
        &self.text[span.range()]
    }

    /// The empty span at the end of the token that was consumed last.
    pub(super) fn previous_end(&self) -> Span {
        let end = self.position.checked_sub(1).map_or(0, |previous| self.tokens[previous].span.end);
        self.token().span.point(end)
    }

    /// The span from the start of `span` to the end of the token that was consumed last.
    pub(super) fn since(&self, span: Span) -> Span {
        span.to(self.previous_end())
    }

    /// Whether the next token is the first one on its line.
    pub(super) fn first_on_line(&self) -> bool {
        let gap = self.previous_end().end as usize..self.token().span.start as usize;
        self.position == 0 || self.text[gap].contains('\n')
    }

    /// Whether the token after the next one is on the same line as the next one.
    pub(super) fn next_on_line(&self) -> bool {
        let next = self.tokens.get(self.position + 1).map_or(self.text.len(), |t| t.span.start as usize);
        !self.text[self.token().span.end as usize..next].contains('\n')
    }

    /// Whether a `{` follows on this line, before a token that ends a statement.
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

    /// The next token, described for a message.
    pub(super) fn found(&self) -> String {
        match self.token() {
            Token { kind: TokenKind::End, .. } => "the end of the file".into(),
            Token { kind: TokenKind::Keyword(_), span } => format!("the keyword `{}`", self.text_of(span)),
            Token { span, .. } => format!("`{}`", clip(self.text_of(span))),
        }
    }

    /// Reports that `what` was expected in place of the next token.
    pub(super) fn expected(&mut self, what: &str) -> Reported {
        self.expected_with(what, None)
    }

    /// The same as `expected`, with advice.
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

    /// Consumes `;`. If there is none and the line or the block ends here, a missing `;` is reported and parsing continues as if it were there.
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

    /// Consumes a name. A keyword in its place is reported and used as a name, unless it begins a line and may begin an item.
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
        self.report(
            Diagnostic::new(self.token().span, message).help(format!("another name would be `{text}_`")),
        )
    }

    /// Enters a nesting level. The caller decrements `nesting` when it leaves the level. If it returns an error instead, the function that recovers
    /// from the error resets `nesting`.
    pub(super) fn enter(&mut self) -> Parse<()> {
        if self.nesting >= MAX_NESTING {
            return Err(self.too_deep(self.token().span));
        }
        self.nesting += 1;
        Ok(())
    }

    pub(super) fn too_deep(&mut self, span: Span) -> Reported {
        self.report(
            Diagnostic::new(span, "this is nested too deeply").help("give a part of it a name of its own"),
        )
    }

    /// Skips to the next item.
    fn skip_item(&mut self) {
        let mut depth = 0_usize;
        loop {
            match self.peek() {
                TokenKind::End => return,
                TokenKind::Keyword(k) if k.begins_only_items() && (depth == 0 || self.first_on_line()) => {
                    return;
                }
                TokenKind::Keyword(Keyword::Const) if depth == 0 => return,
                TokenKind::Name if depth == 0 && self.first_on_line() && self.at_mutex() => return,
                TokenKind::OpenBrace => depth += 1,
                TokenKind::CloseBrace => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.bump();
        }
    }

    /// Skips a `{` and everything up to the matching `}`.
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

    /// Reports a missing `{`, and skips to the next `{` if there is one on the line.
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

    /// The line where a span starts, counted from 1.
    pub(super) fn line_of(&self, span: Span) -> usize {
        let breaks = self.line_breaks.get_or_init(|| {
            let breaks = self.text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
            breaks.map(|(offset, _)| Span::new(offset, offset).start).collect()
        });
        breaks.partition_point(|&offset| offset < span.start) + 1
    }
}

/// Top level.
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
}
