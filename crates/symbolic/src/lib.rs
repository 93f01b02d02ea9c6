//! Symbolic engines: states of a machine whose integers are represented by a domain, and refinement where that is too coarse.
//!
//! One search ([`search`]) works for every machine and every domain ([`domain`]). Engine [`cegar`] abstracts buffers and integers, and examines
//! each counterexample on exact integers ([`examine`]). Engine [`contexts`] allows threads to take turns so many times, and more and more often.

#![forbid(unsafe_code)]

pub mod cegar;
pub mod contexts;
pub mod domain;
mod encode;
pub mod examine;
mod execution;
pub mod search;
