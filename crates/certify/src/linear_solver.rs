//! Entailment of linear constraints that are not all differences: by a refutation that is verified before it is believed.

use fencewright_memory::Linear;
use fencewright_memory::linear::Cube;
use fencewright_smt::{Answer, Atom, Budget, Formula, Native, Relation, Solver, Stop, Var, verify};

/// Whether the constraints in `known` entail that one of the cubes holds; with no cubes, whether they are unsatisfiable.
/// If `stop` says to stop, nothing is entailed.
pub fn entails_some(known: &Cube, cubes: &[Cube], stop: &Stop) -> bool {
    let mut assertions: Vec<Formula> = known.iter().map(formula).collect();
    for cube in cubes {
        let violated: Vec<Formula> = cube.iter().map(|linear| !formula(linear)).collect();
        assertions.push(Formula::or(violated));
    }
    let budget = Budget { stop: Some(Stop::clone(stop)), ..Budget::default() };
    match Native::new().check(&assertions, &budget) {
        Answer::Unsat(refutation) => verify(&assertions, &refutation.proof),
        _ => false,
    }
}

/// `linear <= 0` as a formula of the solver.
fn formula(linear: &Linear) -> Formula {
    let terms = linear.terms.iter().map(|&(cell, coefficient)| (coefficient, Var(cell)));
    let form = fencewright_smt::Linear::sum(terms, linear.constant);
    match Atom::new(form, Relation::Le) {
        Ok(atom) => Formula::Atom(atom),
        Err(true) => Formula::True,
        Err(false) => Formula::False,
    }
}
