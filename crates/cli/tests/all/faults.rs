//! Faults, naturals and open arrays, with every engine, on the command line. The programs in `regressions` once got wrong answers.

use crate::common::*;

const ENGINES: [&str; 5] = ["auto", "explicit", "cegar", "contexts", "lazy"];

fn regression(name: &str) -> String {
    let path = repository("crates/cli/tests/regressions").join(name);
    std::fs::read_to_string(path).expect("a program of this folder")
}

/// The verdict on each property, as `name: verdict`, sorted; checks that there is no internal contradiction.
fn verdicts(text: &str, arguments: &[&str]) -> Vec<String> {
    let limit: &[&str] = if arguments.contains(&"--timeout") { &[] } else { &["--timeout", "60s"] };
    let outcome =
        run_with_input(["check", "--json", "-"].iter().chain(limit).chain(arguments), text.as_bytes());
    assert!(!outcome.stdout.contains("contradiction"), "{arguments:?}: {outcome:?}");
    let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_string();
    let lines = outcome.json_lines();
    assert!(!lines.is_empty(), "{outcome:?}");
    let verdict =
        |line: &serde_json::Value| format!("{}: {}", word(&line["property"]), word(&line["verdict"]));
    let mut verdicts: Vec<String> = lines.iter().map(verdict).collect();
    verdicts.sort_unstable();
    verdicts
}

/// Checks the verdict of each engine, in the order of [`ENGINES`].
#[track_caller]
fn check(text: &str, model: &str, expected: [&str; 5]) {
    for (engine, expected) in ENGINES.iter().zip(expected) {
        let found = verdicts(text, &["--model", model, "--engine", engine]);
        assert_eq!(found.join(", "), expected, "{engine} under {model}: {text}");
    }
}

#[test]
fn a_choice_below_0_over_the_naturals_is_a_violation_whatever_range_is_declared() {
    let (bad, open) = ("assertions: unsafe", "assertions: unknown");
    for name in ["nat-choice-no-assertions.fw", "contexts-contradiction-nat-choice.fw"] {
        for model in ["sc", "tso"] {
            check(&regression(name), model, [bad; 5]);
        }
        check(&regression(name), "pso", [bad, bad, bad, open, open]);
    }
    check(&regression("lazy-nat-choice.fw"), "tso", ["assertions: unsafe, sb: unsafe"; 5]);
    for name in ["contexts-nat-choice.fw", "auto-nat-choice.fw"] {
        assert_eq!(verdicts(&regression(name), &["--engine", "contexts"]), [bad], "{name}");
    }
    assert_eq!(verdicts(&regression("contexts-nat-choice.fw"), &["--engine", "explicit"]), [bad]);
    // How far the engines come within the time differs between machines, but none of them can have a proof.
    let found = verdicts(&regression("auto-nat-choice.fw"), &["--timeout", "2s"]);
    assert!([[bad], [open]].contains(&[found[0].as_str()]), "{found:?}");
}

/// The standard output of `robust`: the verdict and its reason.
fn robust(text: &str, arguments: &[&str]) -> String {
    run_with_input(["robust", "-"].iter().chain(arguments), text.as_bytes()).stdout
}

#[test]
fn robust_does_not_know_what_is_outside_an_open_array() {
    for search in ["auto", "explicit", "cegar"] {
        for notion in ["happens-before", "triangular"] {
            let arguments = ["--engine", search, "--notion", notion];
            let choice = robust(&regression("robust-nat-choice.fw"), &arguments);
            assert!(choice.starts_with("<stdin>: not "), "{choice}");
            for text in [
                &regression("robust-open-array.fw"),
                // The index outside the window is a constant.
                "shared mem[1] open; thread p { var r; mem[5] = 1; r = mem[6]; }
                 thread q { var s; mem[6] = 1; s = mem[5]; }",
                // The attacker's load may be outside the window; its store is inside.
                "shared mem[1] open; thread p { var i = 6, r; mem[0] = 1; r = mem[i]; }
                 thread q { var i = 6, s; mem[i] = 1; s = mem[0]; }",
                // Over the naturals too, a negative index of an open array is not a fault; it is outside the window.
                "numbers nat; shared x, y, mem[1] open;
                 thread p { var r; x = 1; r = y; }
                 thread q { var i, s; s = y; if s == 0 { atomic { s = mem[i - 1]; y = 1; } s = x; } }",
            ] {
                let array = robust(text, &arguments);
                assert!(array.contains("unknown") && array.contains("open array"), "{array}: {text}");
            }
        }
    }
    // If all accesses are inside the window, the program is decided.
    let inside = "shared mem[1] open; thread p { var r; mem[0] = 1; r = mem[0]; } thread q { var s; mem[0] = 2; s = mem[0]; }";
    assert!(robust(inside, &[]).contains("robust against tso"));
}

