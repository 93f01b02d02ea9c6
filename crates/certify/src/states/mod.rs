//! Proofs by a set of states that contains all reachable states and no forbidden one.
//!
//! The states are those of the exact memory model, or of an over-approximation ([`abstraction`]), packed according to the [`Layout`] of the
//! certificate. The checker verifies that
//!
//! 1. every initial state is in the set;
//! 2. every step from a state of the set leads to a state of the set, and no step overflows 64 bits, accesses an index outside the modelled part of
//!    an open array, or chooses among too many values;
//! 3. no state of the set violates a property.
//!
//! Without reductions this is a proof by induction on the number of steps. Additional states in the set do no harm, and it does not matter how the
//! set was found. Reductions, each of which is optional, make sets smaller. Two reductions with long soundness proofs have modules of their own:
//! persistent sets, an alternative to local events first, in `persistent`; and states up to the order of [`versions`].
//!
//! # Live registers
//!
//! The certificate names, for each location of each thread, the registers that are *live* there. `reductions` checks: a register that a step from the
//! location reads before writing it is live there; a register that is live after the step and not written by it is live before it; a register that a
//! property observes is live wherever the property observes it: a formula does not observe a register where a conjunction around each of its
//! mentions requires another location of the thread, because the conjunction is 0 there. Say that two states are alike if they differ only in registers that are dead at the
//! locations of their threads. Then states that are alike have the same steps, with the same faults, to states that are alike, and violate the same
//! properties. The checker reads dead registers as 0 and clears their bits after each step. Every state is alike to one in which the dead registers
//! are 0, so conditions 1 to 3 for such states prove the property for all states.
//!
//! # Local events first
//!
//! An edge is *local* if it changes only its thread's own location, registers and buffer, if no step of another thread can enable, disable or change
//! it, and if it is invisible to every property that observes all states (`reductions` checks this). A state of the set may have a *favourite*: the
//! thread that has just taken a local edge which neither faulted nor ended the thread. While the favourite can move, condition 2 *asks for* its steps
//! only, that is, its edges and the flushes of its buffer: other steps need not lead to states of the set. After any other step there is no
//! favourite, and condition 2 asks for all steps.
//!
//! Why this is sound: take an execution to a forbidden state, and let e be a local event of thread t in it (a fault does not count as local). The
//! event e commutes with the events of other threads that follow it: they neither observe its effect nor change anything that it depends on. So e can
//! be moved towards the end, up to right before the next event of t. If there is no next event of t, e can be moved to the end.
//!
//! * If a property that observes all states is violated, or a thread has faulted, or a step exceeds a limit, a local event at the end is not needed
//!   and is dropped: the violation remains. In the remaining execution every local event is immediately followed by an event of its thread, so
//!   all of its states are in the set.
//! * If the state is final, or a deadlock, the local events at the end are kept, grouped by thread. In the last state no thread can move. Whether a
//!   thread can move does not depend on local events of other threads, so each thread is blocked right after its last local event, and then condition
//!   2 asks for the steps of all other threads.
//!
//! No condition on cycles is needed, unlike for reductions that take local events *instead of* others. Here local events are only postponed: in the
//! state before the first of several consecutive local events of a thread, condition 2 asks for the steps of all threads.
//!
//! # Symmetry
//!
//! The certificate may name families of threads that may be exchanged, together with their numbers. [`automorphism`](crate::automorphism) checks that
//! each exchange is an automorphism of states up to the values of dead registers. Let G be the group of permutations that these exchanges
//! generate. They act on the favourite too: it moves with its thread. Instead of 1 and 2 the checker verifies that
//!
//! * for every initial state s, some g in G maps s into the set;
//! * for every step from a state of the set to a state t that condition 2 asks for, some g in G maps t into the set.
//!
//! Let R be the set, and `G R` its image under all permutations. Then `G R` satisfies conditions 1, 2 and 3. It contains the initial states. Let r be
//! in R, and let condition 2 ask for a step from `g r` to t. Then it asks for the step from r to `g⁻¹ t` that the automorphism gives: the same thread
//! up to g is the favourite or can move, and the favourite after the step is the same up to g, because an edge is local if and only if its image is,
//! which is checked with the automorphism. So some `h g⁻¹ t` is in R, and t, which is `(g h⁻¹) (h g⁻¹ t)`, is in `G R`. And no state of `G R`
//! violates a property, because none of R does and automorphisms preserve properties. It does not matter which states of an orbit are in the set, nor
//! how many.

