//! Reuse of freed memory by allocations.
//!
//! An allocation may return an object that its own thread has freed, or one that another thread has freed; the latter is allowed because a
//! deallocation synchronises with the allocation that returns the same memory (C11, 7.22.3). Whether memory comes from another thread is observable
//! only if a dangling pointer is compared with a pointer to the new object. So, retired objects apart, the model passes freed objects between threads
//! only if their class has such comparisons.

use std::collections::BTreeSet;

use fencewright_text::Stop;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::core::{
    Core, Freeing, NodeId, ObjectEvent, Origin, Register, StmtKind, ThreadNumber, Times, Value,
    each_statement,
};
use crate::layout::uses::allocations_at;
use crate::nodes::Nodes;

/// The model of reuse of freed memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reuse {
    /// Allocations return new memory only.
    #[default]
    Never,
    /// Allocations may return freed memory.
    Allocated,
    /// Allocations return new memory, and where a pointer to new memory is compared with a dangling pointer, the model ends: the answer for such
    /// executions is unknown. Used for programs in which elaboration has to determine the objects that pointers point to.
    Compared,
}

/// The threads that allocate and free objects of one class.
#[derive(Default)]
struct Use {
    allocated_by: FxHashSet<ThreadNumber>,
    freed_by: FxHashSet<ThreadNumber>,
    /// The threads that free objects at once, without regard to hazard pointers, each with the threads that have ended by then.
    freed_now_by: FxHashMap<ThreadNumber, BTreeSet<ThreadNumber>>,
    retired: bool,
}

impl Use {
    fn own(&self) -> bool {
        !self.allocated_by.is_disjoint(&self.freed_by)
    }

    fn foreign(&self) -> bool {
        let comes_later = |one: &ThreadNumber| {
            self.freed_now_by.iter().any(|(other, ended)| one != other && !ended.contains(one))
        };
        self.allocated_by.iter().any(comes_later)
    }
}

/// Whether some allocation may return memory that its own thread freed, retired memory or, where that is observable, memory freed by another thread.
pub fn comes_back(core: &Core, nodes: &Nodes, stop: &Stop<'_>) -> bool {
    let uses = uses(core, nodes, stop);
    let freed = |node: NodeId| uses.get(&nodes.find(node)).is_some_and(|of| !of.freed_by.is_empty());
    let object = |number: crate::core::ObjectId| &core.objects[number.0 as usize];
    let mut folded = core.compared.iter().flat_map(|&(one, other)| [(one, other), (other, one)]);
    uses.values().any(|of| of.own() || of.retired)
        || !passed_on(core, nodes, stop).is_empty()
        || folded.any(|(old, new)| freed(object(old).node) && is_later(object(new).origin))
}

/// Whether the program retires objects.
pub fn retires(core: &Core, stop: &Stop<'_>) -> bool {
    let mut found = false;
    for thread in &core.threads {
        each_statement(&thread.code, stop, &mut |statement| {
            let freed = matches!(statement.kind, StmtKind::Special(ObjectEvent::Free(.., Freeing::Retire)));
            found |= freed;
        });
    }
    found
}

/// The classes whose objects are freed by one thread and allocated by another one, and whose pointers are compared.
pub(super) fn passed_on(core: &Core, nodes: &Nodes, stop: &Stop<'_>) -> FxHashSet<NodeId> {
    let (uses, compared) = (uses(core, nodes, stop), compared(core, nodes, stop));
    let foreign = uses.into_iter().filter(|(_, of)| of.foreign()).map(|(node, _)| node);
    foreign.filter(|node| nodes.has_part(*node, &compared)).collect()
}

/// Whether an allocation with this origin may happen after some object has been freed.
pub fn is_later(origin: Origin) -> bool {
    matches!(origin, Origin::Heap { times: Times::Once | Times::Counted, .. })
}

fn uses(core: &Core, nodes: &Nodes, stop: &Stop<'_>) -> FxHashMap<NodeId, Use> {
    let mut uses: FxHashMap<NodeId, Use> = FxHashMap::default();
    for object in core.objects.iter().filter(|object| is_later(object.origin)) {
        if let Origin::Heap { thread, .. } = object.origin {
            uses.entry(nodes.find(object.node)).or_default().allocated_by.insert(thread);
        }
    }
    for (number, thread) in (0..).map(ThreadNumber).zip(&core.threads) {
        each_statement(&thread.code, stop, &mut |statement| {
            if let StmtKind::Special(ObjectEvent::Free(_, node, freeing)) = &statement.kind {
                for freed in allocations_at(core, nodes, *node) {
                    let used = uses.entry(freed).or_default();
                    used.freed_by.insert(number);
                    match freeing {
                        Freeing::Now => {
                            let ended = core.ends.before_free(number, *node);
                            used.freed_now_by
                                .entry(number)
                                .and_modify(|all| all.retain(|thread| ended.contains(thread)))
                                .or_insert(ended);
                        }
                        Freeing::Retire => used.retired = true,
                    }
                }
            }
        });
    }
    uses
}

/// The classes whose pointers are compared with other pointers.
pub fn compared(core: &Core, nodes: &Nodes, stop: &Stop<'_>) -> FxHashSet<NodeId> {
    let mut compared = FxHashSet::default();
    for thread in &core.threads {
        let points = |register: Register| thread.registers[register.0 as usize].points;
        each_statement(&thread.code, stop, &mut |statement| {
            statement.kind.values(&mut |value| {
                value.each(&mut |part| {
                    if let Value::Binary(op, a, b) = part
                        && op.is_comparison()
                        && !matches!((&**a, &**b), (Value::Number(_), _) | (_, Value::Number(_)))
                    {
                        let pointed = a.pointed_to(&points).into_iter().chain(b.pointed_to(&points));
                        compared.extend(pointed.map(|node| nodes.find(node)));
                    }
                });
            });
        });
    }
    compared
}
