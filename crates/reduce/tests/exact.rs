//! Reduced programs against the programs they were made from, on random programs: under SC `P_M` reaches, up to the first overflow, exactly
//! what `P` reaches on the reference semantics with bounded buffers, and it has an overflow exactly if `P` has one.

mod common;

use std::collections::HashSet;

use common::{bounded, bounds, random_program};
use fencewright_executions::oracle::{explore, initial_states};
use fencewright_kit::validate;
use fencewright_program::{EventKind, MemoryModel, Program, Property, Reference, State, Trace};
use fencewright_reduce::{Bounds, reduce};
use fencewright_testing::{Random, programs_or};

const MOST_STATES: usize = 3_000;

/// How often something was seen, so that a test that compares nothing fails.
#[derive(Debug, Default)]
struct Seen {
    compared: usize,
    overflows: usize,
    buffered: usize,
    barriers: usize,
    deadlocks: usize,
    faults: usize,
    locks: usize,
    refused: usize,
}

/// Compares one program with what it is reduced to.
fn compare(program: &Program, model: MemoryModel, bounds: &Bounds, context: &str, seen: &mut Seen) {
    let Some(expected) = bounded(program, model, bounds, MOST_STATES) else { return };
    let reduced = match reduce(program, model, bounds) {
        Ok(reduced) => reduced,
        Err(_) => {
            seen.refused += 1;
            return;
        }
    };
    assert_eq!(validate(&reduced.program), Ok(()), "{context}");
    let reachable = explore(&reduced.program, MemoryModel::Sc, 60 * MOST_STATES, &mut || false);
    let Ok(reachable) = reachable else { return };
    let faults = Property::assertions();
    let none = reachable.satisfies(&reduced.program, MemoryModel::Sc, &faults);
    assert_eq!(none, Some(true), "{context}: an action of P_M faults");
    let found: HashSet<State> = reachable.states.iter().filter_map(|s| reduced.state(s)).collect();
    if let Some(lost) = expected.reachable.states.difference(&found).next() {
        panic!("{context}: lost {lost:?}");
    }
    if let Some(invented) = found.difference(&expected.reachable.states).next() {
        panic!("{context}: invented {invented:?}");
    }
    let overflow = reachable.states.iter().any(|s| reduced.state(s).is_none());
    assert_eq!(overflow, expected.overflow, "{context}: overflow");
    for property in &program.properties {
        let mapped = reduced.property(property);
        let here = reachable.satisfies(&reduced.program, MemoryModel::Sc, &mapped);
        let there = expected.reachable.satisfies(program, model, property);
        assert_eq!(here, there, "{context}: property {}", property.name);
    }
    count(program, model, &expected.reachable, seen);
    seen.compared += 1;
    seen.overflows += usize::from(overflow);
}

fn count(
    program: &Program,
    model: MemoryModel,
    reachable: &fencewright_executions::oracle::Reachable,
    seen: &mut Seen,
) {
    use fencewright_program::reference::Buffered;
    let reference = Reference::new(program, model);
    let any = |f: &dyn Fn(&State) -> bool| usize::from(reachable.states.iter().any(f));
    seen.buffered += any(&|s| s.buffers.iter().any(|b| !b.is_empty()));
    seen.barriers += any(&|s| s.buffers.iter().any(|b| b.contains(&Buffered::Barrier)));
    seen.faults += any(&|s| reference.has_fault(s) && s.buffers.iter().any(|b| !b.is_empty()));
    seen.locks += any(&|s| s.lock.is_some() && s.buffers.iter().any(|b| !b.is_empty()));
    seen.deadlocks += usize::from(!reachable.deadlocks.is_empty());
}

fn compare_all(first_seed: u64, programs: usize, model: MemoryModel) -> Seen {
    let mut seen = Seen::default();
    for seed in first_seed..first_seed + programs as u64 {
        let mut random = Random::new(seed);
        let program = random_program(&mut random, seed);
        let bounds = bounds(&mut random, &program, model);
        compare(&program, model, &bounds, &format!("seed {seed}, {model:?}, {bounds:?}"), &mut seen);
    }
    println!("{model:?}: {seen:?}");
    seen
}

#[test]
fn tso_programs_reach_what_bounded_buffers_reach() {
    let programs = programs_or(1_500);
    let seen = compare_all(10_000, programs, MemoryModel::Tso);
    assert!(seen.compared > programs / 2 && seen.overflows > programs / 20, "{seen:?}");
    assert!(seen.buffered > programs / 4 && seen.faults > programs / 20, "{seen:?}");
    assert!(seen.locks > programs / 50 && seen.deadlocks > programs / 50, "{seen:?}");
}

#[test]
fn pso_programs_reach_what_bounded_buffers_reach() {
    let programs = programs_or(2_000);
    let seen = compare_all(20_000, programs, MemoryModel::Pso);
    assert!(seen.compared > programs / 2 && seen.overflows > programs / 10, "{seen:?}");
    assert!(seen.buffered > programs / 4 && seen.faults > programs / 20, "{seen:?}");
    assert!(seen.locks > programs / 50 && seen.barriers > programs / 20, "{seen:?}");
}

#[test]
fn an_execution_of_the_reduced_program_is_one_of_the_original() {
    let (mut compared, mut flushes) = (0, 0);
    for seed in 0..programs_or(1_500) as u64 {
        let mut random = Random::new(40_000 + seed);
        let program = random_program(&mut random, seed);
        let model = *random.pick(&[MemoryModel::Tso, MemoryModel::Pso]);
        let bounds = bounds(&mut random, &program, model);
        let Ok(reduced) = reduce(&program, model, &bounds) else { continue };
        let Some((trace, last)) = walk(&mut random, &reduced.program) else { continue };
        let Some(expected) = reduced.state(&last) else { continue };
        let mapped = reduced.trace(&program, &trace).expect("it is an execution");
        flushes += mapped.events.iter().filter(|e| matches!(e.kind, EventKind::Flush { .. })).count();
        let reference = Reference::new(&program, model);
        let mut state = reference.initial(mapped.registers, mapped.memory).expect("it starts as P does");
        for event in &mapped.events {
            state = reference.step(&state, event).expect("each step is one of P").0;
        }
        assert_eq!(state, expected, "seed {seed}");
        compared += 1;
    }
    assert!(compared > 300 && flushes > 300, "{compared} executions, {flushes} flushes");
}

/// A random execution under SC, and where it leads.
fn walk(random: &mut Random, program: &Program) -> Option<(Trace, State)> {
    let reference = Reference::new(program, MemoryModel::Sc);
    let first = initial_states(&reference, 100, &mut || false).ok()?;
    let mut state = random.pick(&first).clone();
    let (registers, memory) = (state.registers.clone(), state.memory.clone());
    let mut events = Vec::new();
    for _ in 0..30 {
        let steps = reference.candidates(&state, &[0, 1]).into_iter();
        let steps: Vec<_> = steps.filter_map(|e| Some((reference.step(&state, &e).ok()?.0, e))).collect();
        if steps.is_empty() {
            break;
        }
        let (next, event) = random.pick(&steps).clone();
        state = next;
        events.push(event);
    }
    Some((Trace { registers, memory, events }, state))
}
