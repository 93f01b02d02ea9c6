//! Witnesses against robustness: translates an execution of the instrumented program, replays it, and checks that it violates robustness.

use fencewright_executions::happens_before::{HappensBefore, Link, Triangle, triangular_race};
use fencewright_kit::choices::faulting_choices;
use fencewright_program::reference::{Buffered, holds};
use fencewright_program::{
    EdgeId, Event, EventKind, MemoryModel, Program, Reference, Replayed, ThreadId, Trace,
};
use fencewright_transform::attack::{Instrumented, Notion, Origin};

use crate::task::Reason;

/// A replayed execution that shows that a program is not robust.
#[derive(Clone, Debug)]
pub struct Witness {
    trace: Trace,
    replayed: Replayed,
    shape: Shape,
}

/// The reason why an execution is a witness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A cycle of the happens-before relation.
    Cycle(Vec<Link>),
    /// A triangular race.
    Race(Triangle),
}

impl Witness {
    /// The execution of the original program under TSO.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// The replayed execution, with its states.
    pub fn replayed(&self) -> &Replayed {
        &self.replayed
    }

    /// The cycle or the race.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The execution with two threads exchanged, which must have the same code.
    pub(super) fn trace_with_exchanged(&self, a: ThreadId, b: ThreadId) -> Trace {
        let mut trace = self.trace.clone();
        trace.registers.swap(a.index(), b.index());
        for event in &mut trace.events {
            event.thread = match event.thread {
                t if t == a => b,
                t if t == b => a,
                t => t,
            };
        }
        trace
    }
}

/// A feasible attack found in an execution of the instrumented program.
pub(super) struct Found {
    /// The index of the attack among those of the instrumented program.
    pub attack: usize,
    /// The attacker's edges from the store to the load.
    pub path: Vec<EdgeId>,
    /// The witness: an execution of the original program.
    pub witness: Witness,
}

/// Translates an execution of the instrumented program into one of the original program, and checks that it is a witness.
pub(super) fn from_instrumented(
    program: &Program,
    notion: Notion,
    instrumented: &Instrumented,
    found: &Replayed,
) -> Result<Found, Reason> {
    let contradiction = |what: &str| Reason::Contradiction(what.to_string());
    let succeeded = |p: &fencewright_program::Property| {
        p.formula().is_some_and(|formula| holds(found.last(), formula) == Some(true))
    };
    let attack = instrumented.program.properties.iter().position(succeeded);
    let attack = attack.ok_or_else(|| contradiction("the execution of an attack does not end in success"))?;
    let mut path = Vec::new();
    let mut trace = initial_part(program, found);
    let reference = Reference::new(program, MemoryModel::Tso);
    let mut state = reference
        .initial(trace.registers.clone(), trace.memory.clone())
        .ok_or_else(|| contradiction("the witness does not start like the program"))?;
    let mut perform = |event: Event, trace: &mut Trace| match reference.step(&state, &event) {
        Ok((next, _)) => {
            state = next;
            trace.events.push(event);
            Ok(state.buffers.clone())
        }
        Err(_) => Err(contradiction("an event of the witness cannot happen")),
    };
    let flush = |thread: ThreadId, buffers: &[Vec<Buffered>]| match buffers[thread.index()].first() {
        Some(Buffered::Store { cell, .. }) => Some(Event { thread, kind: EventKind::Flush { cell: *cell } }),
        _ => None,
    };
    let mut buffers = Vec::new();
    for event in &found.events {
        let EventKind::Step { edge, chosen } = &event.kind else {
            return Err(contradiction("an execution under SC has no buffers"));
        };
        let thread = event.thread;
        let (edge, delaying) = match instrumented.origins[thread.index()][edge.index()] {
            Origin::Edge(edge) => (edge, false),
            Origin::Delaying(edge) => (edge, true),
            Origin::Nothing => continue,
        };
        if delaying {
            path.push(edge);
        }
        let chosen = faulting_choices(program, thread, edge, chosen.clone());
        buffers = perform(Event { thread, kind: EventKind::Step { edge, chosen } }, &mut trace)?;
        if !delaying && let Some(event) = flush(thread, &buffers) {
            buffers = perform(event, &mut trace)?;
        }
    }
    // At the end only the attacker may have stores in its buffer, so flushing them empties all buffers.
    let attacker = instrumented.attacks[attack].thread;
    while let Some(event) = buffers.get(attacker.index()).and_then(|_| flush(attacker, &buffers)) {
        buffers = perform(event, &mut trace)?;
    }
    Ok(Found { attack, path, witness: checked(program, notion, trace)? })
}

/// Replays an execution and turns it into a witness; an error if it shows no violation.
pub(super) fn checked(program: &Program, notion: Notion, trace: Trace) -> Result<Witness, Reason> {
    let replayed = trace
        .replay(program, MemoryModel::Tso)
        .map_err(|error| Reason::Contradiction(format!("the witness does not replay: {error}")))?;
    if replayed.last().buffers.iter().any(|buffer| !buffer.is_empty()) {
        return Err(Reason::Contradiction("stores of the witness are still pending at its end".into()));
    }
    let shape = match notion {
        Notion::HappensBefore => HappensBefore::new(program, &replayed).cycle().map(Shape::Cycle),
        Notion::Triangular => triangular_race(program, &replayed).map(Shape::Race),
    };
    match shape {
        Some(shape) => Ok(Witness { trace, replayed, shape }),
        None => Err(Reason::Contradiction(format!("the witness shows no violation of {}", notion.name()))),
    }
}

/// The initial values of the original program, taken from an execution of the instrumented program.
fn initial_part(program: &Program, found: &Replayed) -> Trace {
    let first = found.states.first();
    let own = |(values, thread): (&Vec<i64>, &fencewright_program::Thread)| {
        values[..thread.registers.len()].to_vec()
    };
    Trace {
        registers: first.registers.iter().zip(&program.threads).map(own).collect(),
        memory: first.memory[..program.cells()].to_vec(),
        events: Vec::new(),
    }
}
