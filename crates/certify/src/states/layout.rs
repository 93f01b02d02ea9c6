//! The packing of a state into 64-bit words, and the check that a packing loses nothing.
//!
//! A certificate states which bits hold each part of a state. This is not trusted: [`Layout::validate`] checks that parts that matter in the same
//! state have disjoint bits, and [`Field::put`] refuses a value that a field cannot hold. So unpacking a packed state yields the same state again,
//! and nothing else is required of a layout.

use fencewright_program::{MemoryModel, Program};
use serde::{Deserialize, Serialize};

/// Some bits of a word, which hold a value minus `low`; serialised as `[word, shift, bits, low]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "(u32, u32, u32, i64)", into = "(u32, u32, u32, i64)")]
pub struct Field {
    word: u32,
    shift: u32,
    mask: u64,
    low: i64,
}

impl Field {
    /// The field of `bits` bits from bit `shift` on; `None` if a word does not have these bits.
    pub fn new(word: u32, shift: u32, bits: u32, low: i64) -> Option<Self> {
        let fits = shift < 64 && bits <= 64 - shift;
        fits.then(|| Field { word, shift, mask: u64::MAX.checked_shr(64 - bits).unwrap_or(0), low })
    }

    /// The value of the field.
    #[inline]
    pub fn get(self, state: &[u64]) -> i64 {
        self.low.wrapping_add(((state[self.word as usize] >> self.shift) & self.mask) as i64)
    }

    /// Writes the field; `None` if it cannot hold the value.
    #[inline]
    pub fn put(self, state: &mut [u64], value: i64) -> Option<()> {
        let raw = value.wrapping_sub(self.low) as u64;
        if value < self.low || raw > self.mask {
            return None;
        }
        self.clear(state);
        state[self.word as usize] |= raw << self.shift;
        Some(())
    }

    /// Clears all bits of the field.
    #[inline]
    pub fn clear(self, state: &mut [u64]) {
        state[self.word as usize] &= !self.bits();
    }

    fn bits(self) -> u64 {
        self.mask << self.shift
    }
}

impl TryFrom<(u32, u32, u32, i64)> for Field {
    type Error = &'static str;

    fn try_from((word, shift, bits, low): (u32, u32, u32, i64)) -> Result<Self, Self::Error> {
        Field::new(word, shift, bits, low).ok_or("a field has more bits than a word")
    }
}

impl From<Field> for (u32, u32, u32, i64) {
    fn from(field: Field) -> Self {
        (field.word, field.shift, field.mask.count_ones(), field.low)
    }
}

/// The fields of a store buffer, oldest entry first. The bits of unused entries are 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BufferFields {
    /// The memory cells to which entries may refer, in order. The first field of an entry contains the position of its cell in this list; the next
    /// number stands for a store-store fence, and the one after that, in an abstract buffer, for the separator between queue and rest.
    pub cells: Vec<u32>,
    /// The number of entries in use.
    pub count: Field,
    /// For each entry, the fields of its cell and of its value.
    pub entries: Vec<(Field, Field)>,
}

/// The field of each part of a state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// The number of words per state.
    pub words: usize,
    /// The location of each thread.
    pub locations: Vec<Field>,
    /// The holder of the global lock: 0 if it is free, else the index of the thread plus 1.
    pub lock: Field,
    /// The favourite, the thread that moves next if it can: 0 if there is none, else the index of the thread plus 1.
    pub favourite: Field,
    /// The value of each memory cell.
    pub memory: Vec<Field>,
    /// The registers of each thread. Registers that are never live together may share bits.
    pub registers: Vec<Vec<Field>>,
    /// The store buffer of each thread; empty under SC.
    pub buffers: Vec<BufferFields>,
}

/// Maximum number of words per state.
const MOST_WORDS: usize = 1 << 16;

const OVERLAP: &str = "parts of a state overlap";

impl Layout {
    /// Checks that every part has a field, and that parts that matter in the same state have disjoint fields; the error says what is wrong.
    pub(super) fn validate(
        &self,
        program: &Program,
        model: MemoryModel,
        live: &[Vec<Vec<u32>>],
    ) -> Result<(), String> {
        let threads = program.threads.len();
        let buffers = if model == MemoryModel::Sc { 0 } else { threads };
        let cells = program.cells();
        let registers = self.registers.iter().zip(&program.threads);
        let complete = self.locations.len() == threads
            && self.memory.len() == cells
            && self.buffers.len() == buffers
            && self.registers.len() == threads
            && registers.into_iter().all(|(fields, thread)| fields.len() == thread.registers.len());
        if !complete || self.words == 0 || self.words > MOST_WORDS {
            return Err("its layout is not one of states of this program".into());
        }
        let in_order = |cells: &[u32]| cells.is_sorted_by(|a, b| a < b);
        if self
            .buffers
            .iter()
            .any(|b| !in_order(&b.cells) || b.cells.last().is_some_and(|&c| c as usize >= cells))
        {
            return Err("the cells of a buffer are not in order, or do not exist".into());
        }
        let mut taken = vec![0; self.words];
        let buffers = self.buffers.iter();
        let buffers = buffers.flat_map(|b| b.entries.iter().flat_map(|&(c, v)| [c, v]).chain([b.count]));
        let always = self.locations.iter().chain(&self.memory).copied().chain([self.lock, self.favourite]);
        for field in always.chain(buffers) {
            take(field, &mut taken)?;
        }
        for (thread, live) in live.iter().enumerate() {
            let fields = &self.registers[thread];
            if fields.iter().any(|field| field.word as usize >= self.words) {
                return Err(OVERLAP.into());
            }
            let bits = self.register_bits(thread);
            if bits.iter().zip(&taken).any(|(own, others)| own & others != 0) {
                return Err(OVERLAP.into());
            }
            taken.iter_mut().zip(&bits).for_each(|(taken, own)| *taken |= own);
            let mut together = vec![0; self.words];
            for live in live {
                live.iter().try_for_each(|&r| take(fields[r as usize], &mut together))?;
                live.iter().for_each(|&r| fields[r as usize].clear(&mut together));
            }
        }
        Ok(())
    }

    /// The bits of all registers of a thread.
    pub(super) fn register_bits(&self, thread: usize) -> Vec<u64> {
        let mut bits = vec![0; self.words];
        self.registers[thread].iter().for_each(|field| bits[field.word as usize] |= field.bits());
        bits
    }
}

/// Reserves the bits of a field; an error if one of them does not exist or is already reserved.
fn take(field: Field, taken: &mut [u64]) -> Result<(), String> {
    match taken.get_mut(field.word as usize) {
        Some(word) if *word & field.bits() == 0 => {
            *word |= field.bits();
            Ok(())
        }
        _ => Err(OVERLAP.into()),
    }
}
