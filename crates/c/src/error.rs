//! What is wrong with a text, where, and what to do about it.

use fencewright_program::Span;

/// One message about a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Where.
    pub span: Span,
    /// What is wrong, in one line.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl Error {
    /// A message about a place.
    pub fn new(span: Span, message: impl Into<String>) -> Self {
        Error { span, message: message.into(), help: None }
    }

    /// With advice.
    pub fn help(self, help: impl Into<String>) -> Self {
        Error { help: Some(help.into()), ..self }
    }
}
