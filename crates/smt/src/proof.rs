//! Refutations that anybody can check, and the checker. **Trusted code**: small, exact, shares nothing with the solvers.
//!
//! # What a proof says
//!
//! A proof shows that some assertions cannot hold together. It works on *facts*: formulas that hold, each known by a
//! number. At the start the facts are the assertions, numbered from 0 in order; a conjunction counts as its parts, one
//! number each. Each step derives a contradiction from the facts in scope:
//!
//! | step | rule |
//! |---|---|
//! | `Farkas` | a sum of facts, each times an integer (not negative for `t <= 0`, any for `t = 0`), is `c <= 0` for a constant c > 0 |
//! | `Gcd` | a sum of facts `t = 0`, each times an integer, is `a1*x1 + ... + c = 0` where a common divisor of the a's does not divide c |
//! | `Split` | a fact is a disjunction, or `t != 0` which is `t <= -1 or t >= 1`, or false; every case is contradictory |
//! | `Cut` | every integer term is `<= 0` or `>= 1`; both cases are contradictory |
//!
//! The facts of a case are numbered from the number that its branch gives, a conjunction again as its parts, and are in
//! scope only inside that branch.

use crate::formula::Formula;
use crate::integer::Int;
use crate::term::{Atom, Linear, Relation, Var};
use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{Signed, Zero};
use std::collections::{BTreeMap, HashMap};

/// The number of a fact.
pub type Fact = u32;

/// A refutation: steps in an order such that each step comes after those it uses. The last one is the conclusion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The steps.
    pub steps: Vec<Step>,
}

/// One derivation of a contradiction from the facts in scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A sum of facts is a positive constant that is at most zero.
    Farkas(Vec<(Fact, Int)>),
    /// A sum of equalities has no integer solution.
    Gcd(Vec<(Fact, Int)>),
    /// One case for each part of a disjunction, or for less and greater of a disequality, or none for false.
    Split {
        /// The fact that is a disjunction, a disequality or false.
        fact: Fact,
        /// The cases in order.
        branches: Vec<Branch>,
    },
    /// Either `term <= 0` or `term >= 1`.
    Cut {
        /// The term.
        term: Linear,
        /// The cases in that order.
        branches: [Branch; 2],
    },
}

/// One case of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The number of the first fact that this case assumes.
    pub first: Fact,
    /// The position of the step that refutes this case.
    pub step: usize,
}

/// The facts that a formula counts as: the parts of a conjunction, or the formula itself.
pub fn conjuncts(formula: &Formula) -> &[Formula] {
    match formula {
        Formula::And(parts) => parts,
        other => std::slice::from_ref(other),
    }
}

/// The cases of a fact that can be split, in the order of the branches; none for other facts.
pub fn cases(fact: &Formula) -> Option<Vec<Formula>> {
    match fact {
        Formula::False => Some(Vec::new()),
        Formula::Or(parts) => Some(parts.to_vec()),
        Formula::Atom(atom) if atom.relation() == Relation::Ne => Some(either_side(atom.linear())),
        _ => None,
    }
}

/// `term <= -1` and `term >= 1`.
fn either_side(term: &Linear) -> Vec<Formula> {
    vec![
        Formula::atom(term.clone().plus(1), Relation::Le),
        Formula::atom((-term.clone()).plus(1), Relation::Le),
    ]
}

/// `term <= 0` and `term >= 1`.
pub fn cut_cases(term: &Linear) -> [Formula; 2] {
    [Formula::atom(term.clone(), Relation::Le), Formula::atom((-term.clone()).plus(1), Relation::Le)]
}

