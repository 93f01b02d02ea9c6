//! THESIS16 s.5.2.1: robustness and the fences that enforce it (Fig. 5.9), by breadth-first and depth-first search; the times with and without each
//! of two reductions (Fig. 5.11); and a program on which depth-first search fails (Fig. 5.10).

use std::time::Duration;

use fencewright_engines::Progress;
use fencewright_engines::explicit::{self, Order, Reduction};
use fencewright_engines::robust::{self, Finding, Search};
use fencewright_fences::{Options, Robustness, synthesise};
use fencewright_lang::places::Placed;
use fencewright_program::MemoryModel;
use fencewright_report::words::grouped;

use crate::measurement::{Input, Measurement};
use crate::programs::{corpora_placed, input, of_corpora, placed, program};
use crate::run::Run;
use crate::stopwatch::{Stopwatch, Took};
use crate::thesis::{TRENCHER, limits};

/// Fig. 5.9: the program, the file of the original tool in the corpora or one of our examples, and the milliseconds of the thesis, depth first and
/// breadth first.
const TABLE: [(&str, &str, f64, f64); 11] = [
    ("Dekker, 2 threads", "dekker.txt", 165.0, 171.0),
    ("Dekker, fenced", "dekker-correct.txt", 0.0, 0.0),
    ("Peterson, 2 threads", "peterson.txt", 56.0, 55.0),
    ("Peterson, fenced", "peterson-correct.txt", 0.0, 0.0),
    ("Lamport, 3 threads", "lamport-fast-mutex-alg1.txt", 3577.0, 4291.0),
    ("Lamport, fenced", "lamport-fast-mutex-alg1-correct.txt", 1.0, 1.0),
    ("CLH lock, 3 threads", "clh-lock.txt", 29.0, 31.0),
    ("MCS lock, 2 threads", "mcs-lock.txt", 11.0, 12.0),
    ("Cilk queue, wrong use, 5 threads", "cilk-the-wsq-wrongdoing.txt", 28597.0, 36693.0),
    ("Cilk queue, 3 threads", "cilk-the-wsq.txt", 10.0, 6.0),
    ("Lock-free stack, 4 threads", "treiber-stack.fw", 0.0, 0.0),
];

/// The program of a row of the table, or the reason why it is missing: the corpora are optional.
pub fn of_table(file: &str) -> Result<Placed, String> {
    if file.ends_with(".fw") { Ok(placed(file, &[("N", 4)])) } else { corpora_placed("trencher", file) }
}

/// The program of a row of the table, as input for other tools (`--peer`).
fn asked(file: &str) -> Option<Input> {
    if file.ends_with(".fw") {
        return Some(input(file, &[("N", 4)]));
    }
    of_corpora("trencher", file).ok().map(|path| Input::File(path, Vec::new()))
}

/// A table row that gives the reason why the program was not measured.
pub fn not_measured(name: &str, why: &str, columns: usize) -> Vec<String> {
    let mut row = vec![String::new(); columns];
    row[0] = name.to_string();
    row[1] = format!("not measured: {}", why.lines().next().unwrap_or_default());
    row
}

/// Options for robustness by explicit search.
fn options(run: &Run, order: Order) -> robust::Options {
    let explicit = explicit::Options { order, ..run.search() };
    robust::Options { search: Search::Explicit, explicit, ..robust::Options::default() }
}

/// The number of fences that make a program robust, and the time to find them.
fn fences(run: &Run, placed: &Placed, options: robust::Options) -> (String, Took) {
    let start = Stopwatch::start();
    let goal = Robustness { options };
    let found = synthesise(placed, &goal, &Options::default(), &limits(run), &Progress::default());
    let sure = if found.optimal { "" } else { " (?)" };
    (format!("{}{sure}", found.count), start.took())
}

/// The time of the thesis divided by ours; empty if the time of the thesis is rounded to 0.
fn times(thesis: f64, ours: f64) -> String {
    if thesis == 0.0 { String::new() } else { format!("{:.1}", thesis / ours) }
}

const HEADER: [&str; 10] = [
    "program",
    "verdict",
    "attacks",
    "fences",
    "dfs ms",
    "thesis",
    "times faster",
    "bfs ms",
    "thesis",
    "times faster",
];

