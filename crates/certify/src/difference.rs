//! Difference constraints, decided by shortest paths: the common case of the checker.
//!
//! The constraint `x - y <= c` is an edge from y to x of length c (a bound on a single variable is an edge from or to the constant 0). A set of such
//! constraints is unsatisfiable exactly if there is a cycle of negative length; it entails `x - y <= c` exactly if it is unsatisfiable or the length
//! of the shortest path from y to x is at most c. Cycles and paths correspond to sums of constraints, so every bound that is computed here follows
//! from the constraints. Lengths are exact: a sum that does not fit 64 bits is not used, so a bound may be missing but is never wrong.

use fencewright_memory::{CellId, Constraint};
use fencewright_proof::Stop;

/// `x - y <= c`, where x or y may be the constant 0.
#[derive(Clone, Copy, Debug)]
pub struct Difference {
    /// A cell; `None` for 0.
    pub x: Option<CellId>,
    /// A cell; `None` for 0.
    pub y: Option<CellId>,
    /// An upper bound of `x - y`.
    pub c: i64,
}

impl Difference {
    /// The constraint as a difference; `None` if it has another form.
    pub fn of(constraint: &Constraint) -> Option<Self> {
        let linear = constraint.at_most()?;
        let c = linear.constant.checked_neg()?;
        let (x, y) = linear.difference()?;
        Some(Difference { x, y, c })
    }

    /// The same constraint with renamed cells.
    pub fn renamed(&self, name: &impl Fn(CellId) -> CellId) -> Self {
        Difference { x: self.x.map(name), y: self.y.map(name), c: self.c }
    }
}

/// A difference constraint between variables of [`Paths`].
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    /// The variable x of `x - y <= c`.
    pub x: usize,
    /// The variable y of `x - y <= c`.
    pub y: usize,
    /// The bound c of `x - y <= c`.
    pub c: i64,
}

/// Maps cells to the variables of [`Paths`]: variable 0 is the constant 0; cells are numbered from 1 in the order in which they are registered.
#[derive(Default)]
pub struct Index {
    cells: Vec<CellId>,
}

impl Index {
    /// The variable of a cell (`None`: of the constant 0); registers the cell if it is new.
    pub fn position(&mut self, cell: Option<CellId>) -> usize {
        let Some(cell) = cell else { return 0 };
        match self.cells.iter().position(|&c| c == cell) {
            Some(n) => n + 1,
            None => {
                self.cells.push(cell);
                self.cells.len()
            }
        }
    }

    /// The same difference constraint between variables; registers its cells.
    pub fn edge(&mut self, d: &Difference) -> Edge {
        Edge { x: self.position(d.x), y: self.position(d.y), c: d.c }
    }

    /// The number of registered cells.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Registers all cells of a conjunction of differences; `None` stands for a constraint of another form.
    pub fn meet(&mut self, cube: &[Option<Difference>]) {
        cube.iter().flatten().for_each(|d| _ = self.edge(d));
    }

    /// The shortest paths for a conjunction whose cells are registered. If `stop` returns true, some constraints may be missing: then fewer bounds
    /// follow.
    pub fn paths(&self, cube: &[Option<Difference>], stop: &Stop) -> Paths {
        let position = |cell: Option<CellId>| match cell {
            None => Some(0),
            Some(cell) => self.cells.iter().position(|&c| c == cell).map(|n| n + 1),
        };
        let mut paths = Paths::new(self.cells.len() + 1);
        for d in cube.iter().flatten() {
            // With few cells, polling would take longer than adding the constraint.
            if self.cells.len() > 100 && stop() {
                break;
            }
            // Every cell is registered; otherwise dropping the constraint would merely weaken the conjunction.
            if let (Some(x), Some(y)) = (position(d.x), position(d.y)) {
                paths.add(x, y, d.c);
            }
        }
        paths
    }
}

/// The bound of a pair of variables whose difference is unbounded.
const UNBOUNDED: i64 = i64::MAX;

/// Shortest paths between variables, updated incrementally as constraints are added.
#[derive(Debug)]
pub struct Paths {
    size: usize,
    /// Entry (x, y): an upper bound of x - y that follows from the constraints, or [`UNBOUNDED`].
    bounds: Vec<i64>,
    contradictory: bool,
}

impl Clone for Paths {
    fn clone(&self) -> Self {
        Paths { size: self.size, bounds: self.bounds.clone(), contradictory: self.contradictory }
    }

    /// Reuses the allocation, because paths are copied often: once for each pair of a cube and a branch.
    fn clone_from(&mut self, other: &Self) {
        self.size = other.size;
        self.bounds.clone_from(&other.bounds);
        self.contradictory = other.contradictory;
    }
}

impl Paths {
    /// Paths without constraints, for the variables 0 (the constant 0) to `size - 1`.
    pub fn new(size: usize) -> Self {
        let mut bounds = vec![UNBOUNDED; size * size];
        (0..size).for_each(|x| bounds[x * size + x] = 0);
        Paths { size, bounds, contradictory: false }
    }

    /// Whether the constraints were found to be unsatisfiable.
    pub fn contradictory(&self) -> bool {
        self.contradictory
    }

    /// The least upper bound of x - y that was derived; `None` if there is none.
    pub fn bound(&self, x: usize, y: usize) -> Option<i64> {
        Some(self.bounds[x * self.size + y]).filter(|&bound| bound != UNBOUNDED)
    }

    /// Makes an unconstrained variable a copy of one value of a summary cell: every bound between the summary cell and another variable holds for the
    /// copy too. The difference between the copy and other values of the summary cell is bounded only by the sum of their bounds relative to another
    /// variable.
    pub fn copy(&mut self, summary: usize, copy: usize) {
        let mut spread = UNBOUNDED;
        for k in (0..self.size).filter(|&k| k != summary && k != copy) {
            let (above, below) = (self.bounds[summary * self.size + k], self.bounds[k * self.size + summary]);
            self.bounds[copy * self.size + k] = above;
            self.bounds[k * self.size + copy] = below;
            if above != UNBOUNDED && below != UNBOUNDED {
                spread = spread.min(above.checked_add(below).unwrap_or(UNBOUNDED));
            }
        }
        self.bounds[copy * self.size + summary] = spread;
        self.bounds[summary * self.size + copy] = spread;
    }

    /// Adds the constraint `x - y <= c` and updates all shortest paths.
    pub fn add(&mut self, x: usize, y: usize, c: i64) {
        if self.contradictory || self.bound(x, y).is_some_and(|known| known <= c) {
            return;
        }
        if self.bound(y, x).is_some_and(|back| back.checked_add(c).is_some_and(|cycle| cycle < 0)) {
            self.contradictory = true;
            return;
        }
        // Every new shortest path from b to a uses the new edge once: b to y, y to x, x to a.
        for a in 0..self.size {
            let Some(through) = self.bound(a, x).and_then(|to_x| to_x.checked_add(c)) else { continue };
            for b in 0..self.size {
                let Some(total) = self.bound(y, b).and_then(|from_y| through.checked_add(from_y)) else {
                    continue;
                };
                let known = &mut self.bounds[a * self.size + b];
                *known = total.min(*known);
            }
        }
    }
}
