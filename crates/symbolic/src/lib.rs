//! Symbolic engines: states of a machine whose integers are represented by an abstract domain, with refinement.
//!
//! One search ([`search`]) works for every machine and every domain ([`domain`]). Engine [`cegar`] abstracts buffers and integers, and examines each
//! counterexample with exact integers ([`examine`]). Engine [`contexts`] bounds the number of contexts (the turns that threads take), and increases
//! this bound step by step.

#![forbid(unsafe_code)]

pub mod cegar;
pub mod contexts;
pub mod domain;
mod encode;
pub mod examine;
mod execution;
pub mod search;
