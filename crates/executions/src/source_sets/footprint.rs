//! The footprints of the steps of an agent: the objects that the steps read, write, and wait for.
//!
//! An *agent* is the program of a thread or one of its store buffers: under TSO the buffer is one agent, under PSO it is one agent for each cell. The
//! *step* of an agent in a configuration consists of all events that the agent can take there: a thread may have several edges, and a `*` several
//! values. These events are the *alternatives* of the step. They share one footprint: the union of the objects that each of them accesses.
//!
//! | step | reads | writes |
//! |---|---|---|
//! | register work, `assume` on registers, `sfence` | | |
//! | load from memory; load from the own buffer | the cell; the buffered store | |
//! | store into the buffer | | the buffered store |
//! | the step of an empty buffer, which is disabled | the next store of the thread | |
//! | flush | the stores that an `sfence` orders before this one | the cell, the buffered store |
//! | any step that needs an empty buffer | the newest store to each cell since the buffer was last known to be empty | |
//! | store to memory | | the cell |
//! | atomic step with an `assume` after a load | the cells of all loads before its last `assume` | |
//! | an access of a program with locks | the lock | |
//! | `lock`, `unlock` | | the lock |
//! | any step that may change the value of a disjunct of a formula, unless the disjunct depends on one thread only | | the formula |
//!
//! A footprint determines its step. If the step of another agent writes nothing that this step reads or writes, and reads nothing that this step
//! writes, then this step has the same alternatives and the same footprint before and after the other step, and the two steps commute. This holds for
//! disabled steps too.

use std::rc::Rc;

use fencewright_program::reference::{Access, Buffered, Refusal};
use fencewright_program::{
    Action, Edge, EdgeId, Event, EventKind, LocationId, MemoryModel, Observable, Op, Program, Property,
    PropertyKind, Reference, RegisterId, State, Thread, ThreadId,
};

use super::Incomplete;
use super::operations::{are_outcomes, choices, may_refuse, possible_cells, written};

/// An object that steps read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Object {
    /// A memory cell.
    Cell(u32),
    /// The global lock.
    Lock,
    /// A buffered store: the thread, and the number of the store among those of the thread.
    Store(u32, u32),
    /// The value of the formula of the property with this index.
    Formula(usize),
}

/// The objects that a step accesses, sorted, each with whether it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Footprint(Vec<(Object, bool)>);

impl Footprint {
    fn new(mut items: Vec<(Object, bool)>) -> Self {
        // Writes are sorted first, because `dedup_by_key` keeps the first of several items about one object.
        items.sort_unstable_by_key(|&(object, writes)| (object, !writes));
        items.dedup_by_key(|(object, _)| *object);
        Footprint(items)
    }

    /// The objects, each with whether it is written.
    pub(super) fn items(&self) -> impl Iterator<Item = (Object, bool)> {
        self.0.iter().copied()
    }

    /// Whether this step issues the store that the step with footprint `flush` flushes.
    pub(super) fn issues(&self, flush: &Footprint) -> bool {
        let is_store = |object| matches!(object, Object::Store(..));
        self.items().any(|(object, writes)| writes && is_store(object) && flush.0.contains(&(object, true)))
    }

    /// Whether both steps access an object that at least one of them writes.
    pub(super) fn conflicts(&self, other: &Footprint) -> bool {
        let (mut these, mut those) = (self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some((this, writes)), Some((that, overwrites))) = (these.peek(), those.peek()) {
            match this.cmp(that) {
                std::cmp::Ordering::Less => _ = these.next(),
                std::cmp::Ordering::Greater => _ = those.next(),
                std::cmp::Ordering::Equal if *writes || *overwrites => return true,
                std::cmp::Ordering::Equal => _ = (these.next(), those.next()),
            }
        }
        false
    }
}

/// The program of a thread, or one of the thread's buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Agent {
    /// The program of a thread.
    Thread(ThreadId),
    /// The buffer of a thread: under PSO the one for this cell, under TSO the only one (`None`).
    Buffer(ThreadId, Option<u32>),
}

