//! The footprint of a step: the objects that it reads and writes. Steps of different agents are independent if their footprints do not conflict; see
//! [`dynamic`](super) for why.
//!
//! Most of a footprint is collected while the step runs. The value-independent part is taken from the [`Tables`]: which locations wait for which
//! cells, which steps a property observes, and which agents exist.

use std::ops::Range;
use std::rc::Rc;

use fencewright_analysis::looks::Looks;
use fencewright_kit::accesses::{cells_of, written_register};
use fencewright_program::{
    Action, Address, Disjunct, LocationId, MemoryModel, Observable, Op, Program, PropertyKind, ThreadId,
};
use fencewright_verdict::Task;

use super::waits::{Classes, Waits};

/// An object that steps read and write: a memory cell, the global lock, a buffered store, or one of the other objects that [`Tables`] numbers
/// (classes of cells, formulas, buffers).
pub type Key = u64;

/// Keys that are at least this number stand for buffered stores, which are numbered per thread.
const STORES: Key = 1 << 63;

/// An access to one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// The key of the object that is accessed.
    pub key: Key,
    mode: u8,
}

const WAITS: u8 = 1;
const WRITES: u8 = 2;
const FLUSHES: u8 = 4;

impl Item {
    /// A read of a value that does not decide whether the step is enabled.
    pub fn read(key: Key) -> Self {
        Item { key, mode: 0 }
    }

    /// A read of a value that decides whether the step is enabled.
    pub fn wait(key: Key) -> Self {
        Item { key, mode: WAITS }
    }

    /// A write, which conflicts with every other access to the object.
    pub fn write(key: Key) -> Self {
        Item { key, mode: WRITES }
    }

    /// A flush from the buffer of a thread. Flushes commute with each other, but not with a step that observes whether the buffer is empty.
    pub fn flush(key: Key) -> Self {
        Item { key, mode: FLUSHES }
    }

    /// Whether the value read decides whether the step is enabled.
    pub fn waits(self) -> bool {
        self.mode & WAITS != 0
    }

    /// Whether the step writes the object.
    pub fn writes(self) -> bool {
        self.mode & WRITES != 0
    }

    /// Whether the access is a flush from a buffer.
    pub fn flushes(self) -> bool {
        self.mode & FLUSHES != 0
    }

    /// Whether the object is a buffered store, which [`Tables`] does not number.
    pub fn is_store(self) -> bool {
        self.key >= STORES
    }

    fn conflicts(self, other: Item) -> bool {
        self.key == other.key && ((self.mode | other.mode) & WRITES != 0 || self.flushes() != other.flushes())
    }
}

/// All accesses of a step, at most one per object.
pub type Footprint = Rc<[Item]>;

/// Whether some access of one footprint conflicts with one of the other, so that steps of different agents with these footprints are dependent.
pub fn conflict(a: &[Item], b: &[Item]) -> bool {
    a.iter().any(|x| b.iter().any(|y| x.conflicts(*y)))
}

/// Adds an access to a footprint, merging it with an access to the same object.
pub fn add(items: &mut Vec<Item>, item: Item) {
    match items.iter_mut().find(|i| i.key == item.key) {
        Some(known) => known.mode |= item.mode,
        None => items.push(item),
    }
}

/// The memory cells that steps from a location wait for.
#[derive(Clone, Debug)]
pub enum Awaited {
    /// No step from the location waits for a memory cell.
    Nothing,
    /// The cell with this address; an index is computed from the registers before the step.
    Cell(Address),
    /// Several cells. The writes to them are totally ordered in every execution, so one key stands for all of them.
    Class(Key),
}

/// Static facts about a location.
#[derive(Clone, Debug)]
pub struct Place {
    /// Whether all outgoing steps are local and change the value of no formula.
    pub local: bool,
    /// Whether some outgoing step is enabled only while no other thread holds the lock.
    pub locks: bool,
    /// Whether some but not all outgoing steps wait until the buffer is empty.
    pub sees_emptiness: bool,
    /// The memory cells that outgoing steps wait for.
    pub awaited: Awaited,
}

