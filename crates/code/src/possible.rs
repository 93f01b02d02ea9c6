//! Some of the numbers that registers may hold, from a flow-insensitive analysis of the whole program. The result is not complete, so its users must
//! allow for other values.

use std::collections::BTreeSet;

use fencewright_text::Stop;
use rustc_hash::FxHashMap;

use crate::core::{Core, Known, NodeId, Register, StmtKind, ThreadNumber, Value, each_statement};
use crate::nodes::{Nodes, Shape};
use crate::points_to;

/// Maximum number of values kept for each register and each class of places; the least ones are kept.
const MOST_VALUES: usize = 16;
/// Maximum number of passes over the program.
const MOST_PASSES: usize = 24;

/// For each of these registers, some of the numbers that it may hold.
pub fn numbers(
    core: &Core,
    nodes: &Nodes,
    wanted: &[(ThreadNumber, Register)],
    stop: &Stop<'_>,
) -> Vec<BTreeSet<i64>> {
    let mut nodes = nodes.clone();
    let none = || vec![BTreeSet::new(); wanted.len()];
    if points_to::unify(core, &mut nodes, stop).is_err() {
        return none();
    }
    let mut found = Found { nodes: &nodes, registers: FxHashMap::default(), places: FxHashMap::default() };
    for object in &core.objects {
        if !object.undefined {
            found.zeros(object.node);
        }
        for (path, known) in &object.initial {
            // The first step of a path may select an element of an allocation, whose node is that of one element.
            for path in [Some(path.as_slice()), path.get(1..)].into_iter().flatten() {
                if let (Known::Number(number), Some(place)) = (known, nodes.at_path(object.node, path)) {
                    found.place(place, [*number].into());
                }
            }
        }
    }
    for _ in 0..MOST_PASSES {
        let mut changed = false;
        for (thread, number) in core.threads.iter().zip(0..) {
            each_statement(&thread.code, stop, &mut |statement| {
                changed |= found.statement(ThreadNumber(number), &statement.kind);
            });
        }
        if !changed || stop.now() {
            break;
        }
    }
    wanted.iter().map(|key| found.registers.get(key).cloned().unwrap_or_default()).collect()
}

struct Found<'a> {
    nodes: &'a Nodes,
    registers: FxHashMap<(ThreadNumber, Register), BTreeSet<i64>>,
    places: FxHashMap<NodeId, BTreeSet<i64>>,
}

impl Found<'_> {
    /// Adds zero as a value of all scalars in the places of a node.
    fn zeros(&mut self, node: NodeId) {
        match self.nodes.shape_of(node) {
            Shape::Scalar(_) => {
                self.place(node, [0].into());
            }
            Shape::Record(_, members) => members.iter().flatten().for_each(|member| self.zeros(*member)),
            Shape::Array(_, element) => self.zeros(*element),
            Shape::Unknown | Shape::Function => {}
        }
    }

    /// Adds the values that a statement writes. Returns whether there were new ones.
    fn statement(&mut self, thread: ThreadNumber, kind: &StmtKind) -> bool {
        match kind {
            StmtKind::Assign(register, value) => {
                let values = self.values(thread, value);
                self.register((thread, *register), values)
            }
            StmtKind::Havoc(register, low, high) => {
                let few = high.checked_sub(*low).is_some_and(|more| more < MOST_VALUES as i64);
                few && self.register((thread, *register), (*low..=*high).collect())
            }
            StmtKind::Load(register, place, _) | StmtKind::Await { register, place, .. } => {
                self.read(thread, *register, place.node)
            }
            StmtKind::Store(place, value, _) => {
                let values = self.values(thread, value);
                self.place(place.node, values)
            }
            StmtKind::Update { place, old, new, .. } => {
                let read = self.read(thread, *old, place.node);
                let values = self.values(thread, new);
                self.place(place.node, values) || read
            }
            _ => false,
        }
    }

    fn read(&mut self, thread: ThreadNumber, register: Register, node: NodeId) -> bool {
        let values = self.places.get(&self.nodes.find(node)).cloned().unwrap_or_default();
        self.register((thread, register), values)
    }

    fn register(&mut self, key: (ThreadNumber, Register), values: BTreeSet<i64>) -> bool {
        add(self.registers.entry(key).or_default(), values)
    }

    fn place(&mut self, node: NodeId, values: BTreeSet<i64>) -> bool {
        add(self.places.entry(self.nodes.find(node)).or_default(), values)
    }

    fn values(&self, thread: ThreadNumber, value: &Value) -> BTreeSet<i64> {
        match value {
            Value::Number(number) => [*number].into(),
            Value::Register(register) => {
                self.registers.get(&(thread, *register)).cloned().unwrap_or_default()
            }
            Value::Unary(op, inner) => {
                let values = self.values(thread, inner);
                values.into_iter().filter_map(|value| op.apply(value).ok()).collect()
            }
            Value::Binary(op, a, b) => {
                let (a, b) = (self.values(thread, a), self.values(thread, b));
                let pairs = a.iter().flat_map(|x| b.iter().map(move |y| (*x, *y)));
                pairs.filter_map(|(x, y)| op.apply(x, y).ok()).collect()
            }
            Value::If(_, a, b) => {
                let mut values = self.values(thread, a);
                values.extend(self.values(thread, b));
                values
            }
            _ => BTreeSet::new(),
        }
    }
}

/// Adds values to a set, of which the least ones are kept. Returns whether the set has changed.
fn add(set: &mut BTreeSet<i64>, values: BTreeSet<i64>) -> bool {
    let before = set.clone();
    set.extend(values);
    while set.len() > MOST_VALUES {
        set.pop_last();
    }
    *set != before
}
