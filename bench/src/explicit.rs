//! The explicit engine: speed, memory per state, scaling with cores.

use std::time::Duration;

use fencewright_engines::explicit::{Explicit, Options, Order, Reduction};
use fencewright_engines::{Checks, Confirm, Progress, Task, Verdict, Work, check_each};
use fencewright_program::{MemoryModel, Program};
use fencewright_report::words::grouped;

use crate::measurement::Measurement;
use crate::programs::{example, input, label};
use crate::run::Run;
use crate::stopwatch::{Stopwatch, Took};

fn measure(run: &Run, program: &Program, model: MemoryModel, options: &Options, time: u64) -> (Checks, Took) {
    let task = Task::new(program, model, program.properties.clone());
    let limits = run.limits(Duration::from_secs(time), None);
    let start = Stopwatch::start();
    let engine = Explicit { options: options.clone() };
    let checks = check_each(&engine, &task, &limits, &Progress::default(), Confirm::NOTHING, &mut |_, _| {});
    (checks, start.took())
}

fn verdict(checks: &Checks) -> &'static str {
    let is = |wanted: fn(&Verdict) -> bool| checks.verdicts.iter().any(|checked| wanted(checked.verdict()));
    if is(|v| matches!(v, Verdict::Unsafe)) {
        "unsafe"
    } else if is(|v| matches!(v, Verdict::Unknown(_))) {
        "unknown"
    } else {
        "safe"
    }
}

fn bytes_per_state(statistics: &Work) -> f64 {
    statistics.state_bytes() as f64 / statistics.states.max(1) as f64
}

/// States per second and bytes per state, without and with reductions, on one core and on all cores.
pub fn throughput(run: &mut Run) {
    let plain = Options {
        order: Order::BreadthFirst,
        live_variables: true,
        reduction: Reduction::None,
        workers: 1,
        ..Options::default()
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let reduced = Options { reduction: Reduction::Local, ..plain.clone() };
    let suited = Options { reduction: Reduction::Suited, ..plain.clone() };
    let configurations = [
        ("no reduction", Options { live_variables: false, ..plain.clone() }),
        ("live variables", plain.clone()),
        ("+ local first", reduced.clone()),
        ("+ suited", suited),
        ("depth first", Options { order: Order::DepthFirst, ..plain.clone() }),
        ("no reduction, all cores", Options { live_variables: false, workers: cores, ..plain }),
        ("+ local first, all cores", Options { workers: cores, ..reduced }),
    ];
    let programs = [
        ("peterson.fenced.fw", vec![], MemoryModel::Tso),
        ("lamport-fast.fenced.fw", vec![("N", 3)], MemoryModel::Tso),
        ("lamport-fast.fw", vec![("N", 4)], MemoryModel::Sc),
    ];
    let mut rows = Vec::new();
    for (file, defines, model) in run.some(&programs, 1) {
        let program = example(file, &defines);
        let mut base = None;
        for (name, options) in &configurations {
            let (checks, took) = measure(run, &program, model, options, 60);
            let seconds = took.wall;
            let rate = checks.statistics.states as f64 / seconds;
            let base = *base.get_or_insert(seconds);
            let setting = format!("{} {name}", model.name());
            run.record(
                Measurement::new(label(file, &defines), setting, verdict(&checks), took)
                    .states(checks.statistics.states),
            );
            rows.push(vec![
                format!("{} {}", label(file, &defines), model.name()),
                name.to_string(),
                verdict(&checks).to_string(),
                grouped(checks.statistics.states),
                format!("{seconds:.3}"),
                grouped(rate as u64),
                format!("{:.1}", bytes_per_state(&checks.statistics)),
                format!("{:.2}", base / seconds),
            ]);
        }
    }
    run.table(
        &["program", "search", "verdict", "states", "seconds", "states/s", "bytes/state", "speed-up in time"],
        &rows,
    );
}

/// The scaling families, with default options, except for the reduction, which is that of the run.
pub fn families(run: &mut Run) {
    let mut rows = Vec::new();
    for (file, model, sizes) in [
        ("branching-dekker.fw", MemoryModel::Tso, vec![10, 50, 100, 200]),
        ("unwinding-dekker.fw", MemoryModel::Tso, vec![1, 2, 10, 20, 50]),
        ("lamport-fast.fw", MemoryModel::Tso, vec![2, 3, 4]),
        ("indexer.fw", MemoryModel::Sc, vec![2, 4, 6, 8]),
    ] {
        for n in run.some(&sizes, 2) {
            let program = example(file, &[("N", n)]);
            let (checks, took) = measure(run, &program, model, &run.search(), 20);
            let seconds = took.wall;
            run.record(
                Measurement::new(label(file, &[("N", n)]), model.name(), verdict(&checks), took)
                    .states(checks.statistics.states)
                    .size(file, n)
                    .asked("check", model, input(file, &[("N", n)])),
            );
            rows.push(vec![
                file.to_string(),
                n.to_string(),
                model.name().to_string(),
                verdict(&checks).to_string(),
                grouped(checks.statistics.states),
                format!("{seconds:.3}"),
            ]);
        }
    }
    run.table(&["program", "N", "model", "verdict", "states", "seconds"], &rows);
}
