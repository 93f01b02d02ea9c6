//! Delaying stores along paths: the extension of THESIS16 s.3.1.
//!
//! A path starts with a store and ends with a load, with nothing between them that waits for an empty buffer. Several paths of a thread are
//! followed at once: those that start with the same store form a tree. In the copy of a location that a node of the tree is, the
//! stores since the root are *delayed*, that is, in auxiliary registers:
//!
//! * a store puts its address and value into registers (constants stay constants);
//! * a load takes the newest delayed value of its address, and memory if there is none; computed addresses are compared.
//!   Like every load it waits while another thread holds the lock, so the first is an indivisible step too;
//! * register work is copied.
//!
//! What can happen at an inner node? In the original program, with the delayed stores at the newest end of the buffer,
//!
//! * the thread takes an edge that does not wait for the buffer. So each such edge is followed, along the tree or, where
//!   the tree ends, to a *leaf*: there all delayed stores are performed, one by one, and the thread goes on in `R`;
//! * the oldest delayed store reaches memory. So there is an *early exit*: an indivisible step that writes that store, which as
//!   every indivisible step needs an empty buffer; the other stores are performed, and the thread goes on in `R` where it was.
//!
//! An edge that does wait for the buffer needs the second first. So nothing is lost if the first store is removed from `R`, and then no
//! path that was followed can be followed again: wherever the store is performed other than by an early exit, the path is behind it.
//!
//! The thesis differs a little. It performs the stores before an edge that leaves the path, where here that edge is followed too: so a thread
//! never commits itself to an edge that then does not open. And it has early exits only before loads, which loses states in which
//! a thread stands, with the store in memory, between a load and register work that follows it.
//!
//! The variant of s.5.1 keeps the store and adds the path with its final leaf only.

use std::collections::BTreeMap;
use std::fmt;

use fencewright_kit::accesses::is_inside;
use fencewright_program::{
    Action, Address, BinaryOp, Edge, EdgeId, Expr, LocationId, Numbers, Op, Program, RegisterId, Span,
    Thread, ThreadId,
};

use super::{Builder, Extended, Origin, auxiliary};

/// What happens to the store that a path starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum AttackingStore {
    /// It is removed: the program keeps its TSO executions all the same, and the path is dealt with.
    #[default]
    Removed,
    /// It stays.
    Kept,
}

/// Why a program cannot be extended by a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// In words.
    pub why: &'static str,
    /// Where that is in the source.
    pub span: Option<Span>,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.why)
    }
}

/// A load is followed in at most so many ways.
const MOST_WAYS: usize = 256;

/// A thread is not extended beyond so many locations.
const MOST_LOCATIONS: usize = 1 << 20;

impl Extended {
    /// The program extended by paths of one thread: see `paths`.
    pub fn extend(
        &self,
        thread: ThreadId,
        paths: &[Vec<EdgeId>],
        store: AttackingStore,
    ) -> Result<Extended, Refused> {
        let code = self.program.thread(thread);
        let tree = Tree::new(paths, code)?;
        let mut builder = self.builder(thread);
        let edges: Vec<(Edge, Origin)> = builder.edges.clone();
        if store == AttackingStore::Removed {
            let numbered = edges.iter().zip((0..).map(EdgeId));
            let kept = numbered.filter(|(_, id)| !tree.roots.contains_key(id));
            builder.edges = kept.map(|(edge, _)| edge.clone()).collect();
        }
        Delay {
            program: &self.program,
            thread: code,
            builder: &mut builder,
            edges: &edges,
            tree: &tree,
            store,
            slots: Vec::new(),
        }
        .all()?;
        let mut extended = self.clone();
        extended.replace(thread, builder);
        extended.adapt_formulas();
        Ok(extended)
    }
}

/// The paths as trees: a node is reached by an edge from its parent.
struct Tree {
    /// The node behind each first store.
    roots: BTreeMap<EdgeId, usize>,
    /// For each node its location and the nodes behind it, by edge. A node without any is a leaf.
    nodes: Vec<(LocationId, BTreeMap<EdgeId, usize>)>,
}

impl Tree {
    fn new(paths: &[Vec<EdgeId>], thread: &Thread) -> Result<Self, Refused> {
        let refused = |why| Refused { why, span: None };
        let mut tree = Tree { roots: BTreeMap::new(), nodes: Vec::new() };
        for path in paths {
            let mut above: Option<usize> = None;
            let mut at = None;
            for edge in path {
                let step = thread.edges.get(edge.index()).ok_or(refused("a path that is not one"))?;
                if at.is_some_and(|at| at != step.from) {
                    return Err(refused("a path that is not one"));
                }
                let is_store = matches!(step.action, Action::Op(Op::Store(..)));
                if step.action.drains() || (above.is_none() && !is_store) {
                    return Err(Refused {
                        why: "a path on which no store can be delayed",
                        span: Some(step.span),
                    });
                }
                let next = tree.nodes.len();
                let children = match above {
                    None => &mut tree.roots,
                    Some(node) => &mut tree.nodes[node].1,
                };
                let node = *children.entry(*edge).or_insert(next);
                if node == next {
                    tree.nodes.push((step.to, BTreeMap::new()));
                }
                (above, at) = (Some(node), Some(step.to));
            }
        }
        Ok(tree)
    }
}

