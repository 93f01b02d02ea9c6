//! Programs with separated stores: on random programs TSO and PSO reach the same states of the reference semantics up to barriers, and every property
//! has the same verdict.
//!
//! `FENCEWRIGHT_LONG_TESTS=1` takes 200,000 programs.

use std::collections::HashSet;

use fencewright_executions::oracle::{Reachable, explore};
use fencewright_program::reference::Buffered;
use fencewright_program::{MemoryModel, Program, State};
use fencewright_testing::{Random, Shape, contend, program, separate};
use fencewright_transform::separated::stores_are_separated;

const MOST_STATES: usize = 1_000;

fn without_barriers(state: &State) -> State {
    let mut state = state.clone();
    state.buffers.iter_mut().for_each(|buffer| buffer.retain(|entry| *entry != Buffered::Barrier));
    state
}

fn random_program(seed: u64) -> Program {
    let mut random = Random::new(seed);
    let shape = Shape { corners: seed % 5 == 4, length: 6, ..Shape::default() };
    let mut program = program(&mut random, shape);
    if !random.one_in(4) {
        contend(&mut random, &mut program, 2);
    }
    separate(&mut random, &mut program);
    program
}

fn reached(program: &Program) -> Option<[Reachable; 2]> {
    let explored = |model| explore(program, model, MOST_STATES, &mut || false).ok();
    Some([explored(MemoryModel::Tso)?, explored(MemoryModel::Pso)?])
}

/// Whether both models reach the same states up to barriers, and the same deadlocks.
fn same(program: &Program, [tso, pso]: &[Reachable; 2]) -> bool {
    let all = |reachable: &Reachable| -> [HashSet<State>; 2] {
        [&reachable.states, &reachable.deadlocks].map(|states| states.iter().map(without_barriers).collect())
    };
    let verdicts = |reachable: &Reachable, model| -> Vec<Option<bool>> {
        program.properties.iter().map(|p| reachable.satisfies(program, model, p)).collect()
    };
    all(tso) == all(pso) && verdicts(tso, MemoryModel::Tso) == verdicts(pso, MemoryModel::Pso)
}

#[test]
fn where_stores_are_separated_tso_and_pso_are_the_same() {
    let seeds = if std::env::var_os("FENCEWRIGHT_LONG_TESTS").is_some() { 200_000 } else { 3_000 };
    let (mut equal, mut buffered, mut different) = (0, 0, 0);
    for seed in 0..seeds {
        let program = random_program(seed);
        let Some(reached) = reached(&program) else { continue };
        if stores_are_separated(&program) {
            assert!(same(&program, &reached), "seed {seed}: {program:?}");
            equal += 1;
            // Some programs must have two stores in a buffer at once, so that the test is not only about empty buffers.
            buffered += usize::from(reached[0].states.iter().any(|s| s.buffers.iter().any(|b| b.len() > 1)));
        } else {
            different += usize::from(!same(&program, &reached));
        }
    }
    println!(
        "{equal} programs with separated stores, {buffered} with long buffers; {different} others differ"
    );
    assert!(equal > seeds as usize / 4, "only {equal} programs have separated stores");
    assert!(buffered > seeds as usize / 50, "only {buffered} of them buffer two stores");
    assert!(different > seeds as usize / 100, "only {different} of the others differ: PSO is hardly tested");
}
