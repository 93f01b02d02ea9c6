//! Loops cut off, and locks given back.

use fencewright_program::{Action, Expr, LocationId, Op, Span, ThreadId};

use super::graph::{Arc, Graph};
use super::{Extended, Origin};

impl Extended {
    /// The program with each thread going back at most `rounds` times: acyclic, so that Theorem 8 applies to it, and for `rounds` large enough
    /// it has any given execution of the program (Theorem 9). A thread that would go back once more stands still.
    pub fn unrolled(&self, rounds: usize) -> Extended {
        let mut unrolled = self.clone();
        for n in 0..self.program.threads.len() {
            let id = ThreadId(n as u32);
            let graph = self.graph(id);
            let back = back_edges(&graph);
            if back.iter().any(|arcs| arcs.contains(&true)) {
                unrolled.replace(id, unroll(graph, &back, rounds));
            }
        }
        unrolled.adapt_formulas();
        unrolled
    }

    /// Whether some thread has a loop.
    pub fn is_cyclic(&self) -> bool {
        let threads = (0..self.program.threads.len() as u32).map(ThreadId);
        threads.into_iter().any(|id| back_edges(&self.graph(id)).iter().any(|arcs| arcs.contains(&true)))
    }

    /// Whether some thread takes the lock.
    pub fn has_locks(&self) -> bool {
        self.program.threads.iter().any(|t| t.edges.iter().any(|e| e.action == Action::Lock))
    }

    /// The program in which a thread that may hold the lock can give it back anywhere, and then stands still.
    ///
    /// While one thread holds the lock, stores of the others cannot reach memory, and such a state need not be one in which all
    /// buffers are empty, nor lead to one: so what robustness says about states with empty buffers says nothing about it. If
    /// the holder, its own buffer empty, gives the lock back and stands still, the others can empty theirs, and
    /// nobody has changed a register or moved. So if SC and TSO reach the same states with empty buffers *of this program*, then the
    /// locations and registers that TSO reaches in the program are among those that SC reaches in this one.
    /// (Not conversely: the others may go on.)
    pub fn released(&self) -> Extended {
        let mut released = self.clone();
        for n in 0..self.program.threads.len() {
            let id = ThreadId(n as u32);
            let mut graph = self.graph(id);
            for location in holding(&graph) {
                let still = graph.place(graph.original(location), None);
                graph.arc(location, still, Action::Unlock, Span::default(), Origin::SILENT);
                if graph.original(location) == self.original_location(id, graph.fault) {
                    // A thread that is about to fault has faulted in the original program.
                    let faulting = Origin { step: None, faults: true };
                    let fault = graph.fault;
                    graph.op(still, fault, Op::Assert(Expr::Const(0)), Span::default(), faulting);
                }
            }
            released.replace(id, graph);
        }
        released.adapt_formulas();
        released
    }
}

/// For each location and each of its edges, whether it leads back to where a walk through the graph is coming from: without
/// these edges there are no loops.
fn back_edges(graph: &Graph) -> Vec<Vec<bool>> {
    let mut back: Vec<Vec<bool>> = graph.places.iter().map(|p| vec![false; p.arcs.len()]).collect();
    // Whether the walk has not been here, is on its way from here, or is done with it.
    let (new, on_the_way, done) = (0u8, 1u8, 2u8);
    let mut seen = vec![new; graph.places.len()];
    let mut walk = vec![(graph.entry.index(), 0)];
    seen[graph.entry.index()] = on_the_way;
    while let Some((place, next)) = walk.last_mut() {
        let Some(arc) = graph.places[*place].arcs.get(*next) else {
            seen[*place] = done;
            walk.pop();
            continue;
        };
        let (place, edge) = (*place, std::mem::replace(next, *next + 1));
        let to = arc.to.index();
        if seen[to] == on_the_way {
            back[place][edge] = true;
        } else if seen[to] == new {
            seen[to] = on_the_way;
            walk.push((to, 0));
        }
    }
    back
}

/// The graph once for each round; edges that lead back go to the next copy.
fn unroll(mut graph: Graph, back: &[Vec<bool>], rounds: usize) -> Graph {
    let once: Vec<Vec<Arc>> = graph.places.iter().map(|p| p.arcs.clone()).collect();
    let fault = graph.fault;
    let copy = |location: LocationId, round: usize| match location == fault {
        // There is one place to fault.
        true => location,
        false => LocationId((round * once.len() + location.index()) as u32),
    };
    for _ in 0..rounds {
        for place in 0..once.len() {
            let original = graph.original(LocationId(place as u32));
            graph.place(original, None);
        }
    }
    for round in 0..=rounds {
        for (place, arcs) in once.iter().enumerate() {
            let at = LocationId((round * once.len() + place) as u32);
            let followed = arcs.iter().zip(&back[place]).filter_map(|(arc, &back)| {
                let next = round + usize::from(back);
                (next <= rounds).then(|| Arc { to: copy(arc.to, next), ..arc.clone() })
            });
            let mut followed: Vec<Arc> = followed.collect();
            if followed.is_empty() && !arcs.is_empty() {
                followed.push(stuck(fault));
            }
            graph.places[at.index()].arcs = followed;
        }
    }
    graph
}

/// An edge that never opens, wherever it leads: a thread that is cut off has not ended.
fn stuck(nowhere: LocationId) -> Arc {
    let action = Action::Op(Op::Assume(Expr::Const(0)));
    Arc { number: None, to: nowhere, action, span: Span::default(), origin: Origin::SILENT }
}

/// The locations at which a thread may hold the lock.
fn holding(graph: &Graph) -> Vec<LocationId> {
    let mut holds = vec![false; graph.places.len()];
    let arcs = graph.places.iter().flat_map(|p| &p.arcs);
    let mut open: Vec<LocationId> = arcs.filter(|a| a.action == Action::Lock).map(|a| a.to).collect();
    while let Some(location) = open.pop() {
        if std::mem::replace(&mut holds[location.index()], true) {
            continue;
        }
        let arcs = graph.places[location.index()].arcs.iter();
        open.extend(arcs.filter(|a| a.action != Action::Unlock).map(|a| a.to));
    }
    let all = (0..graph.places.len() as u32).map(LocationId);
    all.filter(|l| holds[l.index()] && *l != graph.fault).collect()
}
