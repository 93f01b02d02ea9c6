//! What a program should or should not do.

use crate::expr::Expr;
use crate::model::{LocationId, RegisterId, ThreadId};
use crate::span::Span;

/// Something one can see of a whole state.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Observable {
    /// 1 if the thread is at one of these locations (sorted), else 0.
    At(ThreadId, Vec<LocationId>),
    /// A register of a thread.
    Register(ThreadId, RegisterId),
    /// A memory cell; buffers are not looked into.
    Memory(u32),
}

/// A statement about one state.
pub type Formula = Expr<Observable>;

/// A named property.
#[derive(Clone, Debug)]
pub struct Property {
    /// Its name, unique in the program.
    pub name: String,
    /// What it says.
    pub kind: PropertyKind,
    /// Where the source says it.
    pub span: Span,
}

/// What a property says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PropertyKind {
    /// No reachable state satisfies the formula.
    Never(Formula),
    /// No action faults.
    Assertions,
    /// No reachable state in which nothing can move and some thread has not ended.
    NoDeadlock,
    /// About the final states: all threads ended, buffers empty.
    Finally(Quantifier, Formula),
}

impl PropertyKind {
    /// Whether it asks for an execution, so that its violation has none to show.
    pub fn is_existence(&self) -> bool {
        matches!(self, PropertyKind::Finally(Quantifier::Exists, _))
    }
}

/// Which final states must satisfy the formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Quantifier {
    /// At least one.
    Exists,
    /// None.
    Never,
    /// All.
    Forall,
}

impl Property {
    /// The implicit property that no action faults.
    pub fn assertions() -> Self {
        Property { name: "assertions".into(), kind: PropertyKind::Assertions, span: Span::default() }
    }

    /// Freedom from deadlock, which one can ask for in every program.
    pub fn deadlock() -> Self {
        Property { name: "deadlock".into(), kind: PropertyKind::NoDeadlock, span: Span::default() }
    }

    /// The formula, if there is one.
    pub fn formula(&self) -> Option<&Formula> {
        match &self.kind {
            PropertyKind::Never(f) | PropertyKind::Finally(_, f) => Some(f),
            PropertyKind::Assertions | PropertyKind::NoDeadlock => None,
        }
    }
}