/// Figs. 5.9, 5.10 and 5.11.
pub fn tables(run: &mut Run) {
    run.say("Fig. 5.9: the verdict, all attacks, and the fences, depth first and breadth first");
    let mut rows = Vec::new();
    for (name, file, depth, breadth) in TABLE {
        let placed = match of_table(file) {
            Ok(placed) => placed,
            Err(why) => {
                let mut row = not_measured(name, &why, HEADER.len());
                (row[5], row[8]) = (format!("{depth:.0}"), format!("{breadth:.0}"));
                rows.push(row);
                continue;
            }
        };
        let every = robust::Options { all: true, ..options(run, Order::BreadthFirst) };
        let all = robust::analyse(&placed.program, &every, &limits(run), &Progress::default());
        let feasible = all.attacks().iter().filter(|a| a.verdict == Finding::Feasible).count();
        let (count, first) = fences(run, &placed, options(run, Order::DepthFirst));
        let (same, second) = fences(run, &placed, options(run, Order::BreadthFirst));
        for (order, count, took, thesis) in [("dfs", &count, first, depth), ("bfs", &same, second, breadth)] {
            let outcome = if count.contains('?') {
                format!("unknown: {count} fences")
            } else {
                format!("{count} fences")
            };
            let mut measurement = Measurement::new(name, format!("fences, {order}"), outcome, took);
            if let Some(asked) = asked(file) {
                measurement = measurement.asked("robust", MemoryModel::Tso, asked);
            }
            // The thesis rounds times below a millisecond to 0.
            run.record(if thesis > 0.0 {
                measurement.published(TRENCHER, thesis / 1e3)
            } else {
                measurement
            });
        }
        let (first, second) = (first.ms(), second.ms());
        rows.push(vec![
            name.to_string(),
            match all.robust() {
                Ok(true) => "robust".into(),
                Ok(false) => "not robust".into(),
                Err(reason) => reason.to_string(),
            },
            format!("{feasible} of {}", all.attacks().len()),
            if count == same { count } else { format!("{count}, {same}") },
            format!("{first:.1}"),
            format!("{depth:.0}"),
            times(depth, first),
            format!("{second:.1}"),
            format!("{breadth:.0}"),
            times(breadth, second),
        ]);
    }
    run.table(&HEADER, &rows);
    depth_first_fails(run);
    with_reductions(run);
}

/// Fig. 5.10: the first alternative of a thread is an infinite loop, which depth-first search enters and never leaves. The attack is on another
/// alternative, after a few steps. The program of the thesis is lost; this one is similar.
fn depth_first_fails(run: &mut Run) {
    run.say(
        "Fig. 5.10: depth first never comes back from a loop without end, the attack is beside it (5 s each)",
    );
    let program = program(
        "shared x, y;
         thread p { var n, r; choose { loop { n = n + 1; } } or { x = 1; r = y; } }
         thread q { var s; y = 1; s = x; }",
    );
    let mut rows = Vec::new();
    for (name, order) in [("breadth first", Order::BreadthFirst), ("depth first", Order::DepthFirst)] {
        let limits = run.limits(Duration::from_secs(5), Some(1 << 30));
        let start = Stopwatch::start();
        let found = robust::analyse(&program, &options(run, order), &limits, &Progress::default());
        let verdict = match found.robust() {
            Ok(true) => "robust".into(),
            Ok(false) => "not robust".into(),
            Err(reason) => format!("unknown: {reason}"),
        };
        let took = start.took();
        let outcome = if verdict.starts_with("unknown") { "unknown".to_string() } else { verdict.clone() };
        run.record(Measurement::new("Fig. 5.10", name, outcome, took).states(found.states));
        rows.push(vec![name.to_string(), verdict, grouped(found.states), format!("{:.1}", took.ms())]);
    }
    run.table(&["search", "verdict", "states", "ms"], &rows);
}

/// Fig. 5.11: the times without two reductions, with each of them, and with both. The reductions are live variables and local events first. The data
/// of the thesis are lost.
fn with_reductions(run: &mut Run) {
    run.say(
        "Fig. 5.11: milliseconds to find the fences with live variables, local events first, both or neither; the data of this plot are lost",
    );
    let header = ["program", "dfs, none", "live", "local", "both", "bfs, none", "live", "local", "both"];
    let mut rows = Vec::new();
    // Only programs that took more than ten milliseconds in the thesis; in a quick run, only those that took less than a second.
    let most = if run.quick { 1e3 } else { f64::INFINITY };
    let slow = TABLE.into_iter().filter(|(.., depth, _)| *depth > 10.0);
    let all = slow.clone().count();
    for (name, file, ..) in slow.filter(|(.., depth, _)| *depth < most) {
        let placed = match of_table(file) {
            Ok(placed) => placed,
            Err(why) => {
                rows.push(not_measured(name, &why, header.len()));
                continue;
            }
        };
        let mut row = vec![name.to_string()];
        for order in [Order::DepthFirst, Order::BreadthFirst] {
            let (none, local) = (Reduction::None, Reduction::Local);
            let settings =
                [("none", false, none), ("live", true, none), ("local", false, local), ("both", true, local)];
            for (setting, live_variables, reduction) in settings {
                let mut options = options(run, order);
                options.explicit.live_variables = live_variables;
                options.explicit.reduction = reduction;
                let (count, took) = fences(run, &placed, options);
                let outcome = if count.contains('?') {
                    format!("unknown: {count} fences")
                } else {
                    format!("{count} fences")
                };
                let order = if order == Order::DepthFirst { "dfs" } else { "bfs" };
                run.record(Measurement::new(name, format!("{order}, {setting}"), outcome, took));
                row.push(format!("{:.1}", took.ms()));
            }
        }
        rows.push(row);
    }
    let measured = rows.len();
    run.table(&header, &rows);
    run.say_few("programs", measured, all);
}
