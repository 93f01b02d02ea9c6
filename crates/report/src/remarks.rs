//! Remarks that accompany an answer: the assumptions of the translation, notes, and warnings such as data races.

use std::collections::HashSet;

use fencewright_engines::races::Race;
use fencewright_lang::Diagnostic;
use fencewright_lang::facts::{Assumed, Assumption};
use fencewright_lang::source::escape;
use fencewright_program::Span;
use serde::Serialize;

use crate::json::At;
use crate::words::Source;

/// The remarks as keys of an answer in JSON.
#[derive(Serialize)]
pub(crate) struct Remarks<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    meaning: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    assumed: Vec<AssumedOf<'a>>,
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
        let (meaning, assumed) =
            (source.front_end.meaning(), source.facts.assumed.iter().map(AssumedOf::from).collect());
        Remarks { meaning, assumed, notes: source.notes, warnings }
    }
}

/// An assumption about a function in JSON.
#[derive(Serialize)]
pub(crate) struct AssumedOf<'a> {
    function: &'a str,
    is: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
}

impl<'a> From<&'a Assumption> for AssumedOf<'a> {
    fn from(assumption: &'a Assumption) -> Self {
        let (is, file) = match &assumption.what {
            Assumed::Anything => ("anything", None),
            Assumed::Nothing => ("nothing", None),
            Assumed::Stub(file) => ("stub", Some(file.as_str())),
        };
        AssumedOf { function: &assumption.function, is, file }
    }
}

/// The assumptions about functions that the user has made, on a line each. They belong to the verdict.
pub fn assumed(source: Source<'_>) -> String {
    assumed_lines(&source.facts.assumed)
}

pub(crate) fn assumed_lines(assumed: &[Assumption]) -> String {
    assumed.iter().map(|one| format!("  assumed: {}\n", escape(&one.to_string()))).collect()
}

/// The assumptions under which the verdict holds, in one line, if the front end has any.
pub fn meaning(source: Source<'_>) -> String {
    source.front_end.meaning().map_or_else(String::new, |meaning| format!("  note: {meaning}\n"))
}

/// Data races of plain accesses, as warnings. Two places in the source get one warning, even if `races` lists them in both orders or for several
/// variables.
pub fn races(source: Source<'_>, races: &[Race]) -> Vec<Diagnostic> {
    let warning = |Race { plain, other, variable }: &Race| {
        let name = &source.program.variables[variable.index()].name;
        let other = source.position(*other);
        let message =
            format!("this access of `{name}` races with the one at {other}: a compiler may move it");
        Diagnostic::new(*plain, message)
    };
    let mut told = HashSet::new();
    let place = |span: Span| (span.file, span.start, span.end);
    let pair = |race: &Race| [place(race.plain), place(race.other)];
    let is_new = |race: &&Race| {
        let mut pair = pair(race);
        pair.sort_unstable();
        told.insert(pair)
    };
    races.iter().filter(is_new).map(warning).collect()
}
