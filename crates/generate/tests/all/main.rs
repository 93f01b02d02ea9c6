//! All integration tests of this crate as one program, which is linked once.

mod verdicts;
mod well_formed;
