//! A C front end: preprocessor, parser and type checker. Every token has its file, its position there, and the macro expansion that produced it.
//!
//! No compiler is needed. The results are a syntax tree ([`ast`]), and a tree with resolved names, types and conversions ([`typed`]); the meaning of
//! programs is defined in crate `c-model`.

#![forbid(unsafe_code)]

pub mod arithmetic;
pub mod assembly;
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
