//! Conclusions from the robustness of an extended program about the original one.
//!
//! If a program is robust, the last state of every TSO execution that ends with empty buffers is reachable under SC. docs/lazy.md lists which
//! properties this decides, with counterexamples for the others.

use fencewright_program::{Observable, Property, PropertyKind};

use super::Extended;

/// The conclusion for a property of the original program under TSO if the extended program is robust and satisfies the property under SC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// The original program satisfies the property.
    Certain,
    /// The original program satisfies the property if, in addition, the program in which locks are released ([`Extended::released`]) is robust and
    /// satisfies the property under SC.
    IfReleased,
    /// No conclusion: the property observes memory, and stores may be pending.
    PendingStores,
    /// No conclusion: a deadlock while a thread holds the lock may exist under TSO but not under SC, and vice versa.
    BlockedByLock,
}

impl Extended {
    /// The conclusion for this property of the original program.
    pub fn conclusion(&self, property: &Property) -> Conclusion {
        match &property.kind {
            // In a final state all buffers are empty.
            PropertyKind::Finally(..) => Conclusion::Certain,
            PropertyKind::Never(_) if looks_at_memory(property) => Conclusion::PendingStores,
            PropertyKind::Never(_) | PropertyKind::Assertions if self.has_locks() => Conclusion::IfReleased,
            // From any state all buffers can be flushed without changing locations or registers.
            PropertyKind::Never(_) | PropertyKind::Assertions => Conclusion::Certain,
            PropertyKind::NoDeadlock if self.has_locks() => Conclusion::BlockedByLock,
            // In a deadlock all buffers are empty.
            PropertyKind::NoDeadlock => Conclusion::Certain,
        }
    }
}

fn looks_at_memory(property: &Property) -> bool {
    let mut memory = false;
    if let Some(formula) = property.formula() {
        formula.for_each_leaf(&mut |o| memory |= matches!(o, Observable::Memory(_)));
    }
    memory
}
