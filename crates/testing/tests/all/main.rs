//! All integration tests of this crate, as one program: they are linked once.

mod corpora;
mod faults;
mod wrapping;
