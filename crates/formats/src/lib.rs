//! The formats of other tools: x86 litmus tests, `.rmm` of memorax, automata of trencher. Each is a front end with an importer and an exporter.
//!
//! An importer produces a syntax tree of the same type as the `.fw` parser, with spans into the original text, so that all messages about the program
//! refer to the lines that the user wrote. Names that `.fw` does not allow are changed deterministically.

#![forbid(unsafe_code)]

mod export;
pub mod litmus;
mod liveness;
pub mod rmm;
pub mod trencher;

pub use litmus::Litmus;
pub use rmm::Rmm;
pub use trencher::Trencher;

/// Maximum length of a text: 4 MiB. Importers cannot be interrupted, but a text of this size takes them only a fraction of a second.
const MAX_BYTES: usize = 4 << 20;
