//! Dynamic dependence: which parts of threads depend on each other in a given state. A *part* is either the outgoing edges or the possible flushes of
//! one thread. Used by sleep sets.
//!
//! Two parts are independent in a state if every step of one commutes there with every step of the other, and no step of one enables or disables a
//! step of the other. Since this concerns a single state, it is more precise than the static [summaries](super::summary): array indices have values,
//! and a load of a cell in the thread's own buffer does not access memory.
//!
//! The edges of a thread and the flushes of its buffer commute, except
//!
//! * if an edge waits for the empty buffer: the last flush enables it;
//! * under PSO if an edge stores: it may enable a flush, of a cell with no buffered store;
//! * if an edge stores and buffers are bounded: a flush may enable it.
//!
//! Releasing the lock enables the steps of all threads that wait for it. Visible steps depend on each other.

use fencewright_program::MemoryModel;

use super::View;
use super::parts::{bits, thread_of};
use super::summary::{ACCESS, Footprint, LOCK, Summaries, UNLOCK, VISIBLE};
use crate::code::{ActionCode, AddressCode, Code, OpCode};
use crate::layout::Layout;

/// Computes which parts depend on each other in a state, from the footprints of the parts there.
pub struct Dependence<'c> {
    code: &'c Code,
    summaries: &'c Summaries,
    /// Whether buffers are bounded.
    bounded: bool,
    /// The footprint of each part, indexed by its bit.
    touched: Vec<Footprint>,
    stack: Vec<i64>,
}

impl<'c> Dependence<'c> {
    pub(super) fn new(code: &'c Code, summaries: &'c Summaries, bounded: bool) -> Self {
        Dependence { code, summaries, bounded, touched: Vec::new(), stack: Vec::new() }
    }

    /// Computes the footprints of the given parts in a state.
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

    /// The subset of `others` that depends on `part`. [`Dependence::look`] must have computed the footprints of all these parts.
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

    /// The footprint of a thread's outgoing edges in a state, enabled or not.
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

    /// The cell that an address denotes in a state; `None` if the index is out of range or undefined.
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

/// Whether the buffer of a thread contains a store to a cell.
fn is_buffered(code: &Code, layout: &Layout, state: &[u64], t: usize, cell: u32) -> bool {
    let kind = u64::from(code.threads[t].cell_kind[cell as usize]);
    layout.buffers.get(t).is_some_and(|buffer| {
        let entries = &buffer.entries[..buffer.count.raw(state) as usize];
        entries.iter().any(|(k, _)| k.raw(state) == kind)
    })
}
