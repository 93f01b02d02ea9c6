//! Examines an abstract path to a violation: is the path an execution of the program, at least a path of the multiset machine, or spurious? For a
//! spurious path, computes how many stores must be kept in order so that the path is excluded.
//!
//! A path is real if its events are an execution, or become an execution when other flushes are chosen. To find such flushes, the executions that
//! take the same program steps in the same order, with arbitrary values read, are enumerated up to a limit.

use std::collections::HashSet;

use fencewright_memory::Kept;
use fencewright_program::reference::{Buffered, State, decided_by, holds};
use fencewright_program::{Event, EventKind, MemoryModel, Property, PropertyKind, Reference, Trace};
use fencewright_verdict::{Limits, Task};

use crate::abstracted::Path;

/// Maximum number of states explored in the search for other flushes.
const MOST_STATES: usize = 2_000;

/// The result of examining an abstract path.
pub enum Examined {
    /// The path is real: this execution of the program decides the property.
    Execution(Trace),
    /// The path is spurious.
    Spurious(Spurious),
}

/// Why a path is spurious, and which abstractions exclude it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spurious {
    /// Whether the multiset machine has the path too: each store is in the buffer when it is flushed, and the newest of several stores to a cell is
    /// not flushed before the others.
    pub is_of_multisets: bool,
    /// Number of stores that must be kept in order so that no flush on the path overtakes an older store; 0 if no flush does.
    pub k: u32,
}

/// Examines a path to a state that decides `property`, found with some abstraction. `kept` says which end of the buffer is to be kept in order next.
pub fn examine(task: &Task<'_>, path: &Path, property: &Property, kept: Kept, limits: &Limits) -> Examined {
    let finishing = limits.finishing();
    let stop = || finishing.exceeded(0).is_some();
    match path.trace.replay_for_until(task.program, task.model, property, &stop) {
        Ok(_) => Examined::Execution(path.trace.clone()),
        Err(_) => match with_other_flushes(task, path, property, limits) {
            Some(trace) => Examined::Execution(trace),
            None => Examined::Spurious(spurious(task, path, kept, limits)),
        },
    }
}

/// An execution that takes the program steps of the path in the same order and decides the property; `None` if none is found within the limits.
fn with_other_flushes(task: &Task<'_>, path: &Path, property: &Property, limits: &Limits) -> Option<Trace> {
    let reference = Reference::new(task.program, task.model);
    let Trace { registers, memory, events } = path.trace.clone();
    let start = reference.initial(registers.clone(), memory.clone())?;
    // The states reached so far, each with the index of its predecessor and the event that led to it. `level` is the range of the states after the
    // program steps taken so far.
    let mut reached: Vec<(State, usize, Option<Event>)> = vec![(start, 0, None)];
    let mut level = 0..1;
    let mut steps = events.into_iter().filter(|event| matches!(event.kind, EventKind::Step { .. }));
    loop {
        let mut seen: HashSet<State> =
            reached[level.clone()].iter().map(|(state, ..)| state.clone()).collect();
        let mut n = level.start;
        while n < reached.len() {
            if reached.len() > MOST_STATES || limits.exceeded(0).is_some() {
                return None;
            }
            let flushes = reference.candidates(&reached[n].0, &[]).into_iter();
            for event in flushes.filter(|event| matches!(event.kind, EventKind::Flush { .. })) {
                if let Ok((next, _)) = reference.step(&reached[n].0, &event)
                    && seen.insert(next.clone())
                {
                    reached.push((next, n, Some(event)));
                }
            }
            n += 1;
        }
        level.end = reached.len();
        let Some(step) = steps.next() else { break };
        let mut seen = HashSet::new();
        for n in level.clone() {
            if let Ok((next, _)) = reference.step(&reached[n].0, &step)
                && seen.insert(next.clone())
            {
                reached.push((next, n, Some(step.clone())));
            }
        }
        level = level.end..reached.len();
    }
    let mut n = level.into_iter().find(|&n| decides(&reference, &reached[n].0, property))?;
    let mut events = Vec::new();
    while let (_, before, Some(event)) = &reached[n] {
        events.push(event.clone());
        n = *before;
    }
    events.reverse();
    Some(Trace { registers, memory, events })
}

