//! Removes dead stores to registers: assignments to a register that is overwritten before it is read, or is not read any more.

use fencewright_text::Stop;
use rustc_hash::FxHashSet;

use crate::core::{ObjectEvent, Register, Stmt, StmtKind};
use crate::dataflow::backward::eliminate;
use crate::dataflow::liveness::Liveness;

/// Removes dead assignments. Returns the registers that are live at the start: they may be read before they are written.
pub(super) fn eliminate_dead(code: &mut Vec<Stmt>, registers: usize, stop: &Stop<'_>) -> FxHashSet<Register> {
    let assigns =
        |kind: &StmtKind| matches!(kind, StmtKind::Assign(..) | StmtKind::Special(ObjectEvent::Undefined(_)));
    let live = eliminate(code, &Liveness::new(registers, [], assigns), stop);
    live.cells().map(Register).collect()
}
