//! Which parts of threads depend on each other in a given state: what sleep sets go by.
//!
//! Two parts are independent in a state if every step of one commutes there with every step of the other, and taking it neither adds a step to the
//! other part nor takes one away. That speaks of one state only, so more is independent than [summaries](super::summary) can tell: an index has a
//! value, and a load of a cell that the own buffer has does not look at memory.
//!
//! The edges of a thread and the flushes of its buffer commute, but not
//!
//! * if an edge waits for the empty buffer: the last flush adds it;
//! * under PSO if an edge stores: that may be to a cell of which there was nothing to flush;
//! * if an edge stores and buffers are bounded: a flush makes room.
//!
//! Giving back the lock adds steps to all who waited for it. What a property sees depends on everything else that it sees.

use fencewright_program::MemoryModel;

use super::View;
use super::parts::{bits, thread_of};
use super::summary::{ACCESS, Footprint, LOCK, Summaries, UNLOCK, VISIBLE};
use crate::code::{ActionCode, AddressCode, Code, OpCode};
use crate::layout::Layout;

/// What the parts of one state touch.
pub struct Dependence<'c> {
    code: &'c Code,
    summaries: &'c Summaries,
    /// Whether buffers are bounded.
    bounded: bool,
    /// For each part by the number of its bit.
    touched: Vec<Footprint>,
    stack: Vec<i64>,
}

impl<'c> Dependence<'c> {
    pub(super) fn new(code: &'c Code, summaries: &'c Summaries, bounded: bool) -> Self {
        Dependence { code, summaries, bounded, touched: Vec::new(), stack: Vec::new() }
    }

    /// Looks at some parts of a state.
    pub(super) fn look(&mut self, view: &View, layout: &Layout, state: &[u64], parts: u64) {
        self.touched.clear();
        self.touched.resize(2 * view.threads.len(), Footprint::default());
        for bit in bits(parts) {
            let (t, is_flush) = thread_of(bit);
            self.touched[bit.trailing_zeros() as usize] = match is_flush {
                true => view.threads[t].heads,
                false => self.next(layout, state, t),
            };
        }
    }

    /// Those of some parts that depend on this one. All have been looked at.
    pub(super) fn on(&self, view: &View, part: u64, others: u64) -> u64 {
        bits(others).filter(|&other| self.depends(view, part, other)).fold(0, |all, other| all | other)
    }

    fn depends(&self, view: &View, one: u64, other: u64) -> bool {
        let [a, b] = [one, other].map(|part| self.touched[part.trailing_zeros() as usize]);
        if a.has(VISIBLE) && b.has(VISIBLE) {
            return true;
        }
        let ((t, is_flush), (u, other_is_flush)) = (thread_of(one), thread_of(other));
        if t != u {
            let gives_back = |a: Footprint, b: Footprint| a.has(UNLOCK) && b.has(ACCESS | LOCK);
            return a.disturbs(b) || gives_back(a, b) || gives_back(b, a);
        }
        let place = &view.threads[t].place;
        let adds = self.bounded || self.code.model == MemoryModel::Pso;
        is_flush == other_is_flush || place.drains || (place.stores && adds)
    }

    /// What the edges of a thread touch in a state, whether they are enabled or not.
    fn next(&mut self, layout: &Layout, state: &[u64], t: usize) -> Footprint {
        let location = layout.slots[self.code.pc(t)].raw(state) as usize;
        let edges = &self.code.threads[t].edges[location];
        edges.iter().fold(Footprint::default(), |sum, edge| {
            let mut touched = self.summaries.edges[t][edge.id.index()];
            match &edge.action {
                ActionCode::Op(OpCode::Load(_, address)) => {
                    if let Some(cell) = self.cell(layout, state, address) {
                        let buffered = is_buffered(self.code, layout, state, t, cell);
                        touched.reads = if buffered { 0 } else { self.summaries.classes[cell as usize] };
                    }
                }
                ActionCode::Op(OpCode::Store(address, ..)) if touched.writes != 0 => {
                    if let Some(cell) = self.cell(layout, state, address) {
                        touched.writes = self.summaries.classes[cell as usize];
                    }
                }
                _ => {}
            }
            sum.with(touched)
        })
    }

    /// The cell that an address means in a state; nothing if there is none.
    fn cell(&mut self, layout: &Layout, state: &[u64], address: &AddressCode) -> Option<u32> {
        match address {
            AddressCode::Cell(cell) => Some(*cell),
            AddressCode::Computed { index, indices, base, .. } => {
                let index = index.eval(&layout.slots, state, &mut self.stack).ok()?;
                indices.contains(index).then(|| base + (index - indices.low) as u32)
            }
        }
    }
}

/// Whether the buffer of a thread has a store to a cell.
fn is_buffered(code: &Code, layout: &Layout, state: &[u64], t: usize, cell: u32) -> bool {
    let kind = u64::from(code.threads[t].cell_kind[cell as usize]);
    layout.buffers.get(t).is_some_and(|buffer| {
        let entries = &buffer.entries[..buffer.count.raw(state) as usize];
        entries.iter().any(|(k, _)| k.raw(state) == kind)
    })
}
