//! Programs whose SC executions represent TSO executions of other programs (THESIS16 s.3.1): the transformations behind lazy TSO reachability.
//!
//! [`Extended`] is a program together with its relation to the program it was made from. Its threads have more locations, edges and registers than
//! the original ones, and each location is a copy of an original location: a thread in a copy is at the original location, with some of its stores
//! *delayed*: their addresses and values are in auxiliary registers, which represent the newest end of the store buffer. The transformations are
//!
//! * [`Extended::new`]: makes faults explicit as control, so that no edge along which stores are delayed can fault;
//! * [`Extended::extend`]: stores are delayed along some paths of a thread, `R + path` in the thesis (`paths`);
//! * [`Extended::unrolled`]: cuts off loops after a number of iterations (Theorem 9);
//! * [`Extended::released`]: lets a thread that may hold the lock release it anywhere and then stop;
//! * [`Extended::reordered`]: issues stores in every order in which they may leave the buffer under PSO (`reorder`). This one relates TSO and PSO,
//!   all others relate SC and TSO.
//!
//! Proofs rely on these invariants of a transformation that extends `R` to `R'`:
//!
//! 1. (sound) every TSO execution of `R'` represents one of `R`: the buffer of a thread in `R` is its buffer in `R'` followed by the delayed stores,
//!    and each step of `R'` represents a step of `R` from that state, or no step at all;
//! 2. (complete, if the first store of each path is removed) every TSO execution of `R` is represented by one of `R'` in the same sense.
//!
//! So a state of `R'` that is reachable under SC shows that a state of `R` is reachable under TSO: with the same registers and memory, and the same
//! locations up to copies ([`Extended::trace`]). And if SC and TSO reach the same states of `R'`, then the states of `R'` under SC are those of `R`
//! under TSO. (Invariants 1 and 2 are Lemma 6 of the thesis. Unrolling cuts executions off, so 2 does not hold for it; releasing adds executions, so
//! 1 does not hold for it.)

mod conclude;
mod delay;
mod faults;
mod paths;
mod reorder;
mod unroll;

use std::collections::BTreeMap;

use fencewright_kit::choices::faulting_choices;
use fencewright_kit::formulas::{relocate, relocate_kind};
use fencewright_kit::{Built, ThreadBuilder};
use fencewright_program::reference::{Access, Refusal};
use fencewright_program::{
    Action, EdgeId, Event, EventKind, Formula, LocationId, MemoryModel, Program, Property, Reference,
    RegisterId, Thread, ThreadId, Trace,
};

pub use conclude::Conclusion;
pub use paths::{AttackingStore, Refused};

/// A program and its relation to the program it was made from.
#[derive(Clone, Debug)]
pub struct Extended {
    /// The extended program.
    pub program: Program,
    threads: Vec<Mapping>,
    /// The properties of the original program.
    properties: Vec<Property>,
    /// The predicates of the original program.
    predicates: Vec<Formula>,
}

/// The relation of a thread to the original one.
#[derive(Clone, Debug)]
struct Mapping {
    /// The number of registers of the original thread, which come first.
    registers: usize,
    /// For each location of the thread, the original location of which it is a copy.
    locations: Vec<LocationId>,
    /// For each edge of the thread, its relation to the original thread.
    edges: Vec<Origin>,
}

/// The relation of an edge to the original thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Origin {
    /// The edge that the original thread takes; `None` if it does not move.
    step: Option<EdgeId>,
    /// Whether the edge itself may fault; edges from which faults were split off cannot.
    faults: bool,
}

/// A thread under construction, with the original location for each of its locations.
type Builder = ThreadBuilder<Origin, LocationId>;

impl Origin {
    /// The original thread does not move, and there is no fault.
    const SILENT: Origin = Origin { step: None, faults: false };
}

impl Extended {
    /// The program with explicit faults: see `faults`. Refused if that would make it too large.
    pub fn new(program: &Program) -> Result<Self, Refused> {
        let mut same = Extended::unchanged(program);
        for (id, _) in program.threads() {
            same.make_faults_explicit(id)?;
        }
        same.adapt_formulas();
        Ok(same)
    }

    /// The program itself, as an extension of itself.
    fn unchanged(program: &Program) -> Self {
        let mut same = Extended {
            program: program.clone(),
            threads: Vec::new(),
            properties: program.properties.clone(),
            predicates: program.hints.predicates.clone(),
        };
        for (_, thread) in program.threads() {
            same.threads.push(Mapping {
                registers: thread.registers.len(),
                locations: (0..thread.locations.len() as u32).map(LocationId).collect(),
                edges: (0..thread.edges.len() as u32)
                    .map(|e| Origin {
                        step: Some(EdgeId(e)),
                        faults: program.edge_may_fault(thread, &thread.edges[e as usize]),
                    })
                    .collect(),
            });
        }
        same
    }

