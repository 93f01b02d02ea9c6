//! Thresholds for widening: large constants of the program to which bounds may be raised.
//!
//! A loop that counts to a million needs a bound of a million, but no bounds in between. So a bound that exceeds the clip constant is not dropped but
//! raised to the next mark, which keeps the number of zones finite.

use std::collections::BTreeSet;

use fencewright_analysis::constants::constants;
use fencewright_program::Program;

use super::MOST_CLIP;
use crate::domain::bounds::{MOST, NONE};

/// Maximum number of magnitudes of marks; each magnitude gives a positive and a negative mark. A program with more magnitudes gets no marks at all,
/// because they would lead to too many zones.
const MOST_MARKS: usize = 64;

/// The marks of a program, in ascending order.
#[derive(Debug, Default)]
pub struct Marks(Vec<i32>);

impl Marks {
    /// The constants of a program and the ends of its ranges, with their neighbours, except for those whose magnitude is at most the maximum clip
    /// constant or too large for a zone. A lower bound is a negated upper bound, so each mark comes with both signs.
    pub fn new(program: &Program) -> Self {
        let variables = program.variables.iter().map(|v| v.range);
        let registers = program.threads.iter().flat_map(|t| &t.registers).map(|r| r.range);
        let ends = variables.chain(registers).flatten().flat_map(|range| [range.low, range.high]);
        let near = |c: i64| [c.saturating_sub(1), c, c.saturating_add(1)];
        let sizes = constants(program).into_iter().chain(ends).flat_map(near).map(i64::unsigned_abs);
        let is_large = |c: &u64| (MOST_CLIP as u64 + 1..MOST as u64).contains(c);
        let sizes: BTreeSet<i32> = sizes.filter(is_large).map(|c| c as i32).collect();
        if sizes.len() > MOST_MARKS {
            return Marks::default();
        }
        Marks(sizes.iter().rev().map(|c| -c).chain(sizes.iter().copied()).collect())
    }

    /// Whether there are no marks.
    pub fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// The least mark that is not less than a bound; [`NONE`] if there is no such mark.
    pub fn raised(&self, bound: i32) -> i32 {
        self.0.get(self.0.partition_point(|&mark| mark < bound)).copied().unwrap_or(NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_raised_to_the_next_mark() {
        let marks = Marks(vec![-101, -100, -99, 99, 100, 101]);
        let raised = [-500, -101, -70, 70, 100, 102].map(|bound| marks.raised(bound));
        assert_eq!(raised, [-101, -101, 99, 99, 100, NONE]);
    }
}
