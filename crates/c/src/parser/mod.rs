//! The parser: C11 (Annex A) with common extensions of GNU C, by recursive descent.
//!
//! After an error the parser resumes after the next `;` or `}`, so that one run reports several errors. The nesting depth and the number of operators
//! in a row are limited, because later passes process trees recursively.

mod attributes;
mod declaration;
mod expression;
mod linked;
mod specifiers;
mod statement;

use std::rc::Rc;

use linked::Linked;
use rustc_hash::FxHashMap;

use fencewright_program::Span;

use crate::ast::{
    Attributes, Definition, EnumerationId, Enumerator, Expr, Item, Name, Record, RecordId, Type, Unit,
};
use crate::error::Error;
use crate::preprocess::{Expansion, Origin, Preprocessed};
use crate::token::{ExpansionId, Kind, Names, Symbol, Token};

/// Maximum nesting depth, and maximum number of operators in a row.
const DEEPEST: u32 = 250;
/// Number of errors after which parsing stops.
const MOST_ERRORS: usize = 100;

/// The meaning of a name other than a tag, label or member: the parser only distinguishes types from all other names.
enum Meaning {
    /// A type name, with the nesting depth of its type after all type names in that type have been expanded. The depth is limited, because types are
    /// processed recursively.
    Type(Type, usize),
    /// The name of a variable, function or enumerator.
    Other,
}

/// The meaning of a tag.
#[derive(Clone, Copy)]
enum Tag {
    Record(RecordId),
    Enumeration(EnumerationId),
}

/// The names declared in one block.
#[derive(Default)]
struct Scope {
    names: FxHashMap<Symbol, Meaning>,
    tags: FxHashMap<Symbol, Tag>,
}

struct Parser<'a> {
    stop: &'a dyn Fn() -> bool,
    text: &'a Preprocessed,
    tokens: &'a [Token],
    at: usize,
    names: &'a Names,
    scopes: Vec<Scope>,
    records: Vec<Record>,
    /// For each structure or union in `records`, the origin of its definition.
    origins: Vec<Origin>,
    /// The structures and unions of source files.
    linked: Linked,
    /// For each name at file scope, the origin of the declaration that takes precedence.
    declared_by: FxHashMap<Symbol, Origin>,
    /// Enumerators of types parsed since the end of the last declaration.
    enumerators: Vec<Enumerator>,
    /// Structures and unions whose members were parsed since the end of the last declaration.
    defined: Vec<RecordId>,
    /// Conditions and messages of `_Static_assert` parsed since the end of the last declaration.
    assertions: Vec<(Expr, Option<String>)>,
    enumerations: u32,
    /// Attributes of the current construct.
    attributes: Attributes,
    errors: Vec<Error>,
    depth: u32,
    /// The greatest nesting depth among the types whose names were used since the start of the declaration.
    type_depth: usize,
    /// The position after the last token, for errors at the end of the file.
    end: Span,
}

/// The result of parsing one construct, or the error to report.
type Read<T> = Result<T, Error>;

/// Parses the output of the preprocessor.
pub fn parse(text: &Preprocessed) -> Result<Unit, Vec<Error>> {
    parse_unless(text, &|| false)
}

/// Like [`parse`], but calls `stop` for every item, every statement and every part of a list, and gives up when `stop` returns true.
pub fn parse_unless(text: &Preprocessed, stop: &dyn Fn() -> bool) -> Result<Unit, Vec<Error>> {
    let mut parser = Parser {
        stop,
        text,
        tokens: &[],
        at: 0,
        names: &text.names,
        scopes: vec![Scope::default()],
        records: Vec::new(),
        origins: Vec::new(),
        linked: Linked::default(),
        declared_by: FxHashMap::default(),
        enumerators: Vec::new(),
        defined: Vec::new(),
        assertions: Vec::new(),
        enumerations: 0,
        attributes: Attributes::default(),
        errors: Vec::new(),
        depth: 0,
        type_depth: 0,
        end: Span::default(),
    };
    let (mut items, mut ends, mut start) = (Vec::new(), Vec::new(), 0);
    for &end in &text.ends {
        parser.source(&text.tokens[start..end], &mut items).map_err(|stopped| vec![stopped])?;
        ends.push(items.len());
        start = end;
    }
    let Parser { records, enumerations, errors, linked: Linked { again, .. }, .. } = parser;
    match errors.is_empty() {
        true => Ok(Unit { items, ends, records, again, enumerations }),
        false => Err(errors),
    }
}

