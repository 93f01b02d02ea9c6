//! A proof on a page: the facts that hold at each point of each thread, and the control states.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use fencewright_certify::states::StateSet;
use fencewright_certify::{Certificate, Claim, InductiveInvariant, Proof};
use fencewright_engines::{Checked, Evidence};
use fencewright_lang::facts::Kind;
use fencewright_program::{LocationId, RegisterId, ThreadId};

use super::controls::Controls;
use super::escape::text;
use crate::invariants::{self, Executions, Point};
use crate::text::count;
use crate::words::{Source, grouped, shortened};

/// Maximum number of states of a set whose values are listed.
const MOST_STATES: u64 = 200_000;
/// Maximum number of values to read (states times values per state) for listing values.
const MOST_READ: usize = 20_000_000;
/// Maximum work for deriving facts from an invariant, as an estimate of operations.
const MOST_WORK: usize = 1_000_000_000;
/// Maximum number of values that are listed; if there are more, only the least and the greatest are shown.
const MOST_VALUES: usize = 8;
/// Maximum number of rows of the table.
const MOST_ROWS: usize = 1_000;
const MOST_FACTS: usize = 60;

/// The explanation of why a property holds.
pub fn proof(source: Source<'_>, checked: &Checked) -> String {
    let enumerated;
    let stands_on = match checked.evidence() {
        Evidence::Certified(_) => "It stands on a certificate that the checker has accepted.",
        Evidence::Unchecked(_) => "Its certificate was not checked: it stands on the engine alone.",
        Evidence::Explored => {
            "It was confirmed by a second exploration, on the reference semantics. There is no certificate whose points could be shown here; <code>--certificate</code> or another engine may give one."
        }
        Evidence::Enumerated(executions) => {
            let executions = count(*executions, "execution");
            enumerated = format!(
                "It was confirmed by a second enumeration of all executions up to the order of independent steps, on the reference semantics: {executions}. There is no certificate whose points could be shown here."
            );
            &enumerated
        }
        Evidence::Replayed(_) => "It stands on an execution, replayed on the reference semantics.",
        Evidence::Engine | Evidence::None => "It was not confirmed: it stands on the engine alone.",
    };
    let mut html = format!("<h3>Why it holds</h3>\n<p>{stands_on}</p>\n");
    let Some(certificate) = checked.certificate() else { return html };
    let Some((proof, executions)) = invariants::about_itself(source, certificate) else {
        html.push_str(elsewhere(certificate));
        return html;
    };
    html.push_str(match executions {
        Executions::All => "",
        Executions::UnderSc => {
            "<p>The program is <b>robust</b>: every execution is one under SC, up to the order of independent steps. So it is enough to prove it under SC; what follows is about executions under SC.</p>\n"
        }
        Executions::WithFewerValues => {
            "<p>Of the values of <code>*</code>, most do the same. So it is enough to prove it with fewer of them; what follows is about executions with those.</p>\n"
        }
    });
    html.push_str(&match proof {
        Proof::Invariant(proof) => invariant(source, proof),
        Proof::States(set) => states(source, set),
    });
    html
}

/// The explanation for a proof whose control states are not those of the program.
fn elsewhere(certificate: &Certificate) -> &'static str {
    match &certificate.claim {
        Claim::Sliced { .. } => {
            "<p>The proof is about slices of the program, without the threads that cannot matter for each; their points are not shown here.</p>\n"
        }
        Claim::Unsatisfied { .. } => "<p>The proof shows that no final state satisfies it.</p>\n",
        _ => {
            "<p>The proof is about other programs, made from this one; their points are not those of this program and are not shown here.</p>\n"
        }
    }
}

