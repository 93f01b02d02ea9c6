//! The automata of trencher: importer and exporter.

pub mod export;
pub mod import;

use std::ops::Range;

use fencewright_front_end::edit::{Change, Edit, What};
use fencewright_front_end::places::Side;
use fencewright_front_end::{FrontEnd, Input, Loaded, Parsed};
use fencewright_text::Diagnostic;

use crate::MAX_BYTES;

/// The front end of trencher's automata.
pub struct Trencher;

impl FrontEnd for Trencher {
    fn name(&self) -> &'static str {
        "trencher"
    }

    /// `None`, because files with such automata are called `.txt`, like many other files.
    fn extension(&self) -> Option<&'static str> {
        None
    }

    fn detect(&self, text: &str) -> bool {
        let mut words = text.split_whitespace();
        match words.next() {
            Some("thread") => matches!(words.nth(1), Some("initial" | "transition" | "end")),
            first => first.is_some_and(|word| word.starts_with('#')),
        }
    }

    fn most_bytes(&self) -> usize {
        MAX_BYTES
    }

    fn parse(&self, input: &mut Input<'_>) -> Result<Parsed, Vec<Diagnostic>> {
        import::trencher(input.text())
    }

    fn edit(&self, text: &str, edits: &[&Edit]) -> Result<Vec<Change>, String> {
        let (mut changes, mut used) = (Vec::new(), 0);
        for edit in edits {
            let free = (used + 1..).find(|n| !text.contains(&format!("fence{n}")));
            used = free.ok_or("no name is free")?;
            change(text, edit, format!("fence{used}"), &mut changes)?;
        }
        Ok(changes)
    }

    fn statement_at(&self, line: &str, _part: Range<usize>) -> Range<usize> {
        0..line.len()
    }

    fn print(&self, loaded: &Loaded) -> Result<String, Vec<Diagnostic>> {
        export::trencher(&loaded.program)
    }
}

/// Inserts a fence as a transition between an existing state and a new one called `fresh`.
fn change(text: &str, edit: &Edit, fresh: String, changes: &mut Vec<Change>) -> Result<(), String> {
    let word = match edit.what {
        What::Fence => "mfence",
        What::StoreFence => return Err("trencher has no store-store fence".into()),
        What::Swap => return Err("trencher has no locked instruction".into()),
    };
    let at = edit.place.offset as usize;
    let end_of_line = |at: usize| text[at..].find('\n').map_or(text.len(), |n| at + n);
    match (edit.place.side, edit.place.label) {
        // Before the target of a transition: the transition leads to the new state instead, and the fence leads from there to the target.
        (Side::Before, None) => {
            let statement = edit.place.statement;
            let target = text.get(statement.range()).unwrap_or("");
            let line = text[..at].rfind('\n').map_or(0, |n| n + 1);
            if !text[line..at].trim_start().starts_with("transition") {
                return Err("this place is not behind a transition".into());
            }
            let end = end_of_line(statement.end as usize);
            let added = format!("\ntransition {fresh} {target} {word}");
            changes.push(Change { at: end, length: 0, text: added });
            changes.push(Change { at: statement.start as usize, length: target.len(), text: fresh });
        }
        // At a state: the fence leads from this state to the new one, and all transitions of this state leave the new one instead.
        (Side::Labelled, Some(label)) => {
            let state = text.get(label.range()).unwrap_or("");
            let starts = |line: &str| line.split_whitespace().next() == Some("thread");
            let offsets = || {
                text.split_inclusive('\n').scan(0, |at, line| {
                    *at += line.len();
                    Some((*at - line.len(), line))
                })
            };
            let first = offsets().filter(|(o, line)| *o <= at && starts(line)).last().map_or(0, |(o, _)| o);
            let last = offsets().find(|(o, line)| *o > first && starts(line)).map_or(text.len(), |(o, _)| o);
            let mut added = false;
            for (offset, line) in offsets().filter(|(o, _)| (first..last).contains(o)) {
                let mut words = line.split_whitespace();
                if (words.next(), words.next()) != (Some("transition"), Some(state)) {
                    continue;
                }
                let keyword = line.find("transition").map_or(0, |n| n + "transition".len());
                let word_at = line[keyword..].find(state).map_or(keyword, |n| keyword + n);
                if !added {
                    let text = format!("transition {state} {fresh} {word}\n");
                    changes.push(Change { at: offset, length: 0, text });
                    added = true;
                }
                changes.push(Change { at: offset + word_at, length: state.len(), text: fresh.clone() });
            }
            if !added {
                return Err("this state has no transitions".into());
            }
        }
        _ => return Err("trencher cannot say a fence here".into()),
    }
    Ok(())
}
