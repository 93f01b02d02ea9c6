//! `--property deadlock`: which statements block, the verdicts of all engines that support it, and the remarks in the output.

use crate::common::*;

const MUTUAL: &str = "\
// two threads that wait for each other for ever: nobody can ever go on
shared x, y;
thread p { await x == 1; y = 1; }
thread q { await y == 1; x = 1; }
forbid f: p@end;
";

/// Two threads that wait for each other's stores. Thread `p` stores before it waits, so there is no deadlock.
const ONE_SIDED: &str = "\
shared x, y;
thread p { x = 1; await y == 1; }
thread q { await x == 1; y = 1; }
";

const SPINNING: &str = "\
#include <pthread.h>
#include <stdatomic.h>
atomic_int x, y;
void *p(void *u) { while (x != 1); y = 1; return 0; }
int main(void) {
    pthread_t t;
    pthread_create(&t, 0, p, 0);
    while (y != 1);
    x = 1;
    pthread_join(t, 0);
    return 0;
}
";

/// The engines that support property `deadlock`, with their reductions.
const WAYS: [&[&str]; 9] = [
    &["--engine", "auto"],
    &["--engine", "lazy"],
    &["--engine", "explicit", "--reduction", "none"],
    &["--engine", "explicit", "--reduction", "local"],
    &["--engine", "explicit", "--reduction", "ample"],
    &["--engine", "explicit", "--reduction", "persistent"],
    &["--engine", "explicit", "--reduction", "sleep"],
    &["--engine", "explicit", "--reduction", "suited"],
    &["--engine", "explicit", "--reduction", "dynamic"],
];

fn check(file: &str, model: &str, more: &[&str]) -> Outcome {
    run(["check", "--property", "deadlock", "--model", model, file].iter().chain(more))
}

#[test]
fn an_await_blocks_in_every_engine() {
    let files = Files::new(&[("mutual.fw", MUTUAL), ("one-sided.fw", ONE_SIDED)]);
    for model in ["sc", "tso", "pso"] {
        for way in WAYS.iter().filter(|way| way[1] != "lazy" || model == "tso") {
            let found = check(&files.text("mutual.fw"), model, way);
            assert!(found.stdout.contains("deadlock: unsafe"), "{way:?}: {found:?}");
            assert!(found.stdout.contains("; replayed on the reference semantics"), "{way:?}: {found:?}");
            let found = check(&files.text("one-sided.fw"), model, way);
            assert!(found.stdout.contains("deadlock: safe"), "{way:?}: {found:?}");
        }
        // For all other properties, `await` is a loop; the verdict is the same if `deadlock` is checked with them.
        let found = run(["check", "--model", model, &files.text("mutual.fw")]);
        assert!(found.stdout.contains("f: safe"), "{found:?}");
        let found = check(&files.text("mutual.fw"), model, &["--property", "f"]);
        assert!(found.stdout.contains("f: safe") && found.stdout.contains("deadlock: unsafe"), "{found:?}");
    }
}

#[test]
fn a_proof_that_there_is_no_deadlock_is_about_threads_that_wait() {
    let files = Files::new(&[("one-sided.fw", ONE_SIDED)]);
    let (program, proof) = (files.text("one-sided.fw"), files.text("proof.json"));
    let found = check(&program, "tso", &["--engine", "explicit", "--certificate", &proof]);
    assert_eq!(found.status, 0, "{found:?}");
    let found = run(["certify", &proof, &program]);
    assert!(found.stdout.contains("accepted: deadlock under tso"), "{found:?}");
}

#[test]
fn the_verdict_says_who_blocks() {
    let files = Files::new(&[("mutual.fw", MUTUAL), ("spinning.c", SPINNING)]);
    let found = check(&files.text("mutual.fw"), "tso", &[]);
    assert!(
        found.stdout.contains("[await, assume and locks block; a loop that is written out can move]"),
        "{found:?}"
    );
    let found = check(&files.text("mutual.fw"), "tso", &["--json"]);
    assert_eq!(
        found.json_lines()[0]["meaning"],
        "await, assume and locks block; a loop that is written out can move"
    );
    // In C, the author wrote waiting loops, which are not blocked.
    let found = check(&files.text("spinning.c"), "tso", &[]);
    assert!(found.stdout.contains("deadlock: safe"), "{found:?}");
    assert!(found.stdout.contains("threads that spin can move: --property termination]"), "{found:?}");
    let found = run(["check", "--property", "termination", &files.text("spinning.c")]);
    assert!(found.stdout.contains("termination: unsafe"), "{found:?}");
}

/// The futex mutexes of the examples lose no wake-up, unless they forget that other threads wait.
#[test]
fn lost_wake_ups_of_futexes_are_found() {
    let example = repository("examples/c/futex.c").display().to_string();
    for (mutex, more, expected) in [
        ("2", &[][..], "safe"),
        ("3", &[], "safe"),
        ("2", &["-D", "LOST"], "unsafe"),
        ("3", &["-D", "LOST"], "unsafe"),
    ] {
        let mutex = format!("MUTEX={mutex}");
        let options = [&["-D", "THREADS=3", "-D", &mutex], more].concat();
        let found = check(&example, "tso", &options);
        assert!(found.stdout.contains(&format!("deadlock: {expected}")), "{options:?}: {found:?}");
    }
}
