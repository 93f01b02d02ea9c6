//! The accesses that a compiler may move: those of ordinary variables. They must not race.

use std::collections::HashSet;

use fencewright_program::Span;

use super::core::{Access, Core, Stmt, StmtKind};

/// The texts that stand for plain accesses only. Where one text stands for others too, nobody can tell which is meant.
pub fn plain(core: &Core) -> HashSet<Span> {
    let (mut plain, mut others) = (HashSet::new(), HashSet::new());
    for thread in &core.threads {
        accesses(&thread.code, &mut |span, access| {
            let set = if access == Access::Plain { &mut plain } else { &mut others };
            set.insert(span.text());
        });
    }
    plain.retain(|span| !others.contains(span));
    plain
}

fn accesses(code: &[Stmt], visit: &mut impl FnMut(Span, Access)) {
    for Stmt { kind, span } in code {
        match kind {
            StmtKind::Steps(inner)
            | StmtKind::Block(inner)
            | StmtKind::Atomic(inner)
            | StmtKind::Loop(inner) => accesses(inner, visit),
            StmtKind::If(_, then, otherwise) => {
                accesses(then, visit);
                accesses(otherwise, visit);
            }
            StmtKind::Load(_, _, access)
            | StmtKind::Store(_, _, access)
            | StmtKind::Await(_, _, _, access)
            | StmtKind::Update { access, .. } => visit(*span, *access),
            _ => {}
        }
    }
}
