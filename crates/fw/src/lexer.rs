//! The lexer. Comments are kept separately, for the formatter.

use fencewright_program::{BinaryOp, Span};
use fencewright_text::diagnostic::MAX_DIAGNOSTICS;
use fencewright_text::{Diagnostic, Stop};

use super::token::{Keyword, Token, TokenKind};

/// Maximum number of tokens of a file, which bounds the memory of its syntax tree.
pub const MAX_TOKENS: usize = 2_000_000;

/// The result of lexing a text.
#[derive(Clone, Debug)]
pub struct Lexed {
    /// The tokens. The last token, and no other, is [`TokenKind::End`].
    pub tokens: Vec<Token>,
    /// The spans of the comments, in order, without white space at the end of a `//` comment.
    pub comments: Vec<Span>,
    /// Lexical errors.
    pub diagnostics: Vec<Diagnostic>,
}

/// The tokens of a text: at most `limit` of them, and [`TokenKind::End`].
pub fn lex(text: &str, limit: usize) -> Lexed {
    lex_unless(&Stop::never(), text, limit)
}

/// The same as [`lex`], but if `stop` asks to stop, the remaining tokens are missing.
pub(super) fn lex_unless(stop: &Stop<'_>, text: &str, limit: usize) -> Lexed {
    let mut lexer =
        Lexer { text, position: 0, tokens: Vec::new(), comments: Vec::new(), diagnostics: Vec::new() };
    if u32::try_from(text.len()).is_err() {
        // The offsets into a text of this size do not fit the 32 bits of a span.
        lexer.diagnostics.push(Diagnostic::new(Span::default(), "the file is too large: 4 GiB or more"));
        lexer.text = "";
    }
    lexer.run(limit, stop);
    Lexed { tokens: lexer.tokens, comments: lexer.comments, diagnostics: lexer.diagnostics }
}

/// The value of a number token.
pub enum NumberValue {
    /// A number that fits 64 bits.
    Fits(u64),
    /// A number that needs more than 64 bits.
    TooLarge,
    /// Not a number; the lexer has reported that.
    Malformed,
}

/// The value of the text of a number token.
pub fn number_value(text: &str) -> NumberValue {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return NumberValue::Malformed;
    }
    u64::from_str_radix(digits, radix).map_or(NumberValue::TooLarge, NumberValue::Fits)
}

struct Lexer<'a> {
    text: &'a str,
    position: usize,
    tokens: Vec<Token>,
    comments: Vec<Span>,
    diagnostics: Vec<Diagnostic>,
}

