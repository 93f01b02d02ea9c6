//! All integration tests of this crate as one program, which is linked once.

mod c_words;
mod executions;
mod two_files;
