//! FENCES12 Table 1: proofs for unbounded buffers and integers, with zones and with predicates from interpolants; and the fences, found from
//! the programs without any.

use std::time::{Duration, Instant};

use fencewright_engines::auto::Auto;
use fencewright_engines::cegar::{Cegar, Options};
use fencewright_engines::domain::DomainName;
use fencewright_engines::{Checked, Confirm, Limits, Progress, Task, Verdict, check, check_each};
use fencewright_fences::{Goal, Safety, synthesise};
use fencewright_program::{Action, MemoryModel, Program};
use fencewright_report::words::grouped;

use crate::programs::{example, lines, placed};
use crate::table::print;
use crate::thesis::{limits, ms};

/// Program, and what the paper reports: seconds, fences in each process, predicates.
const TABLE: [(&str, f64, usize, usize); 8] = [
    ("burns", 0.02, 1, 1),
    ("simple-dekker", 0.04, 1, 1),
    ("dekker", 0.06, 1, 1),
    ("dijkstra", 0.35, 1, 4),
    ("bakery", 154.0, 2, 17),
    ("lamport-fast", 2.0, 2, 4),
    ("peterson", 2.0, 1, 6),
    ("ticket-lock", 2.0, 0, 2),
];

fn prove(program: &Program, domain: DomainName) -> (Vec<Checked>, f64) {
    let task = Task::new(program, MemoryModel::Tso, program.properties.clone());
    let limits = Limits::starting_now(Some(Duration::from_secs(60)), None, Default::default());
    let engine = Cegar { options: Options { domain, ..Options::default() } };
    let start = Instant::now();
    let results = check(&engine, &task, &limits, &Progress::default(), Confirm::default());
    (results, start.elapsed().as_secs_f64())
}

fn word(results: &[Checked]) -> &'static str {
    let is = |wanted: fn(&Verdict) -> bool| results.iter().any(|r| wanted(r.verdict()));
    if is(|v| matches!(v, Verdict::Unsafe)) {
        "unsafe"
    } else if is(|v| matches!(v, Verdict::Unknown(_))) {
        "unknown"
    } else if results.iter().all(|r| r.checked() == Some(true)) {
        "proved"
    } else {
        "not checked"
    }
}

/// The table: time to prove and to check the proof, beside the paper's time to find the fences.
pub fn table_1() {
    let mut rows = Vec::new();
    let mut total = [0.0, 0.0];
    for (name, seconds, fences, predicates) in TABLE {
        let file = if fences == 0 { format!("{name}.fw") } else { format!("{name}.fenced.fw") };
        let program = example(&file, &[]);
        let is_fence = |e: &&fencewright_program::Edge| e.action == Action::Fence;
        let ours = program.threads.iter().map(|t| t.edges.iter().filter(is_fence).count()).max().unwrap_or(0);
        let (zones, zone_seconds) = prove(&program, DomainName::Zones);
        let (found, predicate_seconds) = prove(&program, DomainName::Predicates);
        let task = Task::new(&program, MemoryModel::Tso, program.properties.clone());
        let engine = Cegar { options: Options { domain: DomainName::Predicates, ..Options::default() } };
        let run = check_each(
            &engine,
            &task,
            &Limits::default(),
            &Progress::default(),
            Confirm::NOTHING,
            &mut |_, _| {},
        );
        let count = run.statistics.predicates;
        total[0] += zone_seconds;
        total[1] += predicate_seconds;
        rows.push(vec![
            file.clone(),
            lines(&file).to_string(),
            ours.to_string(),
            fences.to_string(),
            word(&zones).to_string(),
            grouped(zones.first().map_or(0, |r| r.states)),
            format!("{:.1}", zone_seconds * 1e3),
            word(&found).to_string(),
            format!("{:.1}", predicate_seconds * 1e3),
            count.to_string(),
            predicates.to_string(),
            format!("{:.0}", seconds * 1e3),
            format!("{:.0}", seconds / zone_seconds),
        ]);
    }
    let header = [
        "program",
        "lines",
        "fences",
        "paper",
        "zones",
        "states",
        "ms",
        "predicates",
        "ms",
        "templates",
        "paper",
        "paper ms",
        "times faster",
    ];
    print(&header, &rows);
    println!(
        "\nall eight: zones {:.1} ms, predicates {:.1} ms, proofs checked",
        total[0] * 1e3,
        total[1] * 1e3
    );
}

/// More threads: the ticket lock and the bakery.
pub fn threads() {
    let mut rows = Vec::new();
    for (file, n) in [
        ("ticket-lock.fw", 2),
        ("ticket-lock.fw", 3),
        ("ticket-lock.fw", 4),
        ("bakery.fenced.fw", 2),
        ("bakery.fenced.fw", 3),
    ] {
        let (results, seconds) = prove(&example(file, &[("N", n)]), DomainName::Zones);
        let checking: f64 = results.iter().map(|r| r.check_seconds).sum();
        rows.push(vec![
            file.to_string(),
            n.to_string(),
            word(&results).to_string(),
            grouped(results.first().map_or(0, |r| r.states)),
            format!("{seconds:.3}"),
            format!("{checking:.3}"),
        ]);
    }
    print(&["program", "threads", "zones", "states", "seconds", "of it checking"], &rows);
}

/// FENCES12 Table 1: the cheapest fences for the programs without any, proved sufficient, each shown to be needed.
pub fn fences() {
    let (mut rows, mut total) = (Vec::new(), [0.0, 0.0]);
    for (name, paper, fences, _) in TABLE {
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
            let found = synthesise(
                &placed,
                goal,
                &fencewright_fences::Options::default(),
                &limits(),
                &Progress::default(),
            );
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
        row.push(format!("{:.0}", paper * 1e3));
        row.push(format!("{:.0}", paper * 1e3 / first));
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
