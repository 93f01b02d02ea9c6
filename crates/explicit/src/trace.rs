//! Reconstruction of an execution from stored states: follows the chain of predecessors, and for each link finds the event that leads from one state
//! to the next. Events are not stored; they are found by expanding the earlier state again. If a reduction has omitted intermediate states, a link
//! may stand for several events of one thread.

use fencewright_memory::Bound;
use fencewright_program::{Event, EventKind, Init, ThreadId, Trace};
use fencewright_verdict::{Limits, Reason, Task};

use super::abstracted::Path;
use super::code::Code;
use super::expand::{Expander, Part, Sink, Step, StepKind};
use super::layout::{Growth, Layout, LiveSlots, Sizes};
use super::orbits::Representatives;
use super::search::Decided;
use super::store::NONE;

/// An execution that leads to the state that decides a property. Every stored state was reached by a step or a run from its predecessor, so the
/// execution exists; a failure to find it is a defect of the engine. With abstract buffers, the result is an execution of the abstract machine only.
pub fn path(
    task: &Task<'_>,
    code: &Code,
    found: &Decided<'_>,
    samples: &[i64],
    bound: Option<Bound>,
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
            Some(found) => {
                if let [Event { kind: EventKind::Flush { cell }, .. }] = found.as_slice() {
                    flushed.push(walk.layout.slots[(code.memory + cell) as usize].get(&walk.present));
                }
                events.extend(found);
            }
            None => return Ok(None),
        }
    }
    Ok(Some(Path { trace: Trace { registers, memory, events }, flushed }))
}

/// An execution being reconstructed along stored states.
struct Walk<'c> {
    code: &'c Code,
    expander: Expander<'c>,
    representatives: Representatives<'c>,
    sizes: Sizes,
    layout: Layout,
    /// The current state of the execution. Its representative ([`Representatives`]) is a stored state of the chain; so from the current state there
    /// is a step to a state whose representative is the next stored state of the chain.
    present: Vec<u64>,
}

impl Walk<'_> {
    /// Takes a step, or a run of one thread, to a state whose representative is the given stored state, and returns its events; `None` if there is no
    /// such step or run.
    fn step_to(&mut self, stored_layout: &Layout, stored: &[u64]) -> Option<Vec<Event>> {
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
            let growth = match (finder.found, expanded) {
                (Some((event, next)), _) => {
                    self.present = next;
                    return Some(vec![event]);
                }
                (None, Ok(_)) => match self.run_to(&target) {
                    Ok(run) => return run,
                    Err(growth) => growth,
                },
                // Another successor of this state needs a wider layout than that of the interrupted search.
                (None, Err(growth)) => growth,
            };
            self.sizes.grow(self.code, growth);
            let wider = Layout::new(self.code, &self.sizes);
            self.present = repacked(self.code, &self.layout, &self.present, &wider);
            self.layout = wider;
        }
    }

    /// Finds a run of one thread to a state whose representative is the target, through states that a reduction may have omitted; `None` if none is
    /// found.
    fn run_to(&mut self, target: &[u64]) -> Result<Option<Vec<Event>>, Growth> {
        let Some(summaries) = &self.code.summaries else { return Ok(None) };
        let mut passed = Passed { events: Vec::new(), states: Vec::new(), from: NONE };
        let mut at = 0;
        // The runs of all threads are explored together, starting from the current state.
        for t in 0..self.code.threads.len() {
            let parts = [Part::Edges(t)];
            self.expander.expand_parts(&self.layout, &self.present, parts, &mut passed)?;
        }
        while let Some(state) = passed.states.get(at).cloned() {
            let t = passed.events[at].1.thread.index();
            if self.representatives.of(&self.layout, &state) == target {
                let mut run = Vec::new();
                let mut back = at as u32;
                while back != NONE {
                    let (before, event) = &passed.events[back as usize];
                    run.push(event.clone());
                    back = *before;
                }
                run.reverse();
                self.present = state;
                return Ok(Some(run));
            }
            let came_from = match passed.events[at].0 {
                NONE => &self.present,
                before => &passed.states[before as usize],
            };
            let may_pass = summaries.place(self.code, &self.layout, came_from, t).may_be_passed();
            if may_pass && passed.states.len() < MOST_PASSED {
                passed.from = at as u32;
                self.expander.expand_parts(&self.layout, &state, [Part::Edges(t)], &mut passed)?;
            }
            at += 1;
        }
        Ok(None)
    }
}

/// Maximum number of states explored to find a run: far more than a reduction omits.
const MOST_PASSED: usize = 1 << 16;

/// Intermediate states, each with the event that leads to it and the index of its predecessor.
struct Passed {
    events: Vec<(u32, Event)>,
    states: Vec<Vec<u64>>,
    /// The index of the state that is being expanded.
    from: u32,
}

impl Sink for Passed {
    fn take(&mut self, step: Step<'_>, state: &[u64]) {
        self.events.push((self.from, event(step)));
        self.states.push(state.to_vec());
    }
}

/// Converts a step of the expander to an event of a trace.
fn event(step: Step<'_>) -> Event {
    let kind = match step.kind {
        StepKind::Edge(edge, chosen) => EventKind::Step { edge: edge.id, chosen: chosen.to_vec() },
        StepKind::Flush(cell) => EventKind::Flush { cell },
        StepKind::Run => unreachable!("only reductions pass states over"),
    };
    Event { thread: ThreadId(step.thread), kind }
}

/// Converts a state from one layout to another.
fn repacked(code: &Code, from: &Layout, state: &[u64], to: &Layout) -> Vec<u64> {
    let mut packed = vec![0; to.words];
    to.repack(code, &mut LiveSlots::default(), from, state, &mut packed);
    packed
}

/// Searches for a step to a state of a given orbit.
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
        self.found = Some((event(step), state.to_vec()));
    }
}

/// Registers and memory of an initial state. A dead register gets any of its initial values.
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
