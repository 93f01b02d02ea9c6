//! Proofs by sets of states: the cost of checking them beside the cost of finding them, in memory and on disk.

use std::time::Duration;

use fencewright_engines::explicit::Explicit;
use fencewright_engines::{Confirm, Progress, Task, check_each};
use fencewright_program::{MemoryModel, Program};
use fencewright_report::words::grouped;

use crate::measurement::Measurement;
use crate::programs::{corpora_program, example, label};
use crate::robustness::not_measured;
use crate::run::Run;

/// The row of one proof.
fn row(run: &mut Run, name: String, program: &Program, model: MemoryModel) -> Vec<String> {
    let task = Task::new(program, model, program.properties.clone());
    let limits = run.limits(Duration::from_secs(60), None);
    let confirm = Confirm { exploration: None, ..Confirm::default() };
    let (engine, progress) = (Explicit { options: run.search() }, Progress::default());
    let checks = check_each(&engine, &task, &limits, &progress, confirm, &mut |_, _| {});
    let statistics = &checks.statistics;
    let states = statistics.states.max(1) as f64;
    let search = checks.verdicts.iter().map(|v| v.seconds).fold(0.0, f64::max);
    // All properties share one check, and only the first of them has its time. So the sum is the time of that check.
    let check: f64 = checks.verdicts.iter().map(|v| v.check_seconds).sum();
    let mut text = Vec::new();
    if let Some(certificate) = checks.verdicts.iter().find_map(|v| v.certificate()) {
        certificate.write(&mut text).expect("it is written to memory");
    }
    let checked = checks.verdicts.iter().all(|v| v.checked() == Some(true));
    let outcome = if checked { "checked" } else { "unknown: not checked" };
    let setting = |what: &str| format!("{}, {what}", model.name());
    run.record(Measurement::new(name.clone(), setting("search"), outcome, search).states(statistics.states));
    run.record(Measurement::new(name.clone(), setting("check"), outcome, check).states(statistics.states));
    vec![
        name,
        model.name().to_string(),
        grouped(statistics.states),
        format!("{search:.3}"),
        format!("{check:.3}"),
        format!("{:.2}", check / search),
        if checked { "checked" } else { "not checked" }.to_string(),
        format!("{:.1}", statistics.state_bytes() as f64 / states),
        format!("{:.2}", text.len() as f64 / states),
    ]
}

const HEADER: [&str; 9] = [
    "program",
    "model",
    "states",
    "search s",
    "check s",
    "ratio",
    "",
    "bytes/state in memory",
    "bytes/state on disk",
];

/// Finds and checks proofs, on all cores.
pub fn states(run: &mut Run) {
    let mut rows = Vec::new();
    let examples = [
        ("peterson.fenced.fw", vec![], MemoryModel::Tso),
        ("lamport-fast.fw", vec![("N", 4)], MemoryModel::Sc),
        ("lamport-fast.fenced.fw", vec![("N", 3)], MemoryModel::Tso),
    ];
    for (file, defines, model) in run.some(&examples, 1) {
        rows.push(row(run, label(file, &defines), &example(file, &defines), model));
    }
    let algorithms = [
        ("qspinlock.fw", vec![("N", 3)], MemoryModel::Tso),
        ("eisenberg-mcguire.fw", vec![("F", 1), ("N", 3)], MemoryModel::Tso),
        ("filter.fw", vec![("F", 2), ("N", 3)], MemoryModel::Tso),
        ("filter.fw", vec![("F", 2), ("N", 4)], MemoryModel::Sc),
    ];
    for (file, defines, model) in run.some(&algorithms, 1) {
        rows.push(match corpora_program("algorithms", file, &defines) {
            Ok(program) => row(run, label(file, &defines), &program, model),
            Err(why) => not_measured(&label(file, &defines), &why, HEADER.len()),
        });
    }
    run.table(&HEADER, &rows);
}
