//! The tokens of a memorax program, after macro expansion.
//!
//! Macros are expanded before parsing. The arguments of a call are expanded first and then substituted for the parameters, and the resulting body is
//! expanded in turn. Recursive macros are errors, and so is an expansion that exceeds the size limit.

use std::collections::HashMap;

use fencewright_fw::build::{NESTING_LIMIT, SIZE_LIMIT};
use fencewright_program::Span;
use fencewright_text::Diagnostic;

/// The kinds of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A word, reserved or not.
    Word,
    /// `$name`; the text is without the `$`.
    Register,
    /// Digits.
    Number,
    /// An operator or separator.
    Operator,
    /// The end of the text, after the last token.
    End,
}

/// A token with its position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    pub(super) span: Span,
    /// The number, from 1, of the macro in whose body the token was written; 0 outside macros. Spans are only joined within one body.
    pub(super) home: u32,
}

impl Token<'_> {
    /// The token, described for a message.
    pub(super) fn describe(&self) -> String {
        match self.kind {
            Kind::End => "the end of the file".to_owned(),
            Kind::Register => format!("`${}`", self.text),
            Kind::Word | Kind::Number | Kind::Operator => format!("`{}`", self.text),
        }
    }

    fn is_operator(&self, text: &str) -> bool {
        self.kind == Kind::Operator && self.text == text
    }
}

/// Words that cannot be labels, variables or macros.
pub(super) const RESERVED: &[&str] = &[
    "if",
    "then",
    "else",
    "while",
    "do",
    "read",
    "write",
    "syncwr",
    "syncrd",
    "fence",
    "ssfence",
    "llfence",
    "locked",
    "slocked",
    "cas",
    "goto",
    "true",
    "false",
    "my",
    "me",
    "other",
    "process",
    "not",
    "nop",
    "text",
    "data",
    "either",
    "or",
    "forbidden",
    "assume",
    "predicates",
    "registers",
];

/// The tokens of the text after macro expansion.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, Diagnostic> {
    let mut expander =
        Expander { macros: Vec::new(), by_name: HashMap::new(), active: Vec::new(), produced: 0 };
    let mut expanded = Vec::new();
    expander.expand(&scan(text)?, 0, &mut expanded)?;
    expanded.push(Token { kind: Kind::End, text: "", span: Span::new(text.len(), text.len()), home: 0 });
    Ok(expanded)
}

/// The tokens of the text before expansion. An unclosed comment extends to the end of the file, as in memorax.
fn scan(text: &str) -> Result<Vec<Token<'_>>, Diagnostic> {
    let bytes = text.as_bytes();
    let word_end = |from: usize| {
        let rest = bytes[from..].iter();
        from + rest.take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count()
    };
    let mut tokens = Vec::new();
    let mut at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    while at < bytes.len() {
        let rest = &text[at..];
        let (kind, from, to) = match bytes[at] {
            b if b.is_ascii_whitespace() || b == 0x0b => {
                at += 1;
                continue;
            }
            b'/' if rest.starts_with("/*") => {
                at = rest[2..].find("*/").map_or(bytes.len(), |length| at + 2 + length + 2);
                continue;
            }
            b'$' => {
                let end = word_end(at + 1);
                if end == at + 1 {
                    return Err(Diagnostic::new(
                        Span::new(at, end),
                        "a register needs a name directly after `$`",
                    ));
                }
                (Kind::Register, at + 1, end)
            }
            b if b.is_ascii_digit() => {
                let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
                (Kind::Number, at, at + digits)
            }
            b if b.is_ascii_alphabetic() || b == b'_' => (Kind::Word, at, word_end(at)),
            _ if [":=", "||", "&&", "!=", "<=", ">="].iter().any(|o| rest.starts_with(o)) => {
                (Kind::Operator, at, at + 2)
            }
            b'=' | b'(' | b')' | b',' | b'-' | b'*' | b';' | b':' | b'{' | b'}' | b'<' | b'>' | b'+'
            | b'[' | b']' | b'@' => (Kind::Operator, at, at + 1),
            _ => {
                let c = rest.chars().next().unwrap_or('?');
                let span = Span::new(at, at + c.len_utf8());
                return Err(Diagnostic::new(span, format!("unexpected character `{}`", c.escape_default())));
            }
        };
        tokens.push(Token { kind, text: &text[from..to], span: Span::new(at, to), home: 0 });
        at = to;
    }
    Ok(tokens)
}

struct Macro<'a> {
    /// The parameters by name, with their positions.
    parameters: HashMap<&'a str, usize>,
    body: Vec<Token<'a>>,
}

struct Expander<'a> {
    macros: Vec<Macro<'a>>,
    by_name: HashMap<&'a str, usize>,
    /// The macros whose bodies are being expanded.
    active: Vec<usize>,
    /// The number of tokens that macros have produced so far, including intermediate results.
    produced: usize,
}

