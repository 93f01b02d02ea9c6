//! Source edits: fences put into the text they were found for, keeping every other byte.
//!
//! | format | a fence before a statement | after the last one of a block | in place of a store |
//! |---|---|---|---|
//! | `.fw` | `fence;` | `fence;` | `swap(x, e);` |
//! | `.rmm` | `fence;`, with braces where the statement is a body without them | `; fence` | `locked write: ...` |
//! | trencher | a new state behind the transition, or behind the state, with an `mfence` between | | |
//! | litmus | a row of its own with `MFENCE` in the thread's column | | |
//!
//! An edit is a proposal: whoever makes one loads and verifies the new text before it is shown.

use fencewright_program::Span;

use crate::import::{Format, litmus_row_length};
use crate::load::Loaded;
use crate::places::{Place, Side};

/// What is put into the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A full fence.
    Fence,
    /// A store-store fence.
    StoreFence,
    /// A locked instruction in place of the store.
    Swap,
}

/// An edit: what, and where.
#[derive(Clone, Debug)]
pub struct Edit {
    /// What.
    pub what: What,
    /// The place; for a store to replace, the statement is all that counts.
    pub place: Place,
}

/// A piece of text that takes the place of some bytes.
struct Change {
    at: usize,
    length: usize,
    text: String,
}

/// The text with all edits made; in words why that cannot be.
pub fn edited(loaded: &Loaded, edits: &[Edit]) -> Result<String, String> {
    let text = &loaded.source.text;
    let mut changes = Vec::new();
    let mut names = Vec::new();
    for edit in edits {
        match loaded.format {
            Format::Fw => fw(text, edit, &mut changes)?,
            Format::Rmm => rmm(text, edit, &mut changes)?,
            Format::Trencher => trencher(text, edit, &mut names, &mut changes)?,
            Format::Litmus => litmus(text, edit, &mut changes)?,
        }
    }
    // From the end, so that offsets stay valid; what is inserted at one offset keeps its order.
    changes.sort_by_key(|change| change.at);
    let mut result = text.clone();
    for change in changes.into_iter().rev() {
        let range = change.at..change.at + change.length;
        if !result.is_char_boundary(range.start) || !result.is_char_boundary(range.end) {
            return Err("a place lies inside a character".into());
        }
        result.replace_range(range, &change.text);
    }
    Ok(result)
}

fn slice(text: &str, span: Span) -> &str {
    text.get(span.range()).unwrap_or("")
}

/// The blanks at the start of the line of an offset, and whether there is nothing else before it.
fn indentation(text: &str, at: usize) -> (&str, bool) {
    let line = text[..at].rfind('\n').map_or(0, |n| n + 1);
    let before = &text[line..at];
    let blanks = before.len() - before.trim_start().len();
    (&before[..blanks], blanks == before.len())
}

/// How lines of a text end.
fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// A statement `word` with its separator, before another one: on a line of its own if that one starts its line.
fn inserted_before(text: &str, at: usize, word: &str) -> Change {
    let (indent, starts_line) = indentation(text, at);
    let end = line_end(text);
    let text = if starts_line { format!("{word}{end}{indent}") } else { format!("{word} ") };
    Change { at, length: 0, text }
}

fn fw(text: &str, edit: &Edit, changes: &mut Vec<Change>) -> Result<(), String> {
    let statement = edit.place.statement;
    let word = match edit.what {
        What::Fence => "fence;",
        What::StoreFence => "sfence;",
        What::Swap => {
            let written = slice(text, statement);
            let (target, value) = assignment(written).ok_or("this is not an assignment")?;
            let value = value.trim().trim_end_matches(';').trim_end();
            let length = written.trim_end_matches(';').len();
            let text = format!("swap({}, {value})", target.trim());
            changes.push(Change { at: statement.start as usize, length, text });
            return Ok(());
        }
    };
    let at = edit.place.offset as usize;
    changes.push(match edit.place.side {
        Side::Before | Side::Labelled => inserted_before(text, at, word),
        Side::After => {
            // The separator belongs to the statement, whether or not its span has it.
            let rest = &text[at..];
            let skipped = rest.len() - rest.trim_start().len();
            let at = if rest.trim_start().starts_with(';') { at + skipped + 1 } else { at };
            let ends_line = text[at..].trim_start_matches([' ', '\t', '\r']).starts_with('\n');
            let (indent, _) = indentation(text, statement.start as usize);
            let end = line_end(text);
            let text = if ends_line { format!("{end}{indent}{word}") } else { format!(" {word}") };
            Change { at, length: 0, text }
        }
    });
    Ok(())
}

