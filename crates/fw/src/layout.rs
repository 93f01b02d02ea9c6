//! The layout of the formatter: turns tokens and comments into lines.
//!
//! The layout depends on the tokens, on the positions of comments relative to the tokens, and on which blank lines are kept. Formatting a formatted
//! text changes none of these, so formatting is idempotent.

use fencewright_program::{BinaryOp, Span};

use super::token::{Keyword, Token, TokenKind};
use super::wrap::{Piece, wrap};

/// Width of one level of indentation, in columns.
const STEP: usize = 4;

/// Lays out the text of a file without errors.
pub fn layout(text: &str, tokens: &[Token], comments: &[Span]) -> String {
    let comments = place_comments(text, tokens, comments);
    let ternary = ternary_colons(tokens);
    let mut layout = Layout {
        text,
        tokens,
        ternary,
        comments,
        next_comment: 0,
        level: 0,
        fresh: true,
        out: String::new(),
    };
    layout.run();
    layout.out
}

/// The position of a comment relative to code.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// On lines of its own.
    Own,
    /// At the end of a line, after a token.
    Trailing,
    /// Before a token on the same line.
    Glued,
}

/// A comment with its position.
struct Comment {
    span: Span,
    class: Class,
    /// The index of the token after the comment.
    token: usize,
    /// Whether a blank line precedes the comment.
    blank: bool,
    /// Whether the comment is on the same line as the previous comment.
    joined: bool,
}

fn breaks(text: &str, from: u32, to: u32) -> usize {
    text[from as usize..to as usize].bytes().filter(|&b| b == b'\n').count()
}

/// Determines the class of every comment. Comments on one line before the same token have the same class.
fn place_comments(text: &str, tokens: &[Token], spans: &[Span]) -> Vec<Comment> {
    let mut placed: Vec<Comment> = Vec::with_capacity(spans.len());
    let mut token = 0;
    let mut index = 0;
    while index < spans.len() {
        while tokens[token].kind != TokenKind::End && tokens[token].span.start < spans[index].start {
            token += 1;
        }
        let next = tokens[token];
        let before = token.checked_sub(1).map(|t| tokens[t]);
        // Finds the last comment that follows this one on the same line and precedes the same token.
        let mut last = index;
        while last + 1 < spans.len()
            && spans[last + 1].start < next.span.start
            && breaks(text, spans[last].end, spans[last + 1].start) == 0
        {
            last += 1;
        }
        let previous_end = match placed.last() {
            Some(comment) if comment.token == token => comment.span.end,
            _ => before.map_or(0, |t| t.span.end),
        };
        let gap = breaks(text, previous_end, spans[index].start);
        let behind = gap == 0 && before.is_some();
        let followed = next.kind != TokenKind::End && breaks(text, spans[last].end, next.span.start) == 0;
        let class = match (followed, behind) {
            // A comment with a `}` behind it on its line gets a line of its own if `{` precedes it, and otherwise stays after the previous token.
            (true, true) if next.kind == TokenKind::CloseBrace => match before {
                Some(Token { kind: TokenKind::OpenBrace, .. }) => Class::Own,
                _ => Class::Trailing,
            },
            (true, false) if next.kind == TokenKind::CloseBrace => Class::Own,
            (true, _) => Class::Glued,
            (false, true) => Class::Trailing,
            (false, false) => Class::Own,
        };
        for (i, &span) in spans[index..=last].iter().enumerate() {
            placed.push(Comment { span, class, token, blank: gap > 1 && i == 0, joined: i > 0 });
        }
        index = last + 1;
    }
    placed
}

/// For each token, whether it is the colon of `c ? a : b` and not that of a quantifier.
fn ternary_colons(tokens: &[Token]) -> Vec<bool> {
    let mut open = Vec::new();
    let colon = |token: &Token| match token.kind {
        TokenKind::Question => {
            open.push(true);
            false
        }
        TokenKind::Keyword(Keyword::Exists | Keyword::Forall) => {
            open.push(false);
            false
        }
        TokenKind::Colon => open.pop() == Some(true),
        TokenKind::Semicolon | TokenKind::OpenBrace | TokenKind::CloseBrace => {
            open.clear();
            false
        }
        _ => false,
    };
    tokens.iter().map(colon).collect()
}

