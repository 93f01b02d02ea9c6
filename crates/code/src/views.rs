//! Conversions for memory that is accessed with several types of one size: `unsigned` through an `int *`, members of a union. A cell holds a value of
//! the type with which it was written; a read with another type converts that value to the one with the same bits.

use fencewright_text::Stop;

use crate::core::{Core, Location, Stmt, StmtKind, Value};
use crate::nodes::Nodes;

/// Adds a conversion after each read from memory that is accessed with several integer types.
pub fn convert(core: &mut Core, nodes: &Nodes, stop: &Stop<'_>) {
    for thread in &mut core.threads {
        in_block(&mut thread.code, nodes, false, stop);
    }
}

/// Adds the conversions in a block. `steps`: whether the block is inside the group for one C statement.
fn in_block(code: &mut Vec<Stmt>, nodes: &Nodes, steps: bool, stop: &Stop<'_>) {
    for mut statement in stop.polled(std::mem::take(code)) {
        let inside = match &statement.kind {
            StmtKind::Steps(_) | StmtKind::Atomic(_) => true,
            StmtKind::Block(_) | StmtKind::If(..) | StmtKind::Loop(_) => false,
            _ => steps,
        };
        statement.kind.blocks_mut().for_each(|block| in_block(block, nodes, inside, stop));
        let Some(conversion) = conversion(&mut statement.kind, nodes) else {
            code.push(statement);
            continue;
        };
        let span = statement.span;
        let both = [statement, Stmt { kind: conversion, span }];
        match steps {
            true => code.extend(both),
            false => code.push(Stmt { kind: StmtKind::Steps(both.into()), span }),
        }
    }
}

/// The conversion that has to follow a statement if it reads memory that is accessed with several integer types. The condition of an await, and the
/// condition and new value of an update, are rewritten to use the converted value.
fn conversion(kind: &mut StmtKind, nodes: &Nodes) -> Option<StmtKind> {
    let is_mixed = |place: &Location| nodes.is_mixed(place.node);
    let register = match kind {
        StmtKind::Load(register, place, _) if is_mixed(place) => *register,
        StmtKind::Await { register, place, until: condition, .. } if is_mixed(place) => {
            condition.substitute(*register, &place.view.seen(Value::Register(*register)));
            *register
        }
        StmtKind::Update { place, old, when, new, .. } if is_mixed(place) => {
            let seen = place.view.seen(Value::Register(*old));
            when.iter_mut().chain([new]).for_each(|value| value.substitute(*old, &seen));
            *old
        }
        _ => return None,
    };
    let view = kind.accessed_mut()?.view;
    Some(StmtKind::Assign(register, view.seen(Value::Register(register))))
}
