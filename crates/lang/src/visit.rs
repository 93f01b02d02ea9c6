//! Walks through syntax trees.

use crate::ast::{Block, Expr, ExprKind, Place, StatementKind};

/// Visits all statements of a block, those of inner blocks included.
pub(crate) fn for_each_statement<'a>(block: &'a Block, visit: &mut impl FnMut(&'a StatementKind)) {
    for statement in &block.statements {
        visit(&statement.kind);
        match &statement.kind {
            StatementKind::If(_, then, otherwise) => {
                for_each_statement(then, visit);
                otherwise.iter().for_each(|block| for_each_statement(block, visit));
            }
            StatementKind::While(_, inner)
            | StatementKind::Loop(inner)
            | StatementKind::For(_, _, inner)
            | StatementKind::Block(inner)
            | StatementKind::Steps(inner)
            | StatementKind::Atomic(inner)
            | StatementKind::Snapshot(inner) => for_each_statement(inner, visit),
            StatementKind::Choose(blocks) => blocks.iter().for_each(|block| for_each_statement(block, visit)),
            _ => {}
        }
    }
}

/// Visits the names of all procedures that a block calls itself.
pub(crate) fn for_each_call<'a>(block: &'a Block, visit: &mut impl FnMut(&'a str)) {
    for_each_statement(block, &mut |kind| match kind {
        StatementKind::Assign(place, value) => {
            calls_in_place(place, visit);
            calls_in(value, visit);
        }
        StatementKind::Havoc(place, _)
        | StatementKind::Lock(Some(place))
        | StatementKind::Unlock(Some(place)) => calls_in_place(place, visit),
        StatementKind::Expr(e)
        | StatementKind::Assume(e)
        | StatementKind::Assert(e, _)
        | StatementKind::Await(e)
        | StatementKind::If(e, ..)
        | StatementKind::While(e, _)
        | StatementKind::Return(Some(e)) => calls_in(e, visit),
        _ => {}
    });
}

fn calls_in_place<'a>(place: &'a Place, visit: &mut impl FnMut(&'a str)) {
    place.index.iter().for_each(|index| calls_in(index, visit));
}

fn calls_in<'a>(e: &'a Expr, visit: &mut impl FnMut(&'a str)) {
    match &e.kind {
        ExprKind::Int(_) | ExprKind::At(..) | ExprKind::Register(..) | ExprKind::Quantified(..) => {}
        ExprKind::Place(place) => calls_in_place(place, visit),
        ExprKind::Unary(_, operand) => calls_in(operand, visit),
        ExprKind::Binary(_, left, right) => {
            calls_in(left, visit);
            calls_in(right, visit);
        }
        ExprKind::If(condition, then, otherwise) => {
            [condition, then, otherwise].into_iter().for_each(|part| calls_in(part, visit));
        }
        ExprKind::Cas(place, old, new) => {
            calls_in_place(place, visit);
            calls_in(old, visit);
            calls_in(new, visit);
        }
        ExprKind::Swap(place, value) | ExprKind::FetchAdd(place, value) => {
            calls_in_place(place, visit);
            calls_in(value, visit);
        }
        ExprKind::Call(name, arguments) => {
            visit(&name.text);
            arguments.iter().for_each(|argument| calls_in(argument, visit));
        }
    }
}
