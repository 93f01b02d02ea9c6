//! Static summaries of threads: the footprints of the next steps from each location and of all future steps, and when two footprints are dependent.
//!
//! Steps of different threads are dependent if one accesses a memory cell that the other writes, or if one acquires or releases the lock and the
//! other requires that no other thread holds it. All other objects belong to one thread. A store into a buffer accesses no shared object, but its
//! flush does, so a thread that may store to a cell may also write it.
//!
//! A flush commutes with all other steps of its own thread that can come before it. Stores and barriers enter at the other end of the buffer. A load
//! of the same cell sees the same value before and after the flush. A step that waits for the empty buffer (a fence, a lock, an atomic step) can only
//! come after the flush. Under PSO flushes of different cells commute as well. So the edges of a thread and the flushes of its buffer are two
//! independent processes (`Part`), except for steps that wait for the empty buffer.
//!
//! Cells are partitioned into at most 64 classes, and cells of one class are not distinguished. This over-approximates dependence. Cells whose
//! accesses all commute, because only one thread accesses them or none writes them, belong to no class.

use std::cmp::Reverse;

use fencewright_analysis::facts::{Effect, Facts, Flow};
use fencewright_analysis::loops::components;
use fencewright_kit::accesses::cells_of;
use fencewright_program::{Action, Address, LocationId, MemoryModel, Op, Program, Thread, ThreadId};
use fencewright_verdict::{Limits, Reason};

use crate::code::{ActionCode, Code, EdgeCode, OpCode, ThreadCode};
use crate::layout::Layout;

/// Mark: the step is enabled only while no other thread holds the lock.
pub const ACCESS: u8 = 1;
/// Mark: the step acquires the lock.
pub const LOCK: u8 = 2;
/// Mark: a property may observe the step, and whether it does may depend on steps of other threads.
pub const VISIBLE: u8 = 4;
/// Mark: the step releases the lock.
pub const UNLOCK: u8 = 8;
/// Mark: a property may observe the step. Properties are evaluated after such a step.
pub const OBSERVED: u8 = 16;

/// The footprint of a set of steps: the shared objects they access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// The classes of cells that are read in memory.
    pub reads: u64,
    /// The classes of cells that are written in memory.
    pub writes: u64,
    /// The marks of the steps, combined: any of [`ACCESS`], [`LOCK`], [`UNLOCK`], [`VISIBLE`] and [`OBSERVED`].
    pub marks: u8,
}

impl Footprint {
    /// The union of two footprints.
    pub fn with(self, other: Footprint) -> Footprint {
        Footprint {
            reads: self.reads | other.reads,
            writes: self.writes | other.writes,
            marks: self.marks | other.marks,
        }
    }

    /// Whether the footprint has any of these marks.
    pub fn has(self, marks: u8) -> bool {
        self.marks & marks != 0
    }

    /// Whether two sets of steps of different threads may be dependent. The release of the lock is not considered: only the holder of the lock can
    /// take it, and dependences with threads that wait for it are handled where the holder of the lock is known.
    pub fn disturbs(self, other: Footprint) -> bool {
        let conflict = (self.reads & other.writes) | (self.writes & (other.reads | other.writes));
        let locks = |one: Footprint, two: Footprint| one.has(LOCK) && two.has(ACCESS | LOCK);
        conflict != 0 || locks(self, other) || locks(other, self)
    }
}

/// Static facts about a location of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    /// The footprint of the outgoing edges, enabled or not.
    pub next: Footprint,
    /// The footprint of everything the thread may still do from here, including flushes of later stores.
    pub future: Footprint,
    /// Whether some edge waits for the empty buffer.
    pub drains: bool,
    /// Whether some edge puts a store into the buffer.
    pub stores: bool,
    /// Whether some edge is a back edge. Every cycle of the control-flow graph contains one.
    pub back: bool,
    /// Whether some edge chooses among values that are only sampled.
    pub sampled: bool,
    /// Whether any edge leaves the location.
    pub leaves: bool,
}

impl Place {
    /// Whether the targets of the outgoing edges need not be stored: no property observes these edges, none of them is a back edge, and none chooses
    /// a sampled value.
    pub fn may_be_passed(&self) -> bool {
        !self.back && !self.sampled && !self.next.has(VISIBLE | OBSERVED)
    }
}

/// Summaries of all threads.
pub struct Summaries {
    /// The facts about each location of each thread.
    pub places: Vec<Vec<Place>>,
    /// For each thread and each of its buffered cells, the footprint of a flush.
    pub flushes: Vec<Vec<Footprint>>,
    /// For each thread and edge, the footprint of the edge for all values of its addresses.
    pub edges: Vec<Vec<Footprint>>,
    /// For each cell, the bit of its class, or 0 if all accesses to it commute.
    pub classes: Vec<u64>,
}

