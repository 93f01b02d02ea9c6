//! Properties: conditions on reachable states that a program should or should not satisfy.

use crate::expr::Expr;
use crate::model::{LocationId, RegisterId, ThreadId};
use crate::span::Span;

/// An atomic observation of a state.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Observable {
    /// 1 if the thread is at one of these locations (sorted), 0 otherwise.
    At(ThreadId, Vec<LocationId>),
    /// The value of a register of a thread.
    Register(ThreadId, RegisterId),
    /// A memory cell. The value is that in memory; pending stores in buffers do not count.
    Memory(u32),
}

/// A condition on one state.
pub type Formula = Expr<Observable>;

/// A named property.
#[derive(Clone, Debug)]
pub struct Property {
    /// The name, unique in the program.
    pub name: String,
    /// The condition to be checked.
    pub kind: PropertyKind,
    /// The place in the source where the property is stated.
    pub span: Span,
}

/// The condition that a property states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PropertyKind {
    /// No reachable state satisfies the formula.
    Never(Formula),
    /// No action faults.
    Assertions,
    /// No reachable state is a deadlock: a state in which no step is enabled although some thread has neither terminated nor faulted.
    NoDeadlock,
    /// A condition on the final states, those in which all threads have terminated and all buffers are empty.
    Finally(Quantifier, Formula),
}

impl PropertyKind {
    /// Whether the property states that an execution exists. No single execution shows a violation of such a property.
    pub fn is_existence(&self) -> bool {
        matches!(self, PropertyKind::Finally(Quantifier::Exists, _))
    }
}

/// Which of the final states must satisfy the formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Quantifier {
    /// At least one final state.
    Exists,
    /// No final state.
    Never,
    /// Every final state.
    Forall,
}

impl Property {
    /// The implicit property that no action faults.
    pub fn assertions() -> Self {
        Property { name: "assertions".into(), kind: PropertyKind::Assertions, span: Span::default() }
    }

    /// Freedom from deadlock, which can be checked for every program, even if the source does not state it.
    pub fn deadlock() -> Self {
        Property { name: "deadlock".into(), kind: PropertyKind::NoDeadlock, span: Span::default() }
    }

    /// The formula, for the kinds that have one.
    pub fn formula(&self) -> Option<&Formula> {
        match &self.kind {
            PropertyKind::Never(f) | PropertyKind::Finally(_, f) => Some(f),
            PropertyKind::Assertions | PropertyKind::NoDeadlock => None,
        }
    }
}
