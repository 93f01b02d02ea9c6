//! The three-valued model checker for concurrent boolean programs (EXTRA13 s. 6.1).
//!
//! A state is a control state with a vector over {0, 1, *}. There is no case splitting: a condition of the program is a conjunction of constraints,
//! because a disjunction has become several branches of its statement. The transformer sets predicates that are `*` to 0 or 1 where its cubes
//! determine them. So every branch of a step leads from a state to at most one state, each literal of which follows from literals before the step.
//! Therefore the states can serve as a certificate without case distinctions.
//!
//! A state that is covered by a more general one is dropped (merged into it), before or after it is expanded. Literals of predicates over dead cells
//! are dropped.

use std::collections::{HashMap, VecDeque};
use std::mem::take;
use std::sync::atomic::Ordering;

use fencewright_memory::linear::ways;
use fencewright_memory::{BufferMachine, CellId, Command, Control};
use fencewright_program::{EdgeId, Property, ThreadId};
use fencewright_symbolic::search::live::LiveCells;
use fencewright_symbolic::search::reduced::Path;
use fencewright_verdict::{Limits, Progress, Reason, discard};

use super::entailment::Judge;
use super::program::{BooleanProgram, Case};
use super::transformer::{Transformer, transformer};
use super::vector::{Literal, Vector};

/// The result of a search.
pub enum Found {
    /// All reachable states: each reachable control state with the vectors that represent its states.
    Closed(Vec<(Control, Vec<Vector>)>),
    /// A path to a state that may violate the property with this index; without an index, a path that ends with a step that the machine does not
    /// represent.
    Path(Option<usize>, Path),
}

/// The state of a search of a boolean program.
pub struct Checker<'a> {
    program: &'a BooleanProgram,
    machine: &'a BufferMachine<'a>,
    properties: &'a [Property],
    live: &'a LiveCells,
    /// Cells whose predicates are always kept, sorted.
    kept: &'a [CellId],
    cube_size: usize,
    limits: &'a Limits,
    judge: Judge,
    places: Vec<Place>,
    numbers: HashMap<Control, usize>,
    nodes: Vec<Node>,
    frontier: VecDeque<usize>,
    /// Cached transformers of the conditions under which a property is violated.
    conditions: HashMap<Command, Vec<Transformer>>,
    bytes: u64,
}

/// A control state, with its states and the facts about it that do not depend on vectors.
struct Place {
    control: Control,
    /// The states that no other state covers.
    nodes: Vec<usize>,
    /// The literals of predicates whose cells are live.
    live: Vector,
    /// For each property, the conditions under which it is violated here.
    violations: Vec<(usize, Command)>,
}

struct Node {
    place: usize,
    vector: Vector,
    /// The predecessor, and the thread, edge, case and branch taken; `None` for an initial state.
    parent: Option<(usize, Taken)>,
    covered: bool,
}

#[derive(Clone, Copy)]
struct Taken {
    thread: ThreadId,
    edge: EdgeId,
    case: usize,
    way: u32,
}

impl<'a> Checker<'a> {
    /// A search of a boolean program made from this machine with cubes of this size. Predicates over `kept` cells are kept even where the cells are
    /// dead.
    pub fn new(
        program: &'a BooleanProgram,
        machine: &'a BufferMachine<'a>,
        properties: &'a [Property],
        (live, kept): (&'a LiveCells, &'a [CellId]),
        cube_size: usize,
        limits: &'a Limits,
    ) -> Self {
        let judge = Judge::new(limits.budget());
        Checker {
            program,
            machine,
            properties,
            live,
            kept,
            cube_size,
            limits,
            judge,
            places: Vec::new(),
            numbers: HashMap::new(),
            nodes: Vec::new(),
            frontier: VecDeque::new(),
            conditions: HashMap::new(),
            bytes: 0,
        }
    }

    /// The number of stored states.
    pub fn states(&self) -> u64 {
        self.nodes.len() as u64
    }

    /// Memory use in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Searches breadth first, until a state may violate a property.
    pub fn run(&mut self, progress: &Progress) -> Result<Found, Reason> {
        let program = self.program;
        for vector in &program.initial {
            if let Some(found) = self.reach(self.machine.initial(), vector.clone(), None)? {
                return Ok(found);
            }
        }
        let mut expanded = 0u64;
        while let Some(n) = self.frontier.pop_front() {
            expanded += 1;
            if expanded.is_multiple_of(64) {
                progress.states.store(self.nodes.len() as u64, Ordering::Relaxed);
                progress.frontier.store(self.frontier.len() as u64, Ordering::Relaxed);
                progress.bytes.store(self.bytes, Ordering::Relaxed);
            }
            if expanded.is_multiple_of(8) {
                self.limits.exceeded(self.bytes).map_or(Ok(()), Err)?;
            }
            if !self.nodes[n].covered
                && let Some(found) = self.expand(n)?
            {
                return Ok(found);
            }
        }
        let states = self.places.iter().map(|place| {
            let vectors = place.nodes.iter().map(|&n| self.nodes[n].vector.clone());
            (place.control.clone(), vectors.collect())
        });
        Ok(Found::Closed(states.collect()))
    }

