//! Core code: what programs of languages with pointers and functions are before they are `.fw`, and all that is done to it.
//!
//! A language is translated to [`core`], thread by thread, with calls inlined and pointers symbolic, and says which of them may point to the same
//! places ([`nodes`]). Then the code is made smaller ([`simplify`], [`clean`]), numbers are chosen for places (`layout`), which gives [`flat`] code, and
//! the syntax tree of `.fw` is written (`emit`); [`pipeline`] has the order. Types and integers are still those of C.

#![forbid(unsafe_code)]

pub mod clean;
pub mod core;
mod emit;
pub mod flat;
mod layout;
pub mod nodes;
pub mod numbers;
pub mod pipeline;
pub mod reuse;
pub mod simplify;
pub mod spinning;
mod spins;
pub mod statement;
#[cfg(test)]
mod tests;
pub mod views;