/// An inductive invariant: its facts at each point, and the drawings of its control states.
fn invariant(source: Source<'_>, proof: &InductiveInvariant) -> String {
    let mut html = format!(
        "<p>The proof is an inductive invariant: it holds at the start, and no step leaves it. It has {} control states.{}</p>\n",
        grouped(proof.states.iter().filter(|state| !state.invariant.is_empty()).count() as u64),
        exchanged(source, proof.symmetry.iter()),
    );
    let cells = proof.cells.len() + 1;
    let cubes: usize = proof.states.iter().map(|state| state.invariant.len()).sum();
    let work = cells.saturating_pow(3).saturating_mul(cubes).saturating_mul(source.program.threads.len());
    if work > MOST_WORK {
        html.push_str("<p class=\"left-out\">It is too large to say what it means for each point.</p>\n");
    } else {
        let fact = |point: &Point| (point.thread, point.location, point.facts.clone());
        let points: Vec<_> = invariants::points(source, proof).iter().map(fact).collect();
        html.push_str("<h4>What holds whenever a thread is at a point</h4>\n");
        html.push_str(&table(source, &points));
    }
    // An invariant without cubes is unsatisfiable, which means that its control state is unreachable.
    let reached = proof.states.iter().filter(|state| !state.invariant.is_empty());
    let locations = reached.map(|state| state.control().locations);
    let classes: Vec<Vec<usize>> =
        proof.symmetry.iter().map(|class| class.iter().map(|&t| t as usize).collect()).collect();
    html + &Controls::new(source, classes, locations).html()
}

/// A sentence about the classes of threads that the proof treats up to symmetry.
fn exchanged<'s>(source: Source<'_>, classes: impl Iterator<Item = &'s Vec<u32>>) -> String {
    let name = |thread: &u32| text(&source.program.threads[*thread as usize].name);
    let classes: Vec<String> =
        classes.map(|class| class.iter().map(name).collect::<Vec<_>>().join(", ")).collect();
    match classes.is_empty() {
        true => String::new(),
        false => format!(" It is one up to exchanging {}.", classes.join(" and ")),
    }
}

/// A set of states: the values at each point, and the drawings of its control states.
fn states(source: Source<'_>, set: &StateSet) -> String {
    let families: Vec<&Vec<u32>> = set.symmetry.iter().map(|family| &family.threads).collect();
    let mut html = format!(
        "<p>The proof is a set of {} states: the start is in it, the steps that have to be considered do not leave it, and none of its states violates the property. States that differ in the order of independent steps only may not be in it.{}</p>\n",
        grouped(set.states.count()),
        exchanged(source, families.iter().copied()),
    );
    let threads = source.program.threads.len();
    let read = (set.states.count() as usize).saturating_mul(threads * (source.program.cells() + 1));
    if set.states.count() > MOST_STATES || read > MOST_READ {
        html.push_str("<p class=\"left-out\">It is too large to list what values variables have.</p>\n");
        return html;
    }
    let Ok(words) = set.states.unpacked(set.layout.words, &|| false) else { return html };
    let mut values: BTreeMap<(usize, LocationId), Vec<BTreeSet<i64>>> = BTreeMap::new();
    let mut controls: BTreeSet<Vec<LocationId>> = BTreeSet::new();
    for state in words.chunks_exact(set.layout.words.max(1)) {
        let at = |thread: usize| u32::try_from(set.layout.locations[thread].get(state)).ok();
        let Some(at) = (0..threads).map(at).collect::<Option<Vec<u32>>>() else { continue };
        if at.iter().zip(&source.program.threads).any(|(at, thread)| *at as usize >= thread.locations.len()) {
            continue;
        }
        let at: Vec<LocationId> = at.into_iter().map(LocationId).collect();
        for (thread, location) in at.iter().enumerate() {
            let seen = values.entry((thread, *location)).or_default();
            let live = &set.live[thread][location.index()];
            let fields = shown_registers(source, thread, live)
                .map(|(r, _)| set.layout.registers[thread][r.index()])
                .collect::<Vec<_>>();
            let memory = (0..).zip(&set.layout.memory).filter(|(cell, _)| source.shows(*cell));
            let fields = memory.map(|(_, field)| *field).chain(fields);
            for (n, field) in fields.enumerate() {
                seen.resize_with(seen.len().max(n + 1), BTreeSet::new);
                seen[n].insert(field.get(state));
            }
        }
        controls.insert(at);
    }
    if set.versions.is_some() {
        html.push_str("<p class=\"left-out\">Its states are up to the order of versions, so the values themselves mean nothing and are not listed.</p>\n");
    } else {
        html.push_str("<h4>What values its states have when a thread is at a point</h4>\n");
        if !families.is_empty() {
            html.push_str("<p>Of states that exchanging threads makes of each other it has one: what stands here about one of them may be said of another.</p>\n");
        }
        let points: Vec<_> =
            values.iter().map(|((thread, at), seen)| named(source, set, *thread, *at, seen)).collect();
        html.push_str(&table(source, &points));
    }
    let classes: Vec<Vec<usize>> =
        families.iter().map(|family| family.iter().map(|&t| t as usize).collect()).collect();
    html + &Controls::new(source, classes, controls.into_iter()).html()
}

