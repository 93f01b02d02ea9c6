//! Refutations in linear integer arithmetic, and their checker. **Trusted code**: small, exact, on big numbers, and independent of any solver.
//! Solvers depend on this crate and produce its proofs.
//!
//! # Meaning of a proof
//!
//! A proof shows that a set of assertions is unsatisfiable. It works on *facts*: numbered formulas that are known to hold. Initially the facts are
//! the assertions, numbered from 0 in order; a conjunction counts as its parts, one number each. Each step derives a contradiction from the facts in
//! scope:
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

#![forbid(unsafe_code)]

mod formula;
mod verify;

use std::collections::HashMap;
use std::sync::Arc;

use num_bigint::BigInt;

pub use formula::{Atom, Formula, FormulaId, Formulas, Relation, Sum};
pub use verify::verify;

/// The number by which steps refer to a fact.
pub type Fact = u32;

/// A refutation. Its last step is the conclusion; solvers put each step after the steps that it uses, but [`verify`] does not rely on that. Solvers
/// may use their own type of numbers; big integers are the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof<N = BigInt> {
    /// The steps; the last one is the conclusion.
    pub steps: Vec<Step<N>>,
}

/// One derivation of a contradiction from the facts in scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<N = BigInt> {
    /// A linear combination of facts that says `c <= 0` for a constant c > 0.
    Farkas(Vec<(Fact, N)>),
    /// A linear combination of equalities that has no integer solution.
    Gcd(Vec<(Fact, N)>),
    /// A case split: one case for each part of a disjunction, two (less, greater) for a disequality, none for false.
    Split {
        /// The fact that is a disjunction, a disequality or false.
        fact: Fact,
        /// The cases, in order.
        branches: Vec<Branch>,
    },
    /// A case split on `term <= 0` or `term >= 1`.
    Cut {
        /// The term, which may be any integer term over the variables.
        term: Sum<N>,
        /// The two cases, in this order.
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

/// Polled by a [`Refuter`]: returns whether to stop.
pub type Stop = Arc<dyn Fn() -> bool + Send + Sync>;

/// Values of variables; variables that are absent are 0.
pub type Values = HashMap<u32, i64>;

/// A search for refutations. It is not trusted: [`verify`] checks every refutation that it finds.
pub trait Refuter: Sync {
    /// A proof that the assertions are unsatisfiable. Otherwise `Err`, with values that satisfy the assertions if the search found such values, and
    /// with `None` if not, for example because `stop` returned true.
    fn refute(
        &self,
        formulas: &Formulas,
        assertions: &[FormulaId],
        stop: &Stop,
    ) -> Result<Proof, Option<Values>>;
}
