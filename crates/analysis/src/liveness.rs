//! Live registers: at each location of a thread, the registers whose values may still affect the thread or a property.

use fencewright_kit::accesses::{for_each_read, written_register};
use fencewright_program::{EdgeId, LocationId, Observable, PropertyKind, RegisterId, Thread, ThreadId};
use fencewright_verdict::{Limits, Reason, Task};

use crate::facts::{Effect, Facts, Flow};

/// The live registers at each location of a thread, and between the operations of its atomic steps.
pub struct LiveRegisters {
    flow: Flow,
    facts: Facts,
}

impl LiveRegisters {
    /// The live registers of a thread, for the properties of a task. A register that a property observes in all states is live everywhere.
    pub fn new(task: &Task<'_>, id: ThreadId, limits: &Limits) -> Result<Self, Reason> {
        let (everywhere, at_end) = observed(task, id);
        LiveRegisters::find(task, id, (everywhere, at_end, Vec::new()), limits)
    }

    /// The live registers of a thread, where a register that a property mentions is observed only at the locations at which the property depends on
    /// it ([`Expr::for_each_register`](fencewright_program::Expr::for_each_register)).
    pub fn where_observed(task: &Task<'_>, id: ThreadId, limits: &Limits) -> Result<Self, Reason> {
        let (_, at_end) = observed(task, id);
        let mut everywhere = vec![false; at_end.len()];
        let fault = task.program.thread(id).fault;
        let mut places: Vec<(usize, usize)> = Vec::new();
        for property in &task.properties {
            let PropertyKind::Never(formula) = &property.kind else { continue };
            formula.for_each_register(&mut |thread, register, at| match at {
                _ if thread != id => {}
                // Operations inside atomic steps may fault, so a register that is observed after a fault is observed at all points.
                Some(at) if !at.contains(&fault) => {
                    places.extend(at.iter().map(|location| (register.index(), location.index())));
                }
                _ => everywhere[register.index()] = true,
            });
        }
        places.sort_unstable();
        places.dedup();
        LiveRegisters::find(task, id, (everywhere, at_end, places), limits)
    }

    /// The live registers, given those that are observed at all points, those that are observed at the ends of the thread, and pairs of a register and
    /// a location where it is observed, in order.
    fn find(
        task: &Task<'_>,
        id: ThreadId,
        (everywhere, at_end, places): (Vec<bool>, Vec<bool>, Vec<(usize, usize)>),
        limits: &Limits,
    ) -> Result<Self, Reason> {
        let thread = task.program.thread(id);
        let flow = Flow::new(thread);
        let seed = |registers: std::ops::Range<usize>, points: &mut [u64]| {
            let set = |of: &[bool]| {
                let bits = of[registers.clone()].iter().enumerate().filter(|(_, seen)| **seen);
                bits.fold(0u64, |set, (n, _)| set | 1 << n)
            };
            // All points are seeded, also those inside atomic steps: an atomic step may end there with a fault, and then properties read the
            // registers.
            points.fill(set(&everywhere));
            let at_end = set(&at_end);
            let ends = (0..thread.locations.len()).filter(|&l| thread.is_end(LocationId(l as u32)));
            ends.for_each(|location| points[location] |= at_end);
            let own = places.partition_point(|(register, _)| *register < registers.start);
            for &(register, location) in places[own..].iter().take_while(|(r, _)| *r < registers.end) {
                points[location] |= 1 << (register - registers.start);
            }
        };
        let facts = Facts::find(&flow, thread.registers.len(), accesses(thread, &flow), &seed, limits)?;
        Ok(LiveRegisters { flow, facts })
    }

    /// Treats every register as live everywhere.
    pub fn everywhere(thread: &Thread) -> Self {
        LiveRegisters { flow: Flow::new(thread), facts: Facts::everywhere(thread.registers.len()) }
    }

    /// Whether a register is live at a location.
    #[inline]
    pub fn is_live(&self, register: RegisterId, location: LocationId) -> bool {
        self.facts.holds(register.index(), location.0)
    }

    /// The registers that are live at a location, in order.
    #[inline]
    pub fn at(&self, location: LocationId) -> impl Iterator<Item = RegisterId> + '_ {
        self.facts.at(location.0).map(|r| RegisterId(r as u32))
    }

    /// Whether a register is live directly after an operation of an edge.
    #[inline]
    pub fn is_live_after(&self, register: RegisterId, edge: EdgeId, operation: usize) -> bool {
        self.facts.holds(register.index(), self.flow.after(edge, operation))
    }

    /// The live ranges of a register, as ranges of points. The points of locations have lower numbers than the points inside atomic steps.
    pub fn ranges(&self, register: RegisterId) -> Vec<std::ops::Range<u32>> {
        self.facts.ranges(register.index())
    }

    /// The registers that are live before or inside each edge and dead after it, sorted by edge.
    pub fn ends(&self, limits: &Limits) -> Result<Vec<(EdgeId, RegisterId)>, Reason> {
        let ends = self.facts.ends(&self.flow, limits)?;
        Ok(ends.into_iter().map(|(edge, r)| (edge, RegisterId(r as u32))).collect())
    }
}

/// Two sets of registers: those that properties observe in every state, and those that properties or the task observe in final states.
fn observed(task: &Task<'_>, id: ThreadId) -> (Vec<bool>, Vec<bool>) {
    let registers = task.program.thread(id).registers.len();
    let mut everywhere = vec![false; registers];
    let mut at_end = vec![false; registers];
    for property in &task.properties {
        let (formula, set) = match &property.kind {
            PropertyKind::Never(f) => (f, &mut everywhere),
            PropertyKind::Finally(_, f) => (f, &mut at_end),
            PropertyKind::Assertions | PropertyKind::NoDeadlock => continue,
        };
        formula.for_each_leaf(&mut |leaf| match leaf {
            Observable::Register(t, r) if *t == id => set[r.index()] = true,
            _ => {}
        });
    }
    for observable in &task.observed {
        if let Observable::Register(t, r) = observable
            && *t == id
        {
            at_end[r.index()] = true;
        }
    }
    (everywhere, at_end)
}

/// The effects of all operations of a thread: an operation makes the registers that it reads live, and the register that it writes dead unless it
/// reads that register too.
fn accesses(thread: &Thread, flow: &Flow) -> Vec<Effect> {
    let mut effects = Vec::new();
    for (e, edge) in thread.edges.iter().enumerate() {
        for (n, op) in edge.action.ops().iter().enumerate() {
            let arc = flow.arc(EdgeId(e as u32), n);
            let effect = |r: RegisterId, holds: bool| Effect { arc, fact: r.0, holds };
            effects.extend(written_register(op).map(|r| effect(r, false)));
            for_each_read(op, &mut |r| effects.push(effect(r, true)));
        }
    }
    effects
}
