//! Relevance analysis for the context machine: which cells may still be read, where a context may end without loss of generality, and which states of
//! the last context cannot reach a violation.
//!
//! Three reductions keep the state space small. None of them loses evidence about a property.
//!
//! * *Values that no later context can read are dropped* ([`Relevance::live`]): memory that no thread will load, and buffered stores that only their
//!   own thread could read and that a newer store hides from that thread.
//! * *A context ends only directly after an observable step* ([`Relevance::ending`]): a load (which could have read another value later), a lock
//!   operation, a store that leaves immediately, or a change that a property observes. Everything that the thread does after this step can be
//!   postponed to the start of its next context, and is irrelevant if the thread has no further context.
//! * *In the last context no other thread moves* ([`Relevance::hopeless`], [`Relevance::representative`]): of the other threads, only the parts that
//!   properties observe matter. If these parts exclude evidence about every property, the context is not begun.

use std::collections::{BTreeMap, BTreeSet};

use fencewright_analysis::facts::{Effect, Facts, Flow};
use fencewright_analysis::liveness::LiveRegisters;
use fencewright_analysis::looks::Looks;
use fencewright_kit::accesses::{cells_of, written_register};
use fencewright_memory::{Cell, CellId};
use fencewright_program::{
    Action, BinaryOp, Edge, EdgeId, Expr, LocationId, MemoryModel, Observable, Op, Program, Property,
    PropertyKind, RegisterId, Thread, ThreadId,
};
use fencewright_verdict::{Limits, Reason, Task};
use fixedbitset::FixedBitSet;

use super::machine::{ContextControl, Contexts};

/// How a context may end at a location.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// The context may end, whatever is buffered.
    pub any: bool,
    /// The context may end if all buffered stores leave.
    pub drained: bool,
}

/// The results of the analysis for one thread.
struct ThreadFacts {
    /// For each location, the live registers.
    live: LiveRegisters,
    /// For each location, the memory cells that may still be loaded. After the facts for cells, there is one fact for each variable: any element of
    /// the array may still be loaded.
    loads: Facts,
    /// For each location, how a context may end there.
    endings: Vec<Ending>,
    /// A single fact per location: whether the thread may still fault.
    may_fault: Facts,
    /// For each location, the representative of its class of locations that no property distinguishes.
    representatives: Vec<LocationId>,
    /// The registers that properties depend on, in order.
    observed: BTreeSet<RegisterId>,
    /// The sets of locations that properties name, numbered.
    sets: BTreeMap<Vec<LocationId>, usize>,
    /// For each location, those of the `sets` that contain a location still reachable from it.
    reaches: Facts,
}

/// The results of the relevance analysis of a program.
pub struct Relevance<'p> {
    program: &'p Program,
    properties: Vec<Property>,
    threads: Vec<ThreadFacts>,
    /// The memory cells that properties depend on.
    observed: FixedBitSet,
    /// Whether some property is a `finally`.
    finals: bool,
}

impl<'p> Relevance<'p> {
    /// Analyses a program for the properties of a task.
    pub fn new(task: &Task<'p>, limits: &Limits) -> Result<Self, Reason> {
        let program = task.program;
        let mut observed = FixedBitSet::with_capacity(program.cells());
        for_each_observable(&task.properties, &mut |o| {
            if let Observable::Memory(cell) = o {
                observed.insert(*cell as usize);
            }
        });
        let finals = task.properties.iter().any(|p| matches!(p.kind, PropertyKind::Finally(..)));
        let facts = |(t, _)| ThreadFacts::new(task, t, finals, limits);
        let threads = program.threads().map(facts).collect::<Result<_, Reason>>()?;
        Ok(Relevance { program, properties: task.properties.clone(), threads, observed, finals })
    }

    /// Whether a property depends on memory.
    pub fn sees_memory(&self) -> bool {
        !self.observed.is_clear()
    }

    /// Whether some property is a `finally`.
    pub fn finals(&self) -> bool {
        self.finals
    }

    /// How a context may end at a location.
    pub fn ending(&self, thread: ThreadId, location: LocationId) -> Ending {
        self.threads[thread.index()].endings[location.index()]
    }

    /// The representative of the locations that no property distinguishes from this one.
    pub fn representative(&self, thread: ThreadId, location: LocationId) -> LocationId {
        self.threads[thread.index()].representatives[location.index()]
    }

