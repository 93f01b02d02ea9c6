//! Applies operators to linear forms; the result is a list of cases ([`crate::linear`]).
//!
//! Quotients by a constant are split by the range of the dividend: near 0 the quotient is a constant, further away it is an auxiliary variable with
//! constraints that define it. Remainders are split by residue if the modulus is small, otherwise by range in the same way. A mask (`&`) is reduced
//! to a remainder where that is possible; any other mask gives an unknown value. Of two non-constant forms, sums, differences, minima and maxima are
//! exact; any other operator has a known result only for small values of an operand.

use fencewright_program::{BinaryOp, UnaryOp, Width};

use crate::cells::CellId;
use crate::linear::{Case, Constraint, Cube, Linear, Value};

/// Maximum modulus for which there is one case per residue.
const MOST_RESIDUES: i64 = 16;

/// The values of a non-constant operand that get a case of their own.
const SMALL: std::ops::RangeInclusive<i64> = 0..=4;

/// The number of the first auxiliary variable. Lower numbers are cells; no program has as many.
pub const AUXILIARY: CellId = 1 << 30;

/// Supplies auxiliary variables that are not in use yet.
pub struct Fresh(CellId);

impl Default for Fresh {
    fn default() -> Self {
        Fresh(AUXILIARY)
    }
}

impl Fresh {
    fn variable(&mut self) -> Linear {
        self.0 += 1;
        Linear::cell(self.0 - 1)
    }
}

/// The cases of a unary operator on a form. [`crate::linear`] handles `Not` itself; here the `Not` of a non-constant form has an unknown value.
pub fn unary(op: UnaryOp, x: &Linear, fresh: &mut Fresh) -> Vec<Case> {
    let cases = match op {
        _ if x.terms.is_empty() => op.apply(x.constant).ok().map(|value| certain(Linear::constant(value))),
        UnaryOp::Not => None,
        UnaryOp::Neg => x.scaled(-1).map(certain),
        UnaryOp::BitNot => x.scaled(-1).and_then(|x| shifted(&x, -1)).map(certain),
        UnaryOp::Unsigned(Width::Bits64) => within(x, 0, i64::MAX).map(|cube| known_inside(x, cube, 0)),
        UnaryOp::Signed(Width::Bits64) => {
            within(x, i64::MIN, i64::MAX).map(|cube| known_inside(x, cube, i64::MIN))
        }
        UnaryOp::Unsigned(width) => floor_remainder(x, 1 << width.bits(), fresh),
        UnaryOp::Signed(width) => {
            let half = 1 << (width.bits() - 1);
            let cases = shifted(x, half).and_then(|x| floor_remainder(&x, 2 * half, fresh));
            cases.and_then(|cases| mapped(cases, |value| shifted(&value, -half)))
        }
    };
    cases.unwrap_or_else(unknown)
}

/// The cases of a binary operator on forms. [`crate::linear`] handles comparisons, `And` and `Or` itself; here they have unknown values for
/// non-constant forms.
pub fn binary(op: BinaryOp, a: &Linear, b: &Linear, fresh: &mut Fresh) -> Vec<Case> {
    use BinaryOp::*;
    let cases = match (op, constant(a), constant(b)) {
        (_, Some(a), Some(b)) => op.apply(a, b).ok().map(|value| certain(Linear::constant(value))),
        (Add, ..) => a.plus(b).map(certain),
        (Sub, ..) => a.minus(b).map(certain),
        (Min | Max, ..) => extreme(op, a, b),
        (Mul, _, Some(factor)) => a.scaled(factor).map(certain),
        (Mul, Some(factor), _) => b.scaled(factor).map(certain),
        (Div, _, Some(divisor)) => quotient(a, divisor, fresh),
        (Rem, _, Some(divisor)) => divisor.checked_abs().and_then(|m| remainder(a, m, fresh)),
        (Shl, _, Some(by @ 0..=62)) => a.scaled(1 << by).map(certain),
        (Shr, _, Some(by @ 0..=62)) => floor_quotient(a, 1 << by, fresh),
        (BitAnd, _, Some(mask)) => masked(a, mask, fresh),
        (BitAnd, Some(mask), _) => masked(b, mask, fresh),
        // a | b = a + b - (a & b) and a ^ b = a + b - 2 * (a & b)
        (BitOr | BitXor, ..) => {
            let common = if op == BitOr { -1 } else { -2 };
            let sum = a.plus(b);
            sum.and_then(|sum| mapped(binary(BitAnd, a, b, fresh), |both| both.scaled(common)?.plus(&sum)))
        }
        (Mul | BitAnd, ..) => either_small(op, a, b, fresh),
        (Div | Rem | Shl | Shr, _, None) => small(b, |b, fresh| binary(op, a, b, fresh), unknown(), fresh),
        _ => None,
    };
    cases.unwrap_or_else(unknown)
}

fn constant(form: &Linear) -> Option<i64> {
    form.terms.is_empty().then_some(form.constant)
}

