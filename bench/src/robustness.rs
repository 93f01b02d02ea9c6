//! THESIS16 s.5.2.1: robustness and the fences that enforce it (Fig. 5.9), breadth first and depth first, with each reduction switched off (Fig. 5.11), and
//! a program on which depth first fails (Fig. 5.10).

use std::time::{Duration, Instant};

use fencewright_engines::explicit::{self, Order, Reduction};
use fencewright_engines::robust::{self, Finding, Search};
use fencewright_engines::{Limits, Progress};
use fencewright_fences::{Options, Robustness, synthesise};
use fencewright_lang::places::Placed;
use fencewright_report::words::grouped;
use fencewright_testing::corpora::corpora;

use crate::programs::{placed, placed_at, program};
use crate::table::print;
use crate::thesis::{limits, ms};

/// Fig. 5.9: what it is, the file of the original tool in the corpora or an example of ours, and the milliseconds of the thesis, depth first and
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

/// The program of a row of the table; nothing if it is in the corpora, and these are not there.
pub fn of_table(file: &str) -> Option<Placed> {
    if file.ends_with(".fw") {
        return Some(placed(file, &[("N", 4)]));
    }
    corpora("trencher").map(|corpora| placed_at(&corpora.join("trencher").join(file), &[]))
}

/// Robustness by explicit search.
fn options(order: Order) -> robust::Options {
    let explicit = explicit::Options { order, ..explicit::Options::default() };
    robust::Options { search: Search::Explicit, explicit, ..robust::Options::default() }
}

/// The fences that make a program robust, and how many milliseconds it takes to find them.
fn fences(placed: &Placed, options: robust::Options) -> (String, f64) {
    let start = Instant::now();
    let goal = Robustness { options };
    let found = synthesise(placed, &goal, &Options::default(), &limits(), &Progress::default());
    let sure = if found.optimal { "" } else { " (?)" };
    (format!("{}{sure}", found.count), ms(start))
}

/// How many times faster; nothing where the thesis rounds to nothing.
fn times(thesis: f64, ours: f64) -> String {
    if thesis == 0.0 { String::new() } else { format!("{:.1}", thesis / ours) }
}

/// Figs. 5.9, 5.10 and 5.11.
pub fn tables() {
    println!("Fig. 5.9: the verdict, all attacks, and the fences, depth first and breadth first\n");
    let mut rows = Vec::new();
    for (name, file, depth, breadth) in TABLE {
        let Some(placed) = of_table(file) else { continue };
        let every = robust::Options { all: true, ..options(Order::BreadthFirst) };
        let all = robust::analyse(&placed.program, &every, &limits(), &Progress::default());
        let feasible = all.attacks().iter().filter(|a| a.verdict == Finding::Feasible).count();
        let (count, first) = fences(&placed, options(Order::DepthFirst));
        let (same, second) = fences(&placed, options(Order::BreadthFirst));
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
    let header = [
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
    print(&header, &rows);
    depth_first_fails();
    with_reductions();
}

/// Fig. 5.10: the first thing a thread can do is to count for ever, and depth first does that; the attack is a few steps away. The program of the
/// thesis is lost, this one is of its kind.
fn depth_first_fails() {
    println!(
        "\nFig. 5.10: depth first never comes back from a loop without end, the attack is beside it (5 s each)\n"
    );
    let program = program(
        "shared x, y;
         thread p { var n, r; choose { loop { n = n + 1; } } or { x = 1; r = y; } }
         thread q { var s; y = 1; s = x; }",
    );
    let mut rows = Vec::new();
    for (name, order) in [("breadth first", Order::BreadthFirst), ("depth first", Order::DepthFirst)] {
        let limits = Limits::starting_now(Some(Duration::from_secs(5)), Some(1 << 30), Default::default());
        let start = Instant::now();
        let found = robust::analyse(&program, &options(order), &limits, &Progress::default());
        let verdict = match found.robust() {
            Ok(true) => "robust".into(),
            Ok(false) => "not robust".into(),
            Err(reason) => format!("unknown: {reason}"),
        };
        rows.push(vec![name.to_string(), verdict, grouped(found.states), format!("{:.1}", ms(start))]);
    }
    print(&["search", "verdict", "states", "ms"], &rows);
}

/// Fig. 5.11: live variables and local events first, each switched off. The data of the thesis are lost.
fn with_reductions() {
    println!(
        "\nFig. 5.11: milliseconds to find the fences with live variables, local events first, both or neither\n"
    );
    let mut rows = Vec::new();
    // Those that took the thesis more than ten milliseconds.
    for (name, file, ..) in TABLE.into_iter().filter(|(.., depth, _)| *depth > 10.0) {
        let Some(placed) = of_table(file) else { continue };
        let mut row = vec![name.to_string()];
        for order in [Order::DepthFirst, Order::BreadthFirst] {
            let (none, local) = (Reduction::None, Reduction::Local);
            for (live_variables, reduction) in [(false, none), (true, none), (false, local), (true, local)] {
                let mut options = options(order);
                options.explicit.live_variables = live_variables;
                options.explicit.reduction = reduction;
                row.push(format!("{:.1}", fences(&placed, options).1));
            }
        }
        rows.push(row);
    }
    let header = ["program", "dfs, none", "live", "local", "both", "bfs, none", "live", "local", "both"];
    print(&header, &rows);
}
