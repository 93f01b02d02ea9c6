//! Finds variables that are never changed although they are not `const`, for array lengths: `static int threads = 3; ... pthread_t t[threads];`.
//!
//! A conservative scan of the tokens, before any analysis: if a name occurs anywhere in a way that could change a variable or take its address, no
//! variable with that name counts as unchanged.

use fencewright_program::Span;
use rustc_hash::FxHashMap;

use crate::preprocess::Preprocessed;
use crate::token::{Kind, Symbol};

/// How the tokens seen so far may change the variables of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// The only assignment is the `=` after the occurrence of the name at this position, presumably an initialisation.
    Started(Span),
    Changed,
}

/// How the text may change variables, by name. A name that is never assigned to has no entry.
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
                // An operator after the parentheses may change a variable in parentheses, and the first argument of a call may be the variable that a
                // Linux macro writes.
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

    /// Whether the variable whose name is declared at this position always keeps its initial value.
    pub fn keeps(&self, name: Symbol, at: Span) -> bool {
        self.0.get(&name) == Some(&Use::Started(at))
    }
}
