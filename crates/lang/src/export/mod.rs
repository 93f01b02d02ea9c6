//! Exporters: programs in the formats of other tools.
//!
//! Every exporter either expresses the program exactly, or reports what the format cannot express and where that stands in the
//! source. There are two exceptions. A fault stops the thread in the exported program as well, but it is no violation there: no
//! other format knows the property `assertions`. And steps that only touch registers may be split or added; no property of these
//! formats can tell the difference.

mod c;
mod litmus;
mod liveness;
mod rmm;
mod rmm_text;
mod trencher;

use fencewright_program::{Bounds, Edge, Expr, Init, Numbers, Op, Program, Range, RegisterId, Span, Thread};

use crate::diagnostic::Diagnostic;
use crate::front_end::Parsed;
use crate::import::names::Names;

pub use c::c;
pub use fencewright_fw::graph::fw;
pub use litmus::litmus;
pub use rmm::rmm;
pub use trencher::trencher;

/// The most values that the range of a `*` may have, since each is written out as a choice of its own.
const CHOICE_LIMIT: u64 = 64;

/// The text, if the importer of the format can read it; otherwise an error. No other text is ever exported.
fn readable(
    text: String,
    format: &str,
    import: fn(&str) -> Result<Parsed, Vec<Diagnostic>>,
) -> Result<String, Vec<Diagnostic>> {
    match import(&text) {
        Ok(_) => Ok(text),
        Err(errors) => {
            let why = errors.first().map_or("", |d| d.message.as_str());
            let message = format!("the {format} format cannot say this program: {why}");
            Err(vec![Diagnostic::new(Span::default(), message)])
        }
    }
}

/// The error that a format cannot express something.
fn cannot(format: &str, what: &str, span: Span) -> Diagnostic {
    Diagnostic::new(span, format!("the {format} format cannot say {what}"))
}

/// Only integers can be exported.
fn only_integers(program: &Program, format: &str) -> Result<(), Diagnostic> {
    match program.numbers {
        Numbers::Int => Ok(()),
        Numbers::Nat => Err(cannot(format, "`numbers nat`", Span::default())),
        Numbers::Real => Err(cannot(format, "`numbers real`", Span::default())),
    }
}

/// A name for each location of a thread: its first label, changed if the format has reserved the word, or a number.
fn location_names(thread: &Thread, prefix: &str, reserved: fn(&str) -> bool) -> Vec<String> {
    let mut names = Names::default();
    let mut allowed = |label: &String| match reserved(label) {
        true => names.fresh(&format!("{label}_"), prefix, "_"),
        false => names.fresh(label, prefix, "_"),
    };
    // Labels first: a number must not take the name of a label.
    let labels: Vec<Option<String>> =
        thread.locations.iter().map(|l| l.labels.first().map(&mut allowed)).collect();
    let numbered = |(number, label): (usize, Option<String>)| {
        label.unwrap_or_else(|| names.fresh(&format!("{prefix}{number}"), prefix, "_"))
    };
    labels.into_iter().enumerate().map(numbered).collect()
}

/// A name for each register of a thread.
fn register_names(thread: &Thread, scope: &mut Names<'_>) -> Vec<String> {
    let named = |name: &str| scope.fresh(name.trim_start_matches('%'), "t", "_");
    thread.registers.iter().map(|r| r.name.as_str()).map(named).collect()
}

/// The value something starts with, if that is one value.
fn initial_value(init: Init) -> Option<i64> {
    match init {
        Init::Value(value) => Some(value),
        Init::Any(Some(Range { low, high })) if low == high => Some(low),
        Init::Any(_) => None,
    }
}

/// The values of a `*` with a small range.
fn choices(range: Option<Range>) -> Option<std::ops::RangeInclusive<i64>> {
    range.filter(|r| r.size() <= CHOICE_LIMIT).map(|r| r.low..=r.high)
}

/// The range that the value written by an operation must lie in, and the value unless it is loaded or guessed; `None` if the value
/// cannot lie outside. The operation faults if the value lies outside.
fn checked_range<'p>(
    program: &Program,
    thread: &Thread,
    op: &'p Op,
) -> Option<(Range, Option<&'p Expr<RegisterId>>)> {
    let (range, value) = match op {
        Op::Assign(register, value) => (thread.registers[register.index()].range, Some(value)),
        Op::Load(register, _) | Op::Havoc(register, _) => (thread.registers[register.index()].range, None),
        Op::Store(address, value) => (program.variables[address.variable.index()].range, Some(value)),
        Op::Skip | Op::Assume(_) | Op::Assert(..) => (None, None),
    };
    let range = range?;
    let certain = value.is_some_and(|value| program.doubtful(range.into(), value) == Bounds::ANY);
    (!certain).then_some((range, value))
}

/// All edges that leave a location.
fn outgoing(thread: &Thread, location: usize) -> &[Edge] {
    let location = &thread.locations[location];
    &thread.edges[location.first_edge as usize..location.last_edge as usize]
}
