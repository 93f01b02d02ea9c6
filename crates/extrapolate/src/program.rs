//! Boolean programs: the abstraction of a program by the predicates of a vocabulary (EXTRA13 s. 4.1).
//!
//! A boolean program is made from the steps of the SC machine, edge by edge: a step lists commands on cells, with one case for each element of an
//! array and each fault, so that the semantics of the language is not duplicated here. The steps of an edge do not depend on the locations of other
//! threads, only on the holder of the lock. Edges with the same commands share their transformers.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use fencewright_memory::linear::{Simple, ways};
use fencewright_memory::{BufferMachine, Command, Control, Limitation, Outcome, Step, StepName};
use fencewright_program::{EdgeId, LocationId, Span, ThreadId};
use fencewright_verdict::{Limits, Reason};

use super::entailment::Judge;
use super::transformer::{Psi, Transformer, transformer};
use super::vector::{Literal, Vector};
use super::vocabulary::Vocabulary;

/// The holder of the lock, from the point of view of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    Nobody,
    Itself,
    Another,
}

const HOLDERS: [Holder; 3] = [Holder::Nobody, Holder::Itself, Holder::Another];

/// One case of an edge, for example one element of an array, or a fault.
#[derive(Clone, Debug)]
pub struct Case {
    /// The name of the step of the machine.
    pub name: StepName,
    /// The commands of the step on cells.
    pub commands: Vec<Command>,
    /// The target location, or why the machine does not represent it.
    pub to: Result<LocationId, (Limitation, Span)>,
    /// The index of its transformers in `BooleanProgram::transformers`.
    transformers: usize,
}

/// An edge: its cases, and the effect on the lock.
#[derive(Clone, Debug, Default)]
struct BooleanEdge {
    cases: Vec<Case>,
    /// For each of [`HOLDERS`], the holder after the edge; `None` if the edge is disabled.
    lock: [Option<Holder>; 3],
}

/// Size of a boolean program, and cost of its construction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Number of predicates, after equivalent ones were merged.
    pub predicates: usize,
    /// Number of different cubes with at least two literals.
    pub cubes: usize,
    /// Number of literals of the largest cube.
    pub cube_size: usize,
    /// Number of entailment queries made for the vocabulary and for the transformers.
    pub questions: u64,
}

/// A concurrent program over boolean variables.
#[derive(Debug)]
pub struct BooleanProgram {
    /// The predicates that its variables stand for.
    pub vocabulary: Vocabulary,
    /// The initial vectors, one for each branch of the initial values.
    pub initial: Vec<Vector>,
    edges: Vec<Vec<BooleanEdge>>,
    /// For each list of commands, the feasible branches with their numbers and transformers.
    transformers: Vec<Vec<(u32, Transformer)>>,
    size: Size,
}

impl BooleanProgram {
    /// The boolean program of a machine under SC, with cubes up to the given size.
    pub fn new(
        machine: &BufferMachine<'_>,
        vocabulary: Vocabulary,
        cube_size: usize,
        judge: &mut Judge,
        limits: &Limits,
    ) -> Result<Self, Reason> {
        let mut numbers: HashMap<Vec<Command>, usize> = HashMap::new();
        let edges = edges(machine, &mut numbers, limits)?;
        let mut lists: Vec<(Vec<Command>, usize)> = numbers.into_iter().collect();
        lists.sort_unstable_by_key(|(_, n)| *n);
        let work: Vec<(usize, u32, Vec<Simple>)> = lists
            .iter()
            .flat_map(|(commands, n)| (0..).zip(ways(commands)).map(move |(way, simple)| (*n, way, simple)))
            .collect();
        let mut transformers: Vec<Vec<(u32, Transformer)>> = vec![Vec::new(); lists.len()];
        for ((n, way, _), found) in work.iter().zip(all(&work, &vocabulary, cube_size, judge, limits)?) {
            transformers[*n].extend(found.map(|transformer| (*way, transformer)));
        }
        let mut initial = Vec::new();
        for way in ways(&machine.initial_values()) {
            let first = transformer(&way, &vocabulary, 0, judge, limits)?;
            let nothing = Vector::unknown(vocabulary.len());
            initial.extend(first.and_then(|first| first.apply(&vocabulary, &nothing)));
        }
        let mut program = BooleanProgram { vocabulary, initial, edges, transformers, size: Size::default() };
        let cubes = program.cubes();
        program.size = Size {
            predicates: program.vocabulary.len(),
            cubes: cubes.iter().filter(|cube| cube.len() > 1).count(),
            cube_size: cubes.iter().map(Vec::len).max().unwrap_or(0),
            questions: judge.questions,
        };
        Ok(program)
    }

    /// The size of the program, and the cost of its construction.
    pub fn size(&self) -> Size {
        self.size
    }

    /// The different cubes that occur in the program.
    pub fn cubes(&self) -> Vec<Vec<Literal>> {
        let psis = self.transformers.iter().flatten().flat_map(|(_, transformer)| transformer.psis());
        let mut cubes: Vec<Vec<Literal>> = psis.flat_map(Psi::cubes).collect();
        cubes.sort_unstable();
        cubes.dedup();
        cubes
    }

