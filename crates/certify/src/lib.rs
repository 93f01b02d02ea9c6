//! Certificates of safety, and the checker that accepts or rejects them.
//!
//! This crate depends on programs, machines and the checker of refutations, never on an engine or a solver: the verdict on a proof is independent of
//! how the proof was found. `docs/certificates.md` describes the format and the checks.
//!
//! The certificate in this example states that x is 0 at the start and 1 at the end of the thread, so it is never 2. [`check()`] verifies that no
//! other state can be reached. It requests refutations from a [`Refuter`], and verifies those too:
//!
//! ```
//! use std::sync::Arc;
//! use fencewright_certify::{Certificate, Stop, check};
//!
//! let text = r#"{"format":"fencewright-certificate","version":3,"program":"","claim":{"kind":"safe","properties":["two"]},
//!   "proofs":[{"invariant":{"machine":{"kind":"sc"},"symmetry":[],"cells":{"0":"x"},"states":[
//!     {"locations":[0],"buffers":[],"lock":null,"invariant":[[{"terms":[[0,-1]],"constant":0},{"terms":[[0,1]],"constant":0}]]},
//!     {"locations":[1],"buffers":[],"lock":null,"invariant":[[{"terms":[[0,-1]],"constant":1},{"terms":[[0,1]],"constant":-1}]]}]}}]}"#;
//! let certificate = Certificate::read(text.as_bytes()).expect("it is a certificate");
//! let checked = |text: &str| {
//!     let program = fencewright_lang::load("one.fw", text.as_bytes(), None, &[]).expect("it is right").program;
//!     let stop: Stop = Arc::new(|| false);
//!     check(&certificate, &program, &fencewright_smt::Prover, &stop)
//! };
//! assert!(checked("shared x; thread p { x = 1; } forbid two: x == 2;").is_ok());
//! assert!(checked("shared x; thread p { x = 2; } forbid two: x == 2;").is_err());
//! ```

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
pub use check::{Accepted, Rejection, Undecided, check, property};
pub use fencewright_proof::{Refuter, Stop};
