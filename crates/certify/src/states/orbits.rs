//! States up to symmetry: a state is taken to be in the set if the set has a state that permutations of threads make of it.
//!
//! Any permutation within families would do (see [the module](super)). Those are tried after which the threads of each family stand in the
//! order of their locations, the greatest first: few, and the engine stores states that are sorted like this.

use std::collections::BTreeSet;

use fencewright_program::{MemoryModel, Program, Property};

use super::StateSet;
use crate::automorphism::{Family, Reductions};

/// Checks that all threads of each family may be exchanged, and that no two families have anything in common.
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

/// The family, if any, whose numbers something holds.
type Numbers = Option<usize>;

/// Looks for states of an orbit.
pub(super) struct Orbit<'a> {
    set: &'a StateSet,
    /// For each thread and location whose numbers the live registers hold.
    registers: Vec<Vec<Vec<Numbers>>>,
    /// For each memory cell whose numbers it holds.
    values: Vec<Numbers>,
    /// For each memory cell that is indexed by numbers of a family: the family, the number, and the cell with index 0.
    indices: Vec<Option<(usize, i64, i64)>>,
    /// The places to fill: a family, and a position in it.
    places: Vec<(usize, usize)>,
    /// The position of each thread in its family.
    positions: Vec<usize>,
    /// Who takes the place of each thread, and whose place each thread takes.
    from: Vec<usize>,
    to: Vec<usize>,
    /// Whether a thread has no place yet.
    waits: Vec<bool>,
    image: Vec<u64>,
    /// A buffer: cells and values, no cell for a store-store fence.
    buffer: Vec<(Option<u32>, i64)>,
}

impl<'a> Orbit<'a> {
    /// For the states of a set whose families were checked.
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
        let families = set.symmetry.iter().enumerate();
        let mut positions = vec![0; threads];
        for family in &set.symmetry {
            family.threads.iter().enumerate().for_each(|(n, &t)| positions[t as usize] = n);
        }
        Orbit {
            set,
            registers: set.live.iter().enumerate().map(thread).collect(),
            values,
            indices,
            places: families.flat_map(|(f, family)| (0..family.threads.len()).map(move |n| (f, n))).collect(),
            positions,
            from: (0..threads).collect(),
            to: (0..threads).collect(),
            waits: vec![true; threads],
            image: vec![0; set.layout.words],
            buffer: Vec::new(),
        }
    }

    /// Whether `contains` holds of a state that a permutation makes of this one. The places up to `filled` have been filled.
    pub fn meets(&mut self, state: &[u64], filled: usize, contains: &impl Fn(&[u64]) -> bool) -> bool {
        let set = self.set;
        let Some(&(family, position)) = self.places.get(filled) else {
            return self.arrange(state).is_some() && contains(&self.image);
        };
        let threads = &set.symmetry[family].threads;
        let location = |t: u32| set.layout.locations[t as usize].get(state);
        let waiting = threads.iter().filter(|t| self.waits[**t as usize]);
        let greatest = waiting.map(|&t| location(t)).max();
        let place = threads[position] as usize;
        for &thread in threads.iter().filter(|t| Some(location(**t)) == greatest) {
            let thread = thread as usize;
            if self.waits[thread] {
                self.waits[thread] = false;
                (self.from[place], self.to[thread]) = (thread, place);
                let found = self.meets(state, filled + 1, contains);
                self.waits[thread] = true;
                if found {
                    return true;
                }
            }
        }
        false
    }

    /// What becomes of a value that may be a number of a family.
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

    /// Makes the state with everybody in their new place; nothing if it does not fit the layout.
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
