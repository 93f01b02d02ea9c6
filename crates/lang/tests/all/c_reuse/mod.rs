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

/// The violations that the translation has under a memory model, and whether all properties are decided; `None` if the program has too many states.
fn found(text: &str, model: MemoryModel) -> Result<Option<(Found, bool)>, String> {
    let loaded = load("test.c", text.as_bytes(), None, &[])
        .map_err(|error| format!("{}\n{text}", error.sources.render(&error.diagnostics, false)))?;
    let program = &loaded.program;
    let reachable = match oracle::explore(program, model, MOST_STATES, &mut || false) {
        Ok(reachable) => reachable,
        Err(oracle::Incomplete::Limit) => return Ok(Some((Found::default(), false))),
        Err(_) => return Ok(None),
    };
    let (mut found, mut decided) = (Found::default(), true);
    for property in &program.properties {
        match (reachable.satisfies(program, model, property), &property.kind) {
            (None, _) => decided = false,
            (Some(true), _) => {}
            (Some(false), PropertyKind::Assertions) => found.assertions = true,
            (Some(false), _) => found.memory = true,
        }
    }
    Ok(Some((found, decided)))
}

/// Compares the verdicts of translation and interpreter. After a violation of `memory` anything may happen, so assertions are compared only if there
/// is none.
fn compare(program: &program::Program) -> Result<Outcome, String> {
    if program.is_ordered() && (program.allocates_in_loops() || program.allocations() > MOST_ORDERED) {
        return Ok(Outcome::Undecided);
    }
    let Some(expected) = explore(program, false, MOST_STATES) else { return Ok(Outcome::Undecided) };
    let expected = Found { assertions: expected.assertions && !expected.memory, ..expected };
    let text = program::c(program);
    let Some((found, decided)) = found(&text, MemoryModel::Sc)? else { return Ok(Outcome::Undecided) };
    if !decided {
        return Err(format!("not decided under sc\n{text}"));
    }
    match (Found { assertions: found.assertions && !found.memory, ..found }) == expected {
        true => Ok(Outcome::Agrees(expected)),
        false => Err(format!("expected {expected:?}, found {found:?}\n{text}")),
    }
}

/// Compares the verdicts under PSO. The translation may leave open what late stores do, but it finds every violation that they cause or is undecided,
/// and finds no others.
fn compare_late(program: &program::Program) -> Result<Late, String> {
    if program.is_ordered() {
        return Ok(Late::Skipped);
    }
    let Some(expected) = explore(program, true, MOST_STATES) else { return Ok(Late::Skipped) };
    let text = program::c(program);
    let Some((found, decided)) = found(&text, MemoryModel::Pso)? else { return Ok(Late::Skipped) };
    let spurious =
        found.memory && !expected.memory || found.assertions && !expected.memory && !expected.assertions;
    let missed =
        decided && (expected.memory && !found.memory || expected.assertions && found == Found::default());
    match (spurious || missed, decided, expected == Found::default()) {
        (true, ..) => {
            Err(format!("under pso expected {expected:?}, found {found:?}, decided: {decided}\n{text}"))
        }
        (_, true, true) => Ok(Late::Safe),
        (_, true, false) => Ok(Late::Found),
        (_, false, true) => Ok(Late::OnlyUnknown),
        (_, false, false) => Ok(Late::Unknown),
    }
}

/// The outcome of comparing the verdicts under PSO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Late {
    /// Too many states, or not compared.
    Skipped,
    /// Both find no violation.
    Safe,
    /// Both find a violation.
    Found,
    /// There is a violation, and the translation leaves some property open.
    Unknown,
    /// There is no violation, but the translation leaves some property open: no later use of the freed memory makes the program misbehave.
    OnlyUnknown,
}

#[test]
fn stores_that_come_late() {
    let seed = std::env::var("FENCEWRIGHT_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = match seed {
        Some(seed) => seed..seed + 1,
        None => 0..programs_or(400) as u64,
    };
    let count = seeds.end - seeds.start;
    let outcomes = spread(seeds, |seed| {
        let program = program::random(&mut Random::new(seed));
        compare_late(&program).map_err(|why| format!("seed {seed}: {why}"))
    });
    let wrong: Vec<&String> = outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).collect();
    assert!(wrong.is_empty(), "{} of {count}, the first:\n{}", wrong.len(), wrong[0]);
    let are = |late: Late| outcomes.iter().filter(|one| **one == Ok(late)).count() as u64;
    let [safe, found, unknown, only] = [Late::Safe, Late::Found, Late::Unknown, Late::OnlyUnknown].map(are);
    println!("{safe} safe, {found} found, {unknown} unknown with a violation, {only} without, of {count}");
    assert!(count < 100 || safe * 10 > count && found * 10 > count && only * 5 < count, "of {count}");
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
