//! `fencewright fmt`: the one style, with every comment kept.

use fencewright_text::{Diagnostic, Stop};

use super::layout::layout;
use super::lexer::{Lexed, MAX_TOKENS, lex};
use super::parser::parse_tokens;

/// Lays a file out in the one style. Nothing but white space changes: every comment stays, on its own line or behind
/// the code it stood behind, and so do blank lines, at most one in a row. If all lines end as on Windows, they still do. A file with
/// errors is not touched.
pub fn format(text: &str) -> Result<String, Vec<Diagnostic>> {
    let Lexed { tokens, comments, diagnostics } = lex(text, MAX_TOKENS);
    let (_, diagnostics) = parse_tokens(text, &tokens, diagnostics, &Stop::never());
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    let formatted = layout(text, &tokens, &comments);
    let breaks = text.matches('\n').count();
    let windows = breaks > 0 && text.matches("\r\n").count() == breaks;
    // Comments of several lines bring their own line ends along.
    Ok(if windows { formatted.replace("\r\n", "\n").replace('\n', "\r\n") } else { formatted })
}
