//! x86 litmus tests: importer and exporter.

pub mod export;
pub mod import;

use std::ops::Range;

use fencewright_front_end::edit::{Change, Edit, What};
use fencewright_front_end::places::Side;
use fencewright_front_end::{FrontEnd, Input, Loaded, Parsed, between};
use fencewright_text::Diagnostic;

use crate::MAX_BYTES;

/// The front end of litmus tests.
pub struct Litmus;

impl FrontEnd for Litmus {
    fn name(&self) -> &'static str {
        "litmus"
    }

    fn extension(&self) -> Option<&'static str> {
        Some("litmus")
    }

    fn detect(&self, text: &str) -> bool {
        matches!(text.split_whitespace().next(), Some("X86" | "X86_64"))
    }

    fn most_bytes(&self) -> usize {
        MAX_BYTES
    }

    fn parse(&self, input: &mut Input<'_>) -> Result<Parsed, Vec<Diagnostic>> {
        import::litmus(input.text())
    }

    fn edit(&self, text: &str, edits: &[&Edit]) -> Result<Vec<Change>, String> {
        edits.iter().map(|edit| change(text, edit)).collect()
    }

    /// The cell of the table at `part`, without its terminator.
    fn statement_at(&self, line: &str, part: Range<usize>) -> Range<usize> {
        let cell = between(line, part, &['|', ';'], &['|', ';']);
        cell.start..cell.start + line[cell].trim_end_matches(['|', ';']).len()
    }

    fn print(&self, loaded: &Loaded) -> Result<String, Vec<Diagnostic>> {
        export::litmus(&loaded.program, &loaded.title())
    }
}

/// Inserts a row with the fence in the column of its thread.
fn change(text: &str, edit: &Edit) -> Result<Change, String> {
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
    let (cells, end) = import::row_length(row, 0).map_or((row, ""), |length| (&row[..length], ";"));
    let added: Vec<String> = cells
        .split('|')
        .enumerate()
        .map(|(n, cell)| {
            let width = cell.chars().count();
            let content = if n == column { format!(" {word} ") } else { String::new() };
            format!("{content:width$}")
        })
        .collect();
    Ok(Change { at: line, length: 0, text: format!("{}{end}\n", added.join("|")) })
}
