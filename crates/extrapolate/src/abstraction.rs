//! Predicate abstraction of a program under SC, with counterexample-guided refinement: build a boolean program, check it, and add predicates if its
//! counterexample is spurious.
//!
//! A path of the boolean program to a violation is examined with exact integers. If it is feasible, it is a path of the program. If not, the
//! interpolants of the refutation become predicates; if all of them are known already, larger cubes may suffice.

use std::time::Instant;

use fencewright_memory::linear::{Constraint, Cube, Simple, truths, ways};
use fencewright_memory::{BufferMachine, Buffers, CellId, Command, Control, Linear, Outcome};
use fencewright_program::{EdgeId, Expr, Program, Property};
use fencewright_symbolic::cegar::path;
use fencewright_symbolic::examine::{self, Examined};
use fencewright_symbolic::search::live::LiveCells;
use fencewright_symbolic::search::reduced::Path;
use fencewright_verdict::{Limits, Progress, Reason, Task};

use super::LARGEST_CUBE;
use super::checker::{Checker, Found};
use super::entailment::Judge;
use super::program::{BooleanProgram, Size};
use super::vector::Vector;
use super::vocabulary::{Predicate, Vocabulary};

/// The precision of an abstraction: which cubes (conjunctions of literals) are enumerated, and whether predicates are added.
#[derive(Clone, Copy, Debug)]
pub struct Precision {
    /// Maximum number of literals per cube at present.
    pub cube_size: usize,
    /// As long as `cube_size` is less than this, refinement enlarges cubes; from then on, it first adds interpolants as predicates.
    pub cubes_first: usize,
    /// The value beyond which `cube_size` does not grow.
    pub most: usize,
    /// Whether interpolants of spurious paths become predicates.
    pub refined: bool,
}

impl Precision {
    /// The precision for a program under SC. If its file names predicates, cubes of two of them are tried before further predicates are added.
    pub fn under_sc(program: &Program) -> Self {
        let cubes_first = if program.hints.predicates.is_empty() { 1 } else { 2 };
        Precision { cube_size: 1, cubes_first, most: LARGEST_CUBE, refined: true }
    }
}

/// Statistics of the runs of an abstraction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Effort {
    /// The size of the last boolean program.
    pub size: Size,
    /// Seconds spent on building boolean programs, in all rounds.
    pub build_seconds: f64,
    /// Seconds spent on exploring boolean programs, in all rounds.
    pub check_seconds: f64,
    /// Number of states that the last search stored.
    pub states: u64,
    /// Memory use of the largest search, in bytes.
    pub bytes: u64,
}

/// The result of an abstraction.
pub enum Ended {
    /// No violation is reachable; the states of the boolean program are the proof.
    Proved(BooleanProgram, Vec<(Control, Vec<Vector>)>),
    /// A feasible path to a violation of the property with this index.
    Violated(usize, Path),
    /// Neither a proof nor a violation was found, for the given reason. If the last path leads to a violation that could not be excluded, the index
    /// is that of the violated property.
    Stuck(Option<usize>, Reason),
}

/// A predicate abstraction of a program, and its refinement loop.
pub struct Abstraction<'a> {
    machine: &'a BufferMachine<'a>,
    limits: &'a Limits,
    progress: &'a Progress,
    live: LiveCells,
    /// Cells whose predicates are kept even where the cells are dead; sorted.
    pub kept: Vec<CellId>,
    /// The predicates of the current round.
    pub predicates: Vec<Predicate>,
    /// Which cubes the current round enumerates, and whether it adds predicates.
    pub precision: Precision,
    /// Statistics so far.
    pub effort: Effort,
}

/// Maximum number of refinements; more refinements have never led to a proof.
const MOST_ROUNDS: usize = 100;

impl<'a> Abstraction<'a> {
    /// The abstraction of the program of a task by these predicates. The machine must be the SC machine of that program.
    pub fn new(
        machine: &'a BufferMachine<'a>,
        task: &Task<'_>,
        predicates: Vec<Predicate>,
        precision: Precision,
        limits: &'a Limits,
        progress: &'a Progress,
    ) -> Result<Self, Reason> {
        debug_assert!(machine.buffers == Buffers::Sc);
        let live = LiveCells::new(task, limits)?;
        let effort = Effort::default();
        Ok(Abstraction { machine, limits, progress, live, kept: Vec::new(), predicates, precision, effort })
    }

    /// Refines until these properties are proved, or one is violated or cannot be decided.
    pub fn run(&mut self, properties: &[Property]) -> Result<Ended, Reason> {
        for round in 1..=MOST_ROUNDS {
            let (predicates, size) = (self.predicates.len(), self.precision.cube_size);
            self.progress.say(format!("round {round}: {predicates} predicates, cubes of {size}"));
            let (program, found) = self.check(properties, self.predicates.clone())?;
            let (property, path) = match found {
                Found::Closed(states) => return Ok(Ended::Proved(program, states)),
                Found::Path(property, path) => (property, path),
            };
            let refused = match (self.examine(&path, property.map(|n| &properties[n])), property) {
                (Examined::Possible, Some(n)) => return Ok(Ended::Violated(n, path)),
                (Examined::Possible, None) => match &path.last().expect("a step led there").0.outcome {
                    Outcome::Beyond(what, span) => Reason::Unsupported(what.to_string(), Some(*span)),
                    Outcome::Control(_) => unreachable!("only such a step ends a path without a property"),
                },
                (Examined::Unknown, _) => unsupported("the solver gave up on a path"),
                (Examined::Impossible(interpolants), _) => match self.refine(&interpolants) {
                    true => continue,
                    false => {
                        unsupported("a path that cannot be taken remains, and no predicate rules it out")
                    }
                },
            };
            self.limits.exceeded(0).map_or(Ok(()), Err)?;
            return Ok(Ended::Stuck(property, refused));
        }
        Ok(Ended::Stuck(None, unsupported("more and more predicates rule out path after path")))
    }

