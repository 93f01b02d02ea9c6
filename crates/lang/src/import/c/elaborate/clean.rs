//! Code as a person would write it: without jumps to the next statement, without registers that nobody reads, without copies of copies.

mod copies;
mod dead;
mod jumps;

use rustc_hash::FxHashSet;

use super::super::core::{Base, Location, Projection, Register, Stmt, StmtKind, Value};
use super::super::numbers::{Operand, not};
use super::spins;

/// Code that is finished.
pub(super) struct Cleaned {
    pub statements: Vec<Stmt>,
    /// Registers that may be read before anything is written to them.
    pub undefined: FxHashSet<Register>,
}

/// The same code, tidied up. With `awaits`, loops that only wait become steps that wait.
pub(super) fn clean(mut code: Vec<Stmt>, registers: usize, awaits: bool) -> Cleaned {
    for _ in 0..3 {
        prune(&mut code);
        jumps::straighten(&mut code);
        dead::eliminate(&mut code, registers);
        copies::fuse(&mut code, registers);
    }
    if awaits {
        spins::wait(&mut code);
        dead::eliminate(&mut code, registers);
        prune(&mut code);
        jumps::straighten(&mut code);
    }
    prune(&mut code);
    let undefined = dead::eliminate(&mut code, registers);
    Cleaned { statements: code, undefined }
}

/// Takes out what does nothing, and groups of one.
fn prune(code: &mut Vec<Stmt>) {
    prune_each(code);
    // A block that is not one of several steps is as good as its statements.
    if let [Stmt { kind: StmtKind::Block(inner), .. }] = code.as_mut_slice() {
        let inner = std::mem::take(inner);
        *code = inner;
    }
}

/// Every statement without what does nothing.
fn prune_each(code: &mut Vec<Stmt>) {
    let old = std::mem::take(code);
    for mut statement in old {
        match &mut statement.kind {
            StmtKind::Steps(inner) => {
                prune_each(inner);
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
                prune(inner);
                if inner.is_empty() {
                    continue;
                }
            }
            StmtKind::If(condition, then, otherwise) => {
                prune(then);
                prune(otherwise);
                if then.is_empty() && otherwise.is_empty() {
                    continue;
                }
                if then.is_empty() {
                    std::mem::swap(then, otherwise);
                    *condition = not(Operand::new(condition.clone(), (0, 1))).value;
                }
            }
            StmtKind::Loop(inner) => {
                prune(inner);
                if matches!(inner.first(), Some(Stmt { kind: StmtKind::Break, .. })) {
                    continue;
                }
            }
            _ => {}
        }
        code.push(statement);
    }
}

/// Calls `visit` for every value that a statement itself evaluates, not those of statements in it.
pub(super) fn values<'a>(kind: &'a StmtKind, visit: &mut dyn FnMut(&'a Value)) {
    match kind {
        StmtKind::Assign(_, value)
        | StmtKind::Assume(value)
        | StmtKind::Assert(value, _)
        | StmtKind::Check(value, _)
        | StmtKind::If(value, ..)
        | StmtKind::Free(value, _) => visit(value),
        StmtKind::Load(_, place, _) => values_of_place(place, visit),
        StmtKind::Store(place, value, _) => {
            values_of_place(place, visit);
            visit(value);
        }
        StmtKind::Update { place, when, new, .. } => {
            values_of_place(place, visit);
            when.iter().for_each(&mut *visit);
            visit(new);
        }
        StmtKind::Await(_, place, value, _) => {
            values_of_place(place, visit);
            visit(value);
        }
        _ => {}
    }
}

pub(super) fn values_of_place<'a>(place: &'a Location, visit: &mut dyn FnMut(&'a Value)) {
    if let Base::Pointed(pointer, _) = &place.base {
        visit(pointer);
    }
    for projection in &place.path {
        if let Projection::Element(index, _) = projection {
            visit(index);
        }
    }
}

/// The same, to change them.
pub(super) fn values_mut(kind: &mut StmtKind, visit: &mut dyn FnMut(&mut Value)) {
    match kind {
        StmtKind::Assign(_, value)
        | StmtKind::Assume(value)
        | StmtKind::Assert(value, _)
        | StmtKind::Check(value, _)
        | StmtKind::If(value, ..)
        | StmtKind::Free(value, _) => visit(value),
        StmtKind::Load(_, place, _) => values_of_place_mut(place, visit),
        StmtKind::Store(place, value, _) => {
            values_of_place_mut(place, visit);
            visit(value);
        }
        StmtKind::Update { place, when, new, .. } => {
            values_of_place_mut(place, visit);
            when.iter_mut().for_each(&mut *visit);
            visit(new);
        }
        StmtKind::Await(_, place, value, _) => {
            values_of_place_mut(place, visit);
            visit(value);
        }
        _ => {}
    }
}

pub(super) fn values_of_place_mut(place: &mut Location, visit: &mut dyn FnMut(&mut Value)) {
    if let Base::Pointed(pointer, _) = &mut place.base {
        visit(pointer);
    }
    for projection in &mut place.path {
        if let Projection::Element(index, _) = projection {
            visit(index);
        }
    }
}

/// Calls `visit` for every register in a value.
pub(in super::super) fn registers(value: &Value, visit: &mut dyn FnMut(Register)) {
    match value {
        Value::Number(_) | Value::Function(_) => {}
        Value::Register(register) => visit(*register),
        Value::Unary(_, inner) | Value::Container { member: inner, .. } => registers(inner, visit),
        Value::Binary(_, a, b) | Value::Move(a, b, _) | Value::Difference(a, b, _) => {
            registers(a, visit);
            registers(b, visit);
        }
        Value::If(condition, a, b) => [condition, a, b].into_iter().for_each(|part| registers(part, visit)),
        Value::Address(place) => values_of_place(place, &mut |value| registers(value, visit)),
    }
}

/// Puts a value in place of a register.
pub(super) fn substitute(value: &mut Value, register: Register, by: &Value) {
    match value {
        Value::Number(_) | Value::Function(_) => {}
        Value::Register(this) => {
            if *this == register {
                *value = by.clone();
            }
        }
        Value::Unary(_, inner) | Value::Container { member: inner, .. } => substitute(inner, register, by),
        Value::Binary(_, a, b) | Value::Move(a, b, _) | Value::Difference(a, b, _) => {
            substitute(a, register, by);
            substitute(b, register, by);
        }
        Value::If(condition, a, b) => {
            [condition, a, b].into_iter().for_each(|part| substitute(part, register, by))
        }
        Value::Address(place) => values_of_place_mut(place, &mut |value| substitute(value, register, by)),
    }
}

/// The register that a statement writes.
pub(super) fn written(kind: &StmtKind) -> Option<Register> {
    match kind {
        StmtKind::Assign(register, _)
        | StmtKind::Havoc(register, ..)
        | StmtKind::Load(register, ..)
        | StmtKind::Update { old: register, .. }
        | StmtKind::Await(register, ..)
        | StmtKind::Allocate(register, _) => Some(*register),
        _ => None,
    }
}
