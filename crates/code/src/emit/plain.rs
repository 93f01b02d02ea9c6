//! The plain accesses: those of ordinary variables, which a compiler may reorder and which must not race.

use std::collections::HashSet;

use fencewright_program::Span;
use fencewright_text::Stop;

use crate::core::Access;
use crate::flat::Program;
use crate::statement::each_statement;

/// The source spans of which all accesses are plain. A span that another kind of access also has is left out, because a race report could not tell
/// the two accesses apart.
///
/// Computed on flat code, from which the program is emitted: when `tidy` merges a statement into the next one, the access takes the span of the later
/// statement, but it stays plain or atomic as before. Memory that layout made private to a thread no longer has accesses.
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
