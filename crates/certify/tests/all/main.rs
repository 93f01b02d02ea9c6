//! All integration tests of this crate. They are modules of one program, so that it is linked only once.

mod automorphism;
mod nesting;
mod symmetry;
mod trusted;
