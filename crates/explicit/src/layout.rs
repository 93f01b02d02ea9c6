//! Packing of states into 64-bit words.
//!
//! Every component of a state (a program counter, a register, a memory cell, a buffer entry) is a bit field, just wide enough for the values seen so
//! far. When a value does not fit, or a buffer needs one more entry, the search requests a [`Growth`]: a wider layout is made, and all stored states
//! are repacked. This happens a few dozen times, mostly while few states are stored, so its cost is negligible.
//!
//! Program counters, the lock and the favourite thread never grow and come first, so their positions are the same in every layout. The parallel
//! search assigns states to workers by these components alone, so repacking a state never changes its worker.

use std::collections::HashMap;

use fencewright_program::LocationId;
use rustc_hash::FxBuildHasher;

use super::abstract_buffer::Abstraction;
use super::code::{Code, ThreadCode};

/// A field of a packed state: a value of a few bits within one word, relative to a base.
#[derive(Clone, Copy, Debug, Default)]
pub struct Field {
    word: u32,
    shift: u32,
    /// The largest raw value, which is also the mask of the field's bits.
    mask: u64,
    /// The value whose raw form is 0.
    base: i64,
}

impl Field {
    /// The value of the field: its raw value plus the base.
    #[inline(always)]
    pub fn get(self, state: &[u64]) -> i64 {
        self.base.wrapping_add(self.raw(state) as i64)
    }

    /// The raw value of the field: its bits as an unsigned number.
    #[inline(always)]
    pub fn raw(self, state: &[u64]) -> u64 {
        (state[self.word as usize] >> self.shift) & self.mask
    }

    /// Writes the field. Returns false if the value does not fit.
    #[inline(always)]
    #[must_use]
    pub fn set(self, state: &mut [u64], value: i64) -> bool {
        let raw = value.wrapping_sub(self.base) as u64;
        let fits = value >= self.base && raw <= self.mask;
        if fits {
            self.set_raw(state, raw);
        }
        fits
    }

    /// The word of the field, its lowest bit in the word, the number of bits, and the base.
    pub fn place(self) -> (u32, u32, u32, i64) {
        (self.word, self.shift, self.mask.count_ones(), self.base)
    }

    /// Writes a raw value, which must fit, to the field.
    #[inline(always)]
    pub fn set_raw(self, state: &mut [u64], raw: u64) {
        let word = &mut state[self.word as usize];
        *word = (*word & !(self.mask << self.shift)) | (raw << self.shift);
    }
}

/// The least and greatest value that a field must represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The least value that the field must represent.
    pub low: i64,
    /// The greatest value that the field must represent.
    pub high: i64,
}

impl Bounds {
    fn bits(self) -> u32 {
        64 - (self.high.wrapping_sub(self.low) as u64).leading_zeros()
    }

    /// All values that a field for these bounds can represent: the least value stays the same, and the greatest value is the one that the number of
    /// bits allows.
    pub fn rounded(self) -> Bounds {
        let span = u64::MAX.checked_shr(64 - self.bits()).unwrap_or(0);
        Bounds { low: self.low, high: self.low.saturating_add_unsigned(span) }
    }

    /// The smallest bounds that also include `value` and use all values of a whole number of bits. Growing downwards keeps the previous greatest
    /// representable value, because a stored state may contain it.
    pub fn extended(self, value: i64) -> Bounds {
        let before = self.rounded();
        let wide = Bounds { low: before.low.min(value), high: before.high.max(value) };
        if value >= before.low {
            return wide.rounded();
        }
        let span = u64::MAX.checked_shr(64 - wide.bits()).unwrap_or(0);
        Bounds { low: wide.high.saturating_sub_unsigned(span), high: wide.high }.rounded()
    }
}

/// A value or buffer entry that does not fit into the current layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// A value that does not fit into a slot.
    Value(u32, i64),
    /// The buffer of this thread needs one more entry.
    Buffer(u32),
    /// A value that does not fit into an entry of the buffer of this thread.
    BufferValue(u32, i64),
}

/// The values and numbers of entries for which a layout must have room.
#[derive(Clone, Debug)]
pub struct Sizes {
    /// For each slot, its bounds.
    pub values: Vec<Bounds>,
    /// For each thread, the number of entries for which its buffer has room; empty under SC.
    pub entries: Vec<u32>,
    /// For each thread, the bounds of the values in its buffer; empty under SC.
    pub buffered: Vec<Bounds>,
}

