//! The cases of random expressions against evaluation: some case has the value of the expression, and, for exact expressions, no case has another
//! value.

use std::collections::BTreeMap;

use fencewright_memory::arithmetic::{AUXILIARY, auxiliaries};
use fencewright_memory::linear::{Case, cases, truths};
use fencewright_memory::{CellId, Constraint, Linear};
use fencewright_program::{BinaryOp, Expr, UnaryOp, Width};
use fencewright_testing::Random;

type Valuation = BTreeMap<CellId, i64>;

fn value(form: &Linear, of: &Valuation) -> Option<i128> {
    let term = |sum, (cell, c): &(CellId, i64)| Some(sum + i128::from(*c) * i128::from(*of.get(cell)?));
    form.terms.iter().try_fold(form.constant.into(), term)
}

fn holds(constraint: &Constraint, of: &Valuation) -> Option<bool> {
    let value = value(constraint.form(), of)?;
    Some(match constraint {
        Constraint::AtMost(_) => value <= 0,
        Constraint::Multiple(_, m) => value % i128::from(*m) == 0,
    })
}

/// The values of a case for all values of its auxiliary variables that satisfy its constraints; `None` stands for an unknown value.
fn said(case: &Case, of: &mut Valuation, open: &[CellId], out: &mut Vec<Option<i128>>) {
    if case.0.iter().any(|c| holds(c, of) == Some(false)) {
        return;
    }
    let Some((first, rest)) = open.split_first() else {
        out.push(case.1.as_ref().map(|form| value(form, of).expect("all variables have values")));
        return;
    };
    for candidate in -3_000..=3_000 {
        of.insert(*first, candidate);
        said(case, of, rest, out);
    }
    of.remove(first);
}

/// A random expression over two cells. If `exact`, the only operators on two non-constant operands are those whose cases are exact: sums,
/// differences, minima, maxima and comparisons.
fn expression(random: &mut Random, exact: bool, depth: usize) -> Expr<CellId> {
    use BinaryOp::*;
    if depth == 0 {
        return match random.below(4) {
            0 => Expr::Const(random.between(-3, 6)),
            n => Expr::Leaf(n as CellId % 2),
        };
    }
    let left = expression(random, exact, depth - 1);
    match random.below(8) {
        0 => {
            let width = *random.pick(&[Width::Bits8, Width::Bits8, Width::Bits64]);
            let ops = [UnaryOp::Neg, UnaryOp::BitNot, UnaryOp::Unsigned(width), UnaryOp::Signed(width)];
            Expr::unary(*random.pick(&ops), left)
        }
        1 => {
            let op = *random.pick(&[Add, Sub, Min, Max, Lt, Eq]);
            Expr::binary(op, left, expression(random, exact, depth - 1))
        }
        2 => {
            let condition = Expr::binary(Gt, left, Expr::Const(random.between(-1, 3)));
            let then = expression(random, exact, depth - 1);
            Expr::choice(condition, then, expression(random, exact, depth - 1))
        }
        3 if !exact => {
            let op = *random.pick(&[Mul, Div, Rem, Shl, Shr, BitAnd, BitOr, BitXor]);
            Expr::binary(op, left, expression(random, exact, depth - 1))
        }
        4 => Expr::binary(*random.pick(&[Shl, Shr]), left, Expr::Const(random.between(0, 5))),
        5 => Expr::binary(*random.pick(&[BitAnd, BitOr, BitXor]), left, Expr::Const(random.between(-9, 15))),
        _ => {
            let divisor = *random.pick(&[1, 2, 2, 3, 4, 7, 16, 17, 100, -1, -2, -5, -40]);
            Expr::binary(*random.pick(&[Div, Rem, Rem]), left, Expr::Const(divisor))
        }
    }
}

