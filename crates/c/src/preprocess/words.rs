//! The words with a special meaning to the preprocessor, as symbols.

use crate::token::{Names, Symbol};

/// The words with a special meaning in directives and macros.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    pub hash: Symbol,
    pub paste: Symbol,
    pub open: Symbol,
    pub close: Symbol,
    pub comma: Symbol,
    pub dots: Symbol,
    pub defined: Symbol,
    pub has_include: Symbol,
    pub has_include_next: Symbol,
    pub va_args: Symbol,
    pub va_opt: Symbol,
    pub pragma: Symbol,
}

impl Words {
    pub fn new(names: &mut Names) -> Self {
        let mut word = |spelling| names.symbol(spelling);
        Words {
            hash: word("#"),
            paste: word("##"),
            open: word("("),
            close: word(")"),
            comma: word(","),
            dots: word("..."),
            defined: word("defined"),
            has_include: word("__has_include"),
            has_include_next: word("__has_include_next"),
            va_args: word("__VA_ARGS__"),
            va_opt: word("__VA_OPT__"),
            pragma: word("_Pragma"),
        }
    }
}
