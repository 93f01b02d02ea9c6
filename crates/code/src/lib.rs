//! Core code: the intermediate representation of languages with pointers and functions, and its translation to `.fw`.
//!
//! A front end elaborates its language to [`core`] code: thread by thread, with calls inlined and pointers symbolic, and with nodes that say which
//! pointers may point to the same places ([`nodes`]). Then passes shrink the code (`simplify`, `clean`), layout assigns numbers to places, which
//! gives [`flat`] code, and `emit` writes the syntax tree of `.fw`; [`pipeline`] has the order. Types and integers are those of C.

#![forbid(unsafe_code)]

mod clean;
pub mod core;
mod dataflow;
mod emit;
pub mod ends;
pub mod flat;
mod hazards;
mod late_stores;
mod layout;
mod lifetimes;
pub mod nodes;
pub mod numbers;
pub mod pipeline;
pub mod points_to;
pub mod possible;
pub mod reuse;
mod simplify;
pub mod spinning;
mod spins;
pub mod statement;
#[cfg(test)]
mod tests;
mod views;
