//! All integration tests of this crate, as one program: they are linked once.

mod brute_force;
mod extrapolate;
mod synthesis;
