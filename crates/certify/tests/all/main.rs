//! All integration tests of this crate, as one program: they are linked once.

mod automorphism;
mod nesting;
mod symmetry;
mod trusted;
