//! The accesses that a compiler may move: those of ordinary variables. They must not race.

use std::collections::HashSet;

use fencewright_program::Span;

use super::core::{Access, Core, Stmt, StmtKind, each_statement};

/// The texts that stand for plain accesses only. Where one text stands for others too, nobody can tell which is meant.
pub fn plain(core: &Core) -> HashSet<Span> {
    let (mut plain, mut others) = (HashSet::new(), HashSet::new());
    for thread in &core.threads {
        each_statement(&thread.code, &mut |Stmt { kind, span }| {
            if let StmtKind::Load(_, _, access)
            | StmtKind::Store(_, _, access)
            | StmtKind::Await(_, _, _, access)
            | StmtKind::Update { access, .. } = kind
            {
                let set = if *access == Access::Plain { &mut plain } else { &mut others };
                set.insert(span.text());
            }
        });
    }
    plain.retain(|span| !others.contains(span));
    plain
}
