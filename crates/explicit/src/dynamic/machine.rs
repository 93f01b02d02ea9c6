//! The interpreter of the stateless search: computes the steps of one agent (a thread or a buffer) from a state, with their footprints.
//!
//! The rules are those of `fencewright_program::reference`. A step of a thread includes the local steps after it, as long as no property observes
//! them and they have one outcome; so most steps are accesses. If several edges leave a location, or a step chooses the value of a `*`, each edge and
//! each value is an *alternative* of one step. The alternatives are numbered in a fixed order, and the footprint of the step is the union of their
//! footprints.

use fencewright_program::reference::Limit;
use fencewright_program::{
    Action, Edge, EdgeId, Event, EventKind, LocationId, MemoryModel, Op, Program, RegisterId, Span, ThreadId,
};
use fencewright_verdict::Task;

use super::awaits::Origins;
use super::footprint::{Awaited, Footprint, Item, Key, Tables, add};
use super::state::{Buffered, NONE, State};

/// The data of a flush that determine which events happen before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flushed {
    /// The event that issued the store.
    pub issuer: u32,
    /// The last event that loaded the stored value from the buffer, or [`NONE`].
    pub reader: u32,
    /// The number of store fences that the thread issued before the store.
    pub fences: u32,
}

/// The outcome of a step.
pub struct Stepped {
    /// The number of alternatives of the step.
    pub total: u32,
    /// The footprint of all alternatives together.
    pub footprint: Footprint,
    /// The state after the requested alternative.
    pub next: State,
    /// Whether the requested alternative waits until the thread's buffer is empty.
    pub drains: bool,
    /// Whether the requested alternative releases the lock.
    pub unlocks: bool,
    /// The store that was flushed, if the agent is a buffer.
    pub flushed: Option<Flushed>,
}

/// The outcome of an operation. Any outcome but `Done` ends the step.
pub(super) enum Flow {
    Done,
    Disabled,
    Fault,
    Limit(Limit),
}

/// Collects the alternatives of one step: the footprint of all of them, and the outcome of the `wanted` one.
struct Gathered<'l> {
    /// The state before the step.
    before: &'l State,
    wanted: u32,
    total: u32,
    items: Vec<Item>,
    found: Option<(State, bool, bool)>,
    log: Option<&'l mut Vec<Event>>,
}

/// An interpreter of a program, for the stateless search.
pub struct Machine<'p> {
    pub(super) program: &'p Program,
    pub(super) model: MemoryModel,
    /// The value-independent parts of footprints.
    pub tables: Tables,
    samples: &'p [i64],
    /// For a transformed program, the original edges that each edge stands for.
    origins: Option<&'p Origins>,
    /// For each thread, the offset of its registers in the values of a state.
    pub(super) registers: Vec<usize>,
    /// The offset of the first memory cell in the values of a state.
    pub(super) memory: usize,
    /// Discarded states, whose allocations are reused: every step copies a state, and states differ in size only by their buffered stores.
    pub(super) spare: Vec<State>,
    /// The index of the event for which steps are computed.
    pub now: u32,
    /// Whether a `*` was tried with samples only.
    pub sampled: bool,
    /// The first [`Limit`] that an action reached, with its source position; `None` if none did.
    pub limit: Option<(Limit, Span)>,
}

impl<'p> Machine<'p> {
    /// The interpreter for a task. An unbounded `*` is tried with the samples. With `origins`, events are logged as events of the original program.
    pub fn new(task: &Task<'p>, samples: &'p [i64], origins: Option<&'p Origins>) -> Self {
        let program = task.program;
        let mut next = 1 + program.threads.len();
        let mut registers = Vec::new();
        for thread in &program.threads {
            registers.push(next);
            next += thread.registers.len();
        }
        Machine {
            program,
            model: task.model,
            tables: Tables::new(task),
            samples,
            origins,
            registers,
            memory: next,
            spare: Vec::new(),
            now: NONE,
            sampled: false,
            limit: None,
        }
    }

    /// The state with these registers and memory, after the initial local steps of every thread.
    pub fn initial(
        &mut self,
        registers: &[Vec<i64>],
        memory: &[i64],
        mut log: Option<&mut Vec<Event>>,
    ) -> State {
        let threads = self.program.threads.len();
        let mut values = vec![0];
        values.extend(self.program.threads.iter().map(|t| i64::from(t.entry.0)));
        values.extend(registers.iter().flatten().chain(memory));
        let issued = if self.model == MemoryModel::Sc { Vec::new() } else { vec![[0; 2]; threads] };
        let mut state = State { values, buffers: Vec::new(), issued };
        self.now = NONE;
        for thread in 0..threads {
            self.settle(&mut state, thread, log.as_deref_mut());
        }
        state
    }

