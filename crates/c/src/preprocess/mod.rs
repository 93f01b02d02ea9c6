//! The preprocessor: translation phase 4 of C11 (6.10), which executes directives and expands macros.
//!
//! The output is a list of tokens. Each token records the position of its characters and, if a macro produced it, the chain of macro uses, so that
//! messages and fences refer to the text that the user wrote.
//!
//! All text between two directives is expanded at once. Hence the arguments of a macro may not contain a directive; C leaves that undefined.

mod condition;
mod expand;
mod hidden;
mod macros;
mod words;

use std::rc::Rc;

use fencewright_program::{FileId, Span};
use rustc_hash::{FxHashMap, FxHashSet};

use self::hidden::HiddenSets;
use self::macros::{Computed, Macro};
use self::words::Words;
use crate::error::Error;
use crate::lexer::{lex, lex_unless};
use crate::token::{ExpansionId, Kind, Names, Symbol, Token};

/// Maximum nesting depth of included files.
const DEEPEST_INCLUDE: usize = 64;
/// Maximum number of tokens of all files together.
const MOST_TOKENS: usize = 1 << 23;

/// The form of an `#include` directive, which determines where its header is searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `#include "name"`.
    Quoted,
    /// `#include <name>`.
    Bracketed,
    /// `#include_next`, with quotes or brackets: the search starts after the folder in which the including file was found.
    Next,
}

/// The author of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// The user: source files, and included files that are neither model headers nor in folders of the system.
    #[default]
    User,
    /// Fencewright: the file is a model header.
    Model,
    /// The system: warnings about these files are suppressed, and declarations in model headers take precedence over theirs.
    System,
}

impl Origin {
    /// Whether a declaration of this origin takes precedence over one of another origin.
    pub fn precedes(self, other: Origin) -> bool {
        let rank = |origin| match origin {
            Origin::User => 2,
            Origin::Model => 1,
            Origin::System => 0,
        };
        rank(self) > rank(other)
    }
}

/// Says why an included file was not found, with advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The reason, as the second half of the error message.
    pub why: String,
    /// The command-line options with which the file might be found, if any.
    pub help: Option<String>,
}

impl From<String> for Missing {
    fn from(why: String) -> Self {
        Missing { why, help: None }
    }
}

/// A source file with the options that the command line gives for it.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// The file.
    pub file: FileId,
    /// `-D` and `-U`, in order: names, and replacements (`1` by default).
    pub macros: Vec<MacroOption>,
    /// The files that are included first, with the names given by `-include`.
    pub includes: Vec<String>,
}

/// An option for one macro.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MacroOption {
    /// `-D NAME` and `-D NAME=VALUE`.
    Define(String, Option<String>),
    /// `-U NAME`.
    Undefine(String),
}

/// Finds and reads the files that the program includes.
pub trait Files {
    /// Called before a source file is read. All includes until the next call are those of this source file.
    fn begin(&mut self, _source: FileId) {}
    /// Resolves an `#include` in the file `from`; the error says why there is no such file.
    fn include(&mut self, name: &str, form: Form, from: FileId, at: Span) -> Result<FileId, Missing>;
    /// Further files of the user that are read after the main file.
    fn further(&self) -> &[FileId] {
        &[]
    }
    /// Who wrote a file.
    fn origin(&self, _file: FileId) -> Origin {
        Origin::User
    }
    /// The text of a file, which may also be the main file.
    fn text(&self, file: FileId) -> Rc<str>;
    /// The name of a file, for `__FILE__`.
    fn name(&self, file: FileId) -> String;
    /// The line of a position, counted from 1.
    fn line(&self, at: Span) -> usize;
}

/// One use of a macro.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expansion {
    /// The name of the macro that is expanded.
    pub name: Symbol,
    /// The position of the macro name that was replaced.
    pub at: Span,
    /// The position of the whole use, including arguments.
    pub whole: Span,
    /// The position of the replacement list; `None` for a macro that is not defined in a file.
    pub body: Option<Span>,
    /// The macro use that produced the replaced macro name; `ExpansionId::default()` if the name stands in the text.
    pub inside: ExpansionId,
    /// The index in [`Preprocessed::expansions`] of the outermost macro use: this one if its name stands in the text, otherwise the one in the text
    /// whose expansion contains this one.
    pub outermost: u32,
}

