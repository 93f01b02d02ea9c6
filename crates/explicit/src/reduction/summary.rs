//! What each thread does next, and what it may still do: static summaries, and when two of them depend on each other.
//!
//! Two steps of different threads are dependent if one accesses a cell in memory that the other writes, or if one takes the lock, or gives it
//! back, and the other needs that no other thread holds it. Everything else a step touches belongs to its thread. A store that enters a buffer
//! touches nothing else either; its flush does, so a thread that may store a cell may also write it.
//!
//! A flush commutes with all other steps of its own thread that can come before it. A store enters the buffer at the other end, and a
//! barrier too. A load of the same cell sees the same value before and after it. Whatever waits for an empty buffer (a fence, a lock, an
//! indivisible step) can only come after it. Under PSO flushes of different cells commute as well. So the edges of a thread and the flushes of
//! its buffer are two independent [processes](Part), but for steps that wait for the empty buffer.
//!
//! Cells are put into at most 64 classes, and cells of one class count as one: that makes steps dependent which are not, and never the other
//! way round. Cells of which all accesses commute, because one thread has them for itself or nobody writes them, are in no class.

use std::cmp::Reverse;

use fencewright_analysis::facts::{Effect, Facts, Flow};
use fencewright_analysis::loops::components;
use fencewright_kit::accesses::cells_of;
use fencewright_program::{Action, Address, LocationId, MemoryModel, Op, Program, Thread, ThreadId};
use fencewright_verdict::{Limits, Reason};

use crate::code::{ActionCode, Code, EdgeCode, OpCode, ThreadCode};
use crate::layout::Layout;

/// The step is possible only while no other thread holds the lock.
pub const ACCESS: u8 = 1;
/// The step takes the lock.
pub const LOCK: u8 = 2;
/// A property may see the step.
pub const VISIBLE: u8 = 4;
/// The step gives the lock back.
pub const UNLOCK: u8 = 8;

/// What some steps touch beyond their own thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// The classes of cells that are read in memory.
    pub reads: u64,
    /// The classes of cells that are written in memory.
    pub writes: u64,
    /// [`ACCESS`], [`LOCK`], [`UNLOCK`] and [`VISIBLE`].
    pub marks: u8,
}

impl Footprint {
    /// What two sets of steps touch together.
    pub fn with(self, other: Footprint) -> Footprint {
        Footprint {
            reads: self.reads | other.reads,
            writes: self.writes | other.writes,
            marks: self.marks | other.marks,
        }
    }

    /// Whether any of the steps has any of these marks.
    pub fn has(self, marks: u8) -> bool {
        self.marks & marks != 0
    }

    /// Whether a step of one set may depend on a step of the other, if the sets belong to different threads. Steps that give the lock back
    /// are left out: only the thread that holds the lock can take one, and what waits for it is looked at by who holds the lock.
    pub fn disturbs(self, other: Footprint) -> bool {
        let conflict = (self.reads & other.writes) | (self.writes & (other.reads | other.writes));
        let locks = |one: Footprint, two: Footprint| one.has(LOCK) && two.has(ACCESS | LOCK);
        conflict != 0 || locks(self, other) || locks(other, self)
    }
}

/// What is known about a thread at a location.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    /// What the edges that leave the location touch, whether they are enabled or not.
    pub next: Footprint,
    /// What everything touches that the thread may still do from here, including flushes of stores to come.
    pub future: Footprint,
    /// Whether an edge waits for the empty buffer.
    pub drains: bool,
    /// Whether an edge puts a store into the buffer.
    pub stores: bool,
    /// Whether an edge may close a cycle of the thread. Every cycle has such an edge.
    pub back: bool,
    /// Whether an edge chooses among values of which only samples are tried.
    pub sampled: bool,
    /// Whether any edge leaves the location.
    pub leaves: bool,
}

impl Place {
    /// Whether the edges may be taken without storing the states they lead to: no property sees them, and they close no cycle.
    pub fn may_be_passed(&self) -> bool {
        !self.back && !self.sampled && !self.next.has(VISIBLE)
    }
}

/// Summaries of all threads.
pub struct Summaries {
    /// For each thread and location.
    pub places: Vec<Vec<Place>>,
    /// For each thread and each cell that it stores through its buffer, what a flush touches.
    pub flushes: Vec<Vec<Footprint>>,
    /// For each thread and edge, what the edge touches, wherever its addresses point.
    pub edges: Vec<Vec<Footprint>>,
    /// For each cell the bit of its class, or 0 if all accesses to it commute.
    pub classes: Vec<u64>,
}

impl Summaries {
    /// Summarises compiled threads.
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

    /// What is known about a thread where it is in a state.
    pub fn place(&self, code: &Code, layout: &Layout, state: &[u64], t: usize) -> &Place {
        &self.places[t][layout.slots[code.pc(t)].raw(state) as usize]
    }
}

/// Cells put into classes.
struct Classes {
    /// For each cell the bit of its class, or 0 if all accesses to it commute.
    of_cell: Vec<u64>,
    /// For each variable the classes of all its cells.
    of_variable: Vec<u64>,
}

/// The cells of larger arrays are in one class: accesses to them have computed indices more often than not.
const SMALL_ARRAY: usize = 16;

impl Classes {
    fn new(program: &Program) -> Self {
        // The first cell of each group of cells that are accessed alike.
        let mut group: Vec<u32> = (0..program.cells() as u32).collect();
        for variable in program.variables.iter().filter(|v| v.cells().len() > SMALL_ARRAY) {
            group[variable.cells()].fill(variable.base);
        }
        // For each group the first thread that accesses it, whether others do, and whether anyone writes it.
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

    /// The classes of the cells that an address may mean.
    fn of(&self, program: &Program, address: &Address) -> u64 {
        match program.variables[address.variable.index()].cells().len() > SMALL_ARRAY {
            true => self.of_variable[address.variable.index()],
            false => cells_of(program, address).fold(0, |all, cell| all | self.of_cell[cell as usize]),
        }
    }
}

/// The address that an operation accesses, and whether it writes there.
fn accessed(op: &Op) -> Option<(&Address, bool)> {
    match op {
        Op::Load(_, address) => Some((address, false)),
        Op::Store(address, _) => Some((address, true)),
        Op::Skip | Op::Assign(..) | Op::Havoc(..) | Op::Assume(_) | Op::Assert(..) => None,
    }
}

/// The facts of the analysis: classes read, classes written, marks.
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
                // There may be many stores to a large array.
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

/// A number for each location of a thread, such that few edges lead to one that is not greater: only those that may close a cycle.
pub fn order(thread: &Thread) -> Vec<u32> {
    let component = components(thread, &|_, _| true);
    // Components are numbered from the end of a thread to its start.
    let mut sorted: Vec<usize> = (0..thread.locations.len()).collect();
    sorted.sort_unstable_by_key(|&location| (Reverse(component[location]), location));
    let mut order = vec![0; sorted.len()];
    sorted.into_iter().enumerate().for_each(|(n, location)| order[location] = n as u32);
    order
}

fn is_sampled(op: &OpCode) -> bool {
    matches!(op, OpCode::Havoc { sampled: true, .. })
}

/// What an edge itself touches.
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
    footprint.marks |= if edge.visible { VISIBLE } else { 0 };
    footprint
}

/// The address that an action stores to through the buffer.
fn buffered(model: MemoryModel, action: &Action) -> Option<&Address> {
    match action {
        Action::Op(Op::Store(address, _)) if model != MemoryModel::Sc => Some(address),
        _ => None,
    }
}
