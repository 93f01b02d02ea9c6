//! Counts the features of the programs in a run, so that a test fails if the generator no longer produces some feature.

use std::collections::BTreeMap;

use fencewright_lang::ast::*;

use super::control::inner_blocks;

/// The number of programs with each feature, by the name of the feature.
#[derive(Default)]
pub struct Coverage(BTreeMap<String, usize>);

/// Parts of the debug output of a syntax tree, each of which stands for a feature.
const PARTS: &[&str] = &[
    "Cas(",
    "Swap(",
    "FetchAdd(",
    "At(",
    "Register(",
    "Exists",
    "Forall",
    "Less",
    "NotEqual",
    "open: true",
    "Length(",
    "Indices(",
    "Value(",
    "Any(Some",
    "Any(None",
    "List(",
    "Nat",
    "Real",
    "FinallyExists",
    "FinallyNever",
    "FinallyForall",
    "Forbid",
    "Invariant",
    "Predicates(",
    "Spare(",
    "Cost(",
    "family: Some",
    "inclusive: true",
    "inclusive: false",
    "And",
    "Or,",
    "Not",
    "Neg",
    "Div",
    "Rem",
    "BitAnd",
    "BitOr",
    "BitXor",
    "Mutex(",
    "Lock(Some",
    "Unlock(Some",
    "wraps: Some(Unsigned",
    "wraps: Some(Signed",
    "Unary(Unsigned",
    "Unary(Signed",
];

const STATEMENTS: &[&str] = &[
    "Const",
    "Var",
    "Assign",
    "Havoc",
    "Expr",
    "Skip",
    "Fence",
    "StoreFence",
    "Lock",
    "Unlock",
    "Atomic",
    "Snapshot",
    "Assume",
    "Assert",
    "Await",
    "If",
    "While",
    "Loop",
    "For",
    "Break",
    "Continue",
    "Choose",
    "Goto",
    "Stop",
    "Block",
];

const REGISTERS: &str = "an array of registers";
const ELEMENT: &str = "a computed element";

const INDIVISIBLE: &[&str] =
    &["Const", "Assign", "Havoc", "Skip", "Assume", "Assert", "If", "Choose", "For", "Block"];

impl Coverage {
    pub fn add(&mut self, file: &File) {
        let text = format!("{file:?}");
        let mut found: Vec<String> = Vec::new();
        found.extend(PARTS.iter().filter(|part| text.contains(**part)).map(|part| part.to_string()));
        for item in &file.items {
            if let Item::Thread(thread) = item {
                statements(&thread.body, false, &mut found);
            }
        }
        found.sort_unstable();
        found.dedup();
        found.into_iter().for_each(|feature| self.note(feature));
    }

    pub fn note(&mut self, feature: String) {
        *self.0.entry(feature).or_default() += 1;
    }

    pub fn merge(&mut self, other: Coverage) {
        for (feature, count) in other.0 {
            *self.0.entry(feature).or_default() += count;
        }
    }

    /// Fails if some feature is in fewer than `least` programs.
    pub fn assert_all(&self, least: usize, outcomes: &[&str]) {
        let mut wanted: Vec<String> = PARTS.iter().chain(outcomes).map(|s| s.to_string()).collect();
        wanted
            .extend(STATEMENTS.iter().flat_map(|kind| [format!("{kind} plain"), format!("{kind} labelled")]));
        wanted.extend(INDIVISIBLE.iter().map(|kind| format!("{kind} indivisible")));
        wanted.extend(["Empty labelled", REGISTERS].map(String::from));
        wanted.extend(["plain", "labelled", "indivisible"].map(|how| format!("{ELEMENT} {how}")));
        let rare: Vec<(String, usize)> = wanted
            .into_iter()
            .map(|feature| (feature.clone(), self.0.get(&feature).copied().unwrap_or(0)))
            .filter(|(_, count)| *count < least)
            .collect();
        assert!(rare.is_empty(), "too rare in the generated programs: {rare:?}");
    }
}

fn statements(block: &Block, indivisible: bool, found: &mut Vec<String>) {
    for statement in &block.statements {
        let printed = format!("{:?}", statement.kind);
        let kind: String = printed.chars().take_while(|c| c.is_alphanumeric()).collect();
        let how = match (indivisible, statement.labels.is_empty()) {
            (true, _) => "indivisible",
            (false, true) => "plain",
            (false, false) => "labelled",
        };
        found.push(format!("{kind} {how}"));
        match &statement.kind {
            StatementKind::Var(declared) if declared.iter().any(|d| d.size.is_some()) => {
                found.push(REGISTERS.into());
            }
            StatementKind::Assign(place, _) | StatementKind::Havoc(place, _)
                if place.name.text.starts_with('r') =>
            {
                let computed = place.index.as_ref().is_some_and(|i| format!("{i:?}").contains("Place("));
                found.extend(computed.then(|| format!("{ELEMENT} {how}")));
            }
            _ => {}
        }
        let inside = indivisible || matches!(kind.as_str(), "Atomic" | "Snapshot");
        inner_blocks(statement).into_iter().for_each(|inner| statements(inner, inside, found));
    }
}