/// The two sides of an assignment: at its first `=` outside brackets.
fn assignment(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0;
    for (n, c) in text.char_indices() {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth -= 1,
            '=' if depth == 0 => return Some((&text[..n], &text[n + 1..])),
            _ => {}
        }
    }
    None
}

fn rmm(text: &str, edit: &Edit, changes: &mut Vec<Change>) -> Result<(), String> {
    let Place { offset, side, statement, .. } = edit.place;
    let (start, end) = (statement.start as usize, statement.end as usize);
    let word = match edit.what {
        What::Fence => "fence",
        What::StoreFence => "ssfence",
        What::Swap if slice(text, statement).starts_with("write") => {
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
            changes.push(inserted_before(text, at, &format!("{word};")));
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

fn trencher(
    text: &str,
    edit: &Edit,
    names: &mut Vec<String>,
    changes: &mut Vec<Change>,
) -> Result<(), String> {
    let word = match edit.what {
        What::Fence => "mfence",
        What::StoreFence => return Err("trencher has no store-store fence".into()),
        What::Swap => return Err("trencher has no locked instruction".into()),
    };
    let fresh = (1..)
        .map(|n| format!("fence{n}"))
        .find(|name| !text.contains(name.as_str()) && !names.contains(name))
        .ok_or("no name is free")?;
    names.push(fresh.clone());
    let at = edit.place.offset as usize;
    let end_of_line = |at: usize| text[at..].find('\n').map_or(text.len(), |n| at + n);
    match (edit.place.side, edit.place.label) {
        // Before the jump to the next state: a new state in between.
        (Side::Before, None) => {
            let statement = edit.place.statement;
            let target = slice(text, statement);
            let line = text[..at].rfind('\n').map_or(0, |n| n + 1);
            if !text[line..at].trim_start().starts_with("transition") {
                return Err("this place is not behind a transition".into());
            }
            let end = end_of_line(statement.end as usize);
            let added = format!("\ntransition {fresh} {target} {word}");
            changes.push(Change { at: end, length: 0, text: added });
            changes.push(Change { at: statement.start as usize, length: target.len(), text: fresh });
        }
        // At a state: all its transitions leave a new one, behind the fence.
        (Side::Labelled, Some(label)) => {
            let state = slice(text, label);
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

fn litmus(text: &str, edit: &Edit, changes: &mut Vec<Change>) -> Result<(), String> {
    let word = match edit.what {
        What::Fence => "MFENCE",
        What::StoreFence => "SFENCE",
        What::Swap => return Err("an XCHG needs a register: put it in by hand".into()),
    };
    let at = edit.place.offset as usize;
    if edit.place.side == Side::After {
        return Err("a litmus test has no blocks".into());
    }
    let line = text[..at].rfind('\n').map_or(0, |n| n + 1);
    let row = text[line..].lines().next().unwrap_or("");
    let column = text[line..at].matches('|').count();
    let (cells, end) = litmus_row_length(row, 0).map_or((row, ""), |length| (&row[..length], ";"));
    let added: Vec<String> = cells
        .split('|')
        .enumerate()
        .map(|(n, cell)| {
            let width = cell.chars().count();
            let content = if n == column { format!(" {word} ") } else { String::new() };
            format!("{content:width$}")
        })
        .collect();
    changes.push(Change { at: line, length: 0, text: format!("{}{end}\n", added.join("|")) });
    Ok(())
}
