//! What the control-flow graphs of threads have in common: cycles, and threads that are alike.

use std::collections::HashMap;

use crate::model::{Action, Edge, EdgeId, LocationId, Thread};

/// Loops inside more loops than this are not told apart.
const DEEPEST_LOOP: u32 = 4;

impl Thread {
    /// For each location the number of its strongly connected component in the graph of the edges that are `passable` (Tarjan, without
    /// recursion): such an edge lies on a cycle of such edges exactly if both its ends have the same number.
    pub fn components(&self, passable: &dyn Fn(EdgeId, &Edge) -> bool) -> Vec<u32> {
        const UNSEEN: u32 = u32::MAX;
        let size = self.locations.len();
        let (mut order, mut low, mut component) =
            (vec![UNSEEN; size], vec![UNSEEN; size], vec![UNSEEN; size]);
        let (mut seen, mut closed) = (0, 0);
        let mut open: Vec<usize> = Vec::new();
        for start in 0..size {
            // A location on the way, and how many of its edges have been followed.
            let mut way: Vec<(usize, u32)> = Vec::new();
            if order[start] == UNSEEN {
                way.push((start, 0));
            }
            while let Some((here, followed)) = way.last_mut() {
                let here = *here;
                if *followed == 0 && order[here] == UNSEEN {
                    order[here] = seen;
                    low[here] = seen;
                    seen += 1;
                    open.push(here);
                }
                let location = &self.locations[here];
                let edge = location.first_edge + *followed;
                if edge < location.last_edge {
                    *followed += 1;
                    let id = EdgeId(edge);
                    let edge = self.edge(id);
                    let to = edge.to.index();
                    if !passable(id, edge) {
                        continue;
                    }
                    if order[to] == UNSEEN {
                        way.push((to, 0));
                    } else if component[to] == UNSEEN {
                        low[here] = low[here].min(order[to]);
                    }
                    continue;
                }
                way.pop();
                if let Some((before, _)) = way.last() {
                    low[*before] = low[*before].min(low[here]);
                }
                if low[here] == order[here] {
                    while let Some(member) = open.pop() {
                        component[member] = closed;
                        if member == here {
                            break;
                        }
                    }
                    closed += 1;
                }
            }
        }
        component
    }

    /// For each location how many loops it is in: one if it lies on a cycle, two if it still does without the edges to where that loop
    /// is entered, and so on.
    pub fn loop_depths(&self) -> Vec<u32> {
        let mut depths = vec![0; self.locations.len()];
        let mut cut = vec![false; self.edges.len()];
        for depth in 1..=DEEPEST_LOOP {
            let component = self.components(&|edge, _| !cut[edge.index()]);
            let inside = |edge: &Edge| component[edge.from.index()] == component[edge.to.index()];
            // Where each component is entered: from outside, or else at its first location.
            let mut starts: HashMap<u32, LocationId> = HashMap::new();
            starts.insert(component[self.entry.index()], self.entry);
            for edge in self.edges.iter().filter(|edge| !inside(edge)) {
                starts.entry(component[edge.to.index()]).or_insert(edge.to);
            }
            let mut deeper = false;
            for (n, edge) in self.edges.iter().enumerate().filter(|(_, edge)| inside(edge)) {
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

    /// The locations that can be reached from one over edges to `follow`, that one included.
    pub fn reachable(&self, from: LocationId, follow: impl Fn(&Action) -> bool) -> Vec<bool> {
        let mut seen = vec![false; self.locations.len()];
        let mut work = vec![from];
        seen[from.index()] = true;
        while let Some(location) = work.pop() {
            for (_, edge) in self.edges_from(location).filter(|(_, e)| follow(&e.action)) {
                if !std::mem::replace(&mut seen[edge.to.index()], true) {
                    work.push(edge.to);
                }
            }
        }
        seen
    }

    /// Whether another thread has the same code and starts alike, so that each can do what the other can.
    pub fn is_like(&self, other: &Thread) -> bool {
        let registers = self.registers.len() == other.registers.len()
            && self
                .registers
                .iter()
                .zip(&other.registers)
                .all(|(x, y)| (x.init, x.range) == (y.init, y.range));
        let same = |(x, y): (&Edge, &Edge)| (x.from, x.to, &x.action) == (y.from, y.to, &y.action);
        let edges = self.edges.len() == other.edges.len() && self.edges.iter().zip(&other.edges).all(same);
        let ends = |t: &Thread| (t.entry, t.fault, t.locations.len());
        registers && edges && ends(self) == ends(other)
    }
}

impl Action {
    /// Whether it waits until the own buffers are empty.
    pub fn drains(&self) -> bool {
        match self {
            Action::Fence | Action::Lock | Action::Unlock => true,
            Action::Atomic { drains, .. } => *drains,
            Action::Op(_) | Action::StoreFence => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::model::*;
    use crate::span::Span;

    /// A thread of `skip`s with these edges, sorted by where they start.
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
            assert_eq!(thread(6, edges).loop_depths(), expected, "{edges:?}");
        };
        check(&[(0, 1), (1, 2)], &[0, 0, 0, 0, 0, 0]);
        check(&[(0, 0), (0, 1)], &[1, 0, 0, 0, 0, 0]);
        check(&[(0, 1), (1, 2), (2, 1), (2, 3)], &[0, 1, 1, 0, 0, 0]);
        check(&[(0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (4, 0)], &[1, 1, 1, 1, 1, 0]);
        check(&[(0, 1), (1, 0), (1, 2), (2, 3), (3, 2)], &[1, 1, 1, 1, 0, 0]);
        // Loops in loops.
        check(&[(0, 1), (1, 2), (2, 1), (2, 0)], &[1, 2, 2, 0, 0, 0]);
        check(&[(0, 1), (1, 2), (2, 3), (3, 2), (3, 4), (4, 1), (4, 5)], &[0, 1, 2, 2, 1, 0]);
        check(&[(0, 0), (0, 1), (1, 0)], &[1, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn long_threads_take_no_time_and_no_stack() {
        let edges: Vec<(u32, u32)> = (0..200_000).map(|n| (n, n + 1)).collect();
        assert_eq!(thread(200_001, &edges).loop_depths().iter().max(), Some(&0));
    }
}
