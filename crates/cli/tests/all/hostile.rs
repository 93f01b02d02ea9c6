//! Hostile files: every command quickly ends with a status and a message.

use std::time::{Duration, Instant};

use crate::common::*;

/// Runs every command on this file. All commands must agree on whether it is a program, except `check`, which may find no property to check.
fn survive(name: &str, contents: &[u8]) {
    let files = Files::new(&[]);
    files.write(name, contents);
    let path = files.text(name);
    let commands: [&[&str]; 7] = [
        &["check", "--timeout", "500ms", "--memory", "200M", &path],
        &["check", "--timeout", "500ms", "--memory", "200M", "--json", "--model", "all", &path],
        &["litmus", "--timeout", "500ms", "--memory", "200M", &path],
        &["run", "--seed", "1", &path],
        &["show", &path],
        &["fmt", "--stdout", &path],
        &["convert", "--to", "fw", &path],
    ];
    for command in commands {
        let start = Instant::now();
        let outcome = run(command);
        assert!(start.elapsed() < Duration::from_secs(10), "{name}: {command:?} took {:?}", start.elapsed());
        let told = match outcome.status {
            // A limit may be reached before the command knows whether the file is a program.
            3 if outcome.stdout.is_empty() || !outcome.stderr.is_empty() => {
                outcome.stderr.contains("not even loaded")
            }
            status => (status == 2) != outcome.stderr.is_empty(),
        };
        assert!(told, "{name}: {command:?}: {outcome:?}");
        assert!(!outcome.stderr.contains('\x1b') && !outcome.stdout.contains('\x1b'), "{name}: {command:?}");
    }
}

#[test]
fn no_bytes_at_all() {
    survive("empty.fw", b"");
    survive("empty.litmus", b"");
    survive("empty", b"");
}

#[test]
fn bytes_that_are_no_text() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut bytes = Vec::new();
    for _ in 0..5_000 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.push(state as u8);
    }
    for name in ["random.fw", "random.rmm", "random.litmus", "random"] {
        survive(name, &bytes);
    }
    survive("zero.fw", &[0; 4096]);
    survive("utf16.fw", b"\xff\xfes\0h\0a\0r\0e\0d\0");
    survive(
        "binary.fw",
        &std::fs::read(env!("CARGO_BIN_EXE_fencewright")).expect("the command itself")[..100_000],
    );
}

#[test]
fn large_files() {
    survive("comment.fw", format!("/*{}*/", "x".repeat(20 << 20)).as_bytes());
    survive("nested.fw", format!("thread p {{ {}", "{".repeat(1 << 20)).as_bytes());
    survive("too-large.fw", &vec![b' '; (64 << 20) + 1]);
}

#[test]
fn large_state_spaces() {
    survive("wide.fw", b"shared x; thread p[i in 0..20] { x = i; x = i + 1; x = i + 2; } forbid x == 99;");
    survive("choice.fw", b"shared x = *; thread p { loop { x = *; } } forbid x == 12345;");
    survive("counter.fw", b"shared x; thread p { loop { x = x + x + 1; } } forbid x == 2;");
}

/// Algorithms that walk over the whole graph for each location would take minutes on these programs.
#[test]
fn long_threads() {
    let lines = "a[i] = 1; r = b[j];\n".repeat(20_000);
    let thread = |name| format!("thread {name} {{ var r, i, j;\n{lines}}}\n");
    let program = format!("shared a[8], b[8];\n{}{}forbid z: a[0] == 7;\n", thread("p"), thread("q"));
    let files = Files::new(&[("long.fw", &program)]);
    for command in [&["fences"][..], &["fences", "--goal", "robustness"], &["robust"]] {
        let start = Instant::now();
        let path = files.text("long.fw");
        let outcome = run(command.iter().copied().chain(["--timeout", "1s", &path]));
        assert_eq!(outcome.status, 3, "{command:?}: {outcome:?}");
        // On a busy machine the file is not even loaded.
        let said =
            [&outcome.stdout, &outcome.stderr].iter().any(|text| text.contains("no answer within 1 s"));
        assert!(said, "{command:?}: {outcome:?}");
        assert!(start.elapsed() < Duration::from_secs(30), "{command:?} took {:?}", start.elapsed());
    }
}