/// The part of footprints that does not depend on values, and the numbering of keys.
pub struct Tables {
    /// The number of memory cells; their keys come first.
    pub cells: usize,
    /// The number of keys, without buffered stores.
    pub keys: usize,
    /// The key of the lock, if the program has one.
    pub lock: Option<Key>,
    /// Facts about each location of each thread.
    pub places: Vec<Vec<Place>>,
    /// For each thread and edge, the keys of the formulas whose value the edge may change, apart from `own` disjuncts.
    pub seen: Vec<Vec<Box<[Key]>>>,
    /// For each thread and location, whether some disjunct of a formula depends on this thread only and can hold there
    /// ([`Disjunct::own_locations`]). The formulas are evaluated when the thread is there.
    pub own: Vec<Vec<bool>>,
    /// For each cell, the keys of the formulas that read it.
    pub seen_cells: Vec<Box<[Key]>>,
    /// For each cell, the key of its class, that is, of the cells that are awaited together; `None` if the cell is in no class.
    pub classes: Vec<Option<Key>>,
    /// For each thread, whether some location [sees emptiness](Place::sees_emptiness).
    pub sees_emptiness: Vec<bool>,
    /// The agents of the program, and their numbers.
    pub agents: Agents,
}

impl Tables {
    /// Computes the tables from the program and the properties of a task.
    pub fn new(task: &Task<'_>) -> Self {
        let program = task.program;
        let cells = program.cells();
        let uses_lock =
            program.threads.iter().flat_map(|t| &t.edges).any(|e| matches!(e.action, Action::Lock));
        let first_class = cells as Key + 1;
        let first_formula = first_class + cells as Key;
        let first_buffer = first_formula + task.properties.len() as Key;
        let mut classes = Classes::new(cells);
        let awaited: Vec<Vec<Waits>> = program
            .threads
            .iter()
            .map(|thread| {
                let of = |l: usize| {
                    let edges = thread.edges_from(LocationId(l as u32)).map(|(_, e)| e);
                    Waits::new(program, edges)
                };
                (0..thread.locations.len()).map(of).collect()
            })
            .collect();
        for waiting in awaited.iter().flatten() {
            if let Waits::Several(cells) = waiting {
                cells.windows(2).for_each(|pair| classes.unite(pair[0], pair[1]));
            }
        }
        let mut of_cells = vec![None; cells];
        for cell in
            awaited.iter().flatten().flat_map(|w| if let Waits::Several(c) = w { &c[..] } else { &[] })
        {
            of_cells[*cell as usize] = Some(first_class + Key::from(classes.of(*cell)));
        }
        let seen = Seen { task, first: first_formula };
        let seen_edges: Vec<Vec<Box<[Key]>>> = program.threads().map(|(id, _)| seen.edges(id)).collect();
        let own = seen.own();
        let mut places = Vec::new();
        let of_thread = seen_edges.iter().zip(&own);
        for ((thread, awaited), (seen, own)) in program.threads.iter().zip(awaited).zip(of_thread) {
            let place = |(l, awaited): (usize, Waits)| {
                let edges = || thread.edges_from(LocationId(l as u32));
                let drains = edges().filter(|(_, e)| e.action.drains()).count();
                Place {
                    local: !own[l]
                        && edges()
                            .all(|(id, e)| is_local(&e.action, task.model) && seen[id.index()].is_empty()),
                    locks: uses_lock && edges().any(|(_, e)| needs_lock(&e.action, task.model)),
                    sees_emptiness: task.model != MemoryModel::Sc && drains > 0 && drains < edges().count(),
                    awaited: match awaited {
                        Waits::Nothing => Awaited::Nothing,
                        Waits::One(address) => Awaited::Cell(address),
                        Waits::Several(cells) => {
                            Awaited::Class(first_class + Key::from(classes.of(cells[0])))
                        }
                    },
                }
            };
            places.push(awaited.into_iter().enumerate().map(place).collect::<Vec<Place>>());
        }
        Tables {
            cells,
            keys: first_buffer as usize + program.threads.len(),
            lock: uses_lock.then_some(cells as Key),
            sees_emptiness: places.iter().map(|p| p.iter().any(|place| place.sees_emptiness)).collect(),
            places,
            seen: seen_edges,
            own,
            seen_cells: seen.cells(),
            classes: of_cells,
            agents: Agents::new(program, task.model),
        }
    }

