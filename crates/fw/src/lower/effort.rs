//! How much lowering may do: copies of `for` bodies, instances of families and quantifiers, and ways through atomic blocks can make a short text
//! as long as one likes.

use fencewright_program::Span;
use fencewright_text::{Diagnostic, Stop};

/// More parts than this, over the whole program, are a mistake or an attack: statements, parts of expressions and formulas, operations, each
/// counted as often as it is copied. Each takes about 100 bytes.
const MOST_PARTS: usize = 1 << 22;

/// The message if there are more.
pub const TOO_LARGE: &str = "this program is too large when it is expanded";

/// What has been done so far.
pub struct Effort<'s> {
    parts: usize,
    stop: &'s Stop<'s>,
}

impl<'s> Effort<'s> {
    pub fn new(stop: &'s Stop<'s>) -> Self {
        Effort { parts: 0, stop }
    }

    /// Counts some more parts, unless they are too many or somebody asks to stop.
    pub fn spend(&mut self, parts: usize, span: Span) -> Result<(), Diagnostic> {
        self.parts = self.parts.saturating_add(parts);
        match self.is_over() {
            true => Err(Diagnostic::new(span, TOO_LARGE)),
            false => Ok(()),
        }
    }

    /// Whether lowering has to end: too many parts, or somebody asked to stop.
    pub fn is_over(&self) -> bool {
        self.parts > MOST_PARTS || self.stop.now()
    }
}
