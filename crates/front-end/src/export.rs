//! Helpers of exporters, which write programs in the formats of other tools.
//!
//! An exporter either expresses the program exactly, or reports the construct that the format cannot express, with its position in the source. There
//! are two exceptions. First, a fault stops the thread in the exported program too, but is no violation there, because no other format has the
//! property `assertions`. Second, steps that access only registers may be split or added, because no property of these formats can tell the
//! difference.

use fencewright_program::{Init, Numbers, Program, Range, Span};
use fencewright_text::Diagnostic;

/// The error that a format cannot express a construct.
pub fn cannot(format: &str, what: &str, span: Span) -> Diagnostic {
    Diagnostic::new(span, format!("the {format} format cannot say {what}"))
}

/// Rejects programs whose numbers are not integers.
pub fn only_integers(program: &Program, format: &str) -> Result<(), Diagnostic> {
    match program.numbers {
        Numbers::Int => Ok(()),
        Numbers::Nat => Err(cannot(format, "`numbers nat`", Span::default())),
        Numbers::Real => Err(cannot(format, "`numbers real`", Span::default())),
    }
}

/// The initial value; `None` if several initial values are possible.
pub fn initial_value(init: Init) -> Option<i64> {
    match init {
        Init::Value(value) => Some(value),
        Init::Any(Some(Range { low, high })) if low == high => Some(low),
        Init::Any(_) => None,
    }
}
