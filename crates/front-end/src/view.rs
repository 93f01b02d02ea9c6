//! Final states, as a litmus test shows them.

use fencewright_fw::ast;

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
