//! The accesses that a compiler may move: those of ordinary variables. They must not race.

use std::collections::HashSet;

use fencewright_program::Span;
use fencewright_text::Stop;

use crate::core::Access;
use crate::flat::Program;
use crate::statement::each_statement;

/// The texts that stand for plain accesses only. Where one text stands for others too, nobody can tell which is meant.
///
/// Flat code is what is emitted: when a step takes in the one before it (`tidy`), the access has the text of the new step, but is still as plain or as
/// atomic as it was. What was memory of one thread before layout is no access any more.
pub fn plain(program: &Program, stop: &Stop<'_>) -> HashSet<Span> {
    let (mut plain, mut others) = (HashSet::new(), HashSet::new());
    for thread in &program.threads {
        each_statement(&thread.code, stop, &mut |step| {
            if let Some((_, access)) = step.kind.accessed() {
                let set = if access == Access::Plain { &mut plain } else { &mut others };
                set.insert(step.span.text());
            }
        });
    }
    plain.retain(|span| !others.contains(span));
    plain
}
