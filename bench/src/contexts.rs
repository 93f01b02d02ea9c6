//! CONTEXT24: the bakery of Algorithm 1, and the programs of the hardness proofs (sections 5 and 6.1).

use std::time::Duration;

use fencewright_engines::cegar::Cegar;
use fencewright_engines::contexts::ContextBound;
use fencewright_engines::{Checked, Confirm, Engine, Limits, Progress, Task, check};
use fencewright_generate::automata::{intersection, random_automata};
use fencewright_generate::bakery::bakery;
use fencewright_generate::lossy::{channel, random_lossy};
use fencewright_program::MemoryModel;
use fencewright_report::words::grouped;

use crate::programs::program;
use crate::table::print;
use crate::thesis::word;

/// For one bakery, with all numbers of contexts that fit.
const BAKERY: Duration = Duration::from_secs(60);
/// For one program of a hardness proof.
const HARD: Duration = Duration::from_secs(5);

/// All of it.
pub fn contexts() {
    broken_bakeries();
    println!();
    fenced_bakeries();
    println!();
    automata();
    println!();
    channels();
}

/// What an engine says about the one property of a program under TSO.
fn ask(engine: &dyn Engine, text: &str, time: Duration) -> Checked {
    let program = program(text);
    let named = program.properties.iter().filter(|p| p.formula().is_some()).cloned().collect();
    let task = Task::new(&program, MemoryModel::Tso, named);
    let limits = Limits::starting_now(Some(time), None, Default::default());
    let results = check(engine, &task, &limits, &Progress::default(), Confirm::NOTHING);
    results.into_iter().next().expect("every family states a property")
}

fn bounded(text: &str, time: Duration) -> Checked {
    ask(&ContextBound::default(), text, time)
}

/// How many contexts were explored to their end.
fn explored(checked: &Checked) -> u32 {
    checked.rounds.last().map_or(0, |round| round.contexts)
}

/// The smallest number of contexts in which two threads get in without fences.
fn broken_bakeries() {
    let row = |threads| {
        let checked = bounded(&bakery(threads, false), BAKERY);
        let contexts = checked.trace().map(|trace| trace.contexts().to_string());
        vec![
            format!("bakery {threads}"),
            word(checked.verdict()).to_string(),
            contexts.unwrap_or_else(|| format!("more than {}", explored(&checked))),
            grouped(checked.states),
            format!("{:.3}", checked.seconds),
        ]
    };
    let rows: Vec<_> = [2, 3, 4].into_iter().map(row).collect();
    print(&["without fences", "verdict", "contexts", "states", "seconds"], &rows);
}

/// What each further context costs if there is nothing to be found; and, for comparison, what a proof by abstraction does.
fn fenced_bakeries() {
    let (mut rows, mut ends) = (Vec::new(), Vec::new());
    for threads in [2, 3, 4] {
        let text = bakery(threads, true);
        let checked = bounded(&text, BAKERY);
        let mut before: Option<f64> = None;
        for round in &checked.rounds {
            rows.push(vec![
                format!("bakery {threads}"),
                round.contexts.to_string(),
                grouped(round.states),
                format!("{:.1}", round.seconds * 1e3),
                before.map_or(String::new(), |b| format!("{:.1}", round.seconds / b)),
            ]);
            before = Some(round.seconds);
        }
        let cegar = (threads < 4).then(|| ask(&Cegar::default(), &text, BAKERY));
        ends.push(vec![
            format!("bakery {threads}"),
            word(checked.verdict()).to_string(),
            explored(&checked).to_string(),
            format!("{:.1}", checked.seconds),
            cegar.as_ref().map_or("", |c| word(c.verdict())).to_string(),
            cegar.map_or(String::new(), |c| format!("{:.1}", c.seconds)),
        ]);
    }
    print(&["fenced", "contexts", "new states", "ms", "growth"], &rows);
    println!();
    print(&["fenced", "verdict", "contexts", "seconds", "cegar", "seconds"], &ends);
}

/// Intersection of automata: one thread, so one context decides.
fn automata() {
    let row = |(automata, states)| {
        let checked = bounded(&intersection(&random_automata(1, automata, states, 2), 2), HARD);
        vec![
            format!("{automata} automata of {states} states"),
            word(checked.verdict()).to_string(),
            grouped(checked.states),
            format!("{:.3}", checked.seconds),
        ]
    };
    let sizes = [(1, 4), (2, 2), (2, 3), (2, 4), (3, 3), (3, 4), (4, 3)];
    let rows: Vec<_> = sizes.into_iter().map(row).collect();
    print(&["intersection", "verdict", "states", "seconds"], &rows);
}

/// Lossy channel systems: nothing decides them, but violations within few contexts are found.
fn channels() {
    let row = |seed| {
        let checked = bounded(&channel(&random_lossy(seed, 4, 2, 2, 8)), HARD);
        vec![
            format!("seed {seed}"),
            word(checked.verdict()).to_string(),
            checked.trace().map_or_else(String::new, |trace| trace.contexts().to_string()),
            explored(&checked).to_string(),
            grouped(checked.states),
            format!("{:.3}", checked.seconds),
        ]
    };
    let rows: Vec<_> = (1..=8).map(row).collect();
    print(&["lossy channel", "verdict", "violated in", "explored", "states", "seconds"], &rows);
}
