//! Extended programs against their originals, on random programs: under TSO they reach the same states, and each state that the extended program
//! reaches under SC is reachable in the original one under TSO.

use std::collections::BTreeSet;

use fencewright_executions::oracle::explore;
use fencewright_program::{
    Action, EdgeId, LocationId, MemoryModel, Op, Program, Reference, State, ThreadId, Trace,
};
use fencewright_testing::{Random, Shape, program};
use fencewright_transform::extend::{AttackingStore, Extended};

const MOST_STATES: usize = 3_000;

/// The observable part of a state: locations, registers and memory of the original program.
type Seen = (Vec<LocationId>, Vec<Vec<i64>>, Vec<i64>);

fn seen(original: &Program, extended: &Extended, state: &State) -> Seen {
    let locations = (0u32..).zip(&state.locations);
    let locations = locations.map(|(t, l)| extended.original_location(ThreadId(t), *l));
    let registers = original.threads.iter().zip(&state.registers);
    let registers = registers.map(|(t, values)| values[..t.registers.len()].to_vec());
    (locations.collect(), registers.collect(), state.memory.clone())
}

fn reached(original: &Program, extended: &Extended, model: MemoryModel) -> Option<BTreeSet<Seen>> {
    let reachable = explore(&extended.program, model, MOST_STATES, &mut || false).ok()?;
    Some(reachable.states.iter().map(|s| seen(original, extended, s)).collect())
}

fn original_states(original: &Program, model: MemoryModel) -> Option<BTreeSet<Seen>> {
    let reachable = explore(original, model, MOST_STATES, &mut || false).ok()?;
    Some(reachable.states.into_iter().map(|s| (s.locations, s.registers, s.memory)).collect())
}

/// A random path from a store to a load.
fn path(random: &mut Random, program: &Program) -> Option<(ThreadId, Vec<EdgeId>)> {
    (0..30).find_map(|_| walk(random, program))
}

fn walk(random: &mut Random, program: &Program) -> Option<(ThreadId, Vec<EdgeId>)> {
    let thread = ThreadId(random.below(program.threads.len()) as u32);
    let code = program.thread(thread);
    let is_store = |e: &EdgeId| matches!(code.edge(*e).action, Action::Op(Op::Store(..)));
    let stores: Vec<EdgeId> = (0..code.edges.len() as u32).map(EdgeId).filter(is_store).collect();
    let mut edges = vec![*stores.get(random.below(stores.len()))?];
    for _ in 0..8 {
        let at = code.edge(*edges.last()?).to;
        let onwards: Vec<EdgeId> =
            code.edges_from(at).filter(|(_, e)| !e.action.drains()).map(|(id, _)| id).collect();
        edges.push(*onwards.get(random.below(onwards.len()))?);
        let ops = code.edge(*edges.last()?).action.ops();
        if ops.iter().any(|op| matches!(op, Op::Load(..))) && random.one_in(2) {
            return Some((thread, edges));
        }
    }
    None
}

/// Extends a program up to three times, by random paths.
fn extended(random: &mut Random, program: &Program, store: AttackingStore) -> Option<Extended> {
    let mut extended = Extended::new(program).ok()?;
    for _ in 0..1 + random.below(3) {
        let (thread, first) = path(random, &extended.program)?;
        let mut paths = vec![first];
        paths.extend(path(random, &extended.program).filter(|(t, _)| *t == thread).map(|(_, p)| p));
        extended = extended.extend(thread, &paths, store).ok()?;
    }
    Some(extended)
}

#[test]
fn faults_as_control_change_nothing() {
    let mut compared = 0;
    for seed in 0..1_500 {
        let program = program(&mut Random::new(seed), Shape { corners: seed % 3 == 2, ..Shape::default() });
        let Ok(extended) = Extended::new(&program) else { continue };
        let Some(expected) = original_states(&program, MemoryModel::Tso) else { continue };
        let Some(found) = reached(&program, &extended, MemoryModel::Tso) else { continue };
        assert_eq!(found, expected, "seed {seed}");
        compared += 1;
    }
    assert!(compared > 1_000, "only {compared} programs were small enough");
}

