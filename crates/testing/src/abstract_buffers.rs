//! Abstract store buffers: the abstract machines of THESIS16 s. 3.2 with concrete data, defined as simply as possible.
//!
//! A buffer consists of a queue of at most k stores (under PSO: k stores to each memory cell) and, for all other stores of the thread, a *multiset of
//! values* for each cell. The multisets ignore the order of stores, except that the value added last is known for each cell. The parameters of the
//! buffer select one of these machines:
//!
//! | | k | counts | figure |
//! |---|---|---|---|
//! | value set | 0 | 1 means 1 or more | Fig. 3.6 |
//! | multiset | 0 | exact | Fig. 3.8 |
//! | partial:k | k | 1 means 1 or more | Fig. 3.10 |
//!
//! A thread observes only two facts about its own buffer: whether it is empty (rules LF, Lock, Unlock and atomic steps), and the newest value of a
//! cell (RB, RM). So the reference semantics defines everything except how stores enter and leave buffers. It is given a *stand-in* for each buffer:
//! an exact buffer with one store to each buffered cell, of the newest value.
//!
//! The following rules define how stores enter and leave. The queue contains either the oldest or the newest stores of the buffer ([`Kept`]):
//!
//! | rule | | enabled if |
//! |---|---|---|
//! | (LS-Q) | a store is appended to the queue | the queue has fewer than k stores and, if the oldest are kept, the multisets are empty |
//! | (LS-S), oldest kept | a store is added to its multiset and becomes the last one | (LS-Q) is not enabled |
//! | (LS-S), newest kept | the oldest store of the queue is added to its multiset, and the new one is appended; if k = 0, the new one is added to its multiset | (LS-Q) is not enabled |
//! | (WM-Q) | the oldest store of the queue goes to memory | if the newest are kept, the multisets are empty |
//! | (WM-D) | a value goes to memory and one copy of it leaves its multiset | if the oldest are kept, the queue is empty; and the value is not the last one of its cell, or occurs more than once, or is the only one of its cell |
//! | (WM-ND) | a value goes to memory and its multiset stays | if the oldest are kept, the queue is empty; and the count of the value stands for all larger counts too |
//!
//! Under PSO these rules apply to the stores to each cell separately. In addition, a store can leave the queue only if no barrier precedes it. If the
//! oldest are kept, a value can leave a multiset only if the queue contains no barrier.
//!
//! These rules differ from the figures. (LS-S) is printed with `R = {}` and (WM-SND) without `|Q| = 0`. (WM) of Fig. 3.8 lacks the last value, which
//! it needs in addition to the multiset. Fig. 3.10 is for TSO and keeps the oldest stores; FENCES12 s. 8 keeps the newest.
//!
//! Under PSO the order of stores to different cells between two barriers is irrelevant, so such stores are sorted by cell in the queue. A store fence
//! appends a barrier to the queue. No barrier is appended if the oldest are kept and the multisets contain stores: the stores in the multisets are
//! newer than the queue, so the barrier would have to follow them, and multisets have no order. If the newest are kept, a barrier is removed when the
//! last store before it leaves the queue. So with k = 0 store fences have no effect, and the machines for PSO and TSO are the same.

use std::collections::{BTreeMap, HashSet, VecDeque};

use fencewright_program::reference::{Access, Buffered, Disabled, Refusal};
use fencewright_program::{
    Action, Event, EventKind, MemoryModel, Program, Property, PropertyKind, Reference, State, ThreadId,
};

use fencewright_executions::oracle::{self, Incomplete, initial_states};

/// The abstraction of buffers that a machine uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Abstraction {
    /// Maximum number of stores of a thread that are kept in order (under PSO: of stores to each memory cell).
    pub k: usize,
    /// Whether the oldest or the newest stores are kept in order.
    pub kept: Kept,
    /// How the other stores are counted.
    pub counts: Counts,
}

/// The stores of a buffer that are kept in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kept {
    /// The oldest stores.
    Oldest,
    /// The newest stores.
    Newest,
}

/// How equal stores in a multiset are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counts {
    /// Exactly, up to this number of copies. A store that would exceed the number is not explored, so the multiset machine is under-approximated.
    UpTo(u32),
    /// Exactly below this number. The number itself stands for all counts that are at least as large.
    OrMore(u32),
}

impl Abstraction {
    /// Sets of values (Fig. 3.6).
    pub const VALUE_SET: Abstraction = Abstraction::partial(0, Kept::Oldest);

    /// Multisets of values (Fig. 3.8).
    pub const MULTISET: Abstraction = Abstraction::multiset(Counts::UpTo(u32::MAX));

