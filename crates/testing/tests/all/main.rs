//! All integration tests of this crate, as one program: they are linked once.

mod abstract_buffers;
mod corpora;
mod faults;
mod wrapping;
