//! All integration tests of this crate, as one program: they are linked once.

mod arithmetic;
mod common;
mod corpora;
#[path = "common/dump.rs"]
mod dump;
mod parser;
mod preprocessor;
mod typed;
