//! Answers about robustness, as text and as JSON. `docs/json.md` describes every key.

use std::fmt::Write as _;

use fencewright_engines::Reason;
use fencewright_engines::robust::{Attack, Evidence, Finding, Robustness, Shape, Witness};
use fencewright_executions::happens_before::Relation;
use fencewright_lang::source::escape;
use fencewright_program::{EventKind, Span};
use fencewright_transform::attack::Notion;
use serde::Serialize;

use crate::json::{At, Trace, line, micros};
use crate::remarks::Remarks;
use crate::style::Style;
use crate::text::{Cells, seconds, table};
use crate::words::{self, Source, grouped};

/// The answer for a terminal. `list` adds all attacks; `quiet` leaves only the verdict.
pub fn text(source: Source<'_>, answer: &Robustness, list: bool, quiet: bool, style: Style) -> String {
    let (good, bad) = match answer.notion {
        Notion::HappensBefore => ("robust against tso", "not robust against tso"),
        Notion::Triangular => ("free of triangular races", "not free of triangular races"),
    };
    let word = match answer.robust() {
        Ok(true) => style.good(good),
        Ok(false) => style.bad(bad),
        Err(_) => style.unsure("unknown"),
    };
    let plural = |n: u64| if n == 1 { "" } else { "s" };
    let attacks = answer.attacks().len() as u64;
    let mut text = format!(
        "{}: {word} ({} attack{}, {}, {} state{}, {}",
        escape(source.name()),
        grouped(attacks),
        plural(attacks),
        answer.engine,
        grouped(answer.states),
        plural(answer.states),
        seconds(answer.seconds),
    );
    let how = match (answer.robust(), answer.checked()) {
        (Err(reason), _) => format!("): {}", words::reason(reason)),
        (Ok(false), _) => "; replayed on the reference semantics)".into(),
        (Ok(true), _) if attacks == 0 => "; no store can be delayed past a load and be noticed)".into(),
        (Ok(true), Some(true)) => format!("; {})", proofs(answer.evidence())),
        (Ok(true), _) => "; not confirmed: the verdict stands on the engine alone)".into(),
    };
    text.push_str(&how);
    text.push('\n');
    if quiet {
        return text;
    }
    if let Err(Reason::Unsupported(_, Some(span)) | Reason::Limit(_, span)) = answer.robust() {
        let _ = writeln!(text, "  {}", place(source, *span));
    }
    if let Some((attack, witness)) = answer.witness() {
        let thread = escape(&source.program.thread(attack.thread).name);
        let _ = writeln!(text, "  {thread} delays a store past a load:");
        for (what, edge) in [("store", attack.store), ("load", attack.load)] {
            let span = source.program.thread(attack.thread).edge(edge).span;
            let _ = writeln!(text, "    {what:5}  {}", place(source, span));
        }
        text.push_str(&execution(source, witness, style));
    }
    if list {
        for attack in answer.attacks() {
            text.push_str(&listed(source, attack, style));
        }
    }
    text
}

/// How attacks were shown to be infeasible; all of this evidence was checked.
fn proofs(evidence: &Evidence) -> &'static str {
    let Evidence::Proofs(proofs) = evidence else { return "" };
    let certificates = proofs.iter().filter(|proof| proof.evidence.certificate().is_some()).count();
    match certificates {
        0 => "the program with its attacks was explored again on the reference semantics",
        1 if proofs.len() == 1 => "certificate accepted",
        n if n == proofs.len() => "certificates accepted",
        _ => "certificates accepted, and what has none was explored again on the reference semantics",
    }
}

fn place(source: Source<'_>, span: Span) -> String {
    let calls = source.calls(span).map_or(String::new(), |calls| format!(", {}", escape(&calls)));
    format!("{}: {}{calls}", source.position(span), escape(&source.statement(span)))
}

/// An attack in one line.
fn listed(source: Source<'_>, attack: &Attack, style: Style) -> String {
    let thread = source.program.thread(attack.thread);
    let (verdict, reason) = finding(attack);
    let word = match attack.verdict {
        Finding::Feasible => style.bad(verdict),
        Finding::Infeasible => style.good(verdict),
        Finding::Unknown(_) | Finding::Unexamined => style.unsure(verdict),
    };
    let line = |edge| source.position(thread.edge(edge).span).line_name();
    let statement = |edge| escape(&source.statement(thread.edge(edge).span));
    format!(
        "  {}: line {} ({}) past line {} ({}): {word}{}\n",
        escape(&thread.name),
        line(attack.store),
        statement(attack.store),
        line(attack.load),
        statement(attack.load),
        reason.map_or_else(String::new, |r| format!(": {r}")),
    )
}

fn finding(attack: &Attack) -> (&'static str, Option<String>) {
    match &attack.verdict {
        Finding::Feasible => ("feasible", None),
        Finding::Infeasible => ("infeasible", None),
        Finding::Unknown(reason) => ("unknown", Some(words::reason(reason))),
        Finding::Unexamined => ("not examined", None),
    }
}

