//! Why there is no answer about some properties that hold under SC, although SC and TSO do not differ.

use fencewright_program::{Property, PropertyKind};
use fencewright_transform::extend::{AttackingStore, Extended};

use crate::task::Reason;

/// Why nothing follows for a property that looks at memory.
pub(super) fn pending(property: &Property) -> Reason {
    let why = "the property looks at memory while stores may be pending: that SC and TSO reach the same states with \
               empty buffers does not decide it";
    Reason::Unsupported(why.into(), Some(property.span))
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
pub(super) fn blind() -> Reason {
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