pub mod abstraction;
mod buffer;
mod layout;
mod orbits;
mod persistent;
mod reductions;
mod steps;
mod table;
pub mod versions;

use std::ops::Range as Numbers;

pub use fencewright_packed::PackedStates;
use fencewright_packed::Unreadable;
use fencewright_program::{
    EvalError, Formula, Init, LocationId, MemoryModel, Observable, Program, Property, PropertyKind,
    Quantifier, Range, Thread, ThreadId,
};
use fencewright_proof::Stop;
use serde::{Deserialize, Serialize};

use crate::automorphism::Family;
use crate::check::{Accepted, Rejection, STOPPED, hard};
use crate::parallel;
pub use abstraction::Abstraction;
pub use layout::{BufferFields, Field, Layout};
use orbits::Orbit;
use persistent::Facts;
pub use persistent::{Footprint, Persistent};
pub use steps::{Escape, Steps};
use table::Table;
use versions::{Renaming, Start, Types, Versions};

/// A set of states of a program under a memory model, with the reductions under which it is closed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateSet {
    /// The memory model under which the set is closed.
    pub model: ModelName,
    /// The abstraction of the store buffers; `None` if the buffers are exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abstraction: Option<Abstraction>,
    /// How each state is packed into words.
    pub layout: Layout,
    /// For each thread and location, the registers that are live there, in order.
    pub live: Vec<Vec<Vec<u32>>>,
    /// The local edges of each thread.
    pub local: Vec<Vec<u32>>,
    /// Families of threads that may be exchanged: then one state of each orbit is enough.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub symmetry: Vec<Family>,
    /// The accesses that threads may still perform from each location on, if persistent sets of steps are used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent: Option<Persistent>,
    /// The variables and registers that hold versions, if states are compared up to the order of versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versions: Option<Versions>,
    /// The states of the set, packed according to `layout`.
    pub states: PackedStates,
}

/// The checked reductions of a set, independent of its states.
pub struct Validated {
    /// For each edge of each thread, whether it is local.
    pub local: Vec<Vec<bool>>,
    /// The registers that hold versions at each location; `None` without versions.
    types: Option<Types>,
    /// The accesses that threads may still perform; `None` if persistent sets are not used.
    persistent: Option<Facts>,
}

/// A memory model, by its name in certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum ModelName {
    Sc,
    Tso,
    Pso,
}

impl From<ModelName> for MemoryModel {
    fn from(name: ModelName) -> Self {
        match name {
            ModelName::Sc => MemoryModel::Sc,
            ModelName::Tso => MemoryModel::Tso,
            ModelName::Pso => MemoryModel::Pso,
        }
    }
}

impl From<MemoryModel> for ModelName {
    fn from(model: MemoryModel) -> Self {
        match model {
            MemoryModel::Sc => ModelName::Sc,
            MemoryModel::Tso => ModelName::Tso,
            MemoryModel::Pso => ModelName::Pso,
        }
    }
}

impl StateSet {
    /// Checks everything but the states: layout and reductions must be valid for the program and these properties.
    pub fn validate(&self, program: &Program, properties: &[Property]) -> Result<Validated, Rejection> {
        let model = self.model.into();
        abstraction::check(self, properties.iter().map(|p| &p.kind))
            .map_err(|what| Rejection::Format(what.into()))?;
        reductions::check_live(program, properties, &self.live).map_err(Rejection::Reduction)?;
        self.layout.validate(program, model, &self.live).map_err(Rejection::Format)?;
        let local =
            reductions::check_local(program, model, properties, &self.local).map_err(Rejection::Reduction)?;
        orbits::check(self, program, properties, &local).map_err(Rejection::Symmetry)?;
        let types = versions::check(self, program, properties).map_err(Rejection::Versions)?;
        let persistent = persistent::check(self, program, properties).map_err(Rejection::Reduction)?;
        Ok(Validated { local, types, persistent })
    }
}

