//! Variables that nobody changes, although they are not `const`: `static int threads = 3; ... pthread_t t[threads];`.
//!
//! Found in the text, before anything is known about it, and so with care: a name that is mentioned anywhere in a way that could change a variable, or take its
//! address, is not one of these, whichever variable is meant there.

use fencewright_program::Span;
use rustc_hash::FxHashMap;

use crate::preprocess::Preprocessed;
use crate::token::{Kind, Symbol};

/// What the text does to the variables of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// There is one `=`, behind the name that stands here.
    Started(Span),
    Changed,
}

/// What the text does to variables, by their names.
#[derive(Debug)]
pub(super) struct Changes(FxHashMap<Symbol, Use>);

impl Changes {
    /// Looks at all names in a text.
    pub fn new(text: &Preprocessed) -> Self {
        let mut uses = FxHashMap::default();
        let spelled = |n: usize| text.tokens.get(n).map_or("", |token| &**text.names.spelling(token.symbol));
        for (n, token) in text.tokens.iter().enumerate() {
            if token.kind != Kind::Identifier {
                continue;
            }
            let (before, after) = (n.checked_sub(1).map_or("", spelled), spelled(n + 1));
            let changed = match (before, after) {
                ("&" | "++" | "--", _) | (_, "++" | "--") => true,
                // What is in parentheses may be changed behind them, and the first argument of a call may be the place that a macro of Linux writes to.
                ("(", ")" | ",") => true,
                (_, "=") => uses.contains_key(&token.symbol),
                (_, after) => after.ends_with('=') && !matches!(after, "==" | "!=" | "<=" | ">="),
            };
            if changed {
                uses.insert(token.symbol, Use::Changed);
            } else if after == "=" {
                uses.insert(token.symbol, Use::Started(token.span));
            }
        }
        Changes(uses)
    }

    /// Whether the variable whose declaration names it here keeps its initial value for ever.
    pub fn keeps(&self, name: Symbol, at: Span) -> bool {
        self.0.get(&name) == Some(&Use::Started(at))
    }
}
