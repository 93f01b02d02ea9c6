//! Refutations in linear integer arithmetic that anybody can check, and the checker. **Trusted code**: small, exact, on big numbers,
//! and it calls nobody. Solvers depend on this crate and produce its proofs.
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

#![forbid(unsafe_code)]

mod formula;
mod verify;

use std::collections::HashMap;
use std::sync::Arc;

use num_bigint::BigInt;

pub use formula::{Atom, Formula, FormulaId, Formulas, Relation, Sum};
pub use verify::verify;

/// The number of a fact.
pub type Fact = u32;

/// A refutation: steps in an order such that each step comes after those it uses. The last one is the conclusion. A solver may use numbers
/// of its own kind; big ones serve everybody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof<N = BigInt> {
    /// The steps.
    pub steps: Vec<Step<N>>,
}

/// One derivation of a contradiction from the facts in scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<N = BigInt> {
    /// A sum of facts is a positive constant that is at most zero.
    Farkas(Vec<(Fact, N)>),
    /// A sum of equalities has no integer solution.
    Gcd(Vec<(Fact, N)>),
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
        term: Sum<N>,
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

/// Says whether to stop now.
pub type Stop = Arc<dyn Fn() -> bool + Send + Sync>;

/// Values of variables; other variables are 0.
pub type Values = HashMap<u32, i64>;

/// Somebody who looks for refutations. Nobody has to trust it: what it returns is verified.
pub trait Refuter: Sync {
    /// A proof that the assertions cannot hold together. If there is none, values for which they do; nothing if none of the two is found
    /// before `stop` says to stop.
    fn refute(
        &self,
        formulas: &Formulas,
        assertions: &[FormulaId],
        stop: &Stop,
    ) -> Result<Proof, Option<Values>>;
}