fn certain(value: Linear) -> Vec<Case> {
    vec![(Vec::new(), Some(value))]
}

fn unknown() -> Vec<Case> {
    vec![(Vec::new(), None)]
}

fn shifted(form: &Linear, by: i64) -> Option<Linear> {
    form.plus(&Linear::constant(by))
}

/// The same cases with their values mapped; `None` if one of the new values does not fit.
fn mapped(cases: Vec<Case>, value: impl Fn(Linear) -> Option<Linear>) -> Option<Vec<Case>> {
    let case = |(cube, old): Case| match old {
        Some(old) => Some((cube, Some(value(old)?))),
        None => Some((cube, None)),
    };
    cases.into_iter().map(case).collect()
}

/// `a <= b`
fn at_most(a: &Linear, b: &Linear) -> Option<Constraint> {
    a.minus(b).map(Constraint::AtMost)
}

/// `low <= x`
fn at_least(x: &Linear, low: i64) -> Option<Cube> {
    Some(vec![at_most(&Linear::constant(low), x)?])
}

/// `low <= x <= high`
fn within(x: &Linear, low: i64, high: i64) -> Option<Cube> {
    Some(vec![at_most(&Linear::constant(low), x)?, at_most(x, &Linear::constant(high))?])
}

/// The value `x` where the cube `within` holds; unknown below `low` and above the greatest 64-bit number.
fn known_inside(x: &Linear, within: Cube, low: i64) -> Vec<Case> {
    // If the numbers next to the range do not fit 64 bits, the cases overlap with the range, which is sound.
    let below = at_most(x, &Linear::constant(low.max(i64::MIN + 2) - 1));
    let above = at_most(&Linear::constant(i64::MAX), x);
    let outside = [below, above].map(|constraint| (constraint.into_iter().collect(), None));
    [(within, Some(x.clone()))].into_iter().chain(outside).collect()
}

/// The minimum or maximum of two forms.
fn extreme(op: BinaryOp, a: &Linear, b: &Linear) -> Option<Vec<Case>> {
    let (low, high) = if op == BinaryOp::Min { (a, b) } else { (b, a) };
    let (first, second) = (at_most(low, high)?, at_most(&shifted(high, 1)?, low)?);
    Some(vec![(vec![first], Some(a.clone())), (vec![second], Some(b.clone()))])
}

/// The cases of `then` for each value of the form in [`SMALL`], and the cases `elsewhere` for all other values; `None` if a number does not fit 64
/// bits.
fn small(
    form: &Linear,
    mut then: impl FnMut(&Linear, &mut Fresh) -> Vec<Case>,
    elsewhere: Vec<Case>,
    fresh: &mut Fresh,
) -> Option<Vec<Case>> {
    let mut all = Vec::new();
    for value in SMALL {
        all.extend(under(&within(form, value, value)?, then(&Linear::constant(value), fresh)));
    }
    let below = vec![at_most(form, &Linear::constant(SMALL.start() - 1))?];
    let above = at_least(form, SMALL.end() + 1)?;
    all.extend(under(&below, elsewhere.clone()));
    all.extend(under(&above, elsewhere));
    Some(all)
}

/// The cases of a commutative operator: those of [`binary`] where one of its operands is a small number; elsewhere the value is unknown. `None` if a
/// number does not fit 64 bits.
fn either_small(op: BinaryOp, a: &Linear, b: &Linear, fresh: &mut Fresh) -> Option<Vec<Case>> {
    let elsewhere = small(b, |b, fresh| binary(op, a, b, fresh), unknown(), fresh)?;
    small(a, |a, fresh| binary(op, a, b, fresh), elsewhere, fresh)
}

/// The cases with the constraints of `cube` added.
pub(crate) fn under(cube: &Cube, cases: Vec<Case>) -> Vec<Case> {
    cases.into_iter().map(|(own, value)| ([cube.as_slice(), &own].concat(), value)).collect()
}

/// `x mod m` in the range 0 to m - 1, for m > 1.
fn floor_remainder(x: &Linear, m: i64, fresh: &mut Fresh) -> Option<Vec<Case>> {
    if m <= MOST_RESIDUES {
        let residue = |r| Some((vec![congruent(x, r, m)?], Some(Linear::constant(r))));
        return (0..m).map(residue).collect();
    }
    let far = |cube: Cube, fresh: &mut Fresh| auxiliary_remainder(x, m, cube, [0, m - 1], fresh);
    Some(vec![
        (within(x, 0, m - 1)?, Some(x.clone())),
        (within(x, m, 2 * m - 1)?, Some(shifted(x, -m)?)),
        (within(x, -m, -1)?, Some(shifted(x, m)?)),
        far(at_least(x, 2 * m)?, fresh)?,
        far(vec![at_most(x, &Linear::constant(-m - 1))?], fresh)?,
    ])
}

