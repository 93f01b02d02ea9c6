//! The explicit engine: how fast, how small, how it scales.

use std::time::{Duration, Instant};

use fencewright_engines::explicit::{Explicit, Options, Order, Reduction};
use fencewright_engines::{Checks, Confirm, Limits, Progress, Statistics, Task, Verdict, check_each};
use fencewright_program::{MemoryModel, Program};
use fencewright_report::words::grouped;

use crate::programs::example;
use crate::table::print;

fn measure(program: &Program, model: MemoryModel, options: &Options, limit: Duration) -> (Checks, f64) {
    let task = Task::new(program, model, program.properties.clone());
    let limits = Limits::starting_now(Some(limit), None, Default::default());
    let start = Instant::now();
    let engine = Explicit { options: options.clone() };
    let checks = check_each(&engine, &task, &limits, &Progress::default(), Confirm::NOTHING, &mut |_, _| {});
    (checks, start.elapsed().as_secs_f64())
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

fn bytes_per_state(statistics: &Statistics) -> f64 {
    statistics.state_bytes as f64 / statistics.states.max(1) as f64
}

/// States per second and bytes per state, without and with reductions, on one core and on all.
pub fn throughput() {
    let plain = Options {
        order: Order::BreadthFirst,
        live_variables: true,
        reduction: Reduction::None,
        workers: 1,
        ..Options::default()
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let reduced = Options { reduction: Reduction::Local, ..plain.clone() };
    let configurations = [
        ("no reduction", Options { live_variables: false, ..plain.clone() }),
        ("live variables", plain.clone()),
        ("+ local first", reduced.clone()),
        ("depth first", Options { order: Order::DepthFirst, ..plain.clone() }),
        ("no reduction, all cores", Options { live_variables: false, workers: cores, ..plain }),
        ("+ local first, all cores", Options { workers: cores, ..reduced }),
    ];
    let programs = [
        ("lamport-fast.fw", vec![("N", 4)], MemoryModel::Sc),
        ("lamport-fast.fenced.fw", vec![("N", 3)], MemoryModel::Tso),
        ("peterson.fenced.fw", vec![], MemoryModel::Tso),
    ];
    let mut rows = Vec::new();
    for (file, defines, model) in programs {
        let program = example(file, &defines);
        let mut base = None;
        for (name, options) in &configurations {
            let (checks, seconds) = measure(&program, model, options, Duration::from_secs(120));
            let rate = checks.statistics.states as f64 / seconds;
            let base = *base.get_or_insert(seconds);
            rows.push(vec![
                format!(
                    "{file} {} {}",
                    defines.iter().map(|(n, v)| format!("{n}={v}")).collect::<String>(),
                    model.name()
                ),
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
    print(
        &["program", "search", "verdict", "states", "seconds", "states/s", "bytes/state", "speed-up in time"],
        &rows,
    );
}

/// The scaling families, with default options.
pub fn families() {
    let mut rows = Vec::new();
    let mut row = |file: &str, n: i64, model: MemoryModel| {
        let program = example(file, &[("N", n)]);
        let (checks, seconds) = measure(&program, model, &Options::default(), Duration::from_secs(60));
        rows.push(vec![
            file.to_string(),
            n.to_string(),
            model.name().to_string(),
            verdict(&checks).to_string(),
            grouped(checks.statistics.states),
            format!("{seconds:.3}"),
        ]);
    };
    for n in [10, 50, 100, 200] {
        row("branching-dekker.fw", n, MemoryModel::Tso);
    }
    for n in [1, 2, 10, 20, 50] {
        row("unwinding-dekker.fw", n, MemoryModel::Tso);
    }
    for n in [2, 3, 4] {
        row("lamport-fast.fw", n, MemoryModel::Tso);
    }
    for n in [2, 4, 6, 8] {
        row("indexer.fw", n, MemoryModel::Sc);
    }
    print(&["program", "N", "model", "verdict", "states", "seconds"], &rows);
}