/// The execution of a witness as a table, with its cycle or race.
fn execution(source: Source<'_>, witness: &Witness, style: Style) -> String {
    let replayed = witness.replayed();
    let cells = Cells::all(source, replayed.states.first());
    let links = links(source, witness);
    let kept: Vec<usize> = links.iter().map(|link| link.step - 1).collect();
    let mut text = cells.initially(source, style);
    text.push_str(&table(source, replayed, &cells, &kept, style));
    let heading = match witness.shape() {
        Shape::Cycle(_) => "happens-before cycle",
        Shape::Race(_) => "triangular race",
    };
    let _ = writeln!(text, "  {}", style.bad(heading));
    for link in links {
        let how = match (link.relation, &link.cell) {
            (None, _) => String::new(),
            (Some(relation), None) => format!("  -> {relation}"),
            (Some(relation), Some(cell)) => {
                format!("  -> {relation} ({})", escape(link.place.as_ref().unwrap_or(cell)))
            }
        };
        let _ = writeln!(
            text,
            "    {:>3}  {}: {}{how}",
            link.step,
            escape(link.thread),
            escape(link.statement.as_deref().unwrap_or("flush"))
        );
    }
    text
}

/// An event of a happens-before cycle or of a triangular race.
#[derive(Serialize)]
struct Link<'a> {
    step: usize,
    thread: &'a str,
    #[serde(flatten)]
    at: At<'a>,
    statement: Option<String>,
    relation: Option<&'static str>,
    cell: Option<String>,
    /// The source name of the memory cell, if the program is a translation.
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<String>,
}

fn links<'a>(source: Source<'a>, witness: &Witness) -> Vec<Link<'a>> {
    let events: Vec<(usize, Option<Relation>)> = match witness.shape() {
        Shape::Cycle(cycle) => cycle.iter().map(|link| (link.event, Some(link.relation))).collect(),
        Shape::Race(race) => vec![
            (race.store, Some(Relation::ProgramOrder)),
            (race.load, Some(Relation::Conflict(race.cell))),
            (race.write, None),
        ],
    };
    let program = source.program;
    let link = |(n, relation): (usize, Option<Relation>)| {
        let event = &witness.replayed().events[n];
        let thread = program.thread(event.thread);
        let span = match &event.kind {
            EventKind::Step { edge, .. } => Some(thread.edge(*edge).span),
            EventKind::Flush { .. } => None,
        };
        Link {
            step: n + 1,
            thread: &thread.name,
            at: At::new(source, span),
            statement: span.map(|s| source.statement(s)),
            relation: relation.map(Relation::name),
            cell: relation.and_then(Relation::cell).map(|cell| program.cell_name(cell)),
            place: relation
                .and_then(Relation::cell)
                .filter(|cell| source.is_translated() && source.shows(*cell))
                .map(|cell| source.cell(cell)),
        }
    };
    events.into_iter().map(link).collect()
}

/// The answer as one line of JSON with a line break. `list` adds all attacks.
pub fn json(source: Source<'_>, answer: &Robustness, list: bool) -> String {
    let witness = answer.witness().map(|(_, witness)| witness);
    line(&Answer {
        file: source.name(),
        notion: answer.notion.name(),
        robust: answer.robust().ok(),
        reason: answer.robust().err().map(words::reason),
        attacks: answer.attacks().len(),
        checked: answer.checked(),
        engine: answer.engine.as_str(),
        seconds: micros(answer.seconds),
        check_seconds: micros(answer.check_seconds),
        states: answer.states,
        remarks: source.into(),
        witness: witness.map(|witness| Trace::new(source, witness.replayed())),
        cycle: witness.map(|witness| links(source, witness)),
        list: list.then(|| answer.attacks().iter().map(|attack| Item::new(source, attack)).collect()),
    })
}

#[derive(Serialize)]
struct Answer<'a> {
    file: &'a str,
    notion: &'static str,
    robust: Option<bool>,
    reason: Option<String>,
    attacks: usize,
    checked: Option<bool>,
    engine: &'static str,
    seconds: f64,
    check_seconds: f64,
    states: u64,
    #[serde(flatten)]
    remarks: Remarks<'a>,
    witness: Option<Trace<'a>>,
    cycle: Option<Vec<Link<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    list: Option<Vec<Item<'a>>>,
}

#[derive(Serialize)]
struct Item<'a> {
    thread: &'a str,
    store: Statement<'a>,
    load: Statement<'a>,
    verdict: &'static str,
    reason: Option<String>,
}

#[derive(Serialize)]
struct Statement<'a> {
    #[serde(flatten)]
    at: At<'a>,
    statement: String,
}

impl<'a> Item<'a> {
    fn new(source: Source<'a>, attack: &Attack) -> Self {
        let thread = source.program.thread(attack.thread);
        let statement = |edge| {
            let span = thread.edge(edge).span;
            Statement { at: At::new(source, Some(span)), statement: source.statement(span) }
        };
        let (verdict, reason) = finding(attack);
        Item {
            thread: &thread.name,
            store: statement(attack.store),
            load: statement(attack.load),
            verdict,
            reason,
        }
    }
}
