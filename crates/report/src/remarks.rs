//! What goes with an answer about a program in a language that says more than this project understands: what the answer is about, and
//! what somebody should look at.

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
