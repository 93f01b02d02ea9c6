//! Clean-up of symbolic code: removes statements without effect, jumps to the next statement, dead stores to registers, and temporaries that only the
//! next statement reads; narrows nondeterministic choices; and turns each loop that only waits into one statement.

mod choices;
mod copies;
mod dead;
mod jumps;

use fencewright_text::Stop;
use rustc_hash::FxHashSet;

use crate::core::{Core, Register, Stmt, StmtKind};
use crate::numbers::{Operand, not};
use crate::spins;

/// Cleans the code of all threads, turns loops that only wait into `Await` statements, and records which registers may be read before they are
/// written.
pub(crate) fn clean_all(core: &mut Core, stop: &Stop<'_>) {
    for thread in &mut core.threads {
        let undefined = clean(&mut thread.code, thread.registers.len(), true, stop);
        for (register, info) in (0..).map(Register).zip(&mut thread.registers) {
            info.initial = (!undefined.contains(&register)).then_some(0);
        }
    }
}

/// Cleans a block of code; with `awaits`, also turns loops that only wait into `Await` statements. Returns the registers that may be read before they
/// are written. When it is time to stop, the rest of the code is dropped; the caller discards the result in that case.
pub(crate) fn clean(
    code: &mut Vec<Stmt>,
    registers: usize,
    awaits: bool,
    stop: &Stop<'_>,
) -> FxHashSet<Register> {
    for _ in 0..3 {
        prune(code, stop);
        jumps::straighten(code, stop);
        dead::eliminate_dead(code, registers, stop);
        copies::fuse(code, registers, stop);
    }
    if awaits {
        spins::wait(code, stop);
        dead::eliminate_dead(code, registers, stop);
        prune(code, stop);
        jumps::straighten(code, stop);
    }
    prune(code, stop);
    let undefined = dead::eliminate_dead(code, registers, stop);
    choices::narrow(code, registers, stop);
    undefined
}

/// Removes statements without effect, and unwraps groups that contain a single statement.
fn prune(code: &mut Vec<Stmt>, stop: &Stop<'_>) {
    prune_each(code, stop);
    // A block that is the only statement is replaced by its contents.
    if let [Stmt { kind: StmtKind::Block(inner), .. }] = code.as_mut_slice() {
        let inner = std::mem::take(inner);
        *code = inner;
    }
}

/// Removes statements without effect from each statement of a sequence, innermost first.
fn prune_each(code: &mut Vec<Stmt>, stop: &Stop<'_>) {
    let old = std::mem::take(code);
    for mut statement in stop.polled(old) {
        match &mut statement.kind {
            StmtKind::Steps(inner) => {
                prune_each(inner, stop);
                match inner.as_mut_slice() {
                    [] => continue,
                    // If one block is all that is left of a source statement, as after inlining a call, the contents of the block replace the group,
                    // so that fences can be inserted between the statements of the block.
                    [Stmt { kind: StmtKind::Block(body), .. }] => {
                        code.append(body);
                        continue;
                    }
                    [only] => {
                        only.span = statement.span;
                        code.append(inner);
                        continue;
                    }
                    _ => {}
                }
            }
            StmtKind::Block(inner) => {
                prune(inner, stop);
                if inner.is_empty() {
                    continue;
                }
            }
            StmtKind::If(condition, then, otherwise) => {
                prune(then, stop);
                prune(otherwise, stop);
                if then.is_empty() && otherwise.is_empty() {
                    continue;
                }
                if then.is_empty() {
                    std::mem::swap(then, otherwise);
                    *condition = not(Operand::new(condition.clone(), (0, 1))).value;
                }
            }
            StmtKind::Loop(inner) => {
                prune(inner, stop);
                if matches!(inner.first(), Some(Stmt { kind: StmtKind::Break, .. })) {
                    continue;
                }
            }
            _ => {}
        }
        code.push(statement);
    }
}
