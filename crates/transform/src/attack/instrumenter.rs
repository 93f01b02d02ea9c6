//! Instruments a thread: builds the reachable copies of its control-flow graph.

use std::collections::HashMap;

use fencewright_kit::accesses::is_inside;
use fencewright_kit::{Built, ThreadBuilder};
use fencewright_program::{
    Action, Address, EdgeId, LocationId, Op, Program, Range, RegisterId, Span, Thread, ThreadId, VariableId,
};

use super::auxiliary::Auxiliary;
use super::{Attack, Known, Notion, Origin, Unsupported};

/// A copy of a location in an instrumented thread: the original location, and the state of the attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CopiedLocation {
    /// Outside the cone: the thread runs as in the original program.
    Plain(LocationId),
    /// In the cone: the accesses of the thread are recorded.
    Cone(LocationId),
    /// At the edge that takes the lock for a section that has to conflict with the cone.
    Gate(Meeting, EdgeId),
    /// In a locked section that has to conflict with the cone; the flag says whether it has done so.
    Section(Meeting, bool, LocationId),
    /// The attacker has been delaying its stores since it took this edge.
    Delaying(EdgeId, LocationId),
    /// The attacker has performed the load of this attack, and does not move until the attack succeeds.
    Waiting(Attack),
    /// This attack has succeeded.
    Success(Attack),
}

/// A guess of how a locked section will conflict with the cone: with a store to a cell of this variable that the cone had accessed before the
/// section, or with a load of a cell that the cone had stored to. The index of an array element is in a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Meeting {
    /// The variable of the two conflicting accesses.
    pub variable: VariableId,
    /// Whether the conflicting access is a store.
    pub stores: bool,
}

/// A thread under instrumentation.
pub struct Instrumenter<'a> {
    /// The program that is instrumented.
    pub program: &'a Program,
    /// Robustness or freedom from triangular races.
    pub notion: Notion,
    /// The thread that is instrumented.
    pub id: ThreadId,
    /// The original code of that thread.
    pub code: &'a Thread,
    /// Facts about the attacks of the instrumented program.
    pub(super) known: Known<'a>,
    /// The auxiliary variables of the instrumented program.
    pub auxiliary: &'a Auxiliary,
    locations: HashMap<CopiedLocation, LocationId>,
    work: Vec<CopiedLocation>,
    builder: ThreadBuilder<Origin>,
    successes: Vec<(usize, LocationId)>,
}

impl<'a> Instrumenter<'a> {
    /// Starts with the locations of the original thread.
    pub(super) fn new(
        program: &'a Program,
        notion: Notion,
        id: ThreadId,
        known: Known<'a>,
        auxiliary: &'a Auxiliary,
    ) -> Self {
        let code = program.thread(id);
        let plain = || (0..code.locations.len() as u32).map(LocationId);
        Instrumenter {
            program,
            notion,
            id,
            code,
            known,
            auxiliary,
            locations: plain().map(|l| (CopiedLocation::Plain(l), l)).collect(),
            work: plain().map(CopiedLocation::Plain).collect(),
            builder: ThreadBuilder::like(code, |_| ()),
            successes: Vec::new(),
        }
    }

    /// Builds all edges; false if `stop` returned true.
    pub fn build(&mut self) -> Result<bool, Unsupported> {
        while let Some(copy) = self.work.pop() {
            if (self.known.stop)() {
                return Ok(false);
            }
            match copy {
                CopiedLocation::Plain(at) => {
                    for (id, edge) in self.code.edges_from(at) {
                        self.plain_edge(id, edge);
                        self.begin_attack(id, edge);
                    }
                }
                // A triangular race is complete when a second thread has written, so threads in the cone need not move.
                CopiedLocation::Cone(_) if self.notion == Notion::Triangular => {}
                CopiedLocation::Cone(at) => {
                    for (id, edge) in self.code.edges_from(at) {
                        self.cone_edge(id, edge);
                    }
                }
                CopiedLocation::Gate(meeting, id) => {
                    let edge = self.code.edge(id);
                    let to = CopiedLocation::Section(meeting, false, edge.to);
                    self.edge(copy, to, Action::Lock, Origin::Edge(id), edge.span);
                }
                CopiedLocation::Section(meeting, met, at) => {
                    for (id, edge) in self.code.edges_from(at) {
                        self.section_edge(meeting, met, id, edge);
                    }
                }
                CopiedLocation::Delaying(store, at) => {
                    for (id, edge) in self.code.edges_from(at) {
                        self.delaying_edge(store, id, edge)?;
                    }
                }
                CopiedLocation::Waiting(attack) => self.end_attack(attack),
                CopiedLocation::Success(attack) => {
                    let location = self.location(copy);
                    self.successes.push((self.known.numbers[&attack], location));
                }
            }
        }
        Ok(true)
    }

    /// The location of this copy, created on demand.
    fn location(&mut self, copy: CopiedLocation) -> LocationId {
        if let Some(&location) = self.locations.get(&copy) {
            return location;
        }
        let span = match copy {
            CopiedLocation::Cone(at)
            | CopiedLocation::Section(_, _, at)
            | CopiedLocation::Delaying(_, at) => self.code.locations[at.index()].span,
            _ => None,
        };
        let location = self.builder.location((), span);
        self.locations.insert(copy, location);
        self.work.push(copy);
        location
    }

    /// Adds an edge between two copies of locations.
    pub fn edge(
        &mut self,
        from: CopiedLocation,
        to: CopiedLocation,
        action: Action,
        origin: Origin,
        span: Span,
    ) {
        let from = self.location(from);
        let to = self.location(to);
        self.builder.edge(from, to, action, span, origin);
    }

    /// Adds an edge that performs all these operations atomically.
    pub fn atomic(
        &mut self,
        from: CopiedLocation,
        to: CopiedLocation,
        ops: Vec<Op>,
        origin: Origin,
        span: Span,
    ) {
        self.edge(from, to, Action::Atomic { ops, drains: true }, origin, span);
    }

    /// An auxiliary register, created on demand.
    pub fn register(&mut self, name: &str, range: Option<Range>) -> RegisterId {
        let own = self.code.registers.len();
        let known = self.builder.registers[own..].iter().position(|r| r.name == name);
        match known {
            Some(position) => RegisterId((own + position) as u32),
            None => self.builder.register(name.into(), range),
        }
    }

    /// The register that flags are loaded into.
    pub fn scratch(&mut self) -> RegisterId {
        self.register("%flag", None)
    }

    /// Whether the index of the address is computed, or is a constant that is not an index of the array.
    pub fn is_computed(&self, address: &Address) -> bool {
        !is_inside(self.program, address)
    }

    /// The finished thread; and for each attack that can succeed, the number of the attack and the location that its success reaches.
    pub fn finish(self) -> (Built<Origin>, Vec<(usize, LocationId)>) {
        (self.builder.finish(self.code.entry, self.code.fault), self.successes)
    }
}
