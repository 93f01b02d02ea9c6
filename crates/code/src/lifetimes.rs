//! Removes those statements about the lifetimes of local variables that have no effect.

use fencewright_text::Stop;
use rustc_hash::FxHashSet;

use crate::core::{Base, Core, NodeId, ObjectEvent, ObjectId, Stmt, StmtKind, each_statement};
use crate::nodes::Nodes;
use crate::reuse;

/// Removes statements about the lifetimes of variables that never end.
pub(crate) fn forget_lasting(core: &mut Core, stop: &Stop<'_>) {
    let mut ended = FxHashSet::default();
    for thread in &core.threads {
        each_statement(&thread.code, stop, &mut |statement| {
            if let StmtKind::Special(ObjectEvent::End(object)) = &statement.kind {
                ended.insert(*object);
            }
        });
    }
    core.threads.iter_mut().for_each(|thread| retain(&mut thread.code, &ended, stop));
}

/// Removes statements about the lifetime of a variable unless it may be accessed through a pointer, a pointer to it may be compared, or a library
/// function may use it.
pub(crate) fn forget_unfollowed(core: &mut Core, nodes: &Nodes, stop: &Stop<'_>) {
    let (mut ended, mut followed) = (FxHashSet::default(), FxHashSet::default());
    let mut pointed: FxHashSet<NodeId> = reuse::compared(core, nodes, stop);
    for thread in &core.threads {
        each_statement(&thread.code, stop, &mut |statement| match &statement.kind {
            StmtKind::Special(ObjectEvent::End(object)) => _ = ended.insert(*object),
            StmtKind::Special(ObjectEvent::Follow(object)) => _ = followed.insert(*object),
            StmtKind::Load(_, place, _)
            | StmtKind::Store(place, ..)
            | StmtKind::Await { place, .. }
            | StmtKind::Update { place, .. }
            | StmtKind::Special(ObjectEvent::Reach(place)) => match place.base {
                Base::Pointed(..) => _ = pointed.insert(nodes.find(place.node)),
                Base::Object(object)
                    if matches!(statement.kind, StmtKind::Special(ObjectEvent::Reach(_))) =>
                {
                    followed.insert(object);
                }
                Base::Object(_) => {}
            },
            _ => {}
        });
    }
    let is_followed = |object: &ObjectId| {
        followed.contains(object) || nodes.has_part(core.objects[object.0 as usize].node, &pointed)
    };
    let needed: FxHashSet<ObjectId> = ended.into_iter().filter(is_followed).collect();
    for thread in &mut core.threads {
        retain(&mut thread.code, &needed, stop);
    }
}

fn retain(code: &mut Vec<Stmt>, needed: &FxHashSet<ObjectId>, stop: &Stop<'_>) {
    code.retain_mut(|statement| match &mut statement.kind {
        _ if stop.now() => true,
        StmtKind::Special(ObjectEvent::End(object))
        | StmtKind::Special(ObjectEvent::Take(object))
        | StmtKind::Special(ObjectEvent::Follow(object)) => needed.contains(object),
        kind => {
            kind.blocks_mut().for_each(|block| retain(block, needed, stop));
            true
        }
    });
}
