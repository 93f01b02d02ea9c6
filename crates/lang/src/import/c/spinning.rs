//! Loops in which a thread could spin for ever, and which are not known as loops that only wait: they look at memory, write nothing, and count
//! nothing. Whether a thread is stuck in one is not decided, so `termination` is not claimed for programs that have one.

use super::core::{Core, Label, Stmt, StmtKind, each_statement};
use crate::diagnostic::Diagnostic;

/// What to say about each such loop.
pub(super) fn spinning(core: &Core) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for thread in &core.threads {
        let row = row(&thread.code);
        for (n, statement) in row.iter().enumerate() {
            let spins = match &statement.kind {
                StmtKind::Loop(body) => only_looks(&self::row(body)),
                StmtKind::Goto(label) => {
                    position(&row[..n], *label).is_some_and(|start| only_looks(&row[start..n]))
                }
                _ => false,
            };
            if spins {
                found.push(
                    Diagnostic::new(
                        statement.span.text(),
                        "whether this loop ends is not decided: it looks at memory again and again, and does nothing else",
                    )
                    .help("`termination` knows loops that wait for one variable; write the loop like that, or ask for other properties"),
                );
            }
        }
    }
    found.sort_by_key(|diagnostic| diagnostic.span);
    found.dedup_by_key(|diagnostic| diagnostic.span);
    found
}

/// All statements, those in blocks behind the one that they are blocks of.
fn row(code: &[Stmt]) -> Vec<&Stmt> {
    let mut row = Vec::new();
    each_statement(code, &mut |statement| row.push(statement));
    row
}

fn position(row: &[&Stmt], wanted: Label) -> Option<usize> {
    row.iter().position(|statement| matches!(statement.kind, StmtKind::Label(label) if label == wanted))
}

/// Whether some statements look at memory, but neither write to it nor count something on.
fn only_looks(row: &[&Stmt]) -> bool {
    let mut looks = false;
    for statement in row {
        match &statement.kind {
            StmtKind::Load(..) | StmtKind::Await(..) => looks = true,
            StmtKind::Assign(register, value) if value.has(*register) => return false,
            StmtKind::Store(..)
            | StmtKind::Update { .. }
            | StmtKind::Atomic(_)
            | StmtKind::Allocate(..)
            | StmtKind::Free(..) => return false,
            _ => {}
        }
    }
    looks
}
