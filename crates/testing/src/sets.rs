//! An interpreter of commands on states in which an ordinary cell has a value and a summary cell has a set of values.

use std::collections::{BTreeMap, BTreeSet};

use crate::Random;
use fencewright_memory::linear::{Constraint, Cube};
use fencewright_memory::{CellId, Command, Linear};
use fencewright_program::{BinaryOp, Expr};

/// A state: the values of ordinary cells, and the sets of values of summary cells. No set is empty.
#[derive(Clone, Debug, Default)]
pub struct Sets {
    /// The value of each ordinary cell.
    pub values: BTreeMap<CellId, i64>,
    /// The values that each summary cell stands for.
    pub sets: BTreeMap<CellId, BTreeSet<i64>>,
}

impl Sets {
    fn value(&self, e: &Expr<CellId>) -> Option<i64> {
        e.eval(&mut |cell| *self.values.get(cell).expect("expressions are about ordinary cells")).ok()
    }

    /// Executes a command, with random choices; `None` if it is disabled.
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
        cube.iter().all(|constraint| match constraint {
            Constraint::AtMost(form) => self.greatest(form) <= 0,
            Constraint::Multiple(form, m) => self.values_of(form).iter().all(|value| value % m == 0),
        })
    }

    /// The values of a linear form over all choices of one value for each summary cell.
    pub fn values_of(&self, form: &Linear) -> Vec<i64> {
        let mut totals = vec![form.constant];
        for (cell, coefficient) in &form.terms {
            let values: Vec<i64> = match self.sets.get(cell) {
                Some(set) => set.iter().copied().collect(),
                None => vec![self.values[cell]],
            };
            totals = totals.iter().flat_map(|t| values.iter().map(move |v| t + coefficient * v)).collect();
        }
        totals
    }

    /// The greatest value of a linear form over all choices of one value for each summary cell.
    pub fn greatest(&self, linear: &Linear) -> i64 {
        let term = |&(cell, coefficient): &(CellId, i64)| match self.sets.get(&cell) {
            Some(set) => set.iter().map(|v| coefficient * v).max().expect("sets are not empty"),
            None => coefficient * self.values[&cell],
        };
        linear.constant + linear.terms.iter().map(term).sum::<i64>()
    }
}

/// The cells and operators of random commands.
#[derive(Clone, Debug)]
pub struct Vocabulary {
    /// The ordinary cells that commands may use.
    pub ordinary: Vec<CellId>,
    /// The summary cells that commands may use.
    pub summaries: Vec<CellId>,
    /// Whether values are added and subtracted, not only copied and compared.
    pub arithmetic: bool,
    /// Whether quotients and remainders are computed.
    pub remainders: bool,
}

impl Vocabulary {
    /// A random command on the cells of the vocabulary.
    pub fn command(&self, random: &mut Random) -> Command {
        let ordinary = *random.pick(&self.ordinary);
        let summary = *random.pick(&self.summaries);
        match random.below(9) {
            0 | 1 => {
                let op =
                    *random.pick(&[BinaryOp::Lt, BinaryOp::Le, BinaryOp::Eq, BinaryOp::Ne, BinaryOp::Ge]);
                Command::Assume(Expr::binary(op, self.operand(random), self.operand(random)))
            }
            2 => Command::Assign(ordinary, self.value(random)),
            3 => Command::Havoc(ordinary),
            4 => Command::Assign(summary, self.value(random)),
            5 | 6 => Command::Fold(summary, self.value(random)),
            _ => Command::Expand(ordinary, summary),
        }
    }

    fn operand(&self, random: &mut Random) -> Expr<CellId> {
        match random.one_in(3) {
            true => Expr::Const(random.between(0, 2)),
            false => Expr::Leaf(*random.pick(&self.ordinary)),
        }
    }

    fn value(&self, random: &mut Random) -> Expr<CellId> {
        let left = self.operand(random);
        match random.below(6) {
            0 if self.arithmetic => Expr::binary(BinaryOp::Add, left, Expr::Const(random.between(-2, 2))),
            1 if self.arithmetic => Expr::binary(BinaryOp::Sub, left, self.operand(random)),
            // The value of a comparison is 0 or 1, so domains have to split the command into two cases.
            2 => Expr::binary(BinaryOp::Lt, left, self.operand(random)),
            3 if self.remainders => Expr::binary(BinaryOp::Rem, left, Expr::Const(random.between(2, 4))),
            4 if self.remainders => Expr::binary(BinaryOp::Div, left, Expr::Const(random.between(2, 3))),
            _ => left,
        }
    }
}
