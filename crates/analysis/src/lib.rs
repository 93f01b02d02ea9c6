//! Analyses of programs that several engines use. None of them is trusted: the answer of an engine that uses them is checked before it becomes a
//! verdict ([`check`](mod@fencewright_verdict::check)).

#![forbid(unsafe_code)]

pub mod chance;
pub mod constants;
pub mod facts;
pub mod liveness;
pub mod looks;
pub mod loops;
pub mod nonlinear;
pub mod races;
