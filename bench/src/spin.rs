//! Time and memory for Lamport's fast mutex: without fences under SC, compared with the model checker Spin (Debian package `spin`) if it is
//! installed, and with fences under TSO. In THESIS16 Fig. 5.6, two other tools exceed 8 GB with five threads.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use fencewright_engines::explicit::Explicit;
use fencewright_engines::{Confirm, Progress, Task, check_each};
use fencewright_program::MemoryModel;
use fencewright_report::words::grouped;

use crate::measurement::{Measurement, Other, Source};
use crate::programs::{example, input, label};
use crate::run::{self, time};
use crate::stopwatch::{Stopwatch, Took};
use crate::thesis::word;

/// The name of the other model checker.
pub const SPIN: &str = "Spin";

/// The program of examples/lamport-fast.fw in Promela, with the same steps: every read of shared memory is an assignment to `r`.
fn promela(threads: u32) -> String {
    format!(
        "byte b[{size}]; byte x, y; byte inside;
active [{threads}] proctype p() {{
    byte me = _pid + 1; byte r; byte j;
again:
    b[me] = 1; x = me; r = y;
    if :: r != 0 -> b[me] = 0; y == 0; goto again :: else fi;
    y = me; r = x;
    if
    :: r != me ->
        b[me] = 0; j = 1;
        do :: j <= {threads} -> b[j] == 0; j++ :: else -> break od;
        r = y;
        if :: r != me -> y == 0; goto again :: else fi
    :: else
    fi;
    inside++; assert(inside == 1); inside--;
    y = 0; b[me] = 0;
    goto again
}}
",
        size = threads + 1
    )
}

/// The result of a run: verdict, states, seconds and MiB.
struct Run {
    verdict: String,
    states: u64,
    took: Took,
    mib: f64,
}

fn row(what: &str, threads: u32, model: MemoryModel, run: &Run) -> Vec<String> {
    vec![
        what.to_string(),
        threads.to_string(),
        model.name().to_string(),
        run.verdict.clone(),
        grouped(run.states),
        format!("{:.2}", run.took.wall),
        format!("{:.0}", run.mib),
    ]
}

/// Runs the explicit engine with default options, except for the reduction, which is that of the run.
fn ours(run: &run::Run, file: &str, threads: u32, model: MemoryModel) -> Run {
    let program = example(file, &[("N", threads.into())]);
    let task = Task::new(&program, model, program.properties.clone());
    let limits = run.limits(Duration::from_secs(120), Some(8 << 30));
    let start = Stopwatch::start();
    let (engine, progress) = (Explicit { options: run.search() }, Progress::default());
    let checks = check_each(&engine, &task, &limits, &progress, Confirm::NOTHING, &mut |_, _| {});
    Run {
        verdict: checks.verdicts.iter().map(|v| word(v.verdict())).collect::<Vec<_>>().join(", "),
        states: checks.statistics.states,
        took: start.took(),
        mib: checks.verdicts.iter().map(|v| v.work.bytes).max().unwrap_or(0) as f64 / f64::from(1 << 20),
    }
}

/// The number before the given words in the output of Spin; `None` if there is none.
fn number(text: &str, words: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.contains(words))?;
    line[..line.find(words)?].split_whitespace().next_back()?.parse().ok()
}

/// Runs Spin with its default reductions; `None` if it is not installed or fails.
fn spin(threads: u32) -> Option<Run> {
    let folder = tempfile::tempdir().ok()?;
    let run = |program: &Path, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).current_dir(folder.path()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    std::fs::write(folder.path().join("lamport.pml"), promela(threads)).ok()?;
    run(Path::new("spin"), &["-a", "lamport.pml"])?;
    run(Path::new("cc"), &["-O2", "-DSAFETY", "-DMEMLIM=8000", "-o", "pan", "pan.c"])?;
    let start = Instant::now();
    let text = run(&folder.path().join("pan"), &["-m10000000", "-w26"])?;
    let seconds = start.elapsed().as_secs_f64();
    let errors = text.split("errors:").nth(1)?.split_whitespace().next()?;
    Some(Run {
        verdict: if errors == "0" { "safe" } else { "unsafe" }.to_string(),
        states: number(&text, "states, stored")? as u64,
        took: seconds.into(),
        mib: number(&text, "total actual memory usage")?,
    })
}

/// The table of Lamport's mutex.
pub fn lamport(run: &mut run::Run) {
    let mut rows = Vec::new();
    let (sc, tso) = (MemoryModel::Sc, MemoryModel::Tso);
    let runs = [
        ("lamport-fast.fw", 4, sc),
        ("lamport-fast.fenced.fw", 4, sc),
        ("lamport-fast.fenced.fw", 4, tso),
        ("lamport-fast.fenced.fw", 5, sc),
        ("lamport-fast.fenced.fw", 5, tso),
    ];
    let mut beside = if run.quick { "Spin is not run" } else { "Spin is not installed" }.to_string();
    for (file, threads, model) in run.some(&runs, 2) {
        let mine = ours(run, file, threads, model);
        rows.push(row(file, threads, model, &mine));
        let defines = [("N", threads.into())];
        let mut measurement =
            Measurement::new(label(file, &defines), model.name(), mine.verdict.clone(), mine.took)
                .states(mine.states)
                .asked("check", model, input(file, &defines));
        // Spin is run only on the unfenced program under SC, and not in a quick run, because it would take too much time.
        let is_same = file == "lamport-fast.fw" && model == sc && !run.quick;
        if let Some(theirs) = is_same.then(|| spin(threads)).flatten() {
            rows.push(row("Spin, the same", threads, model, &theirs));
            beside = format!("Spin takes {:.1} times as long", theirs.took.wall / mine.took.wall);
            eprintln!("            Spin: {}", time(theirs.took.wall));
            measurement = measurement.compared(Other {
                tool: SPIN.to_string(),
                source: Source::Peer,
                outcome: theirs.verdict,
                seconds: Some(theirs.took.wall),
                processor: None,
                at_least: false,
            });
        }
        run.record(measurement);
    }
    run.table(&["program", "threads", "model", "verdict", "states", "seconds", "MiB"], &rows);
    run.say(&beside);
}