    /// The key of a formula. Every step that may change its value writes this key.
    pub fn formula(&self, property: usize) -> Key {
        2 * self.cells as Key + 1 + property as Key
    }

    /// The key of a thread's buffer. Steps that observe whether it is empty read this key.
    pub fn buffer(&self, thread: usize) -> Key {
        (self.keys - self.agents.threads + thread) as Key
    }

    /// The thread whose buffer has this key, if any. The key must not be that of a buffered store.
    pub fn buffer_owner(&self, key: Key) -> Option<usize> {
        (key as usize).checked_sub(self.keys - self.agents.threads)
    }

    /// The key of a buffered store of a thread.
    pub fn store(thread: u32, number: u32) -> Key {
        STORES | Key::from(thread) << 32 | Key::from(number)
    }

    /// The thread and the number of the buffered store with this key, if any.
    pub fn numbered_store(key: Key) -> Option<(u32, u32)> {
        (key >= STORES).then_some(((key & !STORES) >> 32) as u32).map(|thread| (thread, key as u32))
    }

    /// Adds a write to a memory cell, and to the class of the cell if it has one.
    pub fn add_write(&self, items: &mut Vec<Item>, cell: u32) {
        add(items, Item::write(Key::from(cell)));
        if let Some(class) = self.classes[cell as usize] {
            add(items, Item::write(class));
        }
    }
}

/// The agents of a program: the code of each thread, and the buffers. Under TSO each thread that stores has one buffer; under PSO, one per cell that
/// it stores to.
pub struct Agents {
    /// The number of threads. An agent whose index is less than this number is the program of a thread.
    pub threads: usize,
    /// For each thread, the agents that flush its buffer.
    flushers: Vec<Range<usize>>,
    /// For each flushing agent, the thread whose buffer it flushes, and under PSO the cell.
    buffers: Vec<(u32, Option<u32>)>,
}

impl Agents {
    fn new(program: &Program, model: MemoryModel) -> Self {
        let threads = program.threads.len();
        let (mut flushers, mut buffers) = (Vec::new(), Vec::new());
        for (t, thread) in program.threads.iter().enumerate() {
            let mut cells: Vec<u32> = thread
                .edges
                .iter()
                .filter_map(|e| if let Action::Op(Op::Store(a, _)) = &e.action { Some(a) } else { None })
                .flat_map(|address| cells_of(program, address))
                .collect();
            cells.sort_unstable();
            cells.dedup();
            let first = threads + buffers.len();
            match model {
                MemoryModel::Sc => {}
                MemoryModel::Tso if cells.is_empty() => {}
                MemoryModel::Tso => buffers.push((t as u32, None)),
                MemoryModel::Pso => buffers.extend(cells.into_iter().map(|cell| (t as u32, Some(cell)))),
            }
            flushers.push(first..threads + buffers.len());
        }
        Agents { threads, flushers, buffers }
    }

    /// The number of agents: all threads and all buffers.
    pub fn count(&self) -> usize {
        self.threads + self.buffers.len()
    }

    /// The thread whose buffer this agent flushes, and under PSO the cell; `None` if the agent executes the code of a thread.
    pub fn buffer(&self, agent: usize) -> Option<(u32, Option<u32>)> {
        agent.checked_sub(self.threads).map(|n| self.buffers[n])
    }

    /// The agents that flush the buffer of a thread.
    pub fn flushers(&self, thread: usize) -> Range<usize> {
        self.flushers[thread].clone()
    }

    /// The thread to which an agent belongs: as its program or as one of its buffers.
    pub fn thread(&self, agent: usize) -> usize {
        self.buffer(agent).map_or(agent, |(thread, _)| thread as usize)
    }
}

/// Whether a step neither accesses memory nor waits for another agent.
pub fn is_local(action: &Action, model: MemoryModel) -> bool {
    match action {
        Action::Op(Op::Load(..)) => false,
        Action::Op(Op::Store(..)) => model != MemoryModel::Sc,
        Action::Op(_) | Action::StoreFence => true,
        Action::Fence | Action::Lock | Action::Unlock | Action::Atomic { .. } => false,
    }
}

