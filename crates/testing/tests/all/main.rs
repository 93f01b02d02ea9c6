//! All integration tests of this crate as one program, which is linked once.

mod abstract_buffers;
mod corpora;
mod faults;
mod wrapping;
