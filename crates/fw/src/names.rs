//! Derives names for entities of other languages: legal in `.fw`, unique, and deterministic.

use std::collections::{HashMap, HashSet};

use crate::Keyword;

/// The names in use in one scope.
#[derive(Debug, Default)]
pub struct Names<'a> {
    /// The enclosing scope, if any; its names are not used again in this scope.
    outer: Option<&'a Names<'a>>,
    taken: HashSet<String>,
    /// The number of names made from each stem. Starting from this number avoids quadratic time on hostile lists of similar names.
    made: HashMap<String, u64>,
}

impl<'a> Names<'a> {
    /// A scope inside another one.
    pub fn inside(outer: &'a Names<'a>) -> Self {
        Names { outer: Some(outer), ..Names::default() }
    }

    fn is_taken(&self, name: &str) -> bool {
        self.taken.contains(name) || self.outer.is_some_and(|outer| outer.is_taken(name))
    }

    /// A name that is not used in the scope, as close to `foreign` as possible: illegal characters become `_`, `prefix` is prepended to a name that
    /// would start with a digit or be empty, and `suffix` is appended to a keyword or a name in use, followed by a number if that name is in use too.
    pub fn fresh(&mut self, foreign: &str, prefix: &str, suffix: &str) -> String {
        let mut name: String =
            foreign.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
        if name.chars().next().is_none_or(|c| c.is_ascii_digit()) {
            name.insert_str(0, prefix);
        }
        if Keyword::from_text(&name).is_some() || self.is_taken(&name) {
            name.push_str(suffix);
        }
        if self.is_taken(&name) {
            let mut made = self.made.get(&name).copied().unwrap_or(1) + 1;
            while self.is_taken(&format!("{name}{made}")) {
                made += 1;
            }
            let numbered = format!("{name}{made}");
            self.made.insert(name, made);
            name = numbered;
        }
        self.taken.insert(name.clone());
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(foreign: &[&str], expected: &[&str]) {
        let mut names = Names::default();
        let given: Vec<String> = foreign.iter().map(|f| names.fresh(f, "q", "_")).collect();
        assert_eq!(given, expected);
    }

    #[test]
    fn legal_names_stay() {
        check(&["x", "CS", "_a1"], &["x", "CS", "_a1"]);
    }

    #[test]
    fn others_are_renamed() {
        check(&["lock", "0", "a.b", "-1", ""], &["lock_", "q0", "a_b", "_1", "q"]);
    }

    #[test]
    fn no_name_is_given_twice() {
        check(&["a+", "a-", "a*", "a_", "a__2"], &["a_", "a__", "a__2", "a__3", "a__2_"]);
    }

    #[test]
    fn many_like_names_are_quick() {
        let mut names = Names::default();
        let all: HashSet<String> = (0..100_000).map(|_| names.fresh("é", "q", "_")).collect();
        assert_eq!(all.len(), 100_000);
    }
}
