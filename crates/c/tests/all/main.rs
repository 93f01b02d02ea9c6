//! All integration tests of this crate. They are modules of one program, so that it is linked only once.

mod arithmetic;
mod common;
mod corpora;
#[path = "common/dump.rs"]
mod dump;
mod parser;
mod preprocessor;
mod typed;
mod xorshift;
