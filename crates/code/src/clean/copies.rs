//! Removes temporaries: registers that are written once and whose only read is in the next statement. Either the later statement computes the value
//! itself, or the earlier statement writes the final register.

use fencewright_text::Stop;

use crate::core::{ObjectEvent, Register, Stmt, StmtKind, Value, each_statement};

#[derive(Clone, Copy, Default)]
struct Count {
    writes: u32,
    reads: u32,
}

/// Fuses an assignment to a temporary with the statement that reads the temporary: the earlier statement writes the final register directly
/// ([`passed_on`]), or the later statement computes the value itself ([`taken`]).
pub(super) fn fuse(code: &mut Vec<Stmt>, registers: usize, stop: &Stop<'_>) {
    let mut counts = vec![Count::default(); registers];
    count(code, &mut counts, stop);
    fuse_block(code, &counts, stop);
}

fn count(code: &[Stmt], counts: &mut [Count], stop: &Stop<'_>) {
    each_statement(code, stop, &mut |statement| {
        if let Some(register) = statement.kind.writes() {
            counts[register.0 as usize].writes += 1;
        }
        statement.kind.values(&mut |value| {
            value.registers(&mut |register| counts[register.0 as usize].reads += 1);
        });
    });
}

fn fuse_block(code: &mut Vec<Stmt>, counts: &[Count], stop: &Stop<'_>) {
    let mut done: Vec<Stmt> = Vec::new();
    for mut statement in stop.polled(std::mem::take(code)) {
        match &mut statement.kind {
            StmtKind::Steps(inner) | StmtKind::Block(inner) | StmtKind::Loop(inner) => {
                fuse_block(inner, counts, stop)
            }
            StmtKind::If(_, then, otherwise) => {
                fuse_block(then, counts, stop);
                fuse_block(otherwise, counts, stop);
            }
            _ => {}
        }
        if let Some(last) = done.last_mut() {
            if passed_on(last, &statement, counts) {
                continue;
            }
            if taken(last, &mut statement, counts) {
                done.pop();
            }
        }
        done.push(statement);
    }
    *code = done;
}

/// `t = x; r = t;` becomes `r = x;`. The first of these statements may be the last one of a nested group.
fn passed_on(last: &mut Stmt, statement: &Stmt, counts: &[Count]) -> bool {
    let StmtKind::Assign(to, Value::Register(from)) = &statement.kind else { return false };
    let Count { writes: 1, reads: 1 } = counts[from.0 as usize] else { return false };
    // In an update, the register for the old value stands for the value found in memory. If the place, the condition or the new value mentions `to`,
    // then `to` must not become that register: `r = exchange(&x, r + 1)` writes a value computed from `r` before the exchange.
    if matches!(last.kind, StmtKind::Update { .. }) && mentions(&last.kind, *to) {
        return false;
    }
    match &mut last.kind {
        StmtKind::Steps(inner) | StmtKind::Block(inner) => {
            inner.last_mut().is_some_and(|last| passed_on(last, statement, counts))
        }
        StmtKind::Assign(register, _)
        | StmtKind::Havoc(register, ..)
        | StmtKind::Load(register, ..)
        | StmtKind::Update { old: register, .. }
        | StmtKind::Special(ObjectEvent::Allocate(register, _))
            if register == from =>
        {
            *register = *to;
            true
        }
        _ => false,
    }
}

/// Whether a statement reads a register.
fn mentions(kind: &StmtKind, register: Register) -> bool {
    let mut found = false;
    kind.values(&mut |value| found |= value.has(register));
    found
}

/// `t = e; ... t ...` becomes `... e ...`.
fn taken(last: &Stmt, statement: &mut Stmt, counts: &[Count]) -> bool {
    let StmtKind::Assign(register, value) = &last.kind else { return false };
    let Count { writes: 1, reads: 1 } = counts[register.0 as usize] else { return false };
    if matches!(statement.kind, StmtKind::Await { .. }) {
        return false;
    }
    // In an update, the register for the old value stands for the value found in memory, so a value that reads this register must not be moved into
    // the update.
    if let StmtKind::Update { old, .. } = &statement.kind
        && value.has(*old)
    {
        return false;
    }
    let reads = mentions(&statement.kind, *register);
    if reads {
        let by = value.clone();
        let register: Register = *register;
        statement.kind.values_mut(&mut |inner| inner.substitute(register, &by));
    }
    reads
}
