//! The relation between a reduced program `P_M` and the original program `P`: locations, properties, states, executions.

use fencewright_kit::choices::faulting_choices;
use fencewright_kit::formulas::{relocate_kind, relocated};
use fencewright_program::reference::{Access, Refusal};
use fencewright_program::{
    BinaryOp, Event, EventKind, Expr, Formula, LocationId, MemoryModel, Observable, Program, Property,
    PropertyKind, Quantifier, Reference, Span, State, ThreadId, Trace,
};

use crate::bounds::{Bounds, Size};
use crate::forgotten::Forgotten;
use crate::queues::Queues;
use crate::thread::{Origin, ReducedThread};

/// A program `P_M` that is checked under SC, and its relation to the program `P` that it was made from.
#[derive(Clone, Debug)]
pub struct Reduced {
    /// `P_M`. Its properties are those of `P`, mapped (without freedom from deadlock if stores are forgotten), and the absence of overflow, if one is
    /// possible.
    pub program: Program,
    /// The memory model of `P`.
    pub model: MemoryModel,
    /// The capacities of the buffers of `P_M`.
    pub bounds: Bounds,
    /// Whether the cells and newest values of stores beyond these bounds are kept, so that there is no overflow.
    pub forgets: bool,
    threads: Vec<Relation>,
}

/// The relation between a thread of `P_M` and the thread of `P`.
#[derive(Clone, Debug)]
struct Relation {
    registers: usize,
    locations: Vec<Option<LocationId>>,
    origins: Vec<Origin>,
    overflow: Option<LocationId>,
    faulted: Vec<LocationId>,
    queues: Queues,
    forgotten: Vec<Forgotten>,
}

/// The name of the property that there is no overflow.
const OVERFLOW: &str = "overflow";

/// The name for the mapped property `assertions`; in `P_M` the name `assertions` would refer to the actions of `P_M`, which never fault.
const FAULTS: &str = "faults";

impl Reduced {
    pub(crate) fn new(
        original: &Program,
        model: MemoryModel,
        size: Size,
        threads: Vec<ReducedThread>,
    ) -> Self {
        let mut program = original.clone();
        program.threads.clear();
        program.variables.iter_mut().for_each(|variable| variable.range = None);
        let mut relations = Vec::new();
        for ReducedThread { thread, registers, locations, origins, overflow, faulted, queues, forgotten } in
            threads
        {
            program.threads.push(thread);
            relations.push(Relation { registers, locations, origins, overflow, faulted, queues, forgotten });
        }
        let mut reduced =
            Reduced { program, model, bounds: size.bounds, forgets: size.forgets, threads: relations };
        let mut properties: Vec<Property> = Vec::new();
        // Freedom from deadlock is not mapped if stores are forgotten, because abstract buffers may have steps where exact buffers are stuck.
        let said = |p: &&Property| !(reduced.forgets && p.kind == PropertyKind::NoDeadlock);
        let mapped = original.properties.iter().filter(said).map(|p| reduced.property(p));
        let overflow = reduced.may_overflow().then(|| reduced.overflow_property());
        for mut property in mapped.chain(overflow) {
            while properties.iter().any(|p| p.name == property.name) {
                property.name.push('_');
            }
            properties.push(property);
        }
        reduced.program.properties = properties;
        let predicates = original.hints.predicates.iter();
        let copies = |t: ThreadId, at: &[LocationId]| reduced.copies(t, at);
        reduced.program.hints.predicates = predicates.map(|p| relocated(p, &copies)).collect();
        reduced.program.hints.spared.clear();
        reduced.program.hints.costs.clear();
        reduced
    }

    /// The location of `P` that a location of `P_M` stands for; `None` for the overflow location.
    pub fn original_location(&self, thread: ThreadId, location: LocationId) -> Option<LocationId> {
        self.threads[thread.index()].locations[location.index()]
    }

    /// All locations of `P_M` that stand for these locations of `P`.
    pub fn copies(&self, thread: ThreadId, originals: &[LocationId]) -> Vec<LocationId> {
        let all = self.threads[thread.index()].locations.iter().zip((0..).map(LocationId));
        all.filter(|(original, _)| original.is_some_and(|l| originals.contains(&l))).map(|(_, l)| l).collect()
    }

    /// The number of registers of the thread in `P`; the registers of `P_M` after them are new.
    pub fn original_registers(&self, thread: ThreadId) -> usize {
        self.threads[thread.index()].registers
    }

    /// The registers that encode the buffers of the thread.
    pub fn queues(&self, thread: ThreadId) -> &Queues {
        &self.threads[thread.index()].queues
    }

    /// The registers for forgotten stores, by memory cell. Empty if no store is ever forgotten.
    pub fn forgotten(&self, thread: ThreadId) -> &[Forgotten] {
        &self.threads[thread.index()].forgotten
    }

    /// The location after an overflow; `None` if no overflow is possible.
    pub fn overflow_location(&self, thread: ThreadId) -> Option<LocationId> {
        self.threads[thread.index()].overflow
    }

    /// Whether an overflow is possible in any thread.
    pub fn may_overflow(&self) -> bool {
        self.threads.iter().any(|t| t.overflow.is_some())
    }

    /// The formula that some thread is at its overflow location.
    pub fn overflow(&self) -> Formula {
        Expr::any(self.at_each(|relation| relation.overflow.into_iter().collect()))
    }

