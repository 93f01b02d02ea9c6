//! Programs for which an engine once gave a wrong answer, and similar programs.

use std::time::{Duration, Instant};

use fencewright_engines::cegar::Cegar;
use fencewright_engines::explicit::{Explicit, Options, Order, Reduction};
use fencewright_engines::{Confirm, Limits, Progress, Reason, Task, Verdict, check};
use fencewright_lang::load;
use fencewright_program::{MemoryModel, Program, Property};

fn program(text: &str) -> Program {
    match load("test.fw", text.as_bytes(), None, &[]) {
        Ok(loaded) => loaded.program,
        Err(error) => panic!("{}", error.sources.render(&error.diagnostics, false)),
    }
}

/// The verdict of the explicit engine on the first property (or deadlock) in one word; it must be the same in all configurations.
fn verdict(text: &str, model: MemoryModel, deadlock: bool) -> &'static str {
    let program = program(text);
    let property = if deadlock { Property::deadlock() } else { program.properties[0].clone() };
    let mut verdicts = Vec::new();
    for order in [Order::BreadthFirst, Order::DepthFirst] {
        for workers in [1, 2] {
            for reduced in [false, true] {
                let options = Options {
                    order,
                    workers,
                    live_variables: reduced,
                    reduction: if reduced { Reduction::Local } else { Reduction::None },
                    symmetry: reduced,
                    threads_from: 0,
                    buffer_bound: None,
                    ..Options::default()
                };
                let task = Task::new(&program, model, vec![property.clone()]);
                let limits = Limits::starting_now(Some(Duration::from_secs(5)), None, Default::default());
                let engine = Explicit { options };
                verdicts
                    .push(word(&check(&engine, &task, &limits, &Progress::default(), Confirm::NOTHING)[0]));
            }
        }
    }
    assert!(verdicts.windows(2).all(|w| w[0] == w[1]), "{verdicts:?}: {text}");
    verdicts[0]
}

fn word(checked: &fencewright_engines::Checked) -> &'static str {
    match checked.verdict() {
        Verdict::Safe => "safe",
        Verdict::Unsafe => "unsafe",
        Verdict::Unknown(Reason::Contradiction(what)) => panic!("{what}"),
        Verdict::Unknown(_) => "unknown",
    }
}

#[test]
fn a_layout_that_grows_keeps_every_value() {
    // The initial range needs two bits, which also hold 3; then the field grows downwards.
    let text = "shared x = * in 0..3; thread p { x = 3; } thread q { x = -1; } finally never x == 3;";
    assert_eq!(verdict(text, MemoryModel::Sc, false), "unsafe");
    let text = "shared x = * in 0..3, y;
        thread p { var r; r = x + 1; y = 1; await y == 2; assert r != 3; }
        thread q { var s = 0; await y == 1; s = s - 1; x = s; y = 2; }";
    assert_eq!(verdict(text, MemoryModel::Sc, false), "unsafe");
}

#[test]
fn extreme_values_are_distinct() {
    let text = "shared x = 9223372036854775805;
        thread p { x = 9223372036854775807; } thread q { x = -9223372036854775808; }
        finally never x == -9223372036854775808;";
    assert_eq!(verdict(text, MemoryModel::Sc, false), "unsafe");
}

#[test]
fn a_barrier_has_no_value_to_lose() {
    let text = "shared x; thread t { x = 1; sfence; x = 0 - 1; l: skip; } forbid t@l && x == 1;";
    assert_eq!(verdict(text, MemoryModel::Pso, false), "unsafe");
}

#[test]
fn reals_are_not_whole_numbers() {
    let text =
        "numbers real; shared x; thread p { var r; r = * in 0..=1; assume 0 < r; assume r < 1; half: skip; }
        forbid p@half;";
    assert_eq!(verdict(text, MemoryModel::Sc, false), "unknown");
    let program = program(text);
    let task = Task::new(&program, MemoryModel::Tso, program.properties.clone());
    let results =
        check(&Cegar::default(), &task, &Limits::default(), &Progress::default(), Confirm::default());
    assert_eq!(word(&results[0]), "unknown");
}

#[test]
fn a_formula_that_cannot_be_computed_decides_nothing() {
    let start = "shared x = 9223372036854775807; thread p { skip; }";
    for property in ["invariant x + 1 < 0;", "forbid x + 1 > x;", "finally forall x + 1 > x;"] {
        assert_eq!(verdict(&format!("{start} {property}"), MemoryModel::Tso, false), "unknown", "{property}");
    }
}

#[test]
fn a_choice_after_a_failed_assumption_is_disabled() {
    let text = "shared x; thread p { var r; atomic { assume x == 1; r = *; } }";
    assert_eq!(verdict(text, MemoryModel::Tso, true), "unsafe");
    let text = "shared x; thread p { var r; atomic { r = *; assume r == 77; } }";
    assert_ne!(verdict(text, MemoryModel::Tso, true), "unsafe");
}

