//! The budget of lowering. It is needed because copies of `for` bodies, instances of families and quantifiers, and paths through atomic blocks can
//! make the program for a short text arbitrarily large.

use fencewright_program::Span;
use fencewright_text::{Diagnostic, Stop};

/// Maximum number of parts of the whole program: its statements, operations, and nodes of expressions and formulas, each counted as often as it is
/// copied. A part takes about 100 bytes.
const MOST_PARTS: usize = 1 << 22;

/// The error message when the budget is exceeded.
pub const TOO_LARGE: &str = "this program is too large when it is expanded";

/// The number of parts spent so far.
pub struct Effort<'s> {
    parts: usize,
    stop: &'s Stop<'s>,
}

impl<'s> Effort<'s> {
    pub fn new(stop: &'s Stop<'s>) -> Self {
        Effort { parts: 0, stop }
    }

    /// Spends some parts of the budget; an error if it is exceeded, or `stop` asked to stop.
    pub fn spend(&mut self, parts: usize, span: Span) -> Result<(), Diagnostic> {
        self.parts = self.parts.saturating_add(parts);
        match self.is_over() {
            true => Err(Diagnostic::new(span, TOO_LARGE)),
            false => Ok(()),
        }
    }

    /// Whether lowering has to end: the budget is exceeded, or `stop` asked to stop.
    pub fn is_over(&self) -> bool {
        self.parts > MOST_PARTS || self.stop.now()
    }
}
