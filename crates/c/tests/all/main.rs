//! All integration tests of this crate, as one program: they are linked once.

mod arithmetic;
mod common;
#[path = "common/dump.rs"]
mod dump;
mod corpora;
mod parser;
mod preprocessor;
mod typed;
