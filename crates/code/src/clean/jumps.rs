//! Jumps to where control goes anyway, and labels that nobody jumps to.

use rustc_hash::FxHashSet;

use super::super::core::{Label, Stmt, StmtKind};

/// Takes out jumps to what follows, makes jumps behind a loop a `break`, and takes out labels without jumps.
pub(super) fn straighten(code: &mut Vec<Stmt>) {
    redirect(code, &FxHashSet::default(), &FxHashSet::default());
    let mut used = FxHashSet::default();
    targets(code, &mut used);
    unlabel(code, &used);
}

type Labels = FxHashSet<Label>;

/// `after`: where control is behind this code; `behind`: where it is behind the innermost loop.
fn redirect(code: &mut Vec<Stmt>, after: &Labels, behind: &Labels) {
    let mut next = after.clone();
    let mut kept = Vec::new();
    for mut statement in std::mem::take(code).into_iter().rev() {
        match &mut statement.kind {
            StmtKind::Label(label) => {
                next.insert(*label);
                kept.push(statement);
                continue;
            }
            StmtKind::Goto(label) if next.contains(label) => continue,
            StmtKind::Goto(label) if behind.contains(label) => statement.kind = StmtKind::Break,
            StmtKind::If(_, then, otherwise) => {
                redirect(then, &next, behind);
                redirect(otherwise, &next, behind);
            }
            StmtKind::Steps(inner) | StmtKind::Block(inner) => redirect(inner, &next, behind),
            StmtKind::Loop(inner) => redirect(inner, &Labels::default(), &next),
            _ => {}
        }
        next = Labels::default();
        kept.push(statement);
    }
    kept.reverse();
    *code = kept;
}

fn targets(code: &[Stmt], used: &mut Labels) {
    for statement in code {
        if let StmtKind::Goto(label) = &statement.kind {
            used.insert(*label);
        }
        statement.kind.blocks().into_iter().for_each(|block| targets(block, used));
    }
}

fn unlabel(code: &mut Vec<Stmt>, used: &Labels) {
    code.retain_mut(|statement| match &mut statement.kind {
        StmtKind::Label(label) => used.contains(label),
        StmtKind::Steps(inner) | StmtKind::Block(inner) | StmtKind::Loop(inner) => {
            unlabel(inner, used);
            true
        }
        StmtKind::If(_, then, otherwise) => {
            unlabel(then, used);
            unlabel(otherwise, used);
            true
        }
        _ => true,
    });
}
