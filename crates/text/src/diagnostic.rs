//! Errors in input, with their place and advice.

use fencewright_program::Span;

/// Number of errors after which the rest of a file is ignored.
pub const MAX_DIAGNOSTICS: usize = 1_000;

/// An error message about a place in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The message, in one line.
    pub message: String,
    /// The place in the source that the message is about.
    pub span: Span,
    /// A text shown directly at the place, in addition to the message, if any.
    pub label: Option<String>,
    /// Advice on how to correct the error, if there is any.
    pub help: Option<String>,
    /// Whether the error is the lack of an entry point, so that the text may be a fragment of a larger program.
    pub lacks_start: bool,
}

impl Diagnostic {
    /// A message about a place.
    pub fn new(span: Span, message: impl Into<String>) -> Self {
        Diagnostic { message: message.into(), span, label: None, help: None, lacks_start: false }
    }

    /// Adds a text shown directly at the place.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Marks the error as the lack of an entry point.
    pub fn lacking_start(mut self) -> Self {
        self.lacks_start = true;
        self
    }

    /// Adds advice.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}
