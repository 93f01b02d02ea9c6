//! Ways through core code: what a statement evaluates, which blocks are in it, what a value is made of.

use super::{Base, Location, ObjectId, Projection, Register, Stmt, StmtKind, Value};
use fencewright_text::Stop;

/// Calls `visit` for every statement, those in blocks behind the one that they are blocks of, until it is time to stop.
pub fn each_statement<'a>(code: &'a [Stmt], stop: &Stop<'_>, visit: &mut dyn FnMut(&'a Stmt)) {
    for statement in stop.polled(code) {
        visit(statement);
        statement.kind.blocks().into_iter().for_each(|block| each_statement(block, stop, visit));
    }
}

impl StmtKind {
    /// The blocks in it.
    pub fn blocks(&self) -> Vec<&Vec<Stmt>> {
        match self {
            StmtKind::Steps(block)
            | StmtKind::Block(block)
            | StmtKind::Atomic(block)
            | StmtKind::Loop(block) => {
                vec![block]
            }
            StmtKind::If(_, then, otherwise) => vec![then, otherwise],
            _ => Vec::new(),
        }
    }

    /// The same, to change them.
    pub fn blocks_mut(&mut self) -> Vec<&mut Vec<Stmt>> {
        match self {
            StmtKind::Steps(block)
            | StmtKind::Block(block)
            | StmtKind::Atomic(block)
            | StmtKind::Loop(block) => {
                vec![block]
            }
            StmtKind::If(_, then, otherwise) => vec![then, otherwise],
            _ => Vec::new(),
        }
    }

    /// The place that it accesses.
    pub fn place_mut(&mut self) -> Option<&mut Location> {
        match self {
            StmtKind::Load(_, place, _)
            | StmtKind::Store(place, ..)
            | StmtKind::Await(_, place, ..)
            | StmtKind::Update { place, .. } => Some(place),
            _ => None,
        }
    }

    /// Calls `visit` for every place that it mentions: first the one that it accesses or reaches, then those whose addresses are in its values.
    pub fn places<'a>(&'a self, visit: &mut dyn FnMut(&'a Location)) {
        if let StmtKind::Load(_, place, _)
        | StmtKind::Store(place, ..)
        | StmtKind::Await(_, place, ..)
        | StmtKind::Update { place, .. }
        | StmtKind::Reach(place) = self
        {
            visit(place);
        }
        self.values(&mut |value| {
            value.each(&mut |part| {
                if let Value::Address(place) = part {
                    visit(place);
                }
            });
        });
    }

    /// The register that it writes.
    pub fn writes(&self) -> Option<Register> {
        match self {
            StmtKind::Assign(register, _)
            | StmtKind::Undefined(register)
            | StmtKind::Havoc(register, ..)
            | StmtKind::Load(register, ..)
            | StmtKind::Update { old: register, .. }
            | StmtKind::Await(register, ..)
            | StmtKind::Allocate(register, _) => Some(*register),
            _ => None,
        }
    }

    /// Calls `visit` for every value that it evaluates itself, not those of statements in its blocks.
    pub fn values<'a>(&'a self, visit: &mut dyn FnMut(&'a Value)) {
        match self {
            StmtKind::Assign(_, value)
            | StmtKind::Assume(value)
            | StmtKind::Assert(value, _)
            | StmtKind::Check(value, _)
            | StmtKind::If(value, ..)
            | StmtKind::Free(value, _) => visit(value),
            StmtKind::Load(_, place, _) | StmtKind::Reach(place) => place.values(visit),
            StmtKind::Store(place, value, _) | StmtKind::Await(_, place, value, _) => {
                place.values(visit);
                visit(value);
            }
            StmtKind::Update { place, when, new, .. } => {
                place.values(visit);
                when.iter().chain([new]).for_each(visit);
            }
            _ => {}
        }
    }

    /// The same, to change them.
    pub fn values_mut(&mut self, visit: &mut dyn FnMut(&mut Value)) {
        match self {
            StmtKind::Assign(_, value)
            | StmtKind::Assume(value)
            | StmtKind::Assert(value, _)
            | StmtKind::Check(value, _)
            | StmtKind::If(value, ..)
            | StmtKind::Free(value, _) => visit(value),
            StmtKind::Load(_, place, _) | StmtKind::Reach(place) => place.values_mut(visit),
            StmtKind::Store(place, value, _) | StmtKind::Await(_, place, value, _) => {
                place.values_mut(visit);
                visit(value);
            }
            StmtKind::Update { place, when, new, .. } => {
                place.values_mut(visit);
                when.iter_mut().chain([new]).for_each(visit);
            }
            _ => {}
        }
    }
}

impl Location {
    /// The object that the place is all of, if that is known.
    pub fn whole(&self) -> Option<ObjectId> {
        match self.base {
            Base::Object(object) if self.path.is_empty() => Some(object),
            _ => None,
        }
    }

    /// Calls `visit` for the values that decide which place it is.
    pub fn values<'a>(&'a self, visit: &mut dyn FnMut(&'a Value)) {
        if let Base::Pointed(pointer, _) = &self.base {
            visit(pointer);
        }
        for projection in &self.path {
            if let Projection::Element(index, _) = projection {
                visit(index);
            }
        }
    }

    /// The same, to change them.
    pub fn values_mut(&mut self, visit: &mut dyn FnMut(&mut Value)) {
        if let Base::Pointed(pointer, _) = &mut self.base {
            visit(pointer);
        }
        for projection in &mut self.path {
            if let Projection::Element(index, _) = projection {
                visit(index);
            }
        }
    }
}

impl Value {
    /// Calls `visit` for the value and all that it is made of.
    pub fn each<'a>(&'a self, visit: &mut dyn FnMut(&'a Value)) {
        visit(self);
        match self {
            Value::Number(_) | Value::Function(_) | Value::Register(_) => {}
            Value::Unary(_, inner) | Value::Container { member: inner, .. } => inner.each(visit),
            Value::Binary(_, a, b) | Value::Move(a, b, _) | Value::Difference(a, b, _) => {
                [a, b].into_iter().for_each(|part| part.each(visit));
            }
            Value::If(condition, a, b) => {
                [condition, a, b].into_iter().for_each(|part| part.each(visit));
            }
            Value::Address(place) => place.values(&mut |value| value.each(visit)),
        }
    }

    /// Calls `visit` for every register in it.
    pub fn registers(&self, visit: &mut dyn FnMut(Register)) {
        self.each(&mut |part| {
            if let Value::Register(register) = part {
                visit(*register);
            }
        });
    }

    /// Whether a register occurs in it.
    pub fn has(&self, register: Register) -> bool {
        let mut found = false;
        self.registers(&mut |other| found |= other == register);
        found
    }

    /// Puts a value in place of a register.
    pub fn substitute(&mut self, register: Register, by: &Value) {
        match self {
            Value::Number(_) | Value::Function(_) => {}
            Value::Register(this) => {
                if *this == register {
                    *self = by.clone();
                }
            }
            Value::Unary(_, inner) | Value::Container { member: inner, .. } => inner.substitute(register, by),
            Value::Binary(_, a, b) | Value::Move(a, b, _) | Value::Difference(a, b, _) => {
                [a, b].into_iter().for_each(|part| part.substitute(register, by));
            }
            Value::If(condition, a, b) => {
                [condition, a, b].into_iter().for_each(|part| part.substitute(register, by));
            }
            Value::Address(place) => place.values_mut(&mut |value| value.substitute(register, by)),
        }
    }
}
