//! `.rmm`, the language of memorax: importer and exporter.

pub mod export;
pub mod import;

use std::ops::Range;

use fencewright_front_end::edit::{Change, Edit, What, inserted_before};
use fencewright_front_end::places::{Place, Side};
use fencewright_front_end::{FrontEnd, Input, Loaded, Parsed, between};
use fencewright_text::Diagnostic;

use crate::MAX_BYTES;

/// The front end of `.rmm`.
pub struct Rmm;

impl FrontEnd for Rmm {
    fn name(&self) -> &'static str {
        "rmm"
    }

    fn extension(&self) -> Option<&'static str> {
        Some("rmm")
    }

    fn detect(&self, text: &str) -> bool {
        let mut rest = text.trim_start();
        while let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").map_or("", |(_, after)| after).trim_start();
        }
        let first_word = rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or("");
        matches!(first_word, "forbidden" | "macro")
    }

    fn most_bytes(&self) -> usize {
        MAX_BYTES
    }

    fn parse(&self, input: &mut Input<'_>) -> Result<Parsed, Vec<Diagnostic>> {
        import::rmm(input.text())
    }

    fn edit(&self, text: &str, edits: &[&Edit]) -> Result<Vec<Change>, String> {
        let mut changes = Vec::new();
        edits.iter().try_for_each(|edit| change(text, edit, &mut changes))?;
        Ok(changes)
    }

    fn has_locked_stores(&self) -> bool {
        true
    }

    fn statement_at(&self, line: &str, part: Range<usize>) -> Range<usize> {
        between(line, part, &[';', '{', '}'], &[';', '{'])
    }

    fn print(&self, loaded: &Loaded) -> Result<String, Vec<Diagnostic>> {
        export::rmm(&loaded.program)
    }
}

fn change(text: &str, edit: &Edit, changes: &mut Vec<Change>) -> Result<(), String> {
    let Place { offset, side, statement, .. } = edit.place;
    let Range { start, end } = statement.range();
    let is_write = text.get(statement.range()).is_some_and(|written| written.starts_with("write"));
    let word = match edit.what {
        What::Fence => "fence",
        What::StoreFence => "ssfence",
        What::Swap if is_write => {
            changes.push(Change { at: start, length: 0, text: "locked ".into() });
            return Ok(());
        }
        What::Swap => return Err("only a plain `write` can be locked".into()),
    };
    let at = offset as usize;
    let before = text[..if side == Side::After { start } else { at }].trim_end();
    let bare_body = ["do", "then", "else"].iter().any(|keyword| {
        before.strip_suffix(keyword).is_some_and(|rest| rest.ends_with(|c: char| !c.is_alphanumeric()))
    });
    match (side, bare_body) {
        (Side::Before | Side::Labelled, false) => {
            changes.push(inserted_before(text, &edit.place, &format!("{word};")));
        }
        (Side::Before | Side::Labelled, true) => {
            changes.push(Change { at, length: 0, text: format!("{{ {word}; ") });
            changes.push(Change { at: end, length: 0, text: " }".into() });
        }
        (Side::After, false) => changes.push(Change { at, length: 0, text: format!("; {word}") }),
        (Side::After, true) => {
            changes.push(Change { at: start, length: 0, text: "{ ".into() });
            changes.push(Change { at: end, length: 0, text: format!("; {word} }}") });
        }
    }
    Ok(())
}
