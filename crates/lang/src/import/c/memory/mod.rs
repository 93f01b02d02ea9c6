//! From core code to `.fw`: numbers for addresses, checks of accesses, statements.

pub mod flat;
mod heap;
mod layout;
mod resolve;
mod uses;

/// How memory is modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many objects each allocation in a loop may give.
    pub heap: u32,
    /// Whether an allocation may give an object that its thread gave back.
    pub reuse: bool,
}
