//! Counts the maximal traces of a small program by brute force: it extends all executions of the reference semantics step by step, and keeps one
//! execution for each trace.
//!
//! The trace of an execution is `Tr` = po, fo and cf (THESIS16 s. 4.2): program order of each thread, each store before its flush, and the order of
//! conflicting accesses. It is represented by the sequence of events of each *agent* (the program of a thread, or its buffer, under PSO its buffer
//! for a cell). Each event has, for every agent, the number of events of that agent that happen before it. To check the dynamic reduction, this
//! module defines independently which pairs of events are dependent; the module comment of that reduction explains why:
//! * two events of one agent;
//! * two accesses to a memory cell, at least one of which is a write; a load from the buffer and the flush of the store that it reads; a store and
//!   its flush;
//! * `lock` or `unlock`, and an access of another thread;
//! * a flush and a later step of the same thread that waits for an empty buffer; two flushes of stores that an `sfence` orders.
//!
//! Each step from a location also counts as an access to everything that decides which steps are enabled there:
//! * the lock, the cells and the empty buffer that some step from the location waits for; the empty buffer only if some other step does not wait for
//!   it. If steps from a location wait for several cells, writes to any of these cells are dependent;
//! * the accesses of all steps that are enabled at the location.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use fencewright_program::reference::{Access, Refusal};
use fencewright_program::{
    Action, Address, Event, EventKind, LocationId, MemoryModel, Op, Program, Reference, State, ThreadId,
};

use fencewright_executions::oracle::initial_states;

/// The number of maximal traces of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traces {
    /// Traces after which every thread has ended or faulted.
    pub complete: u64,
    /// Traces after which some thread waits forever.
    pub blocked: u64,
}

/// The number of maximal traces; `None` if computing it needs more than `limit` steps from distinct traces, or if some step cannot be computed.
pub fn count(program: &Program, model: MemoryModel, limit: usize) -> Option<Traces> {
    let reference = Reference::new(program, model);
    let places = Places::new(program, model);
    let mut found = Traces::default();
    let mut looked_at = 0;
    for initial in initial_states(&reference, limit, &mut || false).ok()? {
        let mut level = vec![Execution::new(program, initial)];
        while !level.is_empty() {
            let mut next: HashMap<Trace, Execution> = HashMap::new();
            for execution in level {
                let steps = execution.steps(&reference)?;
                if steps.is_empty() {
                    let unfinished = |(t, code): (ThreadId, &fencewright_program::Thread)| {
                        let at = execution.state.locations[t.index()];
                        at != code.fault && !code.is_end(at)
                    };
                    match program.threads().any(unfinished) {
                        true => found.blocked += 1,
                        false => found.complete += 1,
                    }
                }
                for (event, after, _) in &steps {
                    looked_at += 1;
                    if looked_at > limit {
                        return None;
                    }
                    let done = places.done(program, &execution, &steps, event);
                    let longer = execution.with(event.clone(), done, after.clone());
                    let known = next.entry(longer.trace.clone()).or_insert_with(|| longer.clone());
                    // THESIS16, Lemma 18: executions with the same trace end in the same state.
                    assert_eq!(known.state, longer.state, "a trace determines its last state");
                }
            }
            level = next.into_values().collect();
        }
    }
    Some(found)
}

/// Facts about the locations of each thread.
struct Places {
    model: MemoryModel,
    /// The facts about each location, by thread.
    of: Vec<Vec<Place>>,
    /// The classes of cells, as a map from each cell to the first cell of its class. Two cells are in one class if steps from the same location wait
    /// for both cells, or if a chain of such pairs connects them.
    classes: BTreeMap<u32, u32>,
    uses_lock: bool,
}

#[derive(Clone, Default)]
struct Place {
    /// Whether some step from the location is disabled while another thread holds the lock.
    locks: bool,
    /// Whether some steps but not all wait for an empty buffer.
    sees_emptiness: bool,
    /// The addresses of the loads whose values decide whether steps from the location are enabled.
    awaited: Vec<Address>,
    /// Whether the addresses in `awaited` can be computed before the step, because the step does not write the registers in these addresses.
    fixed: bool,
}

