//! Positions in source texts.

use std::num::NonZeroU32;
use std::ops::Range;

/// The number of a source file of a program. This crate knows only the numbers; the front end that read the files has their names and texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

impl FileId {
    /// The main file: the file that the user named, which may include other files.
    pub const MAIN: FileId = FileId(0);
}

/// The call through which control reached inlined code: its position in [`calls`](crate::Program::calls), counted from 1, or none. All calls of a
/// procedure share its text, so a span alone does not tell them apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub Option<NonZeroU32>);

impl CallId {
    /// The index into the calls of the program.
    pub fn index(self) -> Option<usize> {
        self.0.map(|number| number.get() as usize - 1)
    }
}

/// A half-open range of byte offsets in one source file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// The source file that the offsets refer to.
    pub file: FileId,
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
    /// The call that was inlined, for code of a procedure.
    pub call: CallId,
}

impl Span {
    /// The span of the bytes `start..end` of the main file; offsets beyond 4 GiB are clamped.
    pub fn new(start: usize, end: usize) -> Self {
        Span { start: clamped(start), end: clamped(end), ..Span::default() }
    }

    /// The same bytes of another file.
    pub fn in_file(self, file: FileId) -> Self {
        Span { file, ..self }
    }

    /// The same bytes, without the call.
    pub fn text(self) -> Self {
        self.called(CallId::default())
    }

    /// The same bytes, reached through a call.
    pub fn called(self, call: CallId) -> Self {
        Span { call, ..self }
    }

    /// The empty span at an offset of the same file.
    pub fn point(self, offset: u32) -> Self {
        Span { start: offset, end: offset, ..self }
    }

    /// The span from the start of this one to an offset.
    pub fn up_to(self, end: usize) -> Self {
        Span { end: clamped(end), ..self }
    }

    /// The smallest span that covers both; if they are in different files, this one.
    pub fn to(self, other: Span) -> Self {
        if self.file != other.file {
            return self;
        }
        Span { start: self.start.min(other.start), end: self.end.max(other.end), ..self }
    }

    /// Whether another span lies entirely inside this one.
    pub fn covers(self, other: Span) -> bool {
        self.file == other.file && self.start <= other.start && other.end <= self.end
    }

    /// The offsets, for slicing the text of the file.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

fn clamped(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_different_files_are_not_joined() {
        let header = FileId(1);
        let (a, b) = (Span::new(2, 4), Span::new(7, 9));
        assert_eq!(a.to(b), Span::new(2, 9));
        assert_eq!(b.in_file(header).to(a), b.in_file(header));
        assert!(a.to(b).covers(b) && !a.to(b).covers(b.in_file(header)));
    }
}
