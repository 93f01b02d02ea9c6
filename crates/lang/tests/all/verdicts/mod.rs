//! Verdicts on small C programs, found by exploring the reference semantics.

use fencewright_executions::oracle::{self, Incomplete};
use fencewright_lang::options::Options;
use fencewright_lang::{Loader, Stop, fw};
use fencewright_program::{MemoryModel, Property};

pub const HEADERS: &str = "#include <pthread.h>\n#include <stdatomic.h>\n#include <stdint.h>\n#include <stdlib.h>\n#include <assert.h>\n";
const MODELS: [MemoryModel; 3] = [MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Pso];

/// The verdicts on a property under SC, TSO and PSO: `s` for safe, `u` for unsafe.
pub fn verdicts(text: &str, options: &Options, property: &str) -> String {
    verdicts_of_small(text, options, property).unwrap_or_else(|| panic!("too many states\n{text}"))
}

/// The same; `None` if the program has too many states.
pub fn verdicts_of_small(text: &str, options: &Options, property: &str) -> Option<String> {
    let text = format!("{HEADERS}{text}");
    let open = |name: &str| Err(format!("there is no `{name}`"));
    let loader = Loader { front_end: None, options, stop: &Stop::never(), open: &open };
    let loaded = match loader.load("test.c", text.as_bytes()) {
        Ok(loaded) => loaded,
        Err(fencewright_lang::load::Failure::Wrong(error)) => {
            panic!("{}\n{text}", error.sources.render(&error.diagnostics, false))
        }
        Err(_) => unreachable!("nobody stops it"),
    };
    let (program, deadlock) = (&loaded.program, Property::deadlock());
    let property = match property {
        "deadlock" => Some(&deadlock),
        name => program.properties.iter().find(|property| property.name == name),
    };
    let property = property.unwrap_or_else(|| panic!("no such property\n{}", fw::print(&loaded.file)));
    let verdict = |model: &MemoryModel| {
        let reachable = match oracle::explore(program, *model, 200_000, &mut || false) {
            Err(Incomplete::TooManyStates) => return None,
            reachable => reachable,
        };
        let reachable =
            reachable.unwrap_or_else(|why| panic!("{why:?}\n{text}\n{}", fw::print(&loaded.file)));
        Some(match reachable.satisfies(program, *model, property) {
            Some(true) => 's',
            Some(false) => 'u',
            None => '?',
        })
    };
    MODELS.iter().map(verdict).collect()
}

/// Checks the verdicts on the assertions of a program.
#[track_caller]
pub fn assertions(text: &str, expected: &str) {
    assert_eq!(verdicts(text, &Options::default(), "assertions"), expected, "{text}");
}

/// Checks the verdicts on the memory accesses of a program.
#[track_caller]
pub fn memory(text: &str, expected: &str) {
    assert_eq!(verdicts(text, &Options::default(), "memory"), expected, "{text}");
}