/// A store that is delayed: where to and what, as constants and auxiliary registers.
#[derive(Clone)]
struct Delayed {
    address: Address,
    value: Expr<RegisterId>,
    span: Span,
}

/// The auxiliary registers of one delayed store.
#[derive(Clone, Copy, Default)]
struct Slot {
    index: Option<RegisterId>,
    value: Option<RegisterId>,
}

struct Delay<'a> {
    program: &'a Program,
    thread: &'a Thread,
    builder: &'a mut Builder,
    /// The edges of the thread, with their origins.
    edges: &'a [(Edge, Origin)],
    tree: &'a Tree,
    store: AttackingStore,
    /// Trees share their registers: a thread is in one of them at a time.
    slots: Vec<Slot>,
}

impl Delay<'_> {
    fn all(&mut self) -> Result<(), Refused> {
        for (&root, &node) in &self.tree.roots {
            let from = self.edges[root.index()].0.from;
            let (to, delayed) = self.follow(from, root, &[])?;
            // Copies that are to be given their edges: node of the tree, copy of its location, stores delayed there.
            let mut open = vec![(node, to, delayed)];
            while let Some((node, copy, delayed)) = open.pop() {
                if self.builder.len() > MOST_LOCATIONS {
                    return Err(Refused { why: "a thread of more than a million locations", span: None });
                }
                self.inner(node, copy, &delayed, &mut open)?;
            }
        }
        Ok(())
    }

    /// The edges of the copy of an inner node.
    fn inner(
        &mut self,
        node: usize,
        copy: LocationId,
        delayed: &[Delayed],
        open: &mut Vec<(usize, LocationId, Vec<Delayed>)>,
    ) -> Result<(), Refused> {
        let (location, children) = &self.tree.nodes[node];
        if self.store == AttackingStore::Removed {
            self.exit_early(copy, *location, delayed);
        }
        for (number, _) in self.thread.edges_from(*location) {
            let edge = &self.edges[number.index()].0;
            if edge.action.drains() {
                continue;
            }
            let child = children.get(&number).copied();
            if child.is_none() && self.store == AttackingStore::Kept {
                continue;
            }
            let (to, delayed) = self.follow(copy, number, delayed)?;
            match child.filter(|&child| !self.tree.nodes[child].1.is_empty()) {
                Some(child) => open.push((child, to, delayed)),
                None => self.perform(to, edge.to, &delayed),
            }
        }
        Ok(())
    }

    /// The edge out of a copy: the copy it leads to, and the stores that are delayed there.
    fn follow(
        &mut self,
        from: LocationId,
        edge: EdgeId,
        delayed: &[Delayed],
    ) -> Result<(LocationId, Vec<Delayed>), Refused> {
        let (edge, origin) = &self.edges[edge.index()];
        let (span, origin) = (edge.span, *origin);
        let to = self.builder.copy_of(edge.to, Some(span));
        let mut after = delayed.to_vec();
        if origin.faults {
            return Err(Refused {
                why: "a step that may fault (an index or value out of range, a division by zero) while stores are delayed",
                span: Some(span),
            });
        }
        match &edge.action {
            Action::Op(Op::Store(address, value)) => {
                let slot = self.slot(delayed.len(), address, value, span)?;
                self.put(from, to, (span, origin), address, value, slot);
                after.push(Delayed {
                    address: Address {
                        variable: address.variable,
                        index: address.index.as_ref().map(|i| slot.index.map_or(i.clone(), Expr::Leaf)),
                    },
                    value: slot.value.map_or(value.clone(), Expr::Leaf),
                    span,
                });
            }
            Action::Op(Op::Load(..)) | Action::Atomic { drains: false, .. } => {
                for ops in ways(edge.action.ops(), delayed, span)? {
                    let action = match (&ops[..], &edge.action) {
                        ([op @ Op::Load(..)], Action::Op(_)) => Action::Op(op.clone()),
                        _ => Action::Atomic { ops, drains: false },
                    };
                    self.builder.edge(from, to, action, span, origin);
                }
            }
            action => self.builder.edge(from, to, action.clone(), span, origin),
        }
        Ok((to, after))
    }

    /// The registers for the delayed store with this number; none for what is constant.
    fn slot(
        &mut self,
        number: usize,
        address: &Address,
        value: &Expr<RegisterId>,
        span: Span,
    ) -> Result<Slot, Refused> {
        let variable = &self.program.variables[address.variable.index()];
        if variable.open && !is_inside(self.program, address) {
            let why = "a delayed store to a computed index of an open array";
            return Err(Refused { why, span: Some(span) });
        }
        let computed = address.index.as_ref().is_some_and(|index| index.constant().is_none());
        let negative = variable.indices.is_some_and(|range| range.low < 0);
        if computed && negative && self.program.numbers == Numbers::Nat {
            let why = "a delayed store to a computed index that may be negative, over the naturals";
            return Err(Refused { why, span: Some(span) });
        }
        if self.slots.len() <= number {
            self.slots.resize(number + 1, Slot::default());
        }
        let slot = &mut self.slots[number];
        let mut needed = Slot::default();
        if computed {
            needed.index = Some(*slot.index.get_or_insert_with(|| auxiliary(self.builder, "address")));
        }
        if value.constant().is_none() {
            needed.value = Some(*slot.value.get_or_insert_with(|| auxiliary(self.builder, "value")));
        }
        Ok(needed)
    }

    /// The edges that put a store into its registers; the last one is the step of the original thread.
    fn put(
        &mut self,
        from: LocationId,
        to: LocationId,
        (span, origin): (Span, Origin),
        address: &Address,
        value: &Expr<RegisterId>,
        slot: Slot,
    ) {
        let index =
            slot.index.zip(address.index.clone()).map(|(register, index)| Op::Assign(register, index));
        let value = slot.value.map(|register| Op::Assign(register, value.clone()));
        let (first, last) = match (index, value) {
            (Some(index), Some(value)) => (Some(index), value),
            (index, value) => (None, index.or(value).unwrap_or(Op::Skip)),
        };
        let mut at = from;
        if let Some(first) = first {
            // The original thread has not stored yet.
            at = self.builder.copy_of(from, Some(span));
            self.builder.op(from, at, first, span, Origin::SILENT);
        }
        self.builder.op(at, to, last, span, origin);
    }

    /// All delayed stores, one by one, on the way to a location of `R`.
    fn perform(&mut self, from: LocationId, to: LocationId, delayed: &[Delayed]) {
        let mut at = from;
        for (n, store) in delayed.iter().enumerate() {
            let next = match n + 1 == delayed.len() {
                true => to,
                false => self.builder.copy_of(to, Some(store.span)),
            };
            let op = Op::Store(store.address.clone(), store.value.clone());
            self.builder.op(at, next, op, store.span, Origin::SILENT);
            at = next;
        }
    }

    /// The oldest delayed store reaches memory, the others are performed, and the thread is where it was.
    fn exit_early(&mut self, copy: LocationId, location: LocationId, delayed: &[Delayed]) {
        let [oldest, others @ ..] = delayed else { return };
        let next = match others {
            [] => location,
            _ => self.builder.copy_of(location, Some(oldest.span)),
        };
        let ops = vec![Op::Store(oldest.address.clone(), oldest.value.clone())];
        let action = Action::Atomic { ops, drains: true };
        self.builder.edge(copy, next, action, oldest.span, Origin::SILENT);
        self.perform(next, location, others);
    }
}

