//! Verdicts on small C programs, found by exploring the reference semantics.

use fencewright_executions::oracle::{self, Incomplete};
use fencewright_lang::load::Failure;
use fencewright_lang::options::Options;
use fencewright_lang::{Loaded, Loader, Stop, fw};
use fencewright_program::{MemoryModel, Property};

pub const HEADERS: &str = "#include <pthread.h>\n#include <stdatomic.h>\n#include <stdint.h>\n#include <stdlib.h>\n#include <assert.h>\n";
const MODELS: [MemoryModel; 3] = [MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Pso];

/// Reads a program, which must be accepted.
pub fn load(text: &str, options: &Options) -> Loaded {
    let open = |name: &str| Err(format!("there is no `{name}`"));
    let loader = Loader { front_end: None, options, stop: &Stop::never(), open: &open };
    match loader.load("test.c", text.as_bytes()) {
        Ok(loaded) => loaded,
        Err(Failure::Wrong(error)) => panic!("{}\n{text}", error.sources.render(&error.diagnostics, false)),
        Err(Failure::Stopped(_)) => unreachable!("nobody stops it"),
    }
}

/// A program with two threads that start immediately, and with statements that `main` executes after both have ended.
pub fn two(globals: &str, one: &str, other: &str, end: &str) -> String {
    format!(
        "{globals}
         void *one(void *u) {{ {one} return 0; }}
         void *other(void *u) {{ {other} return 0; }}
         int main(void) {{
             pthread_t p, q;
             pthread_create(&p, 0, one, 0);
             pthread_create(&q, 0, other, 0);
             pthread_join(p, 0);
             pthread_join(q, 0);
             {end}
             return 0;
         }}"
    )
}

/// The verdicts on a property under SC, TSO and PSO: `s` for safe, `u` for unsafe.
pub fn verdicts(text: &str, options: &Options, property: &str) -> String {
    verdicts_of_small(text, options, property).unwrap_or_else(|| panic!("too many states\n{text}"))
}

/// The same; `None` if the program has too many states.
pub fn verdicts_of_small(text: &str, options: &Options, property: &str) -> Option<String> {
    let text = format!("{HEADERS}{text}");
    let loaded = load(&text, options);
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
