//! Errors and warnings, with position and advice.

use fencewright_program::Span;

/// An error or a warning at one position of the source text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The characters of the source text that the message is about.
    pub span: Span,
    /// The message, in one line.
    pub message: String,
    /// Advice for the user on how to correct the program, if there is any.
    pub help: Option<String>,
    /// Whether semantic analysis reports the error even if no execution can reach the construct, because every C compiler rejects the text.
    pub always: bool,
}

impl Error {
    /// An error or a warning at `span`, without advice. Semantic analysis reports such an error only if an execution may reach the construct.
    pub fn new(span: Span, message: impl Into<String>) -> Self {
        Error { span, message: message.into(), help: None, always: false }
    }

    /// Marks an error that no compiler would accept: the text is refused even if nothing reaches the construct.
    pub fn always(self) -> Self {
        Error { always: true, ..self }
    }

    /// Sets the advice, replacing any earlier advice.
    pub fn help(self, help: impl Into<String>) -> Self {
        Error { help: Some(help.into()), ..self }
    }
}
