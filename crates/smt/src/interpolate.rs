//! Sequence interpolants from proofs.
//!
//! Given unsatisfiable assertions `A_0 ... A_{n-1}`, an interpolant sequence `I_1 ... I_{n-1}` summarises each prefix: with `I_0` true and `I_n`
//! false, `I_i` and `A_i` imply `I_{i+1}`, and `I_i` contains only variables that occur on both sides of the cut before `A_i`. So `A_0 ... A_{i-1}`
//! imply `I_i`, which contradicts `A_i ... A_{n-1}`.
//!
//! Each fact of a proof belongs to one assertion. From a contradictory sum, the interpolant at a cut is the part of the sum that comes from before
//! the cut: variables that occur only before it have cancelled out (McMillan, "An Interpolating Theorem Prover", 2005), and rounding this part for
//! integers does not change its meaning. If a split divides a fact that lies after the cut, all cases must be excluded, so the interpolants of the
//! cases are combined by *and*; if the fact lies before the cut, by *or*. An integer cut counts as part of an assertion in which its variables occur.
//!
//! Every sequence is checked before it is returned, so this code need not be trusted.

use crate::formula::Formula;
use crate::integer::Int;
use crate::native::Native;
use crate::proof::{Branch, Fact, Proof, Step, cases, conjuncts, cut_cases};
use crate::solver::{Budget, Solver};
use crate::term::{Atom, Linear, Relation, Var};
use std::collections::{HashMap, HashSet};
use std::fmt;

/// The reason why there is no interpolant sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The proof does not fit the assertions.
    WrongProof,
    /// The proof uses an integer argument (a GCD step or a cut) that mixes variables of different assertions.
    Mixed,
    /// The sequence could not be confirmed within the budget.
    Unconfirmed,
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Failure::WrongProof => "the proof does not refute these assertions",
            Failure::Mixed => "the proof mixes integer variables of different steps",
            Failure::Unconfirmed => "the interpolants could not be confirmed",
        })
    }
}

impl std::error::Error for Failure {}

/// The interpolants at the cuts before each assertion but the first, from a proof that refutes the assertions.
pub fn interpolants(
    solver: &mut Native,
    assertions: &[Formula],
    proof: &Proof,
    budget: &Budget,
) -> Result<Vec<Formula>, Failure> {
    let sequence = from_proof(assertions, proof)?;
    if check_interpolants(solver, assertions, &sequence, budget) {
        Ok(sequence)
    } else {
        Err(Failure::Unconfirmed)
    }
}

/// Whether these are interpolants for the assertions. Also false if the budget does not suffice to decide.
pub fn check_interpolants(
    solver: &mut Native,
    assertions: &[Formula],
    interpolants: &[Formula],
    budget: &Budget,
) -> bool {
    if interpolants.len() + 1 != assertions.len() {
        return false;
    }
    let vocabulary = Vocabulary::new(assertions);
    let shared = |(position, interpolant): (usize, &Formula)| {
        interpolant.atoms().all(|atom| vocabulary.shared(atom.linear(), position + 1))
    };
    if !interpolants.iter().enumerate().all(shared) {
        return false;
    }
    let (before, after) = (&Formula::True, &Formula::False);
    assertions.iter().enumerate().all(|(position, assertion)| {
        let from = position.checked_sub(1).map_or(before, |index| &interpolants[index]);
        let to = interpolants.get(position).unwrap_or(after);
        let plain = *to == Formula::True || *from == Formula::False || from == to;
        plain || solver.check(&[from.clone(), assertion.clone(), !to.clone()], budget).is_unsat()
    })
}

/// The assertions in which variables occur.
struct Vocabulary {
    /// For each assertion, its variables, sorted.
    variables: Vec<Vec<Var>>,
    /// The first and the last assertion in which a variable occurs.
    range: HashMap<Var, (usize, usize)>,
}

impl Vocabulary {
    fn new(assertions: &[Formula]) -> Vocabulary {
        let variables: Vec<Vec<Var>> = assertions.iter().map(Formula::variables).collect();
        let mut range = HashMap::new();
        for (position, variables) in variables.iter().enumerate() {
            for var in variables {
                range.entry(*var).or_insert((position, position)).1 = position;
            }
        }
        Vocabulary { variables, range }
    }