    /// Takes the alternative with this number of the step of an agent; `None` if the agent has no enabled alternative with this number. The events of
    /// the step are appended to the log.
    pub fn step(
        &mut self,
        state: &State,
        agent: usize,
        alternative: u32,
        log: Option<&mut Vec<Event>>,
    ) -> Option<Stepped> {
        match self.tables.agents.buffer(agent) {
            Some((thread, cell)) => self.flush(state, thread, cell, log),
            None => self.advance(state, agent, alternative, log),
        }
    }

    /// The keys that the step of an agent waits for, whether or not the step is enabled.
    pub fn awaited(&self, state: &State, agent: usize) -> Vec<Key> {
        let mut keys = Vec::new();
        match self.tables.agents.buffer(agent) {
            Some((thread, cell)) => {
                let mine = |b: &Buffered| b.thread == thread && cell.is_none_or(|c| c == b.cell);
                if state.buffers.iter().any(mine) {
                    keys.extend(self.tables.lock);
                }
            }
            None => {
                let items = &mut Vec::new();
                self.waits(state, agent, items);
                keys.extend(items.iter().filter(|i| i.waits()).map(|i| i.key));
            }
        }
        keys
    }

    /// The location at which a thread is, or at which it has stopped.
    pub fn location(&self, state: &State, thread: usize) -> LocationId {
        LocationId(state.values[1 + thread] as u32)
    }

    /// The location from which a thread may move; `None` if it has stopped there at a limit.
    pub(super) fn moves_from(&self, state: &State, thread: usize) -> Option<LocationId> {
        (!state.is_stopped(thread)).then(|| self.location(state, thread))
    }

    /// The value of a register in a state.
    pub fn register(&self, state: &State, thread: usize, register: RegisterId) -> i64 {
        state.values[self.registers[thread] + register.index()]
    }

    /// The value of a memory cell in the memory of a state, not in a buffer.
    pub fn cell(&self, state: &State, cell: u32) -> i64 {
        state.values[self.memory + cell as usize]
    }

    /// Whether all buffers are empty.
    pub fn is_drained(&self, state: &State) -> bool {
        state.buffers.is_empty()
    }

    fn holder(&self, state: &State) -> usize {
        state.values[0] as usize
    }

    pub(super) fn may_access(&self, state: &State, thread: usize) -> bool {
        let holder = self.holder(state);
        holder == 0 || holder == thread + 1
    }

    fn is_empty(&self, state: &State, thread: usize) -> bool {
        !state.buffers.iter().any(|b| b.thread == thread as u32)
    }

    /// Adds the reads that every step from the current location of a thread has in its footprint.
    fn waits(&self, state: &State, thread: usize, items: &mut Vec<Item>) {
        let Some(location) = self.moves_from(state, thread) else { return };
        let place = &self.tables.places[thread][location.index()];
        if place.locks {
            items.extend(self.tables.lock.map(Item::wait));
        }
        if place.sees_emptiness {
            items.push(Item::read(self.tables.buffer(thread)));
        }
        match &place.awaited {
            Awaited::Nothing => {}
            Awaited::Class(class) => items.push(Item::wait(*class)),
            // If the index is out of range or cannot be computed, the step faults or reaches a limit, and waits for no cell.
            Awaited::Cell(address) => {
                if let Ok(cell) = self.address(state, thread, address) {
                    add(items, Item::wait(Key::from(cell)));
                }
            }
        }
    }

