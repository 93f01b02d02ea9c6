//! Extrapolation (EXTRA13 s. 5 and Appendix B): lifts predicates of a proof under SC to predicates about the reduced program `P_M`.
//!
//! In `P_M` each buffer is an array of places; a place holds the value of one buffered store and, under TSO, the variable stored to.
//!
//! | rules (PSO, TSO) | meaning | here |
//! |---|---|---|
//! | 1, 8 | the number of stores in each buffer; under TSO also the variable that each place holds | [`Lift::generic`] |
//! | 2, 9 | the predicates themselves | first in [`Lift::lifted`] |
//! | 3, 10 | the predicates with variables replaced by places, in all combinations (`lift`) | [`Lift::lifted`] |
//! | 4, 11 | a buffered value equals that of the next place, or that in memory | [`Lift::comparisons`] |
//! | 5, 12 | nothing about buffers of variables that a thread does not store to | such a thread has no places for them |
//! | 6, 13 | all occurrences of a variable denote the same place | one place is chosen for each memory cell |
//! | 7, 14 | at most one place in a predicate, if a fence separates any two stores | [`fences_separate_stores`] |
//!
//! Differences from EXTRA13:
//! * The paper lists 15 predicates for the alternating bit protocol. That list has `cnt = 0`, which rule 1 does not give, and lacks the equalities of
//!   rule 4. Here predicates on counts begin with 0, and comparisons are made on request.
//! * There is no predicate `overflow = 0`, because in `P_M` an overflow is a location.
//! * Under TSO one place may hold a store to any variable. Two variables of one predicate never denote the same place.
//! * If store fences matter, there are predicates on epochs too. The *epoch* of a buffered store is the number of barriers (store fences between
//!   stores) before it in the buffer.
//! * Duplicates, such as `rhs_1 = 0` from `x = 0` and from `y = 0`, are listed once; [`Vocabulary`](super::vocabulary::Vocabulary) also merges
//!   equivalent predicates that are written differently.

use std::collections::HashSet;

use fencewright_kit::accesses::cells_of;
use fencewright_memory::{BufferMachine, Buffers, Cell, CellId, Cells};
use fencewright_program::{Action, BinaryOp, Expr, Op, Program, RegisterId, Thread, ThreadId};
use fencewright_reduce::{Queues, Reduced};

/// Maximum number of lifted versions of a predicate. If there are more, only the versions with at most one buffered place are made.
const MOST_VERSIONS: usize = 256;

/// Lifts predicates about a program under SC to its reduced program.
pub struct Lift<'a> {
    reduced: &'a Reduced,
    /// The cells of the program under SC.
    from: Cells,
    /// The cells of the reduced program under SC.
    to: Cells,
    /// For each memory cell, the places that may hold a store to it: cells of the reduced program.
    places: Vec<Vec<CellId>>,
    /// For each thread, the memory cells that it stores to through its buffer.
    stored: Vec<Vec<u32>>,
    /// Whether each lifted predicate may refer to at most one buffered place (rules 7 and 14).
    one_place: bool,
}

impl<'a> Lift<'a> {
    /// The extrapolation from a program to its reduced program.
    pub fn new(program: &Program, reduced: &'a Reduced) -> Self {
        let to = BufferMachine::new(&reduced.program, Buffers::Sc).cells;
        let stored: Vec<Vec<u32>> = program.threads.iter().map(|thread| stored(program, thread)).collect();
        let mut places = vec![Vec::new(); program.cells()];
        for (t, _) in program.threads() {
            let cell = |register: &RegisterId| to.id(Cell::Register(t, *register));
            match reduced.queues(t) {
                Queues::Tso(queue) => {
                    for &target in &stored[t.index()] {
                        places[target as usize].extend(queue.values.iter().map(cell));
                    }
                }
                Queues::Pso { cells, .. } => {
                    for queue in cells {
                        places[queue.cell as usize].extend(queue.values.iter().map(cell));
                    }
                }
            }
        }
        let one_place = program.threads.iter().all(fences_separate_stores);
        let from = BufferMachine::new(program, Buffers::Sc).cells;
        Lift { reduced, from, to, places, stored, one_place }
    }

