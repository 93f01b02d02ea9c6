//! From a path of the machine `contexts` to an execution of the exact memory model.
//!
//! A group stands for several stores: here they are counted, so that when a group leaves, as many stores leave a real buffer.

use fencewright_memory::{Machine, Move, Outcome, Step};
use fencewright_program::{MemoryModel, Program, Property, ThreadId, Trace};

use super::layers::Found;
use crate::concrete;

/// A path on the exact machine.
struct Replay<'p> {
    machine: Machine<'p>,
    steps: Vec<Step>,
    /// For each thread, how many stores each of its groups stands for.
    groups: Vec<Vec<usize>>,
}

/// The execution that a path describes and that is evidence about the property, if there are values for it.
pub fn execution(program: &Program, model: MemoryModel, found: &Found, property: &Property) -> Option<Trace> {
    let machine = concrete::machine(program, model, found.path.len());
    let mut replay = Replay { machine, steps: Vec::new(), groups: vec![Vec::new(); program.threads.len()] };
    for step in &found.path {
        match step.what {
            Move::Edge { edge, case, flushed, merged } => {
                replay.flush(step.thread, flushed)?;
                let mut steps = Vec::new();
                replay.machine.edge_steps(&replay.control(), step.thread, edge, &mut steps);
                let buffered = replay.buffered(step.thread);
                let taken = steps.into_iter().find(|s| s.case == case)?;
                replay.steps.push(taken);
                let groups = &mut replay.groups[step.thread.index()];
                if replay.steps.last().is_some_and(|s| buffered < stores(s)) {
                    groups.push(1);
                }
                if let Some(n) = merged {
                    let newer = groups.remove(n as usize + 1);
                    groups[n as usize] += newer;
                }
            }
            Move::Switch { flushed, to } => {
                replay.flush(step.thread, flushed)?;
                if step.joined {
                    let groups = &mut replay.groups[to.index()];
                    let all: usize = groups.drain(..).sum();
                    groups.extend((all > 0).then_some(all));
                }
            }
        }
    }
    replay.flush(found.active, found.flushed)?;
    concrete::execution(&replay.machine, model, &replay.steps, property)
}

/// How many stores the thread of a step has buffered after it.
fn stores(step: &Step) -> usize {
    match &step.outcome {
        Outcome::Control(control) => control.buffers.get(step.thread.index()).map_or(0, |b| b.queue.len()),
        Outcome::Beyond(..) => 0,
    }
}

impl Replay<'_> {
    fn control(&self) -> fencewright_memory::Control {
        match self.steps.last() {
            Some(Step { outcome: Outcome::Control(control), .. }) => control.clone(),
            _ => self.machine.initial(),
        }
    }

    fn buffered(&self, thread: ThreadId) -> usize {
        self.control().buffers.get(thread.index()).map_or(0, |b| b.queue.len())
    }

    /// Lets the stores of the oldest groups leave.
    fn flush(&mut self, thread: ThreadId, groups: u32) -> Option<()> {
        let count = self.groups[thread.index()].drain(..groups as usize).sum();
        for _ in 0..count {
            let mut steps = Vec::new();
            self.machine.flush_steps(&self.control(), thread, &mut steps);
            self.steps.push(steps.into_iter().next()?);
        }
        Some(())
    }
}