/// A store that a thread has issued since its buffer was last known to be empty.
#[derive(Debug)]
struct Issued {
    cell: u32,
    number: u32,
    /// Number of `sfence`s that the thread executed before the store.
    fences: u32,
    earlier: Option<Rc<Issued>>,
}

impl Drop for Issued {
    /// Drops the list in a loop: the derived code would recurse as deeply as the list is long.
    fn drop(&mut self) {
        let mut next = self.earlier.take();
        while let Some(issued) = next {
            next = Rc::into_inner(issued).and_then(|mut last| last.earlier.take());
        }
    }
}

/// The stores that a thread has issued, so far as footprints need them.
#[derive(Clone, Debug, Default)]
struct Stores {
    newest: Option<Rc<Issued>>,
    /// Number of stores that the thread has put into its buffer.
    count: u32,
    /// Number of `sfence`s that the thread has executed.
    fences: u32,
}

impl Stores {
    /// The issued stores since the buffer was known to be empty, newest first.
    fn issued(&self) -> impl Iterator<Item = &Issued> {
        std::iter::successors(self.newest.as_deref(), |issued| issued.earlier.as_deref())
    }
}

/// A state of the reference semantics, with numbers for the stores in its buffers.
#[derive(Clone, Debug)]
pub(super) struct Configuration {
    pub(super) state: State,
    stores: Vec<Stores>,
}

impl Configuration {
    pub(super) fn new(state: State) -> Self {
        let stores = vec![Stores::default(); state.buffers.len()];
        Configuration { state, stores }
    }
}

/// The step of an agent in a configuration.
#[derive(Debug)]
pub(super) struct Step {
    /// The objects that its alternatives access or, if the step is disabled, the objects that determine whether it is enabled.
    pub(super) footprint: Rc<Footprint>,
    /// Each event that is enabled, with the configuration after it.
    pub(super) alternatives: Vec<(Event, Configuration)>,
    /// The objects that other agents write when they disable the step; empty if no other agent can disable it.
    pub(super) waits: Vec<Object>,
}

impl Step {
    pub(super) fn is_enabled(&self) -> bool {
        !self.alternatives.is_empty()
    }
}

/// Dependences that a test leaves out, to show that the test would detect such a defect.
#[cfg(test)]
#[derive(Clone, Copy)]
pub(super) struct Mutant {
    /// Whether this object, written or only read, is left out of the footprints of flushes or of threads.
    pub(super) omits: fn(is_flush: bool, object: Object, writes: bool) -> bool,
    /// Whether [`Step::waits`] is empty for all steps.
    pub(super) waits: bool,
}

/// A formula that must never hold, and the control locations, registers and cells that it mentions.
struct Watched {
    property: usize,
    at: Vec<(ThreadId, Vec<LocationId>)>,
    registers: Vec<(ThreadId, RegisterId)>,
    cells: Vec<u32>,
}

/// The steps of a program under a memory model.
pub(super) struct Steps<'p> {
    pub(super) reference: Reference<'p>,
    uses_lock: bool,
    watched: Vec<Watched>,
    #[cfg(test)]
    pub(super) mutant: Option<Mutant>,
}

impl<'p> Steps<'p> {
    pub(super) fn new(program: &'p Program, model: MemoryModel, properties: &[Property]) -> Self {
        let actions = || program.threads.iter().flat_map(|t| t.edges.iter().map(|e| &e.action));
        Steps {
            reference: Reference::new(program, model),
            uses_lock: actions().any(|action| *action == Action::Lock),
            watched: properties.iter().enumerate().filter_map(|(n, p)| watched(n, p)).collect(),
            #[cfg(test)]
            mutant: None,
        }
    }