    /// Partial coherence: k stores in order, sets of values for the others (Fig. 3.10).
    pub const fn partial(k: usize, kept: Kept) -> Self {
        Abstraction { k, kept, counts: Counts::OrMore(1) }
    }

    /// Multisets with bounded counts.
    pub const fn multiset(counts: Counts) -> Self {
        Abstraction { k: 0, kept: Kept::Oldest, counts }
    }
}

/// The abstract store buffer of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Buffer {
    /// The stores that are kept in order, oldest first, with barriers between them. The format is that of exact buffers of the reference semantics.
    pub queue: Vec<Buffered>,
    /// The other stores, by memory cell. Only cells with such stores have an entry.
    pub rest: BTreeMap<u32, Values>,
}

/// The stores to one memory cell whose order is dropped.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Values {
    /// The value that was added last.
    pub last: i64,
    /// The number of occurrences of each value, at least 1.
    pub counts: BTreeMap<i64, u32>,
}

/// A state of an abstract machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AbstractState {
    /// Everything except the buffers. The buffers of this state are empty.
    pub visible: State,
    /// The buffer of each thread.
    pub buffers: Vec<Buffer>,
}

/// Why an event has no successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The event is disabled, or the interpreter cannot represent its result.
    Refused(Refusal),
    /// The step would exceed the bound of [`Counts::UpTo`].
    Uncounted,
}

impl From<Refusal> for Obstacle {
    fn from(refusal: Refusal) -> Self {
        Obstacle::Refused(refusal)
    }
}

/// An interpreter: a program under a memory model, with abstract buffers.
#[derive(Clone, Copy)]
pub struct AbstractMachine<'p> {
    /// The reference semantics, which defines everything except the buffers.
    pub reference: Reference<'p>,
    /// The abstraction of buffers.
    pub abstraction: Abstraction,
}

impl<'p> AbstractMachine<'p> {
    /// The interpreter for `program` under `model`.
    pub fn new(program: &'p Program, model: MemoryModel, abstraction: Abstraction) -> Self {
        AbstractMachine { reference: Reference::new(program, model), abstraction }
    }

    /// The abstract state for an initial state of the reference semantics.
    pub fn initial(&self, exact: State) -> AbstractState {
        let buffers = vec![Buffer::default(); exact.buffers.len()];
        AbstractState { visible: exact, buffers }
    }

    /// A state of the reference semantics with the same registers, locations, memory and lock, whose buffers contain the newest value of each
    /// buffered cell.
    pub fn stand_in(&self, state: &AbstractState) -> State {
        let stores = |buffer: &Buffer| {
            let newest = self.newest(buffer).into_iter();
            newest.map(|(cell, value)| Buffered::Store { cell, value }).collect()
        };
        State { buffers: state.buffers.iter().map(stores).collect(), ..state.visible.clone() }
    }

    /// The newest value of each buffered cell.
    pub fn newest(&self, buffer: &Buffer) -> BTreeMap<u32, i64> {
        let queue = buffer.queue.iter().filter_map(store_of);
        let rest = buffer.rest.iter().map(|(&cell, values)| (cell, values.last));
        // If a cell occurs twice, the later value wins.
        match self.abstraction.kept {
            Kept::Oldest => queue.chain(rest).collect(),
            Kept::Newest => rest.chain(queue).collect(),
        }
    }

    /// All events that could be steps from `state`, enabled or not.
    pub fn candidates(&self, state: &AbstractState) -> Vec<Event> {
        self.reference.candidates(&self.stand_in(state), &[])
    }

    /// All successors of a state by `event`.
    pub fn steps(&self, state: &AbstractState, event: &Event) -> Result<Vec<AbstractState>, Obstacle> {
        match &event.kind {
            EventKind::Flush { cell } => Ok(self.flush(state, event.thread, *cell)?),
            EventKind::Step { edge, .. } => {
                let (next, accesses) = self.reference.step(&self.stand_in(state), event)?;
                let mut buffers = state.buffers.clone();
                let buffer = &mut buffers[event.thread.index()];
                for access in accesses {
                    if let Access::Write { cell, value, buffered: true } = access {
                        self.store(buffer, cell, value)?;
                    }
                }
                if self.reference.program.thread(event.thread).edge(*edge).action == Action::StoreFence {
                    self.store_fence(buffer);
                }
                let empty = vec![Vec::new(); buffers.len()];
                Ok(vec![AbstractState { visible: State { buffers: empty, ..next }, buffers }])
            }
        }
    }