impl Parser<'_> {
    /// Calls `stop`; an error if the parser has to give up.
    fn go_on(&self) -> Read<()> {
        match (self.stop)() {
            true => Err(Error::new(self.span(), "stopped while this was read")),
            false => Ok(()),
        }
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    /// The spelling of the n-th token from here, if it is a name or a punctuator.
    fn word_at(&self, n: usize) -> &str {
        match self.tokens.get(self.at + n) {
            Some(token) if matches!(token.kind, Kind::Identifier | Kind::Punctuator) => {
                self.names.spelling(token.symbol)
            }
            _ => "",
        }
    }

    fn word(&self) -> &str {
        self.word_at(0)
    }

    fn is(&self, word: &str) -> bool {
        self.word() == word
    }

    fn takes(&mut self, word: &str) -> bool {
        let found = self.is(word);
        self.at += usize::from(found);
        found
    }

    /// Consumes the next token if its spelling is one of these. GNU C has several spellings of most keywords, such as `asm` and `__asm__`.
    fn takes_any(&mut self, words: &[&str]) -> bool {
        let found = words.contains(&self.word());
        self.at += usize::from(found);
        found
    }

    /// The position in the text of the next token or of the macro use that produced it; the end of the file if there is no next token.
    fn span(&self) -> Span {
        self.peek().map_or(self.end, |token| self.text.written(token))
    }

    fn expansion(&self) -> ExpansionId {
        self.peek().map_or(ExpansionId::default(), |token| token.expansion)
    }

    /// The span from `start` to the last token that was consumed.
    fn since(&self, start: Span) -> Span {
        match self.at.checked_sub(1).and_then(|last| self.tokens.get(last)) {
            Some(last) => match self.text.written(last) {
                last if last.file == start.file && last.end >= start.start => start.to(last),
                _ => start,
            },
            None => start,
        }
    }

    /// Whether text can be inserted before the n-th token: no macro use produced both this token and the token before it.
    fn is_between_uses(&self, n: usize) -> bool {
        let use_of = |n: usize| self.tokens.get(n).and_then(|token| self.text.outermost(token));
        use_of(n).is_none() || n.checked_sub(1).and_then(use_of) != use_of(n)
    }

    /// The position of the tokens from `first` to `last` in the definition of a macro, if a single expansion of the macro produced all these tokens.
    fn definition(&self, first: usize, last: usize) -> Option<Rc<Definition>> {
        let token = |n: usize| self.tokens.get(n);
        let (opens, ends) = (token(first)?, token(last)?);
        if opens.expansion.is_none() || ends.expansion.is_none() {
            return None;
        }
        let within: Vec<ExpansionId> = self.text.uses(ends).collect();
        let level = self.text.uses(opens).find(|id| within.contains(id))?;
        let body = self.text.expansions[level.index()?].body?;
        // The position of a token in the replacement list: its own position, or that of the nested macro use which produced it.
        let stands = |token: &Token| {
            let mut inner = None;
            for id in self.text.uses(token) {
                if id == level {
                    let span = inner.map_or(token.span, |n: usize| self.text.expansions[n].whole);
                    return Some((inner, span)).filter(|(_, span)| body.covers(*span));
                }
                inner = id.index();
            }
            None
        };
        let before = first.checked_sub(1).and_then(token).and_then(stands);
        let behind = token(last + 1).and_then(stands);
        let (brought_end, end) = stands(ends)?;
        // If the first token comes from a macro argument, the statement begins where the macro body has the parameter for this argument: right after
        // the token that precedes the statement.
        let (brought_start, start) = match (stands(opens), before) {
            (Some((brought, span)), _) => (brought, span.start),
            (None, Some((_, span))) => (None, self.text.next_in_body(body, span.end)?.start),
            (None, None) => return None,
        };
        let same = |one: Option<usize>, other: Option<(Option<usize>, Span)>| {
            one.is_some() && other.is_some_and(|(other, _)| other == one)
        };
        let starts = !same(brought_start, before);
        let ends = !same(brought_end, behind);
        let Expansion { name, whole: used, .. } = self.text.expansions[self.text.outermost(token(first)?)?];
        let (name, span) = (self.names.spelling(name).clone(), Span { start, ..end });
        (start < end.end).then(|| Rc::new(Definition { name, span, used, starts, ends }))
    }

    fn expected(&self, what: &str) -> Error {
        let found = match self.peek() {
            Some(token) => format!("`{}`", self.names.spelling(token.symbol).escape_debug()),
            None => "the end of the text".into(),
        };
        Error::new(self.span(), format!("expected {what}, found {found}"))
    }

    fn expect(&mut self, word: &str) -> Read<()> {
        match self.takes(word) {
            true => Ok(()),
            false => Err(self.expected(&format!("`{word}`"))),
        }
    }

    /// A name that is not a keyword.
    fn name(&mut self, what: &str) -> Read<Name> {
        match self.peek() {
            Some(token)
                if token.kind == Kind::Identifier && !is_keyword(self.names.spelling(token.symbol)) =>
            {
                let name =
                    Name { symbol: token.symbol, span: self.text.written(token), expansion: token.expansion };
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.expected(what)),
        }
    }

    /// Parses a construct that may contain itself, counting the depth.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.depth >= DEEPEST {
            return Err(Error::new(self.span(), format!("this is nested more than {DEEPEST} deep")));
        }
        self.depth += 1;
        let found = read(self);
        self.depth -= 1;
        found
    }

    /// Parses in a new scope.
    fn scoped<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        self.scopes.push(Scope::default());
        let found = read(self);
        self.scopes.pop();
        found
    }

    /// Resumes after the item that contains an error: after the next `;` or `}` outside braces, or at the end of the system header that contains the
    /// item.
    fn recover(&mut self, start: usize) {
        let mut open = 0usize;
        let error = self.at;
        self.at = start;
        let systems = |token: &Token| self.text.origin(self.text.written(token)) == Origin::System;
        let in_system = self.tokens.get(start).is_some_and(systems);
        while let Some(token) = self.peek() {
            if in_system && self.at > error && !systems(token) {
                return;
            }
            let word = if token.kind == Kind::Punctuator { &**self.names.spelling(token.symbol) } else { "" };
            self.at += 1;
            match word {
                "{" => open += 1,
                "}" => open = open.saturating_sub(1),
                _ => {}
            }
            if open == 0 && self.at > error && matches!(word, ";" | "}") {
                return;
            }
        }
    }

    /// Removes the item just parsed, and its errors, if all its tokens are from headers of the system. Only a use of the declared name is an error
    /// then.
    fn forget(&mut self, first: usize, errors: usize, items: &mut Vec<Item>) {
        let tokens = &self.tokens[first..self.at];
        if tokens.iter().all(|token| self.text.origin(self.text.written(token)) == Origin::System) {
            self.errors.truncate(errors);
            (self.enumerators, self.defined, self.assertions) = Default::default();
            // `items` contains the item only if the parser reached its end, that is, if all errors are in statements of its body.
            items.pop_if(|item| match item {
                Item::Function(function) => tokens.iter().any(|token| token.span == function.name.span),
                Item::Declaration(_) => false,
            });
        }
    }

    /// Declares a name at file scope or in a block. At file scope, an earlier declaration stays if its origin takes precedence over that of the new
    /// one.
    fn declare_again(&mut self, name: Name, meaning: Meaning) {
        if self.scopes.len() == 1 {
            let origin = self.text.origin(name.span);
            let before = *self.declared_by.entry(name.symbol).or_insert(origin);
            if before.precedes(origin) {
                return;
            }
            self.declared_by.insert(name.symbol, origin);
        }
        self.declare(name.symbol, meaning);
    }

    fn declare(&mut self, name: Symbol, meaning: Meaning) {
        self.scopes.last_mut().expect("there is always a scope").names.insert(name, meaning);
    }

    /// The type that a name denotes in the current scope, with its nesting depth; `None` if the name denotes no type.
    fn type_named(&self, name: Symbol) -> Option<(&Type, usize)> {
        match self.scopes.iter().rev().find_map(|scope| scope.names.get(&name))? {
            Meaning::Type(ty, depth) => Some((ty, *depth)),
            Meaning::Other => None,
        }
    }

    /// Skips a parenthesised part without interpreting it.
    fn skip_parentheses(&mut self) -> Read<()> {
        let opened = self.span();
        self.expect("(")?;
        let mut open = 1usize;
        while open > 0 {
            match self.word() {
                "(" => open += 1,
                ")" => open -= 1,
                _ if self.peek().is_none() => {
                    return Err(Error::new(opened, "this parenthesis is never closed"));
                }
                _ => {}
            }
            self.at += 1;
        }
        Ok(())
    }

    /// Adjacent strings, concatenated.
    fn string(&mut self) -> Read<String> {
        let mut text = String::new();
        let mut any = false;
        while let Some(token) = self.peek().copied().filter(|token| token.kind == Kind::String) {
            let spelling = self.names.spelling(token.symbol);
            let body = spelling.trim_start_matches(['L', 'u', 'U', '8']);
            let wide = body.len() < spelling.len();
            let units = crate::literal::units(&body[1..body.len() - 1], wide)
                .map_err(|why| Error::new(token.span, why))?;
            match wide {
                true => text.extend(units.into_iter().filter_map(char::from_u32)),
                false => {
                    let bytes: Vec<u8> = units.into_iter().map(|unit| unit as u8).collect();
                    text.push_str(&String::from_utf8_lossy(&bytes));
                }
            }
            self.at += 1;
            any = true;
        }
        if any { Ok(text) } else { Err(self.expected("a string")) }
    }
}

