//! Shortening of executions: removes steps that a violation does not need.
//!
//! With a partial order reduction, the path to a violation may contain unrelated steps. The last steps of each thread, and its last flushes of each
//! cell, are removed as long as the rest is an execution that ends in a violation. Other steps are kept, because the later steps of the thread need
//! them.

use fencewright_program::{Event, EventKind, Property, PropertyKind, Trace};
use fencewright_verdict::{Limits, Task};

/// Maximum number of events that are replayed in all. So a long execution is shortened only in part, and a very long one not at all.
const MOST_REPLAYED: usize = 100_000;

/// Shortens an execution that violates a property.
pub fn shortened(task: &Task<'_>, property: &Property, mut trace: Trace, limits: &Limits) -> Trace {
    // A deadlock or a final state needs all steps.
    if !matches!(property.kind, PropertyKind::Never(_) | PropertyKind::Assertions) {
        return trace;
    }
    let stop = || limits.exceeded(0).is_some();
    let mut replayed = 0;
    // The parts whose last step is known to be needed: a thread's edges, or its flushes of a cell.
    let mut needed: Vec<(u32, Option<u32>)> = Vec::new();
    for n in (0..trace.events.len()).rev() {
        let Event { thread, kind } = &trace.events[n];
        let part = match kind {
            EventKind::Flush { cell } => (thread.0, Some(*cell)),
            EventKind::Step { .. } => (thread.0, None),
        };
        if needed.contains(&part) {
            continue;
        }
        replayed += trace.events.len();
        if replayed > MOST_REPLAYED {
            break;
        }
        let event = trace.events.remove(n);
        if trace.replay_for_until(task.program, task.model, property, &stop).is_err() {
            trace.events.insert(n, event);
            needed.push(part);
        }
    }
    trace
}
