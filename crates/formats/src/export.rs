//! Helpers shared by the exporters of these formats.

use fencewright_front_end::Parsed;
use fencewright_fw::names::Names;
use fencewright_program::{Bounds, Edge, Expr, Op, Program, Range, RegisterId, Span, Thread};
use fencewright_text::Diagnostic;

/// Maximum number of values of a `*` that is exported, since each value becomes a branch of its own.
pub(crate) const CHOICE_LIMIT: u64 = 64;

/// Returns `text` if the importer of the format accepts it, and an error otherwise. Every exporter passes its result through this check.
pub(crate) fn readable(
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

/// A name for each location of a thread: its first label, modified if the format reserves this word or another location has it; for a location
/// without labels, the prefix and a number.
pub(crate) fn location_names(thread: &Thread, prefix: &str, reserved: fn(&str) -> bool) -> Vec<String> {
    let mut names = Names::default();
    let mut allowed = |label: &String| match reserved(label) {
        true => names.fresh(&format!("{label}_"), prefix, "_"),
        false => names.fresh(label, prefix, "_"),
    };
    // Labels are named first, so that no generated name takes the name of a label.
    let labels: Vec<Option<String>> =
        thread.locations.iter().map(|l| l.labels.first().map(&mut allowed)).collect();
    let numbered = |(number, label): (usize, Option<String>)| {
        label.unwrap_or_else(|| names.fresh(&format!("{prefix}{number}"), prefix, "_"))
    };
    labels.into_iter().enumerate().map(numbered).collect()
}

/// A name for each register of a thread.
pub(crate) fn register_names(thread: &Thread, scope: &mut Names<'_>) -> Vec<String> {
    let named = |name: &str| scope.fresh(name.trim_start_matches('%'), "t", "_");
    thread.registers.iter().map(|r| r.name.as_str()).map(named).collect()
}

/// The values of a `*`; `None` if it has no range, or one with more than [`CHOICE_LIMIT`] values.
pub(crate) fn choices(range: Option<Range>) -> Option<std::ops::RangeInclusive<i64>> {
    range.filter(|r| r.size() <= CHOICE_LIMIT).map(|r| r.low..=r.high)
}

/// The range of the register or variable that an operation writes, and the expression for the written value; the expression is `None` for a loaded or
/// chosen value. Writing a value outside the range is a fault. The result is `None` if the target has no range, or if the value certainly lies in the
/// range.
pub(crate) fn checked_range<'p>(
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

/// The edges that leave a location.
pub(crate) fn outgoing(thread: &Thread, location: usize) -> &[Edge] {
    let location = &thread.locations[location];
    &thread.edges[location.first_edge as usize..location.last_edge as usize]
}
