//! Preprocessing tokens (C11 6.4), and interned spellings.

use std::rc::Rc;

use fencewright_program::Span;
use rustc_hash::FxHashMap;

/// A spelling, by its number in [`Names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Symbol(u32);

/// Interns all spellings.
#[derive(Debug, Default)]
pub struct Names {
    numbers: FxHashMap<Rc<str>, Symbol>,
    spellings: Vec<Rc<str>>,
}

impl Names {
    /// The number of a spelling, allocated if it is new.
    pub fn symbol(&mut self, spelling: &str) -> Symbol {
        if let Some(&known) = self.numbers.get(spelling) {
            return known;
        }
        let symbol =
            Symbol(u32::try_from(self.spellings.len()).expect("a text has fewer spellings than bytes"));
        let spelling: Rc<str> = spelling.into();
        self.spellings.push(spelling.clone());
        self.numbers.insert(spelling, symbol);
        symbol
    }

    /// The spelling with this number.
    pub fn spelling(&self, symbol: Symbol) -> &Rc<str> {
        &self.spellings[symbol.0 as usize]
    }
}

/// The lexical class of a token. All but `Newline` and `Placemarker` come from C11 6.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A name or keyword.
    Identifier,
    /// A preprocessing number: an integer, a floating-point number, or a sequence that merely starts like one.
    Number,
    /// `'a'`, with its prefix.
    Character,
    /// `"text"`, with its prefix.
    String,
    /// An operator or separator; digraphs are replaced by their meaning.
    Punctuator,
    /// Any other character, including an unclosed quote.
    Other,
    /// The end of a line.
    Newline,
    /// A placemarker, for an empty argument of a macro.
    Placemarker,
}

/// The macro use that produced a token, by its number in [`Preprocessed::expansions`](crate::preprocess::Preprocessed::expansions), counted from 1. 0
/// marks a token that no macro produced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExpansionId(pub(crate) u32);

impl ExpansionId {
    /// Whether the token was not produced by a macro.
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// The index into the expansions; `None` if the token was not produced by a macro.
    pub fn index(self) -> Option<usize> {
        (self.0 as usize).checked_sub(1)
    }
}

/// A preprocessing token, with its position and the macro use that produced it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// The lexical class: name, number, string and so on.
    pub kind: Kind,
    /// The spelling.
    pub symbol: Symbol,
    /// The position of the token's characters: for a token of a replacement list, in the definition of the macro; for a token of an argument, in the
    /// macro call.
    pub span: Span,
    /// The innermost macro use that produced the token.
    pub expansion: ExpansionId,
    /// Whether white space precedes the token.
    pub spaced: bool,
    /// The number in `HiddenSets` of the token's hide set: the set of macros that may no longer be expanded here.
    pub(crate) hidden: u32,
}

impl Token {
    /// Whether the token is the name, keyword or punctuator with this spelling; false for strings and numbers.
    pub fn is(&self, symbol: Symbol) -> bool {
        self.symbol == symbol && matches!(self.kind, Kind::Identifier | Kind::Punctuator)
    }
}
