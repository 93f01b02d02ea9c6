//! Source edits: fences put into the text they were found for, keeping every other byte.
//!
//! | format | a fence before a statement | after the last one of a block | in place of a store |
//! |---|---|---|---|
//! | `.fw` | `fence;` | `fence;` | `swap(x, e);` |
//! | `.rmm` | `fence;`, with braces where the statement is a body without them | `; fence` | `locked write: ...` |
//! | trencher | a new state behind the transition, or behind the state, with an `mfence` between | | |
//! | C | in the words of the text, with braces where the statement is a body without them | | a stronger order |
//! | litmus | a row of its own with `MFENCE` in the thread's column | | |
//!
//! Each row is the `edit` of a front end. An edit is a proposal: whoever makes one loads and verifies the new text before it is shown.

use std::collections::BTreeMap;

use fencewright_program::FileId;
use fencewright_text::Sources;

use crate::loaded::Loaded;
use crate::places::Place;

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

/// A piece of text that takes the place of some bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The offset of the first of these bytes.
    pub at: usize,
    /// How many there are.
    pub length: usize,
    /// What takes their place.
    pub text: String,
}

/// The files with all edits made; in words why that cannot be.
pub fn edited(loaded: &Loaded, edits: &[Edit]) -> Result<Sources, String> {
    let mut changes = changes(loaded, edits)?;
    loaded.sources.with_texts(|id, file| match changes.remove(&id) {
        Some(changes) => changed(&file.text, changes),
        None => Ok(file.text.clone()),
    })
}

/// What has to be changed in each file for all edits; in words why that cannot be.
pub fn changes(loaded: &Loaded, edits: &[Edit]) -> Result<BTreeMap<FileId, Vec<Change>>, String> {
    let mut by_file: BTreeMap<FileId, Vec<&Edit>> = BTreeMap::new();
    for edit in edits {
        by_file.entry(edit.place.statement.file).or_default().push(edit);
    }
    let changes = |(id, edits): (FileId, Vec<&Edit>)| {
        Ok((id, loaded.front_end.edit(&loaded.sources.file(id).text, &edits)?))
    };
    by_file.into_iter().map(changes).collect()
}

/// The text with all changes made. What is inserted at one offset keeps its order.
pub fn changed(text: &str, mut changes: Vec<Change>) -> Result<String, String> {
    changes.sort_by_key(|change| change.at);
    let mut result = text.to_owned();
    // From the end, so that offsets stay valid.
    for change in changes.into_iter().rev() {
        let range = change.at..change.at + change.length;
        if !result.is_char_boundary(range.start) || !result.is_char_boundary(range.end) {
            return Err("a place lies inside a character".into());
        }
        result.replace_range(range, &change.text);
    }
    Ok(result)
}

/// The blanks at the start of the line of an offset, and whether there is nothing else before it.
pub fn indentation(text: &str, at: usize) -> (&str, bool) {
    let line = text[..at].rfind('\n').map_or(0, |n| n + 1);
    let before = &text[line..at];
    let blanks = before.len() - before.trim_start().len();
    (&before[..blanks], blanks == before.len())
}

/// How lines of a text end.
pub fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// A statement `word` with its separator, before another one: on a line of its own if that one starts its line. A label may stand
/// further left than its statement; what stands before the label is indented as the statement is.
pub fn inserted_before(text: &str, place: &Place, word: &str) -> Change {
    let at = place.offset as usize;
    let (indent, starts_line) = indentation(text, at);
    let (of_statement, is_alone) = indentation(text, place.statement.start as usize);
    let deeper = of_statement.strip_prefix(indent).filter(|_| is_alone).unwrap_or("");
    let end = line_end(text);
    let text = if starts_line { format!("{deeper}{word}{end}{indent}") } else { format!("{word} ") };
    Change { at, length: 0, text }
}

/// A statement `word` with its separator, behind the statement that starts and ends at these offsets: on a line of its own if that one ends its line.
pub fn inserted_after(text: &str, start: usize, end: usize, word: &str) -> Change {
    let ends_line = text[end..].trim_start_matches([' ', '\t', '\r']).starts_with('\n');
    let (indent, _) = indentation(text, start);
    let line_end = line_end(text);
    let text = if ends_line { format!("{line_end}{indent}{word}") } else { format!(" {word}") };
    Change { at: end, length: 0, text }
}