/// Engine `cegar` answers quickly, and its answer begins as expected. Each of these programs once took half a minute or more, or gigabytes, because
/// the engine visited all pairs of cells without first counting them, or copied a step for each of its operations.
#[test]
fn large_steps_and_many_cells() {
    let answers = |name: &str, program: &str, expected: &str| {
        let files = Files::new(&[(name, program)]);
        let start = Instant::now();
        let path = files.text(name);
        let outcome = run(["check", "--engine", "cegar", "--no-certify", "--timeout", "5s", &path]);
        assert!(outcome.stdout.contains(expected), "{name}: {outcome:?}");
        assert!(start.elapsed() < Duration::from_secs(20), "{name} took {:?}", start.elapsed());
    };
    let program = |shared: &str, body: &str| {
        format!("shared {shared};\nthread p {{\n{body}}}\nthread q {{\n{body}}}\nforbid z: p.r == 77;\n")
    };
    let array = program("a[4000]", "var r;\na[0] = 1; r = a[1];\n");
    answers("array.fw", &array, "4001 cells matter at once");
    let registers: Vec<String> = (0..20_000).map(|n| format!("r{n}")).collect();
    let unused = program("x, y", &format!("var r, {};\nx = 1; r = y;\n", registers.join(", ")));
    answers("registers.fw", &unused, "z: safe under tso");
    let atomic = |body: String| program("x, y", &format!("var r;\natomic {{\n{body}}}\nr = y;\n"));
    answers("atomic.fw", &atomic("x = r; r = y;\n".repeat(20_000)), "z: safe under tso");
    answers("asserts.fw", &atomic("assert r == 0; r = y;\n".repeat(4_000)), "a step with too many cases");
    let indexed = atomic("x = r; r = y;\n".repeat(10_000) + "a[r] = 1;\n").replace("x, y", "x, y, a[200]");
    answers("indexed.fw", &indexed, "a step with too many cases");
}

#[test]
fn names_that_would_change_what_a_terminal_shows() {
    let files = Files::new(&[]);
    let name = "red\x1b[31m.fw";
    files.write(name, WRONG.as_bytes());
    let outcome = run(["check", &files.text(name), &files.text("gone\x1b[2J.fw")]);
    assert_eq!(outcome.status, 2);
    assert!(!outcome.stderr.contains('\x1b'), "{outcome:?}");
    files.write(name, b"shared x; thread p { x = 1; /* \x1b[31m */ } forbid x == /* \xe2\x80\xae */ 1;");
    let outcome = run(["check", &files.text(name)]);
    assert_eq!(outcome.status, 1, "{outcome:?}");
    assert!(!outcome.stdout.contains(['\x1b', '\u{202e}']), "{outcome:?}");
}

#[test]
fn a_file_that_takes_too_long_to_load_is_unknown() {
    // Two million words, which need much more than the memory allowed here.
    let text = format!("shared x; thread p {{ {} }} forbid two: x == 2;", "x = 1;\n".repeat(450_000));
    let files = Files::new(&[("large.fw", &text), ("safe.fw", SAFE)]);
    let (large, safe) = (files.text("large.fw"), files.text("safe.fw"));
    for name in ["check", "robust", "fences"] {
        let outcome = run([name, "--json", "--memory", "20M", &large, &safe]);
        assert_eq!(outcome.status, 3, "{name}: {outcome:?}");
        let is_told = |said: &str| {
            said.contains("not even loaded") && said.contains(": no answer within 20 MiB of memory")
        };
        assert!(is_told(&outcome.stderr), "{name}: {outcome:?}");
        let objects = outcome.json_lines();
        assert_eq!(objects.len(), 2, "{name}: {objects:?}");
        assert!(objects[0]["error"].as_str().is_some_and(is_told), "{name}: {objects:?}");
        let outcome = run([name, "--quiet", "--timeout", "1ms", &large]);
        assert_eq!(outcome.status, 3, "{name}: {outcome:?}");
        assert!(outcome.stderr.contains("no answer within 0.001 s"), "{name}: {outcome:?}");
    }
    let outcome = run(["show", "--memory", "20M", &large]);
    assert_eq!((outcome.status, outcome.stdout.as_str()), (3, ""), "{outcome:?}");
}
