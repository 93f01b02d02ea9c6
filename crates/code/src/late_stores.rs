//! Late stores: stores to objects of other threads that a later store of the same thread may overtake under PSO.
//!
//! If the later store tells another thread that the object is no longer in use, that thread may end the lifetime of the object (`free`, the end of a
//! block) while the earlier store is still in its buffer; then the store overwrites whatever is at this address next. In the model the next object
//! has other addresses, so it would not be overwritten; instead, layout tests for buffered stores where lifetimes end ([`crate::layout::late`]), for
//! the classes found here.
//!
//! A forward analysis of each thread. Facts: the set of stores that may be in the buffer and that no later store has overtaken yet, whether the
//! thread may have freed memory, and whether it may be inside or outside of an atomic section. Lattice: sets under inclusion; join: union. Transfer
//! function of a store: all stores in the set become late, and the set becomes that store alone, or empty if no other thread can end the lifetime of
//! its object. A fence, a store-store fence, an indivisible step, and the start or end of an atomic section empty the set, because no later store
//! overtakes a store from before them.
//!
//! The stores by which `calloc` clears an object that comes back from `free` are such stores as well.
//!
//! A store that is never overtaken needs no test. Other threads can observe that the thread has executed the store only when the store itself reaches
//! memory. So if an object is freed while the store is in the buffer, then in some execution the object is freed before the store is executed, and
//! this execution violates `memory`. For the same reason the tests never end the model under SC and TSO if the program satisfies `memory`.

use fencewright_program::Span;
use fencewright_text::Stop;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::core::{
    Base, Core, Location, NodeId, Object, ObjectEvent, ObjectId, Origin, Stmt, StmtKind, Symbolic,
    ThreadNumber, Value,
};
use crate::dataflow::forward::{Added, Cycles, Forward, Keep, walk};
use crate::nodes::{Nodes, Shape};
use crate::reuse::{Reuse, is_later};

/// A store that a later store of its thread may overtake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Late {
    /// The thread that executes the store.
    pub thread: ThreadNumber,
    /// The source position of the store.
    pub span: Span,
    /// Whether the store may store an undefined value.
    pub undefined: bool,
}

/// The reason why the buffers of other threads do not change at a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// The statement is in an atomic section, so the buffers change only after the end of the section.
    Section,
    /// The statement is in an indivisible step, or is in an atomic section on some paths or in some calls but not in all.
    Otherwise,
}

/// The late stores of a program: the result of the analysis.
#[derive(Clone, Debug, Default)]
pub(crate) struct LateStores {
    /// The late stores to the places of each class, by representative node, in the order of the threads.
    pub stores: FxHashMap<NodeId, Vec<Late>>,
    /// The threads that free memory that a later allocation or the stack of a later thread may reuse.
    pub given_out: FxHashSet<ThreadNumber>,
    /// The statements of each thread that end the lifetime of an object at a point where the buffers of other threads do not change, with the reason.
    pub held: FxHashMap<(ThreadNumber, Span), Held>,
}

impl LateStores {
    /// Finds the late stores of a program. The code is the same afterwards, unless it is time to stop.
    pub fn of(core: &mut Core, nodes: &Nodes, reuse: Reuse, stop: &Stop<'_>) -> Self {
        let (mut late, mut frees) = (LateStores::default(), Vec::new());
        let Core { threads, objects, .. } = core;
        // The threads that allocate are found by the objects, because not every allocation has a statement: `main` may have executed some at
        // translation time after it created threads.
        let allocating: FxHashSet<ThreadNumber> = objects
            .iter()
            .filter(|object| is_later(object.origin))
            .filter_map(|object| match object.origin {
                Origin::Heap { thread, .. } => Some(thread),
                _ => None,
            })
            .collect();
        let any_late_thread = threads.iter().any(|thread| thread.late);
        for (number, thread) in (0..).map(ThreadNumber).zip(threads) {
            let mut analysis = Analysis {
                objects,
                nodes,
                thread: number,
                late: &mut late,
                reuse,
                indivisible: false,
                allocations: FxHashSet::default(),
                held: FxHashMap::default(),
                frees: false,
                again: false,
                changed: true,
            };
            let mut cycles = Cycles::default();
            while std::mem::take(&mut analysis.changed) && !stop.now() {
                let start = Facts { outside: true, ..Facts::default() };
                walk(&mut thread.code, start, &mut analysis, &mut cycles, stop);
            }
            let Analysis { frees: some, again, held, .. } = analysis;
            let held = held.into_iter().filter_map(|(span, held)| Some(((number, span), held?)));
            late.held.extend(held);
            frees.push(some);
            if again {
                late.given_out.insert(number);
            }
        }
        for (freeing, _) in (0..).map(ThreadNumber).zip(&frees).filter(|(_, frees)| **frees) {
            if any_late_thread || allocating.iter().any(|other| *other != freeing) {
                late.given_out.insert(freeing);
            }
        }
        late
    }
}

