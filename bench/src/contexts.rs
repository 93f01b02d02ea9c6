//! Measures engine `contexts` on programs of CONTEXT24: the bakery of Algorithm 1, and the programs of the hardness proofs (sections 5 and 6.1).

use std::time::Duration;

use fencewright_engines::cegar::Cegar;
use fencewright_engines::contexts::ContextBound;
use fencewright_engines::{Checked, Confirm, Engine, Progress, Task, check};
use fencewright_generate::automata::{intersection, random_automata};
use fencewright_generate::bakery::bakery;
use fencewright_generate::lossy::{channel, random_lossy};
use fencewright_program::MemoryModel;
use fencewright_report::words::grouped;

use crate::measurement::{Input, Measurement};
use crate::programs::program;
use crate::run::Run;
use crate::thesis::word;

/// Time limit for a bakery, over all numbers of contexts.
const BAKERY: Duration = Duration::from_secs(20);
/// Time limit for a program of a hardness proof.
const HARD: Duration = Duration::from_secs(5);

/// All tables of CONTEXT24.
pub fn contexts(run: &mut Run) {
    broken_bakeries(run);
    fenced_bakeries(run);
    automata(run);
    channels(run);
}

/// Runs an engine under TSO on a program with one stated property, and returns its verdict.
fn ask(run: &Run, engine: &dyn Engine, text: &str, time: Duration) -> Checked {
    let program = program(text);
    let named = program.properties.iter().filter(|p| p.formula().is_some()).cloned().collect();
    let task = Task::new(&program, MemoryModel::Tso, named);
    let limits = run.limits(time, None);
    let results = check(engine, &task, &limits, &Progress::default(), Confirm::NOTHING);
    results.into_iter().next().expect("every family states a property")
}

fn bounded(run: &Run, text: &str, time: Duration) -> Checked {
    ask(run, &ContextBound::default(), text, time)
}

/// The measurement of a verdict.
fn measured(label: &str, engine: &str, checked: &Checked, text: &str) -> Measurement {
    Measurement::new(label, format!("tso {engine}"), word(checked.verdict()), checked.seconds)
        .states(checked.work.states)
        .asked("check", MemoryModel::Tso, Input::Text(text.to_string()))
}

/// The largest number of contexts that was explored completely.
fn explored(checked: &Checked) -> u32 {
    checked.work.rounds().last().map_or(0, |round| round.contexts)
}

/// The smallest number of contexts in which two threads enter the critical section without fences.
fn broken_bakeries(run: &mut Run) {
    let mut row = |threads| {
        let text = bakery(threads, false);
        let checked = bounded(run, &text, BAKERY);
        let name = format!("generated bakery {threads}");
        run.record(measured(&name, "contexts", &checked, &text).size("generated bakery", threads as i64));
        let contexts = checked.trace().map(|trace| trace.contexts().to_string());
        vec![
            format!("bakery {threads}"),
            word(checked.verdict()).to_string(),
            contexts.unwrap_or_else(|| format!("more than {}", explored(&checked))),
            grouped(checked.work.states),
            format!("{:.3}", checked.seconds),
        ]
    };
    let rows: Vec<_> = [2, 3, 4].into_iter().map(&mut row).collect();
    run.table(&["without fences", "verdict", "contexts", "states", "seconds"], &rows);
}

/// The cost of each further context in programs without a violation, and for comparison the cost of a proof by abstraction.
fn fenced_bakeries(run: &mut Run) {
    let (mut rows, mut ends) = (Vec::new(), Vec::new());
    for threads in [2, 3, 4] {
        let text = bakery(threads, true);
        let checked = bounded(run, &text, BAKERY);
        let name = format!("generated bakery {threads}, fenced");
        run.record(measured(&name, "contexts", &checked, &text));
        let mut before: Option<f64> = None;
        for round in checked.work.rounds() {
            let contexts = format!("{name}, {} contexts", round.contexts);
            run.record(
                Measurement::new(
                    contexts,
                    format!("tso contexts, {threads} threads"),
                    "explored",
                    round.seconds,
                )
                .states(round.states)
                .size("fenced bakery, N contexts", round.contexts.into()),
            );
            rows.push(vec![
                format!("bakery {threads}"),
                round.contexts.to_string(),
                grouped(round.states),
                format!("{:.1}", round.seconds * 1e3),
                before.map_or(String::new(), |b| format!("{:.1}", round.seconds / b)),
            ]);
            before = Some(round.seconds);
        }
        let cegar = (threads < 4).then(|| ask(run, &Cegar::default(), &text, BAKERY));
        if let Some(cegar) = &cegar {
            run.record(measured(&name, "cegar", cegar, &text));
        }
        ends.push(vec![
            format!("bakery {threads}"),
            word(checked.verdict()).to_string(),
            explored(&checked).to_string(),
            format!("{:.1}", checked.seconds),
            cegar.as_ref().map_or("", |c| word(c.verdict())).to_string(),
            cegar.map_or(String::new(), |c| format!("{:.1}", c.seconds)),
        ]);
    }
    run.table(&["fenced", "contexts", "new states", "ms", "growth"], &rows);
    run.table(&["fenced", "verdict", "contexts", "seconds", "cegar", "seconds"], &ends);
}

/// Intersection of automata. The programs have a single thread, so one context is sufficient.
fn automata(run: &mut Run) {
    let mut row = |(automata, states)| {
        let text = intersection(&random_automata(1, automata, states, 2), 2);
        let checked = bounded(run, &text, HARD);
        run.record(measured(&format!("{automata} automata of {states} states"), "contexts", &checked, &text));
        vec![
            format!("{automata} automata of {states} states"),
            word(checked.verdict()).to_string(),
            grouped(checked.work.states),
            format!("{:.3}", checked.seconds),
        ]
    };
    let sizes = [(1, 4), (2, 2), (2, 3), (2, 4), (3, 3), (3, 4), (4, 3)];
    let rows: Vec<_> = sizes.into_iter().map(&mut row).collect();
    run.table(&["intersection", "verdict", "states", "seconds"], &rows);
}

/// Lossy channel systems with data over an infinite domain. Their reachability problem is undecidable (CONTEXT24 s. 5), but violations within few
/// contexts are found.
fn channels(run: &mut Run) {
    let mut row = |seed| {
        let text = channel(&random_lossy(seed, 4, 2, 2, 8));
        let checked = bounded(run, &text, HARD);
        run.record(measured(&format!("lossy channel, seed {seed}"), "contexts", &checked, &text));
        vec![
            format!("seed {seed}"),
            word(checked.verdict()).to_string(),
            checked.trace().map_or_else(String::new, |trace| trace.contexts().to_string()),
            explored(&checked).to_string(),
            grouped(checked.work.states),
            format!("{:.3}", checked.seconds),
        ]
    };
    let rows: Vec<_> = (1..=8).map(&mut row).collect();
    run.table(&["lossy channel", "verdict", "violated in", "explored", "states", "seconds"], &rows);
}
