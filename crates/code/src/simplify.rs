//! Simplification of symbolic code: constant and copy propagation, promotion of variables that only one thread uses to registers, and removal of
//! stores to local variables that nothing reads.
//!
//! SC, TSO and PSO do not order accesses by data dependencies, so a value may be replaced by a simpler one that is equal. Uses of undefined values
//! are still detected: an operation on a value that may be undefined is kept (`defined`).

mod defined;
mod fold;
mod private;
mod propagate;
mod unread;

use defined::Defined;
use fencewright_text::Stop;
use fold::Whole;
use propagate::Start;

use crate::clean;
use crate::core::{Access, Core, Object, ObjectEvent, Register, Stmt, StmtKind, each_statement};
use crate::nodes::Nodes;

/// Maximum number of rounds. A round may remove expressions that take addresses, so that the next round can make more variables private.
const ROUNDS: usize = 4;
/// Maximum product of the numbers of statements and registers of a thread that is simplified.
const MOST_WORK: usize = 20_000_000;

/// Simplifies the code of all threads. Without `exact_waits`, waits that the translation added at the end of a thread are removed.
pub fn simplify(core: &mut Core, nodes: &Nodes, exact_waits: bool, stop: &Stop<'_>) {
    let mut whole = Whole { nodes, ended: Default::default() };
    for statement in core.threads.iter().flat_map(|thread| row(&thread.code, stop)) {
        if let StmtKind::Special(ObjectEvent::End(object)) = &statement.kind {
            whole.ended.insert(*object);
        }
    }
    for _ in 0..ROUNDS {
        if !exact_waits {
            let Core { threads, objects, .. } = core;
            threads.iter_mut().for_each(|thread| leave_early(&mut thread.code, objects));
        }
        let removed = unread::remove(core, stop);
        let promoted = private::promote(core, nodes, stop) || removed;
        let mut changed = promoted;
        let (defined, mut own) = (Defined::of(core, stop), private::own_variables(core, stop));
        for (number, thread) in core.threads.iter_mut().enumerate() {
            if stop.at_once() {
                return;
            }
            if size(&thread.code, stop) * thread.registers.len() > MOST_WORK {
                continue;
            }
            let start = Start { registers: &thread.registers, variables: std::mem::take(&mut own[number]) };
            let is_defined = |register: Register| defined.is(number, register);
            // After promotion and removal of stores, assignments to registers may be dead, so the code is cleaned even if nothing was propagated.
            if propagate::propagate(&mut thread.code, &start, &whole, &is_defined, stop) || promoted {
                changed = true;
                // The result is not needed: the registers that may be read before they are written have `initial: None` already.
                clean::clean(&mut thread.code, thread.registers.len(), false, stop);
            }
        }
        if !changed {
            return;
        }
    }
}

/// Removes waits that the translation added at the end of a thread, because nothing observable follows them.
fn leave_early(code: &mut Vec<Stmt>, objects: &[Object]) {
    let mut n = code.len();
    while n > 0 {
        n -= 1;
        let is_idle = match &mut code[n].kind {
            StmtKind::Label(_) => continue,
            // A wait for a place that may not exist or may be undefined stays, so that the place is still checked.
            StmtKind::Await { place, access: Access::Own, .. } => {
                place.whole().is_some_and(|flag| !objects[flag.0 as usize].undefined)
            }
            StmtKind::Steps(inner) | StmtKind::Block(inner) => {
                leave_early(inner, objects);
                inner.is_empty()
            }
            StmtKind::Atomic(inner) => inner.is_empty(),
            _ => false,
        };
        if !is_idle {
            return;
        }
        code.remove(n);
    }
}

/// All statements in preorder.
fn row<'a>(code: &'a [Stmt], stop: &Stop<'_>) -> Vec<&'a Stmt> {
    let mut row = Vec::new();
    each_statement(code, stop, &mut |statement| row.push(statement));
    row
}

fn size(code: &[Stmt], stop: &Stop<'_>) -> usize {
    row(code, stop).len()
}

/// Whether some code contains a label.
fn has_label(code: &[Stmt], stop: &Stop<'_>) -> bool {
    let mut found = false;
    each_statement(code, stop, &mut |statement| found |= matches!(statement.kind, StmtKind::Label(_)));
    found
}