/// The result of preprocessing the source files with all their includes.
#[derive(Debug)]
pub struct Preprocessed {
    /// The tokens of all source files, one after the other, after all macros have been expanded and all directives executed.
    pub tokens: Vec<Token>,
    /// For each source file, the number of tokens up to its end.
    pub ends: Vec<usize>,
    /// All macro uses, in the order of expansion.
    pub expansions: Vec<Expansion>,
    /// The spellings of all names and tokens, by [`Symbol`].
    pub names: Names,
    /// The replacement lists, by their positions.
    pub bodies: FxHashMap<Span, Rc<[Token]>>,
    /// Messages of `#warning` directives, and warnings about redefined macros and the like.
    pub warnings: Vec<Error>,
    /// The origins of included files, except those of the user.
    pub origins: FxHashMap<FileId, Origin>,
}

impl Preprocessed {
    /// Who wrote the text at a position.
    pub fn origin(&self, at: Span) -> Origin {
        self.origins.get(&at.file).copied().unwrap_or_default()
    }

    /// The position of the first token at or after the offset `behind` in the replacement list at `body`; `None` if there is none.
    pub fn next_in_body(&self, body: Span, behind: u32) -> Option<Span> {
        let tokens = self.bodies.get(&body)?;
        let next = tokens.partition_point(|token| token.span.start < behind);
        tokens.get(next).map(|token| token.span)
    }

    /// The outermost macro use that produced a token; `None` for a token of the text itself.
    pub fn outermost(&self, token: &Token) -> Option<usize> {
        token.expansion.index().map(|n| self.expansions[n].outermost as usize)
    }

    /// The macro uses that produced a token, innermost first.
    pub fn uses(&self, token: &Token) -> impl Iterator<Item = ExpansionId> {
        let around = |id: &ExpansionId| Some(self.expansions[id.index()?].inside);
        std::iter::successors(Some(token.expansion), around).take_while(|id| !id.is_none())
    }

    /// The position of a token in the text: its own, or that of the outermost macro use that produced it.
    pub fn written(&self, token: &Token) -> Span {
        self.outermost(token).map_or(token.span, |n| self.expansions[n].whole)
    }
}

/// An `#if` whose `#endif` has not been reached.
struct Branch {
    opened: Token,
    /// Whether the text that contains the `#if` is active, that is, not skipped.
    around: bool,
    /// Whether the condition of the current branch selects it; the branch is active if also `around` holds.
    taken: bool,
    /// Whether no later branch can become active: this branch or an earlier one is active, or the enclosing text is not active.
    done: bool,
    /// Whether `#else` was seen.
    last: bool,
}

/// Whether the text inside all these branches is active, that is, not skipped.
fn counts(branches: &[Branch]) -> bool {
    branches.last().is_none_or(|branch| branch.around && branch.taken)
}

struct Preprocessor<'a> {
    files: &'a mut dyn Files,
    stop: &'a dyn Fn() -> bool,
    names: Names,
    words: Words,
    /// The macros that are visible outside model headers.
    macros: FxHashMap<Symbol, Rc<Macro>>,
    /// The macros of the model headers. They are visible inside model headers even if the user has defined other macros with the same names.
    of_models: FxHashMap<Symbol, Rc<Macro>>,
    hidden: HiddenSets,
    expansions: Vec<Expansion>,
    bodies: FxHashMap<Span, Rc<[Token]>>,
    output: Vec<Token>,
    warnings: Vec<Error>,
    lexed: FxHashMap<FileId, Rc<[Token]>>,
    once: FxHashSet<FileId>,
    origins: FxHashMap<FileId, Origin>,
    counter: u32,
    read: usize,
    spent: usize,
}

/// Preprocesses the main file. `defines` are macros as given by `-D`: a name, and its replacement (`1` by default).
pub fn preprocess(
    files: &mut dyn Files,
    defines: &[(String, Option<String>)],
    stop: &dyn Fn() -> bool,
) -> Result<Preprocessed, Vec<Error>> {
    let macros = defines.iter().map(|(name, value)| MacroOption::Define(name.clone(), value.clone()));
    let main = Source { file: FileId::MAIN, macros: macros.collect(), includes: Vec::new() };
    preprocess_all(files, &[main], stop)
}

