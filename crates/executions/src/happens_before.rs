//! Happens-before: the order of events shared by all equivalent executions under SC (THESIS16 s. 2.3.3).
//!
//! If all stores of an execution have reached memory, then it is equivalent to an execution under SC, up to the order of independent events, if and
//! only if the union of these relations is acyclic:
//!
//! * **program order**: from an event of a thread to a later event of that thread;
//! * **coherence**: from a write to a later write to the same cell, in the order in which they reached memory;
//! * **source**: from a write to a load that saw its value;
//! * **conflict**: from a load to the next write to the cell after the write whose value the load saw.
//!
//! An atomic step is one event. All steps of a thread while it holds the lock are one event as well, because under SC no other thread can interleave.
//! (The thesis defines the relation without locks. Without this rule the relation could be acyclic although no execution under SC, where the lock is
//! respected, reads the same values.) A load from its own thread's buffer conflicts with the next write after the one it saw, like every other load.
//! (The printed definition gives such a load no conflict, so an acyclic relation would not determine the value that it reads.)

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use fencewright_program::reference::Access;
use fencewright_program::{Action, EventKind, Program, Replayed};

/// The relation by which one event happens before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Relation {
    /// Both events are of the same thread, in program order.
    ProgramOrder,
    /// Both events write this cell, and their values reach memory in this order.
    Coherence(u32),
    /// The later event reads the value that the earlier one wrote to this cell.
    Source(u32),
    /// The later event overwrites the value that the earlier one read from this cell.
    Conflict(u32),
}

impl Relation {
    /// The name of the relation, as shown to users.
    pub fn name(self) -> &'static str {
        match self {
            Relation::ProgramOrder => "program order",
            Relation::Coherence(_) => "coherence",
            Relation::Source(_) => "source",
            Relation::Conflict(_) => "conflict",
        }
    }

    /// The cell that both events access; `None` for program order.
    pub fn cell(self) -> Option<u32> {
        match self {
            Relation::ProgramOrder => None,
            Relation::Coherence(cell) | Relation::Source(cell) | Relation::Conflict(cell) => Some(cell),
        }
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One link of a cycle: an event, and its relation to the event of the next link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The index of the event in the trace: a step, never a flush.
    pub event: usize,
    /// The relation to the next link; the last link leads back to the first.
    pub relation: Relation,
}

/// The happens-before relation of an execution.
#[derive(Clone, Debug, Default)]
pub struct HappensBefore {
    /// For each event of the trace, its node: for a step, its own index, or the index of the preceding `lock` while the thread holds the lock; `None`
    /// for a flush.
    node: Vec<Option<usize>>,
    /// The outgoing edges of each node, by target. Each edge contains the earlier event, the relation and the later event.
    edges: BTreeMap<usize, BTreeMap<usize, (usize, Relation, usize)>>,
}

/// A write that has reached memory (`None` for the initial value), and the loads that saw its value.
#[derive(Clone, Default)]
struct Version {
    write: Option<usize>,
    reads: Vec<usize>,
}

