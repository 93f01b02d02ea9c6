//! The solver's side of refutations: divides formulas into facts, and translates proofs for the checker.
//!
//! The meaning of proofs is defined in `fencewright_proof`, which also checks them, with its own formulas and numbers. The functions here number
//! facts as that definition does; if they did not, the checker would reject the proofs.

use crate::formula::Formula;
use crate::integer::Int;
use crate::native::Native;
use crate::solver::{Answer, Budget, Model, Solver};
use crate::term::{Linear, Relation, Var};
use fencewright_proof::{self as checker, FormulaId, Formulas, Refuter, Sum, Values};
pub use fencewright_proof::{Branch, Fact, Stop};
use num_bigint::BigInt;

/// A refutation with the solver's numbers.
pub type Proof = checker::Proof<Int>;

/// A step of such a refutation.
pub type Step = checker::Step<Int>;

/// The facts that a formula counts as: the parts of a conjunction, or the formula itself.
pub fn conjuncts(formula: &Formula) -> &[Formula] {
    match formula {
        Formula::And(parts) => parts,
        other => std::slice::from_ref(other),
    }
}

/// The cases of a fact that can be split, in the order of the branches; `None` for other facts.
pub fn cases(fact: &Formula) -> Option<Vec<Formula>> {
    match fact {
        Formula::False => Some(Vec::new()),
        Formula::Or(parts) => Some(parts.to_vec()),
        Formula::Atom(atom) if atom.relation() == Relation::Ne => Some(either_side(atom.linear())),
        _ => None,
    }
}

/// The two cases of a disequality: `term <= -1` and `term >= 1`.
fn either_side(term: &Linear) -> Vec<Formula> {
    vec![
        Formula::atom(term.clone().plus(1), Relation::Le),
        Formula::atom((-term.clone()).plus(1), Relation::Le),
    ]
}

/// The two cases of a cut: `term <= 0` and `term >= 1`.
pub fn cut_cases(term: &Linear) -> [Formula; 2] {
    [Formula::atom(term.clone(), Relation::Le), Formula::atom((-term.clone()).plus(1), Relation::Le)]
}

/// Whether the checker accepts the proof for these assertions.
pub fn verify(assertions: &[Formula], proof: &Proof) -> bool {
    let mut formulas = Formulas::default();
    let assertions: Vec<FormulaId> = assertions.iter().map(|f| added(&mut formulas, f)).collect();
    checker::verify(&formulas, &assertions, proof)
}

/// Translates a formula to one of the checker's.
fn added(formulas: &mut Formulas, formula: &Formula) -> FormulaId {
    // Both closures add to the list, but never at the same time.
    let formulas = std::cell::RefCell::new(formulas);
    let leaf = |part: &Formula| match part {
        Formula::Atom(atom) => formulas.borrow_mut().atom(&Sum::from(atom.linear()), atom.relation().into()),
        other => formulas.borrow_mut().truth(matches!(other, Formula::True)),
    };
    let join = |conjunction: bool, parts: Vec<FormulaId>| match conjunction {
        true => formulas.borrow_mut().and(parts),
        false => formulas.borrow_mut().or(parts),
    };
    formula.fold(leaf, join)
}

/// A [`Refuter`] that uses the native solver.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prover;

impl Refuter for Prover {
    fn refute(
        &self,
        formulas: &Formulas,
        assertions: &[FormulaId],
        stop: &Stop,
    ) -> Result<checker::Proof, Option<Values>> {
        let mut mine: Vec<Formula> = Vec::with_capacity(formulas.all().len());
        for formula in formulas.all() {
            let part = |id: &FormulaId| mine[id.index()].clone();
            mine.push(match formula {
                checker::Formula::Truth(value) => Formula::from(*value),
                checker::Formula::Atom(atom) => {
                    let terms = atom.sum().terms.iter().map(|(v, factor)| (factor, Var(*v)));
                    Formula::atom(Linear::sum(terms, &atom.sum().constant), atom.relation().into())
                }
                checker::Formula::And(parts) => Formula::and(parts.iter().map(part)),
                checker::Formula::Or(parts) => Formula::or(parts.iter().map(part)),
            });
        }
        let assertions: Vec<Formula> = assertions.iter().map(|id| mine[id.index()].clone()).collect();
        let budget = Budget { stop: Some(Stop::clone(stop)), ..Budget::default() };
        match Native::new().check(&assertions, &budget) {
            Answer::Unsat(refutation) => Ok(with_big_numbers(refutation.proof)),
            Answer::Sat(model) => Err(values(&model)),
            Answer::UnsatUnproved | Answer::Unknown(_) => Err(None),
        }
    }
}

/// The values of a model; `None` if one of them does not fit 64 bits.
fn values(model: &Model) -> Option<Values> {
    model.values().iter().map(|(var, value)| Some((var.0, value.to_i64()?))).collect()
}

fn with_big_numbers(proof: Proof) -> checker::Proof {
    let sum = |facts: Vec<(Fact, Int)>| facts.into_iter().map(|(fact, n)| (fact, n.into())).collect();
    let step = |step: Step| match step {
        Step::Farkas(facts) => checker::Step::Farkas(sum(facts)),
        Step::Gcd(facts) => checker::Step::Gcd(sum(facts)),
        Step::Split { fact, branches } => checker::Step::Split { fact, branches },
        Step::Cut { term, branches } => {
            let terms = term.terms.into_iter().map(|(variable, n)| (variable, n.into())).collect();
            checker::Step::Cut { term: Sum { terms, constant: term.constant.into() }, branches }
        }
    };
    checker::Proof { steps: proof.steps.into_iter().map(step).collect() }
}

impl From<&Linear> for Sum<Int> {
    fn from(linear: &Linear) -> Self {
        let terms = linear.terms().iter().map(|(var, factor)| (var.0, factor.clone())).collect();
        Sum { terms, constant: linear.constant_part().clone() }
    }
}

impl From<&Sum<Int>> for Linear {
    fn from(sum: &Sum<Int>) -> Self {
        Linear::sum(sum.terms.iter().map(|(v, factor)| (factor.clone(), Var(*v))), sum.constant.clone())
    }
}

impl From<Relation> for checker::Relation {
    fn from(relation: Relation) -> Self {
        match relation {
            Relation::Le => checker::Relation::Le,
            Relation::Eq => checker::Relation::Eq,
            Relation::Ne => checker::Relation::Ne,
        }
    }
}

impl From<checker::Relation> for Relation {
    fn from(relation: checker::Relation) -> Self {
        match relation {
            checker::Relation::Le => Relation::Le,
            checker::Relation::Eq => Relation::Eq,
            checker::Relation::Ne => Relation::Ne,
        }
    }
}

impl From<Int> for BigInt {
    fn from(value: Int) -> Self {
        value.to_big()
    }
}
