//! Encoding of paths as formulas. Each step of a path, on one branch through its commands, becomes a conjunction of constraints over versions of
//! cells (static single assignment).
//!
//! A write to a cell makes a new version of the cell, which is a variable of the solver (only [`Encoding::push_any`] may share the version of a
//! copied cell). The formula of a step relates the versions before the step to those after it. If the path is feasible, the conjunction of the
//! formulas is satisfiable. The converse holds if all arithmetic is linear: nonlinear values are unconstrained.
//!
//! A summary cell stands for its versions since its last assignment, one for each value that was folded into it. A copy of one of its values equals
//! one of these versions.

use std::collections::HashMap;

use fencewright_memory::arithmetic::AUXILIARY;
use fencewright_memory::linear::{Cube, Simple, cases, truths, ways};
use fencewright_memory::{CellId, Command, Constraint, Linear};
use fencewright_program::{BinaryOp, Expr, UnaryOp};
use fencewright_smt::{Formula, Var};

/// A path as formulas, one for each list of commands.
#[derive(Default)]
pub struct Encoding {
    /// The formulas, in the order of the path.
    pub formulas: Vec<Formula>,
    /// For each formula, the variables of its `*`s in order, with their cells.
    pub choices: Vec<Vec<(CellId, Var)>>,
    /// For each variable, the cell it is a version of.
    pub cells: Vec<CellId>,
    /// The version of each cell after the last formula.
    current: HashMap<CellId, Var>,
    /// The versions with known values, from which nonlinear values are computed.
    constants: HashMap<Var, i64>,
    /// For each summary cell, the older versions that it stands for after the last formula, in addition to its current one.
    folded: HashMap<CellId, Vec<Var>>,
}

impl Encoding {
    /// Appends the formula of one branch through some commands, given by its number among the branches that [`ways`] returns. If there is no such
    /// branch, the formula is true.
    pub fn push(&mut self, commands: &[Command], way: u32) {
        let simple = ways(commands).into_iter().nth(way as usize).unwrap_or_default();
        self.push_simple(&simple);
    }

    /// Appends the disjunction of all branches through some commands. An assignment of one cell to another makes no new version: both cells share the
    /// version of the source.
    pub fn push_any(&mut self, commands: &[Command]) {
        let mut parts = Vec::new();
        let mut choices = Vec::new();
        for command in commands {
            match command {
                Command::Assume(e) => parts.push(self.condition(e, true)),
                Command::Havoc(cell) => choices.push((*cell, self.fresh(*cell))),
                Command::Assign(cell, Expr::Leaf(source)) => {
                    let version = self.version(*source);
                    self.current.insert(*cell, version);
                    self.folded.remove(cell);
                }
                Command::Assign(cell, e) => {
                    parts.push(self.equals(*cell, e));
                    self.folded.remove(cell);
                }
                Command::Fold(summary, e) => {
                    let before = self.stands_for(*summary);
                    parts.push(self.equals(*summary, e));
                    self.folded.insert(*summary, before);
                }
                Command::Expand(cell, summary) => parts.push(self.copy(*cell, *summary)),
            }
        }
        self.formulas.push(Formula::and(parts));
        self.choices.push(choices);
    }

    /// The value of an expression, if all cells that it depends on have known values.
    fn certain(&self, e: &Expr<CellId>) -> Option<i64> {
        let mut certain = true;
        let value = e.eval(&mut |cell| {
            let known = self.current.get(cell).and_then(|version| self.constants.get(version));
            certain &= known.is_some();
            known.copied().unwrap_or(1)
        });
        value.ok().filter(|_| certain)
    }

    /// Makes a new version of a cell, and the formula that equates it with the expression.
    fn equals(&mut self, cell: CellId, e: &Expr<CellId>) -> Formula {
        if let Some(value) = self.certain(e) {
            let version = self.fresh(cell);
            self.constants.insert(version, value);
            return Formula::eq(version, fencewright_smt::Linear::constant(value));
        }
        self.forget_auxiliaries();
        let known: Vec<(Formula, Option<fencewright_smt::Linear>)> = cases(e)
            .iter()
            .map(|(cube, value)| (self.cube(cube), value.as_ref().map(|v| self.linear(v))))
            .collect();
        let version = self.fresh(cell);
        let alternatives = known.into_iter().map(|(condition, value)| match value {
            Some(value) => Formula::and([condition, Formula::eq(version, value)]),
            None => condition,
        });
        Formula::or(alternatives.collect::<Vec<_>>())
    }

