//! All integration tests of this crate, as one program: they are linked once.

mod common;
mod exact;
mod explicit;
mod forgetful;
mod text;
