//! A criterion for programs for which PSO is TSO: no two stores of a thread can overtake each other.
//!
//! Under PSO a store may overtake an older one of its thread only if the two are to different cells and no store-store fence is between them.
//! [`stores_are_separated`] holds if on every path of every thread any two stores to possibly different cells are separated by an `sfence`, or by a
//! step that waits for an empty buffer (`fence`, `lock`, `unlock`, a draining atomic step).
//!
//! **Then TSO and PSO have the same executions.** Take any execution under PSO, and call the stores in a buffer between one barrier and the next a
//! *segment*. All stores of a segment are to the same cell. The proof is by induction on the steps. A new store joins the last segment. The stores of
//! that segment were issued on the thread's own path after the last `sfence` (which began a new segment, unless the last one was empty) and after the
//! buffer was last known to be empty; by assumption they are to the same cell. A store leaves from the first segment, which is otherwise unchanged; a
//! barrier is removed only when it is the oldest entry, so segments are never merged. Hence the oldest store to a cell in the first segment is the
//! oldest of the whole buffer, and sorting a segment by cells changes nothing. So without its barriers, the buffer is that of the same execution
//! under TSO: the same stores can leave, a load finds the same newest store, and the two buffers are empty at the same time, because a barrier is
//! never alone. Conversely, a TSO execution with the barriers inserted is an execution under PSO. The states are the same except for barriers, which
//! no property observes; so final states and deadlocks are the same too, and a trace of one model replays under the other.

use fencewright_kit::accesses::cells_of;
use fencewright_program::{Action, Address, Op, Program, Thread};

/// An abstract set of the cells that some stores write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stored {
    /// There are no stores.
    Nothing,
    /// All stores are to this cell.
    One(u32),
    /// The stores may be to any cells.
    Any,
}

impl Stored {
    /// The target of stores to this address: one cell if the address is fixed, any cells otherwise.
    pub(crate) fn to(program: &Program, address: &Address) -> Self {
        let cells = cells_of(program, address);
        if cells.len() == 1 { Stored::One(cells.start) } else { Stored::Any }
    }

    fn and(self, other: Stored) -> Stored {
        match (self, other) {
            (Stored::Nothing, stored) | (stored, Stored::Nothing) => stored,
            (one, other) if one == other => one,
            _ => Stored::Any,
        }
    }

    /// Whether one of these stores can overtake one of the `older` stores, because the two may be to different cells.
    pub(crate) fn can_overtake(self, older: Stored) -> bool {
        match self {
            Stored::Nothing => false,
            Stored::One(_) => self != older,
            Stored::Any => true,
        }
    }
}

/// Whether the program text shows that under PSO no store of any thread can overtake an older one of that thread.
pub fn stores_are_separated(program: &Program) -> bool {
    program.threads.iter().all(|thread| are_separated(program, thread))
}

/// Whether no store of this thread can overtake an older one.
pub(crate) fn are_separated(program: &Program, thread: &Thread) -> bool {
    let followers = followers(program, thread);
    thread.edges.iter().all(|edge| match &edge.action {
        Action::Op(Op::Store(address, _)) => {
            !followers[edge.to.index()].can_overtake(Stored::to(program, address))
        }
        _ => true,
    })
}

/// For each location, the cells of the stores that may follow before the next `sfence` or step that waits for an empty buffer.
pub(crate) fn followers(program: &Program, thread: &Thread) -> Vec<Stored> {
    let mut followers = vec![Stored::Nothing; thread.locations.len()];
    let mut into = vec![Vec::new(); thread.locations.len()];
    thread.edges.iter().for_each(|edge| into[edge.to.index()].push(edge));
    // The worklist of locations whose followers have changed. The followers of a location change at most twice.
    let mut changed: Vec<usize> = (0..thread.locations.len()).collect();
    while let Some(location) = changed.pop() {
        for edge in &into[location] {
            let stored = match &edge.action {
                Action::StoreFence => Stored::Nothing,
                action if action.drains() => Stored::Nothing,
                Action::Op(Op::Store(address, _)) => followers[location].and(Stored::to(program, address)),
                _ => followers[location],
            };
            let from = edge.from.index();
            let joined = followers[from].and(stored);
            if joined != followers[from] {
                followers[from] = joined;
                changed.push(from);
            }
        }
    }
    followers
}
