//! Walks over symbolic values and places.

use super::{Base, Location, ObjectEvent, ObjectId, Projection, Register, StmtKind, Value};
use crate::statement::Parts;

/// Calls `visit` for every place that a statement mentions: first the place that it accesses or reaches, then the places whose addresses occur in its
/// values.
pub fn each_place<'a>(kind: &'a StmtKind, visit: &mut dyn FnMut(&'a Location)) {
    let reached = match kind {
        StmtKind::Special(ObjectEvent::Reach(place)) => Some(place),
        kind => kind.accessed().map(|(place, _)| place),
    };
    if let Some(place) = reached {
        visit(place);
    }
    kind.values(&mut |value| {
        value.each(&mut |part| {
            if let Value::Address(place) = part {
                visit(place);
            }
        });
    });
}

impl Location {
    /// The object, if the place is known to be a whole object.
    pub fn whole(&self) -> Option<ObjectId> {
        match self.base {
            Base::Object(object) if self.path.is_empty() => Some(object),
            _ => None,
        }
    }
}

impl Parts<Value> for Location {
    fn values<'a>(&'a self, visit: &mut dyn FnMut(&'a Value)) {
        if let Base::Pointed(pointer, _) = &self.base {
            visit(pointer);
        }
        for projection in &self.path {
            if let Projection::Element(index, _) = projection {
                visit(index);
            }
        }
    }

    fn values_mut(&mut self, visit: &mut dyn FnMut(&mut Value)) {
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
    /// Calls `visit` for the value and its subterms.
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

    /// Calls `visit` for every register in the value.
    pub fn registers(&self, visit: &mut dyn FnMut(Register)) {
        self.each(&mut |part| {
            if let Value::Register(register) = part {
                visit(*register);
            }
        });
    }

    /// Whether a register occurs in the value.
    pub fn has(&self, register: Register) -> bool {
        let mut found = false;
        self.registers(&mut |other| found |= other == register);
        found
    }

    /// Replaces every occurrence of a register by the value `by`.
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