    /// Rules (LS-Q) and (LS-S): adds a store to a buffer.
    fn store(&self, buffer: &mut Buffer, cell: u32, value: i64) -> Result<(), Obstacle> {
        let Abstraction { k, kept, .. } = self.abstraction;
        let together = |entry: &Buffered| self.is_with(entry, cell);
        let has_room = buffer.queue.iter().filter(|entry| together(entry)).count() < k;
        match kept {
            Kept::Oldest if has_room && !self.has_rest_with(buffer, cell) => {}
            Kept::Newest if has_room => {}
            Kept::Newest if k > 0 => {
                let oldest = buffer.queue.iter().position(together).expect("it has k stores");
                let (cell, value) = take(&mut buffer.queue, oldest);
                self.add(buffer, cell, value)?;
            }
            _ => return self.add(buffer, cell, value),
        }
        // Under PSO the store is inserted behind the last barrier, sorted by cell, after the older ones of its cell.
        let later = |entry: &Buffered| self.is_pso() && store_of(entry).is_some_and(|(c, _)| c > cell);
        let before = buffer.queue.iter().rposition(|entry| !later(entry));
        buffer.queue.insert(before.map_or(0, |before| before + 1), Buffered::Store { cell, value });
        Ok(())
    }

    /// Whether an entry of a queue is a store whose order relative to stores to `cell` is kept: any store under TSO, a store to `cell` under PSO.
    fn is_with(&self, entry: &Buffered, cell: u32) -> bool {
        store_of(entry).is_some_and(|(c, _)| c == cell || !self.is_pso())
    }

    /// Whether the multisets contain a store whose order relative to stores to `cell` matters: any store under TSO, a store to `cell` under PSO.
    fn has_rest_with(&self, buffer: &Buffer, cell: u32) -> bool {
        buffer.rest.keys().any(|&c| c == cell || !self.is_pso())
    }

    /// Adds one more copy of a value to the multiset of `cell`, unless the count of the value is saturated. The value becomes the last one of the
    /// cell.
    fn add(&self, buffer: &mut Buffer, cell: u32, value: i64) -> Result<(), Obstacle> {
        let new = Values { last: value, counts: BTreeMap::new() };
        let values = buffer.rest.entry(cell).or_insert(new);
        values.last = value;
        let count = values.counts.entry(value).or_insert(0);
        match self.abstraction.counts {
            Counts::UpTo(most) if *count == most => return Err(Obstacle::Uncounted),
            Counts::OrMore(most) if *count == most => {}
            _ => *count += 1,
        }
        Ok(())
    }

    /// Executes `sfence`: under PSO it appends a barrier to the queue, unless the newest stores are in the multisets, or the queue is empty or
    /// already ends with a barrier.
    fn store_fence(&self, buffer: &mut Buffer) {
        let forgotten = self.abstraction.kept == Kept::Oldest && !buffer.rest.is_empty();
        if self.is_pso() && !forgotten && !matches!(buffer.queue.last(), None | Some(Buffered::Barrier)) {
            buffer.queue.push(Buffered::Barrier);
        }
    }

    /// Rules (WM-Q), (WM-D) and (WM-ND): the states after a store to `cell` has left the buffer.
    fn flush(
        &self,
        state: &AbstractState,
        thread: ThreadId,
        cell: u32,
    ) -> Result<Vec<AbstractState>, Refusal> {
        if state.visible.lock.is_some_and(|holder| holder != thread) {
            return Err(Refusal::Disabled(Disabled::Locked));
        }
        let Abstraction { kept, counts, .. } = self.abstraction;
        let buffer = &state.buffers[thread.index()];
        let mut flushes: Vec<(i64, Buffer)> = Vec::new();

        let mut before_barrier = buffer.queue.iter().take_while(|entry| **entry != Buffered::Barrier);
        let oldest = before_barrier.position(|entry| self.is_with(entry, cell));
        let oldest = oldest.filter(|&place| store_of(&buffer.queue[place]).is_some_and(|(c, _)| c == cell));
        let older_in_rest = kept == Kept::Newest && self.has_rest_with(buffer, cell);
        if let Some(place) = oldest.filter(|_| !older_in_rest) {
            let mut after = buffer.clone();
            let (_, value) = take(&mut after.queue, place);
            flushes.push((value, after));
        }

        let is_older = |entry: &Buffered| *entry == Buffered::Barrier || self.is_with(entry, cell);
        let older_in_queue = kept == Kept::Oldest && buffer.queue.iter().any(is_older);
        if let Some(values) = buffer.rest.get(&cell).filter(|_| !older_in_queue) {
            for (&value, &count) in &values.counts {
                if value != values.last || count > 1 || values.counts.len() == 1 {
                    flushes.push((value, without_one(buffer, cell, value)));
                }
                if counts == Counts::OrMore(count) {
                    flushes.push((value, buffer.clone()));
                }
            }
        }

        if flushes.is_empty() {
            return Err(Refusal::Disabled(Disabled::NoStore));
        }
        let next = |(value, after): (i64, Buffer)| {
            let mut next = state.clone();
            next.visible.memory[cell as usize] = value;
            next.buffers[thread.index()] = after;
            next
        };
        Ok(flushes.into_iter().map(next).collect())
    }

