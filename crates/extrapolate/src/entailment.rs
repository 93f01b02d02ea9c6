//! Entailment between conjunctions of predicates: the queries made while a boolean program is constructed.
//!
//! Almost all predicates are differences of two cells and a constant. Their conjunction is a closed difference bound matrix, which grows literal by
//! literal during the enumeration of cubes, so that a query is a look-up of a bound. For a predicate that is a disjunction (`x != 0`) there are
//! several such matrices, one for each disjunct; each is called a *world*. If a constraint is not a difference, a solver answers the query, and its
//! answer is cached.

use std::collections::HashMap;

use fencewright_memory::{CellId, Linear};
use fencewright_smt::{Answer, Budget, Formula, Native, Solver, Var};
use fencewright_symbolic::domain::bounds::{MOST, NONE, bound};

/// A constraint `linear <= 0`, with its form in a difference-bound matrix if it has one.
#[derive(Clone, Debug)]
pub struct Fact {
    linear: Linear,
    shape: Shape,
}

#[derive(Clone, Copy, Debug)]
enum Shape {
    /// The cell with index i minus the cell with index j is at most the constant.
    Difference(usize, usize, i32),
    /// A constraint without cells, which is true or false.
    Constant(bool),
    /// Any other constraint; the solver handles it.
    General,
}

/// A conjunction of constraints.
pub type Conjunction = Vec<Fact>;

/// A disjunction of conjunctions of constraints: disjunctive normal form.
pub type Disjunction = Vec<Conjunction>;

/// The mapping from cells to matrix indices; index 0 is the constant 0.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    indices: HashMap<CellId, usize>,
}

impl Frame {
    /// The dimension of a matrix for the cells that have an index so far.
    pub fn size(&self) -> usize {
        self.indices.len() + 1
    }

    fn index(&mut self, cell: Option<CellId>) -> usize {
        let next = self.size();
        cell.map_or(0, |cell| *self.indices.entry(cell).or_insert(next))
    }

    /// Prepares a constraint; new cells get an index.
    pub fn fact(&mut self, linear: &Linear) -> Fact {
        let bounded = linear.constant.checked_neg().filter(|c| c.abs() <= MOST).map(|c| c as i32);
        let shape = match (linear.difference(), bounded) {
            (Some((None, None)), _) => Shape::Constant(linear.constant <= 0),
            (Some((x, y)), Some(c)) => Shape::Difference(self.index(x), self.index(y), c),
            _ => Shape::General,
        };
        Fact { linear: linear.clone(), shape }
    }

    /// Prepares a disjunction of conjunctions of constraints.
    pub fn disjunction<'l>(&mut self, cubes: impl IntoIterator<Item = &'l Vec<Linear>>) -> Disjunction {
        cubes.into_iter().map(|cube| cube.iter().map(|linear| self.fact(linear)).collect()).collect()
    }

    /// The world without constraints, for the cells that have an index so far.
    pub fn world<'f>(&self) -> World<'f> {
        let size = self.size();
        let mut matrix = vec![NONE; size * size];
        (0..size).for_each(|i| matrix[i * size + i] = 0);
        World { size, matrix, facts: Vec::new(), general: false }
    }
}

/// A conjunction of constraints: the closed matrix of its difference constraints, and the list of all its constraints.
#[derive(Clone)]
pub struct World<'f> {
    size: usize,
    matrix: Vec<i32>,
    facts: Vec<&'f Fact>,
    /// Whether some of the facts are not differences.
    general: bool,
}

/// Answers queries, and counts them.
pub struct Judge {
    budget: Budget,
    /// Cached answers of the solver: for each conjunction, whether it is unsatisfiable.
    answers: HashMap<Vec<Linear>, bool>,
    /// The number of queries so far.
    pub questions: u64,
}

/// Maximum number of cached answers of the solver.
const MOST_REMEMBERED: usize = 200_000;

/// Maximum number of worlds of a cube; nothing is concluded from cubes with more worlds.
pub const MOST_WORLDS: usize = 64;

impl Judge {
    /// A judge whose solver has this budget per query.
    pub fn new(budget: Budget) -> Self {
        Judge { budget, answers: HashMap::new(), questions: 0 }
    }