    /// Whether all variables of a term occur both before and after a cut.
    fn shared(&self, linear: &Linear, cut: usize) -> bool {
        linear
            .terms()
            .iter()
            .all(|(var, _)| self.range.get(var).is_some_and(|(first, last)| *first < cut && cut <= *last))
    }

    /// An assertion in which all variables of a term occur.
    fn home(&self, linear: &Linear) -> Option<usize> {
        let all =
            |variables: &Vec<Var>| linear.terms().iter().all(|(var, _)| variables.binary_search(var).is_ok());
        self.variables.iter().position(all)
    }
}

/// The facts of a proof: for the number of each, its formula, and the index of the assertion to which it belongs.
type Facts = HashMap<Fact, (Formula, usize)>;

/// Computes the sequence, unchecked.
fn from_proof(assertions: &[Formula], proof: &Proof) -> Result<Vec<Formula>, Failure> {
    let vocabulary = Vocabulary::new(assertions);
    let mut facts = Facts::new();
    let mut number: Fact = 0;
    for (position, assertion) in assertions.iter().enumerate() {
        for fact in conjuncts(assertion) {
            facts.insert(number, (fact.clone(), position));
            number = number.checked_add(1).ok_or(Failure::WrongProof)?;
        }
    }
    // Top-down: the facts that branches introduce, and the assertion to which each split belongs.
    let mut owners: Vec<usize> = vec![0; proof.steps.len()];
    for (position, step) in proof.steps.iter().enumerate().rev() {
        match step {
            Step::Farkas(_) | Step::Gcd(_) => {}
            Step::Split { fact, branches } => {
                // The steps are visited backwards, and each step comes before the steps that use it. So the fact is known, unless no step uses this
                // step.
                let Some((formula, owner)) = facts.get(fact) else { return Err(Failure::WrongProof) };
                let (formula, owner) = (formula.clone(), *owner);
                owners[position] = owner;
                let cases = cases(&formula).ok_or(Failure::WrongProof)?;
                register(&mut facts, &cases, branches, owner)?;
            }
            Step::Cut { term, branches } => {
                let term = Linear::from(term);
                let owner = vocabulary.home(&term).ok_or(Failure::Mixed)?;
                owners[position] = owner;
                register(&mut facts, &cut_cases(&term), branches, owner)?;
            }
        }
    }
    // Bottom-up: the interpolants of each step.
    let cuts = assertions.len().saturating_sub(1);
    let mut sequences: Vec<Vec<Formula>> = Vec::with_capacity(proof.steps.len());
    for (position, step) in proof.steps.iter().enumerate() {
        let sequence = match step {
            Step::Farkas(sum) => prefix_sums(&facts, sum, Relation::Le, cuts)?,
            Step::Gcd(sum) => {
                let sequence = prefix_sums(&facts, sum, Relation::Eq, cuts)?;
                // The coefficients of local variables cancel only modulo the gcd, so local variables may remain in a prefix sum.
                let shared = |(index, part): (usize, &Formula)| {
                    part.atoms().all(|atom| vocabulary.shared(atom.linear(), index + 1))
                };
                if !sequence.iter().enumerate().all(shared) {
                    return Err(Failure::Mixed);
                }
                sequence
            }
            Step::Split { branches, .. } => join_branches(&mut sequences, branches, owners[position], cuts)?,
            Step::Cut { branches, .. } => join_branches(&mut sequences, branches, owners[position], cuts)?,
        };
        sequences.push(sequence);
    }
    sequences.pop().ok_or(Failure::WrongProof)
}

/// Records the formula and the assertion of each fact that a branch introduces.
fn register(facts: &mut Facts, cases: &[Formula], branches: &[Branch], owner: usize) -> Result<(), Failure> {
    for (case, branch) in cases.iter().zip(branches) {
        let mut number = branch.first;
        for fact in conjuncts(case) {
            if facts.insert(number, (fact.clone(), owner)).is_some() {
                return Err(Failure::WrongProof);
            }
            number = number.checked_add(1).ok_or(Failure::WrongProof)?;
        }
    }
    Ok(())
}

