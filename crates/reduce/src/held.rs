//! Forward data-flow analysis: an upper bound on the contents of a thread's buffers at each location, so that the reduced program neither tests nor
//! flushes buffers that are known to be empty.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fencewright_kit::accesses::cells_of;
use fencewright_program::{Action, Edge, LocationId, MemoryModel, Op, Program, Thread};

use crate::Unsupported;
use crate::bounds::Size;

/// Upper bounds on the contents of the buffers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// For each memory cell that may have buffered stores, the maximum number of these.
    pub counts: BTreeMap<u32, u32>,
    /// The maximum number of stores in all buffers of the thread together; meaningful only if it is bounded (see
    /// [`Bounds`](crate::Bounds::of_thread)).
    pub total: u32,
    /// The memory cells that may have forgotten stores.
    pub forgotten: BTreeSet<u32>,
    /// Whether a store fence may have been executed since the buffers were last empty. Only under PSO.
    pub marked: bool,
}

impl Held {
    /// Whether the buffers are known to be empty.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty() && self.forgotten.is_empty()
    }

    /// Joins the bounds from another path. Returns whether the bounds have changed.
    fn join(&mut self, other: &Held) -> bool {
        let before = self.clone();
        for (&cell, &count) in &other.counts {
            let here = self.counts.entry(cell).or_insert(0);
            *here = count.max(*here);
        }
        self.total = self.total.max(other.total);
        self.forgotten.extend(&other.forgotten);
        self.marked |= other.marked;
        *self != before
    }
}

/// The bounds for each location, `None` for unreachable locations; and the bounds at a fault of the thread.
pub(crate) struct Analysis {
    pub at: Vec<Option<Held>>,
    pub faulted: Option<Held>,
}

impl Analysis {
    /// For each memory cell, the maximum number of buffered stores over all locations.
    pub fn most(&self) -> BTreeMap<u32, u32> {
        let mut most = BTreeMap::new();
        for (&cell, &count) in self.at.iter().flatten().flat_map(|held| &held.counts) {
            let here = most.entry(cell).or_insert(0);
            *here = count.max(*here);
        }
        most
    }
}

/// Maximum number of steps of the analysis: locations, times memory cells that are stored to, times places.
const MOST_STEPS: u64 = 1 << 22;

/// Whether the analysis of a thread would take too long.
fn is_too_large(program: &Program, size: &Size, thread: &Thread) -> bool {
    let mut cells = BTreeMap::new();
    for edge in &thread.edges {
        if let Action::Op(Op::Store(address, _)) = &edge.action {
            let stored = cells_of(program, address);
            let most = cells.entry(stored.start).or_insert(0);
            *most = (stored.len() as u64).max(*most);
        }
    }
    let cells: u64 = cells.values().sum();
    let steps = cells.saturating_mul(thread.locations.len() as u64);
    steps.saturating_mul(size.bounds.largest().max(1).into()) > MOST_STEPS
}

pub(crate) fn analyse(
    program: &Program,
    model: MemoryModel,
    size: &Size,
    thread: &Thread,
) -> Result<Analysis, Unsupported> {
    if is_too_large(program, size, thread) {
        let why = format!("thread {} stores to too many memory cells", thread.name);
        return Err(Unsupported::new(why, None));
    }
    let mut analysis = Analysis { at: vec![None; thread.locations.len()], faulted: None };
    analysis.at[thread.entry.index()] = Some(Held::default());
    let mut queue = VecDeque::from([thread.entry]);
    while let Some(location) = queue.pop_front() {
        let Some(held) = analysis.at[location.index()].clone() else { continue };
        for (_, edge) in thread.edges_from(location) {
            if program.edge_may_fault(thread, edge) {
                let left = if edge.action.drains() { Held::default() } else { held.clone() };
                meet(&mut analysis.faulted, &left);
            }
            if let Some(after) = after(program, model, size, &held, edge) {
                arrive(&mut analysis.at, edge.to, &after, &mut queue);
            }
        }
    }
    Ok(analysis)
}

fn arrive(at: &mut [Option<Held>], to: LocationId, held: &Held, queue: &mut VecDeque<LocationId>) {
    if meet(&mut at[to.index()], held) {
        queue.push_back(to);
    }
}

fn meet(known: &mut Option<Held>, held: &Held) -> bool {
    match known {
        Some(known) => known.join(held),
        None => {
            *known = Some(held.clone());
            true
        }
    }
}

/// The transfer function of an edge; `None` if the edge always overflows.
fn after(program: &Program, model: MemoryModel, size: &Size, held: &Held, edge: &Edge) -> Option<Held> {
    if edge.action.drains() {
        return Some(Held::default());
    }
    let mut after = held.clone();
    match &edge.action {
        Action::StoreFence => after.marked |= model == MemoryModel::Pso && !held.counts.is_empty(),
        Action::Op(Op::Store(address, _)) => {
            let mut fits = size.forgets;
            for cell in cells_of(program, address) {
                let bound = size.bounds.of_cell(program, cell);
                let full = match size.bounds.of_thread() {
                    Some(bound) => held.total >= bound || !held.forgotten.is_empty(),
                    None => held.counts.get(&cell).is_some_and(|count| *count >= bound) || bound == 0,
                };
                if size.forgets && full {
                    after.forgotten.insert(cell);
                }
                if bound > 0 {
                    let count = after.counts.entry(cell).or_insert(0);
                    *count = (*count + 1).min(bound);
                    fits = true;
                }
            }
            if !fits {
                return None;
            }
            if let Some(bound) = size.bounds.of_thread() {
                after.total = (after.total + 1).min(bound);
            }
        }
        _ => {}
    }
    Some(after)
}