    /// The agents that may have a step in this state: all threads, and the buffers that are not empty.
    pub(super) fn agents(&self, state: &State) -> Vec<Agent> {
        let mut agents: Vec<Agent> =
            self.reference.program.threads().map(|(t, _)| Agent::Thread(t)).collect();
        for (thread, _) in self.reference.program.threads() {
            let cells = buffered_cells(state, thread);
            match self.reference.model {
                MemoryModel::Sc => {}
                MemoryModel::Tso => agents.extend(cells.first().map(|_| Agent::Buffer(thread, None))),
                MemoryModel::Pso => {
                    let mut cells = cells;
                    cells.sort_unstable();
                    cells.dedup();
                    agents.extend(cells.into_iter().map(|cell| Agent::Buffer(thread, Some(cell))));
                }
            }
        }
        agents
    }

    /// The step of an agent in a configuration; an error if some alternative cannot be computed.
    pub(super) fn step(&self, from: &Configuration, agent: Agent) -> Result<Step, Incomplete> {
        match agent {
            Agent::Thread(thread) => self.thread_step(from, thread),
            Agent::Buffer(thread, cell) => self.buffer_step(from, thread, cell),
        }
    }

    fn buffer_step(
        &self,
        from: &Configuration,
        thread: ThreadId,
        lane: Option<u32>,
    ) -> Result<Step, Incomplete> {
        let buffered = buffered_cells(&from.state, thread);
        let in_lane = |cell: u32| lane.is_none_or(|lane| lane == cell);
        let length = buffered.iter().filter(|&&cell| in_lane(cell)).count();
        let stores = &from.stores[thread.index()];
        let oldest = length.checked_sub(1).and_then(|n| stores.issued().filter(|s| in_lane(s.cell)).nth(n));
        let Some(&Issued { cell, number, fences, .. }) = oldest else {
            // The next store of the thread may enable this step, so the footprint has that store.
            let footprint = Rc::new(Footprint::new(vec![(Object::Store(thread.0, stores.count), false)]));
            return Ok(Step { footprint, alternatives: Vec::new(), waits: Vec::new() });
        };
        let mut items = vec![(Object::Cell(cell), true), (Object::Store(thread.0, number), true)];
        if self.reference.model == MemoryModel::Pso {
            let before = stores.issued().filter(|s| s.fences < fences);
            items.extend(last_of_each_cell(before).map(|n| (Object::Store(thread.0, n), false)));
        }
        items.extend(self.uses_lock.then_some((Object::Lock, false)));
        let watched = self.watched.iter().filter(|w| w.cells.contains(&cell));
        items.extend(watched.map(|w| (Object::Formula(w.property), true)));
        let waits = if self.uses_lock { vec![Object::Lock] } else { Vec::new() };
        let event = Event { thread, kind: EventKind::Flush { cell } };
        #[cfg(test)]
        self.omit(&mut items, true);
        let alternatives =
            self.taken(from, event)?.map(|(event, next, _)| (event, next)).into_iter().collect();
        Ok(Step { footprint: Rc::new(Footprint::new(items)), alternatives, waits })
    }

    fn thread_step(&self, from: &Configuration, thread: ThreadId) -> Result<Step, Incomplete> {
        let program = self.reference.program;
        let code = program.thread(thread);
        let edges: Vec<_> = code.edges_from(from.state.locations[thread.index()]).collect();
        let mut items = Vec::new();
        let mut alternatives: Vec<(Event, Configuration)> = Vec::new();
        for &(id, edge) in &edges {
            if program.is_sampled(&edge.action) {
                return Err(Incomplete::UnboundedChoice);
            }
            self.static_items(from, thread, code, edge, &mut items);
            for chosen in choices(edge.action.ops()) {
                let event = Event { thread, kind: EventKind::Step { edge: id, chosen } };
                let Some((event, next, accesses)) = self.taken(from, event)? else { continue };
                if matches!(edge.action, Action::Lock | Action::Unlock) {
                    items.push((Object::Lock, true));
                }
                for access in &accesses {
                    self.touch(from, thread, access, &mut items);
                }
                // A step that faults before a `*` leads to the same state for each value of the `*`; one of these events is enough.
                let is_known = |(_, known): &(Event, Configuration)| known.state == next.state;
                if !alternatives.iter().any(is_known) {
                    alternatives.push((event, next));
                }
            }
        }
        #[cfg(test)]
        self.omit(&mut items, false);
        let waits = self.waits(from, thread, &edges);
        Ok(Step { footprint: Rc::new(Footprint::new(items)), alternatives, waits })
    }

