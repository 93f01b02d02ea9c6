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

use crate::ast;
pub(crate) use fencewright_fw::{build, names};

pub use c::c;
pub use litmus::litmus;
pub(crate) use litmus_scan::row_length as litmus_row_length;
pub use rmm::rmm;
pub use trencher::trencher;

/// The longest text of another tool that is read: 4 MiB. Importers cannot be interrupted, but a text of this size takes them a
/// fraction of a second.
pub(crate) const MAX_BYTES: usize = 4 << 20;

/// How a litmus test shows its final states.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// The condition as herd writes it, with its quantifier.
    pub condition: String,
    /// The registers and locations that are shown: those in the condition, and those that `locations` names.
    pub shown: Vec<Shown>,
    /// Which final states count at all: a property of the same form as the condition.
    pub filter: Option<ast::Property>,
}

/// A register or location as a litmus test shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// As herd writes it: `0:rax`, `[x]`.
    pub name: String,
    /// What it is in the program.
    pub place: ShownPlace,
    /// How many of the lowest bits are shown.
    pub bits: u32,
    /// Whether these bits are read as a signed number.
    pub signed: bool,
}

/// Where the program keeps a value that a litmus test shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShownPlace {
    /// A shared variable of this name.
    Memory(String),
    /// A thread, and a register of it.
    Register(String, String),
    /// The address of a location, which the program does not need.
    Address(String),
}

/// Whether memorax has reserved the word.
pub(crate) fn is_rmm_word(word: &str) -> bool {
    rmm_tokens::RESERVED.contains(&word)
}

/// Whether a word names an x86 register or a part of one.
pub(crate) fn is_x86_register(word: &str) -> bool {
    litmus_types::RegisterPart::parse(word).is_some()
}