    /// The cells whose values matter in a control state, sorted. In the `last` context only the active thread moves.
    pub fn live(&self, contexts: &Contexts<'_>, at: &ContextControl, last: bool) -> Vec<CellId> {
        let cells = contexts.cells();
        let locations = &at.control.locations;
        let goes_on = |t: ThreadId| !last || t == at.active;
        let facts = |t: ThreadId| (&self.threads[t.index()], locations[t.index()]);
        let ids = || (0..locations.len() as u32).map(ThreadId);
        let buffers: Vec<_> = ids().map(|t| contexts.groups(&at.control, t)).collect();
        let mut read = self.observed.clone();
        // The cells that some thread may still load, and those that at least two threads may still load.
        let none = FixedBitSet::with_capacity(self.program.cells());
        let (mut some, mut several) = (none.clone(), none);
        let mut loads = vec![FixedBitSet::new(); locations.len()];
        for t in ids().filter(|&t| goes_on(t)) {
            let (facts, location) = facts(t);
            let own = self.loaded(&facts.loads, location);
            several.extend(some.intersection(&own));
            some.union_with(&own);
            // A thread reads its own buffered store instead of memory.
            let mut seen = own.clone();
            loads[t.index()] = own;
            buffers[t.index()].0.iter().flatten().for_each(|&c| seen.remove(c as usize));
            read.union_with(&seen);
        }
        let mut live: Vec<CellId> = read.ones().map(|c| cells.id(Cell::Memory(c as u32))).collect();
        for t in ids() {
            let (facts, location) = facts(t);
            let id = |r: RegisterId| cells.id(Cell::Register(t, r));
            if !goes_on(t) {
                live.extend(facts.observed.iter().map(|&r| id(r)));
                continue;
            }
            live.extend(facts.live.at(location).map(id));
            let groups = &buffers[t.index()];
            for (group, c, id) in groups.values(cells, t) {
                let may_load = loads[t.index()].contains(c as usize);
                let own = may_load && groups.newest_group(c) == Some(group);
                let others = several.contains(c as usize) || (some.contains(c as usize) && !may_load);
                if own || self.observed.contains(c as usize) || others {
                    live.push(id);
                }
            }
        }
        live.sort_unstable();
        live
    }

    /// The cells that a thread may load from a location on.
    fn loaded(&self, loads: &Facts, location: LocationId) -> FixedBitSet {
        let cells = self.program.cells();
        let mut loaded = FixedBitSet::with_capacity(cells);
        for fact in loads.at(location.0) {
            match fact.checked_sub(cells) {
                None => loaded.insert(fact),
                Some(array) => loaded.insert_range(self.program.variables[array].cells()),
            }
        }
        loaded
    }

    /// Whether there can be no evidence about any property in a last context that begins here.
    pub fn hopeless(&self, contexts: &Contexts<'_>, at: &ContextControl) -> bool {
        !self.properties.iter().any(|p| self.may_be_decided(contexts, at, p))
    }

    fn may_be_decided(&self, contexts: &Contexts<'_>, at: &ContextControl, property: &Property) -> bool {
        let locations = &at.control.locations;
        let active = at.active;
        let (facts, here) = (&self.threads[active.index()], locations[active.index()].0);
        let out_of_reach =
            |set: &Vec<LocationId>| facts.sets.get(set).is_some_and(|&n| !facts.reaches.holds(n, here));
        let known = |observable: &Observable| match observable {
            Observable::At(t, set) if *t != active => Some(set.contains(&locations[t.index()]) as i64),
            Observable::At(_, set) if out_of_reach(set) => Some(0),
            _ => None,
        };
        match &property.kind {
            PropertyKind::Never(formula) => possible(formula, &known) != Some(0),
            PropertyKind::Assertions => at.control.has_fault(self.program) || facts.may_fault.holds(0, here),
            PropertyKind::Finally(..) => self.program.threads().all(|(t, thread)| {
                let ended = thread.is_end(locations[t.index()]);
                t == active || (ended && contexts.groups(&at.control, t).0.is_empty())
            }),
            PropertyKind::NoDeadlock => false,
        }
    }
}

/// The value of a formula, if the known observables determine it.
fn possible(formula: &Expr<Observable>, known: &dyn Fn(&Observable) -> Option<i64>) -> Option<i64> {
    match formula {
        Expr::Const(value) => Some(*value),
        Expr::Leaf(observable) => known(observable),
        Expr::Unary(op, operand) => op.apply(possible(operand, known)?).ok(),
        Expr::Binary(op, left, right) => {
            let (left, right) = (possible(left, known), possible(right, known));
            let decided = |value: Option<i64>| match (op, value) {
                (BinaryOp::And, Some(0)) => Some(0),
                (BinaryOp::Or, Some(v)) if v != 0 => Some(1),
                _ => None,
            };
            decided(left).or(decided(right)).or_else(|| op.apply(left?, right?).ok())
        }
        Expr::If(condition, then, otherwise) => {
            possible(if possible(condition, known)? != 0 { then } else { otherwise }, known)
        }
    }
}

