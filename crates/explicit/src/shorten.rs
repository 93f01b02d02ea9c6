//! Removes steps from an execution that its violation does not need.
//!
//! A search with a partial order reduction takes some steps before others, also where a violation does not need them: what it finds is an execution
//! that leads there, and more. The last steps of each thread, and the last flushes of each buffer, are left out as long as what remains is an execution that ends
//! in a violation. A step that is not the last one of its thread is needed by the one that follows it.

use fencewright_program::{Event, EventKind, Property, PropertyKind, Trace};
use fencewright_verdict::{Limits, Task};

/// At most so many events are replayed: very long executions stay as they are.
const MOST_REPLAYED: usize = 100_000;

/// The execution without steps that its violation of a property does not need.
pub fn shortened(task: &Task<'_>, property: &Property, mut trace: Trace, limits: &Limits) -> Trace {
    // In a state without steps every step was needed to get there.
    if !matches!(property.kind, PropertyKind::Never(_) | PropertyKind::Assertions) {
        return trace;
    }
    let stop = || limits.exceeded(0).is_some();
    let mut replayed = 0;
    // What is known to be needed: a thread's edges, or its flushes of a cell.
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
