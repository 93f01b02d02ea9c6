//! Tier 1: difference constraints in a closed bound matrix, one constraint at a time.
//!
//! For each pair of nodes, the matrix holds the least known `c` with `left - right <= c`; node 0 is the constant zero. The matrix is kept closed
//! under `(i - k) + (k - j)`, so entailment is one lookup. Adding `u - v <= c` improves `i - j` only by `(i - u) + c + (v - j)`, and only for an `i`
//! whose distance to `v` improves: one pass over the matrix at most.
//!
//! For explanations the matrix also keeps, for each pair, the first node on the path that gives its bound. A bound is replaced only by a smaller one,
//! which makes these paths consistent and acyclic: if the path from `i` to `j` goes through `k` first, and the bound of `i - j` improves by a new
//! constraint, then the bound of `k - j` improves too.
//!
//! Bounds are machine words. [`LARGEST_BOUND`] times [`MOST_NODES`] fits in a word, so no sum of a path overflows.

use crate::integer::Int;
use crate::proof::Fact;
use crate::solver::{Meter, Reason};
use crate::term::{Atom, Linear, Relation, Var};
use crate::theory::{Status, Sum, Theory};
use std::cmp::Ordering;

/// The largest absolute value of a bound that [`Differences::add`] accepts.
pub const LARGEST_BOUND: i64 = 1 << 48;

/// Maximum number of nodes, including the constant zero.
pub const MOST_NODES: usize = 1 << 9;

/// No bound is known.
const FREE: i64 = i64::MAX;

/// The fact that a constraint comes from. An equality `t = 0` that is used as `-t <= 0` is `reversed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The number of the fact.
    pub fact: Fact,
    /// Whether the fact is an equality that is used in the other direction.
    pub reversed: bool,
}

/// The bound of a pair of nodes.
#[derive(Clone, Copy)]
struct Cell {
    bound: i64,
    /// The node after `left` on the path that gives the bound.
    next: u32,
}

/// A closed matrix of difference bounds, with incremental addition of constraints and backtracking.
#[derive(Default)]
pub struct Differences {
    nodes: usize,
    cells: Vec<Cell>,
    /// The newest direct constraint between two nodes; meaningful where some path uses the pair as a step.
    sources: Vec<Source>,
    trail: Vec<Change>,
}

/// An earlier cell or source, with its position.
enum Change {
    Cell(usize, Cell),
    Source(usize, Source),
}

impl Differences {
    /// A matrix without constraints over `nodes` nodes (at most [`MOST_NODES`]), including the constant zero.
    pub fn new(nodes: usize) -> Differences {
        let mut matrix = Differences::default();
        matrix.reset(nodes);
        matrix
    }

    /// Removes all constraints, and resizes to `nodes` nodes (at most [`MOST_NODES`]).
    pub fn reset(&mut self, nodes: usize) {
        assert!(nodes <= MOST_NODES, "a bound matrix has at most {MOST_NODES} nodes");
        self.nodes = nodes;
        self.trail.clear();
        self.cells.clear();
        self.cells.resize(nodes * nodes, Cell { bound: FREE, next: 0 });
        self.sources.clear();
        self.sources.resize(nodes * nodes, Source::default());
        for node in 0..nodes {
            self.cells[node * nodes + node] = Cell { bound: 0, next: node as u32 };
        }
    }

    /// The least known `c` with `left - right <= c`.
    pub fn bound(&self, left: usize, right: usize) -> Option<i64> {
        let bound = self.cells[left * self.nodes + right].bound;
        (bound != FREE).then_some(bound)
    }

