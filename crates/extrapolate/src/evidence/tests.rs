//! Tests of the translation of states of the reduced program into invariants of the original program.

use std::collections::BTreeSet;

use fencewright_certify::{Certificate, Claim, Rejection, check as certify};
use fencewright_executions::oracle::explore;
use fencewright_lang::load;
use fencewright_program::{MemoryModel, State};
use fencewright_reduce::reduce;
use fencewright_smt::Prover;
use fencewright_testing::{Random, Shape, program, programs_or};
use fencewright_verdict::check::proof;
use fencewright_verdict::fingerprint::fingerprint;

use super::*;

fn accepted(program: &Program, invariant: &Invariant) -> Result<(), Rejection> {
    let claim = Claim::Safe { properties: invariant.properties.clone() };
    let certificate = Certificate::new(fingerprint(program), claim, vec![proof(program, invariant)]);
    let stop: fencewright_certify::Stop = std::sync::Arc::new(|| false);
    certify(&certificate, program, &Prover, &stop).map(|_| ())
}

/// The constraint that the cells of the reduced program have the values that they have in a state.
fn cube(reduced: &Reduced, state: &State) -> Cube {
    let cells = BufferMachine::new(&reduced.program, Buffers::Sc).cells;
    let mut values: Vec<(CellId, i64)> = state.memory.iter().copied().zip(0..).map(|(v, c)| (c, v)).collect();
    for (t, registers) in state.registers.iter().enumerate() {
        let cell = |r: usize| cells.id(Cell::Register(ThreadId(t as u32), RegisterId(r as u32)));
        values.extend(registers.iter().enumerate().map(|(r, value)| (cell(r), *value)));
    }
    equalities(values)
}

/// The constraint that cells have these values.
fn equalities(values: Vec<(CellId, i64)>) -> Cube {
    let is = |(cell, value): (CellId, i64)| {
        [(1, -value), (-1, value)]
            .map(|(by, constant)| Constraint::AtMost(Linear { terms: vec![(cell, by)], constant }))
    };
    let mut cube: Cube = values.into_iter().flat_map(is).collect();
    cube.sort_unstable();
    cube
}

/// The reachable states of the reduced program, one cube per state; `None` if there are too many states, or if one of them has an overflow.
fn states(reduced: &Reduced) -> Option<Vec<(Control, Vec<Cube>)>> {
    let reachable = explore(&reduced.program, MemoryModel::Sc, 600, &mut || false).ok()?;
    let mut all: Vec<&State> = reachable.states.iter().collect();
    all.sort_by_cached_key(|state| format!("{state:?}"));
    let mut found: Vec<(Control, Vec<Cube>)> = Vec::new();
    for state in all {
        reduced.state(state)?;
        let control = Control { locations: state.locations.clone(), buffers: Vec::new(), lock: state.lock };
        found.push((control, vec![cube(reduced, state)]));
    }
    Some(found)
}

/// All states of a program with buffers, as control states of the queue machine with the values of their cells.
fn expected(program: &Program, machine: &BufferMachine<'_>, states: &HashSet<State>) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for state in states {
        let mut values: Vec<(CellId, i64)> = state.memory.iter().zip(0..).map(|(v, c)| (c, *v)).collect();
        let mut buffers = Vec::new();
        for (t, _) in program.threads() {
            let registers = state.registers[t.index()].iter().zip(0..);
            values.extend(registers.map(|(v, r)| (machine.cells.id(Cell::Register(t, RegisterId(r))), *v)));
            // The order of stores to different cells between two barriers is irrelevant, so they are sorted by cell, as in the queue machine.
            let mut entries = state.buffers[t.index()].clone();
            if machine.buffers.model() == MemoryModel::Pso {
                let parts = entries.split_mut(|entry| *entry == Buffered::Barrier);
                parts.for_each(|part| part.sort_by_key(cell_of));
            }
            let stores = entries.iter().zip(0..);
            values.extend(stores.filter_map(|(entry, position)| match entry {
                Buffered::Store { value, .. } => Some((machine.cells.id(Cell::Entry(t, position)), *value)),
                Buffered::Barrier => None,
            }));
            let queue =
                entries.iter().map(|entry| cell_of(entry).map_or(Entry::Barrier, Entry::Store)).collect();
            buffers.push(BufferShape { queue, set: Vec::new() });
        }
        let control = Control { locations: state.locations.clone(), buffers, lock: state.lock };
        all.insert(format!("{control:?} {:?}", equalities(values)));
    }
    all
}

