//! Symmetry reduction: one state of each orbit is stored.
//!
//! The threads of a [`Family`] may be permuted, together with their numbers ([`fencewright_certify::automorphism`]). The images of a state under
//! these permutations form its orbit, and the search stores one of them, the representative. Any choice is sound, because every permutation is an
//! automorphism. Here the same representative is chosen for all states of an orbit, so it is a canonical form.
//!
//! Every thread gets a key that is invariant under renaming: its location, its registers and its own cells, with "me", "another thread" and "none" in
//! place of numbers. The threads of a family are sorted by their keys. If keys are equal, several permutations sort them, and the one that gives the
//! least packed state is chosen. In a family *without numbers*, whose thread numbers do not occur in the program, threads with equal keys are
//! compared register by register and then by their buffers instead, so no permutations are tried.
//!
//! Location, lock and favourite are the most significant parts of a key. So these parts of the representative are the same for every sorting
//! permutation and in every layout. Therefore the worker that owns a state stays the same when states are repacked and their representatives are
//! computed again.

mod representatives;
#[cfg(test)]
mod tests;

use fencewright_certify::automorphism::Family;
use fencewright_program::Program;

use super::code::{Code, Slot, ThreadCode};
use super::layout::{Bounds, Sizes};

pub use representatives::Representatives;

/// Maximum number of permuted threads in a family with numbers, because all their permutations may have to be tried.
const MOST_NUMBERED: usize = 6;
/// Maximum number of permutations tried for one state, over all families with numbers.
const MOST_ARRANGEMENTS: usize = 5_040;
/// Maximum number of threads in a family.
const MOST_THREADS: usize = 16;

/// The families of interchangeable threads of a program, compiled for the search.
#[derive(Default)]
pub struct Orbits {
    families: Vec<Family>,
    classes: Vec<Class>,
}

/// A family of threads, with the slots and cells that its permutations change.
struct Class {
    threads: Vec<usize>,
    numbers: Vec<i64>,
    /// Whether the thread numbers of the family occur anywhere in the program.
    numbered: bool,
    /// For each array indexed by thread numbers, the slot of each thread's element.
    arrays: Vec<Vec<Slot>>,
    /// The slots of other memory cells that hold thread numbers.
    cells: Vec<Slot>,
    /// For each memory cell, whether it holds thread numbers.
    holds_numbers: Vec<bool>,
    /// For each memory cell that is an element listed in `arrays`, the index of the array and the position of the thread that owns the element.
    owners: Vec<Option<(usize, usize)>>,
    /// For each thread of the program and each of its locations, the set of the thread's slots that hold thread numbers there, as bits.
    registers: Vec<Vec<u64>>,
    /// Like `registers`, but for the thread numbers of other families: keys must not depend on these slots.
    foreign: Vec<Vec<u64>>,
    /// For each memory cell, whether it holds thread numbers of another family or is an element of an array indexed by them.
    foreign_cells: Vec<bool>,
}

impl Orbits {
    /// Compiles the families of a program. Of a family with numbers, only the first `MOST_NUMBERED` threads are permuted. A family is dropped if the
    /// slots of its threads do not correspond, or if too many permutations would have to be tried.
    pub fn new(program: &Program, code: &Code, families: Vec<Family>) -> Self {
        let mut orbits = Orbits::default();
        let mut arrangements = 1;
        for mut family in families {
            let numbered = family.has_numbers();
            if numbered {
                family.threads.truncate(MOST_NUMBERED);
                family.numbers.truncate(MOST_NUMBERED);
                arrangements *= (1..=family.threads.len()).product::<usize>();
            }
            if arrangements <= MOST_ARRANGEMENTS && packed_alike(code, &family) {
                orbits.classes.push(Class::new(program, code, &family, numbered));
                orbits.families.push(family);
            }
        }
        for n in 0..orbits.classes.len() {
            for m in (0..orbits.classes.len()).filter(|&m| m != n) {
                let (registers, cells) = orbits.classes[m].numbers_kept(code);
                orbits.classes[n].except(&registers, &cells);
            }
        }
        orbits
    }

    /// The families whose threads are permuted.
    pub fn families(&self) -> &[Family] {
        &self.families
    }

    /// The slots that must have the same width as `slot`.
    pub fn alike(&self, code: &Code, slot: Slot) -> Vec<Slot> {
        for class in &self.classes {
            let slots = |&t: &usize| &code.threads[t].slots;
            if let Some(own) = class.threads.iter().map(slots).find(|own| own.contains(&slot)) {
                return class.threads.iter().map(|t| slots(t).start + slot - own.start).collect();
            }
        }
        vec![slot]
    }

    /// The threads whose buffers must have the same width as the buffer of `thread`.
    pub fn alike_threads(&self, thread: usize) -> Vec<usize> {
        let class = self.classes.iter().find(|class| class.threads.contains(&thread));
        class.map_or_else(|| vec![thread], |class| class.threads.clone())
    }