/// Filters registers of a thread: those of `registers` that are shown, with their names.
fn shown_registers<'s>(
    source: Source<'s>,
    thread: usize,
    registers: &'s [u32],
) -> impl Iterator<Item = (RegisterId, String)> + 's {
    let all = source.program.threads[thread].registers.len();
    let there = registers.iter().filter(move |r| (**r as usize) < all).map(|r| RegisterId(*r));
    there.filter_map(move |r| Some((r, source.register(ThreadId(thread as u32), r)?)))
}

/// The values at a point as facts such as `x == 1`.
fn named(
    source: Source<'_>,
    set: &StateSet,
    thread: usize,
    location: LocationId,
    seen: &[BTreeSet<i64>],
) -> (ThreadId, LocationId, Vec<String>) {
    let program = source.program;
    let (id, code) = (ThreadId(thread as u32), &program.threads[thread]);
    let memory = (0..program.cells() as u32)
        .filter(|cell| source.shows(*cell))
        .map(|cell| (source.cell(cell), source.cell_kind(cell)));
    let registers = shown_registers(source, thread, &set.live[thread][location.index()])
        .map(|(r, name)| (format!("{}.{name}", code.name), source.register_kind(id, r)));
    let fact = |((name, kind), values): ((String, Kind), &BTreeSet<i64>)| {
        let list: Vec<String> = values.iter().map(|value| source.value(kind, *value)).collect();
        match (&list[..], values.first(), values.last()) {
            ([one], ..) => format!("{name} == {one}"),
            (list, ..) if list.len() <= MOST_VALUES => format!("{name} in {{{}}}", list.join(", ")),
            (list, Some(low), Some(high)) => {
                format!("{low} <= {name} <= {high} ({} values)", grouped(list.len() as u64))
            }
            _ => name,
        }
    };
    let facts = memory.chain(registers).zip(seen).map(fact).collect();
    (ThreadId(thread as u32), location, facts)
}

/// The facts at each point, as a table.
fn table(source: Source<'_>, points: &[(ThreadId, LocationId, Vec<String>)]) -> String {
    let mut html = String::from(
        "<div class=\"scroll\"><table class=\"points\"><thead><tr><th>thread</th><th>where</th><th>what holds</th></tr></thead>\n",
    );
    let mut last = None;
    for (thread, location, facts) in points.iter().take(MOST_ROWS) {
        if last != Some(*thread) {
            html.push_str(if last.is_none() { "<tbody>\n" } else { "</tbody><tbody>\n" });
            last = Some(*thread);
        }
        let place = source.place(*thread, *location);
        let place = place.strip_prefix("is at ").unwrap_or(&place);
        let mut shown: Vec<String> = facts
            .iter()
            .take(MOST_FACTS)
            .map(|fact| format!("<code>{}</code>", text(&shortened(fact, 200))))
            .collect();
        if let Some(more @ 1..) = facts.len().checked_sub(MOST_FACTS) {
            shown.push(format!("and {more} more"));
        }
        let shown = if shown.is_empty() { "nothing about its own cells".into() } else { shown.join(" ") };
        let name = text(&source.program.thread(*thread).name);
        let _ = writeln!(
            html,
            "<tr><th scope=\"row\" class=\"t{}\">{name}</th><td>{}</td><td class=\"facts\">{shown}</td></tr>",
            thread.index() % 6,
            text(place)
        );
    }
    html.push_str(if last.is_none() { "</table></div>\n" } else { "</tbody></table></div>\n" });
    if let Some(more @ 1..) = points.len().checked_sub(MOST_ROWS) {
        let _ =
            writeln!(html, "<p class=\"left-out\">{} more points are left out.</p>", grouped(more as u64));
    }
    html
}