#[derive(Clone, Default)]
struct Facts {
    /// The stores that may be in the buffer and that no later store has overtaken, with the classes of their places. Only stores to objects whose
    /// lifetime another thread may end are kept here, and the zeros that `calloc` writes into an object that comes back.
    buffered: FxHashSet<(NodeId, Late)>,
    /// Whether the thread may have freed memory.
    freed: bool,
    /// Whether the thread may be in an atomic section.
    inside: bool,
    /// Whether the thread may be outside of atomic sections.
    outside: bool,
}

struct Analysis<'a> {
    objects: &'a [Object],
    nodes: &'a Nodes,
    thread: ThreadNumber,
    late: &'a mut LateStores,
    reuse: Reuse,
    /// Whether the walk is in an indivisible step, whose stores reach memory at once.
    indivisible: bool,
    /// The positions of the allocations seen so far.
    allocations: FxHashSet<Span>,
    /// For the statements that end the lifetime of an object: why the buffers of other threads do not change there; `None` if they may. A function
    /// that is called several times has several statements with the same position.
    held: FxHashMap<Span, Option<Held>>,
    /// Whether the thread frees memory.
    frees: bool,
    /// Whether the thread may allocate memory after it has freed some.
    again: bool,
    changed: bool,
}

impl Analysis<'_> {
    /// A store overtakes the stores in the buffer.
    fn overtake(&mut self, facts: &mut Facts) {
        for (node, late) in facts.buffered.drain() {
            let found = self.late.stores.entry(node).or_default();
            if !found.contains(&late) {
                found.push(late);
            }
        }
    }

    /// Whether an allocation may return a freed object and fill it with zeros.
    fn may_clear(&self, object: ObjectId) -> bool {
        let object = &self.objects[object.0 as usize];
        self.reuse != Reuse::Never && !object.undefined && is_later(object.origin)
    }

    /// Whether a store to this place may be a store to an object whose lifetime another thread ends.
    fn is_foreign(&self, place: &Location) -> bool {
        match place.base {
            Base::Pointed(..) => true,
            Base::Object(object) => match self.objects[object.0 as usize].origin {
                Origin::Global => false,
                Origin::Local(thread) => thread != self.thread,
                Origin::Heap { .. } => true,
            },
        }
    }
}

/// The classes of the scalars that a place of this node consists of.
fn scalars(nodes: &Nodes, node: NodeId) -> Vec<NodeId> {
    match nodes.shape_of(node) {
        Shape::Record(_, members) => {
            members.iter().flatten().flat_map(|member| scalars(nodes, *member)).collect()
        }
        Shape::Array(_, element) => scalars(nodes, *element),
        _ => vec![nodes.find(node)],
    }
}

/// Whether a value may be a copy of an undefined value.
fn may_be_undefined(value: &Value) -> bool {
    matches!(value, Value::Register(_) | Value::If(..))
}

