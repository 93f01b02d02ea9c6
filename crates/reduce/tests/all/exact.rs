//! Reduced programs compared with the original ones, on random programs: until the first overflow, `P_M` reaches under SC exactly the states that `P`
//! reaches on the reference semantics with bounded buffers, and it overflows if and only if `P` does.

use std::collections::HashSet;

use crate::common::{bounded, bounds, random_program};
use fencewright_executions::oracle::{explore, initial_states};
use fencewright_kit::validate;
use fencewright_program::{
    Action, BinaryOp, Edge, EventKind, Expr, LocationId, MemoryModel, Op, Program, Property, Reference,
    RegisterId, State, Thread, Trace,
};
use fencewright_reduce::{Bounds, Queues, Reduced, reduce};
use fencewright_testing::{Random, programs_or};

const MOST_STATES: usize = 3_000;

/// Counters with which the tests ensure that they compare enough.
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

/// Compares a program with its reduction, and describes a difference; `None` if one of the two is too large.
fn difference(
    program: &Program,
    model: MemoryModel,
    bounds: &Bounds,
    reduced: &Reduced,
    seen: &mut Seen,
) -> Option<Result<(), String>> {
    let expected = bounded(program, model, bounds, MOST_STATES)?;
    let reachable = explore(&reduced.program, MemoryModel::Sc, 60 * MOST_STATES, &mut || false).ok()?;
    let faults = Property::assertions();
    if reachable.satisfies(&reduced.program, MemoryModel::Sc, &faults) != Some(true) {
        return Some(Err("an action of P_M faults".into()));
    }
    let found: HashSet<State> = reachable.states.iter().filter_map(|s| reduced.state(s)).collect();
    if let Some(lost) = expected.reachable.states.difference(&found).next() {
        return Some(Err(format!("lost {lost:?}")));
    }
    if let Some(invented) = found.difference(&expected.reachable.states).next() {
        return Some(Err(format!("invented {invented:?}")));
    }
    // Only the comparison of deadlocks detects a load that does not wait for the lock, because the states that such a load leads to are reachable
    // anyway.
    let stuck: HashSet<State> = reachable.deadlocks.iter().filter_map(|s| reduced.state(s)).collect();
    if let Some(state) = stuck.symmetric_difference(&expected.reachable.deadlocks).next() {
        return Some(Err(format!("one of the two can move in {state:?}")));
    }
    let overflow = reachable.states.iter().any(|s| reduced.state(s).is_none());
    if overflow != expected.overflow {
        return Some(Err(format!("overflow: {overflow}")));
    }
    for property in &program.properties {
        let mapped = reduced.property(property);
        let here = reachable.satisfies(&reduced.program, MemoryModel::Sc, &mapped);
        let there = expected.reachable.satisfies(program, model, property);
        if here != there {
            return Some(Err(format!("property {}: {here:?}, not {there:?}", property.name)));
        }
    }
    count(program, model, &expected.reachable, seen);
    seen.compared += 1;
    seen.overflows += usize::from(overflow);
    Some(Ok(()))
}

/// Compares one program with its reduction, and panics if they differ.
fn compare(program: &Program, model: MemoryModel, bounds: &Bounds, context: &str, seen: &mut Seen) {
    let Ok(reduced) = reduce(program, model, bounds) else {
        seen.refused += 1;
        return;
    };
    assert_eq!(validate(&reduced.program), Ok(()), "{context}");
    if let Some(Err(what)) = difference(program, model, bounds, &reduced, seen) {
        panic!("{context}: {what}");
    }
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
    let programs = programs_or(1_200);
    let seen = compare_all(10_000, programs, MemoryModel::Tso);
    assert!(seen.compared > programs / 2 && seen.overflows > programs / 20, "{seen:?}");
    assert!(seen.buffered > programs / 4 && seen.faults > programs / 20, "{seen:?}");
    assert!(seen.locks > programs / 50 && seen.deadlocks > programs / 50, "{seen:?}");
}

#[test]
fn pso_programs_reach_what_bounded_buffers_reach() {
    let programs = programs_or(1_200);
    let seen = compare_all(20_000, programs, MemoryModel::Pso);
    assert!(seen.compared > programs / 2 && seen.overflows > programs / 10, "{seen:?}");
    assert!(seen.buffered > programs / 4 && seen.faults > programs / 20, "{seen:?}");
    assert!(seen.locks > programs / 50 && seen.barriers > programs / 20, "{seen:?}");
}

