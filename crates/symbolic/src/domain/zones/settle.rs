//! The reduced product of bounds and residues.

use super::super::bounds::{NONE, add, bound};
use super::super::residues::{Residue, ResidueStep};

/// The value of an index, if its bounds determine it.
pub(super) fn exact(m: &[i32], size: usize, i: usize) -> Option<i64> {
    let (high, low) = (m[i * size], m[i]);
    (high != NONE && low != NONE && high == -low).then_some(i64::from(high))
}

/// Reduced product: refines residues by bounds, and tightens bounds by residues. Returns false if they contradict each other. `rows` has the row of
/// each cell of the step.
pub(super) fn settle(
    m: &mut [i32],
    size: usize,
    step: &ResidueStep,
    rows: &[usize],
    known: &mut [Residue],
) -> bool {
    for (cell, &i) in rows.iter().enumerate() {
        if let Some(value) = exact(m, size, i) {
            let Some(met) = known[cell].meet(step.of(value)) else { return false };
            known[cell] = met;
        }
    }
    for (cell, &i) in rows.iter().enumerate() {
        for (other, &j) in rows.iter().enumerate().filter(|(other, _)| *other != cell) {
            let (above, below) = (m[i * size + j], m[j * size + i]);
            if above != NONE && above == -below {
                let Some(met) = known[cell].meet(known[other].shifted(i64::from(above))) else {
                    return false;
                };
                known[cell] = met;
            }
        }
    }
    // The constant 0 has a row too, and its residue is known.
    let zero = (0, step.of(0));
    let all: Vec<(usize, Residue)> = rows.iter().copied().zip(known.iter().copied()).chain([zero]).collect();
    for &(i, x) in &all {
        for &(j, y) in all.iter().filter(|(j, _)| *j != i) {
            let (bounded, difference) = (m[i * size + j], x.minus(y));
            if bounded == NONE || difference.modulus() == 1 {
                continue;
            }
            let excess = (i64::from(bounded) - difference.rest()).rem_euclid(difference.modulus());
            if excess > 0 && !bound(m, size, i, j, add(bounded, -(excess as i32))) {
                return false;
            }
        }
    }
    true
}
