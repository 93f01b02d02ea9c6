//! Difference constraints, decided by shortest paths: the common case of the checker.
//!
//! The constraint `x - y <= c` is an edge from y to x of length c (a bound on a single variable is one from or to the constant 0). A set of
//! such constraints is unsatisfiable exactly if there is a cycle of negative length, and entails `x - y <= c` exactly if it is
//! unsatisfiable or the shortest path from y to x is at most c. Both follow by adding up constraints, so the sums computed
//! here are the witnesses. Lengths are exact: what does not fit is not concluded.

/// Shortest paths between variables, kept up to date as constraints are added.
#[derive(Clone, Debug)]
pub struct Paths {
    size: usize,
    /// Entry (x, y): an upper bound of x minus y that follows from the constraints, if there is one.
    bounds: Vec<Option<i64>>,
    contradictory: bool,
}

impl Paths {
    /// No constraints on variables 1 to `size - 1`; 0 stands for the constant 0.
    pub fn new(size: usize) -> Self {
        let mut bounds = vec![None; size * size];
        (0..size).for_each(|x| bounds[x * size + x] = Some(0));
        Paths { size, bounds, contradictory: false }
    }

    /// Whether the constraints contradict each other.
    pub fn contradictory(&self) -> bool {
        self.contradictory
    }

    /// The best bound of x minus y that follows.
    pub fn bound(&self, x: usize, y: usize) -> Option<i64> {
        self.bounds[x * self.size + y]
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
                if known.is_none_or(|k| total < k) {
                    *known = Some(total);
                }
            }
        }
    }
}