impl<'a> Expander<'a> {
    /// Appends the expansion of `tokens` to `out`. Definitions are allowed only at depth 0, outside calls.
    fn expand(
        &mut self,
        tokens: &[Token<'a>],
        depth: usize,
        out: &mut Vec<Token<'a>>,
    ) -> Result<(), Diagnostic> {
        let mut at = 0;
        while let Some(&token) = tokens.get(at) {
            let names_macro = token.kind == Kind::Word && self.by_name.contains_key(token.text);
            if names_macro {
                at = self.call(tokens, at, depth, out)?;
            } else if starts_definition(&tokens[at..]) {
                if depth > 0 {
                    return Err(Diagnostic::new(
                        token.span,
                        "a macro cannot be defined inside a macro or its arguments",
                    ));
                }
                at = self.define(tokens, at)?;
            } else {
                out.push(token);
                at += 1;
            }
        }
        Ok(())
    }

    /// `macro NAME(a, b) ... endmacro`; returns the position after it.
    fn define(&mut self, tokens: &[Token<'a>], start: usize) -> Result<usize, Diagnostic> {
        let name = tokens[start + 1];
        if RESERVED.contains(&name.text) {
            return Err(Diagnostic::new(name.span, format!("`{}` is a reserved word", name.text)));
        }
        if self.by_name.contains_key(name.text) {
            return Err(Diagnostic::new(name.span, format!("macro `{}` is defined twice", name.text)));
        }
        let mut parameters = HashMap::new();
        let mut at = start + 3;
        if tokens.get(at).is_some_and(|t| t.is_operator(")")) {
            at += 1;
        } else {
            loop {
                match tokens.get(at) {
                    Some(t) if t.kind == Kind::Word => {
                        let place = parameters.len();
                        if parameters.insert(t.text, place).is_some() {
                            let message = format!("macro `{}` has two parameters `{}`", name.text, t.text);
                            return Err(Diagnostic::new(t.span, message));
                        }
                    }
                    t => {
                        return Err(unexpected(t.unwrap_or(&name), "expected the name of a macro parameter"));
                    }
                }
                at += 2;
                match tokens.get(at - 1) {
                    Some(t) if t.is_operator(",") => {}
                    Some(t) if t.is_operator(")") => break,
                    t => {
                        return Err(unexpected(
                            t.unwrap_or(&name),
                            "expected `,` or `)` after a macro parameter",
                        ));
                    }
                }
            }
        }
        let home = self.macros.len() as u32 + 1;
        let mut body = Vec::new();
        loop {
            let Some(token) = tokens.get(at) else {
                return Err(Diagnostic::new(name.span, format!("macro `{}` has no `endmacro`", name.text)));
            };
            if starts_definition(&tokens[at..]) {
                return Err(Diagnostic::new(
                    token.span,
                    "a macro cannot be defined inside a macro or its arguments",
                ));
            }
            at += 1;
            if token.kind == Kind::Word && token.text == "endmacro" {
                break;
            }
            body.push(Token { home, ..*token });
        }
        self.by_name.insert(name.text, self.macros.len());
        self.macros.push(Macro { parameters, body });
        Ok(at)
    }

    /// `NAME(argument, ...)`; returns the position after it.
    fn call(
        &mut self,
        tokens: &[Token<'a>],
        start: usize,
        depth: usize,
        out: &mut Vec<Token<'a>>,
    ) -> Result<usize, Diagnostic> {
        let name = tokens[start];
        let index = self.by_name[name.text];
        if self.active.contains(&index) {
            return Err(Diagnostic::new(name.span, format!("macro `{}` calls itself", name.text)));
        }
        if depth >= NESTING_LIMIT {
            return Err(Diagnostic::new(name.span, "macro calls are nested too deeply"));
        }
        let (arguments, after) = arguments(tokens, start)?;
        let expected = self.macros[index].parameters.len();
        if arguments.len() != expected {
            let message =
                format!("macro `{}` takes {expected} arguments, not {}", name.text, arguments.len());
            return Err(Diagnostic::new(name.span, message));
        }
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let mut value = Vec::new();
            self.expand(argument, depth + 1, &mut value)?;
            values.push(value);
        }
        let definition = &self.macros[index];
        let mut body = Vec::with_capacity(definition.body.len());
        for token in &definition.body {
            match definition.parameters.get(token.text) {
                Some(&p) if token.kind == Kind::Word => body.extend_from_slice(&values[p]),
                _ => body.push(*token),
            }
            if self.produced + body.len() > SIZE_LIMIT {
                let message = format!("macros expand to more than {SIZE_LIMIT} tokens");
                return Err(Diagnostic::new(name.span, message));
            }
        }
        // 1 is added for the call itself, so that calls of empty macros count too.
        self.produced += body.len() + 1;
        self.active.push(index);
        let expanded = self.expand(&body, depth + 1, out);
        self.active.pop();
        expanded.map(|()| after)
    }
}

fn starts_definition(tokens: &[Token<'_>]) -> bool {
    matches!(tokens, [m, name, open, ..]
        if m.kind == Kind::Word && m.text == "macro" && name.kind == Kind::Word && open.is_operator("("))
}

/// The arguments of the call whose name is at `start`, and the position after the closing bracket.
fn arguments<'t, 'a>(
    tokens: &'t [Token<'a>],
    start: usize,
) -> Result<(Vec<&'t [Token<'a>]>, usize), Diagnostic> {
    let name = tokens[start];
    if !tokens.get(start + 1).is_some_and(|t| t.is_operator("(")) {
        return Err(Diagnostic::new(
            name.span,
            format!("expected `(` after the name of macro `{}`", name.text),
        ));
    }
    let mut arguments = Vec::new();
    let (mut first, mut brackets) = (start + 2, 0_usize);
    for (at, token) in tokens.iter().enumerate().skip(start + 2) {
        if token.is_operator("(") {
            brackets += 1;
        } else if token.is_operator(")") && brackets > 0 {
            brackets -= 1;
        } else if brackets == 0 && (token.is_operator(")") || token.is_operator(",")) {
            let argument = &tokens[first..at];
            let last = token.is_operator(")");
            if last && argument.is_empty() && arguments.is_empty() {
                return Ok((arguments, at + 1));
            }
            if argument.is_empty() {
                return Err(Diagnostic::new(token.span, "an argument of a macro cannot be empty"));
            }
            arguments.push(argument);
            first = at + 1;
            if last {
                return Ok((arguments, first));
            }
        }
    }
    Err(Diagnostic::new(name.span, format!("the call of macro `{}` is not closed", name.text)))
}

fn unexpected(token: &Token<'_>, expected: &str) -> Diagnostic {
    Diagnostic::new(token.span, format!("{expected}, found {}", token.describe()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let shown = match tokens(text) {
            Ok(tokens) => {
                let texts: Vec<&str> = tokens.iter().map(|t| t.text).collect();
                texts.join(" ").trim_end().to_owned()
            }
            Err(diagnostic) => format!("error: {}", diagnostic.message),
        };
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn words_registers_numbers_operators() {
        check("L0:write: $r:=x-1 /* c */||<=", "L0 : write : r := x - 1 || <=");
        check("a /* never closed", "a");
        check("$ x", "error: a register needs a name directly after `$`");
        check("a ? b", "error: unexpected character `?`");
    }

    #[test]
    fn macros_expand() {
        check("macro m(a,b) b a b endmacro m(1,(2,3))", "( 2 , 3 ) 1 ( 2 , 3 )");
        check("macro n() x endmacro n() n()", "x x");
        check("macro m(a) a a endmacro m(m(1))", "1 1 1 1");
        check("macro a(x) b(x) endmacro macro b(x) x + endmacro a(1)", "1 +");
        check("macro : nop", "macro : nop");
    }

    #[test]
    fn bad_macros_are_errors() {
        check("macro m(a) a endmacro m(1,2)", "error: macro `m` takes 1 arguments, not 2");
        check("macro m(a) a endmacro m()", "error: macro `m` takes 1 arguments, not 0");
        check("macro m(a) a endmacro m(,)", "error: an argument of a macro cannot be empty");
        check("macro m(a) a endmacro m(1", "error: the call of macro `m` is not closed");
        check("macro m(a) a", "error: macro `m` has no `endmacro`");
        check("macro m() n() endmacro macro n() m() endmacro m()", "error: macro `m` calls itself");
        check(
            "macro m(a) macro n(b) b endmacro endmacro",
            "error: a macro cannot be defined inside a macro or its arguments",
        );
        check("macro m() endmacro macro m() endmacro", "error: macro `m` is defined twice");
        check("macro m(a,a) endmacro", "error: macro `m` has two parameters `a`");
        check("macro m() endmacro m", "error: expected `(` after the name of macro `m`");
    }

    #[test]
    fn macro_bombs_are_errors() {
        let mut bomb = "macro m0() x x x x x x x x x x endmacro ".to_owned();
        for level in 1..40 {
            let calls = format!("m{}() ", level - 1).repeat(10);
            bomb += &format!("macro m{level}() {calls} endmacro ");
        }
        check(&(bomb + "m39()"), "error: macros expand to more than 1000000 tokens");
        let nested = format!("macro m(a) a endmacro {}1{}", "m(".repeat(200), ")".repeat(200));
        check(&nested, "error: macro calls are nested too deeply");
    }

    #[test]
    fn empty_macro_bombs_are_errors() {
        let mut bomb = "macro m0() endmacro ".to_owned();
        for level in 1..40 {
            let calls = format!("m{}() ", level - 1).repeat(10);
            bomb += &format!("macro m{level}() {calls} endmacro ");
        }
        check(&(bomb + "m39()"), "error: macros expand to more than 1000000 tokens");
    }
}
