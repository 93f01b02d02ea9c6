//! What the robustness of an extended program says about the original one.
//!
//! If a program is robust, every TSO execution of it that ends with empty buffers ends where SC can end, too. docs/lazy.md has the table
//! of what follows from that, and the examples of what does not.

use fencewright_program::{Observable, Property, PropertyKind};

use super::Extended;

/// What follows for a property of the original program under TSO, if the extended program is robust and satisfies it under SC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// The original program satisfies it.
    Certain,
    /// It does, if the program in which locks are given back ([`Extended::released`]) is robust and satisfies it under SC, too.
    IfReleased,
    /// Nothing: the property looks at memory while stores may be pending.
    PendingStores,
    /// Nothing: whether nothing can move while a thread holds the lock is another question under SC than under TSO.
    BlockedByLock,
}

impl Extended {
    /// What follows for this property of the original program.
    pub fn conclusion(&self, property: &Property) -> Conclusion {
        match &property.kind {
            // All buffers are empty.
            PropertyKind::Finally(..) => Conclusion::Certain,
            PropertyKind::Never(_) if looks_at_memory(property) => Conclusion::PendingStores,
            PropertyKind::Never(_) | PropertyKind::Assertions if self.has_locks() => Conclusion::IfReleased,
            // Buffers can be emptied without anybody moving.
            PropertyKind::Never(_) | PropertyKind::Assertions => Conclusion::Certain,
            PropertyKind::NoDeadlock if self.has_locks() => Conclusion::BlockedByLock,
            // If nothing can move, buffers are empty.
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
