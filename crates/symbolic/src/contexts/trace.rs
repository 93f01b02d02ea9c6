//! Converts a path of the context machine to an execution of the exact memory model.
//!
//! A group stands for several stores. The replay counts them, so that the same number of stores leaves the exact buffer when a group leaves.

use fencewright_program::{Property, ThreadId, Trace};
use fencewright_verdict::{Limits, Task};

use super::machine::Move;
use super::relevant::{Relevant, RelevantStepName};
use crate::execution::Execution;
use crate::search::explore::Counterexample;

/// The replay of a path on the exact machine.
struct Replay<'a, 'p> {
    execution: Execution<'p>,
    /// For each thread, the number of stores that each of its groups stands for.
    groups: Vec<Vec<usize>>,
    limits: &'a Limits,
}

/// The execution that a path describes, with values for which it is evidence about the property, if such values are found within the limits.
pub fn execution(
    task: &Task<'_>,
    path: &Counterexample<Relevant<'_, '_>>,
    property: &Property,
    limits: &Limits,
) -> Option<Trace> {
    let execution = Execution::new(task.program, task.model, path.steps.len());
    let groups = vec![Vec::new(); task.program.threads.len()];
    let mut replay = Replay { execution, groups, limits };
    for (step, _) in &path.steps {
        let RelevantStepName { thread, what, joined } = step.name;
        match what {
            Move::Edge { edge, case, flushed, merged } => {
                replay.flush(thread, flushed)?;
                let (mut steps, execution) = (Vec::new(), &mut replay.execution);
                execution.machine().edge_steps(execution.control(), thread, edge, &mut steps);
                let buffered = execution.buffered(thread);
                execution.take(steps.into_iter().find(|s| s.name.case == case)?)?;
                let groups = &mut replay.groups[thread.index()];
                if execution.buffered(thread) > buffered {
                    groups.push(1);
                }
                if let Some(n) = merged {
                    let newer = groups.remove(n as usize + 1);
                    groups[n as usize] += newer;
                }
            }
            Move::Switch { flushed, to } => {
                replay.flush(thread, flushed)?;
                if joined {
                    let groups = &mut replay.groups[to.index()];
                    let all: usize = groups.drain(..).sum();
                    groups.extend((all > 0).then_some(all));
                }
            }
        }
        if limits.exceeded(0).is_some() {
            return None;
        }
    }
    replay.flush(path.end().at.active, path.evidence.case)?;
    replay.execution.finish(property, &limits.budget())
}

impl Replay<'_, '_> {
    /// Flushes the stores of the oldest groups; `None` if a flush is impossible or a limit is reached.
    fn flush(&mut self, thread: ThreadId, groups: u32) -> Option<()> {
        let count = self.groups[thread.index()].drain(..groups as usize).sum();
        for _ in 0..count {
            let mut steps = Vec::new();
            self.execution.machine().flush_steps(self.execution.control(), thread, &mut steps);
            self.execution.take(steps.into_iter().next()?)?;
            if self.limits.exceeded(0).is_some() {
                return None;
            }
        }
        Some(())
    }
}
