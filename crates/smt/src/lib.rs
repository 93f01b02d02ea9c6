//! Linear integer arithmetic for verification: satisfiability, entailment, refutations that can be checked, and sequence
//! interpolants. Pure Rust, exact, no limits on the size of numbers.
//!
//! ```
//! use fencewright_smt::{Answer, Budget, Formula, Linear, Native, Solver, Var, interpolate, verify};
//!
//! let (x, y) = (Var(0), Var(1));
//! let steps = [Formula::eq(x, 1), Formula::eq(y, Linear::from(x).plus(1)), Formula::le(y, 1)];
//! let mut solver = Native::new();
//! let Answer::Unsat(refutation) = solver.check(&steps, &Budget::default()) else { panic!("cannot happen") };
//! assert!(verify(&steps, &refutation.proof));
//! assert_eq!(refutation.core, [0, 1, 2]);
//! let sequence = interpolate::interpolants(&mut solver, &steps, &refutation.proof, &Budget::default()).unwrap();
//! assert_eq!(sequence, [Formula::le(1, x), Formula::le(2, y)]);
//! ```
//!
//! # Map
//!
//! | module | contents |
//! |---|---|
//! | [`integer`] | integers of any size, fast while small |
//! | [`term`], [`formula`] | linear terms, atoms and formulas in normal form |
//! | [`proof`] | refutations, and their translation for the checker, which is the crate `fencewright-proof` |
//! | [`solver`] | the interface of solvers: answers, models, budgets |
//! | [`native`] | the solver of this crate: picks one of the two procedures below for the case search |
//! | [`difference`] | tier 1: difference constraints in a closed bound matrix |
//! | `simplex`, `congruence` | tier 2: exact simplex, integer cuts, equations without integer solution |
//! | `search`, `theory` | case splitting over a procedure for conjunctions, with proofs |
//! | [`z3`] | tier 3: Z3 over a pipe, where it is installed; a second opinion |
//! | [`tiered`] | all of them: the native solver, and Z3 where its budget ends |
//! | [`interpolate`] | sequence interpolants from proofs, checked before they are returned |
//!
//! # Guarantees
//!
//! - [`Answer::Unsat`] comes with a proof that [`verify`] accepts; callers that need certainty call it. The checker is a crate
//!   of its own, uses big numbers and shares no code with the solvers: nothing here is trusted.
//! - [`Answer::Sat`] comes with a model that makes every assertion true.
//! - [`Answer::UnsatUnproved`] is an opinion of Z3, without a proof.
//! - [`Answer::Unknown`] is the answer when a [`Budget`] is exhausted. Branch and bound need not terminate where variables are
//!   unbounded, so a budget always limits the number of steps.
//! - Nothing recurses, so formulas and proofs may be arbitrarily deep.
#![forbid(unsafe_code)]

mod congruence;
pub mod difference;
pub mod formula;
pub mod integer;
pub mod interpolate;
pub mod native;
pub mod proof;
mod search;
mod simplex;
pub mod solver;
pub mod term;
mod theory;
pub mod tiered;
pub mod z3;

pub use formula::Formula;
pub use integer::Int;
pub use native::Native;
pub use proof::{Proof, Prover, Stop, verify};
pub use solver::{Answer, Budget, Model, Reason, Refutation, Solver};
pub use term::{Atom, Linear, Relation, Var};
pub use tiered::Tiered;