impl Summaries {
    /// Computes the summaries of compiled threads.
    pub fn new(
        program: &Program,
        model: MemoryModel,
        threads: &[ThreadCode],
        limits: &Limits,
    ) -> Result<Self, Reason> {
        let classes = Classes::new(program);
        let (mut places, mut flushes, mut edges) = (Vec::new(), Vec::new(), Vec::new());
        for ((_, thread), code) in program.threads().zip(threads) {
            let flush = |(&cell, &visible): (&u32, &bool)| Footprint {
                reads: 0,
                writes: classes.of_cell[cell as usize],
                marks: ACCESS | if visible { VISIBLE } else { 0 },
            };
            let flushed: Vec<Footprint> =
                code.buffered_cells.iter().zip(&code.flush_visible).map(flush).collect();
            let mut touched_by = vec![Footprint::default(); thread.edges.len()];
            for edge in code.edges.iter().flatten() {
                let action = &thread.edge(edge.id).action;
                touched_by[edge.id.index()] = touched(program, model, action, edge, &classes);
            }
            places.push(summarise(program, model, thread, code, &touched_by, &flushed, limits)?);
            flushes.push(flushed);
            edges.push(touched_by);
        }
        Ok(Summaries { places, flushes, edges, classes: classes.of_cell })
    }

    /// The facts about the location of a thread in a state.
    pub fn place(&self, code: &Code, layout: &Layout, state: &[u64], t: usize) -> &Place {
        &self.places[t][layout.slots[code.pc(t)].raw(state) as usize]
    }
}

/// A partition of the cells on which threads may conflict; it has at most 64 classes.
struct Classes {
    /// For each cell, the bit of its class, or 0 if all accesses to it commute.
    of_cell: Vec<u64>,
    /// For each variable, the union of the classes of its cells.
    of_variable: Vec<u64>,
}

/// Arrays with more elements form one class: accesses to them usually have computed indices.
const SMALL_ARRAY: usize = 16;

impl Classes {
    fn new(program: &Program) -> Self {
        // For each cell, the first cell of its group. A large array is one group; every other cell is a group by itself.
        let mut group: Vec<u32> = (0..program.cells() as u32).collect();
        for variable in program.variables.iter().filter(|v| v.cells().len() > SMALL_ARRAY) {
            group[variable.cells()].fill(variable.base);
        }
        // For each group, the first thread that accesses it, whether other threads access it, and whether any thread writes it.
        let mut seen: Vec<(Option<ThreadId>, bool, bool)> = vec![(None, false, false); program.cells()];
        for (id, thread) in program.threads() {
            for op in thread.edges.iter().flat_map(|edge| edge.action.ops()) {
                let Some((address, writes)) = accessed(op) else { continue };
                let large = program.variables[address.variable.index()].cells().len() > SMALL_ARRAY;
                for cell in cells_of(program, address).take(if large { 1 } else { usize::MAX }) {
                    let (first, others, written) = &mut seen[group[cell as usize] as usize];
                    *others |= *first.get_or_insert(id) != id;
                    *written |= writes;
                }
            }
        }
        let mut next = 0;
        let mut bits = vec![0; program.cells()];
        for (cell, (_, others, written)) in seen.iter().enumerate() {
            if *others && *written {
                bits[cell] = 1 << (next % 64);
                next += 1;
            }
        }
        let of_cell: Vec<u64> = group.iter().map(|&first| bits[first as usize]).collect();
        let all = |cells: std::ops::Range<usize>| of_cell[cells].iter().fold(0, |all, bit| all | bit);
        let of_variable = program.variables.iter().map(|v| all(v.cells())).collect();
        Classes { of_cell, of_variable }
    }

    /// The classes of the cells that an address may denote.
    fn of(&self, program: &Program, address: &Address) -> u64 {
        match program.variables[address.variable.index()].cells().len() > SMALL_ARRAY {
            true => self.of_variable[address.variable.index()],
            false => cells_of(program, address).fold(0, |all, cell| all | self.of_cell[cell as usize]),
        }
    }
}

/// The address that an operation accesses, and whether the access is a write; `None` if the operation accesses no memory.
fn accessed(op: &Op) -> Option<(&Address, bool)> {
    match op {
        Op::Load(_, address) => Some((address, false)),
        Op::Store(address, _) => Some((address, true)),
        Op::Skip | Op::Assign(..) | Op::Havoc(..) | Op::Assume(_) | Op::Assert(..) => None,
    }
}

/// Indices of the data-flow facts: classes read, then classes written, then marks.
const WRITES: usize = 64;
const MARKS: usize = 128;
const FACTS: usize = 136;

