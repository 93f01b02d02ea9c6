//! The checker of refutations.

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{Signed, Zero};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use crate::formula::{Atom, Formula, FormulaId, Formulas, Relation, Sum};
use crate::{Branch, Fact, Proof, Step};

/// The facts in scope, by number.
type Scope<'f> = HashMap<Fact, Cow<'f, Formula>>;

/// An item of the worklist, which replaces recursion because proofs may be deep.
enum Work<'f> {
    /// Check a step against the facts now in scope.
    Check(usize),
    /// Add a formula to the scope under the numbers of a branch, check the branch's step, then remove the formula.
    Assume(Cow<'f, Formula>, Branch),
    /// Remove these facts from the scope.
    Forget(Vec<Fact>),
}

/// Whether the proof shows that the assertions are unsatisfiable.
pub fn verify<N: Clone + Into<BigInt>>(
    formulas: &Formulas,
    assertions: &[FormulaId],
    proof: &Proof<N>,
) -> bool {
    let mut scope = Scope::new();
    let facts = assertions.iter().flat_map(|id| conjuncts(formulas, Cow::Borrowed(formulas.get(*id))));
    for (number, fact) in facts.enumerate() {
        let Ok(number) = Fact::try_from(number) else { return false };
        scope.insert(number, fact);
    }
    let Some(conclusion) = proof.steps.len().checked_sub(1) else { return false };
    // Each step may be used once: so a proof cannot be circular, and checking takes time linear in its size.
    let mut used = vec![false; proof.steps.len()];
    let mut work = vec![Work::Check(conclusion)];
    while let Some(item) = work.pop() {
        match item {
            Work::Check(position) => {
                if position >= used.len() || std::mem::replace(&mut used[position], true) {
                    return false;
                }
                let (cases, branches) = match &proof.steps[position] {
                    Step::Farkas(sum) if is_farkas(&scope, sum) => continue,
                    Step::Gcd(sum) if is_without_integer_solution(&scope, sum) => continue,
                    Step::Farkas(_) | Step::Gcd(_) => return false,
                    Step::Split { fact, branches } => {
                        let Some(cases) = scope.get(fact).and_then(|f| cases(formulas, f)) else {
                            return false;
                        };
                        (cases, branches.as_slice())
                    }
                    Step::Cut { term, branches } => (cut_cases(term), branches.as_slice()),
                };
                if cases.len() != branches.len() {
                    return false;
                }
                work.extend(cases.into_iter().zip(branches).map(|(f, b)| Work::Assume(f, b.clone())));
            }
            Work::Assume(formula, branch) => {
                let mut assumed = Vec::new();
                for (offset, fact) in conjuncts(formulas, formula).into_iter().enumerate() {
                    let number = Fact::try_from(offset).ok().and_then(|n| branch.first.checked_add(n));
                    let Some(number) = number else { return false };
                    // A fact in scope must not be overwritten.
                    if scope.insert(number, fact).is_some() {
                        return false;
                    }
                    assumed.push(number);
                }
                work.push(Work::Forget(assumed));
                work.push(Work::Check(branch.step));
            }
            Work::Forget(numbers) => numbers.iter().for_each(|number| _ = scope.remove(number)),
        }
    }
    true
}

/// The conjuncts of a formula. A formula that is not a conjunction is its own only conjunct.
fn conjuncts<'f>(formulas: &'f Formulas, formula: Cow<'f, Formula>) -> Vec<Cow<'f, Formula>> {
    match formula.as_ref() {
        Formula::And(parts) => parts.iter().map(|id| Cow::Borrowed(formulas.get(*id))).collect(),
        _ => vec![formula],
    }
}

/// The cases into which a fact can be split, in the order of the branches; `None` for facts that cannot be split.
fn cases<'f>(formulas: &'f Formulas, fact: &Formula) -> Option<Vec<Cow<'f, Formula>>> {
    match fact {
        Formula::Truth(false) => Some(Vec::new()),
        Formula::Or(parts) => Some(parts.iter().map(|id| Cow::Borrowed(formulas.get(*id))).collect()),
        Formula::Atom(atom) if atom.relation() == Relation::Ne => {
            Some(vec![at_most_zero(&atom.sum().clone().plus(1)), at_most_zero(&atom.sum().negated().plus(1))])
        }
        _ => None,
    }
}

/// The two cases of a cut: `term <= 0` and `term >= 1`.
fn cut_cases<'f, N: Clone + Into<BigInt>>(term: &Sum<N>) -> Vec<Cow<'f, Formula>> {
    let terms = term.terms.iter().map(|(variable, factor)| (*variable, factor.clone().into())).collect();
    let term = Sum { terms, constant: term.constant.clone().into() };
    vec![at_most_zero(&term), at_most_zero(&term.negated().plus(1))]
}

fn at_most_zero<'f>(sum: &Sum) -> Cow<'f, Formula> {
    Cow::Owned(Formula::compared(sum, Relation::Le))
}

/// Whether the linear combination of facts is `c <= 0` for a constant c > 0.
fn is_farkas<N: Clone + Into<BigInt>>(scope: &Scope<'_>, sum: &[(Fact, N)]) -> bool {
    let allowed = |atom: &Atom, factor: &BigInt| match atom.relation() {
        Relation::Le => !factor.is_negative(),
        Relation::Eq => true,
        Relation::Ne => false,
    };
    add_up(scope, sum, allowed).is_some_and(|(coefficients, constant)| {
        coefficients.values().all(BigInt::is_zero) && constant.is_positive()
    })
}

/// Whether the linear combination of facts is `a1*x1 + ... + c = 0` where the greatest common divisor of the a's does not divide c.
fn is_without_integer_solution<N: Clone + Into<BigInt>>(scope: &Scope<'_>, sum: &[(Fact, N)]) -> bool {
    let allowed = |atom: &Atom, _: &BigInt| atom.relation() == Relation::Eq;
    add_up(scope, sum, allowed).is_some_and(|(coefficients, constant)| {
        let divisor = coefficients.values().fold(BigInt::zero(), |divisor, factor| divisor.gcd(factor));
        if divisor.is_zero() { !constant.is_zero() } else { !(constant % divisor).is_zero() }
    })
}

/// The linear combination of facts; `None` if a fact is not in scope, not an atom, or `allowed` rejects it with its factor.
fn add_up<N: Clone + Into<BigInt>>(
    scope: &Scope<'_>,
    sum: &[(Fact, N)],
    allowed: impl Fn(&Atom, &BigInt) -> bool,
) -> Option<(BTreeMap<u32, BigInt>, BigInt)> {
    let mut coefficients: BTreeMap<u32, BigInt> = BTreeMap::new();
    let mut constant = BigInt::zero();
    for (fact, factor) in sum {
        let Formula::Atom(atom) = scope.get(fact)?.as_ref() else { return None };
        let factor: BigInt = factor.clone().into();
        if !allowed(atom, &factor) {
            return None;
        }
        for (variable, coefficient) in &atom.sum().terms {
            *coefficients.entry(*variable).or_default() += &factor * coefficient;
        }
        constant += &factor * &atom.sum().constant;
    }
    Some((coefficients, constant))
}
