//! Finds variables that are never changed although they are not `const`: `static int threads = 3; ... pthread_t t[threads];`.
//!
//! A conservative scan of the tokens, before any analysis: if a name occurs anywhere in a way that could change a variable or take its address, no
//! variable with that name counts as unchanged.

use fencewright_program::Span;
use rustc_hash::FxHashMap;

use crate::preprocess::Preprocessed;
use crate::token::{Kind, Symbol};

/// The effect of the text on the variables with one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// The variables may change only by the `=` that follows the name at this position.
    Started(Span),
    Changed,
}

/// The effect of the text on variables, by name.
#[derive(Debug)]
pub(super) struct Changes(FxHashMap<Symbol, Use>);

impl Changes {
    /// Scans all names of a text.
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
                // A variable in parentheses may be changed by an operator after the parentheses, and the first argument of a call may be the place
                // that a macro of Linux writes to.
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

    /// Whether the variable declared at this position always keeps its initial value.
    pub fn keeps(&self, name: Symbol, at: Span) -> bool {
        self.0.get(&name) == Some(&Use::Started(at))
    }
}
