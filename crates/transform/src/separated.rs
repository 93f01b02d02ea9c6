//! Programs for which PSO is TSO: no two stores of a thread can overtake each other.
//!
//! Under PSO a store may overtake an older one of its thread only if the two are to different cells and no store-store fence came between
//! them. [`stores_are_separated`] holds if on every path of every thread two stores to possibly different cells have between them an
//! `sfence`, or a step that waits until the buffer is empty (`fence`, `lock`, `unlock`, a draining indivisible step).
//!
//! **Then TSO and PSO have the same executions.** Take any execution under PSO, and call the entries of a buffer from one barrier to the next a
//! *segment*. All stores of a segment are to the same cell, by induction on the steps: a store joins the last segment, and what is there was stored
//! on the thread's own path since the last `sfence` (which began a new segment, unless the last one was empty) and since the buffer was
//! last known to be empty; by assumption that is to the same cell. A store leaves from the first segment, which stays as it is otherwise; a
//! barrier vanishes only if it is the oldest entry, so no two segments ever become one. Hence the oldest entry of a cell in the first
//! segment is the oldest of the whole buffer, and sorting a segment by cells changes nothing. So if the barriers are left out, the buffer
//! is that of the same execution under TSO, the same stores can leave, a load finds the same newest store, and it is empty at the same
//! time, because a barrier is never alone. Conversely a TSO execution, with its barriers put in, is one under PSO. The states are the same
//! but for barriers, which no property sees; so are final states and deadlocks, and a trace of one model replays under the other.

use fencewright_kit::accesses::cells_of;
use fencewright_program::{Action, Op, Program, Thread};

/// To which cell the stores are that may be in the last segment of the buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Segment {
    /// There are none.
    Empty,
    /// To this one.
    One(u32),
    /// To any one cell, as far as is known.
    Any,
}

/// Whether no store of any thread can overtake an older one of that thread under PSO.
pub fn stores_are_separated(program: &Program) -> bool {
    program.threads.iter().all(|thread| are_separated(program, thread))
}

/// A forward analysis: what the last segment may hold at each location.
fn are_separated(program: &Program, thread: &Thread) -> bool {
    let mut segments = vec![None; thread.locations.len()];
    segments[thread.entry.index()] = Some(Segment::Empty);
    let mut work = vec![thread.entry];
    while let Some(location) = work.pop() {
        let before = segments[location.index()].expect("a location is visited when it has been reached");
        for (_, edge) in thread.edges_from(location) {
            let after = match &edge.action {
                Action::StoreFence => Segment::Empty,
                action if action.drains() => Segment::Empty,
                Action::Op(Op::Store(address, _)) => {
                    let cells = cells_of(program, address);
                    let stored = if cells.len() == 1 { Segment::One(cells.start) } else { Segment::Any };
                    if before != Segment::Empty && (before != stored || stored == Segment::Any) {
                        return false;
                    }
                    stored
                }
                _ => before,
            };
            let known = &mut segments[edge.to.index()];
            // Different segments meet in `Any`, to which no store may be added.
            let joined = match *known {
                None | Some(Segment::Empty) => after,
                Some(other) if after == other || after == Segment::Empty => other,
                Some(_) => Segment::Any,
            };
            if *known != Some(joined) {
                *known = Some(joined);
                work.push(edge.to);
            }
        }
    }
    true
}
