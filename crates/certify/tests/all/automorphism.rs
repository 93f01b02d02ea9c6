//! Exchanges of threads that the checker accepts commute with the steps of the reference semantics. The tests try all families that could be stated
//! about a program, right or wrong.

use std::collections::{BTreeSet, HashSet};

use fencewright_certify::automorphism::{Family, Live, Reductions};
use fencewright_lang::load;
use fencewright_program::reference::Buffered;
use fencewright_program::{Init, LocationId, MemoryModel, Program, Property, Reference, State, ThreadId};
use fencewright_testing::Random;
use fencewright_testing::families::family;

fn program(text: &str) -> Program {
    load("family.fw", text.as_bytes(), None, &[]).unwrap_or_else(|e| panic!("{text}\n{e:?}")).program
}

/// Makes every register live everywhere.
fn live(program: &Program) -> Vec<Vec<Vec<u32>>> {
    let registers = |t: &fencewright_program::Thread| (0..t.registers.len() as u32).collect::<Vec<_>>();
    program.threads.iter().map(|t| vec![registers(t); t.locations.len()]).collect()
}

/// Whether the family is accepted where these registers are live and no edge is local.
fn check(family: &Family, program: &Program, properties: &[Property], live: &Live) -> Result<(), String> {
    let local: Vec<Vec<bool>> = program.threads.iter().map(|t| vec![false; t.edges.len()]).collect();
    family.check(program, properties, Reductions { live, local: &local })
}

fn swap<T: PartialEq + Copy>([a, b]: [T; 2], of: T) -> T {
    if of == a {
        b
    } else if of == b {
        a
    } else {
        of
    }
}

/// The image of a state under the exchange of the first two threads of a family, computed independently of the checker.
fn image(program: &Program, model: MemoryModel, family: &Family, state: &State) -> State {
    let threads = [family.threads[0] as usize, family.threads[1] as usize];
    let numbers = [family.numbers[0], family.numbers[1]];
    let variable =
        |cell: usize| program.variables.iter().position(|v| v.cells().contains(&cell)).expect("a cell");
    let cell = |c: usize| match program.variables[variable(c)].indices {
        Some(range) if family.indices.contains(&(variable(c) as u32)) => {
            let base = program.variables[variable(c)].base as usize;
            let index = swap(numbers, range.low + (c - base) as i64);
            base + (index - range.low) as usize
        }
        _ => c,
    };
    let value =
        |c: usize, v: i64| if family.values.contains(&(variable(c) as u32)) { swap(numbers, v) } else { v };
    let mut next = state.clone();
    for (t, registers) in state.registers.iter().enumerate() {
        let target = swap(threads, t);
        next.locations[target] = state.locations[t];
        let number = |r: usize| family.registers.contains(&(t as u32, state.locations[t].0, r as u32));
        let register = |(r, &v): (usize, &i64)| if number(r) { swap(numbers, v) } else { v };
        next.registers[target] = registers.iter().enumerate().map(register).collect();
    }
    for (t, buffer) in state.buffers.iter().enumerate() {
        let entry = |entry: &Buffered| match *entry {
            Buffered::Store { cell: c, value: v } => {
                Buffered::Store { cell: cell(c as usize) as u32, value: value(c as usize, v) }
            }
            Buffered::Barrier => Buffered::Barrier,
        };
        let mut image: Vec<Buffered> = buffer.iter().map(entry).collect();
        if model == MemoryModel::Pso {
            for part in image.split_mut(|e| *e == Buffered::Barrier) {
                part.sort_by_key(|e| if let Buffered::Store { cell, .. } = e { *cell } else { 0 });
            }
        }
        next.buffers[swap(threads, t)] = image;
    }
    for (c, &v) in state.memory.iter().enumerate() {
        next.memory[cell(c)] = value(c, v);
    }
    next.lock = state.lock.map(|t| ThreadId(swap(threads, t.index()) as u32));
    next
}

