//! The lexer: from text to preprocessing tokens (translation phases 1 to 3 of C11 5.1.1.2, without trigraphs).
//!
//! A backslash at the end of a line joins the line with the next one, also in the middle of a token; a comment is white space. Except for unclosed
//! comments, nothing is an error here: an unclosed quote is a token of kind [`Kind::Other`], since it may be in text that `#if` skips.

use fencewright_program::{FileId, Span};

use crate::error::Error;
use crate::token::{ExpansionId, Kind, Names, Symbol, Token};

/// Spellings of punctuators, longest first, each with the punctuator that it denotes; only for digraphs the two differ.
const PUNCTUATORS: [(&str, &str); 54] = [
    ("%:%:", "##"),
    ("<<=", "<<="),
    (">>=", ">>="),
    ("...", "..."),
    ("->", "->"),
    ("++", "++"),
    ("--", "--"),
    ("<<", "<<"),
    (">>", ">>"),
    ("<=", "<="),
    (">=", ">="),
    ("==", "=="),
    ("!=", "!="),
    ("&&", "&&"),
    ("||", "||"),
    ("*=", "*="),
    ("/=", "/="),
    ("%=", "%="),
    ("+=", "+="),
    ("-=", "-="),
    ("&=", "&="),
    ("^=", "^="),
    ("|=", "|="),
    ("##", "##"),
    ("<:", "["),
    (":>", "]"),
    ("<%", "{"),
    ("%>", "}"),
    ("%:", "#"),
    ("[", "["),
    ("]", "]"),
    ("(", "("),
    (")", ")"),
    ("{", "{"),
    ("}", "}"),
    (".", "."),
    ("&", "&"),
    ("*", "*"),
    ("+", "+"),
    ("-", "-"),
    ("~", "~"),
    ("!", "!"),
    ("/", "/"),
    ("%", "%"),
    ("<", "<"),
    (">", ">"),
    ("^", "^"),
    ("|", "|"),
    ("?", "?"),
    (":", ":"),
    (";", ";"),
    ("=", "="),
    (",", ","),
    ("#", "#"),
];

/// All tokens of a file, with a [`Kind::Newline`] at the end of each line; an error if a comment is not closed.
pub fn lex(text: &str, file: FileId, names: &mut Names) -> Result<Vec<Token>, Error> {
    lex_unless(text, file, names, &|| false)
}

/// Like [`lex`], but polls `stop` for every token.
pub fn lex_unless(
    text: &str,
    file: FileId,
    names: &mut Names,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<Token>, Error> {
    let mut lexer = Lexer { text: text.as_bytes(), at: 0, file, names, spelling: Vec::new() };
    let mut tokens = Vec::new();
    let newline = lexer.names.symbol("\n");
    let mut spaced = false;
    loop {
        let start = lexer.skip_splices(lexer.at);
        lexer.at = start;
        let Some(byte) = lexer.peek(0) else { break };
        if stop() {
            let span = lexer.token(Kind::Newline, newline, start, false).span;
            return Err(Error::new(span, "stopped while this was read"));
        }
        match byte {
            b'\n' => {
                lexer.bump();
                tokens.push(lexer.token(Kind::Newline, newline, start, false));
                spaced = false;
                continue;
            }
            b' ' | b'\t' | b'\r' | b'\x0b' | b'\x0c' => lexer.bump(),
            b'/' if lexer.peek(1) == Some(b'/') => {
                while lexer.peek(0).is_some_and(|b| b != b'\n') {
                    lexer.bump();
                }
            }
            b'/' if lexer.peek(1) == Some(b'*') => lexer.comment(start)?,
            _ => {
                let (kind, symbol) = lexer.lexeme();
                tokens.push(lexer.token(kind, symbol, start, spaced));
                spaced = false;
                continue;
            }
        }
        spaced = true;
    }
    if tokens.last().is_some_and(|last| last.kind != Kind::Newline) {
        let end = lexer.at;
        tokens.push(lexer.token(Kind::Newline, newline, end, false));
    }
    Ok(tokens)
}

/// The kind and symbol of the token that a spelling forms; `None` if the spelling is not exactly one token.
pub(crate) fn single(spelling: &str, names: &mut Names) -> Option<(Kind, Symbol)> {
    let tokens = lex(spelling, FileId::MAIN, names).ok()?;
    match tokens.as_slice() {
        [token, newline] if newline.kind == Kind::Newline => Some((token.kind, token.symbol)),
        _ => None,
    }
}

struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
    file: FileId,
    names: &'a mut Names,
    /// The characters of the token so far, without line splices.
    spelling: Vec<u8>,
}