/// Preprocesses the source files of a program, each on its own.
pub fn preprocess_all(
    files: &mut dyn Files,
    sources: &[Source],
    stop: &dyn Fn() -> bool,
) -> Result<Preprocessed, Vec<Error>> {
    let mut names = Names::default();
    let words = Words::new(&mut names);
    let mut preprocessor = Preprocessor {
        files,
        stop,
        names,
        words,
        macros: FxHashMap::default(),
        of_models: FxHashMap::default(),
        hidden: HiddenSets::default(),
        expansions: Vec::new(),
        bodies: FxHashMap::default(),
        output: Vec::new(),
        warnings: Vec::new(),
        lexed: FxHashMap::default(),
        once: FxHashSet::default(),
        origins: FxHashMap::default(),
        counter: 0,
        read: 0,
        spent: 0,
    };
    let mut ends = Vec::new();
    for source in sources {
        preprocessor.source(source).map_err(|error| vec![error])?;
        ends.push(preprocessor.output.len());
    }
    let Preprocessor { output, expansions, names, bodies, warnings, origins, .. } = preprocessor;
    Ok(Preprocessed { tokens: output, ends, expansions, names, bodies, warnings, origins })
}

impl Preprocessor<'_> {
    /// Preprocesses a source file. It sees no macros of the source files before it.
    fn source(&mut self, source: &Source) -> Result<(), Error> {
        self.macros.clear();
        self.of_models.clear();
        self.once.clear();
        self.counter = 0;
        self.files.begin(source.file);
        self.predefine(&source.macros)?;
        let start = Span { file: source.file, ..Span::default() };
        for name in &source.includes {
            let included = self.files.include(name, Form::Quoted, source.file, start);
            let included = included.map_err(|missing| Error {
                help: missing.help,
                ..Error::new(start, format!("cannot include `{name}`: {}", missing.why))
            })?;
            self.file(included, start, 1)?;
        }
        self.file(source.file, Span::default(), 0)?;
        if source.file != FileId::MAIN {
            return Ok(());
        }
        let further = self.files.further().to_vec();
        further.into_iter().try_for_each(|file| self.file(file, Span::default(), 0))
    }

    fn predefine(&mut self, options: &[MacroOption]) -> Result<(), Error> {
        for (name, computed) in
            [("__LINE__", Computed::Line), ("__FILE__", Computed::File), ("__COUNTER__", Computed::Counter)]
        {
            let name = self.word(name);
            let computed = Some(computed);
            self.macros.insert(
                name.symbol,
                Rc::new(Macro { name, parameters: None, body: [].into(), computed, written: None }),
            );
        }
        for option in options {
            let (name, value) = match option {
                MacroOption::Define(name, value) => (name, value),
                MacroOption::Undefine(name) => {
                    let name = self.names.symbol(name);
                    self.macros.remove(&name);
                    continue;
                }
            };
            // `-D 'f(x)=x'` defines a function-like macro.
            let text = format!("{name} {}", value.as_deref().unwrap_or("1"));
            let tokens = lex(&text, FileId::MAIN, &mut self.names)?;
            let line: Vec<Token> =
                tokens.into_iter().take_while(|token| token.kind != Kind::Newline).collect();
            let define = self.word("define");
            let defined = Macro { written: None, ..Macro::define(&line, define, &self.words)? };
            self.macros.insert(defined.name.symbol, Rc::new(defined));
        }
        Ok(())
    }

    /// A name token without a position.
    fn word(&mut self, spelling: &str) -> Token {
        let symbol = self.names.symbol(spelling);
        let expansion = ExpansionId::default();
        Token { kind: Kind::Identifier, symbol, span: Span::default(), expansion, spaced: false, hidden: 0 }
    }

    /// Processes a file line by line.
    fn file(&mut self, file: FileId, included_at: Span, depth: usize) -> Result<(), Error> {
        if self.once.contains(&file) {
            return Ok(());
        }
        if depth > DEEPEST_INCLUDE {
            return Err(Error::new(
                included_at,
                "files include each other too deeply: does one include itself?",
            ));
        }
        let tokens = self.tokens(file)?;
        self.read += tokens.len();
        if self.read > MOST_TOKENS {
            return Err(Error::new(included_at, "the included files are too long in total"));
        }
        let mut branches: Vec<Branch> = Vec::new();
        let mut text: Vec<Token> = Vec::new();
        for line in tokens.split_inclusive(|token| token.kind == Kind::Newline) {
            let line = &line[..line.len() - 1];
            if (self.stop)() {
                return Err(Error::new(included_at, "stopped while lines were looked at"));
            }
            let counts = counts(&branches);
            match line.split_first() {
                Some((hash, directive)) if hash.is(self.words.hash) => {
                    if counts {
                        self.flush(&mut text)?;
                    }
                    self.directive(*hash, directive, file, depth, &mut branches)?;
                }
                _ if !counts => {}
                _ => {
                    let first = text.len();
                    text.extend(line);
                    // The end of a line counts as white space.
                    if let Some(token) = text.get_mut(first) {
                        token.spaced = true;
                    }
                }
            }
        }
        self.flush(&mut text)?;
        match branches.last() {
            Some(branch) => Err(Error::new(branch.opened.span, "this `#if` has no `#endif`")),
            None => Ok(()),
        }
    }

    fn tokens(&mut self, file: FileId) -> Result<Rc<[Token]>, Error> {
        if let Some(known) = self.lexed.get(&file) {
            return Ok(known.clone());
        }
        let origin = self.files.origin(file);
        if origin != Origin::User {
            self.origins.insert(file, origin);
        }
        let text = self.files.text(file);
        let tokens: Rc<[Token]> = lex_unless(&text, file, &mut self.names, self.stop)?.into();
        self.lexed.insert(file, tokens.clone());
        Ok(tokens)
    }

    /// Expands the macros in `text`, appends the result to the output, and clears `text`.
    fn flush(&mut self, text: &mut Vec<Token>) -> Result<(), Error> {
        if text.is_empty() {
            return Ok(());
        }
        let expanded = self.expand(text, 0)?;
        text.clear();
        let mut tokens = expanded.into_iter().peekable();
        while let Some(token) = tokens.next() {
            // `_Pragma("...")` is ignored or refused, like `#pragma`.
            if token.is(self.words.pragma) && tokens.peek().is_some_and(|next| next.is(self.words.open)) {
                while let Some(next) = tokens.next().filter(|next| !next.is(self.words.close)) {
                    let said = self.names.spelling(next.symbol);
                    let said = said.trim_matches('"').trim_start();
                    let end = said.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                    refused_pragma(&said[..end.unwrap_or(said.len())], next.span)?;
                }
                continue;
            }
            self.output.push(token);
        }
        Ok(())
    }

    fn directive(
        &mut self,
        hash: Token,
        line: &[Token],
        file: FileId,
        depth: usize,
        branches: &mut Vec<Branch>,
    ) -> Result<(), Error> {
        let Some((&name, rest)) = line.split_first() else { return Ok(()) };
        let spelling = self.names.spelling(name.symbol).clone();
        let counts = counts(branches);
        match &*spelling {
            "if" | "ifdef" | "ifndef" => {
                let taken = counts && self.condition(name, rest, file)?;
                let done = taken || !counts;
                branches.push(Branch { opened: name, around: counts, taken, done, last: false });
                Ok(())
            }
            "elif" | "elifdef" | "elifndef" | "else" => {
                let Some(branch) = branches.last_mut() else {
                    return Err(Error::new(name.span, format!("`#{spelling}` without an `#if`")));
                };
                if branch.last {
                    return Err(Error::new(name.span, format!("`#{spelling}` behind `#else`")));
                }
                branch.last = &*spelling == "else";
                let candidate = !branch.done;
                let taken = candidate && (&*spelling == "else" || self.condition(name, rest, file)?);
                let branch = branches.last_mut().expect("it is open");
                branch.taken = taken;
                branch.done |= taken;
                Ok(())
            }
            "endif" => match branches.pop() {
                Some(_) => Ok(()),
                None => Err(Error::new(name.span, "`#endif` without an `#if`")),
            },
            _ if !counts => Ok(()),
            "define" => {
                let defined = Macro::define(rest, name, &self.words)?;
                self.define(defined);
                Ok(())
            }
            "undef" => match rest {
                [undefined] if undefined.kind == Kind::Identifier => {
                    self.undefine(*undefined);
                    Ok(())
                }
                _ => Err(Error::new(name.span, "`#undef` takes the name of one macro")),
            },
            "include" | "include_next" => self.include(name, rest, file, depth),
            "error" => Err(Error::new(hash.span.to(name.span), self.said(name, rest))),
            "warning" => {
                let said = self.said(name, rest);
                if self.origin(hash.span) == Origin::User {
                    self.warnings.push(Error::new(hash.span.to(name.span), said));
                }
                Ok(())
            }
            "pragma" => {
                let Some(first) = rest.first() else { return Ok(()) };
                let word = self.names.spelling(first.symbol).clone();
                if &*word == "once" {
                    self.once.insert(file);
                }
                refused_pragma(&word, hash.span.to(first.span))
            }
            "line" | "ident" | "sccs" => Ok(()),
            // `# 12 "file"` is a line marker, as other preprocessors emit it, and is ignored.
            _ if name.kind == Kind::Number => Ok(()),
            _ => Err(Error::new(name.span, format!("`#{spelling}` is no directive"))),
        }
    }

    fn said(&self, name: Token, rest: &[Token]) -> String {
        let words = rest.iter().map(|token| {
            format!("{}{}", if token.spaced { " " } else { "" }, self.names.spelling(token.symbol))
        });
        format!("#{}{}", self.names.spelling(name.symbol), words.collect::<String>())
    }

    fn origin(&self, at: Span) -> Origin {
        self.origins.get(&at.file).copied().unwrap_or_default()
    }

    /// The macro that a name denotes, if any.
    ///
    /// Names in model headers denote only predefined macros and macros of model headers: a user's `#define smp_mb() ...` must not change the
    /// declaration of `smp_mb` in a model header.
    fn meant(&self, name: Token) -> Option<Rc<Macro>> {
        if self.origin(name.span) != Origin::Model {
            return self.macros.get(&name.symbol).cloned();
        }
        let predefined = || {
            let reserved = self.names.spelling(name.symbol).starts_with("__");
            self.macros.get(&name.symbol).filter(|known| reserved && known.written.is_none())
        };
        self.of_models.get(&name.symbol).or_else(predefined).cloned()
    }

    /// Defines a macro. A definition by the user takes precedence over a later one in a model header, and one in a model header over a later one of
    /// the system. A warning is given if the user defines a macro twice with different replacement lists.
    fn define(&mut self, defined: Macro) {
        let (symbol, span) = (defined.name.symbol, defined.name.span);
        if let Some(written) = defined.written {
            self.bodies.insert(written, defined.body.clone());
        }
        let defined = Rc::new(defined);
        let before = self.macros.get(&symbol).map(|before| (before, self.origin(before.name.span)));
        let origin = self.origin(span);
        if origin == Origin::Model {
            self.of_models.insert(symbol, defined.clone());
        }
        match before {
            Some((_, Origin::User)) if origin == Origin::Model => return,
            Some((_, Origin::Model)) if origin == Origin::System => return,
            Some((before, Origin::User)) if origin == Origin::User && !before.says_the_same(&defined) => {
                let message = format!("`{}` is defined again, and differently", self.names.spelling(symbol));
                self.warnings.push(Error::new(span, message));
            }
            _ => {}
        }
        self.macros.insert(symbol, defined);
    }

    /// Undefines a macro. An `#undef` in a header of the system does not affect macros of model headers.
    fn undefine(&mut self, name: Token) {
        let origin = self.origin(name.span);
        if origin == Origin::Model {
            self.of_models.remove(&name.symbol);
        }
        let defined = self.macros.get(&name.symbol).map(|known| self.origin(known.name.span));
        if origin != Origin::System || defined != Some(Origin::Model) {
            self.macros.remove(&name.symbol);
        }
    }

    /// Evaluates the condition of `#if`, `#ifdef` and their variants.
    fn condition(&mut self, directive: Token, rest: &[Token], file: FileId) -> Result<bool, Error> {
        let spelling = self.names.spelling(directive.symbol).clone();
        if let Some(wanted) = match &*spelling {
            "ifdef" | "elifdef" => Some(true),
            "ifndef" | "elifndef" => Some(false),
            _ => None,
        } {
            return match rest.first() {
                Some(name) if name.kind == Kind::Identifier => {
                    Ok(self.macros.contains_key(&name.symbol) == wanted)
                }
                _ => Err(Error::new(directive.span, format!("`#{spelling}` takes the name of a macro"))),
            };
        }
        let answered = self.answered(rest, file)?;
        let expanded = self.expand(&answered, 0)?;
        condition::holds(&expanded, directive, &self.names)
    }

    /// Replaces `defined X`, `__has_include(...)` and `__has_include_next(...)` in a condition by their values.
    fn answered(&mut self, line: &[Token], file: FileId) -> Result<Vec<Token>, Error> {
        let mut answered = Vec::new();
        let mut n = 0;
        while let Some(&token) = line.get(n) {
            n += 1;
            let truth = if token.is(self.words.defined) {
                let open = line.get(n).is_some_and(|next| next.is(self.words.open));
                n += usize::from(open);
                let name = line.get(n).filter(|name| name.kind == Kind::Identifier);
                let name =
                    name.ok_or_else(|| Error::new(token.span, "`defined` takes the name of a macro"))?;
                n += 1;
                if open && !line.get(n).is_some_and(|next| next.is(self.words.close)) {
                    return Err(Error::new(name.span, "expected `)` after this name"));
                }
                n += usize::from(open);
                let built_in = name.is(self.words.has_include) || name.is(self.words.has_include_next);
                built_in || self.macros.contains_key(&name.symbol)
            } else if token.is(self.words.has_include) || token.is(self.words.has_include_next) {
                let length = line[n..].iter().position(|next| next.is(self.words.close));
                let closed =
                    length.ok_or_else(|| Error::new(token.span, "`__has_include` is never closed"))?;
                let inside = line.get(n + 1..n + closed).unwrap_or_default();
                n += closed + 1;
                let (name, form) = self.header(token, inside, file)?;
                let form = if token.is(self.words.has_include_next) { Form::Next } else { form };
                self.files.include(&name, form, file, token.span).is_ok()
            } else {
                answered.push(token);
                continue;
            };
            let symbol = self.names.symbol(if truth { "1" } else { "0" });
            answered.push(Token { kind: Kind::Number, symbol, ..token });
        }
        Ok(answered)
    }

    /// Parses the header name of an `#include`.
    fn header(&mut self, directive: Token, line: &[Token], file: FileId) -> Result<(String, Form), Error> {
        let wrong = Error::new(directive.span, "expected `\"file\"` or `<file>`");
        let first = *line.first().ok_or_else(|| wrong.clone())?;
        let spelling = self.names.spelling(first.symbol).clone();
        if first.kind == Kind::String {
            return Ok((spelling.trim_matches('"').to_owned(), Form::Quoted));
        }
        if &*spelling == "<"
            && first.kind == Kind::Punctuator
            && first.expansion.is_none()
            && first.span.file == file
        {
            // A name in angle brackets is not a sequence of preprocessing tokens, so its characters are read from the file.
            let text = self.files.text(file);
            let rest = text.get(first.span.end as usize..).unwrap_or("");
            let end = rest.find(['>', '\n']).filter(|&end| rest.as_bytes()[end] == b'>');
            return end.map(|end| (rest[..end].to_owned(), Form::Bracketed)).ok_or(wrong);
        }
        let expanded = self.expand(line, 0)?;
        let spelled = |token: &Token| self.names.spelling(token.symbol).to_string();
        match expanded.as_slice() {
            [only] if only.kind == Kind::String => {
                Ok((spelled(only).trim_matches('"').to_owned(), Form::Quoted))
            }
            [open, name @ .., close] if spelled(open) == "<" && spelled(close) == ">" => {
                Ok((name.iter().map(spelled).collect(), Form::Bracketed))
            }
            _ => Err(wrong),
        }
    }

    fn include(&mut self, directive: Token, line: &[Token], file: FileId, depth: usize) -> Result<(), Error> {
        let (name, form) = self.header(directive, line, file)?;
        let next = &**self.names.spelling(directive.symbol) == "include_next";
        let form = if next { Form::Next } else { form };
        let at =
            line.first().zip(line.last()).map_or(directive.span, |(first, last)| first.span.to(last.span));
        let included = self.files.include(&name, form, file, at).map_err(|missing| {
            let message = format!("cannot include `{name}`: {}", missing.why);
            Error { help: missing.help, ..Error::new(at, message) }
        })?;
        if self.origin(at) == Origin::System && self.files.origin(included) == Origin::Model {
            self.features(file, at, depth)?;
        }
        self.file(included, at, depth + 1)
    }

    /// Includes `<features.h>` along with a model header that replaces a header of the C library. All headers of the C library include this file, and
    /// those that have no model rely on an earlier header having done so.
    fn features(&mut self, file: FileId, at: Span, depth: usize) -> Result<(), Error> {
        match self.files.include("features.h", Form::Bracketed, file, at) {
            Ok(features) => self.file(features, at, depth + 1),
            Err(_) => Ok(()),
        }
    }
}

/// An error for a pragma that would change what the program means.
fn refused_pragma(word: &str, span: Span) -> Result<(), Error> {
    let help = match word {
        "pack" => "use `__attribute__((packed))`",
        "push_macro" | "pop_macro" => "define another macro",
        "scalar_storage_order" => "convert the bytes where they are read and written",
        _ => return Ok(()),
    };
    Err(Error::new(span, format!("`#pragma {word}` is not supported")).help(help))
}
