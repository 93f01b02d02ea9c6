//! Importers for the formats of other tools.
//!
//! Each gives the same syntax tree as the `.fw` parser, with spans into the original text, so that whatever is said
//! later about the program points at the lines its author wrote. Names that `.fw` does not allow are changed, always in
//! the same way.

pub mod c;
mod litmus;
mod litmus_bounds;
mod litmus_code;
mod litmus_condition;
mod litmus_mnemonic;
mod litmus_parse;
mod litmus_scan;
mod litmus_types;
mod rmm;
mod rmm_process;
mod rmm_tokens;
mod rmm_values;
mod trencher;
mod trencher_values;

pub use fencewright_front_end::{Shown, ShownPlace, View};
pub(crate) use fencewright_fw::{build, names};

pub use c::c;
pub use litmus::litmus;
pub(crate) use litmus_scan::row_length as litmus_row_length;
pub use rmm::rmm;
pub use trencher::trencher;

/// The longest text of another tool that is read: 4 MiB. Importers cannot be interrupted, but a text of this size takes them a
/// fraction of a second.
pub(crate) const MAX_BYTES: usize = 4 << 20;

/// Whether memorax has reserved the word.
pub(crate) fn is_rmm_word(word: &str) -> bool {
    rmm_tokens::RESERVED.contains(&word)
}

/// Whether a word names an x86 register or a part of one.
pub(crate) fn is_x86_register(word: &str) -> bool {
    litmus_types::RegisterPart::parse(word).is_some()
}