    /// All predicates extrapolated from the predicates `sc`, without duplicates; if `compared`, with comparisons of buffered values.
    pub fn predicates(&self, sc: &[Expr<CellId>], compared: bool) -> Vec<Expr<CellId>> {
        let mut all: Vec<Expr<CellId>> = sc.iter().flat_map(|predicate| self.lifted(predicate)).collect();
        all.extend(self.generic());
        if compared {
            all.extend(self.comparisons());
        }
        let mut seen = HashSet::new();
        all.retain(|predicate| seen.insert(predicate.clone()));
        all
    }

    /// The predicates that do not depend on the predicates under SC: on counts, on the memory cells of places, on epochs.
    pub fn generic(&self) -> Vec<Expr<CellId>> {
        let mut all = Vec::new();
        for t in (0..self.stored.len()).map(|t| ThreadId(t as u32)) {
            let mut is = |register: RegisterId, values: &mut dyn Iterator<Item = i64>| {
                let leaf = || Expr::Leaf(self.to.id(Cell::Register(t, register)));
                all.extend(values.map(|value| equal(leaf(), Expr::Const(value))));
            };
            match self.reduced.queues(t) {
                Queues::Tso(queue) => {
                    let places = queue.values.len() as i64;
                    queue.count.into_iter().for_each(|count| is(count, &mut (0..=places)));
                    for &cell in &queue.cells {
                        is(cell, &mut self.stored[t.index()].iter().map(|&target| target.into()));
                    }
                }
                Queues::Pso { cells, epoch } => {
                    // Every epoch before that of the next store contains a store, so the number of places bounds the epochs.
                    let epochs = cells.iter().map(|queue| queue.values.len() as i64).sum();
                    epoch.iter().for_each(|&epoch| is(epoch, &mut (0..=epochs)));
                    for queue in cells {
                        is(queue.count, &mut (0..=queue.values.len() as i64));
                        queue.epochs.iter().for_each(|&epoch| is(epoch, &mut (0..=epochs)));
                    }
                    // A store fence tests whether a store of the current epoch is buffered.
                    let leaf = |register: RegisterId| Expr::Leaf(self.to.id(Cell::Register(t, register)));
                    let own = cells.iter().flat_map(|queue| &queue.epochs);
                    let pairs = own.flat_map(|own| epoch.map(|next| (*own, next)));
                    all.extend(pairs.map(|(own, next)| equal(leaf(own), leaf(next))));
                }
            }
        }
        all
    }

    /// Comparisons of the value at each buffer place with those at later places and in memory. EXTRA13 (rules 4 and 11) uses equalities; each is
    /// split into two `<=` here, because where a variable only grows, one direction may be invariant although the equality is not.
    pub fn comparisons(&self) -> Vec<Expr<CellId>> {
        let mut all = Vec::new();
        for t in (0..self.stored.len()).map(|t| ThreadId(t as u32)) {
            let leaf = |register: &RegisterId| Expr::Leaf(self.to.id(Cell::Register(t, *register)));
            let mut compare = |left: Expr<CellId>, right: Expr<CellId>| {
                all.push(Expr::binary(BinaryOp::Le, left.clone(), right.clone()));
                all.push(Expr::binary(BinaryOp::Le, right, left));
            };
            let mut of = |values: &[RegisterId], targets: &[u32]| {
                for (n, value) in values.iter().enumerate() {
                    values[n + 1..].iter().for_each(|later| compare(leaf(value), leaf(later)));
                    targets.iter().for_each(|&target| compare(Expr::Leaf(target), leaf(value)));
                }
            };
            match self.reduced.queues(t) {
                Queues::Tso(queue) => of(&queue.values, &self.stored[t.index()]),
                Queues::Pso { cells, .. } => {
                    cells.iter().for_each(|queue| of(&queue.values, &[queue.cell]));
                }
            }
        }
        all
    }

