//! Source edits: inserts fences into the text they were found for, leaving every other byte unchanged. Full fences and locked instructions are
//! written like this:
//!
//! | format | a fence before a statement | after the last statement of a block | in place of a store |
//! |---|---|---|---|
//! | `.fw` | `fence;` | `fence;` | `swap(x, e);` |
//! | `.rmm` | `fence;`, with braces where the statement is a body without them | `; fence` | `locked write: ...` |
//! | trencher | a new state after the transition, or after the state, connected by an `mfence` | | |
//! | C | in the fence notation of the text, with braces where the statement is a body without them | | a stronger memory order |
//! | litmus | a row of its own with `MFENCE` in the thread's column | | |
//!
//! Each row is implemented by the `edit` of one front end. An edit is a proposal: the caller has to load and verify the new text before showing it.

use std::collections::BTreeMap;

use fencewright_program::FileId;
use fencewright_text::Sources;

use crate::loaded::Loaded;
use crate::places::Place;

/// The kind of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A full fence.
    Fence,
    /// A store-store fence.
    StoreFence,
    /// A locked instruction in place of the store.
    Swap,
}

/// An edit: the fence or locked instruction to insert, and the place.
#[derive(Clone, Debug)]
pub struct Edit {
    /// The kind of fence, or a locked instruction.
    pub what: What,
    /// The place; to replace a store, only its `statement` is used.
    pub place: Place,
}

/// A replacement of some bytes of a file by a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The offset of the first replaced byte.
    pub at: usize,
    /// The number of replaced bytes; 0 to insert.
    pub length: usize,
    /// The replacement.
    pub text: String,
}

/// The files after all edits, or the reason why the edits are not possible.
pub fn edited(loaded: &Loaded, edits: &[Edit]) -> Result<Sources, String> {
    let mut changes = changes(loaded, edits)?;
    loaded.sources.with_texts(|id, file| match changes.remove(&id) {
        Some(changes) => changed(&file.text, changes),
        None => Ok(file.text.clone()),
    })
}

/// The changes to each file that the edits make, or the reason why they are not possible.
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

/// The text with all changes applied. Insertions at the same offset keep their order.
pub fn changed(text: &str, mut changes: Vec<Change>) -> Result<String, String> {
    changes.sort_by_key(|change| change.at);
    let mut result = text.to_owned();
    // Last change first, so that the offsets of the others stay valid.
    for change in changes.into_iter().rev() {
        let range = change.at..change.at + change.length;
        if !result.is_char_boundary(range.start) || !result.is_char_boundary(range.end) {
            return Err("a place lies inside a character".into());
        }
        result.replace_range(range, &change.text);
    }
    Ok(result)
}

/// Returns the white space at the start of the line that contains the offset, and whether only white space precedes the offset in that line.
pub fn indentation(text: &str, at: usize) -> (&str, bool) {
    let line = text[..at].rfind('\n').map_or(0, |n| n + 1);
    let before = &text[line..at];
    let blanks = before.len() - before.trim_start().len();
    (&before[..blanks], blanks == before.len())
}

/// The line end that a text uses.
pub fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// Inserts `word`, a statement with its separator, at `place`. If only white space precedes the place in its line, `word` gets a line of its own. If
/// the place is before a label that is indented less than the labelled statement, `word` is indented like the statement.
pub fn inserted_before(text: &str, place: &Place, word: &str) -> Change {
    let at = place.offset as usize;
    let (indent, starts_line) = indentation(text, at);
    let (of_statement, is_alone) = indentation(text, place.statement.start as usize);
    let deeper = of_statement.strip_prefix(indent).filter(|_| is_alone).unwrap_or("");
    let end = line_end(text);
    let text = if starts_line { format!("{deeper}{word}{end}{indent}") } else { format!("{word} ") };
    Change { at, length: 0, text }
}

/// Inserts `word`, a statement with its separator, after the statement from `start` to `end`: on a new line if that statement is the last in its
/// line.
pub fn inserted_after(text: &str, start: usize, end: usize, word: &str) -> Change {
    let ends_line = text[end..].trim_start_matches([' ', '\t', '\r']).starts_with('\n');
    let (indent, _) = indentation(text, start);
    let line_end = line_end(text);
    let text = if ends_line { format!("{line_end}{indent}{word}") } else { format!(" {word}") };
    Change { at: end, length: 0, text }
}