/// The initial state of a program with fixed initial values.
fn initial(program: &Program, reference: &Reference<'_>) -> State {
    let value = |init: &Init| if let Init::Value(v) = init { *v } else { panic!("a value") };
    let memory = program.variables.iter().flat_map(|v| &v.init).map(value).collect();
    let registers = program.threads.iter().map(|t| t.registers.iter().map(|r| value(&r.init)).collect());
    reference.initial(registers.collect(), memory).expect("it is a state")
}

fn successors(reference: &Reference<'_>, state: &State) -> HashSet<State> {
    let events = reference.candidates(state, &[]);
    events.iter().filter_map(|event| reference.step(state, event).ok()).map(|(next, _)| next).collect()
}

/// Some reachable states, a few hundred at most.
fn reachable(reference: &Reference<'_>, first: State) -> Vec<State> {
    let mut seen = HashSet::from([first.clone()]);
    let mut states = vec![first];
    let mut next = 0;
    while next < states.len() && states.len() < 300 {
        for state in successors(reference, &states[next].clone()) {
            if seen.insert(state.clone()) {
                states.push(state);
            }
        }
        next += 1;
    }
    states
}

/// All families that could be stated about the first two threads of a program.
fn sayings(program: &Program) -> Vec<Family> {
    let variables = program.variables.len();
    let registers = program.threads.iter().map(|t| t.registers.len()).max().unwrap_or(0);
    let number = |t: usize| program.threads[t].family.as_ref().expect("an instance").1;
    let choose = |n: usize, subset: usize| (0..n as u32).filter(move |v| subset >> v & 1 == 1);
    let arrays =
        |subset: usize| choose(variables, subset).all(|v| program.variables[v as usize].indices.is_some());
    let mut all = Vec::new();
    for indices in (0..1 << variables).filter(|&subset| arrays(subset)) {
        for values in 0..1 << variables {
            for subset in 0..1usize << registers {
                let mut kinds = BTreeSet::new();
                for (t, thread) in program.threads.iter().enumerate() {
                    for location in 0..thread.locations.len() as u32 {
                        let own = choose(thread.registers.len(), subset);
                        kinds.extend(own.map(|r| (t as u32, location, r)));
                    }
                }
                all.push(Family {
                    threads: vec![0, 1],
                    numbers: vec![number(0), number(1)],
                    indices: choose(variables, indices).collect(),
                    values: choose(variables, values).collect(),
                    registers: kinds,
                });
            }
        }
    }
    all
}

#[test]
fn accepted_automorphisms_commute_with_steps() {
    let (mut accepted, mut refused) = (0, 0);
    for seed in 0..120 {
        let mut random = Random::new(40_000 + seed);
        let text = family(&mut random, seed % 3 == 0);
        let program = program(&text);
        let live = live(&program);
        let model = *random.pick(&MemoryModel::ALL);
        let reference = Reference::new(&program, model);
        let first = initial(&program, &reference);
        let states = reachable(&reference, first.clone());
        for family in sayings(&program) {
            if check(&family, &program, &[], &live).is_err() {
                refused += 1;
                continue;
            }
            accepted += 1;
            let image = |state: &State| image(&program, model, &family, state);
            assert_eq!(image(&first), first, "seed {seed}: {family:?}\n{text}");
            for state in &states {
                let images: HashSet<State> = successors(&reference, state).iter().map(image).collect();
                let same = successors(&reference, &image(state)) == images;
                assert!(same, "seed {seed}, {model:?}: {family:?}\n{state:?}\n{text}");
            }
        }
    }
    assert!(accepted > 50 && refused > 1_000, "{accepted} accepted, {refused} refused");
}

/// A small queue lock with its correct family.
fn queue() -> (Program, Family) {
    let program = program(
        "shared tail, go[1..=2];
         thread p[me in 1..=2] { var t; atomic { t = tail; tail = me; } if t != 0 { await go[me] == 1; } l: skip; tail = 0; }
         forbid i < j in 1..=2: p[i]@l && p[j]@l;",
    );
    let registers = program
        .threads
        .iter()
        .enumerate()
        .flat_map(|(t, thread)| (0..thread.locations.len() as u32).map(move |l| (t as u32, l, 0)));
    let family = Family {
        threads: vec![0, 1],
        numbers: vec![1, 2],
        indices: BTreeSet::from([1]),
        values: BTreeSet::from([0]),
        registers: registers.collect(),
    };
    (program, family)
}

