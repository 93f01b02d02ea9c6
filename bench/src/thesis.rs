//! THESIS16: lazy reachability (Fig. 5.1) and robustness with its fences (Fig. 5.9), beside the times of the thesis; and the
//! fences of FENCES12 Table 1, found from the programs without any.

use std::time::{Duration, Instant};

use fencewright_engines::auto::Auto;
use fencewright_engines::lazy::Lazy;
use fencewright_engines::robust::{self, Finding};
use fencewright_engines::{Checked, Confirm, Limits, Progress, Task, Verdict, check};
use fencewright_fences::{Goal, Options, Robustness, Safety, synthesise};
use fencewright_program::MemoryModel;
use fencewright_report::words::grouped;

use crate::programs::{example, placed, placed_at, program_at};
use crate::table::print;

fn limits() -> Limits {
    Limits::starting_now(Some(Duration::from_secs(60)), None, Default::default())
}

fn ms(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

/// What engine `lazy` says about an example under TSO, and how many milliseconds that takes.
fn lazily(file: &str, defines: &[(&str, i64)]) -> (Vec<Checked>, f64) {
    let program = example(file, defines);
    let task = Task::new(&program, MemoryModel::Tso, program.properties.clone());
    let start = Instant::now();
    let results = check(&Lazy::default(), &task, &limits(), &Progress::default(), Confirm::NOTHING);
    (results, ms(start))
}

/// Fig. 5.1: program, threads, milliseconds of the thesis.
pub fn lazy() {
    let programs = [
        ("parker.fw", None, 5.0),
        ("peterson.fw", None, 13.0),
        ("dekker.fw", None, 70.0),
        ("lamport-fast.fw", Some(3), 694.0),
        ("mcs-lock.fw", None, 61.0),
        ("clh-lock.fw", None, 7.0),
        ("treiber-stack.fw", None, 7.0),
    ];
    let mut rows = Vec::new();
    for (file, threads, thesis) in programs {
        let defines: Vec<(&str, i64)> = threads.map(|n| ("N", n)).into_iter().collect();
        let (results, ours) = lazily(file, &defines);
        rows.push(vec![
            file.to_string(),
            threads.map_or("2".into(), |n| n.to_string()),
            results.iter().map(|r| word(r.verdict())).collect::<Vec<_>>().join(", "),
            format!("{ours:.1}"),
            format!("{thesis:.0}"),
            format!("{:.1}", thesis / ours),
        ]);
    }
    print(&["program", "threads", "verdict", "ms", "thesis ms", "times faster"], &rows);
}

/// Figs. 5.3 and 5.4: the branching and the unwinding family, and how the time grows.
pub fn families() {
    let mut rows = Vec::new();
    for (file, sizes) in
        [("branching-dekker.fw", [25, 50, 100, 200]), ("unwinding-dekker.fw", [10, 25, 50, 100])]
    {
        let mut before: Option<f64> = None;
        for n in sizes {
            let (results, ours) = lazily(file, &[("N", n)]);
            rows.push(vec![
                file.to_string(),
                n.to_string(),
                results.iter().map(|r| word(r.verdict())).collect::<Vec<_>>().join(", "),
                grouped(results.iter().map(|r| r.states).max().unwrap_or(0)),
                format!("{ours:.1}"),
                before.map_or(String::new(), |b| format!("{:.1}", ours / b)),
            ]);
            before = Some(ours);
        }
    }
    print(&["program", "N", "verdict", "states", "ms", "growth"], &rows);
}

/// A verdict in a word.
pub fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Safe => "safe",
        Verdict::Unsafe => "unsafe",
        Verdict::Unknown(_) => "unknown",
    }
}

