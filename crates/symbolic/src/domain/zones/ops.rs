//! Operations on a matrix whose rows are cells.

use fencewright_memory::CellId;
use fencewright_memory::arithmetic::AUXILIARY;
use fencewright_memory::linear::{Linear, Value};

use super::super::bounds::{MOST, NONE, add, bound, forget, sum};

/// An operation on the working matrix.
#[derive(Clone, Debug)]
pub(super) enum ZoneOp {
    /// Index i minus index j is at most the constant.
    Bound(usize, usize, i32),
    /// Index i := index j plus the constant (j may be 0, or i itself).
    Shift(usize, usize, i32),
    /// Index i := an arbitrary value.
    Forget(usize),
    /// Index i := a linear form, approximated by the bounds of its cells.
    Approximate(usize, Vec<(usize, i64)>, i64),
    /// Assumes that a linear form is at most 0: the branch is infeasible if the bounds of the cells make the form positive. No bound changes.
    AtMost(Vec<(usize, i64)>, i64),
    /// Assumes that a linear form with auxiliary variables, about which nothing else is known, is at most 0: bounds each of its cells by the bounds
    /// of the other cells.
    Bounds(Vec<(usize, i64)>, i64),
    /// The summary cell of index i additionally stands for the value of index j. Then all bounds of index j are removed.
    Fold(usize, usize),
    /// Index i := one of the values of the summary cell of index j.
    Expand(usize, usize),
}

/// `linear <= 0` as an operation: a bound if it is a difference.
pub(super) fn constraint(linear: &Linear, index: &impl Fn(CellId) -> usize) -> ZoneOp {
    let Some((x, y)) = linear.difference().filter(|_| !linear.terms.is_empty()) else {
        let auxiliary = linear.terms.iter().any(|(cell, _)| *cell >= AUXILIARY);
        let op = if auxiliary { ZoneOp::Bounds } else { ZoneOp::AtMost };
        return op(indexed(linear, index), linear.constant);
    };
    let (i, j) = (x.map_or(0, index), y.map_or(0, index));
    match linear.constant.checked_neg() {
        Some(c) if c <= MOST => ZoneOp::Bound(i, j, c.max(-MOST) as i32),
        _ => ZoneOp::AtMost(Vec::new(), 0),
    }
}

pub(super) fn assignment(target: usize, value: &Value, index: &impl Fn(CellId) -> usize) -> ZoneOp {
    let Some(linear) = value else { return ZoneOp::Forget(target) };
    let small = linear.constant.unsigned_abs() <= MOST as u64;
    match linear.terms.as_slice() {
        [] if small => ZoneOp::Shift(target, 0, linear.constant as i32),
        [(x, 1)] if small => ZoneOp::Shift(target, index(*x), linear.constant as i32),
        _ => ZoneOp::Approximate(target, indexed(linear, index), linear.constant),
    }
}

fn indexed(linear: &Linear, index: &impl Fn(CellId) -> usize) -> Vec<(usize, i64)> {
    linear.terms.iter().map(|&(cell, c)| (index(cell), c)).collect()
}

impl ZoneOp {
    /// Applies the operation to a closed matrix, which stays closed. Returns false if the constraints are contradictory.
    pub(super) fn apply(&self, m: &mut [i32], size: usize) -> bool {
        match self {
            ZoneOp::Bound(i, j, c) => return bound(m, size, *i, *j, *c),
            ZoneOp::Forget(i) => forget(m, size, *i),
            ZoneOp::Shift(i, j, c) if i == j => {
                for k in (0..size).filter(|k| k != i) {
                    m[i * size + k] = sum(m[i * size + k], *c);
                    m[k * size + i] = sum(m[k * size + i], -*c);
                }
            }
            ZoneOp::Shift(i, j, c) => {
                for k in (0..size).filter(|k| k != i) {
                    m[i * size + k] = sum(m[j * size + k], *c);
                    m[k * size + i] = sum(m[k * size + j], -*c);
                }
                m[i * size + j] = *c;
                m[j * size + i] = -*c;
            }
            ZoneOp::Approximate(i, terms, constant) => {
                let high = upper(m, size, terms, *constant, 1);
                let low = upper(m, size, terms, *constant, -1);
                forget(m, size, *i);
                let fits = |b: Option<i64>| b.filter(|b| *b <= MOST).map(|b| b.max(-MOST) as i32);
                let high = fits(high).is_none_or(|high| bound(m, size, *i, 0, high));
                return high && fits(low).is_none_or(|low| bound(m, size, 0, *i, low));
            }
            ZoneOp::AtMost(terms, constant) => {
                // The minimum of the form is minus the maximum of its negation.
                return upper(m, size, terms, *constant, -1).is_none_or(|negated| negated >= 0);
            }
            ZoneOp::Bounds(terms, constant) => {
                // For a cell x with coefficient c, c * x <= -(minimum of the rest). So x <= -minimum / c rounded down if c > 0, and x >= minimum / -c
                // rounded up if c < 0.
                return terms.iter().all(|&(i, c)| {
                    let rest: Vec<(usize, i64)> = terms.iter().copied().filter(|(j, _)| *j != i).collect();
                    let Some(most) = upper(m, size, &rest, *constant, -1) else { return true };
                    let (x, y) = if c > 0 { (i, 0) } else { (0, i) };
                    let limit = most.div_euclid(c.saturating_abs());
                    limit > MOST || bound(m, size, x, y, limit.max(-MOST) as i32)
                });
            }
            ZoneOp::Fold(i, j) => {
                for k in (0..size).filter(|k| k != i && k != j) {
                    m[i * size + k] = m[i * size + k].max(m[j * size + k]);
                    m[k * size + i] = m[k * size + i].max(m[k * size + j]);
                }
                forget(m, size, *j);
            }
            ZoneOp::Expand(i, j) => {
                // Two values of the summary lie between the same bounds relative to any cell k, so they differ by at most the sum of these two
                // bounds. The old value of i may serve as k too.
                let between = |k: usize| match (m[j * size + k], m[k * size + j]) {
                    (NONE, _) | (_, NONE) => NONE,
                    (above, below) => add(above, below),
                };
                let spread = (0..size).filter(|k| k != j).map(between).min().unwrap_or(NONE);
                for k in (0..size).filter(|k| k != i && k != j) {
                    m[i * size + k] = m[j * size + k];
                    m[k * size + i] = m[k * size + j];
                }
                m[i * size + j] = spread;
                m[j * size + i] = spread;
            }
        }
        true
    }
}

/// The maximum of `sign * (terms + constant)` given the bounds of single cells, if it is bounded.
fn upper(m: &[i32], size: usize, terms: &[(usize, i64)], constant: i64, sign: i64) -> Option<i64> {
    let mut total = constant.checked_mul(sign)?;
    for &(i, coefficient) in terms {
        let c = coefficient.checked_mul(sign)?;
        let most = if c > 0 { m[i * size] } else { m[i] };
        if most == NONE {
            return None;
        }
        total = total.checked_add(c.checked_abs()?.checked_mul(i64::from(most))?)?;
    }
    Some(total)
}