impl Lexer<'_> {
    /// The offset of the first character at or after `at` that does not belong to a line splice (a backslash followed by a newline).
    fn skip_splices(&self, mut at: usize) -> usize {
        loop {
            match self.text.get(at..) {
                Some([b'\\', b'\n', ..]) => at += 2,
                Some([b'\\', b'\r', b'\n', ..]) => at += 3,
                _ => return at,
            }
        }
    }

    /// The n-th character from here, starting from 0; `None` beyond the end of the text.
    fn peek(&self, n: usize) -> Option<u8> {
        let mut at = self.skip_splices(self.at);
        for _ in 0..n {
            at = self.skip_splices(at + 1);
        }
        self.text.get(at).copied()
    }

    fn bump(&mut self) {
        self.at = self.skip_splices(self.at);
        self.spelling.extend(self.text.get(self.at));
        self.at += 1;
    }

    fn token(&self, kind: Kind, symbol: Symbol, start: usize, spaced: bool) -> Token {
        let span = Span::new(start, self.at).in_file(self.file);
        Token { kind, symbol, span, expansion: ExpansionId::default(), spaced, hidden: 0 }
    }

    fn comment(&mut self, start: usize) -> Result<(), Error> {
        self.bump();
        self.bump();
        while !(self.peek(0) == Some(b'*') && self.peek(1) == Some(b'/')) {
            if self.peek(0).is_none() {
                let open = Span::new(start, start + 2).in_file(self.file);
                return Err(Error::new(open, "this comment is never closed"));
            }
            self.bump();
        }
        self.bump();
        self.bump();
        Ok(())
    }

    /// The token at this position.
    fn lexeme(&mut self) -> (Kind, Symbol) {
        self.spelling.clear();
        let first = self.peek(0).expect("there is a character");
        let kind = match first {
            b'0'..=b'9' => self.number(),
            b'.' if self.peek(1).is_some_and(|b| b.is_ascii_digit()) => self.number(),
            b'\'' | b'"' => self.quoted(0),
            b'L' | b'U' if self.quote_at(1) => self.quoted(1),
            b'u' if self.quote_at(1) => self.quoted(1),
            b'u' if self.peek(1) == Some(b'8') && self.peek(2) == Some(b'"') => self.quoted(2),
            _ if is_name(first) => {
                while self.peek(0).is_some_and(|b| is_name(b) || b.is_ascii_digit()) {
                    self.bump();
                }
                Kind::Identifier
            }
            _ => return self.punctuator(),
        };
        let spelling = String::from_utf8_lossy(&self.spelling);
        (kind, self.names.symbol(&spelling))
    }

    fn quote_at(&self, n: usize) -> bool {
        matches!(self.peek(n), Some(b'\'' | b'"'))
    }

    fn number(&mut self) -> Kind {
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some(b'e' | b'E' | b'p' | b'P'), Some(b'+' | b'-')) => self.bump(),
                (Some(b), _) if is_name(b) || b.is_ascii_digit() || b == b'.' => {}
                _ => return Kind::Number,
            }
            self.bump();
        }
    }

    /// Consumes a character constant or string that has an encoding prefix of `prefix` characters. If its line ends before the closing quote, the
    /// token is only the prefix and the opening quote.
    fn quoted(&mut self, prefix: usize) -> Kind {
        let quote = self.peek(prefix).expect("a quote");
        (0..=prefix).for_each(|_| self.bump());
        let (opened, length) = (self.at, self.spelling.len());
        loop {
            match self.peek(0) {
                None | Some(b'\n') => {
                    (self.at, self.spelling) = (opened, self.spelling[..length].to_vec());
                    return Kind::Other;
                }
                Some(b'\\') if self.peek(1).is_some_and(|b| b != b'\n') => {
                    self.bump();
                    self.bump();
                }
                Some(b) => {
                    self.bump();
                    if b == quote {
                        return if quote == b'"' { Kind::String } else { Kind::Character };
                    }
                }
            }
        }
    }

    fn punctuator(&mut self) -> (Kind, Symbol) {
        let is_next = |spelling: &str| spelling.bytes().enumerate().all(|(n, b)| self.peek(n) == Some(b));
        let found = PUNCTUATORS.iter().find(|(spelling, _)| is_next(spelling));
        // The digraph `<:` is `[` also in `<::`: unlike C++, C has no exception for this case, because C has no `::`.
        match found {
            Some((spelling, meaning)) => {
                (0..spelling.len()).for_each(|_| self.bump());
                (Kind::Punctuator, self.names.symbol(meaning))
            }
            None => {
                self.bump();
                let spelling = String::from_utf8_lossy(&self.spelling);
                (Kind::Other, self.names.symbol(&spelling))
            }
        }
    }
}

/// Whether a name may start with this byte. Letters beyond ASCII are allowed, as in GNU C.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte == b'$' || byte >= 0x80
}
