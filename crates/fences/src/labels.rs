//! How the violation of a property that mentions labels depends on the places where fences are inserted.
//!
//! A fence is a step with a control location of its own, and a property may mention locations. In `x = 1; fence; c: ...` a thread that waits at the
//! fence is not yet at `c`, so `!p@c` holds there, although it would not hold without the fence. A fence after a label `c:` at the end of a block
//! becomes the statement that `c` names.
//!
//! An empty step at an unused place, on the other hand, is removed, and its source and target become one location. So in the program with the fences,
//! a thread is at a label if the empty steps at unused places lead from its location in the marked program to the same location as from the label's.
//! Hence the value of a formula depends only on which of the places along these two paths have fences.

use fencewright_lang::places::Placed;
use fencewright_program::{EdgeId, Formula, LocationId, Observable, State, ThreadId};

use crate::candidate::{Catalogue, Kind};
use crate::hitting::{Clause, Item};

/// Maximum number of places for which all combinations of fences are tried; for a formula with more than `LARGE` labels `MOST_FREE_OF_LARGE`.
const MOST_FREE: usize = 6;
const MOST_FREE_OF_LARGE: usize = 2;
const LARGE: usize = 1_000;

/// The marked program with its places, and the candidates at these places.
#[derive(Clone, Copy)]
pub(crate) struct Labels<'a> {
    pub placed: &'a Placed,
    pub catalogue: &'a Catalogue,
}

/// The path of empty steps at places that starts at a location: the places it passes, and the location where it ends.
struct Way {
    /// For each place, its location and the index of the first fence that can be inserted there, which identifies the place.
    places: Vec<(LocationId, Item)>,
    /// The location where the path ends; `None` if the path is a cycle, or its continuation depends on whether other places have fences.
    end: Option<LocationId>,
}

impl Labels<'_> {
    /// The condition under which a set of fences may change the value of a formula in a state of the marked program: among the places on which the
    /// formula depends, a place without a fence gets one, or a fence of `set` is removed.
    pub fn dependence(&self, formula: &Formula, state: &State, set: &[Item]) -> Clause {
        let used = |place: Item| self.fences(place).any(|item| set.contains(&item));
        let mut places: Vec<Item> = Vec::new();
        let (mut entangled, mut leaves) = (false, 0);
        formula.for_each_leaf(&mut |observable| {
            let Observable::At(thread, locations) = observable else { return };
            let here = self.way(*thread, state.locations[thread.index()]);
            for location in locations {
                let there = self.way(*thread, *location);
                if here.end == there.end {
                    places.extend(here.places.iter().chain(&there.places).map(|(_, place)| *place));
                }
                entangled |= here.end.is_none();
                leaves += 1;
            }
        });
        // Drops places from the clause, those with fences first: a place is dropped if the formula holds with and without a fence there. A smaller
        // clause rules out more sets of fences, and a clause that does not require the removal of a fence is preferable.
        places.sort_unstable_by_key(|&place| (!used(place), place));
        places.dedup();
        let mut fixed = places.clone();
        let most = if leaves > LARGE { MOST_FREE_OF_LARGE } else { MOST_FREE };
        if !entangled {
            let mut free: Vec<Item> = Vec::new();
            for place in places {
                if free.len() == most {
                    break;
                }
                free.push(place);
                let always = (0u32..1 << free.len()).all(|bits| {
                    let is_used = |other: Item| match free.iter().position(|&p| p == other) {
                        Some(n) => bits >> n & 1 == 1,
                        None => used(other),
                    };
                    self.holds(formula, state, &is_used)
                });
                match always {
                    true => fixed.retain(|&p| p != place),
                    false => drop(free.pop()),
                }
            }
        }
        let (there, missing): (Vec<Item>, Vec<Item>) = fixed.into_iter().partition(|&place| used(place));
        let any = missing.into_iter().flat_map(|place| self.fences(place)).collect();
        let chosen = |place: Item| self.fences(place).find(|item| set.contains(item));
        Clause::new(any, there.into_iter().filter_map(chosen).collect())
    }

    /// The places that determine whether a thread that has ended is at a label.
    pub fn at_ends(&self, formula: &Formula) -> Vec<Item> {
        let mut places = Vec::new();
        formula.for_each_leaf(&mut |observable| {
            let Observable::At(thread, locations) = observable else { return };
            for location in locations {
                let way = self.way(*thread, *location);
                if way.end.is_none_or(|end| self.placed.program.thread(*thread).is_end(end)) {
                    places.extend(way.places.into_iter().map(|(_, place)| place));
                }
            }
        });
        places.sort_unstable();
        places.dedup();
        places
    }

    /// All fences that can be inserted at a place; `place` is the first of them.
    pub fn fences(&self, place: Item) -> impl Iterator<Item = Item> {
        let edge = self.catalogue.all[place].place.edges.first();
        let here = edge.map_or(&[][..], |(thread, edge)| self.catalogue.at(*thread, *edge));
        here.iter().copied().filter(|&item| self.catalogue.all[item].kind != Kind::Swap)
    }

    /// Whether a formula holds in a state of the marked program if fences are inserted at exactly the places for which `used` returns true.
    fn holds(&self, formula: &Formula, state: &State, used: &dyn Fn(Item) -> bool) -> bool {
        let seen = formula.eval(&mut |observable| match observable {
            Observable::At(thread, locations) => {
                let rest = |from: LocationId| {
                    let way = self.way(*thread, from);
                    way.places.iter().find(|(_, place)| used(*place)).map_or(way.end, |(l, _)| Some(*l))
                };
                let here = rest(state.locations[thread.index()]);
                i64::from(locations.iter().any(|l| rest(*l) == here))
            }
            Observable::Register(thread, register) => state.registers[thread.index()][register.index()],
            Observable::Memory(cell) => state.memory[*cell as usize],
        });
        seen.is_ok_and(|value| value != 0)
    }

    fn way(&self, thread: ThreadId, from: LocationId) -> Way {
        let code = self.placed.program.thread(thread);
        let mut places = Vec::new();
        let (mut here, mut entangled) = (from, false);
        while let Some((place, edge)) = self.place(thread, here) {
            match self.placed.steps.get(&(thread, edge)).map(Vec::as_slice) {
                // The source itself contains this empty step, so the step is not removed.
                Some([]) => break,
                Some(before) => {
                    entangled = true;
                    let others = before.iter().filter_map(|&e| Some((here, self.fence(thread, e)?)));
                    places.extend(others);
                }
                None => {}
            }
            places.push((here, place));
            here = code.edge(edge).to;
            if places.len() > 2 * code.locations.len() {
                entangled = true;
                break;
            }
        }
        Way { places, end: (!entangled).then_some(here) }
    }

    /// The place at a location, if its empty step is the only edge that leaves the location.
    fn place(&self, thread: ThreadId, at: LocationId) -> Option<(Item, EdgeId)> {
        let mut leaving = self.placed.program.thread(thread).edges_from(at);
        let (edge, _) = leaving.next().filter(|_| leaving.next().is_none())?;
        Some((self.fence(thread, edge)?, edge))
    }

    /// The first fence that can be inserted at an edge.
    fn fence(&self, thread: ThreadId, edge: EdgeId) -> Option<Item> {
        let is_fence = |item: &Item| self.catalogue.all[*item].kind != Kind::Swap;
        self.catalogue.at(thread, edge).iter().copied().find(is_fence)
    }
}
