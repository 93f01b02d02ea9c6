//! Memory that is used with two types that cannot share it, and the error messages for it.

use fencewright_program::Span;
use fencewright_text::Diagnostic;

/// Two incompatible shapes that unification would give to one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clash {
    /// One shape, and the source that determines it.
    pub one: (String, Span),
    /// The other shape.
    pub other: (String, Span),
    /// Whether exactly one of the two shapes is a scalar.
    pub parts: bool,
}

impl Clash {
    /// Advice for the user.
    pub fn help(&self) -> &'static str {
        match self.parts {
            true => {
                "keep the whole word in one variable, and take its parts with shifts and masks: memory is modelled by types, not by bytes"
            }
            false => {
                "give every object one type, or one of the same size: memory is modelled by types, not by bytes"
            }
        }
    }

    /// The message of the error.
    pub fn message(&self) -> String {
        format!("the same memory is used as {} and as {}", self.one.0, self.other.0)
    }

    /// The clash as errors, one at the source of each shape.
    pub fn diagnostics(&self) -> [Diagnostic; 2] {
        let side = |(what, span): &(String, Span), message: String| {
            Diagnostic::new(*span, message).label(format!("as {what}"))
        };
        [
            side(&self.one, self.message()).help(self.help()),
            side(&self.other, "this is the other use of that memory".to_string()),
        ]
    }
}
