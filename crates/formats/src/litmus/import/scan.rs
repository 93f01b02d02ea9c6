//! The sections and tokens of a litmus test.

use std::ops::Range;

use fencewright_program::Span;
use fencewright_text::Diagnostic;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Word,
    /// Decimal or hexadecimal digits, without a sign.
    Number,
    /// Anything else: one character, or one of the longer operators.
    Symbol,
    End,
}

/// A token and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    pub(super) span: Span,
}

impl Token<'_> {
    /// How an error message calls it.
    pub(super) fn describe(&self) -> String {
        match self.kind {
            Kind::End => "the end".to_owned(),
            Kind::Word | Kind::Number | Kind::Symbol => format!("`{}`", self.text),
        }
    }
}

/// A place in a part of the text.
#[derive(Clone, Copy)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    pub(super) at: usize,
    end: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str, range: Range<usize>) -> Self {
        Scanner { text, at: range.start, end: range.end }
    }

    pub(super) fn peek(&self) -> Token<'a> {
        let text = &self.text[self.at..self.end];
        let rest = text.trim_start();
        let start = self.at + text.len() - rest.len();
        let count = |f: fn(char) -> bool| rest.len() - rest.trim_start_matches(f).len();
        let starts_word = |c: char| c.is_ascii_alphabetic() || c == '_';
        // Compilers write their own labels with a dot: `.L3`.
        let dotted = rest.strip_prefix('.').is_some_and(|name| name.starts_with(starts_word));
        let (kind, length) = match rest.chars().next() {
            None => (Kind::End, 0),
            Some(c) if dotted || starts_word(c) => {
                (Kind::Word, count(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.'))
            }
            Some('0') if rest.starts_with("0x") || rest.starts_with("0X") => {
                let digits = rest[2..].trim_start_matches(|c: char| c.is_ascii_hexdigit());
                (Kind::Number, rest.len() - digits.len())
            }
            Some(c) if c.is_ascii_digit() => (Kind::Number, count(|c| c.is_ascii_digit())),
            Some(c) => {
                let long = ["/\\", "\\/", "<>", "!=", "==", "=>", "<<", ">>"];
                let length = if long.iter().any(|s| rest.starts_with(s)) { 2 } else { c.len_utf8() };
                (Kind::Symbol, length)
            }
        };
        Token { kind, text: &rest[..length], span: Span::new(start, start + length) }
    }

    pub(super) fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at = token.span.end as usize;
        token
    }

    pub(super) fn is(&self, text: &str) -> bool {
        let token = self.peek();
        token.kind != Kind::End && token.text == text
    }

    pub(super) fn accept(&mut self, text: &str) -> bool {
        let found = self.is(text);
        if found {
            self.next();
        }
        found
    }

    pub(super) fn expect(&mut self, text: &str) -> Result<Token<'a>, Diagnostic> {
        if self.is(text) { Ok(self.next()) } else { Err(self.expected(&format!("`{text}`"))) }
    }

    pub(super) fn expected(&self, what: &str) -> Diagnostic {
        let token = self.peek();
        Diagnostic::new(token.span, format!("expected {what}, found {}", token.describe()))
    }

    /// A number of 64 bits, signed or not, with an optional `$` and sign. Names of locations as values are errors.
    pub(super) fn value(&mut self) -> Result<i128, Diagnostic> {
        let start = self.peek().span;
        self.accept("$");
        let negative = self.accept("-");
        let token = self.peek();
        if token.kind == Kind::Word || token.text == "&" {
            return Err(Diagnostic::new(start.to(token.span), "addresses as values are not supported"));
        }
        if token.kind != Kind::Number {
            return Err(self.expected("a number"));
        }
        self.next();
        let magnitude = match token.text.strip_prefix("0x").or_else(|| token.text.strip_prefix("0X")) {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => token.text.parse(),
        };
        let value = magnitude.map(|m| if negative { -i128::from(m) } else { i128::from(m) });
        value.ok().filter(|value| *value >= i128::from(i64::MIN)).ok_or_else(|| {
            Diagnostic::new(token.span, format!("{} is not a number of 64 bits", token.describe()))
        })
    }
}

/// The sections of a test. Positions are those of the original text.
pub(super) struct Sections {
    /// The text with every comment turned into blanks.
    pub(super) text: String,
    pub(super) name: Option<String>,
    /// Between the braces.
    pub(super) init: Range<usize>,
    /// Rows of the program, each a list of cells; the first row names the threads.
    pub(super) rows: Vec<Vec<Range<usize>>>,
    /// From behind the program to the end.
    pub(super) rest: Range<usize>,
    /// Whether this is an `X86_64` test.
    pub(super) is_64: bool,
}