/// For each cut, the part of a sum that comes from before the cut.
fn prefix_sums(
    facts: &Facts,
    sum: &[(Fact, Int)],
    relation: Relation,
    cuts: usize,
) -> Result<Vec<Formula>, Failure> {
    let mut parts: Vec<(usize, &Int, &Linear)> = Vec::with_capacity(sum.len());
    for (fact, factor) in sum {
        match facts.get(fact) {
            Some((Formula::Atom(atom), owner)) => parts.push((*owner, factor, atom.linear())),
            _ => return Err(Failure::WrongProof),
        }
    }
    parts.sort_by_key(|(owner, _, _)| *owner);
    let mut parts = parts.into_iter().peekable();
    let mut prefix = Linear::constant(0);
    let mut sequence: Vec<Formula> = Vec::with_capacity(cuts);
    for cut in 1..=cuts {
        let mut changed = cut == 1;
        while let Some((_, factor, linear)) = parts.next_if(|(owner, _, _)| *owner < cut) {
            prefix = prefix.plus_scaled(factor, linear);
            changed = true;
        }
        let formula = match sequence.last() {
            Some(last) if !changed => last.clone(),
            _ => Formula::atom(prefix.clone(), relation),
        };
        sequence.push(formula);
    }
    Ok(sequence)
}

/// Combines the sequences of the cases of a split that belongs to an assertion.
fn join_branches(
    sequences: &mut [Vec<Formula>],
    branches: &[Branch],
    owner: usize,
    cuts: usize,
) -> Result<Vec<Formula>, Failure> {
    let mut cases = Vec::with_capacity(branches.len());
    for branch in branches {
        // A proof uses each step at most once, so the sequence of the step can be moved out.
        let sequence = sequences.get_mut(branch.step).map(std::mem::take).ok_or(Failure::WrongProof)?;
        if sequence.len() != cuts {
            return Err(Failure::WrongProof);
        }
        cases.push(sequence.into_iter());
    }
    let join_at = |cut| join(cut <= owner, cases.iter_mut().filter_map(Iterator::next).collect());
    Ok((1..=cuts).map(join_at).collect())
}

/// The conjunction (or disjunction) of formulas without repetitions, and with only the strongest (or weakest) of several bounds on the same sum.
fn join(conjunction: bool, parts: Vec<Formula>) -> Formula {
    let whole = if conjunction { Formula::and(parts) } else { Formula::or(parts) };
    // If only one part remains, it may itself be a conjunction or a disjunction; the actual connective decides which bounds are redundant.
    let (Formula::And(parts) | Formula::Or(parts)) = &whole else { return whole };
    let conjunction = matches!(whole, Formula::And(_));
    let mut seen: HashSet<&Formula> = HashSet::with_capacity(parts.len());
    let mut bounds: HashMap<&[(Var, Int)], &Int> = HashMap::with_capacity(parts.len());
    for atom in parts.iter().filter_map(bound) {
        let constant = atom.linear().constant_part();
        let best = bounds.entry(atom.linear().terms()).or_insert(constant);
        // The larger constant is the stronger bound.
        if (constant > *best) == conjunction {
            *best = constant;
        }
    }
    let mut kept = Vec::with_capacity(parts.len());
    for part in parts.iter() {
        let best =
            bound(part).is_none_or(|atom| bounds[atom.linear().terms()] == atom.linear().constant_part());
        if best && seen.insert(part) {
            kept.push(part.clone());
        }
    }
    if kept.len() == parts.len() {
        return whole;
    }
    if conjunction { Formula::and(kept) } else { Formula::or(kept) }
}

/// The atom, if the formula is an inequality.
fn bound(formula: &Formula) -> Option<&Atom> {
    match formula {
        Formula::Atom(atom) if atom.relation() == Relation::Le => Some(atom),
        _ => None,
    }
}
