//! Engine `lazy` and `show --extended`, on the command line.

use std::time::Duration;

use crate::common::*;
use fencewright::engines::explicit::Explicit;
use fencewright::engines::lazy::{Lazy, Options, OracleName};
use fencewright::engines::{Checked, Confirm, Limits, Progress, Task, Verdict, check};
use fencewright::lang::load;
use fencewright::program::{MemoryModel, Program};

#[test]
fn delayed_stores_are_found() {
    let files = Files::new(&[("sb.fw", STORE_BUFFERING)]);
    for arguments in [&[][..], &["--oracle", "enumerate"], &["--keep-store"]] {
        let sb = files.text("sb.fw");
        let command = ["check", "--engine", "lazy", &sb].into_iter().chain(arguments.iter().copied());
        let outcome = run(command);
        assert_eq!(outcome.status, 1, "{outcome:?}");
        assert!(outcome.stdout.contains("unsafe under tso (lazy"), "{outcome:?}");
        assert!(outcome.stdout.contains("replayed on the reference semantics"), "{outcome:?}");
    }
}

#[test]
fn rounds_can_be_limited() {
    let files = Files::new(&[("sb.fw", STORE_BUFFERING)]);
    let outcome = run(["check", "--engine", "lazy", "--rounds", "1", &files.text("sb.fw")]);
    assert_eq!(outcome.status, 3, "{outcome:?}");
    assert!(outcome.stdout.contains("no answer within 1 round"), "{outcome:?}");
}

#[test]
fn the_extended_program_shows_under_sc_what_the_program_does_under_tso() {
    let files = Files::new(&[("sb.fw", STORE_BUFFERING)]);
    let shown = run(["show", "--extended", &files.text("sb.fw")]);
    assert_eq!(shown.status, 0, "{shown:?}");
    let check = |text: &str| run_with_input(["check", "--model", "sc", "-q", "-"], text.as_bytes());
    assert_eq!(check(STORE_BUFFERING).status, 0);
    assert_eq!(check(&shown.stdout).status, 1, "{shown:?}");
    let formatted = run_with_input(["fmt", "-"], shown.stdout.as_bytes());
    assert_eq!(formatted.stdout, shown.stdout, "it is laid out in the one style");
}

/// The verdicts of the explicit engine under SC, with a short time limit.
fn answers(program: &Program) -> Vec<Option<bool>> {
    let task = Task::new(program, MemoryModel::Sc, program.properties.clone());
    let limits = Limits::starting_now(Some(Duration::from_millis(500)), Some(1 << 30), Default::default());
    let verdicts = check(&Explicit::default(), &task, &limits, &Progress::default(), Confirm::NOTHING);
    let definite = |checked: &Checked| match checked.verdict() {
        Verdict::Safe => Some(true),
        Verdict::Unsafe => Some(false),
        Verdict::Unknown(_) => None,
    };
    verdicts.iter().map(definite).collect()
}

#[test]
fn every_extended_example_can_be_written_and_read_again() {
    let directory = format!("{}/../../examples", env!("CARGO_MANIFEST_DIR"));
    let mut compared = 0;
    for entry in std::fs::read_dir(directory).expect("the examples are there").flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|e| e != "fw") {
            continue;
        }
        let name = path.to_string_lossy().into_owned();
        let Ok(original) = load(&name, &std::fs::read(&path).expect("readable"), None, &[]) else {
            panic!("{name} does not load");
        };
        let options = Options { oracle: OracleName::Enumerate, ..Options::default() };
        let lazy = Lazy { options, ..Lazy::default() };
        let limits = Limits::default();
        let Ok(extended) = lazy.extended(&original.program, &limits, &Progress::default()) else { continue };
        let shown = run(["show", "--extended", "--oracle", "enumerate", &name]);
        assert_eq!(shown.status, 0, "{shown:?}");
        let Ok(again) = load("again.fw", shown.stdout.as_bytes(), None, &[]) else {
            panic!("{name}: what is shown does not load");
        };
        let program = &extended.program;
        // A program that cannot fault has no property `assertions`; a program that may fault has it.
        let stated = |program: &Program| -> Vec<String> {
            program.properties.iter().map(|p| p.name.clone()).collect()
        };
        let (names, names_again) = (stated(program), stated(&again.program));
        let found_again = answers(&again.program);
        for (name_of, expected) in names.iter().zip(answers(program)) {
            let Some(place) = names_again.iter().position(|other| other == name_of) else { continue };
            if let (Some(expected), Some(found)) = (expected, found_again[place]) {
                assert_eq!(found, expected, "{name}, {name_of}");
                compared += 1;
            }
        }
    }
    assert!(compared > 60, "only {compared} properties were compared");
}