impl HappensBefore {
    /// The relation of a replayed execution. Stores that have not reached memory take part in program order only.
    pub fn new(program: &Program, trace: &Replayed) -> Self {
        let threads = program.threads.len();
        let mut relation = HappensBefore { node: vec![None; trace.events.len()], ..Self::default() };
        let mut last: Vec<Option<usize>> = vec![None; threads];
        let mut section: Vec<Option<usize>> = vec![None; threads];
        // The buffered stores of each thread, oldest first: the step, the cell, and the loads that read the store from the buffer.
        let mut pending: Vec<VecDeque<(usize, u32, Vec<usize>)>> = vec![VecDeque::new(); threads];
        let mut memory = vec![Version::default(); program.cells()];
        for (n, (event, effect)) in trace.events.iter().zip(&trace.effects).enumerate() {
            let t = event.thread.index();
            match &event.kind {
                EventKind::Flush { cell } => {
                    let oldest = pending[t].iter().position(|(_, c, _)| c == cell);
                    if let Some((store, _, reads)) = oldest.and_then(|p| pending[t].remove(p)) {
                        relation.write(&mut memory, *cell, store);
                        memory[*cell as usize].reads = reads;
                    }
                }
                EventKind::Step { edge, .. } => {
                    let action = &program.thread(event.thread).edge(*edge).action;
                    if *action == Action::Lock {
                        section[t] = Some(n);
                    }
                    relation.node[n] = Some(section[t].unwrap_or(n));
                    if *action == Action::Unlock {
                        section[t] = None;
                    }
                    if let Some(before) = last[t].replace(n) {
                        relation.add(before, Relation::ProgramOrder, n);
                    }
                    for access in effect {
                        match *access {
                            Access::Read { cell, buffered: false, .. } => {
                                let version = &mut memory[cell as usize];
                                version.reads.push(n);
                                if let Some(write) = version.write {
                                    relation.add(write, Relation::Source(cell), n);
                                }
                            }
                            Access::Read { cell, buffered: true, .. } => {
                                let newest = pending[t].iter_mut().rev().find(|(_, c, _)| *c == cell);
                                if let Some((store, _, reads)) = newest {
                                    reads.push(n);
                                    let store = *store;
                                    relation.add(store, Relation::Source(cell), n);
                                }
                            }
                            Access::Write { cell, buffered: false, .. } => {
                                relation.write(&mut memory, cell, n);
                            }
                            Access::Write { cell, buffered: true, .. } => {
                                pending[t].push_back((n, cell, Vec::new()));
                            }
                            Access::Fault(_) => {}
                        }
                    }
                }
            }
        }
        relation
    }

    /// Records that a write reaches memory: it follows the previous write to the cell, and the loads that saw that write.
    fn write(&mut self, memory: &mut [Version], cell: u32, event: usize) {
        let new = Version { write: Some(event), reads: Vec::new() };
        let old = std::mem::replace(&mut memory[cell as usize], new);
        if let Some(write) = old.write {
            self.add(write, Relation::Coherence(cell), event);
        }
        for read in old.reads {
            self.add(read, Relation::Conflict(cell), event);
        }
    }

    fn add(&mut self, from: usize, relation: Relation, to: usize) {
        if let (Some(a), Some(b)) = (self.node[from], self.node[to])
            && a != b
        {
            self.edges.entry(a).or_default().entry(b).or_insert((from, relation, to));
        }
    }

    /// The edges of the relation. Program order relates only successive events of a thread. If several relations hold between two nodes, only the one
    /// that occurs first in the trace is listed.
    pub fn relations(&self) -> impl Iterator<Item = (usize, Relation, usize)> + '_ {
        self.edges.values().flat_map(|targets| targets.values().copied())
    }

    /// A shortest cycle, if there is one. If the cycle enters a section under the lock at one event and leaves it from another event, a link of
    /// program order joins the two events.
    pub fn cycle(&self) -> Option<Vec<Link>> {
        // Program order alone is acyclic, and most events of a long execution have no other outgoing edge. So the length of a shortest cycle is
        // computed first, only from nodes with another outgoing edge; then the first cycle of that length is returned.
        let mut best = usize::MAX;
        for (&start, edges) in &self.edges {
            if edges.values().any(|(_, relation, _)| *relation != Relation::ProgramOrder) {
                best = self.cycle_through(start, best).map_or(best, |cycle| cycle.len().min(best));
            }
        }
        if best == usize::MAX {
            return None;
        }
        let mut cycles = self.edges.keys().filter_map(|&start| self.cycle_through(start, best));
        cycles.find(|cycle| cycle.len() <= best)
    }

    /// A shortest cycle through a node, by breadth-first search; `None` if every such cycle has more than `most` nodes.
    fn cycle_through(&self, start: usize, most: usize) -> Option<Vec<Link>> {
        let mut from: BTreeMap<usize, usize> = BTreeMap::new();
        let mut queue = VecDeque::from([(start, 1)]);
        while let Some((node, length)) = queue.pop_front() {
            if length > most {
                return None;
            }
            for &next in self.edges.get(&node).into_iter().flat_map(BTreeMap::keys) {
                if from.contains_key(&next) {
                    continue;
                }
                from.insert(next, node);
                if next == start {
                    return Some(self.links(start, &from));
                }
                queue.push_back((next, length + 1));
            }
        }
        None
    }

    fn links(&self, start: usize, from: &BTreeMap<usize, usize>) -> Vec<Link> {
        let mut nodes = vec![start];
        loop {
            let before = from[&nodes[nodes.len() - 1]];
            nodes.push(before);
            if before == start {
                break;
            }
        }
        nodes.reverse();
        let steps: Vec<(usize, Relation, usize)> =
            nodes.windows(2).map(|pair| self.edges[&pair[0]][&pair[1]]).collect();
        let mut links = Vec::new();
        for (n, &(event, relation, arrived)) in steps.iter().enumerate() {
            links.push(Link { event, relation });
            let leaves = steps[(n + 1) % steps.len()].0;
            if leaves != arrived {
                links.push(Link { event: arrived, relation: Relation::ProgramOrder });
            }
        }
        links
    }
}

