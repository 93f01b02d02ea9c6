//! Errors and warnings, with position and advice.

use fencewright_program::Span;

/// A message about a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The position.
    pub span: Span,
    /// The message, in one line.
    pub message: String,
    /// Advice for the user on how to correct the program, if there is any.
    pub help: Option<String>,
    /// Whether no compiler accepts the text, even if the construct is unreachable. Other errors are about constructs that this front end does not
    /// support.
    pub always: bool,
}

impl Error {
    /// A message about a position.
    pub fn new(span: Span, message: impl Into<String>) -> Self {
        Error { span, message: message.into(), help: None, always: false }
    }

    /// Marks an error that no compiler would accept: the text is refused even if nothing reaches the construct.
    pub fn always(self) -> Self {
        Error { always: true, ..self }
    }

    /// Adds advice.
    pub fn help(self, help: impl Into<String>) -> Self {
        Error { help: Some(help.into()), ..self }
    }
}
