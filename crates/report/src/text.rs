//! Verdicts and executions for a terminal.

mod execution;

use std::fmt::Write as _;

use fencewright_certify::{Claim, Proof};
use fencewright_engines::{Checked, EngineName, Evidence, Reason, Tried, Verdict};
use fencewright_lang::source::escape;
use fencewright_program::reference::Limit;
use fencewright_program::{MemoryModel, Op, Property, PropertyKind, Quantifier, Span};

pub use self::execution::{Cells, Table, conclusion, execution, table, threads};
use crate::style::Style;
use crate::words::{self, Source, grouped};

/// Maximum number of explanations of an unknown verdict; further ones are only counted.
const MOST_EXPLANATIONS: usize = 10;
/// Maximum number of slices that are named, for a proof by slices.
const MOST_SLICES: usize = 3;

/// The classes of symmetric threads, if the search used symmetry.
fn symmetry(checked: &Checked) -> String {
    let classes: Vec<String> =
        checked.work.symmetry().iter().map(|threads| escape(&threads.join(", "))).collect();
    if classes.is_empty() {
        String::new()
    } else {
        format!(" up to symmetry of {}", classes.join(" and of "))
    }
}

pub(crate) fn count(n: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(n), if n == 1 { "" } else { "s" })
}

/// The size of the search: the number of states, or of executions.
fn explored(checked: &Checked) -> String {
    let Some(executions) = checked.work.executions() else { return count(checked.work.states, "state") };
    let all = executions.complete + executions.blocked + executions.cut;
    let of_these = match (executions.blocked, executions.cut) {
        (0, 0) => String::new(),
        (blocked, 0) => format!(" ({} blocked)", grouped(blocked)),
        (0, cut) => format!(" ({} without an end)", grouped(cut)),
        (blocked, cut) => format!(" ({} blocked, {} without an end)", grouped(blocked), grouped(cut)),
    };
    format!("{}{of_these}, {}", count(all, "execution"), count(executions.events, "event"))
}

/// Whether the proof is a set of states with versions, that is, with unbounded numbers that matter only through their order. The set has one of all
/// states that differ only by an order-preserving renaming of versions.
pub(crate) fn up_to_versions(checked: &Checked) -> bool {
    let has_versions = |proof: &Proof| matches!(proof, Proof::States(set) if set.versions.is_some());
    checked.certificate().is_some_and(|certificate| certificate.proofs.iter().any(has_versions))
}

/// For a proof by slices, the names of the threads of each slice.
pub(crate) fn slices<'a>(source: Source<'a>, checked: &Checked) -> Vec<Vec<&'a str>> {
    let Some(Claim::Sliced { parts, .. }) = checked.certificate().map(|certificate| &certificate.claim)
    else {
        return Vec::new();
    };
    let name = |thread: &u32| source.program.threads[*thread as usize].name.as_str();
    parts.iter().flat_map(|part| &part.slices).map(|threads| threads.iter().map(name).collect()).collect()
}

/// The slices of a proof by slices, in words.
fn in_slices(source: Source<'_>, checked: &Checked) -> String {
    let slices: Vec<String> =
        slices(source, checked).iter().map(|threads| escape(&threads.join(", "))).collect();
    match slices.len() {
        0 => String::new(),
        1..=MOST_SLICES => format!(" in slices of {}", slices.join(" and of ")),
        all => {
            format!(" in slices of {}, and {} more", slices[..MOST_SLICES].join(", of "), all - MOST_SLICES)
        }
    }
}

/// The verdict on one property, in one line.
pub fn verdict(source: Source<'_>, model: MemoryModel, checked: &Checked, style: Style) -> String {
    let word = match checked.verdict() {
        Verdict::Safe => style.good("safe"),
        Verdict::Unsafe => style.bad("unsafe"),
        Verdict::Unknown(_) => style.unsure("unknown"),
    };
    let mut line = format!(
        "{}: {}: {word} under {} ({}, {}{}{}{}{}, {}",
        escape(source.name()),
        style.bold(&escape(&checked.property.name)),
        model.name(),
        checked.engine,
        explored(checked),
        symmetry(checked),
        if up_to_versions(checked) { " up to the order of versions" } else { "" },
        in_slices(source, checked),
        checked.work.transitions().map_or_else(String::new, |n| format!(", {}", count(n, "transition"))),
        seconds(checked.seconds),
    );
    let how = match (checked.verdict(), checked.evidence()) {
        (Verdict::Unknown(reason), _) => format!("): {}", escape(&why(source, reason))),
        (_, Evidence::Replayed(_)) => "; replayed on the reference semantics)".into(),
        (_, Evidence::Explored) => "; confirmed by the reference semantics)".into(),
        (_, Evidence::Enumerated(executions)) => format!(
            "; confirmed by a second enumeration, of {} of the reference semantics in {})",
            count(*executions, "execution"),
            seconds(checked.check_seconds)
        ),
        (_, Evidence::Certified(_)) => {
            format!("; certificate accepted in {})", seconds(checked.check_seconds))
        }
        (_, Evidence::Unchecked(_)) => {
            "; certificate not checked: the verdict stands on the engine alone)".into()
        }
        (_, Evidence::Engine | Evidence::None) => {
            "; not confirmed: the verdict stands on the engine alone)".into()
        }
    };
    line.push_str(&how);
    if let Some(meaning) = meaning(source, &checked.property) {
        let _ = write!(line, " [{meaning}]");
    }
    line.push('\n');
    line
}

