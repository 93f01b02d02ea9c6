//! All integration tests of this crate, as one program: they are linked once.

mod c_words;
mod executions;
mod two_files;
