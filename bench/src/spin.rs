//! Lamport's fast mutex under SC beside the model checker Spin (Debian's package `spin`), if it is installed, and with fences under TSO, with the memory
//! that takes (THESIS16 Fig. 5.6: two other tools run out of 8 GB with five threads).

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use fencewright_engines::explicit::Explicit;
use fencewright_engines::{Confirm, Limits, Progress, Task, check_each};
use fencewright_program::MemoryModel;
use fencewright_report::words::grouped;

use crate::programs::example;
use crate::table::print;
use crate::thesis::word;

/// The program of examples/lamport-fast.fw with as many threads, step by step the same: what is read from shared memory goes through `r`.
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

/// What one run gives: verdict, states, seconds and MiB.
struct Run {
    verdict: String,
    states: u64,
    seconds: f64,
    mib: f64,
}

fn row(what: &str, threads: u32, model: MemoryModel, run: &Run) -> Vec<String> {
    vec![
        what.to_string(),
        threads.to_string(),
        model.name().to_string(),
        run.verdict.clone(),
        grouped(run.states),
        format!("{:.2}", run.seconds),
        format!("{:.0}", run.mib),
    ]
}

/// The explicit engine, with default options.
fn ours(file: &str, threads: u32, model: MemoryModel) -> Run {
    let program = example(file, &[("N", threads.into())]);
    let task = Task::new(&program, model, program.properties.clone());
    let limits = Limits::starting_now(Some(Duration::from_secs(300)), Some(8 << 30), Default::default());
    let start = Instant::now();
    let (engine, progress) = (Explicit::default(), Progress::default());
    let checks = check_each(&engine, &task, &limits, &progress, Confirm::NOTHING, &mut |_, _| {});
    Run {
        verdict: checks.verdicts.iter().map(|v| word(v.verdict())).collect::<Vec<_>>().join(", "),
        states: checks.statistics.states,
        seconds: start.elapsed().as_secs_f64(),
        mib: checks.verdicts.iter().map(|v| v.bytes).max().unwrap_or(0) as f64 / f64::from(1 << 20),
    }
}

/// The number before these words in what Spin prints.
fn number(text: &str, words: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.contains(words))?;
    line[..line.find(words)?].split_whitespace().next_back()?.parse().ok()
}

/// Spin with its default reductions; nothing if it is not installed or something goes wrong.
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
        seconds,
        mib: number(&text, "total actual memory usage")?,
    })
}

/// The table.
pub fn lamport() {
    let mut rows = Vec::new();
    let sc = MemoryModel::Sc;
    let (mine, theirs) = (ours("lamport-fast.fw", 4, sc), spin(4));
    rows.push(row("lamport-fast.fw", 4, sc, &mine));
    rows.extend(theirs.as_ref().map(|run| row("Spin, the same", 4, sc, run)));
    for (threads, model) in [(4, sc), (4, MemoryModel::Tso), (5, sc), (5, MemoryModel::Tso)] {
        rows.push(row(
            "lamport-fast.fenced.fw",
            threads,
            model,
            &ours("lamport-fast.fenced.fw", threads, model),
        ));
    }
    print(&["program", "threads", "model", "verdict", "states", "seconds", "MiB"], &rows);
    match theirs {
        Some(theirs) => println!("\nSpin takes {:.1} times as long", theirs.seconds / mine.seconds),
        None => println!("\nSpin is not installed"),
    }
}
