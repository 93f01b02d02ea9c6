//! Structures that are found by way of their members.
//!
//! Unification goes from a place to its parts. Where a program goes back, from a pointer to a member to the structure around it, every structure of this type whose
//! member the pointer may point to can be meant, so they all become one class.

use fencewright_c::typed::tree::Step;

use super::super::core::{Base, Core, Location, NodeId, Projection, Stmt, StmtKind, Value};
use super::super::nodes::{Clash, Nodes, Shape};

/// Unifies the nodes of structures that can be the same one, found by way of a member.
pub(super) fn unify(core: &Core, nodes: &mut Nodes) -> Result<(), Clash> {
    let mut found = Containers::default();
    core.threads.iter().for_each(|thread| found.block(&thread.code));
    loop {
        let mut changed = false;
        for (container, path) in &found.all {
            let Some(member) = nodes.at_path(*container, path) else { continue };
            for other in (0..nodes.len() as u32).map(NodeId) {
                let alike = nodes.find(other) == other
                    && other != nodes.find(*container)
                    && same_record(nodes, other, *container)
                    && nodes.at_path(other, path) == Some(nodes.find(member));
                if alike {
                    nodes.unify(*container, other)?;
                    changed = true;
                }
            }
        }
        if !changed {
            return Ok(());
        }
    }
}

fn same_record(nodes: &Nodes, one: NodeId, other: NodeId) -> bool {
    match (nodes.shape_of(one), nodes.shape_of(other)) {
        (Shape::Record(one, _), Shape::Record(other, _)) => one == other,
        _ => false,
    }
}

/// The ways back in a program: the node of the structure, and the way to the member.
#[derive(Default)]
struct Containers {
    all: Vec<(NodeId, Vec<Step>)>,
}

impl Containers {
    fn block(&mut self, block: &[Stmt]) {
        block.iter().for_each(|statement| self.statement(&statement.kind));
    }

    fn statement(&mut self, statement: &StmtKind) {
        match statement {
            StmtKind::Steps(block)
            | StmtKind::Block(block)
            | StmtKind::Atomic(block)
            | StmtKind::Loop(block) => {
                self.block(block);
            }
            StmtKind::Assign(_, value)
            | StmtKind::Assume(value)
            | StmtKind::Assert(value, _)
            | StmtKind::Check(value, _)
            | StmtKind::Free(value, _) => self.value(value),
            StmtKind::Load(_, place, _) => self.location(place),
            StmtKind::Store(place, value, _) | StmtKind::Await(_, place, value, _) => {
                self.location(place);
                self.value(value);
            }
            StmtKind::Update { place, when, new, .. } => {
                self.location(place);
                when.iter().chain([new]).for_each(|value| self.value(value));
            }
            StmtKind::If(condition, then, otherwise) => {
                self.value(condition);
                self.block(then);
                self.block(otherwise);
            }
            _ => {}
        }
    }

    fn location(&mut self, place: &Location) {
        if let Base::Pointed(pointer, _) = &place.base {
            self.value(pointer);
        }
        for projection in &place.path {
            if let Projection::Element(index, _) = projection {
                self.value(index);
            }
        }
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Number(_) | Value::Register(_) | Value::Function(_) => {}
            Value::Unary(_, a) => self.value(a),
            Value::Binary(_, a, b) | Value::Move(a, b, _) | Value::Difference(a, b, _) => {
                self.value(a);
                self.value(b);
            }
            Value::If(a, b, c) => {
                self.value(a);
                self.value(b);
                self.value(c);
            }
            Value::Address(place) => self.location(place),
            Value::Container { member, node, path, .. } => {
                self.value(member);
                self.all.push((*node, path.clone()));
            }
        }
    }
}
