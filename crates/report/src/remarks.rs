//! Remarks beside an answer about an imported program: what the verdict is about, notes on the translation, and warnings such as data
//! races.

use fencewright_engines::races::Race;
use fencewright_lang::Diagnostic;
use serde::Serialize;

use crate::json::At;
use crate::words::Source;

/// What goes with an answer, as keys of its object.
#[derive(Serialize)]
pub(crate) struct Remarks<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    meaning: Option<&'static str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    notes: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Warning<'a>>,
}

#[derive(Serialize)]
struct Warning<'a> {
    message: &'a str,
    #[serde(flatten)]
    at: At<'a>,
}

impl<'a> From<Source<'a>> for Remarks<'a> {
    fn from(source: Source<'a>) -> Self {
        let warnings = source.warnings.iter();
        let warnings =
            warnings.map(|w| Warning { message: &w.message, at: At::new(source, Some(w.span)) }).collect();
        Remarks { meaning: source.front_end.meaning(), notes: source.notes, warnings }
    }
}

/// What an answer is about, in one line, if that has to be said.
pub fn meaning(source: Source<'_>) -> String {
    source.front_end.meaning().map_or_else(String::new, |meaning| format!("  note: {meaning}\n"))
}

/// Races between plain accesses, as warnings.
pub fn races(source: Source<'_>, races: &[Race]) -> Vec<Diagnostic> {
    let warning = |Race { plain, other, variable }: &Race| {
        let name = &source.program.variables[variable.index()].name;
        let other = source.position(*other);
        let message =
            format!("this access of `{name}` races with the one at {other}: a compiler may move it");
        Diagnostic::new(*plain, message)
    };
    races.iter().map(warning).collect()
}