impl Place {
    /// Whether all steps wait for the same address, which can be computed before the step, or for no cell.
    fn is_single(&self) -> bool {
        self.fixed && self.awaited.windows(2).all(|pair| pair[0] == pair[1])
    }
}

impl Places {
    fn new(program: &Program, model: MemoryModel) -> Self {
        let mut places = Places { model, of: Vec::new(), classes: BTreeMap::new(), uses_lock: false };
        let mut together: Vec<BTreeSet<u32>> = Vec::new();
        for thread in &program.threads {
            let mut of = Vec::new();
            for location in 0..thread.locations.len() {
                let actions: Vec<&Action> =
                    thread.edges_from(LocationId(location as u32)).map(|(_, e)| &e.action).collect();
                places.uses_lock |= actions.contains(&&Action::Lock);
                let drains = actions.iter().filter(|a| a.drains()).count();
                let mut place = Place { fixed: true, ..Place::default() };
                place.sees_emptiness = model != MemoryModel::Sc && 0 < drains && drains < actions.len();
                place.locks = actions.iter().any(|action| match action {
                    Action::Lock | Action::Unlock | Action::Atomic { .. } => true,
                    Action::Op(Op::Load(..)) => true,
                    Action::Op(Op::Store(..)) => model == MemoryModel::Sc,
                    Action::Op(_) | Action::Fence | Action::StoreFence => false,
                });
                for action in actions.iter().filter(|a| matches!(a, Action::Atomic { .. })) {
                    let ops = action.ops();
                    let last = ops.iter().rposition(|op| matches!(op, Op::Assume(_))).unwrap_or(0);
                    let mut written = Vec::new();
                    for op in &ops[..last] {
                        if let Op::Load(_, address) = op {
                            let index = address.index.iter();
                            index.for_each(|i| i.for_each_leaf(&mut |r| place.fixed &= !written.contains(r)));
                            place.awaited.push(address.clone());
                        }
                        if let Op::Assign(r, _) | Op::Havoc(r, _) | Op::Load(r, _) = op {
                            written.push(*r);
                        }
                    }
                }
                if !place.is_single() {
                    together.push(place.awaited.iter().flat_map(|a| cells(program, a)).collect());
                }
                of.push(place);
            }
            places.of.push(of);
        }
        // Sets with a cell in common become one set.
        while let Some((a, b)) = (0..together.len())
            .flat_map(|a| (0..a).map(move |b| (a, b)))
            .find(|&(a, b)| !together[a].is_disjoint(&together[b]))
        {
            let merged = together.swap_remove(a);
            together[b].extend(merged);
        }
        for class in together {
            let first = class.first().copied();
            places.classes.extend(class.into_iter().filter_map(|cell| Some((cell, first?))));
        }
        places
    }

    fn written(&self, cell: u32) -> impl Iterator<Item = Object> {
        let class = self.classes.get(&cell).map(|first| Object::Class(*first));
        [Object::Cell(cell)].into_iter().chain(class)
    }