impl Sizes {
    /// Makes room for the value or entry that did not fit. All elements of an array grow together, and so do corresponding slots of threads that may
    /// be permuted.
    pub fn grow(&mut self, code: &Code, growth: Growth) {
        match growth {
            Growth::Value(slot, value) => {
                for slot in code.together(slot) {
                    let bounds = &mut self.values[slot];
                    if !(bounds.low <= value && value <= bounds.rounded().high) {
                        *bounds = bounds.extended(value);
                    }
                }
            }
            Growth::Buffer(thread) => {
                for thread in code.orbits.alike_threads(thread as usize) {
                    let entries = &mut self.entries[thread];
                    *entries += 1 + *entries / 4;
                }
            }
            Growth::BufferValue(thread, value) => {
                for thread in code.orbits.alike_threads(thread as usize) {
                    let bounds = &mut self.buffered[thread];
                    *bounds = bounds.extended(value);
                }
            }
        }
    }
}

/// The fields of one store buffer. Unused entries are 0.
#[derive(Clone, Debug, Default)]
pub struct BufferFields {
    /// The number of entries in use.
    pub count: Field,
    /// The cell (as an index into `buffered_cells`, or the barrier) and the value of each entry, oldest first.
    pub entries: Vec<(Field, Field)>,
}

/// A set of bits of a packed state: words and masks.
pub type Bits = Box<[(u32, u64)]>;

/// A layout: the position of each component of a state.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The number of 64-bit words of a state, at least 1.
    pub words: usize,
    /// The field of each slot.
    pub slots: Vec<Field>,
    /// The slots, except registers, that can hold more than one value.
    varying: Vec<u32>,
    /// The fields of each store buffer; none under SC.
    pub buffers: Vec<BufferFields>,
    /// For each thread and edge, the bits of the registers that are dead after the edge.
    pub freed: Vec<Vec<Bits>>,
    /// For each thread, the bits of the registers that are dead after a fault.
    pub dead_after_fault: Vec<Bits>,
    /// Only for states of one word: for each thread and edge, the bits to keep and the bits to set on arrival at the target; the last entry of a
    /// thread is for a fault. Arriving is half of the work of most steps; this table saves 8 % of the search time.
    pub arrive: Vec<Vec<(u64, u64)>>,
    /// For each word that contains components that never grow, the mask of their bits.
    pub fixed: Vec<u64>,
}

impl Layout {
    /// A layout with room for the given sizes.
    pub fn new(code: &Code, sizes: &Sizes) -> Self {
        let mut packer = Packer::default();
        let fixed_slots = code.fixed_slots();
        let mut slots = Vec::with_capacity(sizes.values.len());
        let mut fixed = Vec::new();
        for (slot, &bounds) in sizes.values.iter().enumerate() {
            let field = packer.field(bounds);
            if slot < fixed_slots {
                fixed.resize(fixed.len().max(field.word as usize + 1), 0);
                fixed[field.word as usize] |= field.mask << field.shift;
            }
            slots.push(field);
        }
        let buffers = (0..sizes.entries.len()).map(|thread| packer.buffer(code, sizes, thread)).collect();
        let words = packer.words();
        let bits = |freed: &[u32]| bits_of(freed.iter().map(|&slot| slots[slot as usize]));
        let freed: Vec<Vec<Bits>> =
            code.threads.iter().map(|thread| by_edge(thread).map(|freed| bits(&freed)).collect()).collect();
        let dead_after_fault: Vec<Bits> = code.threads.iter().map(|t| bits(&t.dead_after_fault)).collect();
        let varying = (0..code.first_register() as u32).filter(|&s| slots[s as usize].mask != 0).collect();
        let arrive = match words {
            1 => arrivals(code, &slots, &freed, &dead_after_fault),
            _ => Vec::new(),
        };
        Layout { words, slots, varying, buffers, freed, dead_after_fault, arrive, fixed }
    }

    /// The number of words of a state of these sizes.
    pub fn words(code: &Code, sizes: &Sizes) -> usize {
        let mut packer = Packer::default();
        sizes.values.iter().for_each(|&bounds| _ = packer.field(bounds));
        for thread in 0..sizes.entries.len() {
            packer.buffer(code, sizes, thread);
        }
        packer.words()
    }

    /// Converts the state `from` of the narrower layout `old` to this layout. Panics if a value does not fit.
    pub fn repack(&self, code: &Code, live: &mut LiveSlots, old: &Layout, from: &[u64], to: &mut [u64]) {
        to.fill(0);
        let mut fits = true;
        let mut copy = |slot: u32| {
            fits &= self.slots[slot as usize].set(to, old.slots[slot as usize].get(from));
        };
        self.varying.iter().for_each(|&slot| copy(slot));
        // A dead register must have raw value 0 in every layout; copying its value could give another raw value.
        for thread in 0..code.threads.len() {
            let location = old.slots[code.pc(thread)].raw(from);
            live.at(code, thread, location).iter().for_each(|&slot| copy(slot));
        }
        for (thread, (buffer, old_buffer)) in self.buffers.iter().zip(&old.buffers).enumerate() {
            let count = old_buffer.count.get(from);
            fits &= buffer.count.set(to, count);
            for (entry, old_entry) in buffer.entries.iter().zip(&old_buffer.entries).take(count as usize) {
                let kind = old_entry.0.raw(from);
                entry.0.set_raw(to, kind);
                // Barriers and borders have no value.
                if kind < code.threads[thread].barrier() {
                    fits &= entry.1.set(to, old_entry.1.get(from));
                }
            }
        }
        assert!(fits, "a layout only grows");
    }
}