    fn is_pso(&self) -> bool {
        self.reference.model == MemoryModel::Pso
    }
}

/// The cell and the value of a store; `None` for a barrier.
fn store_of(entry: &Buffered) -> Option<(u32, i64)> {
    match entry {
        Buffered::Store { cell, value } => Some((*cell, *value)),
        Buffered::Barrier => None,
    }
}

/// Removes the store at index `place` from a queue, and then barriers that are redundant: at the start of the queue, or directly after another
/// barrier.
fn take(queue: &mut Vec<Buffered>, place: usize) -> (u32, i64) {
    let taken = store_of(&queue.remove(place)).expect("there is a store");
    queue.dedup_by(|entry, before| *entry == Buffered::Barrier && *before == Buffered::Barrier);
    if queue.first() == Some(&Buffered::Barrier) {
        queue.remove(0);
    }
    taken
}

/// The buffer without one copy of a value.
fn without_one(buffer: &Buffer, cell: u32, value: i64) -> Buffer {
    let mut after = buffer.clone();
    let values = after.rest.get_mut(&cell).expect("the cell is buffered");
    let count = values.counts.get_mut(&value).expect("the value is buffered");
    *count -= 1;
    if *count == 0 {
        values.counts.remove(&value);
    }
    if values.counts.is_empty() {
        after.rest.remove(&cell);
    }
    after
}

/// The reachable states of an abstract machine.
#[derive(Clone)]
pub struct Reachable<'p> {
    /// The machine that was explored.
    pub machine: AbstractMachine<'p>,
    /// All reachable states.
    pub states: HashSet<AbstractState>,
    /// Whether some step was not explored because of [`Counts::UpTo`].
    pub cut: bool,
}

/// All reachable states; an error if there are more than `limit`. `stop` is polled before each event.
pub fn explore<'p>(
    machine: AbstractMachine<'p>,
    limit: usize,
    stop: &mut dyn FnMut() -> bool,
) -> Result<Reachable<'p>, Incomplete> {
    let initial = initial_states(&machine.reference, limit, stop)?;
    let initial = initial.into_iter().map(|exact| machine.initial(exact));
    let mut reachable = Reachable { machine, states: initial.collect(), cut: false };
    let mut queue: VecDeque<AbstractState> = reachable.states.iter().cloned().collect();
    while let Some(state) = queue.pop_front() {
        if reachable.states.len() > limit {
            return Err(Incomplete::TooManyStates);
        }
        if machine.reference.has_unbounded_choice(&state.visible) {
            return Err(Incomplete::UnboundedChoice);
        }
        for event in machine.candidates(&state) {
            if stop() {
                return Err(Incomplete::Stopped);
            }
            match machine.steps(&state, &event) {
                Ok(nexts) => {
                    for next in nexts {
                        if reachable.states.insert(next.clone()) {
                            queue.push_back(next);
                        }
                    }
                }
                Err(Obstacle::Refused(Refusal::Disabled(_))) => {}
                Err(Obstacle::Refused(Refusal::Limit(..))) => return Err(Incomplete::Limit),
                Err(Obstacle::Uncounted) => reachable.cut = true,
            }
        }
    }
    Ok(reachable)
}

impl Reachable<'_> {
    /// Whether the reachable states satisfy `property`; `None` if that cannot be computed. If they do and [`Reachable::cut`] is false, then the
    /// program satisfies `property` as well, except for `finally exists`. The result for deadlock is always `None`, because an over-approximation may
    /// have steps where the program has none.
    pub fn satisfies(&self, property: &Property) -> Option<bool> {
        if property.kind == PropertyKind::NoDeadlock {
            return None;
        }
        let states = self.states.iter().map(|state| self.machine.stand_in(state)).collect();
        let Reference { program, model } = self.machine.reference;
        oracle::Reachable { states, deadlocks: HashSet::new() }.satisfies(program, model, property)
    }
}
