//! What the robustness of a program says about a property that holds under SC.

use fencewright_program::{Observable, Property, PropertyKind};
use fencewright_transform::extend::{AttackingStore, Extended};

use crate::task::Reason;

/// What follows if a robust program satisfies a property under SC.
pub(super) enum Conclusion {
    /// It does under TSO.
    Certain,
    /// It does under TSO if the program in which locks are given back is robust and satisfies it under SC too.
    IfReleased,
    /// Nothing, for this reason.
    None(Reason),
}

/// What follows for this property.
pub(super) fn conclusion(program: &Extended, property: &Property) -> Conclusion {
    match &property.kind {
        // All buffers are empty.
        PropertyKind::Finally(..) => Conclusion::Certain,
        PropertyKind::Never(_) if looks_at_memory(property) => {
            let why = "the property looks at memory while stores may be pending: that SC and TSO reach the same states with \
                       empty buffers does not decide it";
            Conclusion::None(Reason::Unsupported(why.into(), Some(property.span)))
        }
        PropertyKind::Never(_) | PropertyKind::Assertions if program.has_locks() => Conclusion::IfReleased,
        // Buffers can be emptied without anybody moving.
        PropertyKind::Never(_) | PropertyKind::Assertions => Conclusion::Certain,
        PropertyKind::NoDeadlock if program.has_locks() => Conclusion::None(blind()),
        // If nothing can move, buffers are empty.
        PropertyKind::NoDeadlock => Conclusion::Certain,
    }
}

fn looks_at_memory(property: &Property) -> bool {
    let mut memory = false;
    if let Some(formula) = property.formula() {
        formula.for_each_leaf(&mut |o| memory |= matches!(o, Observable::Memory(_)));
    }
    memory
}

/// Why a deadlock of an extended program may be none of the original one, if it may: while another thread holds the lock, a store
/// waits under SC and does not under TSO; and with the store kept there is no way back from a path that does not go on.
pub(super) fn false_deadlock(
    program: &Extended,
    property: &Property,
    store: AttackingStore,
) -> Option<Reason> {
    if property.kind != PropertyKind::NoDeadlock {
        None
    } else if program.has_locks() {
        Some(blind())
    } else if store == AttackingStore::Kept {
        let why = "with the store kept, a thread that cannot move may only have followed the wrong path";
        Some(Reason::Unsupported(why.into(), None))
    } else {
        None
    }
}

/// Why there is no answer about deadlocks.
fn blind() -> Reason {
    let why =
        "whether nothing can move while a thread holds the lock is another question under SC than under TSO";
    Reason::Unsupported(why.into(), None)
}

/// Why there is no answer about deadlocks of a program with loops.
pub(super) fn unrolled() -> Reason {
    let why = "no deadlock in the first rounds, and where loops are cut off threads stand still anyway";
    Reason::Unsupported(why.into(), None)
}

/// Why there is no answer about states in which somebody holds the lock.
pub(super) fn locked() -> Reason {
    let why = "while a thread holds the lock, stores of others cannot reach memory: that SC and TSO reach the same states \
               with empty buffers does not decide the property";
    Reason::Unsupported(why.into(), None)
}
