//! Representations of store buffers: none (SC), exact queues, or partial buffers.
//!
//! | representation | from | a store | a flush |
//! |---|---|---|---|
//! | `Sc` | THESIS16 (LSWM) | writes memory | |
//! | `Queue` | THESIS16 Fig. 2.19, EXTRA13 Fig. 5 and 12 | appends; at the [`Bound`], *overflow* | the oldest entry (PSO: of any cell before the first barrier) |
//! | `Partial`, oldest kept | FENCES12 Fig. 5, THESIS16 Fig. 3.10 | WRITE-L, WRITE-G | UPDATE-NE; when no ordered entry is left, UPDATE-AM and UPDATE-AS |
//! | `Partial`, newest kept | FENCES12 s.8 | appends; beyond k the oldest entry moves into the set | UPDATE-AM and UPDATE-AS while the set is not empty, then UPDATE-NE |
//!
//! `Partial` keeps k stores in order (PSO: k for each memory cell). All other stores form a set, of which it keeps only the cells written and, for
//! each such cell, the value of the newest store, in the cell [`Last`](crate::Cell::Last). Everything else about these stores is forgotten: an
//! UPDATE-AM writes an arbitrary value. For the memory cells in `summaries` the values of the stores in the set are kept too, without order and
//! multiplicity, in the summary cell [`Forgotten`](crate::Cell::Forgotten); then an UPDATE-AM writes one of them. The value stays in the summary
//! cell, because another store in the set may have the same value.
//!
//! Differences from the papers. If the newest store to a cell is in the ordered part, a load takes its value from there, so `Last` need not be kept
//! for cells that are not in the set. With the newest kept, `Last` is the newest value in the set, not in the whole buffer (a newer store may be in
//! the ordered part). Under PSO the order of entries of different cells between two barriers is irrelevant; they are kept sorted. A barrier waits for
//! the ordered entries before it but not for the set, and entries in the set wait for no barrier: both over-approximate the behaviour.

use fencewright_program::{Expr, MemoryModel, ThreadId};

use crate::cells::{Cell, CellId, Cells};
use crate::control::{BufferShape, Entry};
use crate::machine::Command;

/// The end of a partial buffer that is kept in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kept {
    /// The oldest stores (FENCES12 s.4).
    Oldest,
    /// The newest stores (FENCES12 s.8, and the tool of that paper).
    Newest,
}

/// The memory cells for which a partial buffer keeps the values of the stores in its set. Only the first 64 memory cells of a program can be among
/// them, so that the list fits one word and [`Buffers`] is `Copy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Summarised(u64);

impl Summarised {
    /// All memory cells of a program with this number of cells, as far as they can have a summary.
    pub fn all(cells: usize) -> Self {
        (0..cells as u32).collect()
    }

    /// Whether the memory cell has a summary.
    pub fn contains(self, cell: u32) -> bool {
        cell < u64::BITS && self.0 >> cell & 1 == 1
    }

    /// The memory cells, in order.
    pub fn cells(self) -> impl Iterator<Item = u32> {
        (0..u64::BITS).filter(move |&cell| self.contains(cell))
    }

    /// Whether no memory cell has a summary.
    pub fn is_empty(&self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<u32> for Summarised {
    /// Those of the given memory cells that can have a summary.
    fn from_iter<I: IntoIterator<Item = u32>>(cells: I) -> Self {
        Summarised(cells.into_iter().filter_map(|cell| 1u64.checked_shl(cell)).fold(0, |all, bit| all | bit))
    }
}

/// A bound for each memory cell. The first 63 cells have separate bounds, all others share the 64th. The array has a fixed size so that [`Buffers`]
/// is `Copy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CellBounds([u8; 64]);

impl CellBounds {
    /// The bounds of the memory cells in order; the last one applies to all further cells. `None` if there are no bounds, or more than 64.
    pub fn new(bounds: &[u8]) -> Option<Self> {
        let mut all = [*bounds.last()?; 64];
        all.get_mut(..bounds.len())?.copy_from_slice(bounds);
        Some(CellBounds(all))
    }

    /// The bound of a memory cell.
    pub fn of(self, cell: u32) -> u32 {
        u32::from(self.0[self.0.len().min(cell as usize + 1) - 1])
    }

    /// The shortest list that [`new`](CellBounds::new) turns into these bounds.
    pub fn list(&self) -> &[u8] {
        let last = self.0[63];
        let same = self.0.iter().rev().take_while(|bound| **bound == last).count();
        &self.0[..=64 - same]
    }
}

/// The capacity of exact queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bound {
    /// Maximum number of buffered stores of each thread.
    Thread(u32),
    /// Maximum number of buffered stores of each thread to each memory cell (EXTRA13 s.3, where PSO has a queue for each pair).
    Cell(CellBounds),
}

impl Bound {
    /// Whether a store to memory cell `target` fits into a buffer that holds stores to the cells `stores`.
    pub fn has_room(self, stores: impl Iterator<Item = u32>, target: u32) -> bool {
        let (count, bound) = match self {
            Bound::Thread(bound) => (stores.count(), bound),
            Bound::Cell(bounds) => (stores.filter(|cell| *cell == target).count(), bounds.of(target)),
        };
        count < bound as usize
    }

