//! The `.fw` language: lexer, parser, printer and formatter.
//!
//! ```text
//! text --lexer--> tokens, comments --parser--> syntax tree --print--> text
//!                     `------------------format------------------------^
//! ```
//!
//! The language itself is described in `docs/language.md`. [`parse`] reports all independent errors in one run, with
//! advice on what people write who know other languages. [`print()`] and [`format()`] share one layout, so what is printed
//! is formatted already.

mod expression;
mod format;
mod item;
mod layout;
mod lexer;
mod parser;
mod precedence;
mod print;
mod slips;
mod statement;
mod token;
mod wrap;

pub use expression::{chain, integer_type, is_built_in};
pub use format::format;
pub(crate) use lexer::clip;
pub use lexer::{Lexed, MAX_TOKENS, lex};
pub use parser::{parse, parse_unless};
pub use precedence::precedence;
pub use print::{print, print_expression};
pub use token::{Keyword, Token, TokenKind};
