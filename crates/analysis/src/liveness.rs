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
    /// The live registers of a thread, for the properties of a task.
    pub fn new(task: &Task<'_>, id: ThreadId, limits: &Limits) -> Result<Self, Reason> {
        let thread = task.program.thread(id);
        let flow = Flow::new(thread);
        let (everywhere, at_end) = observed(task, id, thread.registers.len());
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
fn observed(task: &Task<'_>, id: ThreadId, registers: usize) -> (Vec<bool>, Vec<bool>) {
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
