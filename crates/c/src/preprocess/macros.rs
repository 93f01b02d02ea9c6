//! Macro definitions (C11 6.10.3, with GNU's named variable arguments).

use std::rc::Rc;

use fencewright_program::Span;

use crate::error::Error;
use crate::token::{Kind, Symbol, Token};

use super::Words;

/// A macro definition, or a built-in macro.
#[derive(Clone, Debug)]
pub struct Macro {
    /// The name, as a token of the `#define`.
    pub name: Token,
    /// The parameters of a function-like macro; `None` for an object-like one.
    pub parameters: Option<Parameters>,
    /// The replacement list.
    pub body: Rc<[Token]>,
    /// The kind of a built-in macro that is computed at each use, such as `__LINE__`; `None` for other macros.
    pub computed: Option<Computed>,
    /// The position of the replacement list; `None` for a macro that is not defined in a file.
    pub written: Option<Span>,
}

/// A macro whose value depends on where it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Computed {
    /// `__LINE__`.
    Line,
    /// `__FILE__`.
    File,
    /// `__COUNTER__`.
    Counter,
}

/// The parameters of a function-like macro.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// The names; the last one may stand for all variable arguments.
    pub names: Vec<Symbol>,
    /// Whether the last name stands for all variable arguments.
    pub variadic: bool,
}

impl Macro {
    /// Whether another definition is equivalent, so that the redefinition is allowed (C11 6.10.3 p. 2).
    pub fn says_the_same(&self, other: &Macro) -> bool {
        let alike = |(n, (a, b)): (usize, (&Token, &Token))| {
            a.kind == b.kind && a.symbol == b.symbol && (n == 0 || a.spaced == b.spaced)
        };
        self.parameters == other.parameters
            && self.computed == other.computed
            && self.body.len() == other.body.len()
            && self.body.iter().zip(&*other.body).enumerate().all(alike)
    }

    /// Parses the tokens after `#define`.
    pub fn define(line: &[Token], define: Token, words: &Words) -> Result<Macro, Error> {
        let name = match line.first() {
            Some(name) if name.kind == Kind::Identifier => *name,
            Some(other) => return Err(Error::new(other.span, "expected the name of a macro")),
            None => return Err(Error::new(define.span, "expected the name of a macro after `define`")),
        };
        if name.is(words.defined) {
            return Err(Error::new(name.span, "`defined` cannot be the name of a macro"));
        }
        // A parenthesis starts parameters only if no white space precedes it.
        let (parameters, body) = match line.get(1) {
            Some(open) if open.is(words.open) && !open.spaced => {
                let (parameters, length) = Parameters::parse(&line[2..], *open, words)?;
                (Some(parameters), &line[2 + length..])
            }
            _ => (None, &line[1..]),
        };
        let misplaced =
            |token: &Token| Error::new(token.span, "`##` joins two tokens, so it cannot stand at an end");
        if let (Some(first), Some(last)) = (body.first(), body.last()) {
            let at_an_end = [first, last].into_iter().find(|token| token.is(words.paste));
            at_an_end.map_or(Ok(()), |token| Err(misplaced(token)))?;
        }
        if let Some(parameters) = &parameters {
            for (n, token) in body.iter().enumerate().filter(|(_, token)| token.is(words.hash)) {
                let is_parameter = |next: &Token| {
                    next.kind == Kind::Identifier
                        && (parameters.names.contains(&next.symbol) || next.is(words.va_opt))
                };
                if !body.get(n + 1).is_some_and(is_parameter) {
                    return Err(Error::new(token.span, "`#` must be followed by a parameter of the macro"));
                }
            }
        }
        let written = body.first().zip(body.last()).map(|(first, last)| first.span.to(last.span));
        Ok(Macro { name, parameters, body: body.into(), computed: None, written })
    }
}

impl Parameters {
    /// Parses the parameters after an opening parenthesis. Also returns the number of tokens consumed, including the closing parenthesis.
    fn parse(line: &[Token], open: Token, words: &Words) -> Result<(Self, usize), Error> {
        let mut found = Parameters { names: Vec::new(), variadic: false };
        let mut n = 0;
        let unclosed = || Error::new(open.span, "this list of parameters is never closed");
        loop {
            let token = line.get(n).ok_or_else(unclosed)?;
            n += 1;
            if token.is(words.close) && found.names.is_empty() {
                return Ok((found, n));
            } else if token.is(words.dots) {
                found.names.push(words.va_args);
                found.variadic = true;
            } else if token.kind == Kind::Identifier {
                if found.names.contains(&token.symbol) {
                    return Err(Error::new(token.span, "two parameters with the same name"));
                }
                found.names.push(token.symbol);
                if line.get(n).is_some_and(|next| next.is(words.dots)) {
                    found.variadic = true;
                    n += 1;
                }
            } else {
                return Err(Error::new(token.span, "expected the name of a parameter"));
            }
            let next = line.get(n).ok_or_else(unclosed)?;
            n += 1;
            if next.is(words.close) {
                return Ok((found, n));
            }
            if !next.is(words.comma) || found.variadic {
                return Err(Error::new(next.span, "expected `)` or another parameter"));
            }
        }
    }

    /// The number of the parameter that a token names; `None` if it names none.
    pub fn position(&self, token: &Token) -> Option<usize> {
        let named = |name: &Symbol| token.kind == Kind::Identifier && *name == token.symbol;
        self.names.iter().position(named)
    }
}
