//! Entailment between constraints that are not all differences. The refuter supplies a refutation, which is verified before it is used.

use fencewright_memory::linear::Cube;
use fencewright_memory::{CellId, Constraint, Linear};
use fencewright_proof::{FormulaId, Formulas, Refuter, Relation, Stop, Sum, Values, verify};

/// Whether the constraints in `known` entail the disjunction of the cubes; without cubes, whether `known` is unsatisfiable. If this is not shown, the
/// error contains values that the refuter considers a counterexample, if it found some; they are not verified here. If `stop` interrupts the refuter,
/// the error contains no values.
pub fn entails_some(
    known: &Cube,
    cubes: &[Cube],
    refuter: &dyn Refuter,
    stop: &Stop,
) -> Result<(), Option<Values>> {
    let cells = known.iter().chain(cubes.iter().flatten()).flat_map(|c| &c.form().terms);
    let mut writer =
        Writer { formulas: Formulas::default(), unused: cells.map(|(cell, _)| cell + 1).max().unwrap_or(0) };
    let mut assertions: Vec<FormulaId> = known.iter().map(|c| writer.holds(c)).collect();
    for cube in cubes {
        let violated = cube.iter().map(|c| writer.fails(c)).collect();
        assertions.push(writer.formulas.or(violated));
    }
    let proof = refuter.refute(&writer.formulas, &assertions, stop)?;
    verify(&writer.formulas, &assertions, &proof).then_some(()).ok_or(None)
}

/// Translates constraints to formulas.
struct Writer {
    formulas: Formulas,
    /// The next fresh variable; greater than all variables in use.
    unused: CellId,
}

impl Writer {
    /// The formula which states that a constraint holds; it expresses a multiple of m as m times a fresh variable.
    fn holds(&mut self, constraint: &Constraint) -> FormulaId {
        match constraint {
            Constraint::AtMost(form) => self.formulas.atom(&sum(form), Relation::Le),
            Constraint::Multiple(form, m) => {
                let multiple = self.minus_multiple(form, *m);
                self.formulas.atom(&multiple, Relation::Eq)
            }
        }
    }

    /// The negation of a constraint; it expresses a number that is not a multiple of m as m times a fresh variable plus a remainder from 1 to m - 1.
    fn fails(&mut self, constraint: &Constraint) -> FormulaId {
        match constraint {
            Constraint::AtMost(form) => {
                let form = sum(form);
                let terms = form.terms.into_iter().map(|(cell, c)| (cell, -c)).collect();
                self.formulas.atom(&Sum { terms, constant: 1 - form.constant }, Relation::Le)
            }
            Constraint::Multiple(form, m) => {
                let mut rest = self.minus_multiple(form, *m);
                let r = self.variable();
                rest.terms.push((r, -1));
                let least = Sum { terms: vec![(r, -1)], constant: 1 };
                let most = Sum { terms: vec![(r, 1)], constant: 1 - i128::from(*m) };
                let parts = vec![
                    self.formulas.atom(&rest, Relation::Eq),
                    self.formulas.atom(&least, Relation::Le),
                    self.formulas.atom(&most, Relation::Le),
                ];
                self.formulas.and(parts)
            }
        }
    }

    /// The form minus m times a fresh variable.
    fn minus_multiple(&mut self, form: &Linear, m: i64) -> Sum<i128> {
        let mut difference = sum(form);
        difference.terms.push((self.variable(), -i128::from(m)));
        difference
    }

    fn variable(&mut self) -> CellId {
        self.unused += 1;
        self.unused - 1
    }
}

fn sum(form: &Linear) -> Sum<i128> {
    let terms = form.terms.iter().map(|&(cell, coefficient)| (cell, i128::from(coefficient))).collect();
    Sum { terms, constant: i128::from(form.constant) }
}
