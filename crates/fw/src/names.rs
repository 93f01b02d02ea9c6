//! Names for things that another language named: legal in `.fw`, unique, and the same every time.

use std::collections::{HashMap, HashSet};

use crate::Keyword;

/// The names already given in one scope.
#[derive(Debug, Default)]
pub struct Names<'a> {
    /// The scope around this one, whose names are not given again either.
    outer: Option<&'a Names<'a>>,
    taken: HashSet<String>,
    /// How many names were made from the same stem: keeps a hostile list of like names from being quadratic.
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

    /// A name that nothing in the scope has yet, as close to `foreign` as possible: characters that no name may hold
    /// become `_`, `prefix` goes before a name that would start with a digit or be empty, and `suffix` after a keyword
    /// or a name that is taken.
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