    /// Adds `left - right <= bound` (at most [`LARGEST_BOUND`] in absolute value). If that contradicts the constraints so far, the matrix is
    /// unchanged and the error holds the constraints of a negative cycle, including this one.
    pub fn add(&mut self, left: usize, right: usize, bound: i64, source: Source) -> Result<(), Vec<Source>> {
        assert!(
            bound.unsigned_abs() <= LARGEST_BOUND.unsigned_abs(),
            "the bound is too large for a matrix of words"
        );
        let nodes = self.nodes;
        let back = self.cells[right * nodes + left].bound;
        if back != FREE && back + bound < 0 {
            let mut cycle = self.explain(right, left);
            cycle.push(source);
            return Err(cycle);
        }
        if left == right || bound >= self.cells[left * nodes + right].bound {
            return Ok(());
        }
        let position = left * nodes + right;
        self.trail.push(Change::Source(position, self.sources[position]));
        self.sources[position] = source;
        for from in 0..nodes {
            let (to_left, next) = if from == left {
                (0, right as u32)
            } else {
                let cell = self.cells[from * nodes + left];
                (cell.bound, cell.next)
            };
            // The bounds of `from` improve only if the bound of `from - right` does.
            if to_left == FREE || to_left + bound >= self.cells[from * nodes + right].bound {
                continue;
            }
            let reach = to_left + bound;
            for to in 0..nodes {
                let rest = self.cells[right * nodes + to].bound;
                let cell = &mut self.cells[from * nodes + to];
                if rest != FREE && reach + rest < cell.bound {
                    self.trail.push(Change::Cell(from * nodes + to, *cell));
                    *cell = Cell { bound: reach + rest, next };
                }
            }
        }
        Ok(())
    }

    /// The constraints whose sum is the known bound of `left - right`. A bound must be known.
    pub fn explain(&self, left: usize, right: usize) -> Vec<Source> {
        let mut sources = Vec::new();
        let mut node = left;
        while node != right {
            let next = self.cells[node * self.nodes + right].next as usize;
            sources.push(self.sources[node * self.nodes + next]);
            node = next;
        }
        sources
    }

    /// The current position in the trail of changes, for [`Differences::undo`].
    pub fn mark(&self) -> usize {
        self.trail.len()
    }

    /// Removes all constraints added since `mark` returned this position.
    pub fn undo(&mut self, mark: usize) {
        for change in self.trail.drain(mark..).rev() {
            match change {
                Change::Cell(position, cell) => self.cells[position] = cell,
                Change::Source(position, source) => self.sources[position] = source,
            }
        }
    }

    /// Values for the nodes that satisfy all constraints, with node 0 being zero.
    pub fn assignment(&self, values: &mut Vec<i64>) {
        // Let d(i) be the least bound in row i. Because the matrix is closed, d(i) is at most d(j) plus the bound of i - j: the values d(i) satisfy
        // all constraints.
        values.clear();
        values.extend(
            self.cells.chunks(self.nodes).map(|row| row.iter().map(|cell| cell.bound).min().unwrap_or(0)),
        );
        let zero = values.first().copied().unwrap_or(0);
        for value in values {
            *value -= zero;
        }
    }
}

/// `left - right <= bound`, as nodes; with `equal`, `left - right = bound`.
struct Constraint {
    left: usize,
    right: usize,
    bound: i64,
    equal: bool,
}

/// The decision procedure over a bound matrix, for atoms that [`is_difference`] accepts.
#[derive(Default)]
pub(crate) struct DifferenceTheory {
    matrix: Differences,
    variables: Vec<Var>,
    values: Vec<i64>,
}

/// Whether the matrix can hold the atom: `x - y`, `x` or `-x` compared with a constant of moderate size.
pub(crate) fn is_difference(atom: &Atom) -> bool {
    let small = atom
        .linear()
        .constant_part()
        .to_i64()
        .is_some_and(|c| c.unsigned_abs() < LARGEST_BOUND.unsigned_abs());
    small
        && match atom.linear().terms() {
            [_] => true,
            // `Atom::new` divides by the gcd of the coefficients, so `k*x - k*y` occurs only as `x - y` or `y - x`.
            [(_, first), (_, second)] => {
                matches!((first.to_i64(), second.to_i64()), (Some(1), Some(-1)) | (Some(-1), Some(1)))
            }
            _ => false,
        }
}

