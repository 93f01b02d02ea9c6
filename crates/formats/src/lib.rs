//! The formats of other tools: x86 litmus tests, `.rmm` of memorax, automata of trencher. Each is a front end with an importer and an exporter.
//!
//! An importer gives the same syntax tree as the `.fw` parser, with spans into the original text, so that whatever is said
//! later about the program points at the lines its author wrote. Names that `.fw` does not allow are changed, always in
//! the same way.

#![forbid(unsafe_code)]

mod export;
pub mod litmus;
mod liveness;
pub mod rmm;
pub mod trencher;

pub use litmus::Litmus;
pub use rmm::Rmm;
pub use trencher::Trencher;

/// The longest text of another tool that is read: 4 MiB. Importers cannot be interrupted, but a text of this size takes them a
/// fraction of a second.
const MAX_BYTES: usize = 4 << 20;