/// Whether a word is a keyword of C or GNU C, which cannot be used as a name.
fn is_keyword(word: &str) -> bool {
    matches!(
        word,
        "auto"
            | "break"
            | "case"
            | "char"
            | "const"
            | "continue"
            | "default"
            | "do"
            | "double"
            | "else"
            | "enum"
            | "extern"
            | "float"
            | "for"
            | "goto"
            | "if"
            | "inline"
            | "int"
            | "long"
            | "register"
            | "restrict"
            | "return"
            | "short"
            | "signed"
            | "sizeof"
            | "static"
            | "struct"
            | "switch"
            | "typedef"
            | "union"
            | "unsigned"
            | "void"
            | "volatile"
            | "while"
            | "_Alignas"
            | "_Alignof"
            | "_Atomic"
            | "_Bool"
            | "_Complex"
            | "_Generic"
            | "_Imaginary"
            | "_Noreturn"
            | "_Static_assert"
            | "_Thread_local"
            | "__thread"
            | "asm"
            | "__asm"
            | "__asm__"
            | "typeof"
            | "__typeof"
            | "__typeof__"
            | "__attribute__"
            | "__attribute"
            | "__extension__"
            | "__auto_type"
            | "__inline"
            | "__inline__"
            | "__volatile"
            | "__volatile__"
            | "__const"
            | "__const__"
            | "__restrict"
            | "__restrict__"
            | "__signed"
            | "__signed__"
            | "__alignof__"
            | "__alignof"
            | "_Float32"
            | "_Float64"
            | "_Float128"
            | "_Float32x"
            | "_Float64x"
            | "__float80"
            | "__float128"
            | "__complex__"
            | "__builtin_va_list"
            | "__builtin_offsetof"
            | "__builtin_types_compatible_p"
            | "__builtin_va_arg"
            | "__int128"
            | "__label__"
    )
}
