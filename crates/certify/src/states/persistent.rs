//! Persistent sets: in most states it is enough to explore the steps of some threads, because no step that other threads can take before these steps
//! interferes with them.
//!
//! The steps of a state are divided into *parts*: for each thread, one part contains the steps along its edges, and another part the flushes of its
//! buffer. The certificate states which accesses each thread may still perform from each location on ([`Persistent`]), and [`check`] verifies these
//! statements against the program, edge by edge. From the statements and a state the [`Chooser`] computes sets of parts that are *closed*:
//!
//! * if a future step of another thread may depend on a step of the set, the edges of that thread are added; if a flush of a store in the buffer of
//!   that thread may depend on a step of the set, its flushes are added. Two steps are dependent if both access a class of cells and one writes it,
//!   or if one takes the lock and the other requires that no other thread holds it. The parts of a thread that holds the lock require no part of
//!   another thread because of dependent steps;
//! * if an edge of the set waits for the buffer of its thread to be empty, and the buffer is not empty, the flushes of the thread are added;
//! * if a step of the set requires that no other thread holds the lock, and another thread holds it, the edges of that thread are added;
//! * if a step of the set may be visible to a property that observes all states, then for every thread: its edges are added if it may still take such
//!   a step along an edge or by a later flush, and its flushes if one of its buffered stores may be visible. Disjuncts of a formula that depend on
//!   the location and the registers of one thread only make no step visible;
//! * no edge of the set may close a cycle: each leads to a location with a greater number in the `order` of the certificate, or to the fault
//!   location, which no edge leaves.
//!
//! Condition 2 of [the module](super) then asks only for the steps of one closed set, if a closed set has steps, and for all steps otherwise.
//! Persistent sets are not combined with local edges (so there are no favourites), abstract buffers or versions.
//!
//! # Other steps do not interfere with a closed set
//!
//! Let P be closed in s, and let u be an execution from s without a *step of P*: threads whose edges are in P take no edge, and threads whose flushes
//! are in P flush none of the stores that their buffers have in s. (1) Any step of P that is possible after u was possible in s, and any step of P
//! that is possible in s is possible after u, with the same outcome: it faults, exceeds a limit or chooses the same values. (2) Taking such a step
//! before u or after u leads to the same state.
//!
//! * *The thread itself.* Suppose the edges of t are in P: then t takes none in u, and its location and registers are unchanged. If its flushes are
//!   in P too, its buffer is unchanged. If its flushes are not in P, then no edge of t waits for the buffer to be empty, or the buffer is empty
//!   already. Stores that leave the buffer in u do not affect the other edges. A store or a barrier enters at the other end (under PSO barriers at
//!   the front are dropped, whichever step comes first). If the store that a load reads has left the buffer, the load finds its value in memory,
//!   because any other thread that writes that cell would have been added. Now suppose the flushes of t are in P and its edges are not: its buffer is
//!   not empty in u, so t takes no edge that waits for an empty buffer, and a flush commutes with the other edges as before. Of the stores that are
//!   in the buffer in s, the first one that leaves could already leave in s: it is the oldest one, or under PSO there is neither a barrier before it
//!   nor an older store to the same cell. Stores that both enter and leave the buffer in u are stores to other cells, and count as future steps of
//!   the edges of t.
//! * *Memory.* A step of another thread in u is a future step along edges that the thread takes in u, or the flush of a store that was in its buffer
//!   in s or has entered since. Suppose it conflicts with a step of P: it writes a class that the step of P reads or writes, or reads a class that
//!   the step of P writes. Then the edges of that thread, or its flushes, have been added to P. So the step would be a step of P or come after such a
//!   step. Cells without a class are accessed by one thread only, or never written.
//! * *The lock.* Consider a step of P that requires that no other thread holds the lock. If another thread holds it, the edges of that thread are in
//!   P. So it keeps the lock in u, and the step is disabled after u as it was before. If no other thread holds it, none takes it in u, because its
//!   edges would have been added. A step of P that takes the lock comes before all steps that require the lock to be free: all of those have been
//!   added. A thread t that holds the lock and has a part in P keeps the lock in u, since releasing it is an edge that waits for the empty buffer;
//!   until then no other thread accesses memory, so the parts of t require no others because of memory or the lock. Releasing the lock disables no
//!   step.
//!
//! # Why no violation is missed
//!
//! Let s be in the set, and let w be an execution from s to a violation: a state that a property forbids, or in which a thread has faulted or no
//! thread can move, or a step that exceeds a limit. We show that the checker encounters a violation, by induction on the length of w, then on how far
//! threads can go along edges that close no cycle, then on the number of buffered stores. If w is empty, s is a violation. If condition 2 asks for
//! all steps, it asks for the first step of w, and the rest of w is shorter. Otherwise let P be the closed set.
//!
//! * w has a step of P. By (1) and (2) the first one, t, can be taken immediately: it leads to a state of the set, and w without t leads from there
//!   to the same state as w. That execution is shorter.
//! * w has no step of P, and P has a step t. By (1) t is still possible after w, so w does not lead to a state in which no thread can move. If w
//!   leads to a state that a property forbids, consider a disjunct of its formula that holds there. Suppose the disjunct depends on one thread only.
//!   If t is an edge of this thread, the thread takes no edge in w, so s is forbidden already; otherwise t does not change the disjunct, and by (2) w
//!   leads from the state after t to a forbidden state too. Now suppose the disjunct depends on more. Either t is invisible to it, and by (2) w leads
//!   from the state after t to a forbidden state too; or t is visible, and then no step of w is visible, and s is forbidden already. (A disjunct
//!   without a 64-bit value is found in the same way, and is a rejection.) If a thread has faulted after w, or the last step of w exceeds a limit, the
//!   same is true if t is taken first. The state after t is in the set, and t has taken an edge that closes no cycle, or removed
//!   a store from a buffer.
//!
//! With symmetry the same holds for `G R`: the conditions on P in r concern steps and the visibility to properties, so `g P` satisfies them in `g r`.
//! The induction also needs that g does not change how far threads can go along edges that close no cycle: the threads of a family must have the same
//! `order`.

