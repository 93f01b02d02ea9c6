//! Helpers of exporters, which write programs in the formats of other tools.
//!
//! An exporter either expresses the program exactly, or reports the construct that the format cannot express, with its place in the
//! source. There are two exceptions. A fault stops the thread in the exported program too, but it is no violation there: no
//! other format has the property `assertions`. And steps that only touch registers may be split or added; no property of these
//! formats can tell the difference.

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

/// The initial value, if it is unique.
pub fn initial_value(init: Init) -> Option<i64> {
    match init {
        Init::Value(value) => Some(value),
        Init::Any(Some(Range { low, high })) if low == high => Some(low),
        Init::Any(_) => None,
    }
}