impl Forward<Symbolic> for Analysis<'_> {
    type Facts = Facts;

    const ITERATES: bool = true;

    fn join(&self, mut one: Facts, other: Facts) -> Facts {
        one.buffered.extend(other.buffered);
        one.freed |= other.freed;
        one.inside |= other.inside;
        one.outside |= other.outside;
        one
    }

    fn weaken(&mut self, kept: &mut Option<Facts>, by: &Facts) {
        let Some(kept) = kept else {
            self.changed = true;
            *kept = Some(by.clone());
            return;
        };
        let size = |facts: &Facts| (facts.buffered.len(), facts.freed, facts.inside, facts.outside);
        let before = size(kept);
        kept.buffered.extend(&by.buffered);
        kept.freed |= by.freed;
        kept.inside |= by.inside;
        kept.outside |= by.outside;
        self.changed |= before != size(kept);
    }

    fn branch(&self, _: &Value, _: bool, facts: Facts) -> Option<Facts> {
        Some(facts)
    }

    fn cost(&self, facts: &Option<Facts>) -> usize {
        1 + facts.as_ref().map_or(0, |facts| facts.buffered.len())
    }

    fn rewrite(&mut self, statement: &mut Stmt, facts: &mut Option<Facts>, _: &mut Added<Symbolic>) -> Keep {
        let Some(facts) = facts else { return Keep::Yes };
        match &statement.kind {
            StmtKind::Atomic(_) => {
                self.indivisible = true;
                facts.buffered.clear();
            }
            StmtKind::Store(place, value, _) if !self.indivisible => {
                self.overtake(facts);
                if self.is_foreign(place) {
                    let (thread, span) = (self.thread, statement.span);
                    let late = Late { thread, span, undefined: may_be_undefined(value) };
                    facts.buffered.insert((self.nodes.find(place.node), late));
                }
            }
            // `calloc` clears an object that comes back. Other threads have no pointer to the object before a later store overtakes these stores.
            StmtKind::Special(ObjectEvent::Allocate(_, object)) if self.may_clear(*object) => {
                self.overtake(facts);
                let late = Late { thread: self.thread, span: statement.span, undefined: false };
                let node = self.objects[object.0 as usize].node;
                facts.buffered.extend(scalars(self.nodes, node).into_iter().map(|node| (node, late)));
            }
            StmtKind::Special(ObjectEvent::Free(..) | ObjectEvent::End(_)) => {
                let held = match (self.indivisible, facts.inside, facts.outside) {
                    (true, ..) | (_, true, true) => Some(Held::Otherwise),
                    (_, true, false) => Some(Held::Section),
                    (_, false, _) => None,
                };
                let known = self.held.entry(statement.span).or_insert(held);
                if *known != held {
                    *known = Some(Held::Otherwise);
                }
            }
            _ => {}
        }
        match &statement.kind {
            StmtKind::Special(ObjectEvent::Allocate(..)) => _ = self.allocations.insert(statement.span),
            // The translation of `realloc` frees the old object last, although `realloc` may return the memory of this object.
            StmtKind::Special(ObjectEvent::Free(..)) => {
                self.again |= self.allocations.contains(&statement.span);
            }
            _ => {}
        }
        Keep::Yes
    }

    fn rewritten(&mut self, statement: &mut Stmt) {
        if matches!(statement.kind, StmtKind::Atomic(_)) {
            self.indivisible = false;
        }
    }

    fn transfer(&mut self, kind: &StmtKind, mut facts: Facts) -> Option<Facts> {
        match kind {
            StmtKind::Update { .. } | StmtKind::Fence | StmtKind::StoreFence => facts.buffered.clear(),
            StmtKind::Lock | StmtKind::Unlock => {
                facts.buffered.clear();
                facts.inside = *kind == StmtKind::Lock;
                facts.outside = !facts.inside;
            }
            StmtKind::Special(ObjectEvent::Free(..)) => {
                self.frees = true;
                facts.freed = true;
            }
            StmtKind::Special(ObjectEvent::Allocate(_, object))
                if is_later(self.objects[object.0 as usize].origin) =>
            {
                self.again |= facts.freed;
            }
            _ => {}
        }
        Some(facts)
    }
}
