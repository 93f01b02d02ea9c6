//! Difference constraints, decided by shortest paths: the common case of the checker.
//!
//! The constraint `x - y <= c` is an edge from y to x of length c (a bound on a single variable is one from or to the constant 0). A set of
//! such constraints is unsatisfiable exactly if there is a cycle of negative length, and entails `x - y <= c` exactly if it is
//! unsatisfiable or the shortest path from y to x is at most c. Both follow by adding up constraints, so the sums computed
//! here are the witnesses. Lengths are exact: what does not fit is not concluded.

use fencewright_memory::{CellId, Constraint};
use fencewright_proof::Stop;

/// `x - y <= c`, where either may be the constant 0.
#[derive(Clone, Copy, Debug)]
pub struct Difference {
    /// A cell, or 0.
    pub x: Option<CellId>,
    /// A cell, or 0.
    pub y: Option<CellId>,
    /// The bound.
    pub c: i64,
}

impl Difference {
    /// A constraint as a difference, if it is one.
    pub fn of(constraint: &Constraint) -> Option<Self> {
        let linear = constraint.at_most()?;
        let c = linear.constant.checked_neg()?;
        let (x, y) = linear.difference()?;
        Some(Difference { x, y, c })
    }

    /// The same, about cells with other names.
    pub fn renamed(&self, name: &impl Fn(CellId) -> CellId) -> Self {
        Difference { x: self.x.map(name), y: self.y.map(name), c: self.c }
    }
}

/// A difference between variables of [`Paths`].
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    /// A variable.
    pub x: usize,
    /// A variable.
    pub y: usize,
    /// The bound of `x - y`.
    pub c: i64,
}

/// The variables of [`Paths`]: 0, and cells in the order in which they are met.
#[derive(Default)]
pub struct Index {
    cells: Vec<CellId>,
}

impl Index {
    /// The variable of a cell (or of the constant 0).
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

    /// A difference as one between variables.
    pub fn edge(&mut self, d: &Difference) -> Edge {
        Edge { x: self.position(d.x), y: self.position(d.y), c: d.c }
    }

    /// How many cells have been met.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Gives every cell in this conjunction a variable.
    pub fn meet(&mut self, cube: &[Option<Difference>]) {
        cube.iter().flatten().for_each(|d| _ = self.edge(d));
    }

    /// What follows from a conjunction of differences whose cells have all been met; if `stop` says to stop, only some of it.
    pub fn paths(&self, cube: &[Option<Difference>], stop: &Stop) -> Paths {
        let position = |cell: Option<CellId>| match cell {
            None => Some(0),
            Some(cell) => self.cells.iter().position(|&c| c == cell).map(|n| n + 1),
        };
        let mut paths = Paths::new(self.cells.len() + 1);
        for d in cube.iter().flatten() {
            // With few cells, asking would take longer than what follows.
            if self.cells.len() > 100 && stop() {
                break;
            }
            // A cell that was not met would only make the conjunction weaker.
            if let (Some(x), Some(y)) = (position(d.x), position(d.y)) {
                paths.add(x, y, d.c);
            }
        }
        paths
    }
}

/// No bound.
const UNBOUNDED: i64 = i64::MAX;

/// Shortest paths between variables, kept up to date as constraints are added.
#[derive(Debug)]
pub struct Paths {
    size: usize,
    /// Entry (x, y): an upper bound of x minus y that follows from the constraints, or [`UNBOUNDED`].
    bounds: Vec<i64>,
    contradictory: bool,
}

impl Clone for Paths {
    fn clone(&self) -> Self {
        Paths { size: self.size, bounds: self.bounds.clone(), contradictory: self.contradictory }
    }

    /// Without a new allocation: paths are copied once for every branch from every cube.
    fn clone_from(&mut self, other: &Self) {
        self.size = other.size;
        self.bounds.clone_from(&other.bounds);
        self.contradictory = other.contradictory;
    }
}

impl Paths {
    /// No constraints on variables 1 to `size - 1`; 0 stands for the constant 0.
    pub fn new(size: usize) -> Self {
        let mut bounds = vec![UNBOUNDED; size * size];
        (0..size).for_each(|x| bounds[x * size + x] = 0);
        Paths { size, bounds, contradictory: false }
    }

    /// Whether the constraints contradict each other.
    pub fn contradictory(&self) -> bool {
        self.contradictory
    }

    /// The best bound of x minus y that follows.
    pub fn bound(&self, x: usize, y: usize) -> Option<i64> {
        Some(self.bounds[x * self.size + y]).filter(|&bound| bound != UNBOUNDED)
    }

    /// Makes a variable that nothing is known about one of the values of a summary cell: every bound of the summary holds for it too. How
    /// it differs from other values of the summary is known only by way of third variables.
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

    /// Adds `x - y <= c`.
    pub fn add(&mut self, x: usize, y: usize, c: i64) {
        if self.contradictory || self.bound(x, y).is_some_and(|known| known <= c) {
            return;
        }
        if self.bound(y, x).is_some_and(|back| back.checked_add(c).is_some_and(|cycle| cycle < 0)) {
            self.contradictory = true;
            return;
        }
        // Every new shortest path a <- b uses the new edge once: b to y, y to x, x to a.
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
