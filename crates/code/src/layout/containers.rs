//! Unification for `container_of`: structures found through their members.
//!
//! Unification propagates from a place to its parts. `container_of` leads the other way, from a member to the structure around it. Its result may be
//! any structure of its type in which the pointer may point to that member, so all these structures are unified.

use fencewright_c::typed::tree::Step;
use fencewright_program::Span;
use fencewright_text::Stop;

use crate::core::{Core, NodeId, Value, each_statement};
use crate::nodes::{Clash, Nodes, Shape};

/// Unifies the nodes of structures that the same `container_of` may return.
pub(crate) fn unify(core: &Core, nodes: &mut Nodes, stop: &Stop<'_>) -> Result<(), Clash> {
    let found = ways_back(core, stop);
    loop {
        let mut changed = false;
        for (container, path, _) in &found {
            let Some(member) = nodes.at_path(*container, path) else { continue };
            for other in stop.polled((0..nodes.len() as u32).map(NodeId)) {
                let alike = nodes.find(other) == other
                    && other != nodes.find(*container)
                    && same_record(nodes, other, *container)
                    && nodes.at_path(other, path) == Some(nodes.find(member));
                if alike {
                    nodes.unify(*container, other)?;
                    changed = true;
                }
            }
        }
        if !changed {
            return Ok(());
        }
    }
}

fn same_record(nodes: &Nodes, one: NodeId, other: NodeId) -> bool {
    match (nodes.shape_of(one), nodes.shape_of(other)) {
        (Shape::Record(one, _), Shape::Record(other, _)) => one == other,
        _ => false,
    }
}

/// The uses of `container_of`: the node of the structure, the path to the member, and the span.
pub(crate) fn ways_back<'a>(core: &'a Core, stop: &Stop<'_>) -> Vec<(NodeId, &'a [Step], Span)> {
    let mut found = Vec::new();
    for thread in &core.threads {
        each_statement(&thread.code, stop, &mut |statement| {
            statement.kind.values(&mut |value| {
                value.each(&mut |part| {
                    if let Value::Container { node, path, .. } = part {
                        found.push((*node, path.as_slice(), statement.span));
                    }
                });
            });
        });
    }
    found
}