    /// The cases of an edge in a control state, with the holder of the lock afterwards; `None` if the edge is disabled.
    pub fn cases(
        &self,
        control: &Control,
        thread: ThreadId,
        edge: EdgeId,
    ) -> Option<(&[Case], Option<ThreadId>)> {
        let edge = &self.edges[thread.index()][edge.index()];
        let holder = match control.lock {
            None => Holder::Nobody,
            Some(holder) if holder == thread => Holder::Itself,
            Some(_) => Holder::Another,
        };
        let lock = match edge.lock[holder as usize]? {
            Holder::Nobody => None,
            Holder::Itself => Some(thread),
            Holder::Another => control.lock,
        };
        Some((&edge.cases, lock))
    }

    /// All cases of an edge, for every holder of the lock.
    pub fn all_cases(&self, thread: ThreadId, edge: EdgeId) -> &[Case] {
        &self.edges[thread.index()][edge.index()].cases
    }

    /// The branches of a case, with their numbers and transformers.
    pub fn ways(&self, case: &Case) -> &[(u32, Transformer)] {
        &self.transformers[case.transformers]
    }

    /// Breaks the program by exchanging true and false in all updates, so that a test can check whether the comparison detects this.
    #[cfg(test)]
    pub fn exchange_polarities(&mut self) {
        let updates = self.transformers.iter_mut().flatten().flat_map(|(_, way)| &mut way.updates);
        updates.for_each(|update| std::mem::swap(&mut update.plus, &mut update.minus));
    }

    /// A step of the machine, for use in a path.
    pub fn step(&self, case: &Case, next: &Control) -> Step {
        let outcome = match case.to {
            Ok(_) => Outcome::Control(next.clone()),
            Err((what, span)) => Outcome::Beyond(what, span),
        };
        Step { name: case.name, commands: case.commands.clone(), outcome }
    }
}

/// The edges of all threads. Assigns an index to each list of commands, and records it in `numbers`.
fn edges(
    machine: &BufferMachine<'_>,
    numbers: &mut HashMap<Vec<Command>, usize>,
    limits: &Limits,
) -> Result<Vec<Vec<BooleanEdge>>, Reason> {
    let threads = machine.program.threads.len() as u32;
    let mut edges = Vec::new();
    for (thread, code) in machine.program.threads() {
        let another = ThreadId((thread.0 + 1) % threads);
        let mut own = vec![BooleanEdge::default(); code.edges.len()];
        for (n, (edge, made)) in code.edges.iter().zip(&mut own).enumerate() {
            limits.exceeded(0).map_or(Ok(()), Err)?;
            let mut control = machine.initial();
            control.locations[thread.index()] = edge.from;
            for holder in HOLDERS {
                control.lock = match holder {
                    Holder::Nobody => None,
                    Holder::Itself => Some(thread),
                    Holder::Another if another != thread => Some(another),
                    Holder::Another => continue,
                };
                let mut steps = Vec::new();
                machine.edge_steps(&control, thread, EdgeId(n as u32), &mut steps);
                let after = steps.iter().find_map(|step| match &step.outcome {
                    Outcome::Control(next) => Some(next.lock),
                    Outcome::Beyond(..) => None,
                });
                made.lock[holder as usize] =
                    (!steps.is_empty()).then(|| match after.unwrap_or(control.lock) {
                        None => Holder::Nobody,
                        Some(holder) if holder == thread => Holder::Itself,
                        Some(_) => Holder::Another,
                    });
                if made.cases.is_empty() {
                    made.cases = steps.into_iter().map(|step| case(step, thread, numbers)).collect();
                }
            }
        }
        edges.push(own);
    }
    Ok(edges)
}

fn case(step: Step, thread: ThreadId, numbers: &mut HashMap<Vec<Command>, usize>) -> Case {
    let next = numbers.len();
    let transformers = *numbers.entry(step.commands.clone()).or_insert(next);
    let to = match step.outcome {
        Outcome::Control(next) => Ok(next.locations[thread.index()]),
        Outcome::Beyond(what, span) => Err((what, span)),
    };
    Case { name: step.name, commands: step.commands, to, transformers }
}

/// The transformers of all branches, computed on all cores; `None` for a branch whose assumptions contradict each other.
fn all(
    work: &[(usize, u32, Vec<Simple>)],
    vocabulary: &Vocabulary,
    cube_size: usize,
    judge: &mut Judge,
    limits: &Limits,
) -> Result<Vec<Option<Transformer>>, Reason> {
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get()).min(work.len().div_ceil(4));
    let next = AtomicUsize::new(0);
    let found = Mutex::new(vec![None; work.len()]);
    let worker = || -> Result<u64, Reason> {
        let mut judge = Judge::new(limits.budget());
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            let Some((_, _, way)) = work.get(n) else { return Ok(judge.questions) };
            let made = transformer(way, vocabulary, cube_size, &mut judge, limits);
            let made = made.inspect_err(|_| next.store(work.len(), Ordering::Relaxed))?;
            found.lock().expect("no worker panics while it holds the list")[n] = made;
        }
    };
    let results: Vec<Result<u64, Reason>> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..workers)
            .filter_map(|_| std::thread::Builder::new().spawn_scoped(scope, worker).ok())
            .collect();
        let mut results = vec![worker()];
        results.extend(others.into_iter().map(|other| other.join().expect("a worker ends by itself")));
        results
    });
    for questions in results {
        judge.questions += questions?;
    }
    Ok(found.into_inner().expect("no worker panics while it holds the list"))
}