/// Operations that load, with stores delayed: one way for each delayed store that a load may find, and one for memory.
fn ways(ops: &[Op], delayed: &[Delayed], span: Span) -> Result<Vec<Vec<Op>>, Refused> {
    let mut ways = vec![Vec::new()];
    for op in ops {
        let Op::Load(register, address) = op else {
            ways.iter_mut().for_each(|way| way.push(op.clone()));
            continue;
        };
        let found = sources(*register, address, delayed);
        if ways.len() * found.len() > MOST_WAYS {
            return Err(Refused { why: "a load that may find too many delayed stores", span: Some(span) });
        }
        let followed = |way: &Vec<Op>| -> Vec<Vec<Op>> {
            found.iter().map(|source| [&way[..], source].concat()).collect()
        };
        ways = ways.iter().flat_map(followed).collect();
    }
    Ok(ways)
}

/// Where a load may find its value: in each delayed store, newest first, and in memory, each with its condition.
fn sources(register: RegisterId, address: &Address, delayed: &[Delayed]) -> Vec<Vec<Op>> {
    let mut sources = Vec::new();
    // That no newer store is to this address.
    let mut conditions: Vec<Expr<RegisterId>> = Vec::new();
    let guarded = |conditions: Vec<Expr<RegisterId>>, op: Op| match conditions.is_empty() {
        true => vec![op],
        false => vec![Op::Assume(Expr::all(conditions)), op],
    };
    for store in delayed.iter().rev().filter(|s| s.address.variable == address.variable) {
        let same = match (&store.address.index, &address.index) {
            (Some(left), Some(right)) => match (left.constant(), right.constant()) {
                (Some(left), Some(right)) => Expr::Const((left == right) as i64),
                _ => Expr::binary(BinaryOp::Eq, right.clone(), left.clone()),
            },
            _ => Expr::Const(1),
        };
        let value = Op::Assign(register, store.value.clone());
        match same {
            Expr::Const(0) => {}
            Expr::Const(_) => {
                sources.push(guarded(conditions, value));
                return sources;
            }
            same => {
                sources.push(guarded([&conditions[..], std::slice::from_ref(&same)].concat(), value));
                conditions.push(same.not());
            }
        }
    }
    sources.push(guarded(conditions, Op::Load(register, address.clone())));
    sources
}
