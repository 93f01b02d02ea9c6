//! The interface of solvers: assertions and a budget in, an answer with evidence out.

use crate::formula::Formula;
use crate::integer::Int;
use crate::proof::{Proof, Step, Stop, conjuncts};
use crate::term::Var;
use std::fmt;
use std::time::Instant;

/// Decides the satisfiability of formulas.
pub trait Solver {
    /// Whether the assertions are satisfiable.
    fn check(&mut self, assertions: &[Formula], budget: &Budget) -> Answer;

    /// Whether the hypotheses entail the conclusion. `Unsat` means yes; `Sat` is a counterexample.
    fn entails(&mut self, hypotheses: &[Formula], conclusion: &Formula, budget: &Budget) -> Answer {
        let mut assertions = Vec::with_capacity(hypotheses.len() + 1);
        assertions.extend_from_slice(hypotheses);
        assertions.push(!conclusion.clone());
        self.check(&assertions, budget)
    }
}

/// The answer of a solver.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The assertions are satisfiable; this is a model.
    Sat(Model),
    /// The assertions are unsatisfiable; this is the proof.
    Unsat(Refutation),
    /// A solver without proofs claims that the assertions are unsatisfiable: an opinion, not evidence.
    UnsatUnproved,
    /// The solver gave up.
    Unknown(Reason),
}

impl Answer {
    /// Whether the answer is a proved `Unsat`.
    pub fn is_unsat(&self) -> bool {
        matches!(self, Answer::Unsat(_))
    }

    /// Whether the answer is `Sat`.
    pub fn is_sat(&self) -> bool {
        matches!(self, Answer::Sat(_))
    }
}

/// Evidence that assertions are unsatisfiable.
#[derive(Clone, Debug)]
pub struct Refutation {
    /// The proof, for [`crate::proof::verify`].
    pub proof: Proof,
    /// The positions of the assertions that the proof uses, sorted.
    pub core: Vec<usize>,
}

impl Refutation {
    /// Computes the core of a proof.
    pub fn new(assertions: &[Formula], proof: Proof) -> Refutation {
        // Facts of branches have larger numbers than those of assertions.
        let mut owner = Vec::new();
        for (position, assertion) in assertions.iter().enumerate() {
            owner.resize(owner.len() + conjuncts(assertion).len(), position);
        }
        let mut core: Vec<usize> = Vec::new();
        let mut note = |fact: u32| core.extend(owner.get(fact as usize));
        for step in &proof.steps {
            match step {
                Step::Farkas(sum) | Step::Gcd(sum) => sum.iter().for_each(|(fact, _)| note(*fact)),
                Step::Split { fact, .. } => note(*fact),
                Step::Cut { .. } => {}
            }
        }
        core.sort_unstable();
        core.dedup();
        Refutation { proof, core }
    }
}

/// A value for each variable; variables that are absent are irrelevant and count as zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    values: Vec<(Var, Int)>,
}

impl Model {
    /// A model from values in any order, one for each variable.
    pub fn new(mut values: Vec<(Var, Int)>) -> Model {
        values.sort_by_key(|(var, _)| *var);
        Model { values }
    }

    /// The value of a variable.
    pub fn value(&self, var: Var) -> Int {
        match self.values.binary_search_by_key(&var, |(other, _)| *other) {
            Ok(position) => self.values[position].1.clone(),
            Err(_) => Int::ZERO,
        }
    }

    /// The variables with their values, sorted by variable.
    pub fn values(&self) -> &[(Var, Int)] {
        &self.values
    }

    /// Whether the model satisfies a formula.
    pub fn satisfies(&self, formula: &Formula) -> bool {
        formula.evaluate(&|var| self.value(var))
    }
}

/// The reason why a solver gave up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The limit on steps was reached.
    Steps,
    /// The deadline of the budget passed.
    Deadline,
    /// The caller's `stop` returned true.
    Cancelled,
    /// An external solver gave up, died, or returned something unintelligible or a wrong model.
    External(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Steps => formatter.write_str("the solver reached its limit on steps"),
            Reason::Deadline => formatter.write_str("the solver reached its deadline"),
            Reason::Cancelled => formatter.write_str("the solver was cancelled"),
            Reason::External(message) => write!(formatter, "the external solver gave no answer: {message}"),
        }
    }
}

/// Limits on the work of a solver.
#[derive(Clone)]
pub struct Budget {
    /// Maximum number of case splits, pivots, and rounds of the integer procedures together.
    pub steps: u64,
    /// The time at which to stop.
    pub deadline: Option<Instant>,
    /// Polled; the solver stops when it returns true.
    pub stop: Option<Stop>,
    /// Whether an external solver may be used when the native solver gives up.
    pub external: bool,
}

impl Default for Budget {
    /// The default limits: steps for well under a second, which is more than queries of a verifier usually need, and no deadline.
    fn default() -> Budget {
        Budget { steps: 50_000, deadline: None, stop: None, external: true }
    }
}

impl Budget {
    /// Whether deadline and caller allow the work to continue; does not count a step.
    pub(crate) fn look(&self) -> Result<(), Reason> {
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(Reason::Deadline);
        }
        match &self.stop {
            Some(stop) if stop() => Err(Reason::Cancelled),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut budget = formatter.debug_struct("Budget");
        budget.field("steps", &self.steps).field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

/// The part of a budget that has been spent.
pub(crate) struct Meter<'a> {
    budget: &'a Budget,
    spent: u64,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(budget: &'a Budget) -> Meter<'a> {
        Meter { budget, spent: 0 }
    }

    /// Spends one step, if the budget allows.
    pub(crate) fn spend(&mut self) -> Result<(), Reason> {
        if self.spent >= self.budget.steps {
            return Err(Reason::Steps);
        }
        self.budget.look()?;
        self.spent += 1;
        Ok(())
    }
}
