//! States up to symmetry: a state counts as in the set if some permutation of threads maps it to a state of the set.
//!
//! Any permutation within families would be sound (see [the module](super)). The checker tries only permutations that sort the threads of each family
//! by location, the greatest first: there are few such permutations, and the engine sorts the states of a set in the same way. The first permutation
//! tried sorts threads at the same location by their registers and buffers; so does the engine, if the family has no numbers. Hence one try is enough
//! for families without numbers, which may be large.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeSet;

use fencewright_program::{MemoryModel, Program, Property};

use super::{Field, StateSet};
use crate::automorphism::{Family, Reductions};
use crate::check::{Rejection, too_large};

/// Checks that all threads of each family may be exchanged, and that no two families share threads, variables or registers.
pub(super) fn check(
    set: &StateSet,
    program: &Program,
    properties: &[Property],
    local: &[Vec<bool>],
) -> Result<(), String> {
    let reductions = Reductions { live: &set.live, local };
    for (n, family) in set.symmetry.iter().enumerate() {
        let threads: BTreeSet<&u32> = family.threads.iter().collect();
        let disjoint = |other: &Family| {
            other.threads.iter().all(|t| !threads.contains(t))
                && other.indices.is_disjoint(&family.indices)
                && other.values.is_disjoint(&family.values)
                && other.registers.is_disjoint(&family.registers)
        };
        if !set.symmetry[..n].iter().all(disjoint) {
            return Err("two families have something in common".into());
        }
        family.check(program, properties, reductions)?;
    }
    Ok(())
}

/// Maximum number of permutations tried for a state that is not in the set.
const MOST_TRIES: usize = 1 << 16;

/// The family whose numbers a register or cell holds, if any.
type Numbers = Option<usize>;

/// Searches the orbit of a state for a state of the set.
pub(super) struct Orbit<'a> {
    set: &'a StateSet,
    /// For each thread, location and live register: the family whose numbers the register holds.
    registers: Vec<Vec<Vec<Numbers>>>,
    /// For each memory cell: the family whose numbers the cell holds.
    values: Vec<Numbers>,
    /// For each memory cell that is indexed by numbers of a family: the family, the index of the cell, and the number of the cell that has, or would
    /// have, index 0.
    indices: Vec<Option<(usize, i64, i64)>>,
    /// The places of a permutation, in the order in which they are filled: a family, and a position in it.
    places: Vec<(usize, usize)>,
    /// The threads of each family, in the order in which they are tried.
    sorted: Vec<Vec<usize>>,
    tries: usize,
    /// The position of each thread in its family.
    positions: Vec<usize>,
    /// The inverse of `to`: for each thread, the thread that takes its place.
    from: Vec<usize>,
    /// For each thread, by index, the thread whose place it takes.
    to: Vec<usize>,
    /// For each thread, whether it has no place yet.
    waits: Vec<bool>,
    image: Vec<u64>,
    /// The buffer being mapped: cells and values, `None` for a store-store fence.
    buffer: Vec<(Option<u32>, i64)>,
}

impl<'a> Orbit<'a> {
    /// A search for the states of a set whose families were checked.
    pub fn new(program: &Program, set: &'a StateSet) -> Self {
        let threads = program.threads.len();
        let holds = |t: usize, l: usize, r: u32| {
            set.symmetry.iter().position(|f| f.registers.contains(&(t as u32, l as u32, r)))
        };
        let at = |t: usize, (l, live): (usize, &Vec<u32>)| live.iter().map(|&r| holds(t, l, r)).collect();
        let thread = |(t, locations): (usize, &Vec<Vec<u32>>)| {
            locations.iter().enumerate().map(|location| at(t, location)).collect()
        };
        let (mut values, mut indices) = (Vec::new(), Vec::new());
        for (v, variable) in program.variables.iter().enumerate() {
            let family = |of: &dyn Fn(&Family) -> &BTreeSet<u32>| {
                set.symmetry.iter().position(|f| of(f).contains(&(v as u32)))
            };
            let (held, indexed) = (family(&|f| &f.values), family(&|f| &f.indices));
            let first = i64::from(variable.base) - variable.indices.map_or(0, |range| range.low);
            for cell in variable.cells() {
                values.push(held);
                indices.push(indexed.map(|family| (family, cell as i64 - first, first)));
            }
        }
        let mut places: Vec<(usize, usize)> = (0..set.symmetry.len())
            .flat_map(|f| (0..set.symmetry[f].threads.len()).map(move |n| (f, n)))
            .collect();
        // Families without numbers come first, so that their permutations vary slowest. For such a family the first permutation tried is enough,
        // because it sorts the threads completely: if any permutation maps the state into the set, this one does.
        places.sort_by_key(|&(f, _)| set.symmetry[f].has_numbers());
        let mut positions = vec![0; threads];
        for family in &set.symmetry {
            family.threads.iter().enumerate().for_each(|(n, &t)| positions[t as usize] = n);
        }
        Orbit {
            set,
            registers: set.live.iter().enumerate().map(thread).collect(),
            values,
            indices,
            places,
            sorted: vec![Vec::new(); set.symmetry.len()],
            tries: 0,
            positions,
            from: (0..threads).collect(),
            to: (0..threads).collect(),
            waits: vec![true; threads],
            image: vec![0; set.layout.words],
            buffer: Vec::new(),
        }
    }

    /// Whether one of the permutations that are tried maps the state to one for which `contains` is true.
    pub fn meets(&mut self, state: &[u64], contains: &impl Fn(&[u64]) -> bool) -> bool {
        let set = self.set;
        for (sorted, family) in self.sorted.iter_mut().zip(&set.symmetry) {
            sorted.clear();
            sorted.extend(family.threads.iter().map(|&t| t as usize));
            sorted.sort_by(|&a, &b| compare(set, state, a, b));
        }
        self.tries = 0;
        self.fill(state, 0, contains)
    }