/// Whether a state alone decides a property: it violates the property or, for `finally exists`, satisfies it. False for `deadlock`, which the engine
/// does not decide.
fn decides(reference: &Reference<'_>, state: &State, property: &Property) -> bool {
    match &property.kind {
        PropertyKind::Never(formula) => holds(state, formula) == Some(true),
        PropertyKind::Assertions => reference.has_fault(state),
        PropertyKind::NoDeadlock => false,
        PropertyKind::Finally(quantifier, formula) => {
            let decision = holds(state, formula).and_then(|holds| decided_by(*quantifier, holds));
            reference.is_final(state) && decision.is_some()
        }
    }
}

/// Replays a path with exact buffers, except that the stores of a buffer may leave in any order. If the path flushes a store that is not in the
/// buffer, the flush only writes memory. From then on buffer and path may differ, so the result is only a heuristic.
fn spurious(task: &Task<'_>, path: &Path, kept: Kept, limits: &Limits) -> Spurious {
    let reference = Reference::new(task.program, task.model);
    let mut found = Spurious::default();
    let start = reference.initial(path.trace.registers.clone(), path.trace.memory.clone());
    let Some(mut state) = start else { return found };
    let mut flushed = path.flushed.iter();
    found.is_of_multisets = true;
    for (n, event) in path.trace.events.iter().enumerate() {
        if n % 64 == 0 && limits.exceeded(0).is_some() {
            return found;
        }
        match event.kind {
            EventKind::Flush { cell } => {
                let Some(&value) = flushed.next() else { return found };
                let buffer = &mut state.buffers[event.thread.index()];
                match buffer.iter().position(|e| *e == Buffered::Store { cell, value }) {
                    Some(position) => {
                        let order = Order { model: task.model, kept, buffer, position, cell };
                        found.k = found.k.max(order.needed());
                        found.is_of_multisets &= !order.is_last_of_several();
                        remove(&mut state, event.thread.index(), position);
                    }
                    None => found.is_of_multisets = false,
                }
                state.memory[cell as usize] = value;
            }
            EventKind::Step { .. } => match reference.step(&state, event) {
                Ok((next, _)) => state = next,
                Err(_) => {
                    found.is_of_multisets = false;
                    return found;
                }
            },
        }
    }
    found
}

/// The flush of the store at `position` of a buffer.
struct Order<'a> {
    model: MemoryModel,
    kept: Kept,
    buffer: &'a [Buffered],
    position: usize,
    cell: u32,
}

impl Order<'_> {
    fn is_to_cell(&self, entry: &Buffered) -> bool {
        matches!(entry, Buffered::Store { cell, .. } if *cell == self.cell)
    }

    /// How many stores must be kept in order so that this flush is impossible; 0 if exact buffers allow the flush.
    fn needed(&self) -> u32 {
        let (before, rest) = self.buffer.split_at(self.position);
        let pso = self.model == MemoryModel::Pso;
        let overtakes = |entry: &Buffered| !pso || *entry == Buffered::Barrier || self.is_to_cell(entry);
        if !before.iter().any(overtakes) {
            return 0;
        }
        let counts = |entry: &&Buffered| **entry != Buffered::Barrier && (!pso || self.is_to_cell(entry));
        match self.kept {
            Kept::Oldest => before.iter().filter(counts).count() as u32 + 1,
            Kept::Newest => rest.iter().filter(counts).count() as u32,
        }
    }

    /// Whether the store is the newest of several to its cell. Multisets let such a store leave only after all other stores to the cell.
    fn is_last_of_several(&self) -> bool {
        let others = |range: &[Buffered]| range.iter().filter(|e| self.is_to_cell(e)).count();
        others(&self.buffer[self.position + 1..]) == 0 && others(&self.buffer[..self.position]) > 0
    }
}

/// Removes a store from a buffer, and a barrier that has become the oldest entry.
fn remove(state: &mut State, thread: usize, position: usize) {
    let buffer = &mut state.buffers[thread];
    buffer.remove(position);
    if buffer.first() == Some(&Buffered::Barrier) {
        buffer.remove(0);
    }
}
