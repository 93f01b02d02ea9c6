//! Removes jumps to the next statement, turns jumps to the statement after the innermost loop into `break`, and removes unused labels.

use fencewright_text::Stop;
use rustc_hash::FxHashSet;

use crate::core::{Label, Stmt, StmtKind, each_statement};

pub(super) fn straighten(code: &mut Vec<Stmt>, stop: &Stop<'_>) {
    redirect(code, &FxHashSet::default(), &FxHashSet::default(), stop);
    let mut used = FxHashSet::default();
    each_statement(code, stop, &mut |statement| {
        if let StmtKind::Goto(label) = &statement.kind {
            used.insert(*label);
        }
    });
    unlabel(code, &used, stop);
}

type Labels = FxHashSet<Label>;

/// Cleans the jumps in some code. `after`: the labels directly after this code; `behind`: the labels directly after the innermost loop.
fn redirect(code: &mut Vec<Stmt>, after: &Labels, behind: &Labels, stop: &Stop<'_>) {
    let mut next = after.clone();
    let mut kept = Vec::new();
    for mut statement in stop.polled(std::mem::take(code).into_iter().rev()) {
        match &mut statement.kind {
            StmtKind::Label(label) => {
                next.insert(*label);
                kept.push(statement);
                continue;
            }
            StmtKind::Goto(label) if next.contains(label) => continue,
            StmtKind::Goto(label) if behind.contains(label) => statement.kind = StmtKind::Break,
            StmtKind::If(_, then, otherwise) => {
                redirect(then, &next, behind, stop);
                redirect(otherwise, &next, behind, stop);
            }
            StmtKind::Steps(inner) | StmtKind::Block(inner) => redirect(inner, &next, behind, stop),
            StmtKind::Loop(inner) => redirect(inner, &Labels::default(), &next, stop),
            _ => {}
        }
        next = Labels::default();
        kept.push(statement);
    }
    kept.reverse();
    *code = kept;
}

fn unlabel(code: &mut Vec<Stmt>, used: &Labels, stop: &Stop<'_>) {
    code.retain_mut(|statement| match &mut statement.kind {
        _ if stop.now() => true,
        StmtKind::Label(label) => used.contains(label),
        StmtKind::Steps(inner) | StmtKind::Block(inner) | StmtKind::Loop(inner) => {
            unlabel(inner, used, stop);
            true
        }
        StmtKind::If(_, then, otherwise) => {
            unlabel(then, used, stop);
            unlabel(otherwise, used, stop);
            true
        }
        _ => true,
    });
}
