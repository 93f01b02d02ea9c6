//! `fencewright fmt`: formats a file in the standard layout, keeping every comment.

use fencewright_text::{Diagnostic, Stop};

use super::layout::layout;
use super::lexer::{Lexed, MAX_TOKENS, lex};
use super::parser::parse_tokens;

/// Formats a file. Only white space changes: every comment stays between the same two tokens. Blank lines are kept, at most one in a row, except at
/// the start and at the end of a block. Windows line ends are kept if all lines have them. For a file with errors, these are returned.
pub fn format(text: &str) -> Result<String, Vec<Diagnostic>> {
    let Lexed { tokens, comments, diagnostics } = lex(text, MAX_TOKENS);
    let (_, diagnostics) = parse_tokens(text, &tokens, diagnostics, &Stop::never());
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    let formatted = layout(text, &tokens, &comments);
    let breaks = text.matches('\n').count();
    let windows = breaks > 0 && text.matches("\r\n").count() == breaks;
    // A comment of several lines keeps its own line ends, so all line ends are normalised first.
    Ok(if windows { formatted.replace("\r\n", "\n").replace('\n', "\r\n") } else { formatted })
}