#[test]
fn unlock_releases_the_favourite_thread() {
    // After `unlock` the other thread must be able to run before this one continues.
    let text = "shared x, y;
        thread p { var r; lock; r = x; unlock; y = 1; done: skip; }
        thread q { var s; s = y; x = 1; end_: skip; }
        finally exists p.r == 0 && q.s == 0;";
    for model in MemoryModel::ALL {
        assert_eq!(verdict(text, model, false), "safe");
    }
    let text =
        "shared x; thread p { var r = 1; lock; r = 0; unlock; r = x; } thread q { lock; x = 5; unlock; }
        finally never p.r == 5;";
    for model in MemoryModel::ALL {
        assert_eq!(verdict(text, model, false), "unsafe");
    }
}

#[test]
fn registers_of_several_threads_are_seen_together() {
    let text = "shared x; thread p { var r; r = 1; r = 0; } thread q { var r; r = 1; r = 0; }
        forbid p.r == 1 && q.r == 1;";
    for model in MemoryModel::ALL {
        assert_eq!(verdict(text, model, false), "unsafe");
    }
}

#[test]
fn limits_are_obeyed_promptly() {
    let wide = "shared x; thread p[i in 0..4] { var r, s, t; loop { r = * in 0..200; s = * in 0..200; t = r + s; x = t; } }
        forbid x == -1;";
    let steep =
        "shared a[4000]; thread p { var i; loop { i = * in 0..4000; a[i] = i; fence; } } forbid a[0] == 1;";
    for text in [wide, steep] {
        let program = program(text);
        for workers in [1, 2] {
            let start = Instant::now();
            let limits =
                Limits::starting_now(Some(Duration::from_millis(500)), Some(1 << 30), Default::default());
            let options = Options { workers, ..Options::default() };
            let task = Task::new(&program, MemoryModel::Tso, program.properties.clone());
            let engine = Explicit { options };
            let verdicts = check(&engine, &task, &limits, &Progress::default(), Confirm::NOTHING);
            assert_eq!(verdicts.len(), program.properties.len());
            assert!(start.elapsed() < Duration::from_millis(2_500), "{:?}: {text}", start.elapsed());
        }
    }
}

/// The verdict of `cegar` on the first property.
fn proved(text: &str, model: MemoryModel, confirm: Confirm) -> Verdict {
    let program = program(text);
    let task = Task::new(&program, model, vec![program.properties[0].clone()]);
    let limits = Limits::starting_now(Some(Duration::from_secs(5)), Some(1 << 30), Default::default());
    check(&Cegar::default(), &task, &limits, &Progress::default(), confirm)[0].verdict().clone()
}

#[test]
fn the_least_number_is_not_small() {
    let text = "shared x = -9223372036854775808; thread p { var r; r = x; } forbid bad: p.r < 0 - 5;";
    for confirm in [Confirm::NOTHING, Confirm::default()] {
        let verdict = proved(text, MemoryModel::Tso, confirm);
        assert!(
            !matches!(verdict, Verdict::Safe | Verdict::Unknown(Reason::Contradiction(_))),
            "{verdict:?}"
        );
    }
    // The program is safe, but its values are so large that the checker, which computes with 64 bits, may not be able to decide that.
    let text = "shared a = 1, b = -9223372036854775807, c = 2147483648;
                thread p { loop { skip; } } forbid bad: b == c;";
    let verdict = proved(text, MemoryModel::Tso, Confirm::default());
    assert!(!matches!(verdict, Verdict::Unsafe | Verdict::Unknown(Reason::Contradiction(_))), "{verdict:?}");
}

#[test]
fn barriers_do_not_pile_up() {
    let text = "shared x, y; thread p { x = 1; sfence; loop { y = 1; sfence; } } forbid bad: x == 2;";
    let start = Instant::now();
    let verdict = proved(text, MemoryModel::Pso, Confirm::default());
    assert!(matches!(verdict, Verdict::Safe), "{verdict:?} after {:?}", start.elapsed());
    let twice = text.replace("forbid", "thread q { x = 1; sfence; loop { y = 1; sfence; } } forbid");
    let verdict = proved(&twice, MemoryModel::Pso, Confirm::default());
    assert!(matches!(verdict, Verdict::Safe), "{verdict:?} after {:?}", start.elapsed());
}

#[test]
fn steps_with_very_many_cases_end_soon() {
    let assumptions: String = (0..26).map(|n| format!("assume r != {n}; ")).collect();
    let choices = format!(
        "shared x; thread p {{ var r; r = *; atomic {{ {assumptions} x = 1; }} }} forbid bad: x == 2;"
    );
    let elements = "shared a[64]; thread p { var i, j, k, l; i = * in 0..64; j = * in 0..64; k = * in 0..64; l = * in 0..64;
                    atomic { a[i] = 1; a[j] = 2; a[k] = 3; a[l] = 4; } } forbid bad: a[0] == 5;";
    for text in [choices.as_str(), elements] {
        let start = Instant::now();
        let verdict = proved(text, MemoryModel::Tso, Confirm::default());
        assert!(!matches!(verdict, Verdict::Unsafe), "{verdict:?}");
        assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    }
}
