//! Abstract transformers of statements (EXTRA13 s. 4.1, Figs. 6 and 7).
//!
//! For one branch of a statement, with assumption A and assignments to cells, and for a predicate p, whose weakest precondition under the assignments
//! is wp(p):
//!
//! ```text
//! psi+(p) = the disjunction of the cubes c with  c and A  =>  wp(p)
//! psi-(p) = the disjunction of the cubes c with  c and A  =>  wp(not p)
//! p := choose(psi+, psi-)        1 where psi+ holds, 0 where psi- holds, * elsewhere
//! ```
//!
//! Cubes are conjunctions of literals up to a maximum size, enumerated by increasing size, without cubes that contain a smaller one
//! (BUILDBOUNDEDCUBES). With size 1 this is Fig. 6b, whose cubes are single predicates. The assumption A itself is abstracted to the negation of the
//! disjunction of all cubes that contradict A: the branch is infeasible where such a cube holds.
//!
//! Only predicates that mention a cell that the statement assigns or assumes can change (cone of influence). A cube without redundant literals is
//! connected with p by shared cells, directly or via A or its other literals. So only such cubes are tried.

use std::collections::HashMap;

use fencewright_memory::arithmetic::AUXILIARY;
use fencewright_memory::linear::Simple;
use fencewright_memory::{CellId, Linear};
use fencewright_symbolic::domain::predicates::execute;
use fencewright_verdict::{Limits, Reason};
use fixedbitset::FixedBitSet;

use super::entailment::{Disjunction, Frame, Judge, MOST_WORLDS, World};
use super::vector::{Literal, Vector};
use super::vocabulary::Vocabulary;

/// A disjunction of cubes, none of which contains another one.
#[derive(Clone, Debug)]
pub struct Psi {
    /// Whether the disjunction contains the empty cube, so that it is true.
    pub always: bool,
    /// The cubes with one literal.
    pub single: Vector,
    /// The cubes with at least two literals.
    pub larger: Vec<Box<[Literal]>>,
}

impl Psi {
    /// The empty disjunction.
    fn never(predicates: usize) -> Self {
        Psi { always: false, single: Vector::unknown(predicates), larger: Vec::new() }
    }

    /// Whether one of the cubes holds in all valuations of a state.
    pub fn holds(&self, vector: &Vector) -> bool {
        let holds = |cube: &[Literal]| cube.iter().all(|literal| vector.contains(*literal));
        self.always || self.single.meets(vector) || self.larger.iter().any(|cube| holds(cube))
    }

    /// Whether one of the cubes is a subset of the given one.
    fn subsumes(&self, cube: &[Literal]) -> bool {
        let part = |smaller: &[Literal]| smaller.iter().all(|literal| cube.contains(literal));
        self.always
            || cube.iter().any(|literal| self.single.contains(*literal))
            || self.larger.iter().any(|smaller| part(smaller))
    }

    fn add(&mut self, cube: &[Literal]) {
        match cube {
            [] => self.always = true,
            [literal] => self.single.insert(*literal),
            cube => self.larger.push(cube.into()),
        }
    }

    /// The cubes of the disjunction.
    pub fn cubes(&self) -> Vec<Vec<Literal>> {
        let empty = self.always.then(Vec::new);
        let single = self.single.literals().map(|literal| vec![literal]);
        empty.into_iter().chain(single).chain(self.larger.iter().map(|cube| cube.to_vec())).collect()
    }
}

/// The new value of a predicate: `choose(psi+, psi-)`.
#[derive(Clone, Debug)]
pub struct Update {
    /// The index of the predicate in the vocabulary.
    pub predicate: usize,
    /// Whether the value becomes `*` if neither `plus` nor `minus` holds. If false, the predicate then keeps its value.
    pub assigned: bool,
    /// A sufficient condition for the predicate to hold afterwards.
    pub plus: Psi,
    /// A sufficient condition for the predicate to be false afterwards.
    pub minus: Psi,
}

/// The abstract transformer of one branch of a statement. All updates are simultaneous.
#[derive(Clone, Debug)]
pub struct Transformer {
    /// A sufficient condition for the branch to be infeasible.
    pub blocked: Psi,
    /// The updates of the predicates that may change.
    pub updates: Vec<Update>,
    /// Both literals of each assigned predicate, which are unknown before the updates.
    forgotten: Vector,
}

impl Transformer {
    /// The state after the statement; `None` if the branch is infeasible.
    pub fn apply(&self, vocabulary: &Vocabulary, vector: &Vector) -> Option<Vector> {
        if self.blocked.holds(vector) {
            return None;
        }
        let mut after = vector.clone();
        after.remove(&self.forgotten);
        for update in &self.updates {
            for (psi, holds) in [(&update.plus, true), (&update.minus, false)] {
                if psi.holds(vector) {
                    after.insert(Literal::new(update.predicate, holds));
                }
            }
        }
        vocabulary.close(&mut after).then_some(after)
    }

    /// All disjunctions of cubes in the transformer.
    pub fn psis(&self) -> impl Iterator<Item = &Psi> {
        let updates = self.updates.iter().flat_map(|update| [&update.plus, &update.minus]);
        std::iter::once(&self.blocked).chain(updates)
    }
}

