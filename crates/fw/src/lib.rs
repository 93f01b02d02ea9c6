//! The `.fw` language: lexer, parser, printer and formatter.
//!
//! ```text
//! text --lexer--> tokens, comments --parser--> syntax tree --print--> text
//!                     `------------------format------------------------^
//! ```
//!
//! The language itself is described in `docs/language.md`. [`parse`] reports all independent errors in one run, with advice for habits from other
//! languages. [`print()`] and [`format()`] share one layout, so printed text is already formatted.
//!
//! Importers of other languages produce the same syntax tree ([`ast`]), with the help of [`build`] and [`names`], and share its lowering ([`lower`]).
//! [`graph`] writes a program without source text as .fw.

#![forbid(unsafe_code)]

pub mod ast;
pub mod build;
mod chain;
mod expression;
mod format;
pub mod graph;
mod item;
mod layout;
mod lexer;
pub mod lower;
pub mod names;
mod parser;
mod precedence;
mod print;
mod range;
mod slips;
mod statement;
mod token;
pub mod visit;
mod wrap;

pub use chain::chain;
pub use expression::{integer_type, is_built_in};
pub use format::format;
pub(crate) use lexer::clip;
pub use lexer::{Lexed, MAX_TOKENS, lex};
pub use parser::{parse, parse_unless};
pub use precedence::precedence;
pub use print::{print, print_expression};
pub use token::{Keyword, Token, TokenKind};
