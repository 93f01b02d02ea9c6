//! From a stored state back to an execution: the chain of states it was reached through, and for each link the event that
//! leads from one to the next. Events are not stored but found again, by expanding the earlier state once more.

use fencewright_program::{Event, EventKind, Init, ThreadId, Trace};

use super::code::Code;
use super::expand::{Expander, Sink, Step, StepKind};
use super::layout::Layout;
use super::orbits::Representatives;
use super::search::Decided;
use super::store::NONE;
use crate::task::{Limits, Reason, Task};

/// The execution that leads to the state that decides a property. Every stored state was reached by a step from its parent, so the
/// execution exists; if it cannot be found again, the engine has a defect.
pub fn trace(
    task: &Task<'_>,
    code: &Code,
    found: &Decided<'_>,
    samples: &[i64],
    bound: Option<u32>,
    limits: &Limits,
) -> Result<Option<Trace>, Reason> {
    let workers = found.stores.len() as u32;
    let store = |number: u32| (found.stores[(number % workers) as usize], number / workers);
    let mut chain = vec![found.state];
    loop {
        let (store, local) = store(chain[chain.len() - 1]);
        match store.parent(local) {
            NONE => break,
            parent => chain.push(parent),
        }
    }
    chain.reverse();
    let state = |number: u32| {
        let (store, local) = store(number);
        store.state(local)
    };
    let mut expander = Expander::new(code, samples, bound);
    let mut representatives = Representatives::new(code);
    let mut events: Vec<Event> = Vec::new();
    // The state the execution is in. The stored one stands for it and is an automorphism away, so it has a step to a state that the next
    // stored one stands for.
    let mut present = state(chain[0]).to_vec();
    for link in chain.windows(2) {
        if events.len().is_multiple_of(64)
            && let Some(reason) = limits.exceeded(0)
        {
            return Err(reason);
        }
        let target = state(link[1]);
        let mut finder =
            Finder { layout: found.layout, target, representatives: &mut representatives, found: None };
        // Other steps of this state may need a wider layout, which a search that has not ended may not have made; the wanted step fits.
        let _ = expander.expand(found.layout, &present, &mut finder);
        match finder.found {
            Some((event, next)) => {
                events.push(event);
                present = next;
            }
            None => return Ok(None),
        }
    }
    let (registers, memory) = unpack_initial(task, code, found.layout, state(chain[0]));
    Ok(Some(Trace { registers, memory, events }))
}

/// Looks for a step that leads to a state of a certain orbit.
struct Finder<'a, 'c> {
    layout: &'a Layout,
    target: &'a [u64],
    representatives: &'a mut Representatives<'c>,
    found: Option<(Event, Vec<u64>)>,
}

impl Sink for Finder<'_, '_> {
    fn take(&mut self, step: Step<'_>, state: &[u64]) {
        if self.found.is_some() || self.representatives.of(self.layout, state) != self.target {
            return;
        }
        let kind = match step.kind {
            StepKind::Edge(edge, chosen) => EventKind::Step { edge: edge.id, chosen: chosen.to_vec() },
            StepKind::Flush(cell) => EventKind::Flush { cell },
        };
        self.found = Some((Event { thread: ThreadId(step.thread), kind }, state.to_vec()));
    }
}

/// Registers and memory of an initial state; a dead register may start with any value it is allowed.
fn unpack_initial(task: &Task<'_>, code: &Code, layout: &Layout, state: &[u64]) -> (Vec<Vec<i64>>, Vec<i64>) {
    let any = |init: Init| match init {
        Init::Value(v) => v,
        Init::Any(range) => range.map_or(0, |r| r.low),
    };
    let registers = task
        .program
        .threads
        .iter()
        .zip(&code.threads)
        .map(|(thread, compiled)| {
            let mut values: Vec<i64> = thread.registers.iter().map(|r| any(r.init)).collect();
            for r in compiled.live.at(thread.entry) {
                values[r.index()] = layout.slots[compiled.registers[r.index()] as usize].get(state);
            }
            values
        })
        .collect();
    let memory =
        (0..task.program.cells()).map(|cell| layout.slots[code.memory as usize + cell].get(state)).collect();
    (registers, memory)
}