    /// The accesses of an event. `steps` are the steps that are enabled after the execution, one of which is the event.
    fn done(&self, program: &Program, execution: &Execution, steps: &[Step], event: &Event) -> Done {
        let thread = event.thread;
        let t = thread.index();
        let buffer = &execution.buffers[t];
        let mut done = Done::default();
        let EventKind::Step { edge, .. } = &event.kind else {
            let EventKind::Flush { cell } = event.kind else { unreachable!() };
            let (_, number, fences) = *buffer.iter().find(|s| s.0 == cell).expect("it is in the buffer");
            done.agent = (thread.0, Some((self.model == MemoryModel::Pso).then_some(cell)));
            done.reads.extend(self.uses_lock.then_some(Object::Lock));
            done.writes.extend(self.written(cell).chain([Object::Store(thread.0, number)]));
            done.flushes = Some((number, fences));
            return done;
        };
        done.agent = (thread.0, None);
        let action = &program.thread(thread).edge(*edge).action;
        done.drains = action.drains();
        done.fences = *action == Action::StoreFence;
        let location = execution.state.locations[t];
        let place = &self.of[t][location.index()];
        done.sees_emptiness = place.sees_emptiness;
        done.reads.extend((self.uses_lock && place.locks).then_some(Object::Lock));
        for address in &place.awaited {
            let cells: Vec<u32> = cells(program, address).collect();
            if !place.is_single() {
                done.reads.insert(Object::Class(self.classes[&cells[0]]));
            } else if let Some(cell) = single(program, &execution.state, thread, address) {
                done.reads.insert(Object::Cell(cell));
            }
        }
        for (other, _, accesses) in steps.iter().filter(|(other, ..)| other.thread == thread) {
            let EventKind::Step { edge, .. } = &other.kind else { continue };
            let is_lock = matches!(program.thread(thread).edge(*edge).action, Action::Lock | Action::Unlock);
            done.writes.extend((self.uses_lock && is_lock).then_some(Object::Lock));
            for access in accesses {
                match *access {
                    Access::Read { cell, buffered: false, .. } => _ = done.reads.insert(Object::Cell(cell)),
                    Access::Read { cell, buffered: true, .. } => {
                        let newest = buffer.iter().rev().find(|s| s.0 == cell).expect("it is in the buffer");
                        done.reads.insert(Object::Store(thread.0, newest.1));
                    }
                    Access::Write { cell, buffered: false, .. } => done.writes.extend(self.written(cell)),
                    Access::Write { cell, buffered: true, .. } if other == event => {
                        done.issues = Some((cell, execution.issued[t].0));
                    }
                    Access::Write { .. } | Access::Fault(_) => {}
                }
            }
        }
        done
    }
}

/// The cells that an address may denote.
fn cells(program: &Program, address: &Address) -> std::ops::Range<u32> {
    let variable = &program.variables[address.variable.index()];
    match (variable.indices, address.index.as_ref().map(|i| i.constant())) {
        (Some(range), Some(Some(i))) if range.contains(i) => {
            let cell = variable.base + (i - range.low) as u32;
            cell..cell + 1
        }
        _ => variable.cells().start as u32..variable.cells().end as u32,
    }
}

/// The cell that an address denotes, if there is one.
fn single(program: &Program, state: &State, thread: ThreadId, address: &Address) -> Option<u32> {
    let variable = &program.variables[address.variable.index()];
    let (Some(index), Some(range)) = (&address.index, variable.indices) else { return Some(variable.base) };
    let index = index.eval(&mut |r| state.registers[thread.index()][r.index()]).ok()?;
    range.contains(index).then(|| variable.base + (index - range.low) as u32)
}

/// The agent of an event: the thread, and `None` for a step of its program or `Some` for a flush of its buffer, under PSO with the cell.
type Agent = (u32, Option<Option<u32>>);

/// An object that events read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Object {
    Cell(u32),
    Lock,
    /// A class of cells, named by its first cell: see [`Places::classes`].
    Class(u32),
    /// A buffered store: the thread, and the number of the store among those of the thread.
    Store(u32, u32),
}

/// The accesses of an event.
#[derive(Clone, Debug, Default)]
struct Done {
    agent: Agent,
    reads: BTreeSet<Object>,
    writes: BTreeSet<Object>,
    /// For a flush, the number of the store in its thread, and the number of store fences before it.
    flushes: Option<(u32, u32)>,
    /// The cell and the number of the store that the event buffers.
    issues: Option<(u32, u32)>,
    /// Whether the event is an `sfence`.
    fences: bool,
    /// Whether the event waits for an empty buffer.
    drains: bool,
    /// For a step: whether some steps from its location wait for an empty buffer and others do not, so that the buffer decides which of them are
    /// enabled.
    sees_emptiness: bool,
    /// For each agent, the number of its events that happen before this one, including this one itself.
    before: BTreeMap<Agent, u32>,
}

