//! Source files: decodes bytes, maps offsets to lines and columns, and renders diagnostics for a terminal.
//!
//! Everything in a source file may be hostile, including its name: output to the terminal is escaped and bounded in length.

use std::fmt::Write as _;
use std::ops::Range;

use codespan_reporting::diagnostic::{Diagnostic as Report, Label};
use codespan_reporting::files::{Error as FileError, Files};
use codespan_reporting::term::termcolor::Buffer;
use codespan_reporting::term::{self, Config};
use fencewright_program::Span;

use crate::diagnostic::Diagnostic;

/// Maximum size in bytes of a file that is read: 64 MiB.
pub const MAX_FILE_BYTES: usize = 64 << 20;
/// Maximum number of diagnostics that are shown; the rest are counted.
const SHOWN_DIAGNOSTICS: usize = 20;
/// Maximum length of an excerpt of a source line, in characters.
const EXCERPT_LENGTH: usize = 160;
/// Maximum length of the part of an excerpt before the marked place, in characters.
const EXCERPT_BEFORE: usize = 60;
/// Maximum length of a message, a label or a piece of advice, in characters.
const TEXT_LENGTH: usize = 600;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The text of a file: UTF-8, without the byte order mark.
pub fn decode(bytes: &[u8]) -> Result<String, Diagnostic> {
    if bytes.len() > MAX_FILE_BYTES {
        let message = format!(
            "the file is too large: {} bytes, and at most {MAX_FILE_BYTES} (64 MiB) are read",
            bytes.len()
        );
        return Err(Diagnostic::new(Span::default(), message));
    }
    let stripped = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    match std::str::from_utf8(stripped) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => {
            let place = error.valid_up_to();
            let in_file = place + (bytes.len() - stripped.len());
            let message =
                format!("the file is not UTF-8 text: byte 0x{:02x} at offset {in_file}", stripped[place]);
            let help = if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
                "the file looks like UTF-16: save it as UTF-8"
            } else {
                "save the file as UTF-8"
            };
            Err(Diagnostic::new(Span::new(place, place + 1), message).help(help))
        }
    }
}

/// The text, with a byte order mark if the file that it replaces has one.
pub fn marked_like(file: &[u8], text: &str) -> String {
    let mark = if file.starts_with(BYTE_ORDER_MARK) { "\u{feff}" } else { "" };
    format!("{mark}{text}")
}

/// Escapes every character that could change what a terminal does or the order in which it shows text: control characters (including line breaks and
/// tabs), bidirectional overrides and invisible characters.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    text.chars().for_each(|c| push_escaped(&mut escaped, c));
    escaped
}

fn push_escaped(out: &mut String, c: char) {
    let invisible = matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    if c.is_control() || invisible {
        let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
    } else {
        out.push(c);
    }
}

/// Escapes the text and truncates it to TEXT_LENGTH characters.
fn bounded(text: &str) -> String {
    let mut out = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == TEXT_LENGTH {
            out.push_str("...");
            break;
        }
        push_escaped(&mut out, c);
    }
    out
}

/// A named text that spans refer to.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// The name to show: usually the path.
    pub name: String,
    /// The decoded text.
    pub text: String,
    line_starts: Vec<u32>,
}

