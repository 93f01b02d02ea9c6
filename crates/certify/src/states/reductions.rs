//! Checks two reductions of a set of states: dead registers, and local edges.
//!
//! A certificate names the registers that are live at each location, and the edges that are local. Both are checked against the program and the
//! properties; it does not matter how they were found. The soundness proof is in [the module](super).

use std::collections::BTreeSet;
use std::ops::Range;

use fencewright_program::{
    Action, Disjunct, Edge, Expr, LocationId, MemoryModel, Observable, Op, Program, Property, PropertyKind,
    RegisterId, Thread, ThreadId,
};

/// The observables of properties: those observed in every state, and those observed in final states only.
pub(super) struct Observed {
    always: Vec<Observable>,
    finally: Vec<Observable>,
    /// The memory cells that count as observed in every state, in order: those among `always`, and those added by `and_cells`.
    cells: Vec<usize>,
}

impl Observed {
    /// All observables of these properties.
    pub fn by(properties: &[Property]) -> Self {
        Observed::in_disjuncts(properties, |_| true)
    }

    /// The observables of these properties, except those in disjuncts that depend on one thread only.
    pub fn jointly(properties: &[Property]) -> Self {
        Observed::in_disjuncts(properties, |disjunct| disjunct.own.is_none())
    }

    fn in_disjuncts(properties: &[Property], is_kept: impl Fn(&Disjunct<'_>) -> bool) -> Self {
        let mut observed = Observed { always: Vec::new(), finally: Vec::new(), cells: Vec::new() };
        for property in properties {
            let (formula, list) = match &property.kind {
                PropertyKind::Never(formula) => (formula, &mut observed.always),
                PropertyKind::Finally(_, formula) => (formula, &mut observed.finally),
                PropertyKind::Assertions | PropertyKind::NoDeadlock => continue,
            };
            for Disjunct { formula, .. } in formula.disjuncts().into_iter().filter(&is_kept) {
                formula.for_each_leaf(&mut |observable| list.push(observable.clone()));
            }
        }
        observed.cells.extend(observed.always.iter().filter_map(|observable| match observable {
            Observable::Memory(cell) => Some(*cell as usize),
            Observable::At(..) | Observable::Register(..) => None,
        }));
        observed.cells.sort_unstable();
        observed
    }

    /// Adds memory cells that count as observed in every state.
    pub fn and_cells(mut self, cells: &[u32]) -> Self {
        self.cells.extend(cells.iter().map(|&cell| cell as usize));
        self.cells.sort_unstable();
        self
    }

    /// Whether taking an edge to `to` is visible to properties that observe every state, not considering changes of memory.
    pub fn sees(&self, thread: ThreadId, edge: &Edge, to: LocationId) -> bool {
        let written = |r: RegisterId| edge.action.ops().iter().any(|op| written(op) == Some(r));
        self.always.iter().any(|observable| match observable {
            Observable::At(t, at) => *t == thread && at.contains(&edge.from) != at.contains(&to),
            Observable::Register(t, register) => *t == thread && written(*register),
            Observable::Memory(_) => false,
        })
    }

    /// Whether one of these memory cells is observed.
    pub fn sees_cells(&self, cells: &Range<usize>) -> bool {
        let first = self.cells.partition_point(|cell| *cell < cells.start);
        self.cells.get(first).is_some_and(|cell| cells.contains(cell))
    }
}

/// The registers of a thread among some observables.
fn registers(observed: &[Observable], thread: ThreadId) -> BTreeSet<u32> {
    let register = |observable: &Observable| match observable {
        Observable::Register(t, register) if *t == thread => Some(register.0),
        _ => None,
    };
    observed.iter().filter_map(register).collect()
}

/// Checks that the registers named as live include all that matter at each location: those that properties observe there, and those that some path
/// reads before writing them.
pub(super) fn check_live(
    program: &Program,
    properties: &[Property],
    live: &[Vec<Vec<u32>>],
) -> Result<(), String> {
    let complete = live.len() == program.threads.len()
        && live.iter().zip(&program.threads).all(|(live, thread)| {
            let exist = |registers: &Vec<u32>| {
                registers.is_sorted_by(|a, b| a < b)
                    && registers.last().is_none_or(|&r| (r as usize) < thread.registers.len())
            };
            live.len() == thread.locations.len() && live.iter().all(exist)
        });
    if !complete {
        return Err("its live registers are not those of this program".into());
    }
    let observed = Observed::by(properties);
    for ((id, thread), live) in program.threads().zip(live) {
        let missing = |register: u32, location: usize| {
            Err(format!("register {register} of thread {} matters at location {location}", thread.name))
        };
        let is_live = |register: u32, location: usize| live[location].binary_search(&register).is_ok();
        let finally = registers(&observed.finally, id);
        for location in (0..thread.locations.len()).filter(|&l| thread.is_end(LocationId(l as u32))) {
            if let Some(&register) = finally.iter().find(|&&r| !is_live(r, location)) {
                return missing(register, location);
            }
        }
        let mut unlisted = None;
        for property in properties {
            let PropertyKind::Never(formula) = &property.kind else { continue };
            formula.for_each_register(&mut |of, register, at| {
                let is_missing = |location: &usize| of == id && !is_live(register.0, *location);
                let found = match at {
                    Some(at) => at.iter().map(|location| location.index()).find(is_missing),
                    None => (0..thread.locations.len()).find(is_missing),
                };
                unlisted = unlisted.or(found.map(|location| (register.0, location)));
            });
        }
        if let Some((register, location)) = unlisted {
            return missing(register, location);
        }
        for edge in &thread.edges {
            let mut matter: BTreeSet<u32> = live[edge.to.index()].iter().copied().collect();
            for op in edge.action.ops().iter().rev() {
                matter.retain(|&r| written(op) != Some(RegisterId(r)));
                // The operation may fault; then its register is not written, and the registers that are live at the fault location matter.
                matter.extend(&live[thread.fault.index()]);
                read(op).for_each(|e| e.for_each_leaf(&mut |r| _ = matter.insert(r.0)));
            }
            if let Some(&register) = matter.iter().find(|&&r| !is_live(r, edge.from.index())) {
                return missing(register, edge.from.index());
            }
        }
    }
    Ok(())
}

fn written(op: &Op) -> Option<RegisterId> {
    match op {
        Op::Assign(register, _) | Op::Havoc(register, _) | Op::Load(register, _) => Some(*register),
        Op::Skip | Op::Assume(_) | Op::Assert(..) | Op::Store(..) => None,
    }
}

fn read(op: &Op) -> impl Iterator<Item = &Expr<RegisterId>> {
    let (first, second) = match op {
        Op::Skip | Op::Havoc(..) => (None, None),
        Op::Assign(_, e) | Op::Assume(e) | Op::Assert(e, _) => (Some(e), None),
        Op::Load(_, address) => (address.index.as_ref(), None),
        Op::Store(address, e) => (address.index.as_ref(), Some(e)),
    };
    first.into_iter().chain(second)
}

/// Checks that these edges of each thread are local: they access only what belongs to the thread, no step of another thread affects them, and they
/// are invisible to all properties that observe every state. Returns for every edge whether it is local.
pub(super) fn check_local(
    program: &Program,
    model: MemoryModel,
    properties: &[Property],
    local: &[Vec<u32>],
) -> Result<Vec<Vec<bool>>, String> {
    if local.len() != program.threads.len() {
        return Err("its local edges are not those of this program".into());
    }
    let observed = Observed::by(properties);
    let flags = |((id, thread), local): ((ThreadId, &Thread), &Vec<u32>)| {
        let mut flags = vec![false; thread.edges.len()];
        for &number in local {
            let refused = || Err(format!("edge {number} of thread {} is not local", thread.name));
            let Some(edge) = thread.edges.get(number as usize) else { return refused() };
            let own = match &edge.action {
                Action::Op(Op::Load(..)) | Action::Atomic { .. } | Action::Lock | Action::Unlock => false,
                Action::Op(Op::Store(..)) => model != MemoryModel::Sc,
                Action::Op(_) | Action::Fence | Action::StoreFence => true,
            };
            if !own || observed.sees(id, edge, edge.to) {
                return refused();
            }
            flags[number as usize] = true;
        }
        Ok(flags)
    };
    program.threads().zip(local).map(flags).collect()
}