impl DifferenceTheory {
    /// Removes all constraints, and sets the variables (sorted, fewer than [`MOST_NODES`]).
    pub(crate) fn reset(&mut self, variables: &[Var]) {
        self.variables.clear();
        self.variables.extend_from_slice(variables);
        self.matrix.reset(variables.len() + 1);
        self.values.clear();
        self.values.resize(variables.len() + 1, 0);
    }

    fn node(&self, var: Var) -> usize {
        self.variables.binary_search(&var).map_or(0, |position| position + 1)
    }

    fn constraint(&self, atom: &Atom) -> Constraint {
        let (mut left, mut right) = (0, 0);
        for (var, factor) in atom.linear().terms() {
            if factor.is_positive() {
                left = self.node(*var);
            } else {
                right = self.node(*var);
            }
        }
        let bound = atom.linear().constant_part().to_i64().map_or(0, |constant| -constant);
        Constraint { left, right, bound, equal: atom.relation() == Relation::Eq }
    }
}

impl Theory for DifferenceTheory {
    fn assert(&mut self, atom: &Atom, fact: Fact) -> Result<(), Sum> {
        let Constraint { left, right, bound, equal } = self.constraint(atom);
        let sum = |sources: Vec<Source>| {
            sources
                .iter()
                .map(|source| (source.fact, Int::from(if source.reversed { -1 } else { 1 })))
                .collect::<Sum>()
        };
        self.matrix.add(left, right, bound, Source { fact, reversed: false }).map_err(sum)?;
        if equal {
            self.matrix.add(right, left, -bound, Source { fact, reversed: true }).map_err(sum)?;
        }
        Ok(())
    }

    fn check(&mut self, _integers: bool, _meter: &mut Meter<'_>) -> Result<Status, Reason> {
        // A contradiction is reported when a constraint is added, so the matrix is consistent: only the assignment has to be computed.
        self.matrix.assignment(&mut self.values);
        Ok(Status::Consistent)
    }

    fn compare(&self, linear: &Linear) -> Ordering {
        linear.evaluate(&|var| self.value(var)).cmp(&Int::ZERO)
    }

    fn value(&self, var: Var) -> Int {
        Int::from(self.values[self.node(var)])
    }

    fn refutes(&self, atom: &Atom) -> bool {
        let Constraint { left, right, bound, equal } = self.constraint(atom);
        let contradicts =
            |left, right, bound: i64| self.matrix.bound(right, left).is_some_and(|back| back + bound < 0);
        match atom.relation() {
            Relation::Ne => {
                self.matrix.bound(left, right) == Some(bound)
                    && self.matrix.bound(right, left) == Some(-bound)
            }
            _ => contradicts(left, right, bound) || equal && contradicts(right, left, -bound),
        }
    }

    fn mark(&self) -> usize {
        self.matrix.mark()
    }

    fn undo(&mut self, mark: usize) {
        self.matrix.undo(mark);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(fact: Fact) -> Source {
        Source { fact, reversed: false }
    }

    #[test]
    fn bounds_follow_paths_and_go_back() {
        let mut matrix = Differences::new(4);
        matrix.add(1, 2, 3, from(0)).unwrap();
        let mark = matrix.mark();
        matrix.add(2, 3, -1, from(1)).unwrap();
        assert_eq!(matrix.bound(1, 3), Some(2));
        assert_eq!(matrix.explain(1, 3), [from(0), from(1)]);
        assert_eq!(matrix.add(3, 1, -3, from(2)), Err(vec![from(0), from(1), from(2)]));
        matrix.undo(mark);
        assert_eq!(matrix.bound(1, 3), None);
        assert_eq!(matrix.bound(1, 2), Some(3));
    }

    #[test]
    fn a_contradictory_pair_with_itself_is_its_own_explanation() {
        let mut matrix = Differences::new(2);
        assert_eq!(matrix.add(1, 1, -1, from(5)), Err(vec![from(5)]));
        assert_eq!(matrix.add(1, 1, 0, from(6)), Ok(()));
    }
}
