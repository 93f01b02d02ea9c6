//! What commands do to cells, told as plainly as possible: an ordinary cell has a value, a summary cell a set of values.

use std::collections::{BTreeMap, BTreeSet};

use fencewright_memory::linear::Cube;
use fencewright_memory::{CellId, Command, Linear};
use fencewright_program::Expr;
use fencewright_testing::Random;

/// The values of ordinary cells, and the sets of summary cells.
#[derive(Clone, Debug, Default)]
pub struct Sets {
    pub values: BTreeMap<CellId, i64>,
    pub sets: BTreeMap<CellId, BTreeSet<i64>>,
}

impl Sets {
    fn value(&self, e: &Expr<CellId>) -> Option<i64> {
        e.eval(&mut |cell| *self.values.get(cell).expect("expressions are about ordinary cells")).ok()
    }

    /// Performs a command, with choices made at random; `None` if it is not possible.
    pub fn perform(&mut self, command: &Command, random: &mut Random) -> Option<()> {
        match command {
            Command::Assume(e) => return (self.value(e)? != 0).then_some(()),
            Command::Assign(cell, e) => match self.sets.contains_key(cell) {
                true => _ = self.sets.insert(*cell, BTreeSet::from([self.value(e)?])),
                false => _ = self.values.insert(*cell, self.value(e)?),
            },
            Command::Havoc(cell) => _ = self.values.insert(*cell, random.between(-3, 3)),
            Command::Fold(summary, e) => {
                let value = self.value(e)?;
                self.sets.get_mut(summary).expect("a summary cell").insert(value);
            }
            Command::Expand(cell, summary) => {
                let values: Vec<i64> = self.sets[summary].iter().copied().collect();
                self.values.insert(*cell, *random.pick(&values));
            }
        }
        Some(())
    }

    /// Whether every choice of one value for each summary cell satisfies the cube.
    pub fn satisfies(&self, cube: &Cube) -> bool {
        cube.iter().all(|linear| self.greatest(linear) <= 0)
    }

    /// The greatest value of a form among all choices.
    fn greatest(&self, linear: &Linear) -> i64 {
        let term = |&(cell, coefficient): &(CellId, i64)| match self.sets.get(&cell) {
            Some(set) => set.iter().map(|v| coefficient * v).max().expect("sets are not empty"),
            None => coefficient * self.values[&cell],
        };
        linear.constant + linear.terms.iter().map(term).sum::<i64>()
    }
}
