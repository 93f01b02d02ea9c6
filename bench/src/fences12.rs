//! FENCES12 Table 1: proofs for unbounded buffers and integers, with zones and with predicates from interpolants; and fence synthesis for
//! the unfenced programs.

use std::time::Duration;

use fencewright_engines::auto::Auto;
use fencewright_engines::cegar::{Cegar, Options};
use fencewright_engines::domain::DomainName;
use fencewright_engines::{Checked, Confirm, Progress, Task, Verdict, check, check_each};
use fencewright_fences::{Goal, Safety, synthesise};
use fencewright_program::{Action, MemoryModel, Program};
use fencewright_report::words::grouped;

use crate::measurement::Measurement;
use crate::programs::{example, input, label, lines, placed};
use crate::run::Run;
use crate::stopwatch::{Stopwatch, Took};
use crate::thesis::limits;

/// The tool of the paper; it has no name.
pub const FENCES12: &str = "FENCES12";

/// The programs with the numbers of the paper: seconds, fences per process, predicates.
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

fn prove(run: &Run, program: &Program, domain: DomainName) -> (Vec<Checked>, Took) {
    let task = Task::new(program, MemoryModel::Tso, program.properties.clone());
    let limits = run.limits(Duration::from_secs(60), None);
    let engine = Cegar { options: Options { domain, ..Options::default() } };
    let start = Stopwatch::start();
    let results = check(&engine, &task, &limits, &Progress::default(), Confirm::default());
    (results, start.took())
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
        "unknown: not checked"
    }
}

/// The table: time to prove and to check the proof, beside the paper's time to find the fences.
pub fn table_1(run: &mut Run) {
    let mut rows = Vec::new();
    let (mut total, mut proved) = ([0.0, 0.0], [0, 0]);
    for (name, seconds, fences, predicates) in TABLE {
        let file = if fences == 0 { format!("{name}.fw") } else { format!("{name}.fenced.fw") };
        let program = example(&file, &[]);
        let is_fence = |e: &&fencewright_program::Edge| e.action == Action::Fence;
        let ours = program.threads.iter().map(|t| t.edges.iter().filter(is_fence).count()).max().unwrap_or(0);
        let (zones, with_zones) = prove(run, &program, DomainName::Zones);
        let (found, with_predicates) = prove(run, &program, DomainName::Predicates);
        for (domain, results, took) in
            [("zones", &zones, with_zones), ("predicates", &found, with_predicates)]
        {
            run.record(
                Measurement::new(file.clone(), format!("tso {domain}"), word(results), took)
                    .states(results.first().map_or(0, |r| r.work.states))
                    .published(FENCES12, seconds)
                    .asked("check", MemoryModel::Tso, input(&file, &[])),
            );
        }
        let task = Task::new(&program, MemoryModel::Tso, program.properties.clone());
        let engine = Cegar { options: Options { domain: DomainName::Predicates, ..Options::default() } };
        let counted =
            check_each(&engine, &task, &limits(run), &Progress::default(), Confirm::NOTHING, &mut |_, _| {});
        let count = counted.statistics.predicates();
        let (zone_seconds, predicate_seconds) = (with_zones.wall, with_predicates.wall);
        proved[0] += usize::from(word(&zones) == "proved");
        proved[1] += usize::from(word(&found) == "proved");
        total[0] += zone_seconds;
        total[1] += predicate_seconds;
        rows.push(vec![
            file.clone(),
            lines(&file).to_string(),
            ours.to_string(),
            fences.to_string(),
            word(&zones).to_string(),
            grouped(zones.first().map_or(0, |r| r.work.states)),
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
    run.table(&header, &rows);
    run.say(&format!(
        "all eight: zones {:.1} ms, {} proofs checked; predicates {:.1} ms, {} proofs checked. The paper counts 9, 10, 22, 22, 20, 32, 12 and 16 instructions.",
        total[0] * 1e3,
        proved[0],
        total[1] * 1e3,
        proved[1]
    ));
}

/// Proofs for more threads, which the paper does not have: the ticket lock and the bakery.
pub fn threads(run: &mut Run) {
    let mut rows = Vec::new();
    let programs = [
        ("ticket-lock.fw", 2),
        ("ticket-lock.fw", 3),
        ("bakery.fenced.fw", 2),
        ("ticket-lock.fw", 4),
        ("bakery.fenced.fw", 3),
    ];
    for (file, n) in run.some(&programs, 3) {
        let (results, took) = prove(run, &example(file, &[("N", n)]), DomainName::Zones);
        run.record(
            Measurement::new(label(file, &[("N", n)]), "tso zones", word(&results), took)
                .states(results.first().map_or(0, |r| r.work.states))
                .size(file, n)
                .asked("check", MemoryModel::Tso, input(file, &[("N", n)])),
        );
        let checking: f64 = results.iter().map(|r| r.check_seconds).sum();
        rows.push(vec![
            file.to_string(),
            n.to_string(),
            word(&results).to_string(),
            grouped(results.first().map_or(0, |r| r.work.states)),
            format!("{:.3}", took.wall),
            format!("{checking:.3}"),
        ]);
    }
    run.table(&["program", "threads", "zones", "states", "seconds", "of it checking"], &rows);
}

/// FENCES12 Table 1: the cheapest fences for the unfenced programs, proved sufficient, and each shown to be necessary.
pub fn fences(run: &mut Run) {
    let (mut rows, mut total, mut unsure) = (Vec::new(), [0.0, 0.0], 0);
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
            let start = Stopwatch::start();
            let found = synthesise(
                &placed,
                goal,
                &fencewright_fences::Options::default(),
                &limits(run),
                &Progress::default(),
            );
            let took = start.took();
            let time = took.ms();
            total[n] += time;
            first = if n == 0 { time } else { first };
            let of = |kind| {
                let of_kind = found.fences.iter().filter(|c| c.fence.kind.name() == kind);
                of_kind.map(|c| c.fence.threads().len()).sum::<usize>()
            };
            let sure = if found.optimal && found.proof.checked { "" } else { " (?)" };
            let sets = format!("{} + {}{sure}", of("fence"), of("sfence"));
            unsure += usize::from(!sure.is_empty());
            let outcome = if sure.is_empty() { sets.clone() } else { format!("unknown: {sets}") };
            let measurement = Measurement::new(name, model.name(), outcome, took);
            let measurement = measurement.asked("fences", model, input(&format!("{name}.fw"), &[]));
            run.record(if n == 0 { measurement.published(FENCES12, paper) } else { measurement });
            row.push(sets);
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
    run.table(&header, &rows);
    let sure = match unsure {
        0 => "proofs checked, each fence shown to be needed".to_string(),
        some => format!("{some} of 16 not proved, or not known to be the cheapest"),
    };
    run.say(&format!("all eight: tso {:.1} ms, pso {:.1} ms, {sure}", total[0], total[1]));
}