/// Below this number of states a single thread is faster than starting more.
const FEW: usize = 2_000;
/// Number of states checked between two polls of `stop`.
const CHUNK: usize = 256;
/// Number of successor states that are collected before they are looked up together.
const BATCH: usize = 64;
/// Number of collected successor states at which the batch is looked up even if the current state has further successors.
const MOST_IN_BATCH: usize = 1 << 12;

/// Checks that a set of states shows these properties of a program, on all cores.
pub(crate) fn check(
    set: &StateSet,
    program: &Program,
    properties: &[Property],
    stop: &Stop,
) -> Result<Accepted, Rejection> {
    if let Some(property) = properties.iter().find(|p| p.kind.is_existence()) {
        return Err(Rejection::Property(property.name.clone()));
    }
    let validated = set.validate(program, properties)?;
    let words = set.layout.words;
    let states = set.states.unpacked(words, &**stop).map_err(|unreadable| match unreadable {
        Unreadable::Wrong(what) => Rejection::Format(format!("its states cannot be read: {what}")),
        Unreadable::Stopped => STOPPED,
    })?;
    let workers = parallel::workers(states.len() / words, FEW);
    let table = Table::new(&states, words, workers, stop).ok_or(STOPPED)?;
    let checker = Checker { program, properties, set, validated, states: &states, table };
    checker.start(stop)?;
    checker.all(workers, stop)
}

/// States to be looked up together: initial states, or successor states, each with the number of its predecessor and the thread that takes the step.
struct Batch<'a> {
    states: Vec<u64>,
    origins: Vec<(usize, ThreadId)>,
    places: Vec<(u64, u64)>,
    orbit: Orbit<'a>,
    /// The number of successor states that were looked up already.
    known: usize,
    /// Renames versions; `None` without versions.
    renaming: Option<Renaming<'a>>,
}

impl Batch<'_> {
    /// Adds the representatives of a state. `origin` is the predecessor and the thread that takes the step, `None` for an initial state. The result
    /// is `None` if a representative does not fit the layout.
    fn add(&mut self, state: &[u64], origin: Option<(usize, ThreadId)>) -> Option<()> {
        let Batch { states, origins, renaming, .. } = self;
        let mut add = |state: &[u64]| {
            states.extend_from_slice(state);
            origins.extend(origin);
        };
        match renaming {
            Some(renaming) => renaming.images(state, origin.is_none(), &mut add),
            None => {
                add(state);
                Some(())
            }
        }
    }
}

struct Checker<'a> {
    program: &'a Program,
    properties: &'a [Property],
    set: &'a StateSet,
    validated: Validated,
    states: &'a [u64],
    table: Table<'a>,
}

