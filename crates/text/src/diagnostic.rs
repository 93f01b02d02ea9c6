//! Errors in input: what is wrong, where, and what to do about it.

use fencewright_program::Span;

/// After so many errors the rest of a file is not looked at.
pub const MAX_DIAGNOSTICS: usize = 1_000;

/// One message about a place in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// What is wrong, in one line.
    pub message: String,
    /// Where.
    pub span: Span,
    /// What to say directly at the place, if the message does not say it.
    pub label: Option<String>,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A message about a place.
    pub fn new(span: Span, message: impl Into<String>) -> Self {
        Diagnostic { message: message.into(), span, label: None, help: None }
    }

    /// With words directly at the place.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// With advice.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}