fn cell_of(entry: &Buffered) -> Option<u32> {
    match entry {
        Buffered::Store { cell, .. } => Some(*cell),
        Buffered::Barrier => None,
    }
}

/// On random programs, the translated states of the reduced program are exactly the states of the program. Where the queue machine is exact (no
/// products or undefined results), these states are a proof, which is rejected if a control state is removed.
#[test]
fn all_states_of_the_reduced_program_are_a_certificate() {
    let (mut compared, mut proofs, mut buffered, mut barriers) = (0, 0, 0, 0);
    for seed in 0..programs_or(500) as u64 {
        let mut random = Random::new(31_000_000 + seed);
        let program = program(&mut random, Shape { length: 4, corners: seed % 3 == 0, ..Shape::default() });
        let model = *random.pick(&[MemoryModel::Tso, MemoryModel::Pso]);
        let k = 1 + random.below(3) as u32;
        let bounds = match random.one_in(2) {
            true => Bounds::PerThread(k),
            false => Bounds::uniform(&program, model, k),
        };
        let Ok(reduced) = reduce(&program, model, &bounds) else { continue };
        let Some(states) = states(&reduced) else { continue };
        let Ok(reachable) = explore(&program, model, 2_000, &mut || false) else { continue };
        let provable = BufferMachine::new(&program, Buffers::Sc);
        let holds = |p: &&fencewright_program::Property| {
            provable.violation(&provable.initial(), p).is_some()
                && reachable.satisfies(&program, model, p) == Some(true)
        };
        let properties: Vec<String> =
            program.properties.iter().filter(holds).map(|p| p.name.clone()).collect();
        // A certificate needs at least one property.
        if properties.is_empty() {
            continue;
        }
        let about = format!("seed {seed}, {model:?}, {bounds:?}");
        let found = invariant(&program, &reduced, properties, &states, &Limits::default()).expect(&about);
        let machine = BufferMachine::new(&program, found.buffers);
        let each = |(control, cubes): &(Control, Vec<Cube>)| -> Vec<String> {
            cubes.iter().map(|cube| format!("{control:?} {cube:?}")).collect()
        };
        let translated: BTreeSet<String> = found.states.iter().flat_map(each).collect();
        assert_eq!(translated, expected(&program, &machine, &reachable.states), "{about}");
        compared += 1;
        if accepted(&program, &found).is_err() {
            continue;
        }
        proofs += 1;
        let queues =
            || found.states.iter().flat_map(|(control, _)| &control.buffers).map(|shape| &shape.queue);
        buffered += usize::from(queues().any(|queue| !queue.is_empty()));
        barriers += usize::from(queues().any(|queue| queue.contains(&Entry::Barrier)));
        // Every control state is reachable, so a proof that lacks one of them is wrong.
        let mut lie = found;
        let n = random.below(lie.states.len());
        lie.states.remove(n);
        assert!(accepted(&program, &lie).is_err(), "{about}: without control state {n}");
    }
    println!(
        "{compared} compared, {proofs} proofs, {buffered} with stores in buffers, {barriers} with barriers"
    );
    if programs_or(500) >= 500 {
        assert!(proofs > 100 && proofs * 10 > compared * 9, "only {proofs} proofs of {compared}");
        assert!(
            buffered > 50 && barriers >= 3,
            "only {buffered} with stores in buffers, {barriers} with barriers"
        );
    }
}