    /// Conjoins a disjunction to the worlds. Returns the satisfiable worlds.
    pub fn assume<'f>(&mut self, worlds: &[World<'f>], cases: &'f [Conjunction]) -> Vec<World<'f>> {
        self.questions += 1;
        let mut remaining = Vec::with_capacity(worlds.len());
        for world in worlds {
            for case in cases {
                let mut world = world.clone();
                if self.add(&mut world, case) {
                    remaining.push(world);
                }
            }
        }
        remaining
    }

    /// Whether the disjunction contradicts all worlds, so that they entail its negation.
    pub fn excludes(&mut self, worlds: &[World<'_>], cases: &[Conjunction]) -> bool {
        self.questions += 1;
        worlds.iter().all(|world| cases.iter().all(|case| self.contradicts(world, case)))
    }

    /// Adds a conjunction to a world. Returns false if the result is contradictory.
    fn add<'f>(&mut self, world: &mut World<'f>, case: &'f [Fact]) -> bool {
        let possible = case.iter().all(|fact| match fact.shape {
            Shape::Difference(i, j, c) => bound(&mut world.matrix, world.size, i, j, c),
            Shape::Constant(holds) => holds,
            Shape::General => true,
        });
        if !possible {
            return false;
        }
        world.facts.extend(case);
        let new = case.iter().any(|fact| matches!(fact.shape, Shape::General));
        world.general |= new;
        !world.general || !(new || touches_general(world, case)) || !self.unsatisfiable(&world.facts, &[])
    }

    fn contradicts(&mut self, world: &World<'_>, case: &[Fact]) -> bool {
        let at_once = match case {
            [] => false,
            [fact] => match fact.shape {
                Shape::Difference(i, j, c) => {
                    let back = world.matrix[j * world.size + i];
                    back != NONE && i64::from(back) + i64::from(c) < 0
                }
                Shape::Constant(holds) => !holds,
                Shape::General => false,
            },
            several => {
                let mut matrix = world.matrix.clone();
                !several.iter().all(|fact| match fact.shape {
                    Shape::Difference(i, j, c) => bound(&mut matrix, world.size, i, j, c),
                    Shape::Constant(holds) => holds,
                    Shape::General => true,
                })
            }
        };
        let general = case.iter().any(|fact| matches!(fact.shape, Shape::General));
        at_once
            || (general || world.general && touches_general(world, case))
                && self.unsatisfiable(&world.facts, case)
    }

    /// Asks the solver whether the conjunction is unsatisfiable.
    fn unsatisfiable(&mut self, known: &[&Fact], more: &[Fact]) -> bool {
        let mut key: Vec<Linear> =
            known.iter().copied().chain(more).map(|fact| fact.linear.clone()).collect();
        key.sort_unstable();
        key.dedup();
        if let Some(&answer) = self.answers.get(&key) {
            return answer;
        }
        let formula = |linear: &Linear| {
            let terms: Vec<(i64, Var)> = linear.terms.iter().map(|&(cell, c)| (c, Var(cell))).collect();
            let form = fencewright_smt::Linear::sum(terms, linear.constant);
            Formula::le(form, fencewright_smt::Linear::constant(0))
        };
        let assertions: Vec<Formula> = key.iter().map(formula).collect();
        let answer = matches!(Native::new().check(&assertions, &self.budget), Answer::Unsat(_));
        if self.answers.len() >= MOST_REMEMBERED {
            self.answers.clear();
        }
        self.answers.insert(key, answer);
        answer
    }
}

/// Whether a conjunction shares a cell with a non-difference constraint of the world. If not, the matrix has all consequences for its cells, except
/// for consequences via further cells, which are not searched for.
fn touches_general(world: &World<'_>, case: &[Fact]) -> bool {
    let mentions = |fact: &Fact, cell: CellId| fact.linear.terms.iter().any(|&(c, _)| c == cell);
    let general = |fact: &&&Fact| matches!(fact.shape, Shape::General);
    let cells = || case.iter().flat_map(|fact| fact.linear.terms.iter().map(|&(cell, _)| cell));
    world.facts.iter().filter(general).any(|fact| cells().any(|cell| mentions(fact, cell)))
}
