//! Decides whether the store buffers of a program stay within a bound (EXTRA13 s.3: `overflow`).
//!
//! A proof is an invariant of the machine with bounded queues, in which a store that does not fit is a violation; the certificate checker has to
//! accept the invariant. If no such invariant is found, the states are explored. A refutation is an execution that ends with such a store.

use fencewright_certify::Proof;
use fencewright_memory::{Bound, Buffers};
use fencewright_program::reference::Buffered;
use fencewright_program::{Event, EventKind, MemoryModel, Program, Reference, State, ThreadId, Trace};

use crate::cegar::{self, Cegar};
use crate::check::{Checked, Confirm, check};
use crate::domain::DomainName;
use crate::explicit::overflow::{self as states, unnoticed};
use crate::task::{Limits, Progress, Reason, Task};

/// Whether the stores of a program fit into bounded buffers.
#[derive(Debug)]
pub enum Fit {
    /// Every store of every execution fits into its buffer.
    Always {
        /// Whether a certificate proves that all stores fit. If not, the only evidence is that the explicit engine explored all states.
        checked: bool,
    },
    /// A replayed execution that ends with more stores in a buffer than fit.
    Overflow(Trace),
}

/// Decides whether all stores of a program fit into its buffers.
pub fn fit(
    program: &Program,
    model: MemoryModel,
    bound: Bound,
    limits: &Limits,
    progress: &Progress,
) -> Result<Fit, Reason> {
    if is_proved(program, model, bound, DomainName::Zones, limits, progress) {
        return Ok(Fit::Always { checked: true });
    }
    match states::search(program, model, bound, limits, progress)? {
        Some(trace) => overflowing(program, model, bound, trace)
            .map(Fit::Overflow)
            .ok_or_else(|| Reason::Contradiction("a store that did not fit is not found again".into())),
        None => {
            let checked = is_proved(program, model, bound, DomainName::Concrete, limits, progress);
            Ok(Fit::Always { checked })
        }
    }
}

/// The first thread whose buffer exceeds the bound, if there is one.
pub fn overfull(state: &State, bound: Bound) -> Option<ThreadId> {
    let too_many = |buffer: &Vec<Buffered>| {
        let cell = |entry: &Buffered| match entry {
            Buffered::Store { cell, .. } => Some(*cell),
            Buffered::Barrier => None,
        };
        let cells: Vec<u32> = buffer.iter().filter_map(cell).collect();
        (0..cells.len()).any(|n| !bound.has_room(cells[..n].iter().copied(), cells[n]))
    };
    state.buffers.iter().position(too_many).map(|t| ThreadId(t as u32))
}

/// Whether engine `cegar` finds an invariant of the machine with bounded queues that the checker accepts.
fn is_proved(
    program: &Program,
    model: MemoryModel,
    bound: Bound,
    domain: DomainName,
    limits: &Limits,
    progress: &Progress,
) -> bool {
    // A certificate refers to properties by their names, so the program has to contain the property.
    let program = Program { properties: vec![unnoticed()], ..program.clone() };
    let options = cegar::Options { domain, buffer_bound: Some(bound), ..cegar::Options::default() };
    let task = Task::new(&program, model, program.properties.clone());
    let checked = check(&Cegar { options }, &task, limits, progress, Confirm::default());
    let machine = Buffers::Queue { model, bound };
    let shows = |proof: &Proof| matches!(proof, Proof::Invariant(i) if i.machine.buffers() == machine);
    let is_proof = |checked: &Checked| {
        let shown = checked.certificate().is_some_and(|c| !c.proofs.is_empty() && c.proofs.iter().all(shows));
        checked.checked() == Some(true) && shown
    };
    checked.iter().all(is_proof)
}

/// Extends an execution by a step after which a buffer exceeds the bound; `None` if there is no such step.
fn overflowing(program: &Program, model: MemoryModel, bound: Bound, mut trace: Trace) -> Option<Trace> {
    let replayed = trace.replay(program, model).ok()?;
    let reference = Reference::new(program, model);
    let stores = |event: &Event| {
        let next = reference.step(replayed.last(), event);
        matches!(event.kind, EventKind::Step { .. })
            && next.is_ok_and(|(next, _)| overfull(&next, bound).is_some())
    };
    let events = reference.candidates(replayed.last(), &[]);
    trace.events.push(events.into_iter().find(stores)?);
    Some(trace)
}