use std::ops::Range;

use fencewright_program::{
    Action, Address, Edge, LocationId, MemoryModel, Op, Program, Property, Thread, ThreadId,
};
use serde::{Deserialize, Serialize};

use super::StateSet;
use super::reductions::Observed;

/// The accesses of some steps to shared objects: the classes of cells read in memory, the classes of cells written there, and marks.
pub type Footprint = [u64; 3];

/// Mark: a step that is possible only while no other thread holds the lock.
const ACCESS: u64 = 1;
/// Mark: a step that takes the lock.
const LOCK: u64 = 2;
/// Mark: a step that may be visible to a property that observes all states.
const VISIBLE: u64 = 4;

/// The statements of a certificate that justify persistent sets: about classes of cells, cycles, and the future accesses of threads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Persistent {
    /// For each memory cell, the bits of its class; 0 if all accesses to the cell commute.
    pub classes: Vec<u64>,
    /// For each thread and location a number: an edge may close a cycle only if it leads to a location with the same or a smaller number.
    pub order: Vec<Vec<u32>>,
    /// For each thread and location, an upper bound on all accesses of the thread from there on, including flushes of future stores.
    pub future: Vec<Vec<Footprint>>,
    /// Edges of each thread, in order, that count as visible in addition to those that the properties of the claim observe.
    pub edges: Vec<Vec<u32>>,
    /// Memory cells that count as observed in addition to those that the properties of the claim observe.
    pub cells: Vec<u32>,
}

/// The checked statements about the threads of a program.
pub struct Facts {
    /// For each thread and location, the facts about the thread there.
    places: Vec<Vec<Place>>,
    /// For each thread and each cell in the layout of its buffer, the footprint of the flush of a store to that cell.
    flushes: Vec<Vec<Footprint>>,
}