/// Whether a step is enabled only while no other thread holds the lock.
fn needs_lock(action: &Action, model: MemoryModel) -> bool {
    !is_local(action, model) && !matches!(action, Action::Fence)
}

/// Computes the dependencies of the formulas of [`PropertyKind::Never`]: the cells and edges that can change their values.
struct Seen<'t> {
    task: &'t Task<'t>,
    /// The key of the formula of property 0.
    first: Key,
}

impl Seen<'_> {
    /// The disjuncts of each formula, with the key of the formula.
    fn disjuncts(&self) -> impl Iterator<Item = (Key, Vec<Disjunct<'_>>)> {
        self.task.properties.iter().zip(self.first..).filter_map(|(property, key)| {
            let PropertyKind::Never(formula) = &property.kind else { return None };
            Some((key, formula.disjuncts()))
        })
    }

    /// The leaves of each formula outside of `own` disjuncts, with the key of the formula.
    fn leaves(&self) -> impl Iterator<Item = (Key, Vec<Observable>)> {
        self.disjuncts().map(|(key, disjuncts)| {
            let mut leaves = Vec::new();
            for disjunct in disjuncts.iter().filter(|disjunct| disjunct.own_locations().is_none()) {
                disjunct.formula.for_each_leaf(&mut |leaf| leaves.push(leaf.clone()));
            }
            (key, leaves)
        })
    }

    /// See [`Tables::own`].
    fn own(&self) -> Vec<Vec<bool>> {
        let mut own: Vec<Vec<bool>> =
            self.task.program.threads.iter().map(|thread| vec![false; thread.locations.len()]).collect();
        for disjunct in self.disjuncts().flat_map(|(_, disjuncts)| disjuncts) {
            if let Some((thread, locations)) = disjunct.own_locations() {
                locations.iter().for_each(|location| own[thread.index()][location.index()] = true);
            }
        }
        own
    }

    /// For each memory cell, the keys of the formulas that read it.
    fn cells(&self) -> Vec<Box<[Key]>> {
        let mut seen: Vec<Vec<Key>> = vec![Vec::new(); self.task.program.cells()];
        for (key, leaves) in self.leaves() {
            for leaf in leaves {
                if let Observable::Memory(cell) = leaf
                    && seen[cell as usize].last() != Some(&key)
                {
                    seen[cell as usize].push(key);
                }
            }
        }
        seen.into_iter().map(Vec::into_boxed_slice).collect()
    }

    /// For each edge of a thread, the keys of the formulas whose value the edge may change.
    fn edges(&self, id: ThreadId) -> Vec<Box<[Key]>> {
        let (program, model) = (self.task.program, self.task.model);
        let thread = program.thread(id);
        let mut seen: Vec<Vec<Key>> = vec![Vec::new(); thread.edges.len()];
        for (key, leaves) in self.leaves() {
            let mut looks = Looks::alike(thread.locations.len());
            for leaf in &leaves {
                if let Observable::At(of, at) = leaf
                    && *of == id
                {
                    looks.tell_apart(at);
                }
            }
            for (edge, seen) in thread.edges.iter().zip(&mut seen) {
                let direct = model == MemoryModel::Sc || matches!(edge.action, Action::Atomic { .. });
                let writes = |op: &Op| match op {
                    Op::Store(address, _) => {
                        let cells = cells_of(program, address);
                        let mut looked_at = leaves.iter().filter_map(|leaf| match leaf {
                            Observable::Memory(cell) => Some(cell),
                            _ => None,
                        });
                        direct && looked_at.any(|cell| cells.contains(cell))
                    }
                    _ => written_register(op).is_some_and(|r| leaves.contains(&Observable::Register(id, r))),
                };
                let moves = !looks.is_alike(edge.from, edge.to)
                    || (program.edge_may_fault(thread, edge) && !looks.is_alike(edge.from, thread.fault));
                if moves || edge.action.ops().iter().any(writes) {
                    seen.push(key);
                }
            }
        }
        seen.into_iter().map(Vec::into_boxed_slice).collect()
    }
}
