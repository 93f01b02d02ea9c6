//! All integration tests of this crate, as one program: they are linked once.

mod executions;
mod two_files;
