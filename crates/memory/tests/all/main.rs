//! All integration tests of this crate, as one program: they are linked once.

mod arithmetic;
mod simulation;