/// An explanation of a property whose name is ambiguous: for `deadlock`, which threads count as blocked.
pub(crate) fn meaning(source: Source<'_>, property: &Property) -> Option<&'static str> {
    let is_deadlock = property.kind == PropertyKind::NoDeadlock && property.name == Property::deadlock().name;
    is_deadlock.then(|| source.front_end.blocked())
}

/// The reason for an unknown verdict. A translation that does not model a part of the source makes the program read an `open` array there; then the
/// result is the front end's reason why this part is not modelled.
pub(crate) fn why(source: Source<'_>, reason: &Reason) -> String {
    let span = match reason {
        Reason::Limit(Limit::Window, span) => Some(*span),
        Reason::Unsupported(_, span) => *span,
        _ => None,
    };
    let Some(span) = span.filter(|_| !source.words.ends.is_empty()) else {
        return words::reason(reason);
    };
    let edges = source.program.threads.iter().flat_map(|thread| &thread.edges);
    let mut ops = edges.filter(|edge| edge.span.text() == span.text()).flat_map(|edge| edge.action.ops());
    let end = ops.find_map(|op| match op {
        Op::Load(_, address) => source.words.ends.get(&address.variable),
        _ => None,
    });
    end.cloned().unwrap_or_else(|| words::reason(reason))
}

/// Explanations of an unknown verdict, each with its source position if there is one.
pub(crate) fn explanations(checked: &Checked) -> Vec<(String, Option<Span>)> {
    let place = match checked.verdict() {
        Verdict::Unknown(Reason::Limit(_, span)) => Some(("it is reached here".to_string(), Some(*span))),
        Verdict::Unknown(Reason::Unsupported(_, Some(span))) => {
            Some(("this is where".to_string(), Some(*span)))
        }
        _ => None,
    };
    let mut all: Vec<(String, Option<Span>)> =
        place.into_iter().chain(checked.growth.iter().cloned()).collect();
    if let Some(more) = all.len().checked_sub(MOST_EXPLANATIONS + 1) {
        all.truncate(MOST_EXPLANATIONS);
        all.push((format!("{} more like these are not listed", grouped(more as u64 + 1)), None));
    }
    all
}

/// The evidence below the verdict line: the execution, or the explanations of an unknown verdict.
pub fn evidence(source: Source<'_>, checked: &Checked, style: Style) -> String {
    let mut text = String::new();
    if let Some(replayed) = checked.trace() {
        text.push_str(&execution(source, replayed, &checked.property, style));
        if checked.happens_under_sc {
            text.push_str("  It happens under sc too: no fence can help.\n");
        }
        if checked.engine == EngineName::Contexts {
            let _ = writeln!(text, "  It takes {}; fewer do not show it.", contexts(replayed.contexts()));
        }
    } else if let (Verdict::Unsafe, PropertyKind::Finally(Quantifier::Exists, _)) =
        (checked.verdict(), &checked.property.kind)
    {
        text.push_str("  No final state satisfies it; all of them were seen.\n");
    }
    let counted = !matches!(checked.verdict(), Verdict::Safe);
    for round in checked.work.rounds().iter().filter(|_| counted) {
        let (states, time) = (grouped(round.states), seconds(round.seconds));
        let _ = writeln!(text, "  {}: {states} states, {time}", contexts(round.contexts as usize));
    }
    text.push_str(&tried(&checked.tried));
    for (sentence, span) in &explanations(checked) {
        match span {
            Some(span) => {
                let _ = writeln!(text, "  {}: {sentence}", source.position(*span));
                let _ = writeln!(text, "      {}", style.dim(&escape(&source.statement(*span))));
            }
            None => {
                let _ = writeln!(text, "  {sentence}");
            }
        }
    }
    text
}

/// The engines that were tried, as a table; empty if there is only one, which the verdict line names.
fn tried(tried: &[Tried]) -> String {
    if tried.len() < 2 {
        return String::new();
    }
    let rows: Vec<[String; 4]> = tried
        .iter()
        .map(|tried| {
            let domain = tried.domain.map_or(String::new(), |domain| format!(", {}", domain.as_str()));
            let threads = match &tried.threads[..] {
                [] => String::new(),
                threads => format!(", {} alone", escape(&threads.join(", "))),
            };
            let name = format!("{}{domain} under {}{threads}", tried.engine, tried.model.name());
            [name, format!("{} states", grouped(tried.states)), seconds(tried.seconds), tried.reason.clone()]
        })
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (name, states, time) = (width(0), width(1), width(2));
    let row = |[a, b, c, d]: &[String; 4]| format!("  {a:name$}  {b:>states$}  {c:>time$}  {d}\n");
    rows.iter().map(row).collect()
}

fn contexts(count: usize) -> String {
    format!("{count} context{}", if count == 1 { "" } else { "s" })
}

/// Seconds, with as many digits as are useful.
pub fn seconds(seconds: f64) -> String {
    if seconds < 10.0 { format!("{seconds:.2} s") } else { format!("{seconds:.1} s") }
}