/// A set of cells, as a bit set over the dense indices that `Numbers` assigns.
type CellSet = FixedBitSet;

/// Assigns dense indices to cells.
#[derive(Default)]
struct Numbers(HashMap<CellId, usize>);

impl Numbers {
    fn set(&mut self, cells: impl IntoIterator<Item = CellId>) -> CellSet {
        let mut set = CellSet::new();
        for cell in cells {
            let next = self.0.len();
            set.grow_and_insert(*self.0.entry(cell).or_insert(next));
        }
        set
    }
}

/// A predicate after the branch, in terms of the values before.
struct Target {
    predicate: usize,
    assigned: bool,
    /// The conditions under which the predicate holds and fails.
    cases: [Disjunction; 2],
    cells: CellSet,
    psis: [Psi; 2],
}

impl Target {
    /// The update of the predicate; `None` if the predicate keeps its value.
    fn update(self) -> Option<Update> {
        let Target { predicate, assigned, psis: [plus, minus], .. } = self;
        let nothing = |psi: &Psi| !psi.always && psi.single.is_empty() && psi.larger.is_empty();
        let changes = assigned || !nothing(&plus) || !nothing(&minus);
        changes.then_some(Update { predicate, assigned, plus, minus })
    }
}

/// The state of the construction of one transformer.
struct Construction<'a> {
    judge: &'a mut Judge,
    limits: &'a Limits,
    vocabulary: &'a Vocabulary,
    /// For each literal, its meaning in terms of the values before the branch.
    literals: &'a [Disjunction],
    /// For each predicate, the cells that it mentions.
    cells: &'a [CellSet],
    /// The sets of cells that the assumptions of the branch connect.
    assumed: Vec<CellSet>,
    blocked: Psi,
    targets: Vec<Target>,
    /// For each predicate, the least number of literals, including its own, that connect it with a target or an assumption.
    distances: Vec<usize>,
    /// The number of queries when the limits were last polled.
    looked: u64,
}

/// Computes the transformer of one branch of a statement, with cubes up to a maximum size; `None` if the assumptions of the branch contradict each
/// other.
pub fn transformer(
    way: &[Simple],
    vocabulary: &Vocabulary,
    size: usize,
    judge: &mut Judge,
    limits: &Limits,
) -> Result<Option<Transformer>, Reason> {
    let executed = execute(way);
    let mut numbers = Numbers::default();
    let mut frame = Frame::default();
    let predicates = vocabulary.predicates();
    let both = [true, false];
    let literals: Vec<Disjunction> = predicates
        .iter()
        .flat_map(|predicate| both.map(|holds| frame.disjunction(predicate.cases(holds))))
        .collect();
    let cells: Vec<CellSet> = predicates.iter().map(|p| numbers.set(p.cells().iter().copied())).collect();
    let assumption = frame.disjunction([&executed.assumed]);
    let connected: Vec<CellSet> =
        executed.assumed.iter().map(|form| numbers.set(form.terms.iter().map(|t| t.0))).collect();
    let assumed = components(connected);
    let changes = |cell: &CellId| *cell < AUXILIARY && executed.values.is_changed(*cell);
    let mut targets = Vec::new();
    let mut forgotten = Vector::unknown(vocabulary.len());
    for (n, predicate) in predicates.iter().enumerate() {
        let assigned = predicate.cells().iter().any(changes);
        if assigned {
            both.iter().for_each(|&holds| forgotten.insert(Literal::new(n, holds)));
        } else if !assumed.iter().any(|component| !component.is_disjoint(&cells[n])) {
            continue;
        }
        let after = |cases: &[Vec<Linear>]| -> Option<Vec<Vec<Linear>>> {
            let form = |form: &Linear| Some(executed.values.of(form)?.swap_remove(0));
            cases.iter().map(|cube| cube.iter().map(form).collect()).collect()
        };
        // If a constant overflows, nothing is known about the value afterwards, so the predicate gets no update.
        let [Some(holds), Some(fails)] = both.map(|holds| after(predicate.cases(holds))) else { continue };
        let mentioned = holds.iter().chain(&fails).flatten().flat_map(|form| &form.terms);
        let mentioned = numbers.set(mentioned.map(|term| term.0));
        let cases = [frame.disjunction(&holds), frame.disjunction(&fails)];
        let psis = both.map(|_| Psi::never(vocabulary.len()));
        targets.push(Target { predicate: n, assigned, cases, cells: mentioned, psis });
    }
    let start = judge.assume(&[frame.world()], &assumption);
    if start.is_empty() {
        return Ok(None);
    }
    let blocked = Psi::never(vocabulary.len());
    let mut near = CellSet::new();
    assumed.iter().chain(targets.iter().map(|target| &target.cells)).for_each(|cells| near.union_with(cells));
    let distances = distances(&cells, &near);
    let looked = judge.questions;
    let (literals, cells) = (&literals[..], &cells[..]);
    let mut construction = Construction {
        judge,
        limits,
        vocabulary,
        literals,
        cells,
        assumed,
        blocked,
        targets,
        distances,
        looked,
    };
    for size in 0..=size {
        construction.enumerate(size, 0, &start, &mut Vec::new())?;
    }
    let blocked = construction.blocked;
    let updates = construction.targets.into_iter().filter_map(Target::update).collect();
    Ok(Some(Transformer { blocked, updates, forgotten }))
}

