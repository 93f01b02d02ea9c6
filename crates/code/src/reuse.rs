//! Memory that was given back, and what an allocation makes of it.
//!
//! An allocation may return an object that its own thread has freed; the translation models this for threads that do both. It does not model that an allocation returns memory
//! freed by another thread, or a part of a larger object. The difference shows only where a dangling pointer is compared with one to the new object: there is a warning.

use std::collections::{HashMap, HashSet};

use super::core::{Core, NodeId, Origin, Register, StmtKind, ThreadNumber, Times, Value, each_statement};
use super::nodes::Nodes;
use fencewright_program::Span;
use fencewright_text::Diagnostic;

/// Who allocates, gives back and compares objects of one class.
#[derive(Default)]
struct Use {
    allocated_by: HashSet<ThreadNumber>,
    freed_by: HashSet<ThreadNumber>,
    /// Where something is given back first.
    freed_at: Option<Span>,
    compared: bool,
    /// How many bytes its objects have.
    sizes: HashSet<u64>,
}

/// Whether a thread allocates objects of a class of which it gives some back.
pub fn comes_back(core: &Core, nodes: &Nodes) -> bool {
    uses(core, nodes).values().any(|of| !of.allocated_by.is_disjoint(&of.freed_by))
}

/// Warnings about memory that may be allocated again, but is not in the model.
pub fn warnings(core: &Core, nodes: &Nodes, reuse: bool) -> Vec<Diagnostic> {
    let foreign = |of: &Use| {
        let is_modelled = |one: &ThreadNumber, other: &ThreadNumber| reuse && one == other;
        of.allocated_by.iter().any(|one| of.freed_by.iter().any(|other| !is_modelled(one, other)))
    };
    let left_out = |of: &Use| foreign(of) || of.sizes.len() > 1 && !of.freed_by.is_empty();
    let uses = uses(core, nodes);
    let found = uses.values().filter(|of| of.compared && left_out(of));
    let mut spans: Vec<Span> = found.filter_map(|of| of.freed_at).collect();
    for (one, other) in core.compared.iter().flat_map(|&(one, other)| [(one, other), (other, one)]) {
        let (old, new) = (&core.objects[one.0 as usize], &core.objects[other.0 as usize]);
        let is_later = matches!(new.origin, Origin::Heap { times: Times::Once | Times::Counted, .. });
        let is_freed = matches!(old.origin, Origin::Heap { .. });
        let freed_at = uses.get(&nodes.find(old.node)).and_then(|of| of.freed_at);
        spans.extend(freed_at.filter(|_| is_later && is_freed));
    }
    spans.sort_by_key(|span| (span.file, span.start));
    spans.dedup();
    let message = "memory that is given back here may be allocated again, which is left out of the model: an old pointer is never equal to one to a new object";
    spans.into_iter().map(|span| Diagnostic::new(span, message)).collect()
}

fn uses(core: &Core, nodes: &Nodes) -> HashMap<NodeId, Use> {
    let mut uses: HashMap<NodeId, Use> = HashMap::new();
    for object in &core.objects {
        if let Origin::Heap { thread, times, bytes, .. } = object.origin {
            let of = uses.entry(nodes.find(object.node)).or_default();
            of.sizes.insert(bytes);
            if times != Times::First {
                of.allocated_by.insert(thread);
            }
        }
    }
    for (number, thread) in (0..).map(ThreadNumber).zip(&core.threads) {
        let points = |register: Register| thread.registers[register.0 as usize].points;
        each_statement(&thread.code, &mut |statement| {
            if let StmtKind::Free(_, node) = &statement.kind {
                let of = uses.entry(nodes.find(*node)).or_default();
                of.freed_by.insert(number);
                of.freed_at.get_or_insert(statement.span);
            }
            statement.kind.values(&mut |value| {
                value.each(&mut |part| {
                    if let Value::Binary(op, a, b) = part
                        && op.is_comparison()
                        && !matches!((&**a, &**b), (Value::Number(_), _) | (_, Value::Number(_)))
                    {
                        for node in a.pointed_to(&points).into_iter().chain(b.pointed_to(&points)) {
                            uses.entry(nodes.find(node)).or_default().compared = true;
                        }
                    }
                });
            });
        });
    }
    uses
}