    /// Makes the initial sizes of corresponding slots equal. Slots that may hold thread numbers get room for all of them.
    pub fn equalize(&self, code: &Code, sizes: &mut Sizes) {
        let hull = |a: Bounds, b: Bounds| Bounds { low: a.low.min(b.low), high: a.high.max(b.high) };
        for class in &self.classes {
            let numbers = class.numbers.iter().map(|&n| Bounds { low: n, high: n });
            let numbers = numbers.reduce(hull).expect("a family has threads");
            for (t, locations) in class.registers.iter().enumerate() {
                let mask = locations.iter().fold(0, |all, mask| all | mask);
                let slots = code.threads[t].slots.clone().enumerate().filter(|(n, _)| mask >> n & 1 == 1);
                slots.for_each(|(_, slot)| {
                    sizes.values[slot as usize] = hull(sizes.values[slot as usize], numbers)
                });
            }
            for (cell, _) in class.holds_numbers.iter().enumerate().filter(|(_, holds)| **holds) {
                let bounds = &mut sizes.values[code.memory as usize + cell];
                *bounds = hull(*bounds, numbers);
            }
            for (t, buffered) in sizes.buffered.iter_mut().enumerate() {
                if code.threads[t].buffered_cells.iter().any(|&c| class.holds_numbers[c as usize]) {
                    *buffered = hull(*buffered, numbers);
                }
            }
            let registers = 0..code.threads[class.threads[0]].slots.len() as Slot;
            let registers =
                registers.map(|n| class.threads.iter().map(|&t| code.threads[t].slots.start + n).collect());
            for group in registers.chain(class.arrays.iter().cloned()) {
                let group: Vec<Slot> = group;
                let all = group.iter().map(|&slot| sizes.values[slot as usize]).reduce(hull);
                group
                    .iter()
                    .for_each(|&slot| sizes.values[slot as usize] = all.expect("a family has threads"));
            }
        }
    }
}

/// Whether the threads of a family have the same layout: equally many slots and buffered cells, and registers at the same offsets. False if the
/// family has more than [`MOST_THREADS`] threads or any thread of the program has more than 64 slots.
fn packed_alike(code: &Code, family: &Family) -> bool {
    let first = &code.threads[family.threads[0] as usize];
    family.threads.len() <= MOST_THREADS
        && code.threads.iter().all(|thread| thread.slots.len() <= 64)
        && family.threads.iter().all(|&t| {
            let thread = &code.threads[t as usize];
            let offsets =
                |t: &ThreadCode| t.registers.iter().map(|slot| slot - t.slots.start).collect::<Vec<_>>();
            offsets(thread) == offsets(first)
                && thread.slots.len() == first.slots.len()
                && thread.buffered_cells.len() == first.buffered_cells.len()
        })
}

impl Class {
    fn new(program: &Program, code: &Code, family: &Family, numbered: bool) -> Self {
        let slot = |cell: usize| code.memory + cell as Slot;
        let mut arrays = Vec::new();
        let mut owners = vec![None; program.cells()];
        let mut holds_numbers = vec![false; program.cells()];
        for (n, variable) in program.variables.iter().enumerate() {
            if family.values.contains(&(n as u32)) {
                holds_numbers[variable.cells()].fill(true);
            }
            let Some(range) = variable.indices.filter(|_| family.indices.contains(&(n as u32))) else {
                continue;
            };
            // The range contains all numbers of the family or none, so testing one number suffices.
            if range.contains(family.numbers[0]) {
                let cell = |number: i64| variable.base as usize + (number - range.low) as usize;
                for (position, &number) in family.numbers.iter().enumerate() {
                    owners[cell(number)] = Some((arrays.len(), position));
                }
                arrays.push(family.numbers.iter().map(|&number| slot(cell(number))).collect());
            }
        }
        let others = (0..program.cells()).filter(|&c| holds_numbers[c] && owners[c].is_none());
        let mut registers: Vec<Vec<u64>> =
            program.threads.iter().map(|t| vec![0; t.locations.len()]).collect();
        for &(thread, location, register) in &family.registers {
            let compiled = &code.threads[thread as usize];
            let bit = compiled.registers[register as usize] - compiled.slots.start;
            registers[thread as usize][location as usize] |= 1 << bit;
        }
        Class {
            threads: family.threads.iter().map(|&t| t as usize).collect(),
            numbers: family.numbers.clone(),
            numbered,
            arrays,
            cells: others.map(slot).collect(),
            foreign: registers.iter().map(|locations| vec![0; locations.len()]).collect(),
            foreign_cells: vec![false; program.cells()],
            holds_numbers,
            owners,
            registers,
        }
    }

    /// The slots of registers that hold thread numbers of this class, and the cells that hold them or are elements of arrays indexed by them.
    fn numbers_kept(&self, code: &Code) -> (Vec<Vec<u64>>, Vec<bool>) {
        debug_assert_eq!(self.registers.len(), code.threads.len());
        let indexed = self.owners.iter().map(Option::is_some);
        let cells = self.holds_numbers.iter().zip(indexed).map(|(holds, indexed)| *holds || indexed);
        (self.registers.clone(), cells.collect())
    }

    /// Excludes from the keys the slots and cells that permutations of another class change.
    fn except(&mut self, registers: &[Vec<u64>], cells: &[bool]) {
        for (own, other) in self.foreign.iter_mut().flatten().zip(registers.iter().flatten()) {
            *own |= other;
        }
        self.foreign_cells.iter_mut().zip(cells).for_each(|(own, other)| *own |= other);
    }

    fn position(&self, number: i64) -> Option<usize> {
        self.numbers.iter().position(|&n| n == number)
    }

    /// Maps a value that may be a thread number: to 1 for the thread at position `by`, to 2 for any other thread of the class, and to the value plus
    /// 3 if it is not a thread number of the class.
    fn seen(&self, value: i64, by: usize) -> u64 {
        match self.position(value) {
            Some(position) if position == by => 1,
            Some(_) => 2,
            None => (value as u64).wrapping_add(3),
        }
    }
}
