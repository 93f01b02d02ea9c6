//! Reasons for the answer `unknown` about a property that has no violation under SC, or only a deadlock that may not exist under TSO.

use fencewright_program::{Property, PropertyKind};
use fencewright_transform::extend::{AttackingStore, Extended};

use crate::task::Reason;

/// The reason why robustness does not decide a property that mentions memory.
pub(super) fn pending(property: &Property) -> Reason {
    let why = "the property looks at memory while stores may be pending: that SC and TSO reach the same states with \
               empty buffers does not decide it";
    Reason::Unsupported(why.into(), Some(property.span))
}

/// The reason why a deadlock of an extended program may not be a deadlock of the original program; `None` if it certainly is a deadlock there, or if
/// the property is not about deadlocks. In a program with locks, a store blocks under SC, but not under TSO, while another thread holds the lock. If
/// the first store of a path is kept in the program, a thread that has entered the path cannot leave it, and may be stuck there.
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

/// The reason why deadlocks of a program with locks are undecided.
pub(super) fn blind() -> Reason {
    let why =
        "whether nothing can move while a thread holds the lock is another question under SC than under TSO";
    Reason::Unsupported(why.into(), None)
}

/// The reason why deadlocks of a program with loops are undecided.
pub(super) fn unrolled() -> Reason {
    let why = "no deadlock in the first rounds, and where loops are cut off threads stand still anyway";
    Reason::Unsupported(why.into(), None)
}

/// The reason why a property is undecided in states in which a thread holds the lock.
pub(crate) fn locked() -> Reason {
    let why = "while a thread holds the lock, stores of others cannot reach memory: that SC and TSO reach the same states \
               with empty buffers does not decide the property";
    Reason::Unsupported(why.into(), None)
}