/// Facts about a thread at a location.
#[derive(Clone, Copy, Default)]
struct Place {
    /// The accesses of the edges that leave the location, enabled or not; later flushes of their stores are not included.
    next: Footprint,
    /// An upper bound on all accesses from the location on, including flushes of future stores.
    future: Footprint,
    /// Whether edges leave the location.
    leaves: bool,
    /// Whether one of these edges waits for the empty buffer.
    drains: bool,
    /// Whether one of these edges may close a cycle.
    back: bool,
}

fn both(a: Footprint, b: Footprint) -> Footprint {
    [a[0] | b[0], a[1] | b[1], a[2] | b[2]]
}

/// Whether a step of one thread may depend on a step of another thread.
fn depend(a: Footprint, b: Footprint) -> bool {
    let locks = |a: Footprint, b: Footprint| a[2] & LOCK != 0 && b[2] & (ACCESS | LOCK) != 0;
    (a[0] & b[1]) | (a[1] & (b[0] | b[1])) != 0 || locks(a, b) || locks(b, a)
}

/// Maximum number of cells of an array that may be in different classes; the cells of a larger array are all in one class.
const SMALL_ARRAY: usize = 16;

/// The cells that an address may denote.
fn cells(program: &Program, address: &Address) -> Range<usize> {
    let variable = &program.variables[address.variable.index()];
    let index = address.index.as_ref().and_then(|index| index.constant());
    match variable.indices.zip(index) {
        Some((range, index)) if range.contains(index) => {
            let cell = variable.base as usize + (index - range.low) as usize;
            cell..cell + 1
        }
        _ => variable.cells(),
    }
}

/// Checks the statements of a certificate against the program and the properties.
pub(super) fn check(
    set: &StateSet,
    program: &Program,
    properties: &[Property],
) -> Result<Option<Facts>, String> {
    let Some(said) = &set.persistent else { return Ok(None) };
    if set.abstraction.is_some() || set.versions.is_some() || set.local.iter().any(|l| !l.is_empty()) {
        return Err("persistent sets do not go with other reductions of this kind".into());
    }
    let threads = program.threads.iter();
    let fits = |(n, thread): (usize, &Thread)| {
        let places = thread.locations.len();
        said.order[n].len() == places && said.future[n].len() == places
    };
    let count = program.threads.len();
    if [said.order.len(), said.future.len(), said.edges.len()] != [count; 3]
        || said.classes.len() != program.cells()
        || !threads.enumerate().all(fits)
    {
        return Err("its persistent sets are not those of this program".into());
    }
    let alike = |f: &crate::automorphism::Family| {
        f.threads.iter().all(|&t| said.order[t as usize] == said.order[f.threads[0] as usize])
    };
    if !set.symmetry.iter().all(alike) {
        return Err("threads of a family have different orders".into());
    }
    check_classes(program, &said.classes)?;
    let observed = Observed::jointly(properties).and_cells(&said.cells);
    let model = MemoryModel::from(set.model);
    let flush = |cells: Range<usize>| {
        let marks = if observed.sees_cells(&cells) { ACCESS | VISIBLE } else { ACCESS };
        [0, said.classes[cells].iter().take(SMALL_ARRAY).fold(0, |all, class| all | class), marks]
    };
    // The accesses of an edge itself, and those of later flushes of its stores.
    let touched = |id: ThreadId, thread: &Thread, number: usize, edge: &Edge| {
        let (mut now, mut later) = ([0; 3], [0; 3]);
        now[2] = match &edge.action {
            Action::Lock => LOCK,
            Action::Atomic { .. } | Action::Op(Op::Load(..)) => ACCESS,
            _ => 0,
        };
        for op in edge.action.ops() {
            match op {
                Op::Load(_, address) => now[0] |= flush(cells(program, address))[1],
                Op::Store(address, _) => {
                    let stored = flush(cells(program, address));
                    if model == MemoryModel::Sc || matches!(edge.action, Action::Atomic { .. }) {
                        now = both(now, stored);
                    }
                    if model != MemoryModel::Sc && !edge.action.drains() {
                        later = both(later, stored);
                    }
                }
                Op::Skip | Op::Assign(..) | Op::Havoc(..) | Op::Assume(_) | Op::Assert(..) => {}
            }
        }
        let faults = || program.edge_may_fault(thread, edge) && observed.sees(id, edge, thread.fault);
        let named = || said.edges[id.index()].binary_search(&(number as u32)).is_ok();
        if observed.sees(id, edge, edge.to) || faults() || named() {
            now[2] |= VISIBLE;
        }
        (now, later)
    };
    let mut places = Vec::with_capacity(count);
    for (id, thread) in program.threads() {
        let (order, future) = (&said.order[id.index()], &said.future[id.index()]);
        let mut of_thread: Vec<Place> =
            future.iter().map(|&future| Place { future, ..Place::default() }).collect();
        for (number, edge) in thread.edges.iter().enumerate() {
            let (now, later) = touched(id, thread, number, edge);
            let [from, to] = [edge.from, edge.to].map(LocationId::index);
            // No edge leaves the fault location, so an edge that may fault needs no future accesses but those of its target.
            let after = both(both(now, later), future[to]);
            let place = &mut of_thread[from];
            if both(place.future, after) != place.future {
                return Err(format!("thread {} may do more from location {from} on", thread.name));
            }
            place.next = both(place.next, now);
            place.leaves = true;
            place.drains |= edge.action.drains();
            place.back |= order[to] <= order[from];
        }
        places.push(of_thread);
    }
    let flushes = |b: &super::BufferFields| {
        b.cells.iter().map(|&cell| flush(cell as usize..cell as usize + 1)).collect()
    };
    Ok(Some(Facts { places, flushes: set.layout.buffers.iter().map(flushes).collect() }))
}