    /// The greatest of the bounds.
    pub fn most(self) -> u32 {
        match self {
            Bound::Thread(bound) => bound,
            Bound::Cell(CellBounds(all)) => all.into_iter().max().map_or(0, u32::from),
        }
    }

    /// Maximum number of buffered stores of a thread, in a program with `cells` memory cells.
    fn stores(self, cells: usize) -> u32 {
        match self {
            Bound::Thread(bound) => bound,
            Bound::Cell(bounds) => (0..cells as u32).map(|cell| bounds.of(cell)).fold(0, u32::saturating_add),
        }
    }
}

/// A representation of store buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Buffers {
    /// No buffers: every store goes to memory at once.
    Sc,
    /// Exact queues; a store that does not fit is an overflow.
    Queue {
        /// The memory model: TSO or PSO.
        model: MemoryModel,
        /// The capacity of the queues.
        bound: Bound,
    },
    /// Buffers that keep the order of some stores only.
    Partial {
        /// The memory model: TSO or PSO.
        model: MemoryModel,
        /// Maximum number of stores kept in order (PSO: of each memory cell).
        k: u32,
        /// The end of the buffer whose stores are kept in order.
        kept: Kept,
        /// The memory cells for which the values of the stores in the set are kept, in summary cells.
        summaries: Summarised,
    },
}

/// A change of one buffer: its new shape, and the commands that update the cells.
#[derive(Clone, Debug)]
pub struct Change {
    /// The commands that update the cells.
    pub commands: Vec<Command>,
    /// The new shape of the buffer.
    pub shape: BufferShape,
}

/// The effect of a store.
pub enum Stored {
    /// The store reaches memory immediately.
    Memory,
    /// The store enters the buffer, in one of several alternative ways.
    Buffered(Vec<Change>),
    /// The store exceeds the capacity of the buffer.
    Overflow,
}

/// The effects of the edges of a program on store buffers. A [`BufferMachine`](crate::BufferMachine) needs nothing else to perform edges. Flushes are
/// not part of this trait; the user of the machine supplies them.
pub trait StoreBuffers: Copy {
    /// Whether threads have buffers; they have none under SC.
    fn exist(self) -> bool;

    /// Whether the machine has summary cells ([`Cells`]).
    fn have_summaries(self) -> bool {
        false
    }

    /// Maximum number of ordered entries of a buffer, barriers included, for a program with `cells` memory cells.
    fn positions(self, cells: usize) -> u32;

    /// A store of `value` to memory cell `target`.
    fn store(
        self,
        cells: &Cells,
        thread: ThreadId,
        shape: &BufferShape,
        target: u32,
        value: Expr<CellId>,
    ) -> Stored;

    /// The cell that holds the value of the newest buffered store to memory cell `target`; `None` if no store to it is buffered.
    fn newest(self, cells: &Cells, thread: ThreadId, shape: &BufferShape, target: u32) -> Option<CellId>;

    /// The shape of the buffer after an `sfence`.
    fn barrier(self, shape: &BufferShape) -> BufferShape;
}

impl StoreBuffers for Buffers {
    fn exist(self) -> bool {
        self != Buffers::Sc
    }

    fn have_summaries(self) -> bool {
        matches!(self, Buffers::Partial { summaries, .. } if !summaries.is_empty())
    }

    fn positions(self, cells: usize) -> u32 {
        let stores = match self {
            Buffers::Sc => 0,
            Buffers::Queue { bound, .. } => bound.stores(cells),
            Buffers::Partial { model: MemoryModel::Pso, k, .. } => k.saturating_mul(cells as u32),
            // If the newest stores are kept in order, the oldest of them moves into the set before another store is appended, so there are never more
            // than k ordered entries.
            Buffers::Partial { k, .. } => k,
        };
        // Under PSO each barrier directly follows a store, so there are at most 2 * stores entries; one position is spare.
        if self.model() == MemoryModel::Pso { 2 * stores + 1 } else { stores }
    }

