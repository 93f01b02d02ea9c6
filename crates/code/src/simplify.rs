//! Smaller code for engines: what is known about registers is said at once, and memory that one thread uses alone is made of registers.
//!
//! Dependencies between accesses order nothing under SC, TSO and PSO, so a value that is computed in a roundabout way may as well be computed directly. What
//! a value that nobody wrote decides is still noticed: an operation on such a value stays (`defined`).

mod defined;
mod fold;
mod private;
mod propagate;

use defined::Defined;
use fencewright_text::Stop;
use fold::Whole;
use propagate::Start;

use crate::clean;
use crate::core::{Access, Core, Object, ObjectEvent, Register, Stmt, StmtKind, each_statement};
use crate::nodes::Nodes;

/// As often at most: each time fewer addresses are left, and so fewer variables that others may reach.
const ROUNDS: usize = 4;
/// Threads of which statements times registers are more than this stay as they are.
const MOST_WORK: usize = 20_000_000;

/// Makes the code of all threads smaller. With `exact_waits`, a thread that waits for others before it ends still does.
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
        let promoted = private::promote(core, nodes, stop);
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
            // What is written to a register that was a variable may be needed by nobody.
            if propagate::propagate(&mut thread.code, &start, &whole, &is_defined, stop) || promoted {
                changed = true;
                // What the flow of control says about the start of the thread is in `initial` already.
                clean::clean(&mut thread.code, thread.registers.len(), false, stop);
            }
        }
        if !changed {
            return;
        }
    }
}

/// A thread that only waits for others before it ends may as well end: nothing that anybody sees comes after that.
fn leave_early(code: &mut Vec<Stmt>, objects: &[Object]) {
    let mut n = code.len();
    while n > 0 {
        n -= 1;
        let is_idle = match &mut code[n].kind {
            StmtKind::Label(_) => continue,
            // What was never written, and whether there is such a place, is still looked at.
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

/// All statements, those in blocks behind the one that they are blocks of.
fn row<'a>(code: &'a [Stmt], stop: &Stop<'_>) -> Vec<&'a Stmt> {
    let mut row = Vec::new();
    each_statement(code, stop, &mut |statement| row.push(statement));
    row
}

fn size(code: &[Stmt], stop: &Stop<'_>) -> usize {
    row(code, stop).len()
}

/// Whether a label is in some code.
fn has_label(code: &[Stmt], stop: &Stop<'_>) -> bool {
    let mut found = false;
    each_statement(code, stop, &mut |statement| found |= matches!(statement.kind, StmtKind::Label(_)));
    found
}