/// Checks that all accesses to cells without a class commute, and that the cells of a large array are in one class.
fn check_classes(program: &Program, classes: &[u64]) -> Result<(), String> {
    let large = |cells: &Range<usize>| cells.len() > SMALL_ARRAY;
    for variable in program.variables.iter().filter(|v| large(&v.cells())) {
        if classes[variable.cells()].iter().any(|class| *class != classes[variable.base as usize]) {
            return Err(format!("the cells of `{}` are not in one class", variable.name));
        }
    }
    // For each cell (for a large array, its first cell): a thread that accesses it, whether other threads access it, and whether any thread writes
    // it.
    let mut seen: Vec<(Option<ThreadId>, bool, bool)> = vec![(None, false, false); program.cells()];
    for (id, thread) in program.threads() {
        for op in thread.edges.iter().flat_map(|edge| edge.action.ops()) {
            let (Op::Load(_, address) | Op::Store(address, _)) = op else { continue };
            let all = program.variables[address.variable.index()].cells();
            let accessed = if large(&all) { all.start..all.start + 1 } else { cells(program, address) };
            for cell in accessed {
                let (first, others, written) = &mut seen[cell];
                *others |= *first.get_or_insert(id) != id;
                *written |= matches!(op, Op::Store(..));
                if classes[cell] == 0 && *others && *written {
                    return Err(format!("accesses to {} do not commute", program.cell_name(cell as u32)));
                }
            }
        }
    }
    Ok(())
}

/// The facts about a thread in a state that determine closed sets.
#[derive(Clone, Copy, Default)]
struct View {
    place: Place,
    /// The accesses of the flushes of all stores in the buffer.
    buffered: Footprint,
    /// The accesses of the flushes that are possible now.
    heads: Footprint,
    /// Whether the buffer is not empty.
    pending: bool,
}

/// Chooses sets of parts. A set is a word: bit 2t stands for the edges of thread t, bit 2t + 1 for its flushes.
pub(super) struct Chooser<'a> {
    facts: &'a Facts,
    set: &'a StateSet,
    /// The holder of the lock: 0 if it is free, else the index of the thread plus 1.
    holder: usize,
    threads: Vec<View>,
    /// The parts that each part requires, including itself; `None` if an edge of the part may close a cycle.
    needs: Vec<Option<u64>>,
    sets: Vec<u64>,
}

