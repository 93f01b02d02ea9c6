//! C, read as it is written: a preprocessor and a parser of our own, so that every token knows its file, its bytes and the macro that brought it.
//!
//! No compiler is needed. What this crate gives is C's syntax ([`ast`]), and a tree in which names, types and conversions are resolved ([`typed`]); what a program does is decided by
//! whoever reads that.

#![forbid(unsafe_code)]

pub mod arithmetic;
pub mod ast;
mod error;
pub mod headers;
mod lexer;
pub mod literal;
pub mod parser;
pub mod preprocess;
mod token;
pub mod typed;
pub mod write;

pub use error::Error;
pub use lexer::lex;
pub use token::{ExpansionId, Kind, Names, Symbol, Token};
