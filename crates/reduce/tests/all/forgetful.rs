//! Programs for SC that encode k-abstract buffers, compared with an interpreter of the k-abstract system of FENCES12 and with exact buffers.

use std::collections::{BTreeMap, HashSet, VecDeque};

use crate::common::random_program;
use fencewright_executions::oracle::{explore, initial_states};
use fencewright_program::reference::{Access, Buffered, Refusal};
use fencewright_program::{
    Action, Event, EventKind, MemoryModel, Program, PropertyKind, Quantifier, Range, Reference, State,
    ThreadId,
};
use fencewright_reduce::{Reduced, forgetful};
use fencewright_testing::{Random, programs_or};

const MOST_STATES: usize = 4_000;

/// A state of the k-abstract system: the state without buffers, and for each thread the stores in order and the forgotten ones.
type Abstract = (State, Vec<Buffer>);

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Buffer {
    ordered: Vec<Buffered>,
    forgotten: BTreeMap<u32, i64>,
}

fn to(cell: u32) -> impl Fn(&&Buffered) -> bool {
    move |entry| matches!(entry, Buffered::Store { cell: c, .. } if *c == cell)
}

impl Buffer {
    /// An exact buffer that its thread cannot distinguish from this one: the newest value of each cell.
    fn newest(&self) -> Vec<Buffered> {
        let ordered = self.ordered.iter().filter_map(|entry| match entry {
            Buffered::Store { cell, value } => Some((*cell, *value)),
            Buffered::Barrier => None,
        });
        let newest: BTreeMap<u32, i64> =
            ordered.chain(self.forgotten.iter().map(|(&c, &v)| (c, v))).collect();
        newest.into_iter().map(|(cell, value)| Buffered::Store { cell, value }).collect()
    }

    /// Whether stores in order must leave before forgotten stores to this cell.
    fn has_older(&self, pso: bool, cell: u32) -> bool {
        if pso { self.ordered.iter().any(|e| to(cell)(&e)) } else { !self.ordered.is_empty() }
    }

    fn store(&mut self, pso: bool, k: usize, cell: u32, value: i64) {
        let forgets = match pso {
            true => self.forgotten.contains_key(&cell) || self.ordered.iter().filter(to(cell)).count() >= k,
            false => !self.forgotten.is_empty() || self.ordered.len() >= k,
        };
        if forgets {
            self.forgotten.insert(cell, value);
            return;
        }
        let last = self.ordered.iter().rposition(|e| *e == Buffered::Barrier).map_or(0, |p| p + 1);
        let later = |entry: &Buffered| matches!(entry, Buffered::Store { cell: c, .. } if pso && *c > cell);
        let place = self.ordered[last..].iter().position(later).map_or(self.ordered.len(), |p| last + p);
        self.ordered.insert(place, Buffered::Store { cell, value });
    }
}

/// All successors; `None` if one of them is beyond the interpreter.
fn successors(reference: &Reference<'_>, k: usize, (state, buffers): &Abstract) -> Option<Vec<Abstract>> {
    let pso = reference.model == MemoryModel::Pso;
    let with = |contents: &dyn Fn(&Buffer) -> Vec<Buffered>| State {
        buffers: buffers.iter().map(contents).collect(),
        ..state.clone()
    };
    let without = |state: State| State { buffers: vec![Vec::new(); buffers.len()], ..state };
    let mut all = Vec::new();
    let seen = with(&Buffer::newest);
    for event in reference.candidates(state, &[]) {
        let EventKind::Step { edge, .. } = event.kind else { continue };
        let (next, accesses) = match reference.step(&seen, &event) {
            Ok(stepped) => stepped,
            Err(Refusal::Disabled(_)) => continue,
            Err(Refusal::Limit(..)) => return None,
        };
        let mut changed = buffers.clone();
        let own = &mut changed[event.thread.index()];
        for access in accesses {
            if let Access::Write { cell, value, buffered: true } = access {
                own.store(pso, k, cell, value);
            }
        }
        let fence = reference.program.thread(event.thread).edge(edge).action == Action::StoreFence;
        if fence && pso && !matches!(own.ordered.last(), None | Some(Buffered::Barrier)) {
            own.ordered.push(Buffered::Barrier);
        }
        all.push((without(next), changed));
    }
    let ordered = with(&|buffer| buffer.ordered.clone());
    for t in 0..buffers.len() {
        let thread = ThreadId(t as u32);
        for cell in 0..state.memory.len() as u32 {
            if let Ok((next, _)) =
                reference.step(&ordered, &Event { thread, kind: EventKind::Flush { cell } })
            {
                let mut changed = buffers.clone();
                changed[t].ordered.clone_from(&next.buffers[t]);
                all.push((without(next), changed));
            }
            let Some(&last) = buffers[t].forgotten.get(&cell) else { continue };
            if state.lock.is_some_and(|holder| holder != thread) || buffers[t].has_older(pso, cell) {
                continue;
            }
            let write = |value: i64| {
                let mut next = state.clone();
                next.memory[cell as usize] = value;
                next
            };
            let mut changed = buffers.clone();
            changed[t].forgotten.remove(&cell);
            all.push((write(last), changed));
            let range = reference.program.variable_of(cell).range.expect("the test declares ranges");
            all.extend((range.low.max(0)..=range.high).map(|value| (write(value), buffers.clone())));
        }
    }
    Some(all)
}