#[test]
fn an_execution_of_the_reduced_program_is_one_of_the_original() {
    let (mut compared, mut flushes) = (0, 0);
    for seed in 0..programs_or(1_000) as u64 {
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
    assert!(compared > 200 && flushes > 200, "{compared} executions, {flushes} flushes");
}

/// A random execution under SC, and its last state.
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

/// A mutation of the reduction.
#[derive(Clone, Copy, Debug)]
enum Mistake {
    FenceDoesNotWait,
    /// The newest of two stores leaves first.
    LastInFirstOut,
    /// A load takes the oldest store of its cell.
    LoadsTheOldest,
    /// A flush is possible only while the thread runs.
    EndedThreadsDoNotFlush,
    /// A store into a full buffer is lost.
    NoOverflow,
}

impl Mistake {
    /// Applies the mutation to all edges where it makes sense. Returns whether there are any.
    fn make(self, original: &Program, reduced: &mut Reduced) -> bool {
        let before = reduced.clone();
        let mut made = false;
        for (t, _) in original.threads() {
            let values: Vec<Vec<RegisterId>> = match before.queues(t) {
                Queues::Tso(queue) => vec![queue.values.clone()],
                Queues::Pso { cells, .. } => cells.iter().map(|queue| queue.values.clone()).collect(),
            };
            let overflow = before.overflow_location(t);
            for edge in &mut reduced.program.threads[t.index()].edges {
                let wrong = self.wrong(original.thread(t), edge, &values, overflow);
                made |= wrong.is_some();
                edge.action = wrong.unwrap_or_else(|| edge.action.clone());
            }
        }
        made
    }

    /// The mutated action of an edge, if the mutation applies.
    fn wrong(
        self,
        original: &Thread,
        edge: &Edge,
        values: &[Vec<RegisterId>],
        overflow: Option<LocationId>,
    ) -> Option<Action> {
        let older = |register: &RegisterId| {
            let places = values.iter().find(|places| places.iter().skip(1).any(|p| p == register))?;
            Some(Expr::Leaf(places[0]))
        };
        let flush = edge.from == edge.to && edge.action.ops().iter().any(|op| matches!(op, Op::Store(..)));
        match (self, &edge.action) {
            (Mistake::FenceDoesNotWait, Action::Op(Op::Assume(_))) => {
                let fence = |e: &Edge| (e.from, e.to, &e.action) == (edge.from, edge.to, &Action::Fence);
                original.edges.iter().any(fence).then_some(Action::Op(Op::Skip))
            }
            (Mistake::LoadsTheOldest, Action::Atomic { ops, drains: false }) => {
                let mut ops = ops.clone();
                let Some(Op::Assign(_, value)) = ops.last_mut() else { return None };
                let Expr::Leaf(place) = value else { return None };
                *value = older(place)?;
                Some(Action::Atomic { ops, drains: false })
            }
            (Mistake::LastInFirstOut, Action::Atomic { ops, drains: true }) if flush => {
                // The store in the second place leaves if the place is in use, and the store in the first place stays.
                let places = ops.iter().find_map(|op| match op {
                    Op::Store(_, Expr::Leaf(first)) => {
                        values.iter().find(|places| places.first() == Some(first))
                    }
                    _ => None,
                });
                let [first, second] = places?[..] else { return None };
                let used = Expr::binary(BinaryOp::Ne, Expr::Leaf(second), Expr::Const(0));
                let ops = ops.iter().map(|op| match op {
                    Op::Store(address, _) => {
                        let newest = Expr::choice(used.clone(), Expr::Leaf(second), Expr::Leaf(first));
                        Op::Store(address.clone(), newest)
                    }
                    Op::Assign(register, _) if *register == first => {
                        let stays = Expr::choice(used.clone(), Expr::Leaf(first), Expr::Const(0));
                        Op::Assign(first, stays)
                    }
                    other => other.clone(),
                });
                Some(Action::Atomic { ops: ops.collect(), drains: true })
            }
            (Mistake::EndedThreadsDoNotFlush, _) if flush && original.locations.len() > edge.from.index() => {
                original.is_end(edge.from).then_some(Action::Op(Op::Assume(Expr::Const(0))))
            }
            (Mistake::NoOverflow, _) if Some(edge.to) == overflow && edge.from != edge.to => {
                Some(Action::Op(Op::Assume(Expr::Const(0))))
            }
            _ => None,
        }
    }
}

/// The comparison detects all mutations.
#[test]
fn mistakes_are_found() {
    use Mistake::*;
    for mistake in [FenceDoesNotWait, LastInFirstOut, LoadsTheOldest, EndedThreadsDoNotFlush, NoOverflow] {
        let (mut made, mut found) = (0, 0);
        for seed in 0..600 {
            let mut random = Random::new(20_000 + seed);
            let program = random_program(&mut random, seed);
            let model = *random.pick(&[MemoryModel::Tso, MemoryModel::Pso]);
            let bounds = Bounds::uniform(&program, model, 1 + seed as u32 % 2);
            let Ok(mut reduced) = reduce(&program, model, &bounds) else { continue };
            if !mistake.make(&program, &mut reduced) {
                continue;
            }
            let mut seen = Seen::default();
            let Some(difference) = difference(&program, model, &bounds, &reduced, &mut seen) else {
                continue;
            };
            made += 1;
            found += usize::from(difference.is_err());
        }
        println!("{mistake:?}: made in {made} programs, found in {found}");
        assert!(found >= 3, "{mistake:?}: made in {made} programs, found in {found}");
    }
}
