//! The presentation of final states in a litmus test.

use fencewright_fw::ast;

/// The presentation of final states in a litmus test.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// The condition in herd's notation, with its quantifier.
    pub condition: String,
    /// The registers and locations to show: those in the condition, and those that the test lists under `locations`.
    pub shown: Vec<Shown>,
    /// The test's filter on final states, if any: the formula of this property, whose kind has no meaning. Final states that do not satisfy it are
    /// left out.
    pub filter: Option<ast::Property>,
}

/// A register or location that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The name in herd's notation: `0:rax`, `[x]`.
    pub name: String,
    /// The register or memory cell of the program that holds the shown value.
    pub place: ShownPlace,
    /// The number of low bits that are shown.
    pub bits: u32,
    /// Whether these bits are a signed number.
    pub signed: bool,
}

/// The register, variable or address of a value that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShownPlace {
    /// A shared variable of this name.
    Memory(String),
    /// The names of a thread and of its register.
    Register(String, String),
    /// No variable or register of the program: the value is always the address of the location with this name.
    Address(String),
}
