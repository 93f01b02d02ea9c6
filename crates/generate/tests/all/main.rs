//! All integration tests of this crate, as one program: they are linked once.

mod verdicts;
mod well_formed;
