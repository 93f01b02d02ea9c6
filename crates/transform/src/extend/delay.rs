//! Delays stores: keeps them in auxiliary registers instead of the buffer.
//!
//! In a copy of a location some stores of the thread are delayed; they are listed oldest first. An edge is copied as follows:
//!
//! * a store puts its address and value into registers (constants remain constants);
//! * a load takes the newest delayed value of its address, and is an ordinary load if there is none; computed addresses are compared. Like every load
//!   it waits while another thread holds the lock: so even a load that takes a delayed value is an atomic step;
//! * an operation on registers is copied.

use fencewright_kit::accesses::is_inside;
use fencewright_program::{
    Action, Address, BinaryOp, Edge, EdgeId, Expr, LocationId, Numbers, Op, Program, RegisterId, Span,
};

use super::{Builder, Origin, Refused, auxiliary};

/// Maximum number of alternatives for the loads of one edge.
const MOST_WAYS: usize = 256;

/// A delayed store. The parts of its address and value that are not constant are in auxiliary registers.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Delayed {
    pub address: Address,
    pub value: Expr<RegisterId>,
    pub span: Span,
    /// The edge of the store.
    pub edge: EdgeId,
    /// The number of its slot, unique among the stores delayed at the same time.
    slot: usize,
}

/// The auxiliary registers of one delayed store: for its index and for its value.
#[derive(Clone, Copy, Default)]
struct Slot {
    index: Option<RegisterId>,
    value: Option<RegisterId>,
}

/// A thread to which copies with delayed stores are being added.
pub(super) struct Delays<'a> {
    pub program: &'a Program,
    pub builder: &'a mut Builder,
    /// The edges of the thread before copies were added, with their origins.
    pub edges: &'a [(Edge, Origin)],
    slots: Vec<Slot>,
}

impl<'a> Delays<'a> {
    pub fn new(program: &'a Program, builder: &'a mut Builder, edges: &'a [(Edge, Origin)]) -> Self {
        Delays { program, builder, edges, slots: Vec::new() }
    }

    /// The stores that are delayed after an edge, given those delayed before it. Refused if the edge may fault, or if its store cannot be kept in
    /// registers.
    pub fn after(&mut self, edge: EdgeId, delayed: &[Delayed]) -> Result<Vec<Delayed>, Refused> {
        let (Edge { action, span, .. }, origin) = &self.edges[edge.index()];
        if origin.faults {
            return Err(Refused {
                why: "a step that may fault (an index or value out of range, a division by zero) while stores are delayed",
                span: Some(*span),
            });
        }
        let mut after = delayed.to_vec();
        if let Action::Op(Op::Store(address, value)) = action {
            let is_free = |slot: &usize| delayed.iter().all(|store| store.slot != *slot);
            let number = (0..).find(is_free).expect("there are more numbers than delayed stores");
            let slot = self.slot(number, address, value, *span)?;
            after.push(Delayed {
                address: Address {
                    variable: address.variable,
                    index: address.index.as_ref().map(|i| slot.index.map_or(i.clone(), Expr::Leaf)),
                },
                value: slot.value.map_or(value.clone(), Expr::Leaf),
                span: *span,
                edge,
                slot: number,
            });
        }
        Ok(after)
    }

    /// Adds the copy of an edge between two copies of locations, given the stores delayed before and after it.
    pub fn follow(
        &mut self,
        (from, to): (LocationId, LocationId),
        edge: EdgeId,
        before: &[Delayed],
        after: &[Delayed],
    ) -> Result<(), Refused> {
        let (Edge { action, span, .. }, origin) = &self.edges[edge.index()];
        match (action, after) {
            (Action::Op(Op::Store(address, value)), [.., delayed]) => {
                self.put(from, to, *origin, (address, value), delayed);
            }
            (Action::Op(Op::Load(..)) | Action::Atomic { drains: false, .. }, _) => {
                for ops in ways(action.ops(), before, *span)? {
                    let action = match (&ops[..], action) {
                        ([op @ Op::Load(..)], Action::Op(_)) => Action::Op(op.clone()),
                        _ => Action::Atomic { ops, drains: false },
                    };
                    self.builder.edge(from, to, action, *span, *origin);
                }
            }
            (action, _) => self.builder.edge(from, to, action.clone(), *span, *origin),
        }
        Ok(())
    }

    /// The registers for a delayed store; none for a constant index or value.
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

    /// Adds the edges that put a store into its registers; the last one is the step of the original thread.
    fn put(
        &mut self,
        from: LocationId,
        to: LocationId,
        origin: Origin,
        (address, value): (&Address, &Expr<RegisterId>),
        delayed: &Delayed,
    ) {
        // An index or value that is not constant is put into a register.
        let put = |to: &Expr<RegisterId>, what: &Expr<RegisterId>| match (to, what.constant()) {
            (Expr::Leaf(register), None) => Some(Op::Assign(*register, what.clone())),
            _ => None,
        };
        let index = delayed.address.index.as_ref().zip(address.index.as_ref());
        let index = index.and_then(|(register, index)| put(register, index));
        let (first, last) = match (index, put(&delayed.value, value)) {
            (Some(index), Some(value)) => (Some(index), value),
            (index, value) => (None, index.or(value).unwrap_or(Op::Skip)),
        };
        let mut at = from;
        if let Some(first) = first {
            // Between the two edges the original thread is still before the store.
            at = self.builder.copy_of(from, Some(delayed.span));
            self.builder.op(from, at, first, delayed.span, Origin::SILENT);
        }
        self.builder.op(at, to, last, delayed.span, origin);
    }
}

/// The alternatives for operations that load while stores are delayed: one for each combination of the [`sources`] of their loads.
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

/// The possible sources of a load, each with its condition: the delayed stores that may be to its cell, newest first, and an ordinary load, unless
/// one of them certainly is to its cell.
fn sources(register: RegisterId, address: &Address, delayed: &[Delayed]) -> Vec<Vec<Op>> {
    let mut sources = Vec::new();
    // For each newer delayed store, the condition that its address is a different one.
    let mut conditions: Vec<Expr<RegisterId>> = Vec::new();
    let guarded = |conditions: Vec<Expr<RegisterId>>, op: Op| match conditions.is_empty() {
        true => vec![op],
        false => vec![Op::Assume(Expr::all(conditions)), op],
    };
    for store in delayed.iter().rev() {
        let value = Op::Assign(register, store.value.clone());
        match same(address, &store.address) {
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

/// The condition that two addresses denote the same cell; a constant if this is statically known.
pub(super) fn same(one: &Address, other: &Address) -> Expr<RegisterId> {
    match (&one.index, &other.index) {
        _ if one.variable != other.variable => Expr::Const(0),
        (Some(one), Some(other)) => match (one.constant(), other.constant()) {
            (Some(one), Some(other)) => Expr::Const((one == other) as i64),
            _ => Expr::binary(BinaryOp::Eq, one.clone(), other.clone()),
        },
        _ => Expr::Const(1),
    }
}
