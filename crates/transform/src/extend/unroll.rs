//! Programs whose loops are unrolled a number of times, and programs in which a thread may give the lock back anywhere.

use fencewright_program::{Action, Edge, Expr, Fault, LocationId, Op, Span, Thread};

use super::{Builder, Extended, Origin};

impl Extended {
    /// The program with each thread going back at most `rounds` times: acyclic, so that Theorem 8 applies to it, and for `rounds` large enough
    /// it has any given execution of the program (Theorem 9). A thread that would go back once more stands still.
    pub fn unrolled(&self, rounds: usize) -> Extended {
        let mut unrolled = self.clone();
        for (id, thread) in self.program.threads() {
            let back = back_edges(thread);
            if back.contains(&true) {
                unrolled.replace(id, unroll(self.builder(id), thread, &back, rounds));
            }
        }
        unrolled.adapt_formulas();
        unrolled
    }

    /// Whether some thread has a loop.
    pub fn is_cyclic(&self) -> bool {
        self.program.threads.iter().any(|thread| back_edges(thread).contains(&true))
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
        for (id, thread) in self.program.threads() {
            let mut builder = self.builder(id);
            for location in holding(thread) {
                let still = builder.copy_of(location, None);
                builder.edge(location, still, Action::Unlock, Span::default(), Origin::SILENT);
                if builder.stands_for(location) == builder.stands_for(thread.fault) {
                    // A thread that is about to fault has faulted in the original program.
                    let faulting = Origin { step: None, faults: true };
                    builder.op(
                        still,
                        thread.fault,
                        Op::Assert(Expr::Const(0), Fault::Assertion(None)),
                        Span::default(),
                        faulting,
                    );
                }
            }
            released.replace(id, builder);
        }
        released.adapt_formulas();
        released
    }
}

/// For each edge whether it leads back to where a walk through the graph is coming from: without these edges there are no loops.
fn back_edges(thread: &Thread) -> Vec<bool> {
    let mut back = vec![false; thread.edges.len()];
    // Whether the walk has not been here, is on its way from here, or is done with it.
    let (new, on_the_way, done) = (0u8, 1u8, 2u8);
    let mut seen = vec![new; thread.locations.len()];
    let first_edge = |location: LocationId| thread.locations[location.index()].first_edge;
    // A location on the way, and the next of its edges to follow.
    let mut walk = vec![(thread.entry, first_edge(thread.entry))];
    seen[thread.entry.index()] = on_the_way;
    while let Some((location, next)) = walk.last_mut() {
        if *next == thread.locations[location.index()].last_edge {
            seen[location.index()] = done;
            walk.pop();
            continue;
        }
        let edge = std::mem::replace(next, *next + 1) as usize;
        let to = thread.edges[edge].to;
        if seen[to.index()] == on_the_way {
            back[edge] = true;
        } else if seen[to.index()] == new {
            seen[to.index()] = on_the_way;
            walk.push((to, first_edge(to)));
        }
    }
    back
}

/// The thread once for each round; edges that lead back go to the next copy.
fn unroll(mut builder: Builder, thread: &Thread, back: &[bool], rounds: usize) -> Builder {
    let once = std::mem::take(&mut builder.edges);
    let size = thread.locations.len();
    let locations = || (0..size as u32).map(LocationId);
    let copy = |location: LocationId, round: usize| match location == thread.fault {
        // There is one place to fault.
        true => location,
        false => LocationId((round * size + location.index()) as u32),
    };
    for _ in 0..rounds {
        locations().for_each(|location| _ = builder.copy_of(location, None));
    }
    for round in 0..=rounds {
        for location in locations() {
            let from = LocationId((round * size) as u32 + location.0);
            let mut open = false;
            for (id, edge) in thread.edges_from(location) {
                let next = round + usize::from(back[id.index()]);
                if next <= rounds {
                    open = true;
                    let copied = Edge { from, to: copy(edge.to, next), ..edge.clone() };
                    builder.edges.push((copied, once[id.index()].1));
                }
            }
            if !open && thread.edges_from(location).next().is_some() {
                // An edge that never opens, wherever it leads: a thread that is cut off has not ended.
                let never = Op::Assume(Expr::Const(0));
                builder.op(from, thread.fault, never, Span::default(), Origin::SILENT);
            }
        }
    }
    builder
}

/// The locations at which a thread may hold the lock.
fn holding(thread: &Thread) -> Vec<LocationId> {
    let mut holds = vec![false; thread.locations.len()];
    let locks = thread.edges.iter().filter(|edge| edge.action == Action::Lock);
    let mut open: Vec<LocationId> = locks.map(|edge| edge.to).collect();
    while let Some(location) = open.pop() {
        if !std::mem::replace(&mut holds[location.index()], true) {
            let leaving = thread.edges_from(location).filter(|(_, edge)| edge.action != Action::Unlock);
            open.extend(leaving.map(|(_, edge)| edge.to));
        }
    }
    let all = (0..thread.locations.len() as u32).map(LocationId);
    all.filter(|l| holds[l.index()] && *l != thread.fault).collect()
}
