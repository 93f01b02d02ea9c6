//! An oracle that enumerates the shortest paths from a store to a load, whether or not an attack along them succeeds (THESIS16, chapter 6).
//!
//! If the first store of each path is removed from the program, the suggested paths grow from round to round, and every path is suggested eventually.
//! So this is a semi-decision procedure without unrolling. The oracle answers `robust` only if it has no path to suggest.
//!
//! Paths that cannot be part of a robustness violation are left out. A violation is a cycle (Fig. 3.4) that leads from the load, through other
//! threads, to the delayed store. So another thread stores to the address of the load, another thread accesses the address of the store, and the load
//! does not read the delayed store. If no path satisfies these three conditions, the program is robust (Theorem 10).

use std::collections::{BTreeSet, VecDeque};

use fencewright_program::{Action, Address, EdgeId, Op, Program, Thread, ThreadId};

use super::oracle::{Advice, Oracle};
use crate::task::{Limits, Progress};

/// The oracle that suggests all paths from a store to a load that may be part of a violation, shortest first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Enumerate;

/// Maximum number of paths of a thread that are suggested in one round.
const MOST_PATHS: usize = 16;

impl Oracle for Enumerate {
    fn name(&self) -> &'static str {
        "enumerate"
    }

    fn consult(&self, program: &Program, _: u32, limits: &Limits, _: &Progress) -> Advice {
        let mut found = Vec::new();
        for (id, thread) in program.threads() {
            let others = Others::new(program, id);
            for edge in 0..thread.edges.len() as u32 {
                if let Some(reason) = limits.exceeded(0) {
                    return Advice::Unknown(reason);
                }
                if let Some(path) = shortest(&others, thread, EdgeId(edge)) {
                    found.push((id, path));
                }
            }
        }
        if found.is_empty() {
            return Advice::Robust;
        }
        found.sort_by_key(|(id, path)| (*id, path.len()));
        let mut chosen: Vec<(ThreadId, Vec<EdgeId>)> = Vec::new();
        for (id, path) in found {
            let same: Vec<&Vec<EdgeId>> = chosen.iter().filter(|(t, _)| *t == id).map(|(_, p)| p).collect();
            // Only the shortest paths of each thread are suggested now. Longer paths follow in later rounds.
            if same.first().is_none_or(|shortest| path.len() == shortest.len()) && same.len() < MOST_PATHS {
                chosen.push((id, path));
            }
        }
        Advice::Paths(chosen)
    }
}

/// A shortest path from a store to a load such that another thread may notice if the store is delayed past the load; `None` if there is none.
fn shortest(others: &Others, thread: &Thread, store: EdgeId) -> Option<Vec<EdgeId>> {
    let Action::Op(Op::Store(stored, _)) = &thread.edge(store).action else { return None };
    if !others.access(stored) {
        return None;
    }
    // A breadth-first search that visits each location once. Other stores on a path matter only because the load may read one of them instead of
    // memory. A path without a cycle has fewer such stores than the path with the cycle, so paths with cycles need not be tried.
    let mut came_by: Vec<Option<EdgeId>> = vec![None; thread.locations.len()];
    let mut open = VecDeque::from([thread.edge(store).to]);
    let mut seen = vec![false; thread.locations.len()];
    seen[thread.edge(store).to.index()] = true;
    while let Some(location) = open.pop_front() {
        for (number, edge) in thread.edges_from(location) {
            if edge.action.drains() {
                continue;
            }
            let loads = edge.action.ops().iter().filter_map(|op| match op {
                Op::Load(_, address) => Some(address),
                _ => None,
            });
            let visible = |load: &Address| !is_same(load, stored) && others.store_to(load);
            if loads.into_iter().any(visible) {
                let mut path = vec![number];
                let mut at = location;
                while let Some(edge) = came_by[at.index()] {
                    path.push(edge);
                    at = thread.edge(edge).from;
                }
                path.push(store);
                path.reverse();
                return Some(path);
            }
            if !std::mem::replace(&mut seen[edge.to.index()], true) {
                came_by[edge.to.index()] = Some(number);
                open.push_back(edge.to);
            }
        }
    }
    None
}

/// The stores and all accesses of the other threads: for each variable, the constant indices, and whether some index is computed.
struct Others {
    stored: Vec<Indices>,
    accessed: Vec<Indices>,
}

#[derive(Clone, Default)]
struct Indices {
    constants: BTreeSet<Option<i64>>,
    computed: bool,
}

impl Indices {
    fn add(&mut self, address: &Address) {
        match address.index.as_ref().map(|index| index.constant()) {
            None => drop(self.constants.insert(None)),
            Some(Some(index)) => drop(self.constants.insert(Some(index))),
            Some(None) => self.computed = true,
        }
    }

    /// Whether one of these accesses may alias the address.
    fn may_contain(&self, address: &Address) -> bool {
        match address.index.as_ref().map(|index| index.constant()) {
            None => self.constants.contains(&None),
            Some(Some(index)) => self.computed || self.constants.contains(&Some(index)),
            Some(None) => self.computed || !self.constants.is_empty(),
        }
    }
}

impl Others {
    fn new(program: &Program, id: ThreadId) -> Self {
        let none = vec![Indices::default(); program.variables.len()];
        let mut others = Others { stored: none.clone(), accessed: none };
        let threads = program.threads().filter(|(other, _)| *other != id);
        for op in threads.flat_map(|(_, t)| &t.edges).flat_map(|edge| edge.action.ops()) {
            if let Op::Store(address, _) | Op::Load(_, address) = op {
                others.accessed[address.variable.index()].add(address);
                if matches!(op, Op::Store(..)) {
                    others.stored[address.variable.index()].add(address);
                }
            }
        }
        others
    }

    fn store_to(&self, address: &Address) -> bool {
        self.stored[address.variable.index()].may_contain(address)
    }

    fn access(&self, address: &Address) -> bool {
        self.accessed[address.variable.index()].may_contain(address)
    }
}

/// Whether two addresses are certainly equal.
fn is_same(one: &Address, other: &Address) -> bool {
    let constants = |a: &Address| a.index.as_ref().map(|index| index.constant());
    one.variable == other.variable
        && match (constants(one), constants(other)) {
            (None, None) => true,
            (Some(Some(one)), Some(Some(other))) => one == other,
            _ => false,
        }
}
