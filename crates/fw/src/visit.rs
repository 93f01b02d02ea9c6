//! Traversals of syntax trees.

use crate::ast::{Block, Const, Expr, ExprKind, File, Item, Name, Place, Procedure, StatementKind, Thread};

/// Visits all statements of a block, including those of inner blocks.
pub fn for_each_statement<'a>(block: &'a Block, visit: &mut impl FnMut(&'a StatementKind)) {
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

/// Visits the names of all procedures that a block calls directly.
pub fn for_each_call<'a>(block: &'a Block, visit: &mut impl FnMut(&'a str)) {
    for_each_statement(block, &mut |kind| expressions_of(kind, &mut |e| calls_in(e, visit)));
}

/// Visits the expressions in the constants, threads and procedures of a file, in preorder. Those in ranges and in declarations of variables, and the
/// parts of formulas, are left out.
pub fn for_each_expression<'a>(file: &'a File, visit: &mut impl FnMut(&'a Expr)) {
    for item in &file.items {
        match item {
            Item::Const(constant) => for_each_part(&constant.value, visit),
            Item::Thread(Thread { body, .. }) | Item::Procedure(Procedure { body, .. }) => {
                for_each_statement(body, &mut |kind| {
                    expressions_of(kind, &mut |e| for_each_part(e, visit));
                });
            }
            _ => {}
        }
    }
}

/// Whether evaluating an expression calls a procedure, performs a read-modify-write operation, or reads a name that `is_shared`.
pub fn has_call_or_access(e: &Expr, is_shared: &impl Fn(&Name) -> bool) -> bool {
    let mut found = false;
    for_each_part(e, &mut |part| {
        found |= match &part.kind {
            ExprKind::Cas(..) | ExprKind::Swap(..) | ExprKind::FetchAdd(..) | ExprKind::Call(..) => true,
            ExprKind::Place(place) => is_shared(&place.name),
            _ => false,
        };
    });
    found
}

/// Visits the expressions of a statement, but not those of nested statements, ranges and declarations of variables.
fn expressions_of<'a>(kind: &'a StatementKind, visit: &mut impl FnMut(&'a Expr)) {
    match kind {
        StatementKind::Assign(place, value) => {
            place.index.iter().for_each(|index| visit(index));
            visit(value);
        }
        StatementKind::Havoc(place, _)
        | StatementKind::Lock(Some(place))
        | StatementKind::Unlock(Some(place)) => place.index.iter().for_each(|index| visit(index)),
        StatementKind::Const(Const { value: e, .. })
        | StatementKind::Expr(e)
        | StatementKind::Assume(e)
        | StatementKind::Assert(e, _)
        | StatementKind::Await(e)
        | StatementKind::If(e, ..)
        | StatementKind::While(e, _)
        | StatementKind::Return(Some(e)) => visit(e),
        _ => {}
    }
}

fn calls_in<'a>(e: &'a Expr, visit: &mut impl FnMut(&'a str)) {
    for_each_part(e, &mut |part| {
        if let ExprKind::Call(name, _) = &part.kind {
            visit(&name.text);
        }
    });
}

/// Visits an expression and its subexpressions, in preorder. The parts of an expression that only formulas may contain are left out.
fn for_each_part<'a>(e: &'a Expr, visit: &mut impl FnMut(&'a Expr)) {
    visit(e);
    let mut index = |place: &'a Place| place.index.iter().for_each(|index| for_each_part(index, visit));
    match &e.kind {
        ExprKind::Int(_) | ExprKind::At(..) | ExprKind::Register(..) | ExprKind::Quantified(..) => {}
        ExprKind::Place(place) => index(place),
        ExprKind::Unary(_, operand) => for_each_part(operand, visit),
        ExprKind::Binary(_, left, right) => {
            [left, right].into_iter().for_each(|part| for_each_part(part, visit))
        }
        ExprKind::If(condition, then, otherwise) => {
            [condition, then, otherwise].into_iter().for_each(|part| for_each_part(part, visit));
        }
        ExprKind::Cas(place, old, new) => {
            index(place);
            [old, new].into_iter().for_each(|part| for_each_part(part, visit));
        }
        ExprKind::Swap(place, value) | ExprKind::FetchAdd(place, value) => {
            index(place);
            for_each_part(value, visit);
        }
        ExprKind::Call(_, arguments) => arguments.iter().for_each(|argument| for_each_part(argument, visit)),
    }
}