/// Maximum number of threads for which a word has enough bits; with more threads, no set is chosen.
const MOST_THREADS: usize = 32;

impl<'a> Chooser<'a> {
    pub fn new(facts: &'a Facts, set: &'a StateSet) -> Self {
        Chooser { facts, set, holder: 0, threads: Vec::new(), needs: Vec::new(), sets: Vec::new() }
    }

    /// The closures of the parts of a state, smallest first; empty if the program has too many threads. The proof above holds for any closed set;
    /// checker and engine use the first one that has a step.
    pub fn sets(&mut self, state: &[u64]) -> &[u64] {
        self.sets.clear();
        if self.facts.places.len() > MOST_THREADS {
            return &self.sets;
        }
        self.look(state);
        for part in 0..self.needs.len() {
            let view = &self.threads[part / 2];
            let is_there = if part % 2 == 0 { view.place.leaves } else { view.pending };
            if is_there && let Some(set) = self.closed(part) {
                self.sets.push(set);
            }
        }
        self.sets.sort_unstable_by_key(|set| (set.count_ones(), *set));
        &self.sets
    }

    fn look(&mut self, state: &[u64]) {
        let layout = &self.set.layout;
        let pso = MemoryModel::from(self.set.model) == MemoryModel::Pso;
        self.holder = layout.lock.get(state) as usize;
        self.threads.clear();
        for (t, places) in self.facts.places.iter().enumerate() {
            let place = places[layout.locations[t].get(state) as usize];
            let mut view = View { place, ..View::default() };
            if let Some(buffer) = layout.buffers.get(t) {
                let count = buffer.count.get(state) as usize;
                view.pending = count > 0;
                let mut at_once = true;
                for (n, (kind, _)) in buffer.entries[..count].iter().enumerate() {
                    at_once &= n == 0 || pso;
                    // An entry whose first field is not the position of a cell is a barrier.
                    match self.facts.flushes[t].get(kind.get(state) as usize) {
                        Some(&flush) => {
                            view.buffered = both(view.buffered, flush);
                            view.heads = if at_once { both(view.heads, flush) } else { view.heads };
                        }
                        None => at_once = false,
                    }
                }
            }
            self.threads.push(view);
        }
        self.needs.clear();
        for part in 0..2 * self.threads.len() {
            self.needs.push(self.needed_by(part));
        }
    }

    /// The least closed set that contains a part; `None` if an edge of this set may close a cycle.
    fn closed(&self, part: usize) -> Option<u64> {
        let mut set = 1 << part;
        loop {
            let mut larger = set;
            for part in (0..self.needs.len()).filter(|part| set >> part & 1 == 1) {
                larger |= self.needs[part]?;
            }
            if larger == set {
                return Some(set);
            }
            set = larger;
        }
    }

    fn needed_by(&self, part: usize) -> Option<u64> {
        let (t, is_flush) = (part / 2, part % 2 == 1);
        let own = &self.threads[t];
        if !is_flush && own.place.back {
            return None;
        }
        let steps = if is_flush { own.heads } else { own.place.next };
        let mut needed = 1 << part;
        if !is_flush && own.place.drains && own.pending {
            needed |= 2 << (2 * t);
        }
        let (holds, free) = (self.holder == t + 1, self.holder == 0);
        if !holds && !free && steps[2] & (ACCESS | LOCK) != 0 {
            needed |= 1 << (2 * (self.holder - 1));
        }
        for (u, other) in self.threads.iter().enumerate() {
            let joins = |what: Footprint| {
                (u != t && !holds && depend(steps, what)) || steps[2] & what[2] & VISIBLE != 0
            };
            needed |= u64::from(joins(other.place.future)) << (2 * u);
            needed |= u64::from(joins(other.buffered)) << (2 * u + 1);
        }
        Some(needed)
    }
}
