//! Walks over statements: the blocks inside a statement, the values that the statement evaluates, the register that it writes.

use fencewright_text::Stop;

use super::{Expression, Parts, Register, Source, Special, Stage, Stmt, StmtKind};

/// Calls `visit` for every statement, before those in its blocks, until it is time to stop.
pub fn each_statement<'a, S: Stage>(
    code: &'a [Stmt<S>],
    stop: &Stop<'_>,
    visit: &mut dyn FnMut(&'a Stmt<S>),
) {
    for statement in stop.polled(code) {
        visit(statement);
        statement.kind.blocks().for_each(|block| each_statement(block, stop, visit));
    }
}

impl<S: Stage> StmtKind<S> {
    /// The blocks inside the statement.
    pub fn blocks(&self) -> impl Iterator<Item = &Vec<Stmt<S>>> {
        let (one, other, more): (_, _, &[Vec<Stmt<S>>]) = match self {
            StmtKind::Steps(block)
            | StmtKind::Block(block)
            | StmtKind::Atomic(block)
            | StmtKind::Loop(block) => (Some(block), None, &[]),
            StmtKind::If(_, then, otherwise) => (Some(then), Some(otherwise), &[]),
            StmtKind::Choose(ways) => (None, None, ways),
            _ => (None, None, &[]),
        };
        one.into_iter().chain(other).chain(more)
    }

    /// Mutable access to the blocks inside the statement.
    pub fn blocks_mut(&mut self) -> impl Iterator<Item = &mut Vec<Stmt<S>>> {
        let (one, other, more): (_, _, &mut [Vec<Stmt<S>>]) = match self {
            StmtKind::Steps(block)
            | StmtKind::Block(block)
            | StmtKind::Atomic(block)
            | StmtKind::Loop(block) => (Some(block), None, &mut []),
            StmtKind::If(_, then, otherwise) => (Some(then), Some(otherwise), &mut []),
            StmtKind::Choose(ways) => (None, None, ways),
            _ => (None, None, &mut []),
        };
        one.into_iter().chain(other).chain(more)
    }

    /// The place that the statement accesses, if any, and the kind of the access.
    pub fn accessed(&self) -> Option<(&S::Place, super::Access)> {
        match self {
            StmtKind::Load(_, place, access)
            | StmtKind::Store(place, _, access)
            | StmtKind::Await { place, access, .. }
            | StmtKind::Update { place, access, .. } => Some((place, *access)),
            _ => None,
        }
    }

    /// Mutable access to the place that the statement accesses, if any.
    pub fn accessed_mut(&mut self) -> Option<&mut S::Place> {
        match self {
            StmtKind::Load(_, place, _)
            | StmtKind::Store(place, ..)
            | StmtKind::Await { place, .. }
            | StmtKind::Update { place, .. } => Some(place),
            _ => None,
        }
    }

    /// The register that the statement writes, if any.
    pub fn writes(&self) -> Option<Register> {
        match self {
            StmtKind::Assign(register, _)
            | StmtKind::Havoc(register, ..)
            | StmtKind::Load(register, ..)
            | StmtKind::Update { old: register, .. }
            | StmtKind::Await { register, .. } => Some(*register),
            StmtKind::Special(special) => special.writes(),
            _ => None,
        }
    }

    /// Mutable access to the register that the statement writes, if any.
    pub fn writes_mut(&mut self) -> Option<&mut Register> {
        match self {
            StmtKind::Assign(register, _)
            | StmtKind::Havoc(register, ..)
            | StmtKind::Load(register, ..)
            | StmtKind::Update { old: register, .. }
            | StmtKind::Await { register, .. } => Some(register),
            StmtKind::Special(special) => special.writes_mut(),
            _ => None,
        }
    }

    /// The register that stands, in the condition and the new value of an update or an await, for the value found in memory; `None` for other
    /// statements.
    pub fn found(&self) -> Option<Register> {
        match self {
            StmtKind::Update { old: register, .. } | StmtKind::Await { register, .. } => Some(*register),
            _ => None,
        }
    }

    /// Calls `visit` for every value that the statement itself evaluates; not for those in its blocks.
    pub fn values<'a>(&'a self, visit: &mut dyn FnMut(&'a S::Value)) {
        if let Some((place, _)) = self.accessed() {
            place.values(visit);
        }
        match self {
            StmtKind::Assign(_, value)
            | StmtKind::Store(_, value, _)
            | StmtKind::Await { until: value, .. }
            | StmtKind::Assume(value)
            | StmtKind::Assert(value, _)
            | StmtKind::If(value, ..)
            | StmtKind::Beyond(value, _) => visit(value),
            StmtKind::Check(value, violation) => {
                visit(value);
                violation.values(visit);
            }
            StmtKind::Update { when, new, .. } => when.iter().chain([new]).for_each(visit),
            StmtKind::Special(special) => special.values(visit),
            _ => {}
        }
    }

    /// Calls `visit` with mutable access to every value in the statement itself, but not to those in its blocks.
    pub fn values_mut(&mut self, visit: &mut dyn FnMut(&mut S::Value)) {
        if let Some(place) = self.accessed_mut() {
            place.values_mut(visit);
        }
        match self {
            StmtKind::Assign(_, value)
            | StmtKind::Store(_, value, _)
            | StmtKind::Await { until: value, .. }
            | StmtKind::Assume(value)
            | StmtKind::Assert(value, _)
            | StmtKind::If(value, ..)
            | StmtKind::Beyond(value, _) => visit(value),
            StmtKind::Check(value, violation) => {
                visit(value);
                violation.values_mut(visit);
            }
            StmtKind::Update { when, new, .. } => when.iter_mut().chain([new]).for_each(visit),
            StmtKind::Special(special) => special.values_mut(visit),
            _ => {}
        }
    }

    /// Calls `visit` for every register and array element that the statement depends on, with its value before the statement. The register into which
    /// an update or await loads is among them only if the place depends on it.
    pub fn reads(&self, visit: &mut dyn FnMut(Source<'_, S::Value>)) {
        let Some(found) = self.found() else {
            return self.values(&mut |value| value.sources(visit));
        };
        if let Some((place, _)) = self.accessed() {
            place.values(&mut |value| value.sources(visit));
        }
        let (when, new) = match self {
            StmtKind::Update { when, new, .. } => (when.as_ref(), Some(new)),
            StmtKind::Await { until, .. } => (Some(until), None),
            _ => (None, None),
        };
        for value in when.into_iter().chain(new) {
            value.sources(&mut |source| match source {
                Source::Register(register) if register == found => {}
                source => visit(source),
            });
        }
    }
}

/// Strings contain no values. (In symbolic code, the violation of a check is a text.)
impl<V> Parts<V> for String {
    fn values<'a>(&'a self, _: &mut dyn FnMut(&'a V)) {}

    fn values_mut(&mut self, _: &mut dyn FnMut(&mut V)) {}
}
