//! Preprocessing tokens (C11 6.4), and the names they are spelled with.

use std::rc::Rc;

use fencewright_program::Span;
use rustc_hash::FxHashMap;

/// A spelling, by its number in [`Names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Symbol(u32);

/// All spellings that occurred.
#[derive(Debug, Default)]
pub struct Names {
    numbers: FxHashMap<Rc<str>, Symbol>,
    spellings: Vec<Rc<str>>,
}

impl Names {
    /// The number of a spelling.
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

/// What kind of token it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A name; keywords too.
    Identifier,
    /// A preprocessing number: an integer, a floating number, or something that only starts like one.
    Number,
    /// `'a'`, with its prefix.
    Character,
    /// `"text"`, with its prefix.
    String,
    /// An operator or a separator, digraphs as what they stand for.
    Punctuator,
    /// Any other character, also a quote that nothing closes.
    Other,
    /// The end of a line.
    Newline,
    /// Nothing, where an argument of a macro is empty.
    Placemarker,
}

/// Which use of a macro brought a token, by its number in [`Preprocessed::expansions`](crate::preprocess::Preprocessed::expansions); none if it stands there in the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExpansionId(pub(crate) u32);

impl ExpansionId {
    /// Whether no macro brought it.
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// As an index into the expansions.
    pub fn index(self) -> Option<usize> {
        (self.0 as usize).checked_sub(1)
    }
}

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// How it is spelled.
    pub symbol: Symbol,
    /// Where its characters stand: for a token of a macro in the macro's definition, for an argument in the call.
    pub span: Span,
    /// Which use of a macro brought it.
    pub expansion: ExpansionId,
    /// Whether white space stands before it.
    pub spaced: bool,
    /// The macros that it must not be taken for, by the number of their set.
    pub(crate) hidden: u32,
}

impl Token {
    /// Whether it is this name, keyword or punctuator.
    pub fn is(&self, symbol: Symbol) -> bool {
        self.symbol == symbol && matches!(self.kind, Kind::Identifier | Kind::Punctuator)
    }
}