fn summarise(
    program: &Program,
    model: MemoryModel,
    thread: &Thread,
    code: &ThreadCode,
    touched_by: &[Footprint],
    flushed: &[Footprint],
    limits: &Limits,
) -> Result<Vec<Place>, Reason> {
    let order = order(thread);
    let flow = Flow::new(thread);
    let mut effects = Vec::new();
    let mut places = vec![Place::default(); thread.locations.len()];
    let flush = |cell: u32| flushed[code.cell_kind[cell as usize] as usize];
    let mut whole: Vec<Option<Footprint>> = vec![None; program.variables.len()];
    for (location, place) in places.iter_mut().enumerate() {
        for edge in &code.edges[location] {
            let action = &thread.edge(edge.id).action;
            let next = touched_by[edge.id.index()];
            let stored = buffered(model, action);
            let later = match stored.map(|address| (address, cells_of(program, address))) {
                None => Footprint::default(),
                Some((_, cells)) if cells.len() == 1 => flush(cells.start),
                // Cached per variable, because there may be many stores to a large array.
                Some((address, cells)) => *whole[address.variable.index()]
                    .get_or_insert_with(|| cells.map(flush).fold(Footprint::default(), Footprint::with)),
            };
            let all = next.with(later);
            let arc = flow.arc(edge.id, 0);
            let words = [(all.reads, 0), (all.writes, WRITES), (u64::from(all.marks), MARKS)];
            effects.extend(words.into_iter().flat_map(|(word, first)| {
                let set = (0..64).filter(move |bit| word >> bit & 1 == 1);
                set.map(move |bit| Effect { arc, fact: (first + bit) as u32, holds: true })
            }));
            place.next = place.next.with(next);
            place.leaves = true;
            place.stores |= stored.is_some();
            place.drains |= action.drains();
            place.back |= order[edge.to as usize] <= order[location];
            place.sampled |= match &edge.action {
                ActionCode::Op(op) => is_sampled(op),
                ActionCode::Atomic { ops, .. } => ops.iter().any(is_sampled),
                _ => false,
            };
        }
    }
    let facts = Facts::find(&flow, FACTS, effects, &|_, _| {}, limits)?;
    for (location, place) in places.iter_mut().enumerate() {
        for fact in facts.at(LocationId(location as u32).0) {
            match fact {
                MARKS.. => place.future.marks |= 1 << (fact - MARKS),
                WRITES.. => place.future.writes |= 1 << (fact - WRITES),
                _ => place.future.reads |= 1 << fact,
            }
        }
    }
    Ok(places)
}

/// A numbering of the locations of a thread such that few edges lead to a location with a smaller or equal number. These edges count as back edges.
pub fn order(thread: &Thread) -> Vec<u32> {
    let component = components(thread, &|_, _| true);
    // Components are numbered in reverse topological order.
    let mut sorted: Vec<usize> = (0..thread.locations.len()).collect();
    sorted.sort_unstable_by_key(|&location| (Reverse(component[location]), location));
    let mut order = vec![0; sorted.len()];
    sorted.into_iter().enumerate().for_each(|(n, location)| order[location] = n as u32);
    order
}

fn is_sampled(op: &OpCode) -> bool {
    matches!(op, OpCode::Havoc { sampled: true, .. })
}

/// The footprint of an edge itself: a store into a buffer accesses memory only when it is flushed.
fn touched(
    program: &Program,
    model: MemoryModel,
    action: &Action,
    edge: &EdgeCode,
    classes: &Classes,
) -> Footprint {
    let mut footprint = Footprint::default();
    for (address, writes) in action.ops().iter().filter_map(accessed) {
        match writes {
            true if buffered(model, action).is_some() => {}
            true => footprint.writes |= classes.of(program, address),
            false => footprint.reads |= classes.of(program, address),
        }
    }
    footprint.marks = match action {
        Action::Lock => LOCK,
        Action::Unlock => UNLOCK,
        Action::Atomic { .. } | Action::Op(Op::Load(..)) => ACCESS,
        Action::Op(Op::Store(..)) if model == MemoryModel::Sc => ACCESS,
        Action::Op(_) | Action::Fence | Action::StoreFence => 0,
    };
    footprint.marks |= if edge.joint { VISIBLE } else { 0 };
    footprint.marks |= if edge.visible { OBSERVED } else { 0 };
    footprint
}

/// The address that an action stores to through the buffer, if any.
fn buffered(model: MemoryModel, action: &Action) -> Option<&Address> {
    match action {
        Action::Op(Op::Store(address, _)) if model != MemoryModel::Sc => Some(address),
        _ => None,
    }
}
