//! `fencewright fmt`: the one style, with every comment kept.

use super::layout::layout;
use super::lexer::{Lexed, MAX_TOKENS, lex};
use super::parser::parse_tokens;
use crate::diagnostic::Diagnostic;

/// Lays a file out in the one style. Nothing but white space changes: every comment stays, on its own line or behind
/// the code it stood behind, and so do blank lines, at most one in a row. Lines end as the first one does. A file with errors is not
/// touched.
pub fn format(text: &str) -> Result<String, Vec<Diagnostic>> {
    let Lexed { tokens, comments, diagnostics } = lex(text, MAX_TOKENS);
    let (_, diagnostics) = parse_tokens(text, &tokens, diagnostics);
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    let formatted = layout(text, &tokens, &comments);
    let windows = text.split_once('\n').is_some_and(|(line, _)| line.ends_with('\r'));
    // Comments of several lines bring their own line ends along.
    Ok(if windows { formatted.replace("\r\n", "\n").replace('\n', "\r\n") } else { formatted })
}
