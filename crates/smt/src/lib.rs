//! Linear integer arithmetic for verification.
#![forbid(unsafe_code)]
pub mod formula;
pub mod integer;
pub mod proof;
pub mod solver;
pub mod term;
