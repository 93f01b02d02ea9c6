//! All integration tests of this crate as one program, which is linked once.

mod brute_force;
mod extrapolate;
mod synthesis;
