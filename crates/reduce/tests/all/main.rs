//! All integration tests of this crate, linked as one program.

mod common;
mod exact;
mod explicit;
mod forgetful;
mod text;