/// Cache of the slots of live registers, by thread and location.
#[derive(Default)]
pub struct LiveSlots {
    known: HashMap<(usize, u64), Box<[u32]>, FxBuildHasher>,
    slots: usize,
}

impl LiveSlots {
    /// Maximum number of slots in the cache; beyond it, the cache is cleared.
    const MOST: usize = 1 << 20;

    /// The slots of the registers that are live at a location of a thread.
    fn at(&mut self, code: &Code, thread: usize, location: u64) -> &[u32] {
        if self.slots > LiveSlots::MOST {
            *self = LiveSlots::default();
        }
        let slots = &mut self.slots;
        self.known.entry((thread, location)).or_insert_with(|| {
            let thread = &code.threads[thread];
            let live = thread.live.at(LocationId(location as u32));
            let live: Box<[u32]> = live.map(|r| thread.registers[r.index()]).collect();
            *slots += live.len();
            live
        })
    }
}

/// For each edge of a thread, the slots that are dead after it.
fn by_edge(thread: &ThreadCode) -> impl Iterator<Item = Vec<u32>> + '_ {
    let mut rest = thread.freed.as_slice();
    (0..thread.targets.len() as u32).map(move |edge| {
        let (own, others) = rest.split_at(rest.partition_point(|(of, _)| of.0 == edge));
        rest = others;
        own.iter().map(|(_, slot)| *slot).collect()
    })
}

/// The table [`Layout::arrive`], given the bits of dead registers for each edge and for faults.
fn arrivals(
    code: &Code,
    slots: &[Field],
    freed: &[Vec<Bits>],
    dead_after_fault: &[Bits],
) -> Vec<Vec<(u64, u64)>> {
    let thread = |(t, thread): (usize, &ThreadCode)| {
        let pc = slots[code.pc(t)];
        let arrival = |location: u64, freed: &Bits| {
            let cleared = freed.iter().fold(pc.mask << pc.shift, |bits, (_, mask)| bits | mask);
            (!cleared, location << pc.shift)
        };
        let edges = thread.targets.iter().zip(&freed[t]).map(|(&to, freed)| arrival(u64::from(to), freed));
        edges.chain([arrival(thread.fault, &dead_after_fault[t])]).collect()
    };
    code.threads.iter().enumerate().map(thread).collect()
}

/// The bits of some fields, merged by word.
fn bits_of(fields: impl Iterator<Item = Field>) -> Bits {
    let masks = fields.filter(|f| f.mask != 0).map(|field| (field.word, field.mask << field.shift));
    let mut bits: Vec<(u32, u64)> = masks.collect();
    bits.sort_unstable();
    bits.dedup_by(|(word, mask), (kept, sum)| {
        *sum |= if word == kept { *mask } else { 0 };
        word == kept
    });
    bits.into()
}

/// Assigns fields to words: each field to the first word with enough room.
#[derive(Default)]
struct Packer {
    /// Free bits at the upper end of each word.
    free: Vec<u32>,
    /// Words before this one are full.
    first: usize,
}

impl Packer {
    /// Number of words, counted from the end, that are searched for room.
    const NEAR: usize = 64;

    fn words(&self) -> usize {
        self.free.len().max(1)
    }

    fn buffer(&mut self, code: &Code, sizes: &Sizes, thread: usize) -> BufferFields {
        let entries = sizes.entries[thread];
        let border = code.abstraction.is_some_and(Abstraction::has_border) as i64;
        let cell = Bounds { low: 0, high: code.threads[thread].buffer_kinds() as i64 - 1 + border };
        BufferFields {
            count: self.field(Bounds { low: 0, high: i64::from(entries) }),
            entries: (0..entries).map(|_| (self.field(cell), self.field(sizes.buffered[thread]))).collect(),
        }
    }

    fn field(&mut self, bounds: Bounds) -> Field {
        let bits = bounds.bits();
        if bits == 0 {
            return Field { base: bounds.low, ..Field::default() };
        }
        let first = self.first.max(self.free.len().saturating_sub(Packer::NEAR));
        let word = match (first..self.free.len()).find(|&w| self.free[w] >= bits) {
            Some(word) => word,
            None => {
                self.free.push(64);
                self.free.len() - 1
            }
        };
        let shift = 64 - self.free[word];
        self.free[word] -= bits;
        while self.first < self.free.len() && self.free[self.first] == 0 {
            self.first += 1;
        }
        Field { word: word as u32, shift, mask: u64::MAX >> (64 - bits), base: bounds.low }
    }
}
