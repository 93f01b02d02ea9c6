//! Compares the evaluation of operators that wrap around with the same computation in 128 bits.

use fencewright_program::{BinaryOp, EvalError, Expr, UnaryOp, Width};
use fencewright_testing::Random;

/// Values at and around the limits of every width.
fn value(random: &mut Random) -> i64 {
    let power = 1i64 << *random.pick(&[0, 1, 7, 8, 15, 16, 31, 32, 62]);
    let signed = if random.one_in(2) { power } else { -power };
    match random.below(8) {
        0 => *random.pick(&[i64::MIN, i64::MAX]),
        _ => signed + random.between(-2, 2),
    }
}

/// A random expression of sums, differences, products and bit operations, with its value. It has at most one product, so that 128 bits are
/// sufficient.
fn sum(random: &mut Random, depth: usize) -> (Expr<()>, i128) {
    if depth == 0 {
        let value = value(random);
        return (Expr::Const(value), value.into());
    }
    let (left, a) = sum(random, depth - 1);
    let (right, b) = sum(random, depth - 1);
    let (op, value) = match random.below(if depth == 1 { 6 } else { 5 }) {
        0 => (BinaryOp::Add, a + b),
        1 => (BinaryOp::Sub, a - b),
        2 => (BinaryOp::BitAnd, a & b),
        3 => (BinaryOp::BitOr, a | b),
        4 => (BinaryOp::BitXor, a ^ b),
        _ => (BinaryOp::Mul, a * b),
    };
    let e = Expr::binary(op, left, right);
    match random.below(6) {
        0 => (Expr::unary(UnaryOp::Neg, e), -value),
        1 => (Expr::unary(UnaryOp::BitNot, e), -1 - value),
        2 if value.abs() < 1 << 100 => (Expr::binary(BinaryOp::Shl, e, Expr::Const(5)), value << 5),
        3 => (Expr::choice(Expr::Const(1), e, Expr::Const(0)), value),
        _ => (e, value),
    }
}

/// The representative of `value` modulo 2^bits in the range of the type.
fn wrapped(value: i128, bits: u32, signed: bool) -> i128 {
    let unsigned = value.rem_euclid(1 << bits);
    if signed && unsigned >= 1 << (bits - 1) { unsigned - (1 << bits) } else { unsigned }
}

#[test]
fn wrapped_operands_may_exceed_64_bits() {
    let mut random = Random::new(1);
    let (mut too_large, mut refused) = (0, 0);
    for _ in 0..100_000 {
        let depth = 1 + random.below(3);
        let (e, value) = sum(&mut random, depth);
        let width = *random.pick(&Width::ALL);
        let signed = random.one_in(2);
        let op = if signed { UnaryOp::Signed(width) } else { UnaryOp::Unsigned(width) };
        let expected = i64::try_from(wrapped(value, width.bits(), signed)).map_err(|_| EvalError::Overflow);
        let found = Expr::unary(op, e.clone()).eval(&mut |()| 0);
        assert_eq!(found, expected, "{op:?} of {e:?}, which is {value}");
        too_large += usize::from(e.eval(&mut |()| 0).is_err() && expected.is_ok());
        refused += usize::from(expected.is_err());
    }
    assert!(too_large > 10_000 && refused > 1_000, "{too_large} too large, {refused} refused");
}

/// Tests nested wraparound, and operators whose results depend on more than the low bits of an operand, so that an overflow remains an error.
#[test]
fn only_low_bits_are_forgiven() {
    let large = || Expr::<()>::binary(BinaryOp::Add, Expr::Const(i64::MAX), Expr::Const(1));
    let byte = |e| Expr::unary(UnaryOp::Unsigned(Width::Bits8), e).eval(&mut |()| 0);
    assert_eq!(byte(large()), Ok(0));
    assert_eq!(byte(Expr::unary(UnaryOp::Unsigned(Width::Bits64), large())), Ok(0));
    assert_eq!(byte(Expr::unary(UnaryOp::Signed(Width::Bits16), large())), Ok(0));
    let halved = Expr::binary(BinaryOp::Shr, large(), Expr::Const(1));
    assert_eq!(byte(halved), Err(EvalError::Overflow));
    assert_eq!(byte(large().not()), Err(EvalError::Overflow));
    let shift = |by| byte(Expr::binary(BinaryOp::Shl, large(), by));
    assert_eq!(shift(Expr::Const(64)), Err(EvalError::ShiftOutOfRange));
    assert_eq!(shift(large()), Err(EvalError::Overflow));
}
