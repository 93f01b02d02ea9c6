//! Reuse of freed memory: random C programs with `malloc`, `free`, comparisons of pointers and two threads. Their verdicts are compared with those of
//! an interpreter whose memory is only a list of blocks that an allocation may return ([`interpret`]).
//!
//! `FENCEWRIGHT_PROGRAMS=N` sets the number of programs; `FENCEWRIGHT_SEED=N` tests only the program with this seed, and prints it.

mod interpret;
mod program;

use fencewright_executions::oracle;
use fencewright_lang::load;
use fencewright_program::{MemoryModel, PropertyKind};
use fencewright_testing::{Random, programs_or, spread};

use interpret::{Found, explore};

/// Maximum number of states that the interpreter visits.
const MOST_STATES: usize = 200_000;
/// Maximum number of objects in programs that compare addresses for order, because all orders of the objects are explored.
const MOST_ORDERED: usize = 4;

/// The outcome of comparing the two verdicts on a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// Translation and interpreter find these violations.
    Agrees(Found),
    /// One of the two does not decide the program.
    Undecided,
}

/// The violations that the translation has; `None` if the program has too many states. An undecided property is an error.
fn found(text: &str) -> Result<Option<Found>, String> {
    let loaded = load("test.c", text.as_bytes(), None, &[])
        .map_err(|error| format!("{}\n{text}", error.sources.render(&error.diagnostics, false)))?;
    let (program, model) = (&loaded.program, MemoryModel::Sc);
    let Ok(reachable) = oracle::explore(program, model, MOST_STATES, &mut || false) else { return Ok(None) };
    let mut found = Found::default();
    for property in &program.properties {
        match (reachable.satisfies(program, model, property), &property.kind) {
            (None, _) => return Err(format!("{} is not decided\n{text}", property.name)),
            (Some(true), _) => {}
            (Some(false), PropertyKind::Assertions) => found.assertions = true,
            (Some(false), _) => found.memory = true,
        }
    }
    Ok(Some(found))
}

/// Compares the verdicts of translation and interpreter. After a violation of `memory` anything may happen, so assertions are compared only if there
/// is none.
fn compare(program: &program::Program) -> Result<Outcome, String> {
    if program.is_ordered() && (program.allocates_in_loops() || program.allocations() > MOST_ORDERED) {
        return Ok(Outcome::Undecided);
    }
    let Some(expected) = explore(program, MOST_STATES) else { return Ok(Outcome::Undecided) };
    let expected = Found { assertions: expected.assertions && !expected.memory, ..expected };
    let text = program::c(program);
    let Some(found) = found(&text)? else { return Ok(Outcome::Undecided) };
    match (Found { assertions: found.assertions && !found.memory, ..found }) == expected {
        true => Ok(Outcome::Agrees(expected)),
        false => Err(format!("expected {expected:?}, found {found:?}\n{text}")),
    }
}

#[test]
fn memory_that_comes_back() {
    let seed = std::env::var("FENCEWRIGHT_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = match seed {
        Some(seed) => seed..seed + 1,
        None => 0..programs_or(400) as u64,
    };
    let count = seeds.end - seeds.start;
    let outcomes = spread(seeds, |seed| {
        let program = program::random(&mut Random::new(seed));
        if count == 1 {
            println!("{}", program::c(&program));
        }
        compare(&program).map_err(|why| format!("seed {seed}: {why}"))
    });
    let wrong: Vec<&String> = outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).collect();
    assert!(wrong.is_empty(), "{} of {count}, the first:\n{}", wrong.len(), wrong[0]);
    let are = |found: Found| outcomes.iter().filter(|one| **one == Ok(Outcome::Agrees(found))).count() as u64;
    let safe = are(Found::default());
    let failing = are(Found { assertions: true, memory: false });
    let broken = are(Found { assertions: false, memory: true });
    println!("{safe} safe, {failing} with failing assertions, {broken} with errors of memory, of {count}");
    assert!(count < 100 || [safe, failing, broken * 10].iter().all(|some| some * 10 > count), "of {count}");
    assert!(count < 100 || (safe + failing + broken) * 10 > count * 9, "too many are not decided");
}