/// A triangular race (S. Owens, ECOOP 2010): a thread loads a cell from memory while one of its earlier stores is still buffered,
/// and the next access to memory is another thread's write to that cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Triangle {
    /// The index in the trace of the step that buffers the store.
    pub store: usize,
    /// The index in the trace of the step that loads.
    pub load: usize,
    /// The index of the write: a step that writes memory directly, or a flush.
    pub write: usize,
    /// The cell of the load and the write.
    pub cell: u32,
}

/// The first triangular race in an execution, if there is one. All steps of a thread while it holds the lock count as one access.
pub fn triangular_race(program: &Program, trace: &Replayed) -> Option<Triangle> {
    // For each event, the number of stores that its thread has buffered before it.
    let mut pending = Vec::with_capacity(trace.events.len());
    trace.for_each_event(|event, before| pending.push(before.buffers[event.thread.index()].len()));
    // `section`: for each thread, the `lock` of its current section under the lock. `memory_before`: for each event, the last event before it that
    // accessed memory.
    let mut section: Vec<Option<usize>> = vec![None; program.threads.len()];
    let mut memory_before: Vec<Option<usize>> = Vec::with_capacity(trace.events.len());
    let mut last_at_memory = None;
    for (write, (event, effect)) in trace.events.iter().zip(&trace.effects).enumerate() {
        let writer = event.thread;
        memory_before.push(last_at_memory);
        let first = section[writer.index()].unwrap_or(write);
        if let Some(load) = memory_before[first].filter(|&n| trace.events[n].thread != writer) {
            let raced = effect.iter().find_map(|access| match *access {
                Access::Write { cell, buffered: false, .. } if pending[load] > 0 => {
                    trace.effects[load].iter().any(|a| reads_memory(a, cell)).then_some(cell)
                }
                _ => None,
            });
            if let Some(cell) = raced {
                let store = oldest_pending(trace, load, pending[load])?;
                return Some(Triangle { store, load, write, cell });
            }
        }
        if effect.iter().any(reaches_memory) {
            last_at_memory = Some(write);
        }
        if let EventKind::Step { edge, .. } = &event.kind {
            match program.thread(writer).edge(*edge).action {
                Action::Lock => section[writer.index()] = Some(write),
                Action::Unlock => section[writer.index()] = None,
                _ => {}
            }
        }
    }
    None
}

/// The oldest of the `pending` stores that the thread of an event has buffered before the event; `None` if `pending` is 0.
fn oldest_pending(trace: &Replayed, event: usize, pending: usize) -> Option<usize> {
    let buffers = |a: &Access| matches!(a, Access::Write { buffered: true, .. });
    let stores = (0..event).rev().filter(|&n| {
        trace.events[n].thread == trace.events[event].thread && trace.effects[n].iter().any(buffers)
    });
    stores.take(pending).last()
}

/// Whether an access is a load of this cell from memory.
fn reads_memory(access: &Access, cell: u32) -> bool {
    matches!(access, Access::Read { cell: c, buffered: false, .. } if *c == cell)
}

/// Whether an access reads or writes memory, not a buffer.
fn reaches_memory(access: &Access) -> bool {
    match access {
        Access::Read { buffered, .. } | Access::Write { buffered, .. } => !buffered,
        Access::Fault(_) => false,
    }
}