/// Unconstrained counts and cells stand for all values within the bound, and values of places become buffer entries.
#[test]
fn unknown_buffer_contents_allow_everything_within_the_bound() {
    let text = "shared x, y; thread p { x = 1; y = 2; } forbid early: y == 2 && x == 0;";
    let program = load("test.fw", text.as_bytes(), None, &[]).expect("it loads").program;
    let reduced = reduce(&program, MemoryModel::Tso, &Bounds::PerThread(2)).expect("it can be reduced");
    let machine = BufferMachine::new(&reduced.program, Buffers::Sc);
    let Queues::Tso(queue) = reduced.queues(ThreadId(0)) else { panic!("TSO has one queue") };
    let cell = |register: RegisterId| machine.cells.id(Cell::Register(ThreadId(0), register));
    let is = |cell, value: i64| {
        [(1, -value), (-1, value)]
            .map(|(c, k)| Constraint::AtMost(Linear { terms: vec![(cell, c)], constant: k }))
    };
    let translated = |cube: Cube| {
        let states = [(machine.initial(), vec![cube])];
        let found = invariant(&program, &reduced, Vec::new(), &states, &Limits::default());
        found.expect("small").states
    };
    // The buffer has no store, one store (to x or to y), or two stores (each to x or to y): 1 + 2 + 4 shapes.
    assert_eq!(translated(Cube::new()).len(), 7);
    let count = queue.count.expect("there are stores");
    let one = translated([is(cell(count), 1), is(cell(queue.values[0]), 5)].concat());
    assert_eq!(one.len(), 2);
    let to =
        BufferMachine::new(&program, Buffers::Queue { model: MemoryModel::Tso, bound: Bound::Thread(2) });
    let entry = to.cells.id(Cell::Entry(ThreadId(0), 0));
    for (control, cubes) in &one {
        assert_eq!(control.buffers[0].queue.len(), 1);
        let mut wanted: Cube = is(entry, 5).into_iter().collect();
        wanted.sort_unstable();
        assert_eq!(cubes, &[wanted]);
    }
    // A place that is not in use is 0, so this cube is unsatisfiable.
    assert!(translated([is(cell(count), 1), is(cell(queue.values[1]), 5)].concat()).is_empty());
}

/// States with an overflow are not a proof.
#[test]
fn an_overflow_is_no_proof() {
    let text = "shared x, y; thread p { x = 1; y = 2; } forbid large: x == 2;";
    let program = load("test.fw", text.as_bytes(), None, &[]).expect("it loads").program;
    for (model, bounds, fits) in [
        (MemoryModel::Tso, Bounds::PerThread(1), false),
        (MemoryModel::Tso, Bounds::PerThread(2), true),
        (MemoryModel::Pso, Bounds::PerVariable(vec![1, 1]), true),
        (MemoryModel::Pso, Bounds::PerVariable(vec![1, 0]), false),
    ] {
        let reduced = reduce(&program, model, &bounds).expect("it can be reduced");
        let reachable = explore(&reduced.program, MemoryModel::Sc, 1_000, &mut || false).expect("small");
        let of = |state: &State| {
            let control =
                Control { locations: state.locations.clone(), buffers: Vec::new(), lock: state.lock };
            (control, vec![cube(&reduced, state)])
        };
        let states: Vec<_> = reachable.states.iter().map(of).collect();
        let found = invariant(&program, &reduced, vec!["large".into()], &states, &Limits::default());
        assert_eq!(found.is_ok(), fits, "{model:?} {bounds:?}");
        // The checker rejects a smaller bound, because some store does not fit.
        if let Ok(mut lie) = found {
            assert!(accepted(&program, &lie).is_ok(), "{model:?} {bounds:?}");
            lie.buffers = Buffers::Queue { model, bound: Bound::Thread(1) };
            assert!(accepted(&program, &lie).is_err(), "{model:?} {bounds:?}");
        }
    }
}
