//! Code as a person would write it: without jumps to the next statement, without registers that nobody reads, without copies of copies.

mod choices;
mod copies;
mod dead;
mod jumps;

use fencewright_text::Stop;
use rustc_hash::FxHashSet;

use crate::core::{Core, Register, Stmt, StmtKind};
use crate::numbers::{Operand, not};
use crate::spins;

/// Cleans the code of all threads, makes steps that wait of loops that only wait, and notes which registers are undefined at the start.
pub(crate) fn clean_all(core: &mut Core, stop: &Stop<'_>) {
    for thread in &mut core.threads {
        let undefined = clean(&mut thread.code, thread.registers.len(), true, stop);
        for (register, info) in (0..).map(Register).zip(&mut thread.registers) {
            info.initial = (!undefined.contains(&register)).then_some(0);
        }
    }
}

/// Cleans some code, unless it is time to stop: then some of it is missing. With `awaits`, loops that only wait become steps that wait. The
/// registers that may be read before they are written.
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

/// Takes out what does nothing, and groups of one.
fn prune(code: &mut Vec<Stmt>, stop: &Stop<'_>) {
    prune_each(code, stop);
    // A block that is not one of several steps is as good as its statements.
    if let [Stmt { kind: StmtKind::Block(inner), .. }] = code.as_mut_slice() {
        let inner = std::mem::take(inner);
        *code = inner;
    }
}

/// Every statement without what does nothing.
fn prune_each(code: &mut Vec<Stmt>, stop: &Stop<'_>) {
    let old = std::mem::take(code);
    for mut statement in stop.polled(old) {
        match &mut statement.kind {
            StmtKind::Steps(inner) => {
                prune_each(inner, stop);
                match inner.as_mut_slice() {
                    [] => continue,
                    // What is left of a call is the body of the function: between its statements a fence can stand.
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
