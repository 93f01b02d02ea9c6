//! All integration tests of this crate as one program, which is linked once.

mod executions;
mod two_files;