/// `x % m` with the sign of x, for m > 0.
fn remainder(x: &Linear, m: i64, fresh: &mut Fresh) -> Option<Vec<Case>> {
    if m <= MOST_RESIDUES {
        let mut all =
            vec![(if m > 1 { vec![congruent(x, 0, m)?] } else { Vec::new() }, Some(Linear::constant(0)))];
        for r in 1..m {
            let (above, below) = (at_least(x, 1)?, vec![at_most(x, &Linear::constant(-1))?]);
            all.push(([above, vec![congruent(x, r, m)?]].concat(), Some(Linear::constant(r))));
            all.push(([below, vec![congruent(x, -r, m)?]].concat(), Some(Linear::constant(-r))));
        }
        return Some(all);
    }
    let twice = m.checked_mul(2)?;
    Some(vec![
        (within(x, 1 - m, m - 1)?, Some(x.clone())),
        (within(x, m, twice - 1)?, Some(shifted(x, -m)?)),
        auxiliary_remainder(x, m, at_least(x, twice)?, [0, m - 1], fresh)?,
        auxiliary_remainder(x, m, vec![at_most(x, &Linear::constant(-m))?], [1 - m, 0], fresh)?,
    ])
}

/// Under the constraints of `cube`: the number in `range`, which contains m numbers, that is congruent to x modulo m.
fn auxiliary_remainder(
    x: &Linear,
    m: i64,
    mut cube: Cube,
    range: [i64; 2],
    fresh: &mut Fresh,
) -> Option<Case> {
    let r = fresh.variable();
    cube.extend(within(&r, range[0], range[1])?);
    cube.push(Constraint::Multiple(x.minus(&r)?, m));
    Some((cube, Some(r)))
}

/// `x = r mod m`
fn congruent(x: &Linear, r: i64, m: i64) -> Option<Constraint> {
    Some(Constraint::Multiple(shifted(x, -r)?, m))
}

/// `x / d`, rounded towards 0, for d != 0.
fn quotient(x: &Linear, d: i64, fresh: &mut Fresh) -> Option<Vec<Case>> {
    let m = d.checked_abs().filter(|m| *m > 0)?;
    let cases = vec![
        (within(x, 1 - m, m - 1)?, Some(Linear::constant(0))),
        (within(x, m, m.checked_mul(2)? - 1)?, Some(Linear::constant(1))),
        auxiliary_quotient(x, m, at_least(x, 2 * m)?, 0, fresh)?,
        auxiliary_quotient(x, m, vec![at_most(x, &Linear::constant(-m))?], 1 - m, fresh)?,
    ];
    mapped(if m == 1 { certain(x.clone()) } else { cases }, |q| q.scaled(d.signum()))
}

/// `x / m` rounded down, for m > 0.
fn floor_quotient(x: &Linear, m: i64, fresh: &mut Fresh) -> Option<Vec<Case>> {
    if m == 1 {
        return Some(certain(x.clone()));
    }
    let twice = m.checked_mul(2)?;
    Some(vec![
        (within(x, 0, m - 1)?, Some(Linear::constant(0))),
        (within(x, m, twice - 1)?, Some(Linear::constant(1))),
        (within(x, -m, -1)?, Some(Linear::constant(-1))),
        auxiliary_quotient(x, m, at_least(x, twice)?, 0, fresh)?,
        auxiliary_quotient(x, m, vec![at_most(x, &Linear::constant(-m - 1))?], 0, fresh)?,
    ])
}

/// Under the constraints of `cube`: a fresh variable q with `low <= x - m * q < low + m`, which determines q.
fn auxiliary_quotient(x: &Linear, m: i64, mut cube: Cube, low: i64, fresh: &mut Fresh) -> Option<Case> {
    let q = fresh.variable();
    cube.extend(within(&x.minus(&q.scaled(m)?)?, low, low + m - 1)?);
    Some((cube, Some(q)))
}

/// `x & mask`
fn masked(x: &Linear, mask: i64, fresh: &mut Fresh) -> Option<Vec<Case>> {
    if mask < 0 {
        // With a negative mask: x minus the bits of x that are in the complement of the mask.
        return mapped(masked(x, !mask, fresh)?, |bits| x.minus(&bits));
    }
    let bits = 64 - mask.leading_zeros();
    let modulus: i64 = 1i64.checked_shl(bits).filter(|m| *m > 0 && bits < 62)?;
    if mask == modulus - 1 && mask > 0 {
        return floor_remainder(x, modulus, fresh);
    }
    let select = |value: Linear| Some(Linear::constant(constant(&value)? & mask));
    match modulus {
        1 => Some(certain(Linear::constant(0))),
        2..=MOST_RESIDUES => mapped(floor_remainder(x, modulus, fresh)?, select),
        _ => None,
    }
}

/// The auxiliary variables that a case mentions.
pub fn auxiliaries(case: &(Cube, Value)) -> Vec<CellId> {
    let mut found: Vec<CellId> = Vec::new();
    let forms = case.0.iter().map(Constraint::form).chain(&case.1);
    for (cell, _) in forms.flat_map(|form| &form.terms).filter(|(cell, _)| *cell >= AUXILIARY) {
        if !found.contains(cell) {
            found.push(*cell);
        }
    }
    found
}