#[test]
fn an_extended_program_reaches_the_same_states_under_tso() {
    let (mut compared, mut more, mut fewer) = (0, 0, 0);
    for seed in 0..4_000 {
        let mut random = Random::new(1_000_000 + seed);
        let program =
            program(&mut random, Shape { loops: seed % 2 == 0, corners: seed % 3 == 2, ..Shape::default() });
        let store = *random.pick(&[AttackingStore::Removed, AttackingStore::Kept]);
        let Some(extended) = extended(&mut random, &program, store) else { continue };
        let Some(expected) = original_states(&program, MemoryModel::Tso) else { continue };
        let Some(found) = reached(&program, &extended, MemoryModel::Tso) else { continue };
        if let Some(state) = expected.difference(&found).next() {
            panic!("seed {seed}, {store:?}: lost {state:?}");
        }
        if let Some(state) = found.difference(&expected).next() {
            panic!("seed {seed}, {store:?}: invented {state:?}");
        }
        compared += 1;
        let sc = original_states(&program, MemoryModel::Sc).expect("fewer states");
        let emulated = reached(&program, &extended, MemoryModel::Sc).expect("fewer states");
        assert!(emulated.is_subset(&expected), "seed {seed}, {store:?}: not reachable under TSO");
        more += usize::from(!emulated.is_subset(&sc));
        fewer += usize::from(sc.len() < expected.len());
    }
    println!(
        "{compared} programs, {fewer} reach more under TSO, {more} show some of it under SC when extended"
    );
    assert!(compared > 300, "only {compared} programs were small enough");
    assert!(more > 150, "only {more} extensions emulate anything");
}

#[test]
fn an_execution_of_the_extended_program_is_one_of_the_original() {
    let (mut compared, mut delayed) = (0, 0);
    for seed in 0..6_000 {
        let mut random = Random::new(2_000_000 + seed);
        let program = program(&mut random, Shape { corners: seed % 3 == 2, ..Shape::default() });
        let Some(extended) = extended(&mut random, &program, AttackingStore::Removed) else { continue };
        let reference = Reference::new(&extended.program, MemoryModel::Sc);
        let Ok(initial) = fencewright_executions::oracle::initial_states(&reference, 64, &mut || false)
        else {
            continue;
        };
        let mut state = random.pick(&initial).clone();
        let mut trace =
            Trace { registers: state.registers.clone(), memory: state.memory.clone(), events: Vec::new() };
        for _ in 0..40 {
            let candidates = reference.candidates(&state, &[0, 1]);
            let steps = candidates.into_iter().filter_map(|e| Some((reference.step(&state, &e).ok()?.0, e)));
            let steps: Vec<_> = steps.collect();
            if steps.is_empty() {
                break;
            }
            let (next, event) = random.pick(&steps).clone();
            state = next;
            trace.events.push(event);
            let mapped = extended.trace(&program, &trace).expect("an execution");
            let replayed = mapped.replay(&program, MemoryModel::Tso);
            let replayed = replayed.unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            let last = replayed.last().clone();
            delayed += usize::from(last.buffers.iter().any(|b| !b.is_empty()));
            let expected = seen(&program, &extended, &state);
            assert_eq!((last.locations, last.registers, last.memory), expected, "seed {seed}");
            compared += 1;
        }
    }
    assert!(compared > 5_000 && delayed > 1_000, "{compared} states, {delayed} with delayed stores");
}

#[test]
fn unrolling_is_sound_and_complete_in_the_limit() {
    let mut complete = 0;
    for seed in 0..800 {
        let program = program(&mut Random::new(3_000_000 + seed), Shape::default());
        let whole = Extended::new(&program).expect("small");
        let Some(expected) = original_states(&program, MemoryModel::Tso) else { continue };
        if !whole.is_cyclic() {
            continue;
        }
        let mut last = BTreeSet::new();
        for rounds in 0..4 {
            let unrolled = whole.unrolled(rounds);
            assert!(!unrolled.is_cyclic(), "seed {seed}: loops after {rounds} rounds");
            let Some(found) = reached(&program, &unrolled, MemoryModel::Tso) else { break };
            assert!(found.is_subset(&expected), "seed {seed}, {rounds} rounds: invented");
            assert!(last.is_subset(&found), "seed {seed}, {rounds} rounds: lost");
            last = found;
        }
        complete += usize::from(last == expected);
    }
    assert!(complete > 100, "only {complete} programs are complete after a few rounds");
}
