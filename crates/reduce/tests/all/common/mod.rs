//! Shared by the tests of reduced programs: random programs, random bounds, and the reference semantics with bounded buffers.

#![allow(dead_code)]

use std::collections::{HashSet, VecDeque};

use fencewright_executions::oracle::{Reachable, initial_states};
use fencewright_program::reference::{Buffered, Refusal};
use fencewright_program::{
    Action, Address, Expr, MemoryModel, Op, Program, Reference, RegisterId, State, VariableId,
};
use fencewright_reduce::Bounds;
use fencewright_testing::{Random, Shape, group, program, separate};

/// The reachable states of a program with bounded buffers.
pub struct Bounded {
    pub reachable: Reachable,
    /// Whether some store did not fit.
    pub overflow: bool,
}

/// A random program with every kind of statement; some have more stores, or more store fences.
pub fn random_program(random: &mut Random, seed: u64) -> Program {
    let shape = Shape { loops: seed.is_multiple_of(2), corners: seed % 3 == 2, ..Shape::default() };
    let mut program = program(random, shape);
    match seed % 5 {
        0 => group(random, &mut program),
        1 => separate(random, &mut program),
        2 | 3 => read_own_stores(random, &mut program),
        _ => {}
    }
    program
}

/// Makes threads load values that they stored: most steps become stores to one variable, or loads of it.
fn read_own_stores(random: &mut Random, program: &mut Program) {
    for thread in &mut program.threads {
        let variable = random.below(program.variables.len());
        let indices = program.variables[variable].indices;
        let registers = thread.registers.len();
        for edge in &mut thread.edges {
            if matches!(edge.action, Action::Lock | Action::Unlock) || random.one_in(4) {
                continue;
            }
            let mut register = || RegisterId(random.below(registers) as u32);
            let (target, index) = (register(), register());
            let index = indices.map(|range| match random.one_in(4) {
                true => Expr::Leaf(index),
                false => Expr::Const(range.low),
            });
            let address = Address { variable: VariableId(variable as u32), index };
            edge.action = Action::Op(match random.one_in(2) {
                true => Op::Store(address, Expr::Const(random.between(0, 3))),
                false => Op::Load(target, address),
            });
        }
    }
}

/// Random bounds, small enough for overflows, of every kind that the model supports.
pub fn bounds(random: &mut Random, program: &Program, model: MemoryModel) -> Bounds {
    let k = 1 + random.below(3) as u32;
    match model {
        MemoryModel::Pso if !random.one_in(3) => {
            Bounds::PerVariable(program.variables.iter().map(|_| random.below(4) as u32).collect())
        }
        _ => Bounds::PerThread(k),
    }
}

/// Whether the buffers of a state respect the bounds.
fn fits(program: &Program, bounds: &Bounds, state: &State) -> bool {
    state.buffers.iter().all(|buffer| {
        let cells = || {
            buffer.iter().filter_map(|entry| match entry {
                Buffered::Store { cell, .. } => Some(*cell),
                Buffered::Barrier => None,
            })
        };
        match bounds {
            Bounds::PerThread(k) => cells().count() <= *k as usize,
            Bounds::PerVariable(each) => cells().all(|cell| {
                let variable = program.variables.iter().position(|v| v.cells().contains(&(cell as usize)));
                let bound = each[variable.expect("each cell belongs to a variable")];
                cells().filter(|c| *c == cell).count() <= bound as usize
            }),
        }
    })
}

/// All states that the reference semantics reaches without exceeding the bounds; `None` if there are too many. As in `P_M`, a thread has not ended
/// while its stores are pending: a state in which all threads have ended is a deadlock if one of them still holds the lock and stores are pending.
pub fn bounded(program: &Program, model: MemoryModel, bounds: &Bounds, most: usize) -> Option<Bounded> {
    let reference = Reference::new(program, model);
    let first = initial_states(&reference, most, &mut || false).ok()?;
    let mut states: HashSet<State> = first.iter().cloned().collect();
    let mut queue: VecDeque<State> = first.into();
    let (mut deadlocks, mut overflow) = (HashSet::new(), false);
    while let Some(state) = queue.pop_front() {
        if states.len() > most || reference.has_unbounded_choice(&state) {
            return None;
        }
        let mut moves = false;
        for event in reference.candidates(&state, &[]) {
            moves |= !matches!(reference.step(&state, &event), Err(Refusal::Disabled(_)));
            match reference.step(&state, &event) {
                Ok((next, _)) if !fits(program, bounds, &next) => overflow = true,
                Ok((next, _)) => {
                    if states.insert(next.clone()) {
                        queue.push_back(next);
                    }
                }
                Err(Refusal::Disabled(_)) => {}
                Err(Refusal::Limit(..)) => return None,
            }
        }
        let pending = state.buffers.iter().any(|buffer| !buffer.is_empty());
        if reference.is_deadlock(&state) || pending && !moves {
            deadlocks.insert(state);
        }
    }
    Some(Bounded { reachable: Reachable { states, deadlocks }, overflow })
}
