//! Unrolls loops a number of times, and lets threads release the lock anywhere.

use fencewright_program::{Action, Edge, Expr, Fault, LocationId, Op, Span, Thread};

use super::{Builder, Extended, Origin};

impl Extended {
    /// The program in which each thread takes back edges at most `rounds` times. The unrolled program is acyclic, so THESIS16 Theorem 8 applies to
    /// it; and every execution of the original program is an execution of the unrolled program for some number of rounds (THESIS16 Theorem 9). A
    /// thread that would take another back edge is blocked.
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

    /// The program in which a thread that may hold the lock can, at any location, release the lock and then stop.
    ///
    /// Robustness is about states with empty buffers. While one thread holds the lock, stores of the other threads cannot reach memory. So a state in
    /// which the lock is held need not have empty buffers, nor lead to a state with empty buffers, and robustness says nothing about it. If the
    /// holder, whose own buffer is empty, releases the lock and stops, the others can flush their buffers without moving or changing a register. So
    /// assume that SC and TSO reach the same states with empty buffers *of the program with releases*. Then all locations and registers that TSO
    /// reaches in the original program are also reached under SC in the program with releases. (The converse does not hold: the others may continue
    /// after the release.)
    pub fn released(&self) -> Extended {
        let mut released = self.clone();
        for (id, thread) in self.program.threads() {
            let mut builder = self.builder(id);
            for location in holding(thread) {
                let still = builder.copy_of(location, None);
                builder.edge(location, still, Action::Unlock, Span::default(), Origin::SILENT);
                if builder.stands_for(location) == builder.stands_for(thread.fault) {
                    // A doomed thread (`faults`) counts as faulted in the original program, so it faults after the release.
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

/// For each edge, whether it is a back edge of a depth-first search. Without back edges the graph is acyclic.
fn back_edges(thread: &Thread) -> Vec<bool> {
    let mut back = vec![false; thread.edges.len()];
    // The possible values of `seen` for a location: not visited, on the stack, finished.
    let (new, on_the_way, done) = (0u8, 1u8, 2u8);
    let mut seen = vec![new; thread.locations.len()];
    let first_edge = |location: LocationId| thread.locations[location.index()].first_edge;
    // The stack: a location, and the next edge to follow from there.
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

/// Copies the thread once for each round, in addition to the original. Back edges lead to the next copy; the last copy has none.
fn unroll(mut builder: Builder, thread: &Thread, back: &[bool], rounds: usize) -> Builder {
    let once = std::mem::take(&mut builder.edges);
    let size = thread.locations.len();
    let locations = || (0..size as u32).map(LocationId);
    let copy = |location: LocationId, round: usize| match location == thread.fault {
        // All copies share the fault location.
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
                // This edge is never enabled. Because of it, the blocked thread does not count as terminated.
                let never = Op::Assume(Expr::Const(0));
                builder.op(from, thread.fault, never, Span::default(), Origin::SILENT);
            }
        }
    }
    builder
}

/// The locations at which a thread may hold the lock, except its fault location.
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