impl SourceFile {
    /// A file with this name and text.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let breaks = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let line_starts =
            std::iter::once(0).chain(breaks.map(|(i, _)| u32::try_from(i + 1).unwrap_or(u32::MAX))).collect();
        SourceFile { name: name.into(), text, line_starts }
    }

    /// A file whose bytes need not be text, to show where [`decode`] failed: invalid UTF-8 is replaced, and a file that is too large has an empty
    /// text.
    pub fn lossy(name: impl Into<String>, bytes: &[u8]) -> Self {
        let stripped = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        let kept = if bytes.len() > MAX_FILE_BYTES { &[] } else { stripped };
        SourceFile::new(name, String::from_utf8_lossy(kept))
    }

    /// The line and column of a byte offset, both counted from 1, columns in characters. An offset beyond the end
    /// means the end.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        let offset = self.character_start(offset);
        let line = self.line_starts.partition_point(|&start| start as usize <= offset);
        let start = self.line_starts[line - 1] as usize;
        (line, self.text[start..offset].chars().count() + 1)
    }

    /// The text of a line, counted from 1, without its line break; empty if there is no such line.
    pub fn line_text(&self, line: usize) -> &str {
        &self.text[self.line_range(line)]
    }

    fn line_range(&self, line: usize) -> Range<usize> {
        let Some(&start) = line.checked_sub(1).and_then(|index| self.line_starts.get(index)) else {
            return 0..0;
        };
        let start = start as usize;
        let end = self.line_starts.get(line).map_or(self.text.len(), |&next| next as usize - 1);
        let text = &self.text[start..end];
        start..start + text.strip_suffix('\r').unwrap_or(text).len()
    }

    /// The nearest offset at or before this one where a character starts.
    fn character_start(&self, offset: usize) -> usize {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        offset
    }

    /// The diagnostics as a terminal shows them, at most twenty of them: file, line and column, the source line with
    /// the place marked, and the advice. With `colour`, ANSI colours are used.
    pub fn render(&self, diagnostics: &[Diagnostic], colour: bool) -> String {
        render(diagnostics, colour, |_| self)
    }

    /// The line where a span starts, escaped and cut to a readable length around the marked place.
    fn excerpt(&self, span: Span) -> Excerpt {
        let start = self.character_start(span.start as usize);
        let (line, column) = self.line_column(start);
        let range = self.line_range(line);
        let start = start.min(range.end);
        // A span that extends beyond the line is marked up to the end of the line. If a span ends inside a character, the whole character is marked.
        let end = (span.end as usize).clamp(start, range.end);
        let before = self.text[range.start..start].char_indices().rev();
        let from = before.take(EXCERPT_BEFORE).last().map_or(start, |(i, _)| range.start + i);
        let mut text = String::new();
        if from > range.start {
            text.push_str("...");
        }
        let (mut marked, mut marked_end) = (text.len(), None);
        for (count, (i, c)) in self.text[from..range.end].char_indices().enumerate() {
            let place = from + i;
            if place == start {
                marked = text.len();
            }
            if place >= end && marked_end.is_none() {
                marked_end = Some(text.len());
            }
            if count == EXCERPT_LENGTH {
                marked_end = marked_end.or(Some(text.len()));
                text.push_str("...");
                break;
            }
            match c {
                '\t' => text.push_str("    "),
                _ => push_escaped(&mut text, c),
            }
        }
        if start == range.end {
            marked = text.len();
        }
        let marked = marked..marked_end.unwrap_or(text.len()).max(marked);
        Excerpt { name: bounded(&self.name), text, marked, line, column }
    }
}

/// Renders the first [`SHOWN_DIAGNOSTICS`] diagnostics for a terminal, each with an excerpt of its file.
pub(crate) fn render<'f>(
    diagnostics: &[Diagnostic],
    colour: bool,
    file: impl Fn(&Diagnostic) -> &'f SourceFile,
) -> String {
    let mut buffer = if colour { Buffer::ansi() } else { Buffer::no_color() };
    let config = Config::default();
    for diagnostic in diagnostics.iter().take(SHOWN_DIAGNOSTICS) {
        let excerpt = file(diagnostic).excerpt(diagnostic.span);
        let mut label = Label::primary((), excerpt.marked.clone());
        if let Some(text) = &diagnostic.label {
            label = label.with_message(bounded(text));
        }
        let mut report = Report::error().with_message(bounded(&diagnostic.message)).with_label(label);
        if let Some(help) = &diagnostic.help {
            report = report.with_note(format!("help: {}", bounded(help)));
        }
        // Writing to memory cannot fail, and the excerpt has the only line that is requested.
        let _ = term::emit_to_write_style(&mut buffer, &config, &excerpt, &report);
    }
    let mut rendered = String::from_utf8_lossy(buffer.as_slice()).into_owned();
    if let Some(more) = diagnostics.len().checked_sub(SHOWN_DIAGNOSTICS + 1) {
        let _ = writeln!(rendered, "... and {} more", more + 1);
    }
    rendered
}

/// One line of a source file, prepared for display.
struct Excerpt {
    name: String,
    text: String,
    marked: Range<usize>,
    line: usize,
    column: usize,
}

impl<'a> Files<'a> for Excerpt {
    type FileId = ();
    type Name = &'a str;
    type Source = &'a str;

    fn name(&'a self, (): ()) -> Result<&'a str, FileError> {
        Ok(&self.name)
    }

    fn source(&'a self, (): ()) -> Result<&'a str, FileError> {
        Ok(&self.text)
    }

    fn line_index(&'a self, (): (), _: usize) -> Result<usize, FileError> {
        Ok(0)
    }

    fn line_range(&'a self, (): (), _: usize) -> Result<Range<usize>, FileError> {
        Ok(0..self.text.len())
    }

    fn line_number(&'a self, (): (), _: usize) -> Result<usize, FileError> {
        Ok(self.line)
    }

    // codespan requests only the column of the marked place.
    fn column_number(&'a self, (): (), _: usize, _: usize) -> Result<usize, FileError> {
        Ok(self.column)
    }
}
