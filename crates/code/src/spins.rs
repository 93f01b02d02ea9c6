//! Waiting loops: loops whose body is one load, assignments to registers, and a condition on the loaded value become `Await` statements.

use fencewright_text::Stop;
use rustc_hash::FxHashSet;

use crate::core::{Register, Stmt, StmtKind, Value};
use crate::numbers::{Operand, not};
use crate::statement::Parts;

/// Replaces waiting loops by `Await` statements.
pub(super) fn wait(code: &mut Vec<Stmt>, stop: &Stop<'_>) {
    let mut done = Vec::new();
    for mut statement in stop.polled(std::mem::take(code)) {
        match &mut statement.kind {
            StmtKind::Steps(inner) | StmtKind::Block(inner) => wait(inner, stop),
            StmtKind::If(_, then, otherwise) => {
                wait(then, stop);
                wait(otherwise, stop);
            }
            StmtKind::Loop(inner) => {
                wait(inner, stop);
                if let Some(steps) = awaited(inner) {
                    match steps.len() {
                        1 => done.extend(steps),
                        _ => done.push(Stmt { kind: StmtKind::Steps(steps), span: statement.span }),
                    }
                    continue;
                }
            }
            _ => {}
        }
        done.push(statement);
    }
    *code = done;
}

/// Flattens groups of statements.
fn row<'a>(code: &'a [Stmt], out: &mut Vec<&'a Stmt>) {
    for statement in code {
        match &statement.kind {
            StmtKind::Steps(inner) | StmtKind::Block(inner) => row(inner, out),
            _ => out.push(statement),
        }
    }
}

/// The `Await` of a waiting loop, with the assignments that give registers their values after the loop; `None` if the loop does more than wait.
fn awaited(body: &[Stmt]) -> Option<Vec<Stmt>> {
    let mut all = Vec::new();
    row(body, &mut all);
    let (last, before) = all.split_last()?;
    let StmtKind::If(condition, then, otherwise) = &last.kind else { return None };
    let goes_on = |block: &[Stmt]| matches!(block, [] | [Stmt { kind: StmtKind::Continue, .. }]);
    let leaves = |block: &[Stmt]| matches!(block, [Stmt { kind: StmtKind::Break, .. }]);
    let until = match (then.as_slice(), otherwise.as_slice()) {
        (then, otherwise) if leaves(then) && goes_on(otherwise) => condition.clone(),
        (then, otherwise) if goes_on(then) && leaves(otherwise) => {
            not(Operand::new(condition.clone(), (0, 1))).value
        }
        _ => return None,
    };
    let assigned: FxHashSet<Register> =
        before.iter().filter_map(|statement| statement.kind.writes()).collect();
    if assigned.len() != before.len() {
        return None;
    }
    // Every value must be the same in every iteration, unless it is computed from the loaded value.
    let mut known: FxHashSet<Register> = FxHashSet::default();
    let fresh = |value: &Value, known: &FxHashSet<Register>| {
        let mut fresh = true;
        value.registers(&mut |register| fresh &= !assigned.contains(&register) || known.contains(&register));
        fresh
    };
    let mut load = None;
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    for statement in before {
        match &statement.kind {
            StmtKind::Assign(register, value) if fresh(value, &known) => {
                known.insert(*register);
                let part = if load.is_none() { &mut first } else { &mut rest };
                part.push((*statement).clone());
            }
            StmtKind::Load(register, place, access) if load.is_none() => {
                let mut same = true;
                place.values(&mut |value| same &= fresh(value, &known));
                if !same {
                    return None;
                }
                known.insert(*register);
                load = Some((*register, place.clone(), *access, statement.span));
            }
            _ => return None,
        }
    }
    let (register, place, access, span) = load?;
    let mut until = until;
    let mut substituted = place;
    for statement in first.iter().chain(&rest).rev() {
        if let StmtKind::Assign(register, value) = &statement.kind {
            until.substitute(*register, value);
            substituted.values_mut(&mut |inner| inner.substitute(*register, value));
        }
    }
    if !until.has(register) || !fresh(&until, &known) {
        return None;
    }
    first.push(Stmt {
        kind: StmtKind::Await { register, place: substituted, until, access, waiting: () },
        span,
    });
    first.append(&mut rest);
    Some(first)
}
