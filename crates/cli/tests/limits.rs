//! Limits are promises: `--timeout` and `--memory` hold for programs each of which is hard in a different way. The programs here once far exceeded
//! their limits; `cargo run --profile dist -p fencewright-bench limits` measures all programs of `fencewright_testing::hard`.

mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::*;
use fencewright_testing::hard;
use fencewright_testing::measure::measure;

/// Maximum processor time beyond the limit, on two cores. Processor time is measured, because other processes may keep this one waiting.
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

/// The growing cells are listed in one pass, even if there are many cells and many lines.
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

/// The formula of `termination` names every source position where a thread waits, with all locations of the thread at that position.
#[test]
fn properties_that_name_very_many_locations() {
    let files = Files::new(&[("stack.c", &stack(200))]);
    let file = files.text("stack.c");
    keeps_limits_on(Path::new(&file), &["check", "--property", "termination"], 2000, 1024);
}

/// A thread that pushes this many objects, and a thread that pops and frees them.
fn stack(objects: usize) -> String {
    let push = "{ struct s *s = malloc(sizeof *s); s->a = 1; s->n = head; head = s; }\n".repeat(objects);
    let pop = "{ struct s *s = head; if (s) { head = s->n; free(s); } }\n".repeat(objects);
    let create = "pthread_create(&a, 0, pushes, 0); pthread_create(&b, 0, pops, 0);";
    format!(
        "#include <pthread.h>\n#include <stdlib.h>\nstruct s {{ int a; struct s *n; }};\nstruct s *_Atomic head;\n\
         void *pushes(void *p) {{\n{push}return 0; }}\nvoid *pops(void *p) {{\n{pop}return 0; }}\n\
         int main(void) {{ pthread_t a, b; {create} pthread_join(a, 0); pthread_join(b, 0); return 0; }}\n"
    )
}

/// Initial values are translated in parts, with checks of the limits in between.
#[test]
fn c_programs_with_very_many_initial_values() {
    let values = "1, ".repeat(700_000);
    let text = format!("int a[] = {{ {values} }};\nint main(void) {{ return a[3]; }}\n");
    let files = Files::new(&[("list.c", &text)]);
    keeps_limits_on(Path::new(&files.text("list.c")), &["check"], 100, 512);
}

/// With `FENCEWRIGHT_GAPS`, a line is printed for each long stretch without a check of the limits; without it there is no such line.
#[test]
fn gaps_are_told_if_somebody_asks() {
    let files = Files::new(&[("counters.fw", &hard::counters(2))]);
    let path = files.text("counters.fw");
    let arguments = ["check", "--engine", "explicit", "--timeout", "300ms", &path];
    let told = |milliseconds: Option<&str>| {
        let mut asked = command();
        milliseconds.into_iter().for_each(|most| _ = asked.env("FENCEWRIGHT_GAPS", most));
        let outcome = finish(asked.args(arguments).spawn().expect("the command starts"));
        assert_eq!(outcome.status, 3, "{outcome:?}");
        let gaps = outcome.stderr.lines().filter(|line| line.starts_with("gap\t"));
        gaps.map(|line| line.split('\t').map(str::to_owned).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    let gaps = told(Some("0"));
    assert!(!gaps.is_empty(), "every stretch is longer than no time at all");
    assert!(gaps.iter().all(|gap| gap.len() == 4 && gap[1].parse::<u64>().is_ok()), "{gaps:?}");
    assert!(told(None).is_empty() && told(Some("much")).is_empty());
}

/// Runs a command, which may be stopped before it ends, and returns its stretches of more than this many milliseconds without a check of the limits.
fn gaps(longer_than: u64, arguments: &[&str]) -> Vec<String> {
    let mut asked = command();
    asked.env("FENCEWRIGHT_GAPS", longer_than.to_string()).env("RUST_BACKTRACE", "0").args(arguments);
    let outcome = finish(asked.spawn().expect("the command starts"));
    assert!((0..=3).contains(&outcome.status), "{outcome:?}");
    outcome.stderr.lines().filter(|line| line.starts_with("gap\t")).map(str::to_owned).collect()
}

/// Gaps are measured in processor time, so they do not depend on other processes.
#[test]
fn long_c_functions_are_translated_with_looks_at_the_limits() {
    let text = format!("int x;\nint main(void) {{\n{}return 0;\n}}\n", "x++;\n".repeat(200_000));
    let files = Files::new(&[("long.c", &text)]);
    let gaps = gaps(400, &["check", "--engine", "explicit", "--timeout", "60s", &files.text("long.c")]);
    let loading: Vec<_> = gaps.iter().filter(|gap| gap.matches("input.rs").count() == 2).collect();
    assert!(loading.is_empty(), "{loading:?}");
}

#[test]
fn extrapolation_looks_at_the_limits_between_faulting_blocks() {
    let files = Files::new(&[("blocks.fw", &hard::faulting_blocks(6, 6))]);
    let path = files.text("blocks.fw");
    let gaps = gaps(600, &["check", "--engine", "extrapolate", "--timeout", "8s", &path]);
    assert!(gaps.is_empty(), "{gaps:?}");
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

/// Engines that run side by side share the limits of the user; messages name the whole limit, not an engine's share.
#[test]
fn messages_name_the_limits_of_the_user() {
    let files = Files::new(&[("counters.fw", &hard::counters(3))]);
    let path = files.text("counters.fw");
    let outcome = run(["check", "--timeout", "none", "--memory", "24M", &path]);
    assert!(outcome.stdout.contains("no answer within 24 MiB of memory"), "{outcome:?}");
    // On a busy machine, reading a program may take as long as a short limit.
    let outcome = run(["check", "--timeout", "2s", &path]);
    assert!(outcome.stdout.contains("no answer within 2 s"), "{outcome:?}");
}

/// Ctrl-C ends the command soon, in every phase of every engine.
#[cfg(unix)]
#[test]
fn an_interrupt_ends_every_engine() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/treiber-stack.fw");
    // Measures processor time before and after the signal, because other processes may keep this one waiting.
    let script = "\"$@\" & sleep 1.5; kill -INT $!; wait $!";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, "sh", env!("CARGO_BIN_EXE_fencewright"), "check", "-D", "N=64"]).arg(&file);
    let measured = measure(&mut shell, Duration::from_secs(120)).expect("the shell runs");
    assert_eq!(measured.status.code(), Some(3), "{measured:?}");
    assert!(measured.computed < Duration::from_secs(3) + 2 * LATE, "{measured:?}");
}

/// If the system starts fewer threads than `--jobs` asks for, either an error says so, or fewer threads work.
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
        // `finish` also checks that the command does not panic.
        finish(shell.spawn().expect("there is a shell"));
    }
}