#[test]
fn buffered_values_of_naturals_are_naturals() {
    let text = "numbers nat; shared x; thread p { var r; loop { r = *; x = r; } }
        thread q { var s, z; s = x; if s < z { bad: skip; } } forbid q@bad;";
    for model in ["sc", "tso", "pso"] {
        for kept in ["oldest", "newest"] {
            for (domain, k) in
                [("zones", "0"), ("zones", "1"), ("predicates", "0"), ("predicates", "1"), ("order", "0")]
            {
                let arguments =
                    ["--engine", "cegar", "--model", model, "--domain", domain, "--k", k, "--kept", kept];
                assert_eq!(verdicts(text, &arguments), ["forbid: safe"], "{arguments:?}");
            }
        }
    }
    // The proof uses the declared range of the variable, whichever store reaches memory.
    let text = "shared x: 0..4; thread p { var r: 0..4; loop { r = *; x = r; } }
        thread q { var s; s = x; if s > 3 { bad: skip; } } forbid q@bad;";
    for domain in ["zones", "predicates"] {
        let arguments = ["--engine", "cegar", "--domain", domain, "--k", "0", "--property", "forbid"];
        assert_eq!(verdicts(text, &arguments), ["forbid: safe"], "{domain}");
    }
}

#[test]
fn nothing_starts_below_0_over_the_naturals() {
    for (declaration, what) in [
        ("shared x: -1..2 = -1; thread p { x = 1; }", "`x` starts below 0"),
        ("shared x = * in -1..1; thread p { x = 1; }", "`x` starts below 0"),
        ("shared x: -1..2 = *; thread p { x = 1; }", "`x` starts below 0"),
        ("shared a[2] = [0, -1]; thread p { a[0] = 1; }", "`a` starts below 0"),
        ("thread p { var r = -1; r = 0; }", "`p.r` starts below 0"),
        ("thread p { var r: -1..2 = * in -1..1; r = 0; }", "`p.r` starts below 0"),
    ] {
        let outcome = run_with_input(["check", "-"], format!("numbers nat; {declaration}").as_bytes());
        assert_eq!(outcome.status, 2, "{declaration}: {outcome:?}");
        assert!(outcome.stderr.contains(what), "{declaration}: {outcome:?}");
    }
    // Copying a value faults if the value is outside the target's range; the initial value 0 is inside.
    let text = "numbers nat; shared x: -1..2; thread p { var r: -1..1; r = x; x = r; x = r - 1; }";
    check(text, "tso", ["assertions: unsafe"; 5]);
    let text = "numbers nat; shared x: -1..2; thread p { var r; r = x; x = 1 - r; r = x; }";
    check(text, "tso", ["assertions: safe"; 5]);
}

/// Declarations, and a statement that faults if register `r` is 0.
const FAULTS: [(&str, &str); 7] = [
    ("", "assert r == 1;"),
    ("shared z: 0..4;", "z = r + 7;"),
    ("shared a[2];", "a[r + 5] = 1;"),
    ("", "r = 1 / r;"),
    ("numbers nat;", "r = r - 1;"),
    ("shared b[2];", "r = b[r - 1];"),
    ("numbers nat;", "r = * in -2..0;"),
];

