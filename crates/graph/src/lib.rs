//! Strongly connected components of directed graphs, for the analyses of control flow in every layer.

#![forbid(unsafe_code)]

/// The number of the strongly connected component of each node (Tarjan's algorithm without recursion). An edge lies on a cycle if and only if both of
/// its ends are in the same component. A component has a greater number than the components that can be reached from it.
pub fn components<S: Iterator<Item = usize>>(nodes: usize, successors: impl Fn(usize) -> S) -> Vec<u32> {
    const UNSEEN: u32 = u32::MAX;
    let (mut order, mut low) = (vec![UNSEEN; nodes], vec![UNSEEN; nodes]);
    let mut component = vec![UNSEEN; nodes];
    let (mut seen, mut closed) = (0, 0);
    // The nodes without a component so far, in the order in which they were seen.
    let mut open: Vec<usize> = Vec::new();
    for start in 0..nodes {
        // The depth-first path: nodes, with the successors that were not followed yet.
        let mut path: Vec<(usize, S)> = Vec::new();
        let mut next = (order[start] == UNSEEN).then_some(start);
        loop {
            if let Some(node) = next.take() {
                order[node] = seen;
                low[node] = seen;
                seen += 1;
                open.push(node);
                path.push((node, successors(node)));
            }
            let Some((here, rest)) = path.last_mut() else { break };
            let here = *here;
            if let Some(to) = rest.next() {
                if order[to] == UNSEEN {
                    next = Some(to);
                } else if component[to] == UNSEEN {
                    low[here] = low[here].min(order[to]);
                }
                continue;
            }
            path.pop();
            if let Some((before, _)) = path.last() {
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

#[cfg(test)]
mod tests {
    use super::components;

    /// Whether each node can reach each other one, by brute force.
    fn reachable(nodes: usize, edges: &[(usize, usize)]) -> Vec<Vec<bool>> {
        let mut reach = vec![vec![false; nodes]; nodes];
        (0..nodes).for_each(|n| reach[n][n] = true);
        for _ in 0..nodes {
            for &(from, to) in edges {
                for row in &mut reach {
                    row[to] |= row[from];
                }
            }
        }
        reach
    }

    #[test]
    fn nodes_share_a_component_if_they_reach_each_other() {
        // All graphs with four nodes and no edge from a node to itself.
        let pairs: Vec<(usize, usize)> =
            (0..4).flat_map(|a| (0..4).map(move |b| (a, b))).filter(|(a, b)| a != b).collect();
        for set in 0..1u32 << pairs.len() {
            let edges: Vec<(usize, usize)> =
                pairs.iter().enumerate().filter(|(n, _)| set >> n & 1 == 1).map(|(_, e)| *e).collect();
            let successors = |n: usize| edges.iter().filter(move |e| e.0 == n).map(|e| e.1);
            let found = components(4, successors);
            let reach = reachable(4, &edges);
            for (a, b) in &pairs {
                assert_eq!(found[*a] == found[*b], reach[*a][*b] && reach[*b][*a], "{edges:?}: {found:?}");
                assert!(!reach[*a][*b] || found[*a] >= found[*b], "{edges:?}: {found:?}");
            }
        }
    }
}