    /// The given rejection; or `TooLarge` if not all permutations of the last state were tried.
    pub fn unless_given_up(&self, rejection: Rejection) -> Rejection {
        let all = self.tries < MOST_TRIES;
        if all { rejection } else { too_large("a state has very many permutations of threads".into()) }
    }

    /// The recursion of `meets`, with the first `filled` places taken.
    fn fill(&mut self, state: &[u64], filled: usize, contains: &impl Fn(&[u64]) -> bool) -> bool {
        let set = self.set;
        let Some(&(family, position)) = self.places.get(filled) else {
            self.tries += 1;
            return self.arrange(state).is_some() && contains(&self.image);
        };
        let location = |thread: usize| set.layout.locations[thread].get(state);
        let place = set.symmetry[family].threads[position] as usize;
        let mut greatest = None;
        for n in 0..self.sorted[family].len() {
            let thread = self.sorted[family][n];
            if !self.waits[thread] {
                continue;
            }
            if *greatest.get_or_insert(location(thread)) != location(thread) || self.tries >= MOST_TRIES {
                return false;
            }
            self.waits[thread] = false;
            (self.from[place], self.to[thread]) = (thread, place);
            let found = self.fill(state, filled + 1, contains);
            self.waits[thread] = true;
            if found {
                return true;
            }
        }
        false
    }

    /// The image of a value that may be the number of a thread of a family.
    fn renamed(&self, numbers: Numbers, value: i64) -> i64 {
        let Some(family) = numbers.map(|family| &self.set.symmetry[family]) else { return value };
        match family.numbers.iter().position(|&n| n == value) {
            Some(n) => family.numbers[self.positions[self.to[family.threads[n] as usize]]],
            None => value,
        }
    }

    fn cell(&self, cell: usize) -> usize {
        match self.indices[cell] {
            Some((family, index, first)) => (first + self.renamed(Some(family), index)) as usize,
            None => cell,
        }
    }

    /// Computes the image of the state under the current permutation; `None` if it does not fit the layout.
    fn arrange(&mut self, state: &[u64]) -> Option<()> {
        let set = self.set;
        let layout = &set.layout;
        let mut image = std::mem::take(&mut self.image);
        image.fill(0);
        let arranged = (|| {
            for (cell, field) in layout.memory.iter().enumerate() {
                let value = self.renamed(self.values[cell], field.get(state));
                layout.memory[self.cell(cell)].put(&mut image, value)?;
            }
            for field in [layout.lock, layout.favourite] {
                let holder = field.get(state) as usize;
                field.put(&mut image, if holder == 0 { 0 } else { self.to[holder - 1] as i64 + 1 })?;
            }
            for place in 0..self.from.len() {
                let thread = self.from[place];
                let location = layout.locations[thread].get(state);
                layout.locations[place].put(&mut image, location)?;
                let live = set.live[thread][location as usize].iter();
                for (&r, &numbers) in live.zip(&self.registers[thread][location as usize]) {
                    let value = layout.registers[thread][r as usize].get(state);
                    layout.registers[place][r as usize].put(&mut image, self.renamed(numbers, value))?;
                }
                self.arrange_buffer(state, thread, place, &mut image)?;
            }
            Some(())
        })();
        self.image = image;
        arranged
    }

    fn arrange_buffer(
        &mut self,
        state: &[u64],
        thread: usize,
        place: usize,
        image: &mut [u64],
    ) -> Option<()> {
        let layout = &self.set.layout;
        let Some(from) = layout.buffers.get(thread) else { return Some(()) };
        let to = &layout.buffers[place];
        let count = from.count.get(state);
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        for (kind, value) in &from.entries[..count as usize] {
            buffer.push(match from.cells.get(kind.get(state) as usize) {
                Some(&cell) => {
                    let value = self.renamed(self.values[cell as usize], value.get(state));
                    (Some(self.cell(cell as usize) as u32), value)
                }
                None => (None, 0),
            });
        }
        if MemoryModel::from(self.set.model) == MemoryModel::Pso {
            buffer.split_mut(|entry| entry.0.is_none()).for_each(|part| part.sort_by_key(|entry| entry.0));
        }
        to.count.put(image, count)?;
        for (n, (cell, value)) in buffer.iter().enumerate() {
            let (kind_field, value_field) = to.entries.get(n)?;
            match cell {
                Some(cell) => {
                    kind_field.put(image, to.cells.binary_search(cell).ok()? as i64)?;
                    value_field.put(image, *value)?;
                }
                None => kind_field.put(image, to.cells.len() as i64)?,
            }
        }
        self.buffer = buffer;
        Some(())
    }
}

/// The order in which threads are tried: by location, the greatest first; at the same location, the holder of the lock first, then the favourite;
/// then by registers and buffers.
fn compare(set: &StateSet, state: &[u64], a: usize, b: usize) -> Ordering {
    let layout = &set.layout;
    let is = |field: Field, thread: usize| field.get(state) == thread as i64 + 1;
    let first =
        |t: usize| (Reverse(layout.locations[t].get(state)), !is(layout.lock, t), !is(layout.favourite, t));
    let values = |t: usize| {
        let buffer = layout.buffers.get(t).into_iter();
        let buffer = buffer.flat_map(|b| b.entries.iter().flat_map(|&(c, v)| [c, v]).chain([b.count]));
        layout.registers[t].iter().copied().chain(buffer).map(|field| field.get(state))
    };
    first(a).cmp(&first(b)).then_with(|| values(a).cmp(values(b)))
}
