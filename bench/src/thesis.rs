//! THESIS16 s.5.1: lazy reachability under TSO (Fig. 5.1), and the families of programs that grow (Figs. 5.3 to 5.8), beside what the
//! thesis reports.

use std::time::{Duration, Instant};

use fencewright_engines::lazy::Lazy;
use fencewright_engines::{Checked, Confirm, Limits, Progress, Task, Verdict, check};
use fencewright_program::{MemoryModel, Program};
use fencewright_report::words::grouped;

use crate::programs::{example, program};
use crate::table::print;

/// A minute from now, in the memory that the thesis had.
pub fn limits() -> Limits {
    Limits::starting_now(Some(Duration::from_secs(60)), Some(8 << 30), Default::default())
}

/// Milliseconds since then.
pub fn ms(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

/// A verdict in a word.
pub fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Safe => "safe",
        Verdict::Unsafe => "unsafe",
        Verdict::Unknown(_) => "unknown",
    }
}

/// What engine `lazy` says about an example under TSO, and how many milliseconds that takes.
fn lazily(file: &str, defines: &[(&str, i64)]) -> (Vec<Checked>, f64) {
    under_tso(&example(file, defines))
}

fn under_tso(program: &Program) -> (Vec<Checked>, f64) {
    let task = Task::new(program, MemoryModel::Tso, program.properties.clone());
    let start = Instant::now();
    let results = check(&Lazy::default(), &task, &limits(), &Progress::default(), Confirm::NOTHING);
    (results, ms(start))
}

fn words(results: &[Checked]) -> String {
    results.iter().map(|r| word(r.verdict())).collect::<Vec<_>>().join(", ")
}

/// A lock-free stack of the size that Fig. 5.1 says: four threads, each with about 11 control states. Two push, two pop.
const STACK: &str = "
    shared top, next[1..=2];
    thread push[me in 1..=2] {
        var head;
        loop { head = top; next[me] = head; if cas(top, head, me) { break; } }
    }
    thread pop[me in 1..=2] {
        var head, below, got;
        loop {
            head = top;
            if head == 0 { stop; }
            below = next[head];
            if cas(top, head, below) { break; }
        }
        got = head;
    }
    forbid twice: pop[1].got != 0 && pop[1].got == pop[2].got;
";

/// Fig. 5.1: program, threads, milliseconds of the thesis. The last program is our example, whose threads all push and then pop.
pub fn lazy() {
    let programs = [
        ("parker.fw", 2, vec![], 5.0),
        ("peterson.fw", 2, vec![], 13.0),
        ("dekker.fw", 2, vec![], 70.0),
        ("lamport-fast.fw", 3, vec![("N", 3)], 694.0),
        ("mcs-lock.fw", 4, vec![("N", 4), ("ROUNDS", 1)], 61.0),
        ("clh-lock.fw", 3, vec![("N", 3)], 7.0),
        ("2 push, 2 pop", 4, vec![], 7.0),
        ("treiber-stack.fw", 4, vec![("N", 4)], 7.0),
    ];
    let mut rows = Vec::new();
    for (file, threads, defines, thesis) in programs {
        let (results, ours) =
            if file.ends_with(".fw") { lazily(file, &defines) } else { under_tso(&program(STACK)) };
        rows.push(vec![
            file.to_string(),
            threads.to_string(),
            words(&results),
            grouped(results.iter().map(|r| r.states).max().unwrap_or(0)),
            format!("{ours:.1}"),
            format!("{thesis:.0}"),
            format!("{:.1}", thesis / ours),
        ]);
    }
    print(&["program", "threads", "verdict", "states", "ms", "thesis ms", "times faster"], &rows);
}

/// Figs. 5.3 to 5.8: the branching and the unwinding family and Lamport's fast mutex, how the time grows, and what the thesis says of the others.
pub fn families() {
    let others = |file: &str, n: i64| match (file, n) {
        ("branching-dekker.fw", 50) => "Memorax 90 s",
        ("unwinding-dekker.fw", 20) => "CBMC 510 s",
        ("lamport-fast.fw", 5) => "Trencher, Memorax: more than 8 GB",
        _ => "",
    };
    let mut rows = Vec::new();
    for (file, sizes) in [
        ("branching-dekker.fw", [25, 50, 100, 200]),
        ("unwinding-dekker.fw", [10, 20, 50, 100]),
        ("lamport-fast.fw", [2, 3, 4, 5]),
    ] {
        let mut before: Option<f64> = None;
        for n in sizes {
            let (results, ours) = lazily(file, &[("N", n)]);
            rows.push(vec![
                file.to_string(),
                n.to_string(),
                words(&results),
                grouped(results.iter().map(|r| r.states).max().unwrap_or(0)),
                format!("{ours:.1}"),
                before.map_or(String::new(), |b| format!("{:.1}", ours / b)),
                others(file, n).to_string(),
            ]);
            before = Some(ours);
        }
    }
    print(&["program", "N", "verdict", "states", "ms", "growth", "thesis"], &rows);
}