impl Lexer<'_> {
    fn run(&mut self, limit: usize, stop: &Stop<'_>) {
        loop {
            self.skip_white_space();
            let start = self.position;
            let Some(first) = self.rest().chars().next() else { break };
            if self.diagnostics.len() >= MAX_DIAGNOSTICS || stop.now() {
                break;
            }
            if self.rest().starts_with("//") || self.rest().starts_with("/*") {
                self.comment();
                continue;
            }
            if self.tokens.len() >= limit {
                let message = format!("the file is too long: more than {limit} words and signs");
                self.diagnostics.push(Diagnostic::new(Span::new(start, start), message));
                break;
            }
            let kind = match first {
                '0'..='9' => self.number(),
                '"' => self.text(),
                '_' => self.word(),
                _ if first.is_alphabetic() => self.word(),
                _ => self.sign().unwrap_or_else(|| self.unknown()),
            };
            self.tokens.push(Token { kind, span: Span::new(start, self.position) });
        }
        let end = self.position;
        self.tokens.push(Token { kind: TokenKind::End, span: Span::new(end, end) });
    }

    fn rest(&self) -> &str {
        &self.text[self.position..]
    }

    /// Skips characters that satisfy a condition.
    fn skip_while(&mut self, such: impl Fn(char) -> bool) {
        let rest = self.rest();
        self.position += rest.find(|c| !such(c)).unwrap_or(rest.len());
    }

    // Skips blanks, tabs and line ends. Other kinds of white space may be invisible, so they are reported as unknown characters.
    fn skip_white_space(&mut self) {
        self.skip_while(|c| matches!(c, ' ' | '\t' | '\r' | '\n'));
    }

    fn comment(&mut self) {
        let start = self.position;
        let rest = self.rest();
        let length = if rest.starts_with("//") {
            rest.find('\n').map_or(rest, |end| &rest[..end]).trim_end().len()
        } else if let Some(end) = rest[2..].find("*/") {
            2 + end + 2
        } else {
            let length = rest.len();
            let diagnostic = Diagnostic::new(Span::new(start, start + 2), "this comment does not end")
                .help("a comment that begins with `/*` ends with `*/`");
            self.diagnostics.push(diagnostic);
            length
        };
        self.position += length;
        self.comments.push(Span::new(start, self.position));
    }

    fn word(&mut self) -> TokenKind {
        let start = self.position;
        self.skip_while(|c| c == '_' || c.is_alphanumeric());
        let word = &self.text[start..self.position];
        if !word.is_ascii() {
            let message = format!("`{}` is not a name", clip(word));
            let diagnostic = Diagnostic::new(Span::new(start, self.position), message)
                .help("names are made of the letters `a` to `z` and `A` to `Z`, digits and `_`");
            self.diagnostics.push(diagnostic);
        }
        Keyword::from_text(word).map_or(TokenKind::Name, TokenKind::Keyword)
    }

    fn number(&mut self) -> TokenKind {
        let start = self.position;
        self.skip_while(|c| c == '_' || c.is_alphanumeric());
        let mut rest = self.rest().chars();
        let fraction = rest.next() == Some('.') && rest.next().is_some_and(|c| c.is_ascii_digit());
        if fraction {
            self.position += 1;
            self.skip_while(|c| c == '_' || c.is_alphanumeric());
        }
        let number = &self.text[start..self.position];
        if matches!(number_value(number), NumberValue::Malformed) {
            let message = format!("`{}` is not a number", clip(number));
            let help = if fraction {
                "numbers are whole"
            } else {
                "numbers are decimal, as `42`, or hexadecimal, as `0x2a`; names do not begin with a digit"
            };
            self.diagnostics.push(Diagnostic::new(Span::new(start, self.position), message).help(help));
        }
        TokenKind::Number
    }

    /// `"..."`, on one line; a backslash escapes a quote or a backslash.
    fn text(&mut self) -> TokenKind {
        let start = self.position;
        self.position += 1;
        let mut escaped = false;
        let end = self.rest().char_indices().find(|&(_, c)| {
            let ends = c == '\n' || c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let closed = end.filter(|&(_, c)| c == '"');
        self.position += closed.map(|(at, _)| at + 1).or(end.map(|(at, _)| at)).unwrap_or(self.rest().len());
        if closed.is_none() {
            let diagnostic = Diagnostic::new(Span::new(start, start + 1), "this text does not end")
                .help("a text stands between two `\"` on one line; a `\"` inside it is written `\\\"`");
            self.diagnostics.push(diagnostic);
        }
        TokenKind::Text
    }

    fn sign(&mut self) -> Option<TokenKind> {
        use TokenKind::*;
        // Longer operators precede their prefixes, because the first match is taken.
        const SIGNS: &[(&str, TokenKind)] = &[
            ("..=", DotDotEqual),
            ("...", Foreign),
            ("..", DotDot),
            (".", Dot),
            ("&&", Operator(BinaryOp::And)),
            ("||", Operator(BinaryOp::Or)),
            ("==", Operator(BinaryOp::Eq)),
            ("!=", Operator(BinaryOp::Ne)),
            ("<=", Operator(BinaryOp::Le)),
            (">=", Operator(BinaryOp::Ge)),
            (":=", Foreign),
            ("++", Foreign),
            ("+=", Foreign),
            ("-=", Foreign),
            ("*=", Foreign),
            ("/=", Foreign),
            ("%=", Foreign),
            ("&=", Foreign),
            ("|=", Foreign),
            ("^=", Foreign),
            ("<<=", Foreign),
            (">>=", Foreign),
            ("<<", Operator(BinaryOp::Shl)),
            (">>", Operator(BinaryOp::Shr)),
            ("<>", Foreign),
            ("=<", Foreign),
            ("=>", Foreign),
            ("->", Foreign),
            ("<", Operator(BinaryOp::Lt)),
            (">", Operator(BinaryOp::Gt)),
            ("|", Operator(BinaryOp::BitOr)),
            ("^", Operator(BinaryOp::BitXor)),
            ("&", Operator(BinaryOp::BitAnd)),
            ("+", Operator(BinaryOp::Add)),
            ("-", Operator(BinaryOp::Sub)),
            ("*", Operator(BinaryOp::Mul)),
            ("/", Operator(BinaryOp::Div)),
            ("%", Operator(BinaryOp::Rem)),
            ("!", Not),
            ("~", Tilde),
            ("=", Assign),
            (";", Semicolon),
            (",", Comma),
            (":", Colon),
            ("?", Question),
            ("@", At),
            ("(", OpenParenthesis),
            (")", CloseParenthesis),
            ("[", OpenBracket),
            ("]", CloseBracket),
            ("{", OpenBrace),
            ("}", CloseBrace),
        ];
        let &(sign, kind) = SIGNS.iter().find(|(sign, _)| self.rest().starts_with(sign))?;
        self.position += sign.len();
        Some(kind)
    }

    /// A run of unknown characters, reported as one error.
    fn unknown(&mut self) -> TokenKind {
        let start = self.position;
        self.position += self.rest().chars().next().map_or(0, char::len_utf8);
        self.skip_while(|c| !c.is_ascii() && !c.is_alphabetic() || is_unknown_ascii(c));
        let characters = &self.text[start..self.position];
        let noun = if characters.chars().nth(1).is_none() { "character" } else { "characters" };
        let message = format!("unexpected {noun} `{}`", clip(characters));
        self.diagnostics.push(Diagnostic::new(Span::new(start, self.position), message));
        TokenKind::Unknown
    }
}

fn is_unknown_ascii(c: char) -> bool {
    c.is_ascii_control() && !matches!(c, '\t' | '\r' | '\n') || "#$'\\`".contains(c)
}

/// The value of a string literal: without its quotes, and with quotes and backslashes unescaped.
pub fn text_value(token: &str) -> String {
    let inside = token.strip_prefix('"').unwrap_or(token);
    let inside = inside.strip_suffix('"').unwrap_or(inside);
    let mut value = String::with_capacity(inside.len());
    let mut rest = inside.chars().peekable();
    while let Some(c) = rest.next() {
        match rest.peek() {
            Some(&next @ ('"' | '\\')) if c == '\\' => {
                value.push(next);
                rest.next();
            }
            _ => value.push(c),
        }
    }
    value
}

/// Truncates source text for a message.
pub fn clip(text: &str) -> String {
    match text.char_indices().nth(40) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}
