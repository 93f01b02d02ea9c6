//! From a stored state back to an execution: the chain of states it was reached through, and for each link the event that
//! leads from one to the next. Events are not stored but found again, by expanding the earlier state once more.

use fencewright_program::{Event, EventKind, Init, ThreadId, Trace};

use super::abstracted::Path;
use super::code::Code;
use super::expand::{Expander, Sink, Step, StepKind};
use super::layout::{Layout, LiveSlots, Sizes};
use super::orbits::Representatives;
use super::search::Decided;
use super::store::NONE;
use crate::task::{Limits, Reason, Task};

/// The execution that leads to the state that decides a property. Every stored state was reached by a step from its parent, so the
/// execution exists; if it cannot be found again, the engine has a defect. With abstract buffers it is one of the abstract machine only.
pub fn path(
    task: &Task<'_>,
    code: &Code,
    found: &Decided<'_>,
    samples: &[i64],
    bound: Option<u32>,
    limits: &Limits,
) -> Result<Option<Path>, Reason> {
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
    let (registers, memory) = unpack_initial(task, code, found.layout, state(chain[0]));
    let mut walk = Walk {
        code,
        expander: Expander::new(code, samples, bound),
        representatives: Representatives::new(code),
        sizes: found.sizes.clone(),
        layout: found.layout.clone(),
        present: state(chain[0]).to_vec(),
    };
    let mut events: Vec<Event> = Vec::new();
    let mut flushed = Vec::new();
    for &next in &chain[1..] {
        if events.len().is_multiple_of(64)
            && let Some(reason) = limits.exceeded(0)
        {
            return Err(reason);
        }
        match walk.step_to(found.layout, state(next)) {
            Some(event) => {
                if let EventKind::Flush { cell } = event.kind {
                    flushed.push(walk.layout.slots[(code.memory + cell) as usize].get(&walk.present));
                }
                events.push(event);
            }
            None => return Ok(None),
        }
    }
    Ok(Some(Path { trace: Trace { registers, memory, events }, flushed }))
}

/// An execution on its way along stored states.
struct Walk<'c> {
    code: &'c Code,
    expander: Expander<'c>,
    representatives: Representatives<'c>,
    sizes: Sizes,
    layout: Layout,
    /// The state the execution is in. A stored state stands for it and is an automorphism away, so it has a step to a state that the
    /// next stored one stands for.
    present: Vec<u64>,
}

impl Walk<'_> {
    /// Takes a step to a state that a stored one of the given layout stands for.
    fn step_to(&mut self, stored_layout: &Layout, stored: &[u64]) -> Option<Event> {
        loop {
            let mut target = repacked(self.code, stored_layout, stored, &self.layout);
            self.representatives.replace(&self.layout, &mut target);
            let mut finder = Finder {
                layout: &self.layout,
                target: &target,
                representatives: &mut self.representatives,
                found: None,
            };
            let expanded = self.expander.expand(&self.layout, &self.present, &mut finder);
            match (finder.found, expanded) {
                (Some((event, next)), _) => {
                    self.present = next;
                    return Some(event);
                }
                (None, Ok(_)) => return None,
                // Another step of this state needs a wider layout, which a search that has not ended may not have made.
                (None, Err(growth)) => {
                    self.sizes.grow(self.code, growth);
                    let wider = Layout::new(self.code, &self.sizes);
                    self.present = repacked(self.code, &self.layout, &self.present, &wider);
                    self.layout = wider;
                }
            }
        }
    }
}

/// A state of one layout in another.
fn repacked(code: &Code, from: &Layout, state: &[u64], to: &Layout) -> Vec<u64> {
    let mut packed = vec![0; to.words];
    to.repack(code, &mut LiveSlots::default(), from, state, &mut packed);
    packed
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