    fn store(
        self,
        cells: &Cells,
        thread: ThreadId,
        shape: &BufferShape,
        target: u32,
        value: Expr<CellId>,
    ) -> Stored {
        match self {
            Buffers::Sc => Stored::Memory,
            Buffers::Queue { bound, .. } => {
                match bound.has_room(shape.queue.iter().filter_map(Entry::cell), target) {
                    true => Stored::Buffered(vec![self.append(cells, thread, shape, target, value)]),
                    false => Stored::Overflow,
                }
            }
            Buffers::Partial { k, kept: Kept::Oldest, .. } => {
                let full = if self.is_pso() {
                    count(shape, target) >= k as usize || shape.set.contains(&target)
                } else {
                    shape.queue.len() >= k as usize || !shape.set.is_empty()
                };
                Stored::Buffered(vec![match full {
                    false => self.append(cells, thread, shape, target, value),
                    true => self.forget(cells, thread, shape.clone(), target, value),
                }])
            }
            Buffers::Partial { k, kept: Kept::Newest, .. } => {
                Stored::Buffered(vec![self.push_newest(cells, thread, shape, target, value, k)])
            }
        }
    }

    fn newest(self, cells: &Cells, thread: ThreadId, shape: &BufferShape, target: u32) -> Option<CellId> {
        let position = shape.queue.iter().rposition(|e| *e == Entry::Store(target));
        let ordered = position.map(|p| cells.id(Cell::Entry(thread, p as u32)));
        let in_set = shape.set.contains(&target).then(|| cells.id(Cell::Last(thread, target)));
        match self {
            Buffers::Partial { kept: Kept::Oldest, .. } => in_set.or(ordered),
            _ => ordered.or(in_set),
        }
    }

    /// Under PSO this appends a barrier, unless the buffer has no ordered entries or ends with a barrier.
    fn barrier(self, shape: &BufferShape) -> BufferShape {
        let mut shape = shape.clone();
        if self.is_pso() && !matches!(shape.queue.last(), None | Some(Entry::Barrier)) {
            shape.queue.push(Entry::Barrier);
        }
        shape
    }
}

impl Buffers {
    /// The memory model that is represented.
    pub fn model(self) -> MemoryModel {
        match self {
            Buffers::Sc => MemoryModel::Sc,
            Buffers::Queue { model, .. } | Buffers::Partial { model, .. } => model,
        }
    }

    /// The summary cell for the stores in the set to a memory cell; `None` if the memory cell has no summary.
    fn summary(self, cells: &Cells, thread: ThreadId, target: u32) -> Option<CellId> {
        match self {
            Buffers::Partial { summaries, .. } if summaries.contains(target) => {
                Some(cells.id(Cell::Forgotten(thread, target)))
            }
            _ => None,
        }
    }

    fn is_pso(self) -> bool {
        self.model() == MemoryModel::Pso
    }

    /// WRITE-L, and a store into an exact queue. Under PSO the entries after the last barrier stay sorted by cell.
    fn append(
        self,
        cells: &Cells,
        thread: ThreadId,
        shape: &BufferShape,
        target: u32,
        value: Expr<CellId>,
    ) -> Change {
        let mut position = shape.queue.len();
        if self.is_pso() {
            while position > 0 && matches!(shape.queue[position - 1], Entry::Store(c) if c > target) {
                position -= 1;
            }
        }
        let mut commands = shift(cells, thread, position..shape.queue.len(), 1);
        commands.push(Command::Assign(cells.id(Cell::Entry(thread, position as u32)), value));
        let mut shape = shape.clone();
        shape.queue.insert(position, Entry::Store(target));
        Change { commands, shape }
    }

    /// A store with the newest kept: if there are k ordered stores already (PSO: k to this cell), the oldest of them moves into the set first.
    fn push_newest(
        self,
        cells: &Cells,
        thread: ThreadId,
        shape: &BufferShape,
        target: u32,
        value: Expr<CellId>,
        k: u32,
    ) -> Change {
        let pso = self.is_pso();
        let in_order = if pso { count(shape, target) } else { shape.queue.len() };
        if k == 0 {
            return self.forget(cells, thread, shape.clone(), target, value);
        }
        if in_order < k as usize {
            return self.append(cells, thread, shape, target, value);
        }
        let is_oldest = |e: &Entry| matches!(e, Entry::Store(c) if !pso || *c == target);
        let oldest = shape.queue.iter().enumerate().find_map(|(position, entry)| match entry {
            Entry::Store(cell) if is_oldest(entry) => Some((position, *cell)),
            _ => None,
        });
        let Some((position, oldest)) = oldest else {
            unreachable!("shapes have as many stores in order as were counted")
        };
        let moved = Expr::Leaf(cells.id(Cell::Entry(thread, position as u32)));
        let (shifts, without) = removed(cells, thread, shape, position);
        let moved = self.forget(cells, thread, without, oldest, moved);
        // The value is an expression over registers, so the preceding commands, which change the buffer, do not affect it.
        let after = self.append(cells, thread, &moved.shape, target, value);
        Change { commands: [moved.commands, shifts, after.commands].concat(), shape: after.shape }
    }

