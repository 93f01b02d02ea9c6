//! Reachability in control-flow graphs.

use fencewright_program::{LocationId, Thread};

/// The locations reachable from the entry, in breadth-first order.
pub fn reachable(thread: &Thread) -> Vec<LocationId> {
    let mut seen = vec![false; thread.locations.len()];
    seen[thread.entry.index()] = true;
    let mut order = vec![thread.entry];
    let mut next = 0;
    while let Some(&location) = order.get(next) {
        next += 1;
        for (_, edge) in thread.edges_from(location) {
            if !std::mem::replace(&mut seen[edge.to.index()], true) {
                order.push(edge.to);
            }
        }
    }
    order
}