    /// The versions that a summary cell stands for, the newest last.
    fn stands_for(&mut self, summary: CellId) -> Vec<Var> {
        let mut versions = self.folded.get(&summary).cloned().unwrap_or_default();
        versions.push(self.version(summary));
        versions
    }

    /// Makes a new version of a cell, and the formula that equates it with one of the versions that the summary cell stands for.
    fn copy(&mut self, cell: CellId, summary: CellId) -> Formula {
        let versions = self.stands_for(summary);
        let version = self.fresh(cell);
        Formula::or(versions.into_iter().map(|v| Formula::eq(version, v)).collect::<Vec<_>>())
    }

    /// The formula for the truth (or falsity) of an expression. Conjunctions and disjunctions keep their structure, because the disjunctive normal
    /// form may be very large.
    fn condition(&mut self, e: &Expr<CellId>, wanted: bool) -> Formula {
        match e {
            Expr::Unary(UnaryOp::Not, operand) => self.condition(operand, !wanted),
            Expr::Binary(op @ (BinaryOp::And | BinaryOp::Or), left, right) => {
                let parts = [self.condition(left, wanted), self.condition(right, wanted)];
                if (*op == BinaryOp::And) == wanted { Formula::and(parts) } else { Formula::or(parts) }
            }
            _ => {
                if let Some(value) = self.certain(e) {
                    return if (value != 0) == wanted { Formula::and([]) } else { Formula::or([]) };
                }
                self.forget_auxiliaries();
                let cubes = truths(e, wanted);
                Formula::or(cubes.iter().map(|cube| self.cube(cube)).collect::<Vec<_>>())
            }
        }
    }

    /// Appends the formula of one branch, given as simple commands.
    pub fn push_simple(&mut self, commands: &[Simple]) {
        let mut parts = Vec::new();
        let mut choices = Vec::new();
        for command in commands {
            match command {
                Simple::Assume(constraint) => parts.push(self.constraint(constraint)),
                Simple::Assign(cell, None) => {
                    let version = self.fresh(*cell);
                    self.folded.remove(cell);
                    if *cell < AUXILIARY {
                        choices.push((*cell, version));
                    }
                }
                Simple::Assign(cell, Some(value)) => {
                    let value = self.linear(value);
                    let version = self.fresh(*cell);
                    self.folded.remove(cell);
                    parts.push(Formula::eq(version, value));
                }
                Simple::Fold(summary, value) => {
                    let before = self.stands_for(*summary);
                    let value = value.as_ref().map(|v| self.linear(v));
                    let version = self.fresh(*summary);
                    self.folded.insert(*summary, before);
                    parts.extend(value.map(|value| Formula::eq(version, value)));
                }
                Simple::Expand(cell, summary) => parts.push(self.copy(*cell, *summary)),
            }
        }
        self.formulas.push(Formula::and(parts));
        self.choices.push(choices);
    }

    /// The cell that a variable is a version of.
    pub fn cell(&self, variable: Var) -> CellId {
        self.cells[variable.0 as usize]
    }

    fn version(&mut self, cell: CellId) -> Var {
        match self.current.get(&cell) {
            Some(version) => *version,
            None => self.fresh(cell),
        }
    }

    fn fresh(&mut self, cell: CellId) -> Var {
        let version = Var(self.cells.len() as u32);
        self.cells.push(cell);
        self.current.insert(cell, version);
        version
    }

    fn linear(&mut self, linear: &Linear) -> fencewright_smt::Linear {
        let terms: Vec<(i64, Var)> = linear.terms.iter().map(|&(cell, c)| (c, self.version(cell))).collect();
        fencewright_smt::Linear::sum(terms, linear.constant)
    }

    /// Removes the auxiliary variables, because those of one expression are unrelated to those of another.
    fn forget_auxiliaries(&mut self) {
        self.current.retain(|&cell, _| cell < AUXILIARY);
    }

    /// The formula of a constraint. That a form is a multiple of m is expressed by equating it with m times a fresh variable.
    fn constraint(&mut self, constraint: &Constraint) -> Formula {
        let form = self.linear(constraint.form());
        match constraint {
            Constraint::AtMost(_) => Formula::le(form, fencewright_smt::Linear::constant(0)),
            Constraint::Multiple(_, m) => {
                let number = self.fresh(AUXILIARY);
                self.current.remove(&AUXILIARY);
                Formula::eq(form, fencewright_smt::Linear::sum([(*m, number)], 0))
            }
        }
    }

    fn cube(&mut self, cube: &Cube) -> Formula {
        Formula::and(cube.iter().map(|constraint| self.constraint(constraint)).collect::<Vec<_>>())
    }
}