/// Splits a test into its sections.
pub(super) fn sections(original: &str) -> Result<Sections, Diagnostic> {
    let text = without_comments(original)?;
    let mut scanner = Scanner::new(&text, 0..text.len());
    scanner.accept("\u{feff}");
    let architecture = scanner.next();
    if !matches!(architecture.text, "X86" | "X86_64") {
        let message = format!("expected `X86` or `X86_64`, found {}", architecture.describe());
        return Err(Diagnostic::new(architecture.span, message).help("only x86 litmus tests can be read"));
    }
    let line_end = |from: usize| text[from..].find('\n').map_or(text.len(), |n| from + n);
    let header_end = line_end(scanner.at);
    let name = text[scanner.at..header_end].split_whitespace().next().map(str::to_owned);

    let open = find_init(&text, header_end).or_else(|| text[scanner.at..].find('{').map(|n| scanner.at + n));
    let missing = |what: &str| Diagnostic::new(Span::new(text.len(), text.len()), what.to_owned());
    let open = open.ok_or_else(|| missing("the test has no initial state `{ ... }`"))?;
    let close = closing(&text, open);
    let close =
        close.ok_or_else(|| Diagnostic::new(Span::new(open, open + 1), "this brace is never closed"))?;

    let mut scanner = Scanner::new(&text, close + 1..text.len());
    scanner.accept(";");
    let mut rows = Vec::new();
    while scanner.peek().kind != Kind::End && !starts_condition(scanner) {
        let start = scanner.at;
        let Some(length) = row_length(&text, start) else {
            let span = scanner.peek().span;
            return Err(Diagnostic::new(span, "this row of the program has no `;` at its end"));
        };
        let mut cells = Vec::new();
        let mut at = start;
        for cell in text[start..start + length].split('|') {
            cells.push(at..at + cell.len());
            at += cell.len() + 1;
        }
        rows.push(cells);
        scanner.at = start + length + 1;
    }
    let rest = scanner.at..text.len();
    let is_64 = architecture.text == "X86_64";
    Ok(Sections { init: open + 1..close, name, rows, rest, is_64, text })
}

/// The brace that closes the one here.
fn closing(text: &str, open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text[open..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(open + at);
        }
    }
    None
}

/// The distance to the `;` that ends the row. The `;` in `LOCK ; INC [x]` does not end a row.
pub(crate) fn row_length(text: &str, start: usize) -> Option<usize> {
    let mut from = start;
    loop {
        let at = from + text[from..].find(';')?;
        let cell = text[start..at].rsplit([';', '|', ':']).next().unwrap_or("").trim();
        let after = Scanner::new(text, at + 1..text.len());
        let ends = !cell.eq_ignore_ascii_case("lock")
            || matches!(after.peek().text, "" | ";" | "|")
            || starts_condition(after);
        if ends {
            return Some(at - start);
        }
        from = at + 1;
    }
}

/// The first brace that starts a line: the lines before it are free text.
fn find_init(text: &str, from: usize) -> Option<usize> {
    let mut at = from;
    for line in text[from..].split_inclusive('\n') {
        let blanks = line.len() - line.trim_start().len();
        if line[blanks..].starts_with('{') {
            return Some(at + blanks);
        }
        at += line.len();
    }
    None
}

/// Whether the part behind the program starts here.
fn starts_condition(mut scanner: Scanner<'_>) -> bool {
    let first = scanner.next();
    match first.text {
        "exists" | "forall" | "final" | "filter" | "locations" | "~" | "with" | "<<" => true,
        "not" => scanner.is("exists"),
        _ => false,
    }
}

/// The text with comments `(* ... *)`, which nest, turned into blanks of the same length. Strings hold no comments.
fn without_comments(text: &str) -> Result<String, Diagnostic> {
    let bytes = text.as_bytes();
    let mut clean = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        if text[at..].starts_with("(*") {
            let open = at;
            let mut depth = 0_usize;
            loop {
                match bytes.get(at..at + 2) {
                    None => {
                        return Err(Diagnostic::new(
                            Span::new(open, open + 2),
                            "this comment is never closed",
                        ));
                    }
                    Some(b"(*") => (at, depth) = (at + 2, depth + 1),
                    Some(b"*)") => (at, depth) = (at + 2, depth - 1),
                    Some(_) => at += 1,
                }
                if depth == 0 {
                    break;
                }
            }
            clean.extend(bytes[open..at].iter().map(|&b| if b == b'\n' { '\n' } else { ' ' }));
            continue;
        }
        let mut length = c.len_utf8();
        if c == '"' {
            let line = text[at + 1..].split('\n').next().unwrap_or("");
            length += line.find('"').map_or(0, |n| n + 1);
        }
        clean.push_str(&text[at..at + length]);
        at += length;
    }
    Ok(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_become_blanks() {
        let check = |text, expected: Option<&str>| {
            assert_eq!(without_comments(text).ok().as_deref(), expected, "{text}");
        };
        check("a(*b*)c", Some("a     c"));
        check("(*x(*y*)\n*)z", Some("        \n  z"));
        check("\"(*\" é", Some("\"(*\" é"));
        check("(* é *)", Some("        "));
        check("(*)", None);
        check("(*", None);
    }

    #[test]
    fn values() {
        let check = |text: &str, expected: Result<i128, &str>| {
            let value = Scanner::new(text, 0..text.len()).value();
            assert_eq!(value.map_err(|d| d.message), expected.map_err(str::to_owned), "{text}");
        };
        check("$1", Ok(1));
        check(" -0x1F", Ok(-31));
        check("x", Err("addresses as values are not supported"));
        check("0x", Err("`0x` is not a number of 64 bits"));
        check("99999999999999999999", Err("`99999999999999999999` is not a number of 64 bits"));
        check("0xffffffffffffffff", Ok(u64::MAX.into()));
        check("-9223372036854775808", Ok(i64::MIN.into()));
        check("-9223372036854775809", Err("`9223372036854775809` is not a number of 64 bits"));
        check("", Err("expected a number, found the end"));
    }
}