impl<'a> Construction<'a> {
    /// Enumerates the cubes of a size that extend the given cube by literals of predicates from index `from` on, without cubes that are contradictory
    /// or that a smaller cube makes redundant.
    fn enumerate(
        &mut self,
        size: usize,
        from: usize,
        worlds: &[World<'a>],
        cube: &mut Vec<Literal>,
    ) -> Result<(), Reason> {
        if cube.len() == size {
            self.conclude(worlds, cube);
            return self.poll();
        }
        let vocabulary = self.vocabulary;
        for predicate in from..vocabulary.len() {
            if self.distances[predicate] > size {
                continue;
            }
            for literal in [true, false].map(|holds| Literal::new(predicate, holds)) {
                // A cube contains neither a literal together with its consequences nor contradictory literals.
                let decides = |a: Literal, b: Literal| {
                    let implied = vocabulary.implied(a);
                    implied.contains(b) || implied.contains(b.negated())
                };
                let impossible = vocabulary.implied(literal).contains(literal.negated());
                if impossible || cube.iter().any(|&other| decides(other, literal) || decides(literal, other))
                {
                    continue;
                }
                cube.push(literal);
                if !self.blocked.subsumes(cube) {
                    let literals = self.literals;
                    let worlds = self.judge.assume(worlds, &literals[literal.0 as usize]);
                    match worlds.len() {
                        0 => self.blocked.add(cube),
                        1..=MOST_WORLDS => self.enumerate(size, predicate + 1, &worlds, cube)?,
                        _ => {}
                    }
                }
                cube.pop();
            }
        }
        Ok(())
    }

    /// Adds a cube, whose worlds are given, to the psi of each connected predicate whose value it, but no smaller cube, determines.
    fn conclude(&mut self, worlds: &[World<'a>], cube: &[Literal]) {
        for target in &mut self.targets {
            let itself = |literal: &Literal| literal.predicate() == target.predicate;
            if target.psis.iter().any(|psi| psi.subsumes(cube))
                || !target.assigned && cube.iter().any(itself)
                || !is_connected(cube, &target.cells, self.cells, &self.assumed)
            {
                continue;
            }
            let [holds, fails] = &target.cases;
            if self.judge.excludes(worlds, fails) {
                target.psis[0].add(cube);
            } else if self.judge.excludes(worlds, holds) {
                target.psis[1].add(cube);
            }
        }
    }

    /// Polls the limits, after every few hundred queries.
    fn poll(&mut self) -> Result<(), Reason> {
        const EVERY: u64 = 200;
        if self.judge.questions - self.looked < EVERY {
            return Ok(());
        }
        self.looked = self.judge.questions;
        self.limits.exceeded(0).map_or(Ok(()), Err)
    }
}

/// Whether every literal of a cube is connected with these cells by shared cells, possibly via other literals or assumptions.
fn is_connected(cube: &[Literal], start: &CellSet, cells: &[CellSet], assumed: &[CellSet]) -> bool {
    let mut reached = start.clone();
    let mut left: Vec<Literal> = cube.to_vec();
    assumed.iter().filter(|component| !component.is_disjoint(start)).for_each(|c| reached.union_with(c));
    while !left.is_empty() {
        let before = left.len();
        left.retain(|literal| {
            let own = &cells[literal.predicate()];
            let connected = !own.is_disjoint(&reached);
            if connected {
                reached.union_with(own);
                assumed
                    .iter()
                    .filter(|component| !component.is_disjoint(own))
                    .for_each(|c| reached.union_with(c));
            }
            !connected
        });
        if left.len() == before {
            return false;
        }
    }
    true
}

/// For each predicate, the least number of literals, including itself, that connect it with a target or assumption.
fn distances(cells: &[CellSet], start: &CellSet) -> Vec<usize> {
    let mut distances = vec![usize::MAX; cells.len()];
    let mut reached = start.clone();
    for distance in 1.. {
        let near = |(n, own): &(usize, &CellSet)| distances[*n] == usize::MAX && !own.is_disjoint(&reached);
        let near: Vec<usize> = cells.iter().enumerate().filter(near).map(|(n, _)| n).collect();
        if near.is_empty() {
            break;
        }
        for n in near {
            distances[n] = distance;
            reached.union_with(&cells[n]);
        }
    }
    distances
}

/// Merges sets that intersect, until all are disjoint.
fn components(sets: Vec<CellSet>) -> Vec<CellSet> {
    let mut components: Vec<CellSet> = Vec::new();
    for mut set in sets {
        components.retain(|component| {
            let meets = !component.is_disjoint(&set);
            if meets {
                set.union_with(component);
            }
            !meets
        });
        components.push(set);
    }
    components
}