    fn make_faults_explicit(&mut self, id: ThreadId) -> Result<(), Refused> {
        let thread = self.program.thread(id);
        if thread.edges.iter().any(|edge| self.program.edge_may_fault(thread, edge)) {
            let explicit = faults::made_explicit(self.builder(id), thread.fault, &self.program)?;
            self.replace(id, explicit);
        }
        Ok(())
    }

    /// A builder initialised with a thread.
    fn builder(&self, id: ThreadId) -> Builder {
        let mapping = &self.threads[id.index()];
        let thread = self.program.thread(id);
        let origin = |edge: EdgeId| mapping.edges[edge.index()];
        let original = |location: LocationId| mapping.locations[location.index()];
        ThreadBuilder::copying(thread, origin, original)
    }

    /// Replaces a thread by its changed version.
    fn replace(&mut self, id: ThreadId, changed: Builder) {
        let Thread { entry, fault, .. } = *self.program.thread(id);
        let Built { thread, origins, stand_for, .. } = changed.finish(entry, fault);
        self.program.threads[id.index()] = thread;
        let registers = self.threads[id.index()].registers;
        self.threads[id.index()] = Mapping { registers, locations: stand_for, edges: origins };
    }

    /// Translates the formulas of the original program: locations become sets of copies.
    fn adapt_formulas(&mut self) {
        self.program.properties = self.properties.clone();
        self.program.hints.predicates = self.predicates.clone();
        relocate(&mut self.program, &copies(&self.threads));
        self.program.hints.spared.clear();
        self.program.hints.costs.clear();
    }

    /// Translates a property of the original program.
    pub fn property(&self, property: &Property) -> Property {
        let mut adapted = property.clone();
        relocate_kind(&mut adapted.kind, &copies(&self.threads));
        adapted
    }

    /// The original location of which a location is a copy.
    pub fn original_location(&self, thread: ThreadId, location: LocationId) -> LocationId {
        self.threads[thread.index()].locations[location.index()]
    }

    /// The edge that the original thread takes when this edge is taken; `None` if the original thread does not move.
    pub fn original_edge(&self, thread: ThreadId, edge: EdgeId) -> Option<EdgeId> {
        self.threads[thread.index()].edges[edge.index()].step
    }

    /// Translates an execution of this program under SC to an execution of the original program under TSO: where this program writes memory, the
    /// store of the original program leaves the buffer. `None` if the trace is not such an execution.
    pub fn trace(&self, original: &Program, trace: &Trace) -> Option<Trace> {
        let reference = Reference::new(&self.program, MemoryModel::Sc);
        let mut state = reference.initial(trace.registers.clone(), trace.memory.clone())?;
        let mut events = Vec::new();
        for event in &trace.events {
            let (next, accesses): (_, Vec<Access>) = match reference.step(&state, event) {
                Ok(stepped) => stepped,
                Err(Refusal::Disabled(_) | Refusal::Limit(..)) => return None,
            };
            state = next;
            let EventKind::Step { edge, chosen } = &event.kind else { return None };
            let thread = event.thread;
            let step = self.original_edge(thread, *edge);
            if let Some(edge) = step {
                let chosen = faulting_choices(original, thread, edge, chosen.clone());
                events.push(Event { thread, kind: EventKind::Step { edge, chosen } });
            }
            let action = step.map(|edge| &original.thread(thread).edge(edge).action);
            if matches!(action, Some(Action::Atomic { .. })) {
                // In the original program the stores of this atomic step go to memory directly, too, so the trace needs no flush.
                continue;
            }
            events.extend(accesses.iter().filter_map(|access| match access {
                Access::Write { cell, .. } => Some(Event { thread, kind: EventKind::Flush { cell: *cell } }),
                Access::Read { .. } | Access::Fault(_) => None,
            }));
        }
        let registers = trace.registers.iter().zip(&self.threads);
        let registers = registers.map(|(values, mapping)| values[..mapping.registers].to_vec()).collect();
        Some(Trace { registers, memory: trace.memory.clone(), events })
    }

    /// The size of the program: its number of edges.
    pub fn size(&self) -> usize {
        self.program.threads.iter().map(|t| t.edges.len()).sum()
    }
}

/// A function that maps a thread and some of its original locations to the copies of these locations. It uses a map for each thread, because
/// properties may name very many locations.
fn copies(threads: &[Mapping]) -> impl Fn(ThreadId, &[LocationId]) -> Vec<LocationId> {
    let mut copies = vec![BTreeMap::<LocationId, Vec<LocationId>>::new(); threads.len()];
    for (copies, mapping) in copies.iter_mut().zip(threads) {
        let all = mapping.locations.iter().zip((0..).map(LocationId));
        all.for_each(|(original, copy)| copies.entry(*original).or_default().push(copy));
    }
    move |thread, originals| {
        let known = originals.iter().filter_map(|original| copies[thread.index()].get(original));
        known.flatten().copied().collect()
    }
}

/// Adds an auxiliary register, with a name that cannot occur in a source text.
fn auxiliary(builder: &mut Builder, name: &str) -> RegisterId {
    let name = format!("%{name}{}", builder.registers.len());
    builder.register(name, None)
}
