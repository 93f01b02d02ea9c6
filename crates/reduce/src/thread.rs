//! Translates one thread of the original program `P` to the reduced program `P_M`: its locations, and the flushes at each of them.

use std::collections::BTreeSet;

use fencewright_kit::{Built, ThreadBuilder};
use fencewright_program::{
    Action, Edge, EdgeId, Expr, LocationId, MemoryModel, Op, Program, Register, RegisterId, Span, Thread,
    faults::both,
};

use crate::Unsupported;
use crate::bounds::Size;
use crate::forgotten::{self, Forgotten};
use crate::held::{Held, analyse};
use crate::queues::{Queues, plain_name};

/// Maximum number of operations in all edges of a thread.
const MOST_OPERATIONS: usize = 1 << 18;

/// Maximum number of places and counts in all buffers of a thread under PSO.
const MOST_PLACES: u64 = 1 << 13;

/// The meaning of an edge of `P_M` in `P`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The completion of the step along this edge of `P`.
    Step(EdgeId),
    /// A flush of the thread's buffer in `P`.
    Flush,
    /// None: the thread of `P` does not move.
    Silent,
    /// An overflow, after which `P` and `P_M` are unrelated.
    Overflow,
}

/// A thread of `P_M`, and its relation to the thread of `P`.
#[derive(Clone, Debug)]
pub(crate) struct ReducedThread {
    pub thread: Thread,
    /// The number of registers of the thread of `P`, which come first.
    pub registers: usize,
    /// For each location, the location of `P` that it stands for; `None` for the overflow location.
    pub locations: Vec<Option<LocationId>>,
    /// The meaning of each edge, in the order of the edges.
    pub origins: Vec<Origin>,
    /// The location after an overflow, if one is possible.
    pub overflow: Option<LocationId>,
    /// The locations after a fault: the one where the thread still flushes, and the one that it reaches when its buffers are empty, if these differ.
    pub faulted: Vec<LocationId>,
    pub queues: Queues,
    pub forgotten: Vec<Forgotten>,
}

/// A thread of `P_M` under construction.
pub(crate) struct Reducer<'p> {
    pub program: &'p Program,
    pub size: &'p Size,
    /// Whether any thread takes the lock. If none does, atomic steps never wait for the lock.
    pub locks: bool,
    pub thread: &'p Thread,
    pub builder: ThreadBuilder<Origin, Option<LocationId>>,
    pub queues: Queues,
    pub forgotten: Vec<Forgotten>,
    /// The location after a fault, if one is possible.
    pub faulted: Option<LocationId>,
    /// The location after an overflow, if an edge translated so far may overflow.
    overflow: Option<LocationId>,
    /// The register for temporary values, if one has been needed. It is 0 except within a step.
    pub seen: Option<RegisterId>,
    operations: usize,
}

/// The edge of `P` that is being translated, from a location of `P_M` with these bounds on the buffers.
#[derive(Clone, Copy)]
pub(crate) struct Site<'a> {
    pub from: LocationId,
    pub id: EdgeId,
    pub edge: &'a Edge,
    pub held: &'a Held,
}

/// The thread that behaves under SC like `thread` under `model`.
pub(crate) fn reduced(
    program: &Program,
    model: MemoryModel,
    size: &Size,
    locks: bool,
    thread: &Thread,
) -> Result<ReducedThread, Unsupported> {
    let analysis = analyse(program, model, size, thread)?;
    let places: u64 = analysis.most().values().map(|&places| u64::from(places) + 1).sum();
    if model == MemoryModel::Pso && places > MOST_PLACES {
        let why = format!("thread {} would have too many registers: smaller buffers may help", thread.name);
        return Err(Unsupported::new(why, None));
    }
    let mut builder = ThreadBuilder::like(thread, Some);
    // Every write is checked before it is made, so declared ranges are redundant.
    builder.registers.iter_mut().for_each(|register| register.range = None);
    let mut register = |name| {
        let name = unused(program, thread, &builder.registers, name);
        builder.register(name, None)
    };
    let queues = Queues::new(program, model, &analysis, &mut register);
    let cells: BTreeSet<u32> =
        analysis.at.iter().flatten().flat_map(|held| &held.forgotten).copied().collect();
    let forgotten = cells.into_iter().map(|cell| {
        let name = plain_name(program, cell);
        Forgotten { cell, some: register(format!("{name}_more")), last: register(format!("{name}_last")) }
    });
    let forgotten = forgotten.collect();
    let mut reducer = Reducer {
        program,
        size,
        locks,
        thread,
        builder,
        queues,
        forgotten,
        faulted: None,
        overflow: None,
        seen: None,
        operations: 0,
    };
    let mut faulted = Vec::new();
    if let Some(held) = &analysis.faulted {
        let place = reducer.builder.location(Some(thread.fault), None);
        reducer.faulted = Some(place);
        let ended = reducer.ends(place, held)?;
        faulted = vec![place, ended];
        faulted.dedup();
    }
    for (location, held) in analysis.at.iter().enumerate() {
        let Some(held) = held else { continue };
        reducer.location(LocationId(location as u32), held)?;
    }
    let overflow = reducer.overflow;
    let Reducer { builder, queues, forgotten, .. } = reducer;
    let Built { thread: new, origins, stand_for, .. } = builder.finish(thread.entry, thread.fault);
    let registers = thread.registers.len();
    let locations = stand_for;
    Ok(ReducedThread { thread: new, registers, locations, origins, overflow, faulted, queues, forgotten })
}