    /// WRITE-G: a store of `value` to memory cell `target` moves into the set.
    fn forget(
        self,
        cells: &Cells,
        thread: ThreadId,
        mut shape: BufferShape,
        target: u32,
        value: Expr<CellId>,
    ) -> Change {
        let mut commands = vec![Command::Assign(cells.id(Cell::Last(thread, target)), value.clone())];
        let position = shape.set.binary_search(&target);
        commands.extend(self.summary(cells, thread, target).map(|summary| match position {
            Ok(_) => Command::Fold(summary, value),
            Err(_) => Command::Assign(summary, value),
        }));
        if let Err(position) = position {
            shape.set.insert(position, target);
        }
        Change { commands, shape }
    }

    /// The cells that hold the values of a buffer with this shape.
    pub fn values(self, cells: &Cells, thread: ThreadId, shape: &BufferShape) -> Vec<CellId> {
        let stores = shape.queue.iter().enumerate().filter(|(_, e)| **e != Entry::Barrier);
        let ordered = stores.map(|(p, _)| cells.id(Cell::Entry(thread, p as u32)));
        let last = shape.set.iter().map(|&c| cells.id(Cell::Last(thread, c)));
        let forgotten = shape.set.iter().filter_map(|&c| self.summary(cells, thread, c));
        ordered.chain(last).chain(forgotten).collect()
    }

    /// All possible flushes: the memory cell that is written, and the change of the buffer.
    pub fn flushes(self, cells: &Cells, thread: ThreadId, shape: &BufferShape) -> Vec<(u32, Change)> {
        let kept = match self {
            Buffers::Partial { kept, .. } => kept,
            _ => Kept::Oldest,
        };
        let mut flushes = Vec::new();
        // UPDATE-NE: the oldest ordered entry; under PSO the oldest of each cell before the first barrier.
        let mut seen = Vec::new();
        for (position, entry) in shape.queue.iter().enumerate() {
            let Entry::Store(target) = *entry else { break };
            let older_in_set = kept == Kept::Newest
                && if self.is_pso() { shape.set.contains(&target) } else { !shape.set.is_empty() };
            if !seen.contains(&target) && !older_in_set {
                let write =
                    Command::Assign(target, Expr::Leaf(cells.id(Cell::Entry(thread, position as u32))));
                let (shifts, next) = removed(cells, thread, shape, position);
                let commands = [vec![write], shifts].concat();
                flushes.push((target, Change { commands, shape: next }));
            }
            if !self.is_pso() {
                break;
            }
            seen.push(target);
        }
        for &target in &shape.set {
            let older_in_queue = kept == Kept::Oldest
                && if self.is_pso() { count(shape, target) > 0 } else { !shape.queue.is_empty() };
            if older_in_queue {
                continue;
            }
            // UPDATE-AM: a store to this cell that is not the last one in the set.
            let one_of_several = match self.summary(cells, thread, target) {
                Some(summary) => Command::Expand(target, summary),
                None => Command::Havoc(target),
            };
            flushes.push((target, Change { commands: vec![one_of_several], shape: shape.clone() }));
            // UPDATE-AS: the last store to this cell in the set.
            let write = Command::Assign(target, Expr::Leaf(cells.id(Cell::Last(thread, target))));
            let mut next = shape.clone();
            next.set.retain(|&c| c != target);
            flushes.push((target, Change { commands: vec![write], shape: next }));
        }
        flushes
    }
}

/// The number of ordered stores to a memory cell.
fn count(shape: &BufferShape, target: u32) -> usize {
    shape.queue.iter().filter(|e| **e == Entry::Store(target)).count()
}

/// The commands that move the values at these positions up by one (`by` 1) or down by one (`by` -1).
fn shift(cells: &Cells, thread: ThreadId, positions: std::ops::Range<usize>, by: i32) -> Vec<Command> {
    let cell = |position: usize| cells.id(Cell::Entry(thread, position as u32));
    let step = |p: usize| {
        let to = (p as i32 + by) as usize;
        Command::Assign(cell(to), Expr::Leaf(cell(p)))
    };
    if by > 0 { positions.rev().map(step).collect() } else { positions.map(step).collect() }
}

/// The shape without the entry at this position, and the commands that move the later values down. A barrier that is then at the front, or right
/// behind another barrier, is removed too, so that every barrier follows a store.
fn removed(
    cells: &Cells,
    thread: ThreadId,
    shape: &BufferShape,
    position: usize,
) -> (Vec<Command>, BufferShape) {
    let mut commands = Vec::new();
    let mut shape = shape.clone();
    loop {
        commands.extend(shift(cells, thread, position + 1..shape.queue.len(), -1));
        shape.queue.remove(position);
        let after_barrier = position == 0 || shape.queue[position - 1] == Entry::Barrier;
        if !after_barrier || shape.queue.get(position) != Some(&Entry::Barrier) {
            return (commands, shape);
        }
    }
}