struct Layout<'a> {
    text: &'a str,
    tokens: &'a [Token],
    /// For each token, whether it is the colon of `c ? a : b`.
    ternary: Vec<bool>,
    comments: Vec<Comment>,
    /// The index of the first comment that has not been written.
    next_comment: usize,
    level: usize,
    /// Whether nothing of the current block has been written, so that blank lines are dropped.
    fresh: bool,
    out: String,
}

impl Layout<'_> {
    fn run(&mut self) {
        let mut start = 0;
        while self.kind(start) != TokenKind::End {
            let end = self.line_end(start);
            self.line(start, end);
            start = end;
        }
        self.own_comments(start, 0);
    }

    fn kind(&self, token: usize) -> TokenKind {
        self.tokens[token].kind
    }

    fn is_label(&self, start: usize) -> bool {
        self.level > 0 && self.kind(start) == TokenKind::Name && self.kind(start + 1) == TokenKind::Colon
    }

    /// The index after the last token of the logical line that begins with the token `start`. A logical line may be wrapped later.
    fn line_end(&self, start: usize) -> usize {
        if self.is_label(start) {
            return start + 2;
        }
        let mut end = start;
        loop {
            let kind = self.kind(end);
            end += 1;
            let goes_on = match (kind, self.kind(end)) {
                (_, TokenKind::End) | (TokenKind::Semicolon, _) => false,
                (TokenKind::OpenBrace, next) => next == TokenKind::CloseBrace && !self.broken_before(end),
                (TokenKind::CloseBrace, TokenKind::Keyword(Keyword::Else | Keyword::Or)) => {
                    !self.broken_before(end)
                }
                (TokenKind::CloseBrace, _) => false,
                _ => true,
            };
            if !goes_on {
                return end;
            }
        }
    }

    /// The comments before a token, except for those that have been written.
    fn comments_before(&self, token: usize) -> &[Comment] {
        let rest = &self.comments[self.next_comment..];
        // This function is called before the comments of the line are written, so the first unwritten comments may belong to earlier tokens.
        let from = rest.partition_point(|c| c.token < token);
        let to = rest.partition_point(|c| c.token <= token);
        &rest[from..to]
    }

    /// Whether a comment before a token ends the line.
    fn broken_before(&self, token: usize) -> bool {
        self.comments_before(token).iter().any(|c| c.class != Class::Glued)
    }

    /// Writes a line: the tokens `start..end` and the comments around them.
    fn line(&mut self, start: usize, end: usize) {
        let label = self.is_label(start);
        let closes = self.kind(start) == TokenKind::CloseBrace;
        self.own_comments(start, self.level);
        if closes {
            self.level = self.level.saturating_sub(1);
        }
        let previous = start.checked_sub(1).map_or(0, |t| self.tokens[t].span.end);
        let blank = match self.comments_before(start).first() {
            Some(glued) => glued.blank,
            None => {
                let comment = self.next_comment.checked_sub(1).map_or(0, |c| self.comments[c].span.end);
                breaks(self.text, previous.max(comment), self.tokens[start].span.start) > 1
            }
        };
        if blank && !self.fresh && !closes {
            self.out.push('\n');
        }
        let opens = self.kind(end - 1) == TokenKind::OpenBrace;
        let indent = STEP * self.level.saturating_sub(usize::from(label));
        // Continuation lines are indented further than the lines of a block that follows.
        let rest = indent + if opens { 2 * STEP } else { STEP };
        let variables =
            matches!(self.kind(start), TokenKind::Keyword(Keyword::Shared | Keyword::Var | Keyword::Fn));
        let mut from = start;
        while from < end {
            let to = (from + 1..end).find(|&t| self.broken_before(t)).unwrap_or(end);
            if from > start {
                self.own_comments(from, rest / STEP);
            }
            self.segment(from, to, if from == start { indent } else { rest }, rest, !variables);
            self.trailing_comments(to);
            self.out.push('\n');
            from = to;
        }
        self.fresh = opens;
        self.level += usize::from(opens);
    }

    /// Writes a sequence of tokens between which no comment ends a line.
    fn segment(&mut self, from: usize, to: usize, first: usize, rest: usize, headers: bool) {
        let mut pieces = Vec::with_capacity(to - from);
        for token in from..to {
            let span = self.tokens[token].span;
            let own = &self.text[span.range()];
            let mut glued = String::new();
            while let Some(comment) = self.comments.get(self.next_comment)
                && comment.token == token
            {
                glued.push_str(&self.text[comment.span.range()]);
                glued.push(' ');
                self.next_comment += 1;
            }
            let space = token > from && (self.space_before(token) || !glued.is_empty());
            let kind = self.kind(token);
            let text = if glued.is_empty() { own.into() } else { (glued + own).into() };
            let ternary = kind == TokenKind::Question || self.ternary[token];
            let header = headers && kind == TokenKind::Colon && !ternary;
            pieces.push(Piece { text, kind, space, binary: self.is_binary(token), header, ternary });
        }
        for (number, (indent, range)) in wrap(&pieces, first, rest).into_iter().enumerate() {
            if number > 0 {
                self.out.push('\n');
            }
            self.out.extend(std::iter::repeat_n(' ', indent));
            for (position, piece) in pieces[range].iter().enumerate() {
                if piece.space && position > 0 {
                    self.out.push(' ');
                }
                self.out.push_str(&piece.text);
            }
        }
    }

    /// Writes the comments before a token that are on lines of their own.
    fn own_comments(&mut self, token: usize, level: usize) {
        while let Some(comment) = self.comments.get(self.next_comment)
            && comment.token == token
            && comment.class == Class::Own
        {
            if comment.joined {
                // This comment is on the line of the previous comment, so the line break after the previous comment is removed.
                self.out.pop();
                self.out.push(' ');
            } else {
                if comment.blank && !self.fresh {
                    self.out.push('\n');
                }
                self.out.extend(std::iter::repeat_n(' ', STEP * level));
            }
            self.write_comment();
            self.out.push('\n');
            self.fresh = false;
        }
    }

    /// Writes the comments after the previous token.
    fn trailing_comments(&mut self, token: usize) {
        while let Some(comment) = self.comments.get(self.next_comment)
            && comment.token == token
            && comment.class == Class::Trailing
        {
            self.out.push(' ');
            self.write_comment();
        }
    }

    fn write_comment(&mut self) {
        let span = self.comments[self.next_comment].span;
        self.out.push_str(&self.text[span.range()]);
        self.next_comment += 1;
    }

    fn is_binary(&self, token: usize) -> bool {
        let behind_operand = token.checked_sub(1).is_some_and(|t| self.kind(t).ends_operand());
        matches!(self.kind(token), TokenKind::Operator(_)) && behind_operand
    }

    fn is_unary(&self, token: usize) -> bool {
        match self.kind(token) {
            TokenKind::Not | TokenKind::Tilde => true,
            TokenKind::Operator(BinaryOp::Sub) => !self.is_binary(token),
            _ => false,
        }
    }

    /// Whether there is a space between a token and the previous one on its line.
    fn space_before(&self, token: usize) -> bool {
        use TokenKind::*;
        let (before, this) = (self.kind(token - 1), self.kind(token));
        match (before, this) {
            (_, Colon) if self.ternary[token] => true,
            (_, Semicolon | Comma | Colon | CloseParenthesis | CloseBracket) => false,
            (_, Dot | DotDot | DotDotEqual | At) | (Dot | DotDot | DotDotEqual | At, _) => false,
            (OpenParenthesis | OpenBracket, _) | (OpenBrace, CloseBrace) => false,
            (Name, OpenBracket | OpenParenthesis) => false,
            (Keyword(keyword), OpenParenthesis) => !keyword.begins_operation(),
            _ => !self.is_unary(token - 1),
        }
    }
}