/// Does the proof show that the assertions cannot hold together?
pub fn verify(assertions: &[Formula], proof: &Proof) -> bool {
    let mut scope: HashMap<Fact, Formula> = HashMap::new();
    let mut number: Fact = 0;
    for fact in assertions.iter().flat_map(conjuncts) {
        scope.insert(number, fact.clone());
        let Some(next) = number.checked_add(1) else { return false };
        number = next;
    }
    // A list of work instead of recursion: proofs may be deep.
    enum Work {
        /// Check a step with the facts now in scope.
        Check(usize),
        /// Assume a formula under these numbers, check a step, then forget the formula.
        Assume(Formula, Branch),
        /// These numbers go out of scope.
        Forget(Vec<Fact>),
    }
    let Some(conclusion) = proof.steps.len().checked_sub(1) else { return false };
    // Each step may be used once: so a proof cannot go round in circles, and checking takes time linear in its size.
    let mut used = vec![false; proof.steps.len()];
    let mut work = vec![Work::Check(conclusion)];
    while let Some(item) = work.pop() {
        match item {
            Work::Check(position) => {
                if position >= used.len() || used[position] {
                    return false;
                }
                used[position] = true;
                match &proof.steps[position] {
                    Step::Farkas(sum) if farkas(&scope, sum) => {}
                    Step::Gcd(sum) if without_integer_solution(&scope, sum) => {}
                    Step::Farkas(_) | Step::Gcd(_) => return false,
                    Step::Split { fact, branches } => {
                        let Some(cases) = scope.get(fact).and_then(cases) else { return false };
                        if cases.len() != branches.len() {
                            return false;
                        }
                        work.extend(
                            cases.into_iter().zip(branches.iter().cloned()).map(|(f, b)| Work::Assume(f, b)),
                        );
                    }
                    Step::Cut { term, branches } => {
                        let cases = cut_cases(term).into_iter();
                        work.extend(cases.zip(branches.iter().cloned()).map(|(f, b)| Work::Assume(f, b)));
                    }
                }
            }
            Work::Assume(formula, branch) => {
                let mut assumed = Vec::new();
                for (offset, fact) in conjuncts(&formula).iter().enumerate() {
                    let number =
                        u32::try_from(offset).ok().and_then(|offset| branch.first.checked_add(offset));
                    let Some(number) = number else { return false };
                    // A number in scope must not change its meaning.
                    if scope.insert(number, fact.clone()).is_some() {
                        return false;
                    }
                    assumed.push(number);
                }
                work.push(Work::Forget(assumed));
                work.push(Work::Check(branch.step));
            }
            Work::Forget(numbers) => {
                for number in numbers {
                    scope.remove(&number);
                }
            }
        }
    }
    true
}

/// The atom that a fact in scope is.
fn atom_of(scope: &HashMap<Fact, Formula>, fact: Fact) -> Option<&Atom> {
    match scope.get(&fact) {
        Some(Formula::Atom(atom)) => Some(atom),
        _ => None,
    }
}

/// Is the sum `c <= 0` for a constant c > 0?
fn farkas(scope: &HashMap<Fact, Formula>, sum: &[(Fact, Int)]) -> bool {
    let allowed = |atom: &Atom, factor: &BigInt| match atom.relation() {
        Relation::Le => !factor.is_negative(),
        Relation::Eq => true,
        Relation::Ne => false,
    };
    match add_up(scope, sum, allowed) {
        Some((coefficients, constant)) => {
            coefficients.values().all(BigInt::is_zero) && constant.is_positive()
        }
        None => false,
    }
}

/// Is the sum `a1*x1 + ... + c = 0` where the greatest common divisor of the a's does not divide c?
fn without_integer_solution(scope: &HashMap<Fact, Formula>, sum: &[(Fact, Int)]) -> bool {
    let allowed = |atom: &Atom, _: &BigInt| atom.relation() == Relation::Eq;
    let Some((coefficients, constant)) = add_up(scope, sum, allowed) else { return false };
    let divisor = coefficients.values().fold(BigInt::zero(), |divisor, factor| divisor.gcd(factor));
    if divisor.is_zero() { !constant.is_zero() } else { !(constant % divisor).is_zero() }
}

/// The sum of facts times factors; none if a fact is not in scope, not an atom, or not allowed with its factor.
fn add_up(
    scope: &HashMap<Fact, Formula>,
    sum: &[(Fact, Int)],
    allowed: impl Fn(&Atom, &BigInt) -> bool,
) -> Option<(BTreeMap<Var, BigInt>, BigInt)> {
    let mut coefficients: BTreeMap<Var, BigInt> = BTreeMap::new();
    let mut constant = BigInt::zero();
    for (fact, factor) in sum {
        let atom = atom_of(scope, *fact)?;
        let factor = factor.to_big();
        if !allowed(atom, &factor) {
            return None;
        }
        for (var, coefficient) in atom.linear().terms() {
            *coefficients.entry(*var).or_default() += &factor * coefficient.to_big();
        }
        constant += &factor * atom.linear().constant_part().to_big();
    }
    Some((coefficients, constant))
}
