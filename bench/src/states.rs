//! Proofs by sets of states: what checking them takes beside finding them, in memory and on disk.

use std::time::Duration;

use fencewright_engines::explicit::Explicit;
use fencewright_engines::{Confirm, Limits, Progress, Task, check_each};
use fencewright_program::{MemoryModel, Program};
use fencewright_report::words::grouped;
use fencewright_testing::corpora::corpora;

use crate::programs::{example, program_at};
use crate::table::print;

/// What one proof takes.
fn row(name: String, program: &Program, model: MemoryModel) -> Vec<String> {
    let task = Task::new(program, model, program.properties.clone());
    let limits = Limits::starting_now(Some(Duration::from_secs(300)), None, Default::default());
    let confirm = Confirm { exploration: None, ..Confirm::default() };
    let (engine, progress) = (Explicit::default(), Progress::default());
    let checks = check_each(&engine, &task, &limits, &progress, confirm, &mut |_, _| {});
    let statistics = &checks.statistics;
    let states = statistics.states.max(1) as f64;
    let search = checks.verdicts.iter().map(|v| v.seconds).fold(0.0, f64::max);
    // One check answers for all properties.
    let check: f64 = checks.verdicts.iter().map(|v| v.check_seconds).sum();
    let mut text = Vec::new();
    if let Some(certificate) = checks.verdicts.iter().find_map(|v| v.certificate()) {
        certificate.write(&mut text).expect("it is written to memory");
    }
    let checked = checks.verdicts.iter().all(|v| v.checked() == Some(true));
    vec![
        name,
        model.name().to_string(),
        grouped(statistics.states),
        format!("{search:.3}"),
        format!("{check:.3}"),
        format!("{:.2}", check / search),
        if checked { "checked" } else { "not checked" }.to_string(),
        format!("{:.1}", statistics.state_bytes as f64 / states),
        format!("{:.2}", text.len() as f64 / states),
    ]
}

/// Searches and checks, on all cores.
pub fn states() {
    let mut rows = Vec::new();
    for (file, defines, model) in [
        ("peterson.fenced.fw", vec![], MemoryModel::Tso),
        ("lamport-fast.fw", vec![("N", 4)], MemoryModel::Sc),
        ("lamport-fast.fenced.fw", vec![("N", 3)], MemoryModel::Tso),
    ] {
        rows.push(row(label(file, &defines), &example(file, &defines), model));
    }
    if let Some(folder) = corpora("algorithms").map(|corpora| corpora.join("algorithms")) {
        for (file, defines, model) in [
            ("eisenberg-mcguire.fw", vec![("F", 1), ("N", 3)], MemoryModel::Tso),
            ("qspinlock.fw", vec![("N", 3)], MemoryModel::Tso),
            ("filter.fw", vec![("F", 2), ("N", 3)], MemoryModel::Tso),
            ("filter.fw", vec![("F", 2), ("N", 4)], MemoryModel::Sc),
        ] {
            rows.push(row(label(file, &defines), &program_at(&folder.join(file), &defines), model));
        }
    }
    let header = [
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
    print(&header, &rows);
}

fn label(file: &str, defines: &[(&str, i64)]) -> String {
    defines.iter().fold(file.to_string(), |label, (name, value)| format!("{label} {name}={value}"))
}