    /// Rule (WM): TSO flushes the oldest store of the buffer, PSO the oldest store to the cell, unless a store fence separates this store from an
    /// older buffered one. `None` if no flush is enabled.
    fn flush(
        &mut self,
        state: &State,
        thread: u32,
        cell: Option<u32>,
        log: Option<&mut Vec<Event>>,
    ) -> Option<Stepped> {
        if !self.may_access(state, thread as usize) {
            return None;
        }
        let mine = |b: &&Buffered| b.thread == thread;
        let oldest = state.buffers.iter().find(mine)?;
        let position =
            state.buffers.iter().position(|b| b.thread == thread && cell.is_none_or(|c| c == b.cell))?;
        let store = state.buffers[position];
        if store.issued[1] > oldest.issued[1] {
            return None;
        }
        let mut next = self.copy(state);
        next.buffers.remove(position);
        next.values[self.memory + store.cell as usize] = store.value;
        let mut items = Vec::new();
        self.tables.add_write(&mut items, store.cell);
        items.extend(self.tables.lock.map(Item::wait));
        items.push(Item::write(Tables::store(thread, store.issued[0])));
        if self.tables.sees_emptiness[thread as usize] {
            items.push(Item::flush(self.tables.buffer(thread as usize)));
        }
        items.extend(self.tables.seen_cells[store.cell as usize].iter().map(|key| Item::write(*key)));
        if let Some(log) = log {
            log.push(Event { thread: ThreadId(thread), kind: EventKind::Flush { cell: store.cell } });
        }
        let flushed = Flushed { issuer: store.event, reader: store.reader, fences: store.issued[1] };
        Some(Stepped {
            total: 1,
            footprint: items.into(),
            next,
            drains: false,
            unlocks: false,
            flushed: Some(flushed),
        })
    }

    /// Takes the requested alternative of the edges that leave a thread's location, and the local steps after it; `None` if there is no such enabled
    /// alternative.
    fn advance(
        &mut self,
        state: &State,
        thread: usize,
        alternative: u32,
        log: Option<&mut Vec<Event>>,
    ) -> Option<Stepped> {
        let program = self.program;
        let location = self.moves_from(state, thread)?;
        let code = &program.threads[thread];
        let mut gathered =
            Gathered { before: state, wanted: alternative, total: 0, items: Vec::new(), found: None, log };
        for (id, edge) in code.edges_from(location) {
            self.edge(state, thread, id, edge, &mut gathered);
        }
        let Gathered { total, mut items, found, log, .. } = gathered;
        let (mut next, drains, unlocks) = found?;
        let mut seen = Vec::new();
        self.waits(state, thread, &mut seen);
        seen.into_iter().for_each(|item| add(&mut items, item));
        self.settle(&mut next, thread, log);
        Some(Stepped { total, footprint: items.into(), next, drains, unlocks, flushed: None })
    }

    fn edge(&mut self, state: &State, thread: usize, id: EdgeId, edge: &Edge, gathered: &mut Gathered<'_>) {
        if edge.action.drains() && !self.is_empty(state, thread) {
            return;
        }
        let mut path = Vec::new();
        match &edge.action {
            Action::Op(op) => {
                let ops = std::slice::from_ref(op);
                let next = self.copy(state);
                self.ops(next, thread, (id, edge), ops, &mut Vec::new(), &mut path, gathered);
            }
            Action::Atomic { ops, .. } => {
                if self.may_access(state, thread) {
                    let next = self.copy(state);
                    self.ops(next, thread, (id, edge), ops, &mut Vec::new(), &mut path, gathered);
                }
            }
            Action::Fence => {
                let next = self.copy(state);
                self.alternative(next, thread, (id, edge), &[], &path, Flow::Done, gathered);
            }
            Action::StoreFence => {
                let mut next = self.copy(state);
                if let Some(issued) = next.issued.get_mut(thread) {
                    issued[1] += 1;
                }
                self.alternative(next, thread, (id, edge), &[], &path, Flow::Done, gathered);
            }
            Action::Lock | Action::Unlock => {
                let locks = edge.action == Action::Lock;
                if self.holder(state) == if locks { 0 } else { thread + 1 } {
                    let mut next = self.copy(state);
                    next.values[0] = if locks { thread as i64 + 1 } else { 0 };
                    path.extend(self.tables.lock.map(Item::write));
                    self.alternative(next, thread, (id, edge), &[], &path, Flow::Done, gathered);
                }
            }
        }
    }