/// Fig. 5.9: the robustness verdict, all attacks, and the fences that make the program robust. The programs are those of the
/// original tool, which the corpora have.
pub fn robustness() {
    let Some(corpora) = std::env::var_os("FENCEWRIGHT_CORPORA") else {
        println!("skipped: FENCEWRIGHT_CORPORA is not set");
        return;
    };
    let programs = [
        ("dekker.txt", 165.0),
        ("peterson.txt", 56.0),
        ("lamport-fast-mutex-alg1.txt", 3577.0),
        ("clh-lock.txt", 29.0),
        ("mcs-lock.txt", 11.0),
        ("cilk-the-wsq-wrongdoing.txt", 28597.0),
        ("cilk-the-wsq.txt", 10.0),
    ];
    let mut rows = Vec::new();
    for (file, thesis) in programs {
        let path = std::path::Path::new(&corpora).join("trencher").join(file);
        let placed = placed_at(&path, &[]);
        let program = program_at(&path, &[]);
        let start = Instant::now();
        let verdict = robust::analyse(&program, &robust::Options::default(), &limits(), &Progress::default());
        let first = ms(start);
        let start = Instant::now();
        let every = robust::Options { all: true, ..robust::Options::default() };
        let all = robust::analyse(&program, &every, &limits(), &Progress::default());
        let every = ms(start);
        let feasible = all.attacks().iter().filter(|a| a.verdict == Finding::Feasible).count();
        let start = Instant::now();
        let goal = Robustness { options: robust::Options::default() };
        let found = synthesise(&placed, &goal, &Options::default(), &limits(), &Progress::default());
        let fences = ms(start);
        rows.push(vec![
            file.to_string(),
            match verdict.robust() {
                Ok(true) => "robust".into(),
                Ok(false) => "not robust".into(),
                Err(reason) => reason.to_string(),
            },
            format!("{first:.1}"),
            format!("{feasible} of {}", all.attacks().len()),
            grouped(all.states),
            format!("{every:.1}"),
            found.count.to_string(),
            format!("{fences:.1}"),
            format!("{thesis:.0}"),
            format!("{:.1}", thesis / fences),
        ]);
    }
    let header = [
        "program",
        "verdict",
        "ms",
        "attacks",
        "states",
        "all, ms",
        "fences",
        "ms",
        "thesis ms",
        "times faster",
    ];
    print(&header, &rows);
}

/// FENCES12 Table 1: the cheapest fences for the programs without any, proved sufficient, each shown to be needed.
pub fn fences() {
    let programs = [
        ("burns", 20.0, 1),
        ("simple-dekker", 40.0, 1),
        ("dekker", 60.0, 1),
        ("dijkstra", 350.0, 1),
        ("bakery", 154_000.0, 2),
        ("lamport-fast", 2_000.0, 2),
        ("peterson", 2_000.0, 1),
        ("ticket-lock", 2_000.0, 0),
    ];
    let (mut rows, mut total) = (Vec::new(), [0.0, 0.0]);
    for (name, paper, fences) in programs {
        let placed = placed(&format!("{name}.fw"), &[]);
        let threads = placed.program.threads.len();
        let mut row = vec![name.to_string(), (fences * threads).to_string()];
        let mut first = 0.0;
        for (n, model) in [MemoryModel::Tso, MemoryModel::Pso].into_iter().enumerate() {
            let goal: &dyn Goal = &Safety {
                model,
                properties: Vec::new(),
                engine: Auto::default(),
                confirm: Confirm::default(),
            };
            let start = Instant::now();
            let found = synthesise(&placed, goal, &Options::default(), &limits(), &Progress::default());
            let time = ms(start);
            total[n] += time;
            first = if n == 0 { time } else { first };
            let of = |kind| {
                let of_kind = found.fences.iter().filter(|c| c.fence.kind.name() == kind);
                of_kind.map(|c| c.fence.threads().len()).sum::<usize>()
            };
            let sure = if found.optimal && found.proof.checked { "" } else { " (?)" };
            row.push(format!("{} + {}{sure}", of("fence"), of("sfence")));
            row.push(found.rounds.to_string());
            row.push(format!("{time:.1}"));
        }
        row.push(format!("{paper:.0}"));
        row.push(format!("{:.0}", paper / first));
        rows.push(row);
    }
    let header = [
        "program",
        "paper",
        "tso",
        "rounds",
        "ms",
        "pso: full + store",
        "rounds",
        "ms",
        "paper ms",
        "times faster",
    ];
    print(&header, &rows);
    println!(
        "\nall eight: tso {:.1} ms, pso {:.1} ms, proofs checked, each fence shown to be needed",
        total[0], total[1]
    );
}