    /// The property that there is no overflow.
    pub fn overflow_property(&self) -> Property {
        let kind = PropertyKind::Never(self.overflow());
        Property { name: OVERFLOW.into(), kind, span: Span::default() }
    }

    /// The formula that some thread has faulted.
    fn faulted(&self) -> Formula {
        Expr::any(self.at_each(|relation| relation.faulted.clone()))
    }

    fn at_each(&self, locations: impl Fn(&Relation) -> Vec<LocationId>) -> Vec<Formula> {
        let places = self.threads.iter().map(locations).zip((0..).map(ThreadId));
        let places = places.filter(|(locations, _)| !locations.is_empty());
        places.map(|(locations, thread)| Expr::Leaf(Observable::At(thread, locations))).collect()
    }

    /// The formula restricted to states without overflow.
    fn unless_overflow(&self, formula: Formula) -> Formula {
        match self.may_overflow() {
            true => Expr::binary(BinaryOp::And, formula, self.overflow().not()),
            false => formula,
        }
    }

    /// Maps a property of `P` to one of `P_M` under SC. Unless stores are forgotten: if `P_M` violates the mapped property, `P` violates the
    /// property, except for one kind of deadlock (see below); for `finally exists`, if `P_M` satisfies the mapped property, `P` satisfies the property. The converses hold if there is no
    /// overflow.
    ///
    /// * A forbidden formula is forbidden until the first overflow.
    /// * `assertions` forbids the locations of faulted threads, since in `P_M` no action faults. The mapped property is called `faults`.
    /// * In a final state no thread has faulted, and none is at its overflow location, where it could always move.
    /// * In a deadlock no thread is at its overflow location. A thread that has ended or faulted is finished when it has flushed all stores. So `P_M`
    ///   has a kind of deadlock that is none in `P`: all threads have ended or faulted, but stores stay pending because one of these threads holds the lock.
    pub fn property(&self, property: &Property) -> Property {
        let mut kind = property.kind.clone();
        relocate_kind(&mut kind, &|thread, at| self.copies(thread, at));
        let faults = self.threads.iter().any(|t| !t.faulted.is_empty());
        let kind = match kind {
            PropertyKind::Never(formula) => PropertyKind::Never(self.unless_overflow(formula)),
            PropertyKind::Assertions => PropertyKind::Never(self.unless_overflow(self.faulted())),
            PropertyKind::NoDeadlock => PropertyKind::NoDeadlock,
            PropertyKind::Finally(quantifier, formula) if faults => {
                let formula = match quantifier {
                    Quantifier::Exists | Quantifier::Never => {
                        Expr::binary(BinaryOp::And, formula, self.faulted().not())
                    }
                    Quantifier::Forall => Expr::binary(BinaryOp::Or, formula, self.faulted()),
                };
                PropertyKind::Finally(quantifier, formula)
            }
            PropertyKind::Finally(..) => kind,
        };
        let name = if property.kind == PropertyKind::Assertions { FAULTS } else { &property.name };
        Property { name: name.into(), kind, span: property.span }
    }

    /// The state of `P` that a state of `P_M` under SC stands for, without forgotten stores; `None` after an overflow.
    pub fn state(&self, state: &State) -> Option<State> {
        let mut original = state.clone();
        for (t, relation) in self.threads.iter().enumerate() {
            original.locations[t] = relation.locations[state.locations[t].index()]?;
            original.buffers[t] = relation.queues.contents(&state.registers[t]);
            original.registers[t].truncate(relation.registers);
        }
        Some(original)
    }

    /// Maps an execution of `P_M` under SC to one of `P` under its memory model, until the first overflow. `None` if the trace is not an execution of
    /// `P_M`, or if stores are forgotten, so that the execution may be spurious.
    pub fn trace(&self, original: &Program, trace: &Trace) -> Option<Trace> {
        if self.forgets {
            return None;
        }
        let reference = Reference::new(&self.program, MemoryModel::Sc);
        let mut state = reference.initial(trace.registers.clone(), trace.memory.clone())?;
        let mut events = Vec::new();
        for event in &trace.events {
            let (next, accesses) = match reference.step(&state, event) {
                Ok(stepped) => stepped,
                Err(Refusal::Disabled(_) | Refusal::Limit(..)) => return None,
            };
            state = next;
            let EventKind::Step { edge, chosen } = &event.kind else { return None };
            let thread = event.thread;
            match self.threads[thread.index()].origins[edge.index()] {
                Origin::Silent => {}
                Origin::Overflow => break,
                Origin::Step(edge) => {
                    let chosen = faulting_choices(original, thread, edge, chosen.clone());
                    events.push(Event { thread, kind: EventKind::Step { edge, chosen } });
                }
                Origin::Flush => events.extend(accesses.iter().filter_map(|access| match access {
                    Access::Write { cell, .. } => {
                        Some(Event { thread, kind: EventKind::Flush { cell: *cell } })
                    }
                    Access::Read { .. } | Access::Fault(_) => None,
                })),
            }
        }
        let registers = trace.registers.iter().zip(&self.threads);
        let registers = registers.map(|(values, t)| values[..t.registers].to_vec()).collect();
        Some(Trace { registers, memory: trace.memory.clone(), events })
    }
}