    /// A predicate, or a cube, and its versions about buffered values: each memory cell in it is either kept or replaced by a place. At most one is
    /// replaced if `one_place` is set or there would be more than `MOST_VERSIONS` versions.
    pub fn lifted(&self, predicate: &Expr<CellId>) -> Vec<Expr<CellId>> {
        let mut shared: Vec<CellId> = Vec::new();
        predicate.for_each_leaf(&mut |&cell| {
            if cell < self.from.memory() && !shared.contains(&cell) {
                shared.push(cell);
            }
        });
        let versions = shared.iter().map(|&cell| 1 + self.places[cell as usize].len());
        let many = versions.fold(1, usize::saturating_mul) > MOST_VERSIONS;
        let mut chosen: Vec<Vec<(CellId, CellId)>> = vec![Vec::new()];
        for &cell in &shared {
            for n in 0..chosen.len() {
                let before = &chosen[n];
                if (self.one_place || many) && !before.is_empty() {
                    continue;
                }
                // A place never holds stores to two variables at once.
                let free = |place: &&CellId| before.iter().all(|(_, other)| other != *place);
                let more: Vec<_> = self.places[cell as usize].iter().filter(free).copied().collect();
                let before = before.clone();
                chosen.extend(more.into_iter().map(|place| [&before[..], &[(cell, place)]].concat()));
            }
        }
        chosen.iter().map(|places| self.about(predicate, places)).collect()
    }

    /// Translates a predicate to the reduced program, replacing some memory cells by places.
    fn about(&self, predicate: &Expr<CellId>, places: &[(CellId, CellId)]) -> Expr<CellId> {
        predicate.map(&mut |&cell| {
            let place = places.iter().find(|(target, _)| *target == cell);
            Expr::Leaf(place.map_or_else(|| self.to.id(self.from.cell(cell)), |(_, place)| *place))
        })
    }

    /// The parts of a cube that do not mention buffered values (s. 6.3). Dropping the other parts gives fewer different cubes, in the hope that
    /// buffered values matter only once they have reached memory.
    pub fn unbuffered(&self, cube: Vec<Expr<CellId>>) -> Vec<Expr<CellId>> {
        let is_place = |cell: &CellId| self.places.iter().any(|places| places.contains(cell));
        let says_nothing = |part: &Expr<CellId>| {
            let mut buffered = false;
            part.for_each_leaf(&mut |cell| buffered |= is_place(cell));
            !buffered
        };
        cube.into_iter().filter(says_nothing).collect()
    }
}

fn equal(left: Expr<CellId>, right: Expr<CellId>) -> Expr<CellId> {
    Expr::binary(BinaryOp::Eq, left, right)
}

/// The memory cells that a thread stores to through its buffer, in order.
pub(super) fn stored(program: &Program, thread: &Thread) -> Vec<u32> {
    let stores = thread.edges.iter().filter_map(|edge| match &edge.action {
        Action::Op(Op::Store(address, _)) => Some(cells_of(program, address)),
        _ => None,
    });
    let mut cells: Vec<u32> = stores.flatten().collect();
    cells.sort_unstable();
    cells.dedup();
    cells
}

/// Whether every path of a thread between two buffered stores contains a step that drains its buffer (rules 7 and 14).
pub fn fences_separate_stores(thread: &Thread) -> bool {
    let stores = |action: &Action| matches!(action, Action::Op(Op::Store(..)));
    // Locations where a store may be pending.
    let mut pending = vec![false; thread.locations.len()];
    let mut work = Vec::new();
    let mut reach = |to: usize, work: &mut Vec<usize>| {
        if !std::mem::replace(&mut pending[to], true) {
            work.push(to);
        }
    };
    for edge in thread.edges.iter().filter(|edge| stores(&edge.action)) {
        reach(edge.to.index(), &mut work);
    }
    while let Some(location) = work.pop() {
        for (_, edge) in thread.edges_from(fencewright_program::LocationId(location as u32)) {
            if stores(&edge.action) {
                return false;
            }
            if !edge.action.drains() {
                reach(edge.to.index(), &mut work);
            }
        }
    }
    true
}

#[cfg(test)]
mod tests;