fn for_each_observable(properties: &[Property], visit: &mut impl FnMut(&Observable)) {
    properties.iter().filter_map(Property::formula).for_each(|f| f.for_each_leaf(&mut |o| visit(o)));
}

impl ThreadFacts {
    fn new(task: &Task<'_>, id: ThreadId, finals: bool, limits: &Limits) -> Result<Self, Reason> {
        let program = task.program;
        let thread = program.thread(id);
        let mut observed = BTreeSet::new();
        let mut sets: BTreeMap<Vec<LocationId>, usize> = BTreeMap::new();
        for_each_observable(&task.properties, &mut |o| match o {
            Observable::Register(t, r) if *t == id => _ = observed.insert(*r),
            Observable::At(t, set) if *t == id && !sets.contains_key(set) => {
                _ = sets.insert(set.clone(), sets.len());
            }
            _ => {}
        });
        let mut looks = Looks::alike(thread.locations.len());
        sets.keys().for_each(|set| looks.tell_apart(set));
        let ends = (0..thread.locations.len() as u32).map(LocationId).filter(|&l| finals && thread.is_end(l));
        looks.tell_apart(&ends.collect::<Vec<LocationId>>());
        looks.tell_apart(&[thread.fault]);
        let visible = |edge: &Edge| {
            !looks.is_alike(edge.from, edge.to)
                || edge.action.ops().iter().filter_map(written_register).any(|r| observed.contains(&r))
        };
        let mut endings = vec![Ending::default(); thread.locations.len()];
        for edge in &thread.edges {
            let ending = &mut endings[edge.to.index()];
            match &edge.action {
                Action::Op(Op::Store(..)) if task.model != MemoryModel::Sc => ending.drained = true,
                Action::Op(Op::Load(..) | Op::Store(..))
                | Action::Atomic { .. }
                | Action::Lock
                | Action::Unlock => ending.any = true,
                // A context need not end after a fence. The fence makes stores leave, but they could have left at the end of the thread's previous
                // context.
                Action::Op(_) | Action::Fence | Action::StoreFence => {}
            }
            ending.any |= visible(edge);
        }
        endings[thread.fault.index()].any = true;
        let flow = Flow::new(thread);
        Ok(ThreadFacts {
            reaches: reaches(&flow, &sets, limits)?,
            live: LiveRegisters::new(task, id, limits)?,
            loads: loads(program, thread, &flow, limits)?,
            may_fault: may_fault(program, thread, &flow, limits)?,
            endings,
            representatives: looks.representatives(),
            observed,
            sets,
        })
    }
}

/// For each location, which of the sets of locations are reachable from it.
fn reaches(flow: &Flow, sets: &BTreeMap<Vec<LocationId>, usize>, limits: &Limits) -> Result<Facts, Reason> {
    let mut numbered: Vec<&Vec<LocationId>> = vec![&EMPTY; sets.len()];
    sets.iter().for_each(|(set, &n)| numbered[n] = set);
    let seed = |numbers: std::ops::Range<usize>, points: &mut [u64]| {
        for (bit, set) in numbered[numbers].iter().enumerate() {
            set.iter().for_each(|l| points[l.index()] |= 1 << bit);
        }
    };
    Facts::find(flow, sets.len(), Vec::new(), &seed, limits)
}

static EMPTY: Vec<LocationId> = Vec::new();

/// For each location, the memory cells that may be loaded from there on. After the facts for cells, there is one fact for each variable: any element
/// of the array may be loaded.
fn loads(program: &Program, thread: &Thread, flow: &Flow, limits: &Limits) -> Result<Facts, Reason> {
    let mut effects = Vec::new();
    for (e, edge) in thread.edges.iter().enumerate() {
        if let Some(reason) = limits.exceeded(0) {
            return Err(reason);
        }
        let arc = flow.arc(EdgeId(e as u32), 0);
        for op in edge.action.ops() {
            if let Op::Load(_, address) = op {
                let cells = cells_of(program, address);
                let fact = match cells.len() {
                    1 => cells.start,
                    _ => program.cells() as u32 + address.variable.0,
                };
                effects.push(Effect { arc, fact, holds: true });
            }
        }
    }
    Facts::find(flow, program.cells() + program.variables.len(), effects, &|_, _| {}, limits)
}

/// For each location, whether the thread may fault from there on.
fn may_fault(program: &Program, thread: &Thread, flow: &Flow, limits: &Limits) -> Result<Facts, Reason> {
    let seed = |_: std::ops::Range<usize>, points: &mut [u64]| {
        for edge in thread.edges.iter().filter(|edge| program.edge_may_fault(thread, edge)) {
            points[edge.from.index()] = 1;
        }
    };
    Facts::find(flow, 1, Vec::new(), &seed, limits)
}
