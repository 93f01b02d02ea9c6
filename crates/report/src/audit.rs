//! Audits of fences and memory orders, as text and as JSON: which operations need their order, and which weaker one is enough.

use std::fmt::Write as _;

use fencewright_fences::Audited;
use fencewright_fences::audit::{Enough, Need};
use fencewright_lang::source::escape;
use serde::Serialize;

use crate::fences::{because_trace, shown};
use crate::json::{Trace, line};
use crate::style::Style;
use crate::words::Source;

/// Why a read-modify-write is not weakened.
const FIXED: &str = "a read-modify-write is an atomic step that drains the buffer, with every order";

/// The note below an audit: conclusions that must not be drawn from it.
const CAUTION: &str = "this is about this memory model alone. Processors such as ARM, POWER and RISC-V reorder what x86 keeps in order, and there an order may be needed \
    that is not needed here; and a compiler may move relaxed and plain accesses, which the model leaves in program order. So an order that is not needed here is no advice to remove it from \
    portable code";

/// The audit for a terminal.
pub fn text(source: Source<'_>, model: &str, audited: &[Audited], details: bool, style: Style) -> String {
    let mut text = String::new();
    if audited.is_empty() {
        let _ = writeln!(text, "{}: there are no fences and no memory orders", escape(source.name()));
    }
    for operation in audited.iter().filter(|audited| !matches!(audited.need, Need::Fixed)) {
        let order = operation.order.as_ref().map_or(String::new(), |order| format!(", {}", escape(order)));
        let _ = write!(text, "{}: {}{order}: ", source.position(operation.span), operation.kind.name());
        let _ = writeln!(text, "{}", conclusion(operation, model, style));
        if let Need::Needed(because) = &operation.need
            && details
            && (because.property.is_some() || because.overfull.is_some())
        {
            text.push_str(&shown(source, because, style));
        }
    }
    if details && audited.iter().any(|audited| audited.order.is_some()) {
        text.push_str(&remarks(source, model, audited));
    }
    text
}

/// What the audit found out about an operation.
fn conclusion(audited: &Audited, model: &str, style: Style) -> String {
    let Audited { need, enough, .. } = audited;
    if let Need::Unknown(reason) = need
        && enough.is_none()
    {
        return format!("{}: {}", style.unsure("unknown"), escape(reason));
    }
    let because = match need {
        Need::NeededFor(property) => {
            format!(": without it, what `{}` asks for does not happen", escape(&property.name))
        }
        _ => String::new(),
    };
    let Some(Enough { becomes, together, same, checked, .. }) = enough else {
        return format!("{}{because}", style.good("needed"));
    };
    let weaker = match becomes {
        Some(weaker) => format!("{} is enough", escape(weaker)),
        None => "superfluous".into(),
    };
    let alone = match (together, audited.order.is_some()) {
        (true, _) => "",
        (false, false) => " alone, but needed once the other superfluous fences are gone",
        (false, true) => " alone, but not once the other operations are weaker",
    };
    let same = if *same { format!(", and means the same under {model}") } else { String::new() };
    let confirmed = if *checked { "" } else { " (not confirmed: this stands on the engine alone)" };
    format!("{}{alone}{same}{confirmed}{because}", style.bad(&weaker))
}

/// Remarks on all operations together: which cannot be weakened, how many can be weakened at the same time, and the limits of an audit.
fn remarks(source: Source<'_>, model: &str, audited: &[Audited]) -> String {
    let mut text = String::new();
    let fixed = audited.iter().filter(|audited| matches!(audited.need, Need::Fixed));
    let mut lines: Vec<String> = fixed.map(|audited| source.position(audited.span).line_name()).collect();
    lines.dedup();
    if !lines.is_empty() {
        let _ = writeln!(text, "  not audited, at line {}: {FIXED}", lines.join(", "));
    }
    let enough = || audited.iter().filter_map(|audited| audited.enough.as_ref());
    let (all, together) = (enough().count(), enough().filter(|enough| enough.together).count());
    if together == all && all > 1 {
        let _ = writeln!(
            text,
            "  all {all} operations can have their weaker forms at the same time: verified too"
        );
    } else if all > 1 {
        let _ = writeln!(
            text,
            "  {together} of {all} operations can have their weaker forms at the same time: verified too"
        );
    }
    let _ = writeln!(text, "  note ({model}): {CAUTION}");
    text
}

#[derive(Serialize)]
struct Audit<'a> {
    file: &'a str,
    line: usize,
    column: usize,
    kind: &'static str,
    /// The order as the language writes it.
    order: Option<&'a str>,
    threads: Vec<&'a str>,
    needed: Option<bool>,
    reason: Option<String>,
    needed_because: Option<Trace<'a>>,
    together: Option<bool>,
    /// The weakest form that is enough; `none` if the operation can be removed.
    weaker: Option<&'a str>,
    /// Whether the memory model does not distinguish that form from the one in the text.
    same: Option<bool>,
    /// Whether the proof about that form was checked.
    checked: Option<bool>,
}

/// The audit as JSON, one line per operation.
pub fn json(source: Source<'_>, audited: &[Audited]) -> String {
    let one = |audited: &Audited| {
        let at = source.position(audited.span);
        let (needed, reason, trace) = match &audited.need {
            Need::Needed(because) => (Some(true), None, Some(because_trace(source, because))),
            Need::NeededFor(property) => {
                let reason = format!("without it, what `{}` asks for does not happen", property.name);
                (Some(true), Some(reason), None)
            }
            Need::Superfluous { .. } => (Some(false), None, None),
            Need::Fixed => (None, Some(FIXED.into()), None),
            Need::Unknown(reason) => (None, Some(reason.clone()), None),
        };
        let enough = audited.enough.as_ref();
        line(&Audit {
            file: at.file,
            line: at.line,
            column: at.column,
            kind: audited.kind.name(),
            order: audited.order.as_deref().filter(|_| !matches!(audited.need, Need::Fixed)),
            threads: audited.threads.iter().map(|t| source.program.thread(*t).name.as_str()).collect(),
            needed,
            reason,
            needed_because: trace,
            together: enough.map(|enough| enough.together),
            weaker: enough.map(|enough| enough.becomes.as_deref().unwrap_or("none")),
            same: enough.map(|enough| enough.same),
            checked: enough.map(|enough| enough.checked),
        })
    };
    audited.iter().map(one).collect()
}
