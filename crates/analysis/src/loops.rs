//! Loops of control-flow graphs: strongly connected components and loop depths.

use std::collections::HashMap;

use fencewright_program::{Edge, EdgeId, LocationId, Thread};

/// Maximum loop depth; it stands for all greater depths, too.
const DEEPEST_LOOP: u32 = 4;

/// For each location, the number of its strongly connected component in the graph of the `passable` edges. A passable edge is on a cycle of passable
/// edges if and only if its source and target are in the same component.
pub fn components(thread: &Thread, passable: &dyn Fn(EdgeId, &Edge) -> bool) -> Vec<u32> {
    fencewright_graph::components(thread.locations.len(), |location| {
        let leaving = thread.edges_from(LocationId(location as u32));
        leaving.filter(|(id, edge)| passable(*id, edge)).map(|(_, edge)| edge.to.index())
    })
}

/// The loop depth of each location: 0 if it is on no cycle, 1 if it is on a cycle, 2 if it is still on a cycle when the edges back to the head of
/// that loop are removed, and so on, up to `DEEPEST_LOOP`.
pub fn loop_depths(thread: &Thread) -> Vec<u32> {
    let mut depths = vec![0; thread.locations.len()];
    let mut cut = vec![false; thread.edges.len()];
    for depth in 1..=DEEPEST_LOOP {
        let component = components(thread, &|edge, _| !cut[edge.index()]);
        let inside = |edge: &Edge| component[edge.from.index()] == component[edge.to.index()];
        // The head of each component: the entry of the thread, or the target of an edge from another component. A component with neither has the
        // target of its first edge as its head.
        let mut starts: HashMap<u32, LocationId> = HashMap::new();
        starts.insert(component[thread.entry.index()], thread.entry);
        for edge in thread.edges.iter().filter(|edge| !inside(edge)) {
            starts.entry(component[edge.to.index()]).or_insert(edge.to);
        }
        let mut deeper = false;
        for (n, edge) in thread.edges.iter().enumerate().filter(|(_, edge)| inside(edge)) {
            if !cut[n] {
                depths[edge.from.index()] = depth;
                deeper = true;
            }
            let start = starts.entry(component[edge.to.index()]).or_insert(edge.to);
            cut[n] |= *start == edge.to;
        }
        if !deeper {
            break;
        }
    }
    depths
}

#[cfg(test)]
mod tests {
    use fencewright_program::{Action, Location, Op, Span};

    use super::*;

    /// A thread of `skip`s with these edges, sorted by source.
    fn thread(locations: u32, edges: &[(u32, u32)]) -> Thread {
        let edge = |&(from, to): &(u32, u32)| Edge {
            from: LocationId(from),
            to: LocationId(to),
            action: Action::Op(Op::Skip),
            span: Span::default(),
        };
        let first = |l: u32| edges.partition_point(|(from, _)| *from < l) as u32;
        let location = |l| Location { first_edge: first(l), last_edge: first(l + 1), ..Location::default() };
        Thread {
            name: "p".into(),
            registers: Vec::new(),
            locations: (0..locations).map(location).collect(),
            entry: LocationId(0),
            edges: edges.iter().map(edge).collect(),
            fault: LocationId(locations - 1),
            family: None,
        }
    }

    #[test]
    fn cycles() {
        let check = |edges: &[(u32, u32)], expected: &[u32]| {
            assert_eq!(loop_depths(&thread(6, edges)), expected, "{edges:?}");
        };
        check(&[(0, 1), (1, 2)], &[0, 0, 0, 0, 0, 0]);
        check(&[(0, 0), (0, 1)], &[1, 0, 0, 0, 0, 0]);
        check(&[(0, 1), (1, 2), (2, 1), (2, 3)], &[0, 1, 1, 0, 0, 0]);
        check(&[(0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (4, 0)], &[1, 1, 1, 1, 1, 0]);
        check(&[(0, 1), (1, 0), (1, 2), (2, 3), (3, 2)], &[1, 1, 1, 1, 0, 0]);
        // Nested loops.
        check(&[(0, 1), (1, 2), (2, 1), (2, 0)], &[1, 2, 2, 0, 0, 0]);
        check(&[(0, 1), (1, 2), (2, 3), (3, 2), (3, 4), (4, 1), (4, 5)], &[0, 1, 2, 2, 1, 0]);
        check(&[(0, 0), (0, 1), (1, 0)], &[1, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn only_passable_edges_make_cycles() {
        let thread = thread(3, &[(0, 1), (1, 0), (1, 2)]);
        let component = components(&thread, &|edge, _| edge.0 != 1);
        assert_ne!(component[0], component[1]);
    }

    #[test]
    fn long_threads_take_no_time_and_no_stack() {
        let edges: Vec<(u32, u32)> = (0..200_000).map(|n| (n, n + 1)).collect();
        assert_eq!(loop_depths(&thread(200_001, &edges)).iter().max(), Some(&0));
    }
}
