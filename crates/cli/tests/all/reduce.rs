//! `fencewright reduce`: the reduced program has, under SC, the verdicts that the original program has under TSO or PSO.

use crate::common::*;

/// Reduces a program and returns the verdict on each property of the result under SC.
fn verdicts(file: &str, options: &[&str]) -> Vec<String> {
    let path = repository(&format!("examples/{file}"));
    let path = path.to_string_lossy();
    let reduced = run([&["reduce", &path], options].concat());
    assert_eq!(reduced.status, 0, "{file}: {reduced:?}");
    let outcome = run_with_input(
        ["check", "--model", "sc", "--engine", "explicit", "-q", "-"],
        reduced.stdout.as_bytes(),
    );
    let word = |line: &str| {
        let (name, rest) = line.strip_prefix("<stdin>: ")?.split_once(": ")?;
        Some(format!("{name} {}", rest.split_whitespace().next()?))
    };
    let mut words: Vec<String> = outcome.stdout.lines().filter_map(word).collect();
    words.sort();
    words
}

#[track_caller]
fn check(file: &str, options: &[&str], expected: &[&str]) {
    assert_eq!(verdicts(file, options), expected, "{file} {options:?}");
}

#[test]
fn reduced_programs_have_the_verdicts_of_the_memory_model() {
    let (tso, pso) = (["--model", "tso"], ["--model", "pso"]);
    check("store-buffering.fw", &tso, &["both_missed unsafe"]);
    check("message-passing.fw", &[tso.as_slice(), &["--k", "2"]].concat(), &["stale safe"]);
    check("message-passing.fw", &pso, &["stale unsafe"]);
    check("message-passing.pso.fw", &pso, &["stale safe"]);
    check("coherence.fw", &[pso.as_slice(), &["--k", "2"]].concat(), &["backwards safe"]);
    check("extra13-8.fw", &[tso.as_slice(), &["--k", "2"]].concat(), &["faults safe"]);
    check("extra13-8.fw", &tso, &["faults safe", "overflow unsafe"]);
    check("extra13-3.fw", &tso, &["faults unsafe"]);
}

#[test]
fn variables_may_have_their_own_sizes() {
    let sizes = |k| ["--model", "pso", "--k", k];
    check("coherence.fw", &sizes("1"), &["backwards safe", "overflow unsafe"]);
    check("coherence.fw", &sizes("x=2"), &["backwards safe"]);
    check("message-passing.fw", &["--model", "pso", "--per-thread"], &["overflow unsafe", "stale safe"]);
}

#[test]
fn buffers_may_forget() {
    let partial = |k| ["--model", "tso", "--buffers", k];
    check("extra13-8.fw", &partial("partial:2"), &["faults safe"]);
    check("message-passing.fw", &partial("partial:2"), &["stale safe"]);
    check("store-buffering.fw", &partial("partial:0"), &["both_missed unsafe"]);
    let path = repository("examples/thesis-3-7.fw");
    let text = run(["reduce", &path.to_string_lossy(), "--buffers", "partial:1"]).stdout;
    assert!(text.contains("the 1 oldest are kept in order") && text.contains("_last"), "{text}");
}

#[test]
fn the_text_says_what_it_is() {
    let path = repository("examples/peterson.fw");
    let path = path.to_string_lossy();
    let text = run(["reduce", &path]).stdout;
    for part in ["under TSO, as a program for SC", "Each thread buffers at most 1 store.", "label overflow"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let text = run(["reduce", &path, "--to", "c", "--width", "64"]).stdout;
    for part in [
        "all values fit 64 bits",
        "__VERIFIER_atomic_begin();",
        "reach_error();",
        "pthread_create(",
        "long long",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let files = Files::new(&[("a.fw", "shared x; thread p { x = 3000000000; }")]);
    let path = files.text("a.fw");
    let refused = |options: &[&str], why: &str| {
        let outcome = run([&["reduce", &path], options].concat());
        assert_eq!((outcome.status, outcome.stdout.as_str()), (2, ""), "{outcome:?}");
        assert!(outcome.stderr.contains(why), "{why}: {outcome:?}");
    };
    refused(&["--model", "sc"], "no store buffers");
    refused(&["--k", "x=2"], "counted together");
    refused(&["--model", "pso", "--k", "y=2"], "no shared variable `y`");
    refused(&["--k", "100000"], "64 places");
    refused(&["--width", "32"], "--width is for C");
    refused(&["--buffers", "set"], "partial:K");
    refused(&["--buffers", "partial:1", "--k", "2"], "cannot be used with");
    refused(&["--to", "c"], "a.fw:1:");
    refused(&["-o", &path], "also read");
    assert_eq!(run(["reduce", &path, "--to", "c", "--width", "64"]).status, 0);
    assert_eq!(files.read("a.fw"), "shared x; thread p { x = 3000000000; }");
}