#[test]
fn of_an_indivisible_step_that_faults_what_comes_before_the_fault_has_happened_and_nothing_else() {
    for (declarations, faulting) in FAULTS {
        let text = format!(
            "{declarations} shared x, y;
             thread p {{ var r; start: atomic {{ x = 1; {faulting} y = 1; }} }}
             thread q {{ var s, t; snapshot {{ s = x; t = y; }} seen: skip; }}
             forbid after: q.t == 1 || p@end;
             forbid apart: q.s == 1 && p@start;
             forbid before: q@seen && q.s == 1;"
        );
        let all = "after: safe, apart: safe, assertions: unsafe, before: unsafe";
        for model in ["sc", "tso"] {
            check(&text, model, [all; 5]);
        }
        for engine in ["auto", "explicit", "cegar"] {
            let found = verdicts(&text, &["--model", "pso", "--engine", engine]);
            assert_eq!(found.join(", "), all, "{engine} under pso: {text}");
        }
    }
    // A load whose value does not fit is a fault that leaves its register unchanged; the load before it takes effect.
    let text = "shared x = 1, y = 7; thread p { var r, s: 0..4; snapshot { r = x; s = y; } }
        forbid first: p.r == 1; forbid second: p.s != 0;";
    check(text, "tso", ["assertions: unsafe, first: unsafe, second: safe"; 5]);
    // An assumption after a fault is not evaluated.
    let text = "shared x; thread p { var r; atomic { r = x; assert r == 1; assume r == 2; } }";
    check(text, "tso", ["assertions: unsafe"; 5]);
}

#[test]
fn stores_of_a_faulted_thread_reach_memory_and_its_lock_is_held_for_ever() {
    for (declarations, faulting) in FAULTS {
        let text = format!(
            "{declarations} shared x;
             thread p {{ var r; start: x = 1; check: {faulting} }}
             thread q {{ atomic {{ assume x == 1; }} done: skip; }}
             forbid drained: q@done && !p@start && !p@check;"
        );
        for model in ["sc", "tso"] {
            check(&text, model, ["assertions: unsafe, drained: unsafe"; 5]);
        }
        // The other thread does not wait in vain for the store, even if the fault comes first.
        for (engine, expected) in ENGINES.iter().zip(["safe", "safe", "unknown", "unknown", "safe"]) {
            let found = verdicts(&text, &["--engine", engine, "--property", "deadlock"]);
            assert_eq!(found, [format!("deadlock: {expected}")], "{engine}: {text}");
        }
        let text = format!(
            "{declarations} shared x;
             thread p {{ var r; start: lock; check: {faulting} unlock; }}
             thread q {{ start: lock; got: skip; unlock; }}
             forbid taken: q@got && !p@start;"
        );
        let all = "assertions: unsafe, taken: safe";
        check(&text, "tso", [all, all, all, all, "assertions: unsafe, taken: unknown"]);
        for engine in ["auto", "explicit"] {
            let found = verdicts(&text, &["--engine", engine, "--property", "deadlock"]);
            assert_eq!(found, ["deadlock: unsafe"], "{engine}: {text}");
        }
    }
}

#[test]
fn a_faulted_thread_counts_as_ended_for_deadlocks_and_not_for_final_states() {
    let text = "shared x; thread p { var r; assert r == 1; } thread q { x = 1; }
        finally some: exists 1; finally none: never 1;";
    for model in ["sc", "tso"] {
        let all = "assertions: unsafe, none: safe, some: unsafe";
        check(text, model, [all, all, "assertions: unsafe, none: safe, some: unknown", all, all]);
    }
    for (engine, expected) in ENGINES.iter().zip(["safe", "safe", "unknown", "unknown", "safe"]) {
        let found = verdicts(text, &["--engine", engine, "--property", "deadlock"]);
        assert_eq!(found, [format!("deadlock: {expected}")], "{engine}");
    }
    let waiting = text.replace("x = 1;", "atomic { assume x == 1; }");
    for (engine, expected) in ENGINES.iter().zip(["unsafe", "unsafe", "unknown", "unknown", "unsafe"]) {
        let found = verdicts(&waiting, &["--engine", engine, "--property", "deadlock"]);
        assert_eq!(found, [format!("deadlock: {expected}")], "{engine}");
    }
}

#[test]
fn thousands_of_operations_that_may_fault_in_one_step() {
    let asserts: String = (0..4_000).map(|n| format!("assert r != {};\n", n + 1)).collect();
    for lock in ["", "lock;", "fence;"] {
        let text = format!(
            "shared x, y; thread p {{ var r; x = 1; atomic {{ r = y; {asserts} x = 2; }} }} thread q {{ var s; y = 0; {lock} s = x; }}"
        );
        let start = std::time::Instant::now();
        let found = verdicts(&text, &["--engine", "lazy", "--memory", "512M", "--timeout", "20s"]);
        let expected = if lock == "lock;" { "assertions: unknown" } else { "assertions: safe" };
        assert_eq!(found, [expected], "{lock}");
        assert!(start.elapsed() < std::time::Duration::from_secs(15), "{lock} {:?}", start.elapsed());
    }
}
