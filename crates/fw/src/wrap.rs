//! Wraps long lines, preferably at the weakest operator, so that lines reflect precedence.

use std::borrow::Cow;
use std::ops::Range;

use fencewright_program::BinaryOp;

use super::token::{Keyword, TokenKind};

/// Maximum width of a line that can be wrapped.
const WIDTH: usize = 100;
/// Minimum number of characters that a line may hold, however far it is indented.
const LEAST_WIDTH: usize = 40;
const STEP: usize = 4;

/// A token as it is written, with the comments before it on the same line.
pub struct Piece<'a> {
    /// The text to write.
    pub text: Cow<'a, str>,
    /// The lexical class of the token.
    pub kind: TokenKind,
    /// Whether a space precedes the token.
    pub space: bool,
    /// Whether the token is a binary operator.
    pub binary: bool,
    /// Whether the token is the colon after a name, binders or a quantifier in a formula.
    pub header: bool,
    /// Whether the token is the `?` or `:` of `c ? a : b`.
    pub ternary: bool,
}

/// The strength of a position between two tokens where a line may be broken. Lines are broken at the weakest positions first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
    Header,
    Comma,
    Operator(u8),
}

impl Strength {
    /// Whether each line takes as many parts as fit; otherwise every part gets a line of its own.
    fn fills(self) -> bool {
        match self {
            Strength::Header => false,
            Strength::Comma => true,
            Strength::Operator(precedence) => precedence > super::precedence(BinaryOp::Eq),
        }
    }
}

/// Breaks a sequence of tokens into lines, each with its indentation: `first` for the first line, `rest` for the lines at which the outermost parts
/// start, and [`STEP`] more for each level of parts that are broken again.
pub fn wrap(pieces: &[Piece], first: usize, rest: usize) -> Vec<(usize, Range<usize>)> {
    let mut ends = Vec::with_capacity(pieces.len() + 1);
    let mut end = 0;
    ends.push(0);
    for piece in pieces {
        end += usize::from(piece.space) + piece.text.chars().count();
        ends.push(end);
    }
    let mut wrapper = Wrapper { pieces, ends, lines: Vec::new() };
    wrapper.split(0..pieces.len(), first, rest);
    wrapper.lines
}

struct Wrapper<'a> {
    pieces: &'a [Piece<'a>],
    /// `ends[n]` is the width of the first `n` pieces on one line, including their spaces.
    ends: Vec<usize>,
    lines: Vec<(usize, Range<usize>)>,
}

impl Wrapper<'_> {
    fn fits(&self, range: &Range<usize>, indent: usize) -> bool {
        let leading = self.pieces.get(range.start).is_some_and(|p| p.space);
        let width = self.ends[range.end] - self.ends[range.start] - usize::from(leading);
        indent + width <= WIDTH.max(indent + LEAST_WIDTH)
    }

    fn split(&mut self, range: Range<usize>, first: usize, rest: usize) {
        let places = if self.fits(&range, first) { None } else { self.weakest(&range) };
        let Some((strength, places)) = places else {
            self.lines.push((first, range));
            return;
        };
        if strength == Strength::Header {
            // The line is broken only at the colon of the last header, so that all headers stay together.
            let colon = places[places.len() - 1];
            self.split(range.start..colon, first, rest + STEP);
            self.split(colon..range.end, rest, rest);
            return;
        }
        let mut start = range.start;
        let mut indent = first;
        for (number, &place) in places.iter().enumerate() {
            let next = places.get(number + 1).copied().unwrap_or(range.end);
            if strength.fills() && self.fits(&(start..next), indent) {
                continue;
            }
            self.split(start..place, indent, rest + STEP);
            (start, indent) = (place, rest);
        }
        self.split(start..range.end, indent, rest + STEP);
    }

    /// The positions in a range where the line should be broken: the weakest ones. `None` if the line cannot be broken in that range.
    fn weakest(&self, range: &Range<usize>) -> Option<(Strength, Vec<usize>)> {
        let mut best: Option<((usize, Strength), Vec<usize>)> = None;
        // A line is broken at its weakest position: first at one that the fewest brackets enclose. A quantifier counts as a bracket that is never
        // closed.
        let mut depth = range.len();
        let mut outside = Vec::new();
        for index in range.clone() {
            let piece = &self.pieces[index];
            if matches!(piece.kind, TokenKind::CloseParenthesis | TokenKind::CloseBracket) {
                depth = outside.pop().unwrap_or(depth - 1);
            }
            if index > range.start
                && let Some(strength) = self.strength(index)
            {
                let key = (depth, strength);
                match &mut best {
                    Some((found, places)) if *found == key => places.push(index),
                    Some((found, _)) if *found < key => {}
                    _ => best = Some((key, vec![index])),
                }
            }
            match piece.kind {
                TokenKind::OpenParenthesis | TokenKind::OpenBracket => {
                    outside.push(depth);
                    depth += 1;
                }
                TokenKind::Keyword(Keyword::Exists | Keyword::Forall) => depth += 1,
                _ => {}
            }
        }
        best.map(|((_, strength), places)| (strength, places))
    }

    /// The strength of the position before a piece; `None` if the line cannot be broken there.
    fn strength(&self, index: usize) -> Option<Strength> {
        let before = &self.pieces[index - 1];
        match (before.kind, &self.pieces[index]) {
            (TokenKind::Colon, _) if before.header => Some(Strength::Header),
            (TokenKind::Comma, _) => Some(Strength::Comma),
            (_, Piece { ternary: true, .. }) => Some(Strength::Operator(0)),
            (_, Piece { kind: TokenKind::Operator(op), binary: true, .. }) => {
                Some(Strength::Operator(super::precedence(*op)))
            }
            _ => None,
        }
    }
}
