//! Operations with memory orders, and the weaker orders that their text could have.

use fencewright_program::{FileId, Span};

use crate::edit::Change;

/// The kinds of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// A fence.
    Fence,
    /// A store-store fence.
    StoreFence,
    /// An atomic load.
    Load,
    /// An atomic store.
    Store,
    /// An atomic read-modify-write.
    ReadModifyWrite,
}

impl Operation {
    /// The name in machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Fence => "fence",
            Operation::StoreFence => "sfence",
            Operation::Load => "load",
            Operation::Store => "store",
            Operation::ReadModifyWrite => "rmw",
        }
    }
}

/// An operation of the text that has a memory order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ordered {
    /// The kind.
    pub operation: Operation,
    /// Its order as the language writes it: `memory_order_seq_cst`.
    pub order: String,
    /// Where it takes effect: its own position or, if it is in the definition of a macro, the positions of the outermost uses of the macro.
    pub uses: Vec<Span>,
    /// The position of its text, which may be in the definition of a macro.
    pub span: Span,
    /// The weaker forms, weakest first; empty for a read-modify-write.
    pub weaker: Vec<Weaker>,
}

/// A weaker form of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weaker {
    /// The order of this form; `None` if this form removes the operation, which is then a fence.
    pub order: Option<String>,
    /// The file that changes.
    pub file: FileId,
    /// The changes that replace the operation by this form.
    pub changes: Vec<Change>,
}
