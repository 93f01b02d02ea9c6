//! Positions as editors count them: lines and, within a line, bytes or UTF-16 code units, depending on the client.

use std::ops::Range;

use lsp_types::{Position, PositionEncodingKind};

/// The unit of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Bytes.
    Utf8,
    /// UTF-16 code units, which every client supports.
    Utf16,
}

impl Encoding {
    /// UTF-8 if the client supports it, otherwise UTF-16.
    pub fn negotiated(offered: Option<&[PositionEncodingKind]>) -> Self {
        match offered.is_some_and(|offered| offered.contains(&PositionEncodingKind::UTF8)) {
            true => Encoding::Utf8,
            false => Encoding::Utf16,
        }
    }

    /// The name of the encoding in the protocol.
    pub fn kind(self) -> PositionEncodingKind {
        match self {
            Encoding::Utf8 => PositionEncodingKind::UTF8,
            Encoding::Utf16 => PositionEncodingKind::UTF16,
        }
    }

    /// The length of a text in this unit.
    pub fn length(self, text: &str) -> usize {
        match self {
            Encoding::Utf8 => text.len(),
            Encoding::Utf16 => text.chars().map(char::len_utf16).sum(),
        }
    }
}

/// A text with the offsets of its lines. A line ends with `\n`, `\r\n` or `\r`.
pub struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
    encoding: Encoding,
}

impl<'t> Lines<'t> {
    /// Finds the lines of a text; columns are counted in `encoding`.
    pub fn new(text: &'t str, encoding: Encoding) -> Self {
        let bytes = text.as_bytes();
        let ends = |n: usize| bytes[n] == b'\n' || bytes[n] == b'\r' && bytes.get(n + 1) != Some(&b'\n');
        let starts = std::iter::once(0).chain((0..bytes.len()).filter(|&n| ends(n)).map(|n| n + 1)).collect();
        Lines { text, starts, encoding }
    }

    /// The position of a byte offset. An offset beyond the end of the text means the end; an offset inside a character means the start of the
    /// character.
    pub fn position(&self, offset: usize) -> Position {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.starts.partition_point(|&start| start <= offset) - 1;
        let column = self.encoding.length(&self.text[self.starts[line]..offset]);
        Position { line: number(line), character: number(column) }
    }

    /// The range of positions of a range of bytes.
    pub fn range(&self, bytes: Range<usize>) -> lsp_types::Range {
        lsp_types::Range { start: self.position(bytes.start), end: self.position(bytes.end) }
    }

    /// The byte offset of a position. A position beyond the end of its line means the end of the line, and a line beyond the end of the text means
    /// the end of the text.
    pub fn offset(&self, position: Position) -> usize {
        let Some(&start) = self.starts.get(position.line as usize) else { return self.text.len() };
        let end = self.starts.get(position.line as usize + 1).copied().unwrap_or(self.text.len());
        let line = self.text[start..end].trim_end_matches(['\r', '\n']);
        let mut left = position.character as usize;
        for (at, c) in line.char_indices() {
            let units = match self.encoding {
                Encoding::Utf8 => c.len_utf8(),
                Encoding::Utf16 => c.len_utf16(),
            };
            if left < units {
                return start + at;
            }
            left -= units;
        }
        start + line.len()
    }

    /// The bytes between two positions.
    pub fn bytes(&self, range: lsp_types::Range) -> Range<usize> {
        let start = self.offset(range.start);
        start..self.offset(range.end).max(start)
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u32, character: u32) -> Position {
        Position { line, character }
    }

    #[test]
    fn columns_count_what_was_agreed() {
        // One character has two bytes and one UTF-16 unit, the other four bytes and two units.
        let text = "ä𝛼x\r\ny\rz\n";
        let (wide, narrow) = (Lines::new(text, Encoding::Utf16), Lines::new(text, Encoding::Utf8));
        for (offset, utf16, utf8) in [(0, 0, 0), (2, 1, 2), (6, 3, 6), (7, 4, 7)] {
            assert_eq!(wide.position(offset), at(0, utf16));
            assert_eq!(narrow.position(offset), at(0, utf8));
            assert_eq!(wide.offset(at(0, utf16)), offset);
            assert_eq!(narrow.offset(at(0, utf8)), offset);
        }
        // An offset and a position inside a character.
        assert_eq!((wide.position(4), wide.offset(at(0, 2))), (at(0, 1), 2));
        assert_eq!((wide.offset(at(1, 0)), wide.offset(at(2, 0)), wide.offset(at(3, 0))), (9, 11, 13));
        // Positions beyond the end of a line, and beyond the end of the text.
        assert_eq!((wide.offset(at(0, 99)), wide.offset(at(1, 99)), wide.offset(at(9, 9))), (7, 10, 13));
        assert_eq!(wide.position(1_000), at(3, 0));
    }

    #[test]
    fn every_position_leads_back() {
        let text = "a\r\n\r\rß\u{1f600}\n\nend";
        for encoding in [Encoding::Utf8, Encoding::Utf16] {
            let lines = Lines::new(text, encoding);
            for (offset, c) in text.char_indices().filter(|(_, c)| *c != '\n') {
                assert_eq!(lines.offset(lines.position(offset)), offset, "{c:?}");
            }
        }
    }
}