#[test]
fn cases_agree_with_evaluation() {
    let (mut known, mut unknown, mut with_auxiliaries) = (0, 0, 0);
    for seed in 0..400 {
        let mut random = Random::new(seed);
        let exact = random.one_in(2);
        let depth = 1 + random.below(2);
        let e = expression(&mut random, exact, depth);
        let all = cases(&e);
        for _ in 0..12 {
            let cells = [random.between(-40, 40), random.between(-5, 40)];
            let Ok(expected) = e.eval(&mut |cell| cells[*cell as usize]).map(i128::from) else { continue };
            let mut found = Vec::new();
            for case in &all {
                let open = auxiliaries(case);
                assert!(open.iter().all(|cell| *cell >= AUXILIARY));
                // Pairs of values of two auxiliary variables are too many to enumerate: a case with more than one auxiliary variable counts as
                // unknown.
                if open.len() > 1 {
                    found.push(None);
                    continue;
                }
                with_auxiliaries += open.len();
                let mut of: Valuation = (0..).zip(cells).collect();
                said(case, &mut of, &open, &mut found);
            }
            let about = || format!("seed {seed}: {e:?} of {cells:?} is {expected}, not {found:?}\n{all:?}");
            assert!(found.contains(&None) || found.contains(&Some(expected)), "{}", about());
            // An expression that is not exact may contain a comparison with an unknown value, which has a case for each result.
            assert!(!exact || found.iter().flatten().all(|value| *value == expected), "{}", about());
            match found.contains(&None) {
                true => unknown += 1,
                false => known += 1,
            }
            // Some cube of `truths` covers the state exactly where the expression has that truth value.
            for wanted in [true, false] {
                let holds = truths(&e, wanted).into_iter().any(|cube| {
                    let case = (cube, Some(Linear::constant(0)));
                    let open = auxiliaries(&case);
                    let mut found = Vec::new();
                    let mut of: Valuation = (0..).zip(cells).collect();
                    if open.len() <= 1 {
                        said(&case, &mut of, &open, &mut found);
                    }
                    open.len() > 1 || !found.is_empty()
                });
                assert!(holds || (expected != 0) != wanted, "seed {seed}: {e:?} of {cells:?}, {wanted}");
            }
        }
    }
    assert!(
        known > 3_000 && unknown > 100 && with_auxiliaries > 1_000,
        "{known} {unknown} {with_auxiliaries}"
    );
}

/// Operators with a constant operand have no unknown values.
#[test]
fn operators_with_constants_are_exact() {
    use BinaryOp::*;
    let x = || Expr::Leaf(0);
    let mut all: Vec<Expr<CellId>> = Vec::new();
    for c in [2, 3, 16, 17, 1_000, -7] {
        all.extend([Div, Rem].map(|op| Expr::binary(op, x(), Expr::Const(c))));
    }
    for c in [1, 3, 5, 10, 255, 0xffff, -1, -4, -8] {
        all.extend([BitAnd, BitOr, BitXor].map(|op| Expr::binary(op, x(), Expr::Const(c))));
    }
    all.extend([0, 3, 40].map(|by| Expr::binary(Shr, x(), Expr::Const(by))));
    for width in [Width::Bits8, Width::Bits16, Width::Bits32] {
        all.extend([UnaryOp::Unsigned(width), UnaryOp::Signed(width)].map(|op| Expr::unary(op, x())));
    }
    for e in all {
        assert!(cases(&e).iter().all(|(_, value)| value.is_some()), "{e:?}");
    }
}

/// A long disjunction of two-element conjunctions. Its disjuncts alone stay below the limit on cubes; disjoint cubes, which add the negations of all
/// earlier disjuncts, would exceed it.
#[test]
fn long_disjunctions_are_exact() {
    let is = |cell: CellId, op: BinaryOp, value: i64| Expr::binary(op, Expr::Leaf(cell), Expr::Const(value));
    let pair = |n: i64| {
        Expr::binary(
            BinaryOp::And,
            is(0, BinaryOp::Eq, n),
            Expr::binary(BinaryOp::Gt, Expr::Leaf(1), Expr::Leaf(0)),
        )
    };
    let any = (1..9).map(pair).reduce(|a, b| Expr::binary(BinaryOp::Or, a, b)).expect("there are some");
    let cubes = truths(&any, true);
    for (x, y) in (-2..12).flat_map(|x| (-2..12).map(move |y| (x, y))) {
        let of = Valuation::from([(0, x), (1, y)]);
        let covered = cubes.iter().any(|cube| cube.iter().all(|c| holds(c, &of) == Some(true)));
        assert_eq!(covered, (1..9).contains(&x) && y > x, "{x} {y}");
    }
}
