//! Where control reaches the declaration of a local variable again, an assignment makes the variable undefined. This pass removes such an assignment
//! if it is dead: if the variable is written before it is read.

use fencewright_text::Stop;

use super::{CellEvent, StepKind, Term, Thread, UNDEFINED};
use crate::dataflow::backward::eliminate;
use crate::dataflow::liveness::Liveness;
use crate::statement::each_statement;

/// Maximum product of the numbers of statements and cells of a thread for which the pass runs.
const MOST_WORK: usize = 50_000_000;

/// Removes dead assignments of the undefined value.
pub(crate) fn forget(thread: &mut Thread, stop: &Stop<'_>) {
    let arrays = || thread.arrays.iter().map(|array| (array.first, array.init.len()));
    let cells = thread.registers.len() + arrays().map(|(_, length)| length).sum::<usize>();
    let (mut statements, mut any) = (0, false);
    each_statement(&thread.code, stop, &mut |step| {
        statements += 1;
        any |= is_undefining(&step.kind);
    });
    if any && statements * cells <= MOST_WORK {
        let liveness = Liveness::new(thread.registers.len(), arrays(), is_undefining);
        eliminate(&mut thread.code, &liveness, stop);
    }
}

fn is_undefining(kind: &StepKind) -> bool {
    match kind {
        StepKind::Assign(_, value) | StepKind::Special(CellEvent::Set(_, Term::Number(_), value)) => {
            *value == Term::Number(UNDEFINED)
        }
        _ => false,
    }
}
