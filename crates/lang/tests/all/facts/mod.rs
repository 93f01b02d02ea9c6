//! Checks facts about small programs under SC, TSO and PSO, by exploring the reference semantics.
#![allow(dead_code)]

use fencewright_executions::oracle::explore;
use fencewright_lang::{Loader, Options, Stop, load};
use fencewright_program::{MemoryModel, Program, Property};

pub fn program(text: &str) -> Program {
    match load("test.fw", text.as_bytes(), None, &[]) {
        Ok(loaded) => loaded.program,
        Err(error) => panic!("{}", error.sources.render(&error.diagnostics, false)),
    }
}

pub fn holds(program: &Program, model: MemoryModel, property: &Property) -> bool {
    let reachable = explore(program, model, 100_000, &mut || false).expect("a small state space");
    reachable.satisfies(program, model, property).expect("small values")
}

/// Checks that all properties of the program hold exactly under the given models.
pub fn check(text: &str, expected: &[MemoryModel]) {
    let program = program(text);
    assert!(!program.properties.is_empty(), "no property in {text}");
    for model in MemoryModel::ALL {
        let all = program.properties.iter().all(|p| holds(&program, model, p));
        assert_eq!(all, expected.contains(&model), "{model:?}: {text}");
    }
}

/// The program, read as for the property `deadlock`.
pub fn blocking(text: &str) -> Result<Program, String> {
    let mut options = Options::default();
    options.ask(&["deadlock".into()]);
    let open = |_: &str| Err(String::new());
    let loader = Loader { front_end: None, options: &options, stop: &Stop::never(), open: &open };
    match loader.load("test.fw", text.as_bytes()) {
        Ok(loaded) => Ok(loaded.program),
        Err(failure) => Err(format!("{failure:?}")),
    }
}

#[track_caller]
pub fn check_deadlock(text: &str, free: bool) {
    let program = blocking(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    for model in MemoryModel::ALL {
        assert_eq!(holds(&program, model, &Property::deadlock()), free, "{model:?}: {text}");
    }
}

pub const ALL: &[MemoryModel] = &[MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Pso];
pub const SC: &[MemoryModel] = &[MemoryModel::Sc];
pub const SC_TSO: &[MemoryModel] = &[MemoryModel::Sc, MemoryModel::Tso];
pub const NONE: &[MemoryModel] = &[];

/// The errors of a program, each as `line:column message [advice]`.
pub fn errors(text: &str) -> Vec<String> {
    let Err(error) = load("test.fw", text.as_bytes(), None, &[]) else { return Vec::new() };
    let describe = |d: &fencewright_lang::Diagnostic| {
        let at = error.sources.position(d.span);
        let help = d.help.as_ref().map(|help| format!(" [{help}]")).unwrap_or_default();
        format!("{}:{} {}{help}", at.line, at.column, d.message)
    };
    error.diagnostics.iter().map(describe).collect()
}

/// Checks that the program is refused with this single error.
#[track_caller]
pub fn refused(text: &str, expected: &str) {
    assert_eq!(errors(text), [expected], "{text}");
}
