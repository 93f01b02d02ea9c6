//! What the code of a program does with the classes of places: the questions that layout asks before it chooses numbers.

use std::collections::{BTreeSet, HashMap};

use fencewright_program::BinaryOp;
use fencewright_text::Stop;

use crate::core::{
    Base, Core, Known, Location, NodeId, ObjectEvent, ObjectId, Register, StmtKind, ThreadNumber, Value,
    each_statement,
};
use crate::nodes::Nodes;

/// What happens to the places of one class.
#[derive(Clone, Debug, Default)]
pub struct Use {
    /// Some pointer points there.
    pub addressed: bool,
    /// Pointers are moved from one place to the next.
    pub moved: bool,
    /// Pointers are compared for order, with numbers or with each other.
    pub compared: bool,
    /// Pointers are compared for order with each other.
    pub ordered: bool,
    /// Numbers may be put into the upper bits of pointers.
    pub tagged: bool,
    /// The threads that read or write there.
    pub accessed_by: BTreeSet<ThreadNumber>,
    /// Something is written there.
    pub written: bool,
    /// The threads that allocate there, when something may have been given back.
    pub allocated_by: BTreeSet<ThreadNumber>,
    /// The threads that give back what a pointer to there points to.
    pub freed_by: BTreeSet<ThreadNumber>,
}

/// What happens to each class, by the node that stands for it.
pub struct Uses<'a> {
    core: &'a Core,
    nodes: &'a Nodes,
    of: HashMap<NodeId, Use>,
    thread: ThreadNumber,
    objects: Vec<NodeId>,
}

impl<'a> Uses<'a> {
    /// Looks at all of a program.
    pub fn of(core: &'a Core, nodes: &'a Nodes, stop: &Stop<'_>) -> Self {
        let objects = core.objects.iter().map(|object| object.node).collect();
        let mut uses = Uses { core, nodes, of: HashMap::new(), thread: ThreadNumber(0), objects };
        for object in &core.objects {
            for (_, known) in &object.initial {
                if let Known::Address(target, path) = known {
                    uses.known_address(*target, path);
                }
            }
        }
        for (number, thread) in core.threads.iter().enumerate() {
            uses.thread = ThreadNumber(number as u32);
            each_statement(&thread.code, stop, &mut |statement| uses.statement(&statement.kind));
        }
        uses
    }

    /// What happens to a class.
    pub fn get(&self, node: NodeId) -> Use {
        self.of.get(&self.nodes.find(node)).cloned().unwrap_or_default()
    }

    /// The nodes that the code mentions.
    pub fn nodes(&self) -> Vec<NodeId> {
        let mut nodes: Vec<NodeId> = self.of.keys().copied().collect();
        nodes.sort();
        nodes
    }

    fn at(&mut self, node: NodeId) -> &mut Use {
        self.of.entry(self.nodes.find(node)).or_default()
    }

    /// The node at the end of every way that the steps may mean: a first element may be that of an allocation.
    fn known_address(&mut self, object: ObjectId, path: &[fencewright_c::typed::tree::Step]) {
        let start = self.objects[object.0 as usize];
        let mut nodes = vec![];
        nodes.extend(self.nodes.at_path(start, path));
        nodes.extend(path.get(1..).and_then(|rest| self.nodes.at_path(start, rest)));
        for node in nodes {
            self.at(node).addressed = true;
        }
    }

    fn statement(&mut self, statement: &StmtKind) {
        statement.values(&mut |value| self.value(value));
        match statement {
            StmtKind::Load(_, place, _) | StmtKind::Await { place, .. } => self.access(place, false),
            StmtKind::Store(place, ..) | StmtKind::Update { place, .. } => self.access(place, true),
            StmtKind::Special(ObjectEvent::Reach(place)) => {
                self.start(place);
                self.at(place.node);
            }
            StmtKind::Special(ObjectEvent::Allocate(_, object)) => {
                let node = self.objects[object.0 as usize];
                let thread = self.thread;
                let used = self.at(node);
                used.addressed = true;
                used.allocated_by.insert(thread);
            }
            StmtKind::Special(ObjectEvent::Free(_, node)) => {
                let thread = self.thread;
                self.at(*node).freed_by.insert(thread);
            }
            _ => {}
        }
    }

    fn access(&mut self, place: &Location, written: bool) {
        self.start(place);
        let thread = self.thread;
        let used = self.at(place.node);
        used.accessed_by.insert(thread);
        used.written |= written;
    }

    /// Where the way to a place starts at a pointer, there is an address.
    fn start(&mut self, place: &Location) {
        if let Base::Pointed(_, node) = &place.base {
            self.at(*node).addressed = true;
        }
    }

    fn pointed_to(&self, value: &Value) -> Vec<NodeId> {
        let registers = &self.core.threads[self.thread.0 as usize].registers;
        value.pointed_to(&|register: Register| registers[register.0 as usize].points)
    }

    fn compared(&mut self, a: &Value, b: &Value) {
        let (one, other) = (self.pointed_to(a), self.pointed_to(b));
        let both = !one.is_empty() && !other.is_empty();
        for node in one.into_iter().chain(other) {
            let used = self.at(node);
            used.compared = true;
            used.ordered |= both;
        }
    }

    fn value(&mut self, value: &Value) {
        value.each(&mut |part| match part {
            Value::Address(place) => {
                self.start(place);
                self.at(place.node).addressed = true;
            }
            Value::Move(.., node) | Value::Difference(.., node) => {
                let used = self.at(*node);
                used.addressed = true;
                used.moved = true;
            }
            Value::Binary(BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge, a, b) => {
                self.compared(a, b);
            }
            Value::Binary(BinaryOp::BitOr | BinaryOp::BitXor, a, b) => {
                let low = |value: &Value| matches!(value, Value::Number(0..=0xffff));
                if !low(a) && !low(b) {
                    self.pointed_to(a)
                        .into_iter()
                        .chain(self.pointed_to(b))
                        .for_each(|node| self.at(node).tagged = true);
                }
            }
            Value::Container { node, .. } => self.at(*node).addressed = true,
            _ => {}
        });
    }
}
