//! Entailment of linear constraints that are not all differences: by a refutation that is verified before it is believed.

use fencewright_memory::Linear;
use fencewright_memory::linear::Cube;
use fencewright_proof::{FormulaId, Formulas, Refuter, Relation, Stop, Sum, verify};

/// Whether the constraints in `known` entail that one of the cubes holds; with no cubes, whether they are unsatisfiable.
/// If `stop` says to stop, nothing is entailed.
pub fn entails_some(known: &Cube, cubes: &[Cube], refuter: &dyn Refuter, stop: &Stop) -> bool {
    let mut formulas = Formulas::default();
    let mut assertions: Vec<FormulaId> =
        known.iter().map(|linear| formulas.atom(&at_most(linear), Relation::Le)).collect();
    for cube in cubes {
        let violated = cube.iter().map(|linear| formulas.atom(&at_least_one(linear), Relation::Le)).collect();
        assertions.push(formulas.or(violated));
    }
    let proof = refuter.refute(&formulas, &assertions, stop);
    proof.is_some_and(|proof| verify(&formulas, &assertions, &proof))
}

/// The sum of which `linear <= 0` says that it is at most 0.
fn at_most(linear: &Linear) -> Sum<i128> {
    let terms = linear.terms.iter().map(|&(cell, coefficient)| (cell, i128::from(coefficient))).collect();
    Sum { terms, constant: i128::from(linear.constant) }
}

/// The sum that is at most 0 exactly where `linear <= 0` is violated: `1 - linear`.
fn at_least_one(linear: &Linear) -> Sum<i128> {
    let Sum { terms, constant } = at_most(linear);
    Sum { terms: terms.into_iter().map(|(cell, c)| (cell, -c)).collect(), constant: 1 - constant }
}
