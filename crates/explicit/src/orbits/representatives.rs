//! The representative of the orbit of a state: the state whose threads are sorted by their keys. If some keys are equal, several states of the orbit
//! have sorted threads; the representative is then the least packed state among them.

use std::cmp::Ordering;

use fencewright_program::MemoryModel;

use super::{Class, MOST_THREADS};
use crate::code::Code;
use crate::layout::{Field, Layout};
use crate::store::hash_word;

/// A permutation of a class: the thread at position n receives the state of the thread at position `order[n]`.
type Order = [u8; MOST_THREADS];

/// Computes the representatives of orbits. One instance is used for many states, so that the computation does not allocate.
pub struct Representatives<'c> {
    code: &'c Code,
    pub(super) orders: Vec<Order>,
    /// Groups of positions whose threads have equal keys, in classes with numbers: class, first position, count.
    pub(super) ties: Vec<(usize, usize, usize)>,
    best: Vec<u64>,
    candidate: Vec<u64>,
    scratch: Vec<u64>,
}

impl<'c> Representatives<'c> {
    /// Prepares to compute representatives of the states of a program.
    pub fn new(code: &'c Code) -> Self {
        Representatives {
            code,
            orders: vec![Order::default(); code.orbits.classes.len()],
            ties: Vec::new(),
            best: Vec::new(),
            candidate: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// The representative of a state's orbit; the state itself if it is the representative. Valid until the next call.
    pub fn of<'s>(&'s mut self, layout: &Layout, state: &'s [u64]) -> &'s [u64] {
        if self.code.orbits.classes.is_empty() || (self.sort(layout, state) && self.ties.is_empty()) {
            return state;
        }
        let mut best = std::mem::take(&mut self.best);
        let mut candidate = std::mem::take(&mut self.candidate);
        self.arrange(layout, state, &mut best);
        while self.next_arrangement() {
            self.arrange(layout, state, &mut candidate);
            if candidate < best {
                std::mem::swap(&mut candidate, &mut best);
            }
        }
        (self.best, self.candidate) = (best, candidate);
        &self.best
    }

    /// Replaces a state by the representative of its orbit.
    pub fn replace(&mut self, layout: &Layout, state: &mut [u64]) {
        if !std::ptr::eq(self.of(layout, state), state) {
            state.copy_from_slice(&self.best);
        }
    }

    /// Maps a set of parts (the edges or the flushes of a thread, two bits per thread) from a state to its representative.
    pub fn carry(&mut self, layout: &Layout, state: &[u64], parts: u64) -> u64 {
        if parts == 0 || std::ptr::eq(self.of(layout, state), state) {
            return parts;
        }
        let (best, mut candidate) = (std::mem::take(&mut self.best), std::mem::take(&mut self.candidate));
        // `of` has tried all permutations, so the iteration is back at the first one.
        self.arrange(layout, state, &mut candidate);
        while candidate != best && self.next_arrangement() {
            self.arrange(layout, state, &mut candidate);
        }
        (self.best, self.candidate) = (best, candidate);
        let mut carried = parts;
        for (class, order) in self.code.orbits.classes.iter().zip(&self.orders) {
            for (&thread, &from) in class.threads.iter().zip(order) {
                let moved = parts >> (2 * class.threads[from as usize]) & 3;
                carried = carried & !(3 << (2 * thread)) | moved << (2 * thread);
            }
        }
        carried
    }

    /// Sorts the threads of each class by their keys. Returns true if they were sorted already.
    fn sort(&mut self, layout: &Layout, state: &[u64]) -> bool {
        self.ties.clear();
        let mut sorted = true;
        for (n, class) in self.code.orbits.classes.iter().enumerate() {
            let threads = class.threads.len();
            let mut keys = [0; MOST_THREADS];
            for (position, key) in keys[..threads].iter_mut().enumerate() {
                *key = key_of(self.code, layout, class, state, position);
            }
            let order = &mut self.orders[n];
            for position in 0..threads {
                order[position] = position as u8;
                let compare = |a: u8, b: u8| match keys[a as usize].cmp(&keys[b as usize]) {
                    Ordering::Equal if !class.numbered => {
                        let [a, b] = [a, b].map(|n| class.threads[n as usize]);
                        compare_threads(self.code, layout, state, a, b)
                    }
                    unequal => unequal,
                };
                let mut place = position;
                while place > 0 && compare(order[place - 1], order[place]) == Ordering::Greater {
                    order.swap(place - 1, place);
                    place -= 1;
                    sorted = false;
                }
            }
            if class.numbered {
                let mut first = 0;
                for next in 1..=threads {
                    let key = |position: usize| keys[order[position] as usize];
                    if next == threads || key(next) != key(first) {
                        if next - first > 1 {
                            self.ties.push((n, first, next - first));
                        }
                        first = next;
                    }
                }
            }
        }
        sorted
    }

    /// Advances to the next permutation of threads with equal keys. Returns false after the last one.
    pub(super) fn next_arrangement(&mut self) -> bool {
        for &(class, first, count) in &self.ties {
            if next_permutation(&mut self.orders[class][first..first + count]) {
                return true;
            }
        }
        false
    }

    /// Writes to `out` the state that the current permutations make of `state`.
    pub(super) fn arrange(&mut self, layout: &Layout, state: &[u64], out: &mut Vec<u64>) {
        out.clear();
        out.extend_from_slice(state);
        for (class, order) in self.code.orbits.classes.iter().zip(&self.orders) {
            if order[..class.threads.len()].is_sorted() {
                continue;
            }
            self.scratch.clear();
            self.scratch.extend_from_slice(out);
            move_threads(self.code, layout, class, order, &self.scratch, out);
            if class.numbered {
                rename(self.code, layout, class, order, &self.scratch, out);
            }
        }
    }
}

/// The next permutation in lexicographic order. After the last one, restores the first and returns false.
pub(super) fn next_permutation(items: &mut [u8]) -> bool {
    let Some(pivot) = (1..items.len()).rev().find(|&n| items[n - 1] < items[n]) else {
        items.reverse();
        return false;
    };
    let larger =
        (pivot..items.len()).rev().find(|&n| items[n] > items[pivot - 1]).expect("the pivot is larger");
    items.swap(pivot - 1, larger);
    items[pivot..].reverse();
    true
}

/// The key of a thread, which does not depend on its number.
fn key_of(code: &Code, layout: &Layout, class: &Class, state: &[u64], position: usize) -> u64 {
    let thread = class.threads[position];
    let compiled = &code.threads[thread];
    let location = layout.slots[code.pc(thread)].raw(state);
    let is_me = |slot: usize| layout.slots[slot].raw(state) == thread as u64 + 1;
    // Threads at later locations are sorted first, so that their steps are explored first. Then executions shown to users switch threads less often.
    let far = (compiled.edges.len() as u64 - location) << 2;
    let fixed = far | u64::from(!is_me(code.lock())) << 1 | u64::from(!is_me(code.favourite()));
    if !class.numbered {
        // Ties are broken by comparing the threads directly; the checker of certificates sorts them in the same way.
        return fixed;
    }
    let mut hash = 0u64;
    let mut mix = |value: u64| hash = hash_word(hash.rotate_left(5) ^ value);
    let numbers = class.registers[thread][location as usize];
    let foreign = class.foreign[thread][location as usize];
    for (n, slot) in compiled.slots.clone().enumerate().filter(|(n, _)| foreign >> n & 1 == 0) {
        let field = layout.slots[slot as usize];
        mix(if numbers >> n & 1 == 1 { class.seen(field.get(state), position) } else { field.raw(state) });
    }
    for array in &class.arrays {
        let slot = array[position];
        let cell = (slot - code.memory) as usize;
        let field = layout.slots[slot as usize];
        if class.holds_numbers[cell] {
            mix(class.seen(field.get(state), position));
        } else if !class.foreign_cells[cell] {
            mix(field.raw(state));
        }
    }
    for &slot in &class.cells {
        mix(u64::from(layout.slots[slot as usize].get(state) == class.numbers[position]));
    }
    if let Some(buffer) = layout.buffers.get(thread) {
        let count = buffer.count.raw(state) as usize;
        mix(count as u64);
        // The entries are combined by a commutative sum, because their order may depend on thread numbers.
        let mut entries = 0u64;
        for (kind, value) in &buffer.entries[..count] {
            let kind = kind.raw(state);
            let Some(&cell) = compiled.buffered_cells.get(kind as usize) else { continue };
            let place = match class.owners[cell as usize] {
                Some((array, owner)) => (array as u64) << 1 | u64::from(owner == position),
                None if class.foreign_cells[cell as usize] => 1 << 30,
                None => u64::from(cell) << 32,
            };
            let value = match class.holds_numbers[cell as usize] {
                true => class.seen(value.get(state), position),
                false if class.foreign_cells[cell as usize] => 0,
                false => value.raw(state),
            };
            entries = entries.wrapping_add(hash_word(hash_word(place) ^ value));
        }
        mix(entries);
    }
    fixed << 40 | hash >> 24
}

/// Compares the states of two threads, register by register and then their buffers.
fn compare_threads(code: &Code, layout: &Layout, state: &[u64], a: usize, b: usize) -> Ordering {
    let [a, b] = [a, b].map(|t| {
        let registers = code.threads[t].registers.iter().map(|&slot| layout.slots[slot as usize]);
        let buffer = layout.buffers.get(t).into_iter();
        let buffer = buffer.flat_map(|b| b.entries.iter().flat_map(|&(c, v)| [c, v]).chain([b.count]));
        registers.chain(buffer).map(|field| field.raw(state))
    });
    a.cmp(b)
}

/// Permutes the threads of a class: their locations, registers, buffers and owned cells, and the thread that the lock and the favourite name.
fn move_threads(code: &Code, layout: &Layout, class: &Class, order: &Order, from: &[u64], to: &mut [u64]) {
    let mut copy = |target: Field, source: Field| target.set_raw(to, source.raw(from));
    for (position, &thread) in class.threads.iter().enumerate() {
        let other = class.threads[order[position] as usize];
        if other == thread {
            continue;
        }
        copy(layout.slots[code.pc(thread)], layout.slots[code.pc(other)]);
        let slots = code.threads[thread].slots.clone().zip(code.threads[other].slots.clone());
        slots.for_each(|(slot, other)| copy(layout.slots[slot as usize], layout.slots[other as usize]));
        for array in &class.arrays {
            let source = array[order[position] as usize];
            copy(layout.slots[array[position] as usize], layout.slots[source as usize]);
        }
        if let (Some(buffer), Some(other)) = (layout.buffers.get(thread), layout.buffers.get(other)) {
            copy(buffer.count, other.count);
            for (entry, other) in buffer.entries.iter().zip(&other.entries) {
                copy(entry.0, other.0);
                copy(entry.1, other.1);
            }
        }
    }
    for slot in [code.lock(), code.favourite()] {
        let field = layout.slots[slot];
        let holder = field.raw(from) as usize;
        let places = class.threads.iter().zip(order);
        let mut places = places.filter(|(_, source)| class.threads[**source as usize] + 1 == holder);
        if let Some((place, _)) = places.next() {
            field.set_raw(to, *place as u64 + 1);
        }
    }
}

/// Renames the thread numbers in memory, registers and buffers according to the permutation that led from `before` to `state`.
fn rename(code: &Code, layout: &Layout, class: &Class, order: &Order, before: &[u64], state: &mut [u64]) {
    let mut places = [0; MOST_THREADS];
    for position in 0..class.threads.len() {
        places[order[position] as usize] = position;
    }
    let rename = |field: Field, state: &mut [u64]| {
        if let Some(position) = class.position(field.get(state)) {
            let fits = field.set(state, class.numbers[places[position]]);
            debug_assert!(fits, "fields for numbers hold all of them");
        }
    };
    for (cell, _) in class.holds_numbers.iter().enumerate().filter(|(_, holds)| **holds) {
        rename(layout.slots[code.memory as usize + cell], state);
    }
    for (thread, compiled) in code.threads.iter().enumerate() {
        let location = layout.slots[code.pc(thread)].raw(state) as usize;
        let mut numbers = class.registers[thread][location];
        while numbers != 0 {
            rename(layout.slots[compiled.slots.start as usize + numbers.trailing_zeros() as usize], state);
            numbers &= numbers - 1;
        }
        let Some(buffer) = layout.buffers.get(thread) else { continue };
        let position = class.threads.iter().position(|&t| t == thread);
        let source = position.map_or(thread, |position| class.threads[order[position] as usize]);
        let count = layout.buffers[source].count.raw(before) as usize;
        for n in 0..count {
            let (kind, value) = buffer.entries[n];
            let Some(&cell) = code.threads[source].buffered_cells.get(kind.raw(state) as usize) else {
                continue;
            };
            let image = match class.owners[cell as usize] {
                Some((array, owner)) => class.arrays[array][places[owner]] - code.memory,
                None => cell,
            };
            kind.set_raw(state, u64::from(compiled.cell_kind[image as usize]));
            if class.holds_numbers[cell as usize] {
                rename(value, state);
            }
        }
        if code.model == MemoryModel::Pso {
            sort_entries(layout, compiled.barrier(), thread, count, state);
        }
    }
}

/// Sorts entries by cell, moving none past a barrier; stable for entries of one cell.
fn sort_entries(layout: &Layout, barrier: u64, thread: usize, count: usize, state: &mut [u64]) {
    let entries = &layout.buffers[thread].entries;
    for next in 1..count {
        for place in (0..next).rev() {
            let ((kind, value), (later_kind, later_value)) = (entries[place], entries[place + 1]);
            let (first, second) = (kind.raw(state), later_kind.raw(state));
            if first <= second || first == barrier || second == barrier {
                break;
            }
            let (x, y) = (value.raw(state), later_value.raw(state));
            kind.set_raw(state, second);
            later_kind.set_raw(state, first);
            value.set_raw(state, y);
            later_value.set_raw(state, x);
        }
    }
}
