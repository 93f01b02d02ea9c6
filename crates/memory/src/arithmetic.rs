//! Operators on linear forms, as cases ([`crate::linear`]).
//!
//! Quotients, remainders and bits of a form are told by cases: on its residue where the modulus is small, on the range it lies in
//! otherwise. Beyond these ranges the result is an auxiliary variable, and constraints say which number it is. An operator on two forms
//! of which neither is constant is known where one of them is a small number.

use fencewright_program::{BinaryOp, UnaryOp, Width};

use crate::cells::CellId;
use crate::linear::{Case, Constraint, Cube, Linear, Value};

/// Residues of moduli up to this one are told apart.
const MOST_RESIDUES: i64 = 16;

/// The numbers that are told apart where an operator needs to know one of its operands.
const SMALL: std::ops::RangeInclusive<i64> = 0..=4;

/// Auxiliary variables are cells from this number on. No program has as many cells.
pub const AUXILIARY: CellId = 1 << 30;

/// Gives auxiliary variables.
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

/// The cases of a unary operator on a form, but not of the logical one.
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

/// The cases of a binary operator on forms, but not of comparisons and logical ones.
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

/// The same cases with other values.
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

/// `x` where it lies within, and unknown below `low` and above the greatest number.
fn known_inside(x: &Linear, within: Cube, low: i64) -> Vec<Case> {
    // The numbers next to the range may not fit: then the ranges overlap.
    let below = at_most(x, &Linear::constant(low.max(i64::MIN + 2) - 1));
    let above = at_most(&Linear::constant(i64::MAX), x);
    let outside = [below, above].map(|constraint| (constraint.into_iter().collect(), None));
    [(within, Some(x.clone()))].into_iter().chain(outside).collect()
}

/// The lesser or greater of two forms.
fn extreme(op: BinaryOp, a: &Linear, b: &Linear) -> Option<Vec<Case>> {
    let (low, high) = if op == BinaryOp::Min { (a, b) } else { (b, a) };
    let (first, second) = (at_most(low, high)?, at_most(&shifted(high, 1)?, low)?);
    Some(vec![(vec![first], Some(a.clone())), (vec![second], Some(b.clone()))])
}

/// Where a form is a small number, what `then` says about that number; elsewhere these cases.
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

/// An operator for which the order of its operands does not matter, where one of them is a small number.
fn either_small(op: BinaryOp, a: &Linear, b: &Linear, fresh: &mut Fresh) -> Option<Vec<Case>> {
    let elsewhere = small(b, |b, fresh| binary(op, a, b, fresh), unknown(), fresh)?;
    small(a, |a, fresh| binary(op, a, b, fresh), elsewhere, fresh)
}

/// Cases, under more constraints.
pub(crate) fn under(cube: &Cube, cases: Vec<Case>) -> Vec<Case> {
    cases.into_iter().map(|(own, value)| ([cube.as_slice(), &own].concat(), value)).collect()
}

/// `x mod m` from 0 to m - 1, for m > 1.
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

/// `x % m`, which has the sign of x, for m > 0.
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

/// Under some constraints, the number in a range of m numbers that differs from x by a multiple of m.
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

/// Under some constraints, the number q such that `x - m * q` is one of the m numbers from `low` on.
fn auxiliary_quotient(x: &Linear, m: i64, mut cube: Cube, low: i64, fresh: &mut Fresh) -> Option<Case> {
    let q = fresh.variable();
    cube.extend(within(&x.minus(&q.scaled(m)?)?, low, low + m - 1)?);
    Some((cube, Some(q)))
}

/// `x & mask`
fn masked(x: &Linear, mask: i64, fresh: &mut Fresh) -> Option<Vec<Case>> {
    if mask < 0 {
        // What is left of x without its bits in the complement.
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

/// The auxiliary variables of a case.
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
