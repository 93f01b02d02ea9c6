//! Programs that behave under SC as others do under TSO (THESIS16 s.3.1): the transformations behind lazy TSO reachability.
//!
//! [`Extended`] is a program together with the program it was made from. Its threads have more locations, edges and registers
//! than the original ones, and each location stands for one of the original program: a thread in a copy of a location is where
//! the original thread is, with some of its stores *delayed*: their addresses and values are in auxiliary registers, which play the
//! part of the newest end of the store buffer. The transformations are
//!
//! * [`Extended::new`]: the same program with faults as control, so that no edge along which stores are delayed can fault;
//! * [`Extended::extend`]: stores are delayed along some paths of a thread, `R + path` in the thesis (`paths`);
//! * [`Extended::unrolled`]: loops are cut off after so many rounds (Theorem 9);
//! * [`Extended::released`]: the lock may be given back anywhere, by a thread that then stands still (see there);
//! * [`Extended::reordered`]: stores are issued in every order in which they may leave under PSO (`reorder`). This one is about TSO and PSO, all
//!   others are about SC and TSO.
//!
//! What they have in common, and what proofs rely on: with `R` extended to `R'`,
//!
//! 1. (sound) every TSO execution of `R'` is one of `R`: the buffer of a thread in `R` is its buffer in `R'` followed by the delayed
//!    stores, and each step of `R'` is a step of `R` on that, or none at all;
//! 2. (complete, if the store is removed) every TSO execution of `R` is one of `R'` in the same sense.
//!
//! So a state of `R'` that is reachable under SC shows a state of `R` that is reachable under TSO: the same registers, the same
//! memory, the same locations up to copies ([`Extended::trace`]). And if SC and TSO reach the same states of `R'`, then the states
//! of `R'` under SC are those of `R` under TSO. (1 and 2 are Lemma 6. Unrolling cuts executions off, so 2 does not hold for it; releasing adds
//! executions, so 1 does not hold for it.)

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

/// A program, and how it is related to the program it was made from.
#[derive(Clone, Debug)]
pub struct Extended {
    /// The program.
    pub program: Program,
    threads: Vec<Mapping>,
    /// The properties of the original program.
    properties: Vec<Property>,
    /// Its predicates.
    predicates: Vec<Formula>,
}

/// How a thread is related to the original one.
#[derive(Clone, Debug)]
struct Mapping {
    /// How many registers the original thread has: those come first.
    registers: usize,
    /// The original location that each location stands for.
    locations: Vec<LocationId>,
    /// What each edge is.
    edges: Vec<Origin>,
}

/// How an edge is related to the original thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Origin {
    /// The edge that the original thread takes; none if it does not move.
    step: Option<EdgeId>,
    /// Whether the edge itself may fault; all others were split so that they cannot.
    faults: bool,
}

/// A thread that is being changed. Its locations stand for original ones.
type Builder = ThreadBuilder<Origin, LocationId>;

impl Origin {
    /// No step of the original thread, and no fault.
    const SILENT: Origin = Origin { step: None, faults: false };
}

impl Extended {
    /// The program itself, with faults made explicit: see `faults`. Refused if that would make it very large.
    pub fn new(program: &Program) -> Result<Self, Refused> {
        let mut same = Extended::unchanged(program);
        for (id, _) in program.threads() {
            same.make_faults_explicit(id)?;
        }
        same.adapt_formulas();
        Ok(same)
    }

    /// The program itself.
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

    /// A thread, to be changed.
    fn builder(&self, id: ThreadId) -> Builder {
        let mapping = &self.threads[id.index()];
        let thread = self.program.thread(id);
        let origin = |edge: EdgeId| mapping.edges[edge.index()];
        let original = |location: LocationId| mapping.locations[location.index()];
        ThreadBuilder::copying(thread, origin, original)
    }

    /// Puts a changed thread in the place of the one it was made from.
    fn replace(&mut self, id: ThreadId, changed: Builder) {
        let Thread { entry, fault, .. } = *self.program.thread(id);
        let Built { thread, origins, stand_for, .. } = changed.finish(entry, fault);
        self.program.threads[id.index()] = thread;
        let registers = self.threads[id.index()].registers;
        self.threads[id.index()] = Mapping { registers, locations: stand_for, edges: origins };
    }

    /// Makes the formulas of the original program formulas of this one: they name the copies of each location.
    fn adapt_formulas(&mut self) {
        self.program.properties = self.properties.clone();
        self.program.hints.predicates = self.predicates.clone();
        relocate(&mut self.program, &copies(&self.threads));
        self.program.hints.spared.clear();
        self.program.hints.costs.clear();
    }

    /// A property of the original program, as one of this program.
    pub fn property(&self, property: &Property) -> Property {
        let mut adapted = property.clone();
        relocate_kind(&mut adapted.kind, &copies(&self.threads));
        adapted
    }

    /// The original location that a location stands for.
    pub fn original_location(&self, thread: ThreadId, location: LocationId) -> LocationId {
        self.threads[thread.index()].locations[location.index()]
    }

    /// The original edge that is taken together with an edge.
    pub fn original_edge(&self, thread: ThreadId, edge: EdgeId) -> Option<EdgeId> {
        self.threads[thread.index()].edges[edge.index()].step
    }

    /// An execution of this program under SC, as an execution of the original program under TSO: where this program writes memory, the
    /// store of the original program leaves the buffer. Nothing if it is no execution.
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
                // Its stores go to memory in the original program too.
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

    /// How many edges there are: the size of the program.
    pub fn size(&self) -> usize {
        self.program.threads.iter().map(|t| t.edges.len()).sum()
    }
}

/// Says which locations are the copies of some original ones of a thread. Properties may name very many, so copies are found by originals.
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

/// An auxiliary register. Its name cannot be one of the source.
fn auxiliary(builder: &mut Builder, name: &str) -> RegisterId {
    let name = format!("%{name}{}", builder.registers.len());
    builder.register(name, None)
}
