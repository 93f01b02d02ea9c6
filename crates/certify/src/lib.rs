//! Certificates of safety, and the checker that accepts or rejects them.
//!
//! Depends on programs, machines and the checker of refutations, never on an engine or a solver: whoever found the proof, this decides
//! whether it is one.

#![forbid(unsafe_code)]

pub mod automorphism;
mod branch;
pub mod certificate;
pub mod check;
mod congruence;
mod difference;
mod entailment;
mod inductive;
mod parallel;
pub mod states;
pub mod symmetry;

pub use certificate::{Certificate, Claim, InductiveInvariant, Proof};
pub use check::{Accepted, Rejection, check, property};
pub use fencewright_proof::{Refuter, Stop};
