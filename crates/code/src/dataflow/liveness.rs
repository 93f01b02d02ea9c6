//! Liveness of registers and of the elements of arrays of registers, and the removal of dead stores.

use super::backward::Backward;
use crate::statement::{Expression, Register, Source, Special, Stage, StmtKind};

/// A backward analysis whose facts are the cells (registers, and elements of arrays of registers) that may be read before they are written. The join
/// is union.
///
/// The cells that a dead store reads do not become live if that store will be removed, so one pass removes whole chains of dead stores.
pub(crate) struct Liveness<F> {
    arrays: Vec<Cells>,
    /// Which stores may be removed if the cell that they write is dead.
    removable: F,
}

/// The range of cell numbers of an array.
struct Cells {
    start: u32,
    /// The index of the first element of the array.
    first: i64,
    length: u32,
}

impl<F> Liveness<F> {
    /// Liveness of this number of registers, and of arrays given by first index and length.
    pub fn new(registers: usize, arrays: impl IntoIterator<Item = (i64, usize)>, removable: F) -> Self {
        let mut start = registers as u32;
        let cells = |(first, length): (i64, usize)| {
            let cells = Cells { start, first, length: length as u32 };
            start += cells.length;
            cells
        };
        Liveness { arrays: arrays.into_iter().map(cells).collect(), removable }
    }

    /// The cell of an element; `None` if the index is out of bounds.
    fn element(&self, array: usize, index: i64) -> Option<u32> {
        let Cells { start, first, length } = self.arrays[array];
        let offset = u32::try_from(index.checked_sub(first)?).ok()?;
        (offset < length).then(|| start + offset)
    }

    /// The cell that a statement certainly overwrites; `None` if there is none, or if it is not known which.
    fn written<S: Stage>(&self, kind: &StmtKind<S>) -> Option<u32> {
        if let StmtKind::Special(special) = kind
            && let Some((array, index)) = special.writes_element()
        {
            return self.element(array, index.number()?);
        }
        kind.writes().map(|Register(register)| register)
    }
}

impl<S: Stage, F: Fn(&StmtKind<S>) -> bool> Backward<S> for Liveness<F> {
    type Facts = Live;

    fn join(&self, facts: &mut Live, other: &Live) {
        facts.union(other);
    }

    fn transfer(&self, kind: &StmtKind<S>, live: &mut Live) {
        if let Some(cell) = self.written(kind) {
            live.remove(cell);
        }
        kind.reads(&mut |source| match source {
            Source::Register(Register(register)) => live.insert(register),
            Source::Element(array, index) => match index.number() {
                Some(index) => self.element(array, index).into_iter().for_each(|cell| live.insert(cell)),
                None => {
                    let Cells { start, length, .. } = self.arrays[array];
                    (start..start + length).for_each(|cell| live.insert(cell));
                }
            },
        });
    }

    fn is_superfluous(&self, kind: &StmtKind<S>, live: &Live) -> bool {
        (self.removable)(kind) && self.written(kind).is_some_and(|cell| !live.contains(cell))
    }
}

/// A set of cells, as a sparse bit set, because a long function has many registers, but only few of them are live at the same time.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Live(Vec<(u32, u64)>);

impl Live {
    fn word(cell: u32) -> (u32, u64) {
        (cell / 64, 1 << (cell % 64))
    }

    fn find(&self, number: u32) -> Result<usize, usize> {
        self.0.binary_search_by_key(&number, |(number, _)| *number)
    }

    fn insert(&mut self, cell: u32) {
        let (number, bit) = Live::word(cell);
        self.add(number, bit);
    }

    fn add(&mut self, number: u32, bits: u64) {
        match self.find(number) {
            Ok(n) => self.0[n].1 |= bits,
            Err(n) => self.0.insert(n, (number, bits)),
        }
    }

    fn remove(&mut self, cell: u32) {
        let (number, bit) = Live::word(cell);
        if let Ok(n) = self.find(number) {
            self.0[n].1 &= !bit;
            if self.0[n].1 == 0 {
                self.0.remove(n);
            }
        }
    }

    fn contains(&self, cell: u32) -> bool {
        let (number, bit) = Live::word(cell);
        self.find(number).is_ok_and(|n| self.0[n].1 & bit != 0)
    }

    fn union(&mut self, other: &Live) {
        other.0.iter().for_each(|&(number, bits)| self.add(number, bits));
    }

    /// The cells in ascending order.
    pub fn cells(&self) -> impl Iterator<Item = u32> {
        let bits = |&(number, bits): &(u32, u64)| {
            (0..64).filter(move |bit| bits >> bit & 1 != 0).map(move |bit| number * 64 + bit)
        };
        self.0.iter().flat_map(bits)
    }
}