#[test]
fn incomplete_and_excessive_families_are_rejected() {
    let (program, family) = queue();
    let live = live(&program);
    let refused =
        |family: Family, properties: &[Property]| check(&family, &program, properties, &live).is_err();
    assert_eq!(check(&family, &program, &program.properties, &live), Ok(()));
    // The same family with its numbers swapped describes the same exchange.
    assert!(!refused(Family { numbers: vec![2, 1], ..family.clone() }, &[]));
    assert!(refused(Family { numbers: vec![0, 1], ..family.clone() }, &[]));
    assert!(refused(Family { numbers: vec![1, 1], ..family.clone() }, &[]));
    assert!(refused(Family { threads: vec![0, 0], ..family.clone() }, &[]));
    assert!(refused(Family { threads: vec![0, 2], ..family.clone() }, &[]));
    assert!(refused(Family { indices: BTreeSet::new(), ..family.clone() }, &[]));
    assert!(refused(Family { values: BTreeSet::new(), ..family.clone() }, &[]));
    assert!(refused(Family { values: BTreeSet::from([0, 1]), ..family.clone() }, &[]));
    assert!(refused(Family { registers: BTreeSet::new(), ..family.clone() }, &[]));
    // `tail` is not an array, and there is no third variable.
    assert!(refused(Family { indices: BTreeSet::from([0, 1]), ..family.clone() }, &[]));
    assert!(refused(Family { indices: BTreeSet::from([1, 2]), ..family.clone() }, &[]));
    let mut one_location_less = family.clone();
    one_location_less.registers.pop_first();
    assert!(refused(one_location_less, &[]));
}

#[test]
fn dead_registers_have_no_kind_and_are_not_read() {
    let (program, family) = queue();
    let everything = live(&program);
    // The register t is dead after a fault, and also at the entry, because it is written there before it is read.
    let dead = [program.threads[0].entry, program.threads[0].fault];
    let mut fewer = everything.clone();
    for thread in &mut fewer {
        dead.iter().for_each(|location| thread[location.index()].retain(|&r| r != 0));
    }
    let mut without = family.clone();
    without.registers.retain(|&(_, l, _)| !dead.contains(&LocationId(l)));
    assert_eq!(check(&without, &program, &program.properties, &fewer), Ok(()));
    // The register t is not dead where it is read.
    let mut none = everything;
    none.iter_mut().flatten().for_each(|registers| registers.retain(|&r| r != 0));
    let nothing = Family { registers: BTreeSet::new(), ..family };
    assert!(check(&nothing, &program, &program.properties, &none).is_err());
}

#[test]
fn properties_that_name_threads_must_name_all_alike() {
    let accepted = |property: &str| {
        let text = format!(
            "shared tail, go[1..=2]; thread p[me in 1..=2] {{ tail = me; l: go[me] = 1; }} {property}"
        );
        let program = program(&text);
        let family = Family {
            threads: vec![0, 1],
            numbers: vec![1, 2],
            indices: BTreeSet::from([1]),
            values: BTreeSet::from([0]),
            registers: BTreeSet::new(),
        };
        check(&family, &program, &program.properties, &live(&program)).is_ok()
    };
    assert!(accepted("forbid p[1]@l && p[2]@l;"));
    assert!(accepted("forbid p[1]@l && go[1] == 1 || go[2] == 1 && p[2]@l;"));
    assert!(accepted("forbid tail == 1 && p[1]@l || p[2]@l && tail == 2;"));
    assert!(accepted("forbid tail == 0 && go[1] == go[2];"));
    assert!(!accepted("forbid p[1]@l && go[2] == 1;"));
    assert!(!accepted("forbid tail == 1;"));
    assert!(!accepted("forbid tail < 2;"));
    assert!(!accepted("forbid tail == go[1];"));
}
