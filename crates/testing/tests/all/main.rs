//! All integration tests of this crate as one program, which is linked once.

mod corpora;
mod faults;
mod wrapping;
