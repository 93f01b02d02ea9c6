//! All integration tests of this crate as one program, so that only one program has to be linked.

mod verdicts;
mod well_formed;