    /// Adds the objects that an edge accesses whether it is enabled or not. They are determined by the registers and the buffer of the thread.
    fn static_items(
        &self,
        from: &Configuration,
        thread: ThreadId,
        code: &Thread,
        edge: &Edge,
        items: &mut Vec<(Object, bool)>,
    ) {
        let stores = &from.stores[thread.index()];
        if self.uses_lock && self.needs_lock(&edge.action) {
            items.push((Object::Lock, false));
        }
        if edge.action.drains() {
            items.extend(last_of_each_cell(stores.issued()).map(|n| (Object::Store(thread.0, n), false)));
        }
        for cell in self.awaited(from, thread, &edge.action) {
            items.push((Object::Cell(cell), false));
            if buffered_cells(&from.state, thread).contains(&cell) {
                let newest = stores.issued().find(|s| s.cell == cell);
                items.extend(newest.map(|s| (Object::Store(thread.0, s.number), false)));
            }
        }
        for watched in &self.watched {
            let moves = |(t, locations): &(ThreadId, Vec<LocationId>)| {
                let is_in = |location: LocationId| locations.contains(&location);
                *t == thread && (is_in(edge.from) != is_in(edge.to) || is_in(edge.from) != is_in(code.fault))
            };
            let changes = |r: RegisterId| watched.registers.contains(&(thread, r));
            if watched.at.iter().any(moves) || edge.action.ops().iter().filter_map(written).any(changes) {
                items.push((Object::Formula(watched.property), true));
            }
        }
    }

    /// Adds the objects that an access of a step reads or writes.
    fn touch(
        &self,
        from: &Configuration,
        thread: ThreadId,
        access: &Access,
        items: &mut Vec<(Object, bool)>,
    ) {
        let stores = &from.stores[thread.index()];
        match *access {
            Access::Read { cell, buffered: false, .. } => items.push((Object::Cell(cell), false)),
            Access::Read { cell, buffered: true, .. } => {
                let newest = stores.issued().find(|s| s.cell == cell).expect("it is in the buffer");
                items.push((Object::Store(thread.0, newest.number), false));
            }
            Access::Write { cell, buffered: false, .. } => {
                items.push((Object::Cell(cell), true));
                let watched = self.watched.iter().filter(|w| w.cells.contains(&cell));
                items.extend(watched.map(|w| (Object::Formula(w.property), true)));
            }
            Access::Write { buffered: true, .. } => items.push((Object::Store(thread.0, stores.count), true)),
            Access::Fault(_) => {}
        }
    }

    /// Takes an event, and returns its result and accesses; `None` if the event is disabled.
    fn taken(
        &self,
        from: &Configuration,
        event: Event,
    ) -> Result<Option<(Event, Configuration, Vec<Access>)>, Incomplete> {
        let (state, accesses) = match self.reference.step(&from.state, &event) {
            Ok(stepped) => stepped,
            Err(Refusal::Disabled(_)) => return Ok(None),
            Err(Refusal::Limit(..)) => return Err(Incomplete::Limit),
        };
        let mut stores = from.stores.clone();
        if let EventKind::Step { edge, .. } = &event.kind {
            let own = &mut stores[event.thread.index()];
            let action = &self.reference.program.thread(event.thread).edge(*edge).action;
            if action.drains() {
                own.newest = None;
            }
            own.fences += u32::from(*action == Action::StoreFence);
            for access in &accesses {
                let Access::Write { cell, buffered: true, .. } = *access else { continue };
                let (number, fences, earlier) = (own.count, own.fences, own.newest.take());
                own.newest = Some(Rc::new(Issued { cell, number, fences, earlier }));
                own.count += 1;
            }
        }
        Ok(Some((event, Configuration { state, stores }, accesses)))
    }