    /// Builds one boolean program with these predicates, and explores it.
    pub fn check(
        &mut self,
        properties: &[Property],
        predicates: Vec<Predicate>,
    ) -> Result<(BooleanProgram, Found), Reason> {
        let size = self.precision.cube_size;
        let start = Instant::now();
        let mut judge = Judge::new(self.limits.budget());
        let vocabulary = Vocabulary::new(predicates, &mut judge, self.limits)?;
        let program = BooleanProgram::new(self.machine, vocabulary, size, &mut judge, self.limits)?;
        self.effort.build_seconds += start.elapsed().as_secs_f64();
        self.effort.size = program.size();
        let start = Instant::now();
        let mut checker =
            Checker::new(&program, self.machine, properties, (&self.live, &self.kept), size, self.limits);
        let found = checker.run(self.progress);
        self.effort.check_seconds += start.elapsed().as_secs_f64();
        self.effort.states = checker.states();
        self.effort.bytes = self.effort.bytes.max(checker.bytes());
        drop(checker);
        Ok((program, found?))
    }

    /// Removes predicates that the proof does not need, one by one, until a budget of queries is spent.
    pub fn minimise(&mut self, properties: &[Property]) -> Result<(), Reason> {
        const MOST_QUESTIONS: u64 = 2_000_000;
        let mut asked = 0;
        let mut n = self.predicates.len();
        while n > 0 && asked < MOST_QUESTIONS {
            n -= 1;
            let mut fewer = self.predicates.clone();
            fewer.remove(n);
            let (program, found) = self.check(properties, fewer.clone())?;
            asked += program.size().questions;
            if let Found::Closed(_) = found {
                self.predicates = fewer;
            }
        }
        Ok(())
    }

    fn examine(&self, path: &Path, property: Option<&Property>) -> Examined {
        let Some(property) = property else {
            let start = self.machine.initial_values();
            let steps = path.iter().map(|(step, way)| (step.commands.as_slice(), *way));
            let steps: Vec<(&[Command], Option<u32>)> =
                std::iter::once((start.as_slice(), Some(0))).chain(steps).collect();
            return examine::examine(&steps, &[], &self.limits.budget());
        };
        path::examine(self.machine, path, property, self.limits)
    }

    /// Adds the interpolants as predicates, if the precision is `refined` and cubes have at least the size `cubes_first`. If no predicate was added,
    /// allows larger cubes. Returns false if neither is possible.
    fn refine(&mut self, interpolants: &[Linear]) -> bool {
        if self.precision.refined && self.precision.cube_size >= self.precision.cubes_first {
            let before = self.predicates.len();
            for predicate in interpolants.iter().filter_map(Predicate::at_most) {
                add(&mut self.predicates, predicate);
            }
            if self.predicates.len() > before {
                return true;
            }
        }
        let larger = self.precision.cube_size < self.precision.most;
        self.precision.cube_size += usize::from(larger);
        larger
    }
}

fn unsupported(what: &str) -> Reason {
    Reason::Unsupported(what.into(), None)
}

/// Adds a predicate, unless it or its negation is already there.
pub fn add(predicates: &mut Vec<Predicate>, predicate: Predicate) {
    let same = |a: &Predicate, b: &Predicate, holds| a.cases(true) == b.cases(holds);
    if !predicates.iter().any(|p| same(p, &predicate, true) || same(p, &predicate, false)) {
        predicates.push(predicate);
    }
}

/// The initial predicates: those that the file suggests or, if there are none, the constraints in conditions of the program and in the properties.
pub fn suggested(
    program: &Program,
    properties: &[Property],
    limits: &Limits,
) -> Result<Vec<Predicate>, Reason> {
    let machine = BufferMachine::new(program, Buffers::Sc);
    let control = machine.initial();
    let mut predicates = Vec::new();
    for formula in &program.hints.predicates {
        Predicate::new(&machine.formula(&control, formula)).into_iter().for_each(|p| add(&mut predicates, p));
    }
    if !predicates.is_empty() {
        return Ok(predicates);
    }
    let formulas = properties.iter().filter_map(|property| property.formula());
    let formulas: Vec<Expr<_>> = formulas.map(|formula| machine.formula(&control, formula)).collect();
    let atoms: Cube = formulas.iter().flat_map(|e| truths(e, true)).flatten().collect();
    let mut conditions: Vec<Constraint> = atoms;
    for (thread, code) in program.threads() {
        for (n, edge) in code.edges.iter().enumerate() {
            let mut control = machine.initial();
            control.locations[thread.index()] = edge.from;
            let mut steps = Vec::new();
            machine.edge_steps(&control, thread, EdgeId(n as u32), &mut steps);
            for step in &steps {
                // Limits are polled in the inner loops, because an atomic block may have thousands of edges, each with thousands of cases.
                limits.exceeded(0).map_or(Ok(()), Err)?;
                let assumed = step.commands.iter().filter(|command| matches!(command, Command::Assume(_)));
                let simple = assumed.flat_map(|command| ways(std::slice::from_ref(command))).flatten();
                conditions.extend(simple.filter_map(|simple| match simple {
                    Simple::Assume(constraint) => Some(constraint),
                    _ => None,
                }));
            }
        }
    }
    for predicate in conditions.iter().filter_map(Constraint::at_most).filter_map(Predicate::at_most) {
        limits.exceeded(0).map_or(Ok(()), Err)?;
        add(&mut predicates, predicate);
    }
    Ok(predicates)
}