/// All reachable states of the k-abstract system.
fn reached(reference: &Reference<'_>, k: usize) -> Option<HashSet<Abstract>> {
    let first = initial_states(reference, MOST_STATES, &mut || false).ok()?;
    let none = vec![Buffer::default(); reference.program.threads.len()];
    let mut states: HashSet<Abstract> = first.into_iter().map(|s| (s, none.clone())).collect();
    let mut queue: VecDeque<Abstract> = states.iter().cloned().collect();
    while let Some(state) = queue.pop_front() {
        if states.len() > MOST_STATES || reference.has_unbounded_choice(&state.0) {
            return None;
        }
        for next in successors(reference, k, &state)? {
            if states.insert(next.clone()) {
                queue.push_back(next);
            }
        }
    }
    Some(states)
}

/// The abstract state that a state of the reduced program stands for.
fn abstracted(reduced: &Reduced, state: &State) -> Abstract {
    let mut original = reduced.state(state).expect("there are no overflows");
    let buffer = |t: usize| {
        let value = |register: fencewright_program::RegisterId| state.registers[t][register.index()];
        let forgotten = reduced.forgotten(ThreadId(t as u32)).iter().filter(|f| value(f.some) == 1);
        let forgotten = forgotten.map(|f| (f.cell, value(f.last))).collect();
        Buffer { ordered: original.buffers[t].clone(), forgotten }
    };
    let buffers = (0..state.locations.len()).map(buffer).collect();
    original.buffers.iter_mut().for_each(Vec::clear);
    (original, buffers)
}

/// The program with a small range for each variable, so that an arbitrary value is one of a few.
fn with_ranges(mut program: Program) -> Program {
    program.variables.iter_mut().for_each(|v| v.range = Some(Range { low: 0, high: 2 }));
    program
}

#[test]
fn programs_with_buffers_that_forget_reach_what_the_abstract_system_reaches() {
    let (mut compared, mut forgot, mut proved) = (0, 0, 0);
    let programs = programs_or(400);
    for seed in 0..programs as u64 {
        let mut random = Random::new(50_000 + seed);
        let program = with_ranges(random_program(&mut random, seed));
        let model = *random.pick(&[MemoryModel::Tso, MemoryModel::Pso]);
        let k = random.below(3);
        let context = format!("seed {seed}, {model:?}, k = {k}");
        let Ok(reduced) = forgetful(&program, model, k as u32) else { continue };
        let Some(expected) = reached(&Reference::new(&program, model), k) else { continue };
        let reachable = explore(&reduced.program, MemoryModel::Sc, 60 * MOST_STATES, &mut || false);
        let Ok(reachable) = reachable else { continue };
        // In the middle of a store the newest value has changed although the store is not complete. The abstract system has no such states, so they
        // are not compared.
        let arrived = |s: &&State| {
            program.threads().all(|(t, _)| {
                let here = s.locations[t.index()];
                reduced.original_location(t, here) == Some(here) || !is_on_its_way(&reduced, t, here)
            })
        };
        let found: HashSet<Abstract> =
            reachable.states.iter().filter(arrived).map(|s| abstracted(&reduced, s)).collect();
        if let Some(lost) = expected.difference(&found).next() {
            panic!("{context}: lost {lost:?}");
        }
        if let Some(invented) = found.difference(&expected).next() {
            panic!("{context}: invented {invented:?}");
        }
        compared += 1;
        forgot += usize::from(expected.iter().any(|(_, b)| b.iter().any(|b| !b.forgotten.is_empty())));
        // A property that holds with k-abstract buffers holds with exact buffers too.
        let Ok(exact) = explore(&program, model, MOST_STATES, &mut || false) else { continue };
        for property in &program.properties {
            let existence = matches!(property.kind, PropertyKind::Finally(Quantifier::Exists, _));
            if property.kind == PropertyKind::NoDeadlock || existence {
                continue;
            }
            let mapped = reduced.property(property);
            if reachable.satisfies(&reduced.program, MemoryModel::Sc, &mapped) == Some(true) {
                assert_eq!(exact.satisfies(&program, model, property), Some(true), "{context}: {property:?}");
                proved += 1;
            }
        }
    }
    println!("{compared} programs, {forgot} forget, {proved} properties hold");
    assert!(compared > programs / 2 && forgot > programs / 8 && proved > programs / 2);
}

/// Whether a location lies in the middle of a step of the original program.
fn is_on_its_way(reduced: &Reduced, thread: ThreadId, location: fencewright_program::LocationId) -> bool {
    let code = reduced.program.thread(thread);
    let writes = |action: &Action| matches!(action, Action::Op(fencewright_program::Op::Assign(..)));
    let into = code.edges.iter().filter(|e| e.to == location);
    into.clone().count() == 1 && into.clone().all(|e| writes(&e.action) && e.from != e.to)
}
