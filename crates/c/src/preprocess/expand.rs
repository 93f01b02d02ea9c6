//! Macro expansion (C11 6.10.3.1 to 6.10.3.4).

use std::rc::Rc;

use fencewright_program::Span;

use super::macros::{Computed, Macro, Parameters};
use super::{Expansion, Preprocessor};
use crate::error::Error;
use crate::lexer::single;
use crate::token::{ExpansionId, Kind, Token};

/// Maximum number of tokens that all macro expansions together may produce. Without this limit, the expansions of a few short definitions could
/// exceed the memory.
const MOST_TOKENS: usize = 1 << 22;
/// Maximum nesting depth of macros in arguments of macros.
const DEEPEST: usize = 200;

impl Preprocessor<'_> {
    /// Expands the macros in a list of tokens.
    pub(super) fn expand(&mut self, tokens: &[Token], depth: usize) -> Result<Vec<Token>, Error> {
        let mut input: Vec<Token> = tokens.iter().rev().copied().collect();
        let mut output = Vec::new();
        while let Some(token) = input.pop() {
            let used = match token.kind {
                Kind::Identifier => self.meant(token),
                _ => None,
            };
            let Some(used) = used.filter(|_| !self.hidden.contains(token.hidden, token.symbol)) else {
                output.push(token);
                continue;
            };
            let replaced = match &used.parameters {
                None => self.object(&used, token)?,
                Some(_) if !input.last().is_some_and(|next| next.is(self.words.open)) => {
                    output.push(token);
                    continue;
                }
                Some(parameters) => self.call(&used, parameters, token, &mut input, depth)?,
            };
            self.spend(replaced.len() + 1, token)?;
            let first = replaced.first().map(|first| Token { spaced: token.spaced, ..*first });
            input.extend(replaced.iter().skip(1).rev());
            input.extend(first);
        }
        Ok(output)
    }

    /// Adds to the count of tokens that macro expansions have produced; an error if there are too many, or if `stop` returns true.
    fn spend(&mut self, tokens: usize, token: Token) -> Result<(), Error> {
        self.spent += tokens;
        if self.spent > MOST_TOKENS {
            let message = format!("macros stand for more than {MOST_TOKENS} tokens");
            let span = self.outermost(token);
            return Err(Error::new(span, message).help("macros that use themselves twice grow without end"));
        }
        if (self.stop)() {
            return Err(Error::new(token.span, "stopped while macros were replaced"));
        }
        Ok(())
    }

    fn expansion(&mut self, used: &Macro, token: Token, last: Token) -> ExpansionId {
        let (at, inside) = (token.span, token.expansion);
        // If the closing parenthesis comes from another expansion than the macro name, the use has no contiguous position, so its position is that of
        // the name.
        let whole =
            if last.expansion == inside && at.start <= last.span.start { at.to(last.span) } else { at };
        let outermost = match inside.index() {
            Some(n) => self.expansions[n].outermost,
            None => self.expansions.len() as u32,
        };
        let expansion =
            Expansion { name: used.name.symbol, at, whole, body: used.written, inside, outermost };
        self.expansions.push(expansion);
        ExpansionId(self.expansions.len() as u32)
    }

    /// Expands an object-like macro.
    fn object(&mut self, used: &Macro, token: Token) -> Result<Vec<Token>, Error> {
        let expansion = self.expansion(used, token, token);
        if let Some(computed) = used.computed {
            return Ok(vec![Token { expansion, ..self.compute(computed, token) }]);
        }
        let hidden = self.hidden.with(token.hidden, used.name.symbol);
        self.substitute(used, &[], expansion, hidden, 0)
    }

    fn compute(&mut self, computed: Computed, token: Token) -> Token {
        let at = self.outermost(token);
        let (kind, spelling) = match computed {
            Computed::Line => (Kind::Number, self.files.line(at).to_string()),
            Computed::File => (Kind::String, quoted(&self.files.name(at.file))),
            Computed::Counter => {
                self.counter += 1;
                (Kind::Number, (self.counter - 1).to_string())
            }
        };
        Token { kind, symbol: self.names.symbol(&spelling), ..token }
    }

    /// The position in the text of the name of the outermost macro whose use produced a token; for other tokens their own position.
    fn outermost(&self, token: Token) -> Span {
        let outer = token.expansion.index().map(|n| self.expansions[n].outermost as usize);
        outer.map_or(token.span, |n| self.expansions[n].at)
    }

    /// Expands a function-like macro. Its arguments are the next tokens of `input`, which is stored in reverse.
    fn call(
        &mut self,
        used: &Macro,
        parameters: &Parameters,
        token: Token,
        input: &mut Vec<Token>,
        depth: usize,
    ) -> Result<Vec<Token>, Error> {
        input.pop();
        let mut arguments: Vec<Vec<Token>> = vec![Vec::new()];
        let mut nested = 0;
        let close = loop {
            let Some(next) = input.pop() else {
                let message =
                    format!("the arguments of `{}` are never closed", self.names.spelling(used.name.symbol));
                return Err(Error::new(self.outermost(token), message));
            };
            let rest = parameters.variadic && arguments.len() == parameters.names.len();
            if next.is(self.words.close) && nested == 0 {
                break next;
            } else if next.is(self.words.comma) && nested == 0 && !rest {
                arguments.push(Vec::new());
                continue;
            }
            nested += usize::from(next.is(self.words.open));
            nested -= usize::from(next.is(self.words.close));
            arguments.last_mut().expect("one at least").push(next);
        };
        let given = arguments.len();
        if given == 1 && parameters.names.is_empty() && arguments[0].is_empty() {
            arguments.clear();
        } else if parameters.variadic && given + 1 == parameters.names.len() {
            // GNU C: if there are no variable arguments, the comma before them may be omitted.
            arguments.push(Vec::new());
        }
        if arguments.len() != parameters.names.len() {
            let name = self.names.spelling(used.name.symbol);
            let wanted = parameters.names.len();
            let message = format!("`{name}` takes {wanted} arguments, and here are {given}");
            return Err(Error::new(self.outermost(token), message));
        }
        if depth > DEEPEST {
            return Err(Error::new(
                self.outermost(token),
                "macros in arguments of macros are nested too deeply",
            ));
        }
        let expansion = self.expansion(used, token, close);
        let common = self.hidden.intersection(token.hidden, close.hidden);
        let hidden = self.hidden.with(common, used.name.symbol);
        self.substitute(used, &arguments, expansion, hidden, depth)
    }

    /// The replacement list of a macro with arguments substituted for parameters; `#` and `##` are evaluated.
    fn substitute(
        &mut self,
        used: &Macro,
        arguments: &[Vec<Token>],
        expansion: ExpansionId,
        hidden: u32,
        depth: usize,
    ) -> Result<Vec<Token>, Error> {
        let none = Parameters { names: Vec::new(), variadic: false };
        let parameters = used.parameters.as_ref().unwrap_or(&none);
        // Argument tokens that the caller wrote are attributed to this macro use; those that other macro uses produced keep their attribution.
        let inside = expansion.index().map_or(expansion, |n| self.expansions[n].inside);
        let mut result: Vec<Token> = Vec::new();
        let mut expanded: Vec<Option<Rc<[Token]>>> = vec![None; arguments.len()];
        let body = self.with_optional(&used.body, parameters, arguments)?;
        let mut n = 0;
        while let Some(&token) = body.get(n) {
            let own = Token { expansion, ..token };
            let function_like = used.parameters.is_some();
            if function_like && token.is(self.words.hash) && n + 1 < body.len() {
                let position = parameters.position(&body[n + 1]).expect("checked when it was defined");
                let text = self.text_of(&arguments[position]);
                result.push(Token { kind: Kind::String, symbol: self.names.symbol(&text), ..own });
                n += 2;
                continue;
            }
            if token.is(self.words.paste) && n > 0 && n + 1 < body.len() {
                n += 1;
                self.paste(&mut result, &body[n], own, parameters, arguments)?;
                n += 1;
                continue;
            }
            let before_paste = body.get(n + 1).is_some_and(|next| next.is(self.words.paste));
            match parameters.position(&token) {
                // Operands of `##` are not expanded before they are pasted.
                Some(position) if before_paste => {
                    let argument = &arguments[position];
                    let space = |(m, t): (usize, &Token)| Token {
                        spaced: if m == 0 { token.spaced } else { t.spaced },
                        ..*t
                    };
                    match argument.is_empty() {
                        true => result.push(Token { kind: Kind::Placemarker, ..own }),
                        false => result.extend(argument.iter().enumerate().map(space)),
                    }
                }
                Some(position) => {
                    let argument = match &expanded[position] {
                        Some(known) => known.clone(),
                        None => {
                            let tokens: Rc<[Token]> = self.expand(&arguments[position], depth + 1)?.into();
                            expanded[position] = Some(tokens.clone());
                            tokens
                        }
                    };
                    self.spend(argument.len(), own)?;
                    let mut first = true;
                    for part in argument.iter() {
                        let outer = if part.expansion == inside { expansion } else { part.expansion };
                        let spaced = if first { token.spaced } else { part.spaced };
                        result.push(Token { expansion: outer, spaced, ..*part });
                        first = false;
                    }
                }
                None => result.push(own),
            }
            n += 1;
        }
        result.retain(|token| token.kind != Kind::Placemarker);
        for token in &mut result {
            token.hidden = self.hidden.union(token.hidden, hidden);
        }
        Ok(result)
    }

    /// Pastes the last token of the result with the next token of the body or, if that is a parameter, with the argument for it.
    fn paste(
        &mut self,
        result: &mut Vec<Token>,
        right: &Token,
        paste: Token,
        parameters: &Parameters,
        arguments: &[Vec<Token>],
    ) -> Result<(), Error> {
        let position = parameters.position(right);
        let own = [Token { expansion: paste.expansion, ..*right }];
        let right: &[Token] = position.map_or(&own, |position| &arguments[position]);
        let last_parameter = parameters.variadic && position == Some(parameters.names.len() - 1);
        let comma = result.last().is_some_and(|left| left.is(self.words.comma));
        if last_parameter && comma {
            // GNU C: `, ## __VA_ARGS__` drops the comma if there are no variable arguments, and otherwise pastes nothing.
            match right.is_empty() {
                true => _ = result.pop(),
                false => result.extend(right),
            }
            return Ok(());
        }
        let Some((first, rest)) = right.split_first() else { return Ok(()) };
        let left = result.pop().filter(|left| left.kind != Kind::Placemarker);
        let Some(left) = left else {
            result.extend(right);
            return Ok(());
        };
        let spelling = format!("{}{}", self.names.spelling(left.symbol), self.names.spelling(first.symbol));
        let Some((kind, symbol)) = single(&spelling, &mut self.names) else {
            return Err(Error::new(paste.span, format!("`##` makes `{spelling}`, which is not one token")));
        };
        let hidden = self.hidden.intersection(left.hidden, first.hidden);
        result.push(Token { kind, symbol, hidden, ..left });
        result.extend(rest);
        Ok(())
    }

    /// The body with `__VA_OPT__(...)` replaced by the contents of its parentheses, or by nothing if there are no variable arguments.
    fn with_optional(
        &mut self,
        body: &Rc<[Token]>,
        parameters: &Parameters,
        arguments: &[Vec<Token>],
    ) -> Result<Rc<[Token]>, Error> {
        if !parameters.variadic || !body.iter().any(|token| token.is(self.words.va_opt)) {
            return Ok(body.clone());
        }
        let some = arguments.last().is_some_and(|last| !last.is_empty());
        let (mut result, mut n) = (Vec::new(), 0);
        while let Some(&token) = body.get(n) {
            n += 1;
            if !token.is(self.words.va_opt) || !body.get(n).is_some_and(|next| next.is(self.words.open)) {
                result.push(token);
                continue;
            }
            let mut nested = 0;
            loop {
                let Some(next) = body.get(n) else {
                    return Err(Error::new(token.span, "`__VA_OPT__` is never closed"));
                };
                nested += usize::from(next.is(self.words.open));
                nested -= usize::from(next.is(self.words.close));
                n += 1;
                let outer = next.is(self.words.open) && nested == 1 || nested == 0;
                result.extend((some && !outer).then_some(*next));
                if nested == 0 {
                    break;
                }
            }
        }
        Ok(result.into())
    }

    /// The string that `#` makes of an argument.
    fn text_of(&self, argument: &[Token]) -> String {
        let mut text = String::from("\"");
        for (n, token) in argument.iter().enumerate() {
            let spelling = self.names.spelling(token.symbol);
            text.push_str(if n > 0 && token.spaced { " " } else { "" });
            match token.kind {
                Kind::String | Kind::Character => text.push_str(&escaped(spelling)),
                _ => text.push_str(spelling),
            }
        }
        text + "\""
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// A text as a C string literal.
fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text))
}
