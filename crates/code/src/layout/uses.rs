//! How the code of a program uses each class of places: addresses taken, pointers moved and compared, accesses, allocations and frees.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use fencewright_program::BinaryOp;
use fencewright_text::Stop;

use crate::core::{
    Base, Core, Freeing, Known, Location, NodeId, ObjectEvent, ObjectId, Origin, Register, StmtKind,
    ThreadNumber, Value, each_statement,
};
use crate::nodes::Nodes;

/// How the program uses the places of one class.
#[derive(Clone, Debug, Default)]
pub struct Use {
    /// Pointers to places of the class exist.
    pub addressed: bool,
    /// Pointer arithmetic is applied to pointers to places of the class.
    pub moved: bool,
    /// Pointers are compared for order, with numbers or with each other.
    pub compared: bool,
    /// Pointers are compared for order with each other.
    pub ordered: bool,
    /// Tags may be stored in the upper bits of pointers.
    pub tagged: bool,
    /// The threads that access places of the class.
    pub accessed_by: BTreeSet<ThreadNumber>,
    /// Some place is written.
    pub written: bool,
    /// The threads that allocate objects of the class.
    pub allocated_by: BTreeSet<ThreadNumber>,
    /// The threads that free objects of the class.
    pub freed_by: BTreeSet<ThreadNumber>,
    /// For each of these, the threads that have always ended by then.
    pub ended_before: BTreeMap<ThreadNumber, BTreeSet<ThreadNumber>>,
    /// Objects of the class are retired: freed once no hazard pointer protects them.
    pub retired: bool,
    /// Its places hold the pointers that hazard pointers protect.
    pub hazard: bool,
}

impl Use {
    /// Whether `by`, which frees objects of the class, may do so while another thread can still allocate or access objects.
    pub fn is_freed_during(&self, thread: ThreadNumber, by: ThreadNumber) -> bool {
        !self.ended_before.get(&by).is_some_and(|ended| ended.contains(&thread))
    }
}

/// The uses of all classes, by representative node.
pub struct Uses<'a> {
    core: &'a Core,
    nodes: &'a Nodes,
    of: HashMap<NodeId, Use>,
    thread: ThreadNumber,
    objects: Vec<NodeId>,
}

impl<'a> Uses<'a> {
    /// Collects the uses in a program.
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

    /// The uses of a class.
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

    /// Marks the node at the end of a path as addressed. The node of an allocation is that of one element, and the first step of the path may select
    /// an element. So the path is also followed without its first step.
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
            StmtKind::Special(ObjectEvent::Free(_, node, freeing)) => {
                let thread = self.thread;
                let ended = self.core.ends.before_free(thread, *node);
                self.at(*node);
                for freed in allocations_at(self.core, self.nodes, *node) {
                    let used = self.at(freed);
                    used.freed_by.insert(thread);
                    used.ended_before
                        .entry(thread)
                        .and_modify(|all| all.retain(|other| ended.contains(other)))
                        .or_insert_with(|| ended.clone());
                    used.retired |= *freeing == Freeing::Retire;
                }
            }
            StmtKind::Special(ObjectEvent::Retired { target, hazard, .. }) => {
                self.at(*target).addressed = true;
                self.at(*hazard).hazard = true;
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

    /// If the path to a place starts at a pointer, marks the class of the pointer's target as addressed.
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

/// The nodes of the allocations that may start at the address of a place of this node: the node itself, or structures and arrays around it.
pub(crate) fn allocations_at(core: &Core, nodes: &Nodes, node: NodeId) -> BTreeSet<NodeId> {
    let allocated = core.objects.iter().filter(|object| matches!(object.origin, Origin::Heap { .. }));
    let outer = allocated.map(|object| nodes.find(object.node));
    outer.filter(|outer| nodes.path_to_start(*outer, node).is_some()).collect()
}
