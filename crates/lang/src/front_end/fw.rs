//! The front end of `.fw`, the native language.

use std::ops::Range;

use fencewright_front_end::edit::{Change, Edit, What, inserted_after, inserted_before};
use fencewright_front_end::places::Side;
use fencewright_front_end::{FrontEnd, Input, Loaded, Parsed, between};
use fencewright_fw as fw;
use fencewright_text::Diagnostic;

/// The front end of `.fw`.
pub struct Fw;

impl FrontEnd for Fw {
    fn name(&self) -> &'static str {
        "fw"
    }

    fn extension(&self) -> Option<&'static str> {
        Some("fw")
    }

    /// Always false, because a `.fw` text has no marker. `.fw` is the default if no front end recognises the text.
    fn detect(&self, _text: &str) -> bool {
        false
    }

    fn parse(&self, input: &mut Input<'_>) -> Result<Parsed, Vec<Diagnostic>> {
        let (file, diagnostics) = fw::parse_unless(input.stop, input.text());
        match diagnostics.is_empty() {
            true => Ok(Parsed { file, ..Parsed::default() }),
            false => Err(diagnostics),
        }
    }

    fn edit(&self, text: &str, edits: &[&Edit]) -> Result<Vec<Change>, String> {
        edits.iter().map(|edit| change(text, edit)).collect()
    }

    fn has_locked_stores(&self) -> bool {
        true
    }

    fn statement_at(&self, line: &str, part: Range<usize>) -> Range<usize> {
        between(line, part, &[';', '{', '}'], &[';', '{'])
    }

    fn print(&self, loaded: &Loaded) -> Result<String, Vec<Diagnostic>> {
        Ok(fw::print(&loaded.file))
    }

    fn format(&self, text: &str) -> Option<Result<String, Vec<Diagnostic>>> {
        Some(fw::format(text))
    }
}

fn change(text: &str, edit: &Edit) -> Result<Change, String> {
    let statement = edit.place.statement;
    let word = match edit.what {
        What::Fence => "fence;",
        What::StoreFence => "sfence;",
        What::Swap => {
            let written = text.get(statement.range()).unwrap_or("");
            let (target, value) = assignment(written).ok_or("this is not an assignment")?;
            let value = value.trim().trim_end_matches(';').trim_end();
            let length = written.trim_end_matches(';').len();
            let text = format!("swap({}, {value})", target.trim());
            return Ok(Change { at: statement.start as usize, length, text });
        }
    };
    let at = edit.place.offset as usize;
    Ok(match edit.place.side {
        Side::Before | Side::Labelled => inserted_before(text, &edit.place, word),
        Side::After => {
            // The `;` after a statement counts as part of it, whether or not its span includes the `;`.
            let rest = &text[at..];
            let skipped = rest.len() - rest.trim_start().len();
            let at = if rest.trim_start().starts_with(';') { at + skipped + 1 } else { at };
            inserted_after(text, statement.start as usize, at, word)
        }
    })
}

/// Splits an assignment at its first `=` outside brackets; `None` if there is no such `=`.
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