impl Checker<'_> {
    fn batch(&self) -> Batch<'_> {
        let orbit = Orbit::new(self.program, self.set);
        let versions = self.set.versions.as_ref().zip(self.validated.types.as_ref());
        let renaming =
            versions.map(|(versions, types)| Renaming::new(self.program, self.set, versions, types));
        Batch { states: Vec::new(), origins: Vec::new(), places: Vec::new(), orbit, known: 0, renaming }
    }

    /// The position of the first state of a batch that is not in the set, up to permutations of threads.
    fn missing(&self, batch: &mut Batch<'_>) -> Option<usize> {
        let Batch { states, places, orbit, .. } = batch;
        let has = |state: &[u64]| self.table.has(state);
        self.table
            .missing(states, places, &mut |state| !self.set.symmetry.is_empty() && orbit.meets(state, &has))
    }

    /// Looks up all states of the batch; a missing one is a rejection. Then clears the batch.
    fn arrived(&self, batch: &mut Batch<'_>) -> Result<(), Rejection> {
        if let Some(missing) = self.missing(batch) {
            let (n, thread) = batch.origins[missing];
            return Err(batch.orbit.unless_given_up(self.leaves(n, thread)));
        }
        batch.known += batch.origins.len();
        batch.states.clear();
        batch.origins.clear();
        Ok(())
    }

    fn leaves(&self, n: usize, thread: ThreadId) -> Rejection {
        Rejection::Step(n, format!("a step of thread {}", self.program.thread(thread).name))
    }

    /// Checks condition 1 for all combinations of initial values of memory and of the registers that are live at the start.
    fn start(&self, stop: &Stop) -> Result<(), Rejection> {
        let layout = &self.set.layout;
        let scales = self.set.versions.as_ref().map(|versions| (versions, versions.start(self.program)));
        let variables = self.program.variables.iter().enumerate();
        let cells = variables.flat_map(|(v, variable)| variable.init.iter().map(move |init| (v, *init)));
        let cells = cells.map(|(v, init)| match &scales {
            Some((versions, start)) => start.place(versions.variables[v], init),
            None => init,
        });
        let mut parts: Vec<(Field, Init)> = layout.memory.iter().copied().zip(cells).collect();
        let mut state = vec![0; layout.words];
        for (t, thread) in self.program.threads.iter().enumerate() {
            let live = self.set.live[t][thread.entry.index()].iter().map(|&r| r as usize);
            parts.extend(live.map(|r| {
                let init = thread.registers[r].init;
                let placed =
                    |(versions, start): &(&Versions, Start)| start.place(versions.registers[t][r], init);
                (layout.registers[t][r], scales.as_ref().map_or(init, placed))
            }));
            layout.locations[t].put(&mut state, i64::from(thread.entry.0)).ok_or(Rejection::Start)?;
        }
        for field in layout.buffers.iter().map(|b| b.count).chain([layout.lock, layout.favourite]) {
            field.put(&mut state, 0).ok_or(Rejection::Start)?;
        }
        let mut ranges = Vec::with_capacity(parts.len());
        for (field, init) in parts {
            let range = match init {
                Init::Value(value) => Range { low: value, high: value },
                Init::Any(Some(range)) if self.program.choices(Some(range)) < u64::MAX => range,
                Init::Any(_) => return Err(Rejection::Start),
            };
            if range.low > range.high {
                // An empty range: the program has no initial state.
                return Ok(());
            }
            field.put(&mut state, range.low).ok_or(Rejection::Start)?;
            ranges.push((field, range));
        }
        let mut batch = self.batch();
        for tried in 0usize.. {
            if tried % CHUNK == 0 && stop() {
                return Err(STOPPED);
            }
            batch.states.clear();
            if batch.add(&state, None).is_none() || self.missing(&mut batch).is_some() {
                return Err(batch.orbit.unless_given_up(Rejection::Start));
            }
            // Enumerates all combinations, like an odometer.
            let turn = ranges.iter().position(|(field, range)| field.get(&state) < range.high);
            let Some(turn) = turn else { break };
            let (field, _) = ranges[turn];
            let value = field.get(&state) + 1;
            field.put(&mut state, value).ok_or(Rejection::Start)?;
            for (field, range) in &ranges[..turn] {
                field.put(&mut state, range.low).ok_or(Rejection::Start)?;
            }
        }
        Ok(())
    }

    /// Checks conditions 2 and 3 for all states. If several states are rejected, a mistake takes precedence over an undecided state, and an earlier
    /// state over a later one.
    fn all(&self, workers: usize, stop: &Stop) -> Result<Accepted, Rejection> {
        let words = self.set.layout.words;
        let count = self.states.len() / words;
        let start = || (Steps::new(self.program, self.set, &self.validated), self.batch());
        let check = |states: Numbers<usize>, (steps, batch): &mut (Steps<'_>, Batch<'_>)| {
            if stop() {
                return Err((states.start, STOPPED));
            }
            let before = batch.known;
            for n in states.clone() {
                let state = &self.states[n * words..][..words];
                self.one(n, state, steps, batch).map_err(|rejection| (n, rejection))?;
                if batch.origins.len() >= BATCH || n + 1 == states.end {
                    self.arrived(batch).map_err(|rejection| (n, rejection))?;
                }
            }
            Ok(batch.known - before)
        };
        let steps = parallel::all(count, CHUNK, workers, start, check)?;
        Ok(Accepted { states: count, steps, ..Accepted::default() })
    }

    /// Checks conditions 2 and 3 for one state; the successors are added to the batch, to be looked up later.
    fn one(
        &self,
        n: usize,
        state: &[u64],
        steps: &mut Steps<'_>,
        batch: &mut Batch<'_>,
    ) -> Result<(), Rejection> {
        if !steps.is_state(state) || batch.renaming.as_mut().is_some_and(|renaming| !renaming.is_even(state))
        {
            return Err(Rejection::State(n));
        }
        let mut missing = Ok(());
        let moved = steps.all(state, &mut |thread, next| {
            if missing.is_err() {
                return;
            }
            missing = batch.add(next, Some((n, thread))).ok_or_else(|| self.leaves(n, thread));
            // A state may have very many successors, so they are looked up even before all are collected.
            if missing.is_ok() && batch.origins.len() >= MOST_IN_BATCH {
                missing = self.arrived(batch);
            }
        });
        missing?;
        let name = |thread: ThreadId| &self.program.thread(thread).name;
        let moved = moved.map_err(|escape| match escape {
            Escape::Leaves(thread) => self.leaves(n, thread),
            Escape::Limit(thread, limit) => {
                hard(n, format!("in a step of thread {}, {}", name(thread), limit.describe()))
            }
            Escape::Choice(thread) => {
                hard(n, format!("thread {} chooses among too many values", name(thread)))
            }
        })?;
        let at = |t: usize| steps.location(state, t);
        for property in self.properties {
            let violated = match &property.kind {
                PropertyKind::Never(formula) => self.holds(formula, state, &at),
                PropertyKind::Assertions => Some(self.threads().any(|(t, code)| at(t) == code.fault)),
                PropertyKind::NoDeadlock => {
                    let unfinished = |(t, code): (usize, &Thread)| at(t) != code.fault && !code.is_end(at(t));
                    Some(!moved && self.threads().any(unfinished))
                }
                // In a final state no thread can move.
                PropertyKind::Finally(..) if moved || !self.is_final(state, &at) => Some(false),
                PropertyKind::Finally(quantifier, formula) => {
                    let holds = self.holds(formula, state, &at);
                    holds.map(|holds| holds != (*quantifier == Quantifier::Forall))
                }
            };
            if violated != Some(false) {
                return Err(Rejection::Forbidden(n, property.name.clone()));
            }
        }
        Ok(())
    }

    fn threads(&self) -> impl Iterator<Item = (usize, &Thread)> {
        self.program.threads.iter().enumerate()
    }

    fn is_final(&self, state: &[u64], at: &impl Fn(usize) -> LocationId) -> bool {
        self.set.layout.buffers.iter().all(|buffer| buffer.count.get(state) == 0)
            && self.threads().all(|(t, code)| code.is_end(at(t)))
    }

    /// Whether a formula holds; `None` if its value does not fit 64 bits.
    fn holds(&self, formula: &Formula, state: &[u64], at: &impl Fn(usize) -> LocationId) -> Option<bool> {
        let layout = &self.set.layout;
        let value = formula.eval(&mut |observable| match observable {
            Observable::At(thread, locations) => locations.contains(&at(thread.index())) as i64,
            Observable::Register(t, register) => layout.registers[t.index()][register.index()].get(state),
            Observable::Memory(cell) => layout.memory[*cell as usize].get(state),
        });
        match value {
            Ok(value) => Some(value != 0),
            Err(EvalError::DivisionByZero | EvalError::ShiftOutOfRange) => Some(false),
            Err(EvalError::Overflow) => None,
        }
    }
}