    /// Whether another thread that holds the lock disables the action.
    fn needs_lock(&self, action: &Action) -> bool {
        match action {
            Action::Lock | Action::Unlock | Action::Atomic { .. } | Action::Op(Op::Load(..)) => true,
            Action::Op(Op::Store(..)) => self.reference.model == MemoryModel::Sc,
            Action::Op(_) | Action::Fence | Action::StoreFence => false,
        }
    }

    /// The cells whose values decide whether an atomic step is enabled: the cells of all loads before its last operation that can disable the step.
    fn awaited(&self, from: &Configuration, thread: ThreadId, action: &Action) -> Vec<u32> {
        let Action::Atomic { ops, .. } = action else { return Vec::new() };
        let Some(last) = ops.iter().rposition(may_refuse) else { return Vec::new() };
        let registers = &from.state.registers[thread.index()];
        let mut changed = Vec::new();
        let mut cells = Vec::new();
        for op in &ops[..last] {
            if let Op::Load(_, address) = op {
                cells.extend(possible_cells(self.reference.program, address, registers, &changed));
            }
            changed.extend(written(op));
        }
        cells
    }

    /// The objects that other agents write when they disable all of these edges, which leave one location.
    fn waits(&self, from: &Configuration, thread: ThreadId, edges: &[(EdgeId, &Edge)]) -> Vec<Object> {
        let mut waits = Vec::new();
        if self.uses_lock && edges.iter().any(|(_, edge)| self.needs_lock(&edge.action)) {
            waits.push(Object::Lock);
        }
        let decided = matches!(edges, [(_, one), (_, other)] if are_outcomes(&one.action, &other.action));
        if !decided {
            let cells = edges.iter().flat_map(|(_, edge)| self.awaited(from, thread, &edge.action));
            waits.extend(cells.map(Object::Cell));
        }
        waits.sort_unstable();
        waits.dedup();
        #[cfg(test)]
        if self.mutant.is_some_and(|mutant| mutant.waits) {
            waits.clear();
        }
        waits
    }

    /// Removes the objects that the mutant omits.
    #[cfg(test)]
    fn omit(&self, items: &mut Vec<(Object, bool)>, is_flush: bool) {
        if let Some(mutant) = self.mutant {
            items.retain(|&(object, writes)| !(mutant.omits)(is_flush, object, writes));
        }
    }
}

/// The formula of a property and the observables that it mentions; `None` unless the property is a formula that must never hold. Disjuncts that depend
/// on the location and registers of one thread only are left out: their values are those in the states of that thread, which are the same in all
/// equivalent executions.
fn watched(property: usize, Property { kind, .. }: &Property) -> Option<Watched> {
    let PropertyKind::Never(formula) = kind else { return None };
    let (mut at, mut registers, mut cells) = (Vec::new(), Vec::new(), Vec::new());
    for disjunct in formula.disjuncts().iter().filter(|disjunct| disjunct.own.is_none()) {
        disjunct.formula.for_each_leaf(&mut |leaf| match leaf {
            Observable::At(thread, locations) => at.push((*thread, locations.clone())),
            Observable::Register(thread, register) => registers.push((*thread, *register)),
            Observable::Memory(cell) => cells.push(*cell),
        });
    }
    Some(Watched { property, at, registers, cells })
}

/// The cells of the stores in a thread's buffer, in the order of the buffer.
fn buffered_cells(state: &State, thread: ThreadId) -> Vec<u32> {
    let cell = |entry: &Buffered| match entry {
        Buffered::Store { cell, .. } => Some(*cell),
        Buffered::Barrier => None,
    };
    state.buffers[thread.index()].iter().filter_map(cell).collect()
}

/// For each cell, the number of the newest store to it. `stores` must be ordered from newest to oldest. Older stores to the same cell leave the
/// buffer earlier, so they need not be listed.
fn last_of_each_cell<'s>(stores: impl Iterator<Item = &'s Issued>) -> impl Iterator<Item = u32> {
    let mut seen = Vec::new();
    stores.filter_map(move |store| {
        let is_new = !seen.contains(&store.cell);
        seen.push(store.cell);
        is_new.then_some(store.number)
    })
}
