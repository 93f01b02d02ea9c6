//! The control-flow graph of an instrumented thread: copies of the original one, as far as they can be reached.

use std::collections::HashMap;

use fencewright_program::{
    Action, Address, Edge, EdgeId, Init, Location, LocationId, Op, Program, Range, Register, RegisterId,
    Span, Thread, ThreadId, VariableId,
};

use super::auxiliary::Auxiliary;
use super::{Attack, Known, Notion, Origin, Unsupported};

/// A location of an instrumented thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// As in the original program.
    Plain(LocationId),
    /// In the cone.
    Cone(LocationId),
    /// About to take the lock at this edge, for a section that is to meet the cone.
    Gate(Meeting, EdgeId),
    /// In a locked section that is to meet the cone, or that has met it.
    Section(Meeting, bool, LocationId),
    /// Delaying stores since this edge.
    Delaying(EdgeId, LocationId),
    /// The load of this attack has been performed.
    Waiting(Attack),
    /// This attack has succeeded.
    Success(Attack),
}

/// How a locked section will meet the cone: with a store to this variable (to a cell that was touched before the section), or with a load
/// (of one that was stored to). Which element of an array is in a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Meeting {
    /// The variable.
    pub variable: VariableId,
    /// Whether with a store.
    pub stores: bool,
}

/// A finished thread.
pub struct Built {
    /// The thread.
    pub thread: Thread,
    /// What its edges stand for.
    pub origins: Vec<Origin>,
    /// Where attacks succeed.
    pub successes: Vec<(usize, LocationId)>,
}

/// A graph under construction.
pub struct Graph<'a> {
    /// The original program.
    pub program: &'a Program,
    /// What is asked.
    pub notion: Notion,
    /// The thread.
    pub id: ThreadId,
    /// Its original code.
    pub code: &'a Thread,
    /// All attacks of the instrumented program.
    pub(super) known: Known<'a>,
    /// The additional variables.
    pub auxiliary: &'a Auxiliary,
    places: HashMap<Place, LocationId>,
    work: Vec<Place>,
    locations: Vec<Location>,
    edges: Vec<(Edge, Origin)>,
    registers: Vec<Register>,
    successes: Vec<(usize, LocationId)>,
}

impl<'a> Graph<'a> {
    /// A graph with the locations of the original thread.
    pub(super) fn new(
        program: &'a Program,
        notion: Notion,
        id: ThreadId,
        known: Known<'a>,
        auxiliary: &'a Auxiliary,
    ) -> Self {
        let code = program.thread(id);
        let plain = || (0..code.locations.len() as u32).map(LocationId);
        Graph {
            program,
            notion,
            id,
            code,
            known,
            auxiliary,
            places: plain().map(|l| (Place::Plain(l), l)).collect(),
            work: plain().map(Place::Plain).collect(),
            locations: code.locations.clone(),
            edges: Vec::new(),
            registers: code.registers.clone(),
            successes: Vec::new(),
        }
    }

    /// Builds all edges; false if it was stopped.
    pub fn build(&mut self) -> Result<bool, Unsupported> {
        while let Some(place) = self.work.pop() {
            if (self.known.stop)() {
                return Ok(false);
            }
            match place {
                Place::Plain(at) => {
                    for (id, edge) in self.code.edges_from(at) {
                        self.plain_edge(id, edge);
                        self.begin_attack(id, edge);
                    }
                }
                // A triangular race is complete when a second thread has written.
                Place::Cone(_) if self.notion == Notion::Triangular => {}
                Place::Cone(at) => {
                    for (id, edge) in self.code.edges_from(at) {
                        self.cone_edge(id, edge);
                    }
                }
                Place::Gate(meeting, id) => {
                    let edge = self.code.edge(id);
                    let to = Place::Section(meeting, false, edge.to);
                    self.edge(place, to, Action::Lock, Origin::Edge(id), edge.span);
                }
                Place::Section(meeting, met, at) => {
                    for (id, edge) in self.code.edges_from(at) {
                        self.section_edge(meeting, met, id, edge);
                    }
                }
                Place::Delaying(store, at) => {
                    for (id, edge) in self.code.edges_from(at) {
                        self.delaying_edge(store, id, edge)?;
                    }
                }
                Place::Waiting(attack) => self.end_attack(attack),
                Place::Success(attack) => {
                    let location = self.place(place);
                    self.successes.push((self.known.numbers[&attack], location));
                }
            }
        }
        Ok(true)
    }

    /// The location of a place, which is made if there is none.
    fn place(&mut self, place: Place) -> LocationId {
        if let Some(&location) = self.places.get(&place) {
            return location;
        }
        let location = LocationId(self.locations.len() as u32);
        let span = match place {
            Place::Cone(at) | Place::Section(_, _, at) | Place::Delaying(_, at) => {
                self.code.locations[at.index()].span
            }
            _ => None,
        };
        self.locations.push(Location { span, ..Location::default() });
        self.places.insert(place, location);
        self.work.push(place);
        location
    }

    /// Adds an edge.
    pub fn edge(&mut self, from: Place, to: Place, action: Action, origin: Origin, span: Span) {
        let from = self.place(from);
        let to = self.place(to);
        self.edges.push((Edge { from, to, action, span }, origin));
    }

    /// Adds an edge that performs all these operations at once.
    pub fn atomic(&mut self, from: Place, to: Place, ops: Vec<Op>, origin: Origin, span: Span) {
        self.edge(from, to, Action::Atomic { ops, drains: true }, origin, span);
    }

    /// A register for bookkeeping, made when it is first asked for.
    pub fn register(&mut self, name: &str, range: Option<Range>) -> RegisterId {
        let own = self.code.registers.len();
        let known = self.registers[own..].iter().position(|r| r.name == name);
        let position = known.map(|p| own + p).unwrap_or_else(|| {
            self.registers.push(Register { name: name.into(), init: Init::Value(0), range });
            self.registers.len() - 1
        });
        RegisterId(position as u32)
    }

    /// The register that flags are loaded into.
    pub fn scratch(&mut self) -> RegisterId {
        self.register("%flag", None)
    }

    /// Whether the address is not known beforehand, or may be outside its array.
    pub fn is_computed(&self, address: &Address) -> bool {
        let indices = self.program.variables[address.variable.index()].indices;
        let inside = |i: i64| indices.is_none_or(|range| range.contains(i));
        address.index.as_ref().is_some_and(|index| !index.constant().is_some_and(inside))
    }

    /// The finished thread.
    pub fn finish(mut self) -> Built {
        self.edges.sort_by_key(|(edge, _)| edge.from);
        let mut first = 0;
        for (n, location) in self.locations.iter_mut().enumerate() {
            let mut last = first;
            while self.edges.get(last).is_some_and(|(e, _)| e.from.index() == n) {
                last += 1;
            }
            (location.first_edge, location.last_edge) = (first as u32, last as u32);
            first = last;
        }
        let (edges, origins) = self.edges.into_iter().unzip();
        let thread = Thread {
            name: self.code.name.clone(),
            registers: self.registers,
            locations: self.locations,
            entry: self.code.entry,
            edges,
            fault: self.code.fault,
            family: self.code.family.clone(),
        };
        Built { thread, origins, successes: self.successes }
    }
}
