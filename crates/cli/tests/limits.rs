//! Limits are promises: `--timeout` and `--memory` hold for programs that are hard in one way each. The whole table is
//! `cargo run --release -p fencewright-bench limits`; what is here went far beyond its limits once.

mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::*;
use fencewright_testing::hard;
use fencewright_testing::measure::measure;

/// Other processes may keep this one waiting, so what counts is how long it computes, on two cores.
const LATE: Duration = Duration::from_secs(2);
const MIB: u64 = 1 << 20;

/// Runs the command on a program with these limits, and checks that it keeps them and ends with an answer.
fn keeps_limits(text: &str, arguments: &[&str], milliseconds: u64, mib: u64) {
    let files = Files::new(&[("hard.fw", text)]);
    keeps_limits_on(Path::new(&files.text("hard.fw")), arguments, milliseconds, mib);
}

fn keeps_limits_on(file: &Path, arguments: &[&str], milliseconds: u64, mib: u64) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencewright"));
    command.args(arguments).args(["--timeout", &format!("{milliseconds}ms"), "--memory", &format!("{mib}M")]);
    let measured = measure(command.arg(file), Duration::from_secs(120)).expect("the command runs");
    let time = Duration::from_millis(milliseconds);
    assert!(measured.computed < 2 * time + LATE, "{arguments:?} computed for {:?}", measured.computed);
    assert!(measured.peak < (mib + 64) * MIB, "{arguments:?} took {} MiB", measured.peak / MIB);
    assert!(
        measured.status.code().is_some_and(|code| (0..=3).contains(&code)),
        "{arguments:?}: {measured:?}"
    );
}

#[test]
fn very_many_registers() {
    let text = hard::registers(60_000);
    keeps_limits(&text, &["check"], 500, 128);
    keeps_limits(&text, &["check", "--engine", "explicit"], 500, 128);
    keeps_limits(&text, &["robust"], 500, 128);
}

#[test]
fn very_many_registers_that_are_live_together() {
    let text = hard::live_registers(3_000);
    keeps_limits(&text, &["check"], 500, 64);
    keeps_limits(&text, &["check", "--engine", "explicit"], 500, 64);
    keeps_limits(&text, &["check", "--engine", "lazy"], 500, 64);
    keeps_limits(&text, &["check", "--engine", "contexts"], 500, 64);
    keeps_limits(&text, &["check", "--engine", "buffers"], 500, 64);
}

#[test]
fn very_long_threads() {
    let text = hard::long_threads(10_000);
    keeps_limits(&text, &["show", "--extended"], 200, 128);
    keeps_limits(&text, &["robust"], 200, 128);
    keeps_limits(&text, &["check"], 1000, 64);
}

/// What has grown is named in one pass, however many cells and lines there are.
#[test]
fn very_many_cells_that_grow() {
    let text = hard::long_array(4_000, 100_000);
    keeps_limits(&text, &["check", "--engine", "explicit", "--reduction", "sleep"], 2000, 1024);
}

#[test]
fn properties_with_very_many_cases() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/treiber-stack.fw");
    keeps_limits_on(&file, &["check", "-D", "N=64"], 500, 128);
    keeps_limits_on(&file, &["check", "-D", "N=64", "--engine", "contexts"], 500, 128);
}

#[test]
fn very_many_fences() {
    let text = hard::jumps(2_000);
    keeps_limits(&text, &["fences", "--goal", "robustness"], 3000, 64);
}

#[test]
fn very_many_properties() {
    let text = hard::properties(2_000);
    keeps_limits(&text, &["check"], 200, 64);
    keeps_limits(&text, &["check", "--engine", "cegar"], 200, 64);
}

#[test]
fn abstractions_with_very_many_states() {
    let text = hard::queue(3, 4);
    keeps_limits(&text, &["check", "--engine", "cegar"], 4000, 64);
    keeps_limits(&text, &["check", "--engine", "cegar", "--domain", "predicates"], 4000, 64);
}

/// A long execution is replayed without keeping all of its states.
#[test]
fn a_long_execution() {
    let files = Files::new(&[("long.fw", &hard::long_execution(60_000))]);
    let path = files.text("long.fw");
    let arguments = ["check", "--engine", "explicit", "--timeout", "none", "--memory", "256M", &path];
    let outcome = run(arguments);
    assert_eq!(outcome.status, 1, "{outcome:?}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_fencewright"));
    let measured = measure(command.args(arguments), Duration::from_secs(120)).expect("the command runs");
    assert!(measured.peak < 256 * MIB, "{} MiB", measured.peak / MIB);
}

/// Engines that run side by side share what the user allows; messages name the whole.
#[test]
fn messages_name_the_limits_of_the_user() {
    let files = Files::new(&[("counters.fw", &hard::counters(3))]);
    let path = files.text("counters.fw");
    let outcome = run(["check", "--timeout", "none", "--memory", "24M", &path]);
    assert!(outcome.stdout.contains("no answer within 24 MiB of memory"), "{outcome:?}");
    let outcome = run(["check", "--timeout", "700ms", &path]);
    assert!(outcome.stdout.contains("no answer within 0.700 s"), "{outcome:?}");
}

/// Ctrl-C is noticed soon whatever the engines are doing.
#[cfg(unix)]
#[test]
fn an_interrupt_ends_every_engine() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/treiber-stack.fw");
    let child = command().args(["check", "-D", "N=64"]).arg(&file).spawn().expect("the command starts");
    std::thread::sleep(Duration::from_millis(1500));
    let start = Instant::now();
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.expect("kill is there").success());
    let outcome = finish(child);
    assert_eq!(outcome.status, 3, "{outcome:?}");
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

/// Where the system starts fewer threads than `--jobs` asks for, that is told, or fewer work.
#[test]
fn more_jobs_than_the_system_starts() {
    let counters = "shared x, y, z;\nthread p { var i; while i < 60 { x = i; i = i + 1; } }\n\
                    thread q { var i; while i < 60 { y = i; i = i + 1; } }\n\
                    thread r { var i; while i < 60 { z = i; i = i + 1; } }\nforbid f: x == 99;\n";
    let files = Files::new(&[("counters.fw", counters)]);
    for engine in ["auto", "explicit"] {
        let mut shell = Command::new("sh");
        let script = "ulimit -v 1500000; exec \"$0\" check --model tso --timeout 20s --jobs 256 --engine \"$1\" \"$2\"";
        shell.args(["-c", script, env!("CARGO_BIN_EXE_fencewright"), engine, &files.text("counters.fw")]);
        shell.stdout(Stdio::piped()).stderr(Stdio::piped());
        // That it does not panic is part of this.
        finish(shell.spawn().expect("there is a shell"));
    }
}
