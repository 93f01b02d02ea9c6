//! Repeats the experiments of THESIS16 s.5.1: lazy reachability under TSO (Fig. 5.1), and the scaling families (Figs. 5.3 to 5.8). Our measurements
//! are printed beside the numbers that the thesis reports.

use std::time::Duration;

use fencewright_engines::lazy::Lazy;
use fencewright_engines::{Checked, Confirm, Limits, Progress, Task, Verdict, check};
use fencewright_program::{MemoryModel, Program};
use fencewright_report::words::grouped;

use crate::measurement::{Input, Measurement};
use crate::programs::{example, input, label, program};
use crate::run::Run;
use crate::stopwatch::{Stopwatch, Took};

/// The tool of the thesis, with its own explicit search.
pub const TRENCHER: &str = "Trencher";
/// The tool of the thesis with the model checker Spin as its search.
pub const TRENCHER_WITH_SPIN: &str = "Trencher+Spin";
/// A tool with which the thesis compares its own tool.
pub const MEMORAX: &str = "Memorax";
/// A tool with which the thesis compares its own tool.
pub const CBMC: &str = "CBMC";

/// The limits of each run: half a minute, and 8 GiB as in the thesis.
pub fn limits(run: &Run) -> Limits {
    run.limits(Duration::from_secs(30), Some(8 << 30))
}

/// A verdict in one word.
pub fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Safe => "safe",
        Verdict::Unsafe => "unsafe",
        Verdict::Unknown(_) => "unknown",
    }
}

/// Runs engine `lazy` on an example under TSO, and measures the time.
fn lazily(run: &Run, file: &str, defines: &[(&str, i64)]) -> (Vec<Checked>, Took) {
    under_tso(run, &example(file, defines))
}

fn under_tso(run: &Run, program: &Program) -> (Vec<Checked>, Took) {
    let task = Task::new(program, MemoryModel::Tso, program.properties.clone());
    let start = Stopwatch::start();
    let results = check(&Lazy::default(), &task, &limits(run), &Progress::default(), Confirm::NOTHING);
    (results, start.took())
}

fn words(results: &[Checked]) -> String {
    results.iter().map(|r| word(r.verdict())).collect::<Vec<_>>().join(", ")
}

/// A lock-free stack for Fig. 5.1, for which the thesis states only the size: four threads with about 11 control states each. Here two threads push,
/// and two pop.
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

/// Fig. 5.1: each program with its number of threads and the milliseconds that the thesis reports, with its own search and with Spin. In the last
/// program, which is our example, all threads push and then pop. It is larger than the program of the thesis, so the times of the thesis are not
/// comparable.
pub fn lazy(run: &mut Run) {
    let programs = [
        ("parker.fw", 2, vec![], Some((5.0, 1229.0))),
        ("peterson.fw", 2, vec![], Some((13.0, 1651.0))),
        ("dekker.fw", 2, vec![], Some((70.0, 3600.0))),
        ("lamport-fast.fw", 3, vec![("N", 3)], Some((694.0, 3061.0))),
        ("mcs-lock.fw", 4, vec![("N", 4), ("ROUNDS", 1)], Some((61.0, 1653.0))),
        ("clh-lock.fw", 3, vec![("N", 3)], Some((7.0, 1998.0))),
        ("2 push, 2 pop", 4, vec![], Some((7.0, 518.0))),
        ("treiber-stack.fw", 4, vec![("N", 4)], None),
    ];
    run.say("Fig. 5.1: wall clock, there on 16 cores; with Spin in place of its own search it generates, compiles and runs programs in C");
    let mut rows = Vec::new();
    for (file, threads, defines, theirs) in programs {
        let is_example = file.ends_with(".fw");
        let (results, took) =
            if is_example { lazily(run, file, &defines) } else { under_tso(run, &program(STACK)) };
        let ours = took.ms();
        let asked = if is_example { input(file, &defines) } else { Input::Text(STACK.to_string()) };
        let mut measured = Measurement::new(label(file, &defines), "tso", words(&results), took)
            .states(results.iter().map(|r| r.work.states).max().unwrap_or(0))
            .asked("check", MemoryModel::Tso, asked);
        if let Some((thesis, with_spin)) = theirs {
            measured =
                measured.published(TRENCHER, thesis / 1e3).published(TRENCHER_WITH_SPIN, with_spin / 1e3);
        }
        run.record(measured);
        // The time of a run without an answer is not compared.
        let is_answered = !words(&results).contains("unknown");
        let published = |theirs: Option<f64>, digits: usize| {
            let faster = theirs.filter(|_| is_answered).map(|theirs| format!("{:.digits$}", theirs / ours));
            [theirs.map_or(String::new(), |theirs| format!("{theirs:.0}")), faster.unwrap_or_default()]
        };
        let mut row = vec![
            file.to_string(),
            threads.to_string(),
            words(&results),
            grouped(results.iter().map(|r| r.work.states).max().unwrap_or(0)),
            format!("{ours:.1}"),
        ];
        row.extend(published(theirs.map(|(alone, _)| alone), 1));
        row.extend(published(theirs.map(|(_, with_spin)| with_spin), 0));
        rows.push(row);
    }
    let header = [
        "program",
        "threads",
        "verdict",
        "states",
        "ms",
        "thesis ms",
        "times faster",
        "with Spin ms",
        "times faster",
    ];
    run.table(&header, &rows);
    run.say("Fig. 5.5, Memorax and CBMC on the first four, is a plot whose data are lost; `--peer` measures these tools here.");
}

/// Figs. 5.3 to 5.8: the time over the size of the programs of the branching family, of the unwinding family and of Lamport's fast mutex, with the
/// numbers that the thesis reports for other tools.
pub fn families(run: &mut Run) {
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
        for n in run.some(&sizes, 2) {
            let (results, took) = lazily(run, file, &[("N", n)]);
            let ours = took.ms();
            let measurement = Measurement::new(label(file, &[("N", n)]), "tso", words(&results), took)
                .states(results.iter().map(|r| r.work.states).max().unwrap_or(0))
                .size(file, n)
                .asked("check", MemoryModel::Tso, input(file, &[("N", n)]));
            run.record(match (file, n) {
                ("branching-dekker.fw", 50) => measurement.published(MEMORAX, 90.0),
                ("unwinding-dekker.fw", 20) => measurement.published(CBMC, 510.0),
                _ => measurement,
            });
            rows.push(vec![
                file.to_string(),
                n.to_string(),
                words(&results),
                grouped(results.iter().map(|r| r.work.states).max().unwrap_or(0)),
                format!("{ours:.1}"),
                before.map_or(String::new(), |b| format!("{:.1}", ours / b)),
                others(file, n).to_string(),
            ]);
            before = Some(ours);
        }
    }
    run.table(&["program", "N", "verdict", "states", "ms", "growth", "thesis"], &rows);
    run.say(
        "Figs. 5.6 to 5.8 are plots whose data are lost; the column `thesis` has what its text says of them.",
    );
}