    /// Performs the operations of one step, for all values of their `*`s.
    #[allow(clippy::too_many_arguments)]
    fn ops(
        &mut self,
        mut state: State,
        thread: usize,
        (id, edge): (EdgeId, &Edge),
        ops: &[Op],
        chosen: &mut Vec<i64>,
        path: &mut Vec<Item>,
        gathered: &mut Gathered<'_>,
    ) {
        let program = self.program;
        let direct = matches!(edge.action, Action::Atomic { drains: true, .. });
        for (n, op) in ops.iter().enumerate() {
            let Op::Havoc(register, range) = op else {
                let flow = self.perform(&mut state, thread, op, direct, path);
                match flow {
                    Flow::Done => continue,
                    Flow::Disabled => return self.recycle(state),
                    Flow::Fault | Flow::Limit(_) => {
                        return self.alternative(state, thread, (id, edge), chosen, path, flow, gathered);
                    }
                }
            };
            let sampled = program.is_sampled(&edge.action);
            self.sampled |= sampled;
            let bounds = program.chosen(*range).range();
            let values: Box<dyn Iterator<Item = i64>> = if sampled {
                Box::new(self.samples.iter().copied().filter(move |&v| bounds.contains(v)))
            } else {
                Box::new(bounds.low..=bounds.high)
            };
            let writable = program.writable(program.threads[thread].registers[register.index()].range);
            let (known, mut skipped) = (path.len(), false);
            for value in values {
                path.truncate(known);
                chosen.push(value);
                if !writable.contains(value) {
                    self.alternative(state.clone(), thread, (id, edge), chosen, path, Flow::Fault, gathered);
                } else if n + 1 < ops.len() || gathered.total == gathered.wanted {
                    let mut next = state.clone();
                    next.values[self.registers[thread] + register.index()] = value;
                    self.ops(next, thread, (id, edge), &ops[n + 1..], chosen, path, gathered);
                } else {
                    // The footprint is the same for every value of a `*`, so an alternative that was not requested is only counted.
                    gathered.total += 1;
                    skipped = true;
                }
                chosen.pop();
            }
            if skipped {
                path.truncate(known);
                self.gather(thread, id, path, gathered);
            }
            return;
        }
        self.alternative(state, thread, (id, edge), chosen, path, Flow::Done, gathered);
    }

    /// Records an enabled alternative: its footprint and, if it was requested, its outcome. At a limit the thread stops before the step: nothing has
    /// changed and no event is logged. So all states are those of executions in which no step reaches a limit.
    #[allow(clippy::too_many_arguments)]
    fn alternative(
        &mut self,
        mut next: State,
        thread: usize,
        (id, edge): (EdgeId, &Edge),
        chosen: &[i64],
        path: &[Item],
        flow: Flow,
        gathered: &mut Gathered<'_>,
    ) {
        self.gather(thread, id, path, gathered);
        if gathered.total == gathered.wanted {
            let faulted = matches!(flow, Flow::Fault);
            if let Flow::Limit(limit) = flow {
                self.limit.get_or_insert((limit, edge.span));
                next.stop(gathered.before, thread);
            } else {
                self.arrive(&mut next, thread, edge, faulted);
            }
            let unlocks = edge.action == Action::Unlock;
            gathered.found = Some((next, edge.action.drains(), unlocks));
            if let (Some(log), false) = (&mut gathered.log, matches!(flow, Flow::Limit(_))) {
                self.log(log, thread, id, chosen, faulted);
            }
        }
        gathered.total += 1;
    }

    /// Adds the footprint of an enabled alternative.
    fn gather(&self, thread: usize, id: EdgeId, path: &[Item], gathered: &mut Gathered<'_>) {
        let seen = self.tables.seen[thread][id.index()].iter().map(|key| Item::write(*key));
        path.iter().copied().chain(seen).for_each(|item| add(&mut gathered.items, item));
    }

    /// Moves a thread along an edge, or to its fault location.
    pub(super) fn arrive(&self, state: &mut State, thread: usize, edge: &Edge, faulted: bool) {
        let to = if faulted { self.program.threads[thread].fault } else { edge.to };
        state.values[1 + thread] = i64::from(to.0);
    }

    /// Logs the step along an edge. If the edge stands for several original edges, only the first of them can fault.
    pub(super) fn log(
        &self,
        log: &mut Vec<Event>,
        thread: usize,
        edge: EdgeId,
        chosen: &[i64],
        faulted: bool,
    ) {
        let edges = self.origins.map_or(std::slice::from_ref(&edge), |of| &of[thread][edge.index()]);
        let edges = if faulted { &edges[..1] } else { edges };
        let step = |edge: &EdgeId| EventKind::Step { edge: *edge, chosen: chosen.to_vec() };
        log.extend(edges.iter().map(|edge| Event { thread: ThreadId(thread as u32), kind: step(edge) }));
    }
}