impl Done {
    fn is_dependent(&self, later: &Done) -> bool {
        let same_thread = self.agent.0 == later.agent.0;
        let (flush, later_flush) = (self.flushes.is_some(), later.flushes.is_some());
        self.agent == later.agent
            || self.writes.iter().any(|object| later.reads.contains(object) || later.writes.contains(object))
            || self.reads.iter().any(|object| later.writes.contains(object))
            || (same_thread && flush && (later.drains || later.sees_emptiness))
            || (same_thread && later_flush && self.sees_emptiness)
            || (same_thread
                && self.issues.is_some()
                && later.flushes.map(|f| f.0) == self.issues.map(|i| i.1))
            || (same_thread && flush && later_flush && self.flushes.map(|f| f.1) < later.flushes.map(|f| f.1))
    }
}

/// For each agent, its events, each with the number of events of every agent that happen before it.
type Trace = BTreeMap<Agent, Vec<(Event, BTreeMap<Agent, u32>)>>;

#[derive(Clone)]
struct Execution {
    state: State,
    done: Vec<Done>,
    trace: Trace,
    /// For each thread, the numbers of stores and of store fences it has issued.
    issued: Vec<(u32, u32)>,
    /// The buffered stores of each thread: cell, number, store fences before it.
    buffers: Vec<Vec<(u32, u32, u32)>>,
}

/// A step: the event, the state after it, and its accesses.
type Step = (Event, State, Vec<Access>);

impl Execution {
    fn new(program: &Program, state: State) -> Self {
        let threads = program.threads.len();
        Execution {
            state,
            done: Vec::new(),
            trace: Trace::new(),
            issued: vec![(0, 0); threads],
            buffers: vec![Vec::new(); threads],
        }
    }

    /// The enabled steps; `None` if one of them cannot be computed.
    fn steps(&self, reference: &Reference<'_>) -> Option<Vec<Step>> {
        let mut steps: Vec<Step> = Vec::new();
        for mut event in reference.candidates(&self.state, &[]) {
            match reference.step(&self.state, &event) {
                Ok((after, accesses)) => {
                    // If a step faults before some of its choices, it is the same step for all values of these choices, so they are removed from the
                    // event.
                    while let EventKind::Step { chosen, .. } = &mut event.kind
                        && let Some(last) = chosen.pop()
                    {
                        if reference.step(&self.state, &event).is_err() {
                            let EventKind::Step { chosen, .. } = &mut event.kind else { unreachable!() };
                            chosen.push(last);
                            break;
                        }
                    }
                    if !steps.iter().any(|(known, ..)| *known == event) {
                        steps.push((event, after, accesses));
                    }
                }
                Err(Refusal::Disabled(_)) => {}
                Err(Refusal::Limit(..)) => return None,
            }
        }
        Some(steps)
    }

    /// Appends an event to the execution.
    fn with(&self, event: Event, mut done: Done, state: State) -> Self {
        let mut longer = Execution { state, ..self.clone() };
        let mut before: BTreeMap<Agent, u32> = BTreeMap::new();
        for earlier in self.done.iter().filter(|earlier| earlier.is_dependent(&done)) {
            for (agent, count) in &earlier.before {
                let known = before.entry(*agent).or_default();
                *known = (*known).max(*count);
            }
        }
        done.before = before;
        let events = longer.trace.entry(done.agent).or_default();
        done.before.insert(done.agent, events.len() as u32 + 1);
        events.push((event, done.before.clone()));
        let t = done.agent.0 as usize;
        if let Some((number, _)) = done.flushes {
            longer.buffers[t].retain(|store| store.1 != number);
        }
        longer.issued[t].1 += u32::from(done.fences);
        if let Some((cell, number)) = done.issues {
            longer.buffers[t].push((cell, number, self.issued[t].1));
            longer.issued[t].0 += 1;
        }
        longer.done.push(done);
        longer
    }
}