    fn expand(&mut self, n: usize) -> Result<Option<Found>, Reason> {
        let program = self.program;
        let control = self.places[self.nodes[n].place].control.clone();
        for (thread, code) in self.machine.program.threads() {
            for (edge, _) in code.edges_from(control.locations[thread.index()]) {
                let Some((cases, lock)) = program.cases(&control, thread, edge) else { continue };
                for (number, case) in cases.iter().enumerate() {
                    for (way, transformer) in program.ways(case) {
                        let Some(after) = transformer.apply(&program.vocabulary, &self.nodes[n].vector)
                        else {
                            continue;
                        };
                        let taken = Taken { thread, edge, case: number, way: *way };
                        let Ok(to) = case.to else {
                            let mut path = self.path(n);
                            path.push((program.step(case, &control), Some(*way)));
                            return Ok(Some(Found::Path(None, path)));
                        };
                        let mut next = control.clone();
                        next.locations[thread.index()] = to;
                        next.lock = lock;
                        if let Some(found) = self.reach(next, after, Some((n, taken)))? {
                            return Ok(Some(found));
                        }
                        if self.nodes[n].covered {
                            return Ok(None);
                        }
                    }
                }
            }
        }
        Ok(None)
    }

    /// Stores a state, unless it is covered. Returns a path if the state may violate a property.
    fn reach(
        &mut self,
        control: Control,
        mut vector: Vector,
        parent: Option<(usize, Taken)>,
    ) -> Result<Option<Found>, Reason> {
        let place = self.place(control);
        vector.restrict(&self.places[place].live);
        let nodes = &self.nodes;
        if self.places[place].nodes.iter().any(|&n| nodes[n].vector.covers(&vector)) {
            return Ok(None);
        }
        let new = self.nodes.len();
        let mut kept = Vec::with_capacity(self.places[place].nodes.len() + 1);
        for &n in &self.places[place].nodes {
            if vector.covers(&self.nodes[n].vector) {
                self.nodes[n].covered = true;
            } else {
                kept.push(n);
            }
        }
        kept.push(new);
        self.places[place].nodes = kept;
        self.bytes += (size_of::<Node>() + vector.bytes() + 2 * size_of::<usize>()) as u64;
        self.nodes.push(Node { place, vector, parent, covered: false });
        self.frontier.push_back(new);
        for (property, condition) in self.places[place].violations.clone() {
            if self.is_possible(condition, new)? {
                return Ok(Some(Found::Path(Some(property), self.path(new))));
            }
        }
        Ok(None)
    }

    fn place(&mut self, control: Control) -> usize {
        if let Some(&place) = self.numbers.get(&control) {
            return place;
        }
        let place = self.places.len();
        let cells = self.live.of(self.machine, &control);
        let vocabulary = &self.program.vocabulary;
        let is_live = |literal: &Literal| {
            let predicate = &vocabulary.predicates()[literal.predicate()];
            let matters = |cell| cells.binary_search(cell).is_ok() || self.kept.binary_search(cell).is_ok();
            predicate.cells().iter().all(matters)
        };
        let live = Vector::of(vocabulary.len(), vocabulary.literals().filter(is_live));
        let violation = |(n, property): (usize, &Property)| {
            let condition = self.machine.violation(&control, property)?;
            (condition.constant() != Some(0)).then_some((n, Command::Assume(condition)))
        };
        let violations = self.properties.iter().enumerate().filter_map(violation).collect();
        self.bytes += (size_of::<Place>() + 2 * size_of::<Control>() + live.bytes()) as u64;
        self.numbers.insert(control.clone(), place);
        self.places.push(Place { control, nodes: Vec::new(), live, violations });
        place
    }

    /// Whether a condition may hold in a state.
    fn is_possible(&mut self, condition: Command, n: usize) -> Result<bool, Reason> {
        let vocabulary = &self.program.vocabulary;
        if !self.conditions.contains_key(&condition) {
            let mut made = Vec::new();
            for way in ways(std::slice::from_ref(&condition)) {
                made.extend(transformer(&way, vocabulary, self.cube_size, &mut self.judge, self.limits)?);
            }
            self.conditions.insert(condition.clone(), made);
        }
        let vector = &self.nodes[n].vector;
        Ok(self.conditions[&condition].iter().any(|way| way.apply(vocabulary, vector).is_some()))
    }

    /// The path to a state, as steps of the machine.
    fn path(&self, end: usize) -> Path {
        let mut path = Path::new();
        let mut node = &self.nodes[end];
        while let Some((before, taken)) = node.parent {
            let case: &Case = &self.program.all_cases(taken.thread, taken.edge)[taken.case];
            path.push((self.program.step(case, &self.places[node.place].control), Some(taken.way)));
            node = &self.nodes[before];
        }
        path.reverse();
        path
    }
}

impl Drop for Checker<'_> {
    fn drop(&mut self) {
        let states = (take(&mut self.nodes), take(&mut self.places), take(&mut self.numbers));
        discard(self.bytes, (states, take(&mut self.conditions)));
    }
}
