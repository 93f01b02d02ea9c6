//! Linear integer arithmetic for verification.
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
pub mod z3;

pub use formula::Formula;
pub use integer::Int;
pub use native::Native;
pub use proof::{Proof, verify};
pub use solver::{Answer, Budget, Model, Reason, Refutation, Solver};
pub use term::{Atom, Linear, Relation, Var};