/// A name for a register or label similar to the given one and unused by everything visible to the thread.
fn unused(program: &Program, thread: &Thread, registers: &[Register], mut name: String) -> String {
    let taken = |name: &str| {
        registers.iter().any(|r| r.name == name)
            || thread.locations.iter().any(|l| l.labels.iter().any(|label| label == name))
            || program.variables.iter().any(|v| v.name == name)
            || program.threads.iter().any(|t| t.name == name)
    };
    while taken(&name) {
        name.push('_');
    }
    name
}

impl Reducer<'_> {
    /// Translates all edges from a location of `P`, and adds the flushes there. If lock operations leave the location, adds a copy for empty buffers.
    fn location(&mut self, at: LocationId, held: &Held) -> Result<(), Unsupported> {
        if self.thread.is_end(at) {
            self.ends(at, held)?;
            return Ok(());
        }
        let edges: Vec<(EdgeId, &Edge)> = self.thread.edges_from(at).collect();
        for &(id, edge) in &edges {
            self.edge(Site { from: at, id, edge, held })?;
        }
        self.flushes(at, held)?;
        let locking = |edge: &Edge| matches!(edge.action, Action::Lock | Action::Unlock);
        let Some(empty) = self.empty(held).filter(|_| edges.iter().any(|(_, e)| locking(e))) else {
            return Ok(());
        };
        // A single step cannot both take the lock and test the counts. So there is a copy of the location, entered when the buffers are empty. All
        // edges leave the copy too, so a thread that waits for the lock there has the same choices as at the location itself.
        let span = self.thread.locations[at.index()].span;
        let drained = self.builder.location(Some(at), span);
        self.add(at, drained, Action::Op(Op::Assume(empty)), Span::default(), Origin::Silent)?;
        for (id, edge) in edges {
            self.edge(Site { from: drained, id, edge, held: &Held::default() })?;
        }
        Ok(())
    }

    /// Adds the flushes at a location where the thread of `P` has ended or faulted. Returns the location that is entered when all counts are 0, at
    /// which the thread of `P_M` ends.
    fn ends(&mut self, at: LocationId, held: &Held) -> Result<LocationId, Unsupported> {
        let Some(empty) = self.empty(held) else { return Ok(at) };
        self.flushes(at, held)?;
        let ended = self.builder.copy_of(at, None);
        self.add(at, ended, Action::Op(Op::Assume(empty)), Span::default(), Origin::Silent)?;
        Ok(ended)
    }

    fn flushes(&mut self, at: LocationId, held: &Held) -> Result<(), Unsupported> {
        let mut ways = self.queues.flushes(self.program, held);
        if !held.forgotten.is_empty() {
            let chosen = self.seen();
            ways.extend(forgotten::flushes(self.program, &self.queues, &self.forgotten, held, chosen));
        }
        for way in ways {
            let ops = way.condition.map(Op::Assume).into_iter().chain(way.effects).collect();
            self.add(at, at, Action::Atomic { ops, drains: true }, Span::default(), Origin::Flush)?;
        }
        Ok(())
    }

    /// The condition that the buffers are empty; `None` if they are known to be.
    pub fn empty(&self, held: &Held) -> Option<Expr<RegisterId>> {
        both(self.queues.empty(held), forgotten::none(&self.forgotten, held))
    }

    /// Adds an edge; an error if the thread becomes too large.
    pub fn add(
        &mut self,
        from: LocationId,
        to: LocationId,
        action: Action,
        span: Span,
        origin: Origin,
    ) -> Result<(), Unsupported> {
        self.weigh(1 + action.ops().len())?;
        self.builder.edge(from, to, action, span, origin);
        Ok(())
    }

    /// Adds to the number of operations of the thread, in which copied expressions count too; an error if it exceeds `MOST_OPERATIONS`.
    pub fn weigh(&mut self, operations: usize) -> Result<(), Unsupported> {
        self.operations = self.operations.saturating_add(operations);
        if self.operations > MOST_OPERATIONS {
            let why = format!("thread {} becomes too large: smaller buffers may help", self.thread.name);
            return Err(Unsupported::new(why, None));
        }
        Ok(())
    }

    /// The register for a temporary value, which is created on the first call.
    pub fn seen(&mut self) -> RegisterId {
        *self.seen.get_or_insert_with(|| {
            let name = unused(self.program, self.thread, &self.builder.registers, "seen".into());
            self.builder.register(name, None)
        })
    }

    /// The location after an overflow. The thread can always move there, so no state after an overflow is final or a deadlock.
    pub fn overflow(&mut self) -> Result<LocationId, Unsupported> {
        if let Some(overflow) = self.overflow {
            return Ok(overflow);
        }
        let overflow = self.builder.location(None, None);
        let label = unused(self.program, self.thread, &self.builder.registers, "overflow".into());
        self.builder.label(overflow, &label);
        self.overflow = Some(overflow);
        self.add(overflow, overflow, Action::Op(Op::Skip), Span::default(), Origin::Silent)?;
        Ok(overflow)
    }
}
