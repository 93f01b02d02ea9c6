//! Operations on two integers.

use fencewright_c::arithmetic::{self, Arithmetic};
use fencewright_c::ast::{BinaryOp as Operator, Integer};
use fencewright_program::{BinaryOp, UnaryOp};

use super::condition::{compare, truth};
use super::{DIVISION, NEGATIVE_SHIFT, OVERFLOW, Operand, Range, SHIFT, Sink, converted_range, wrap};
use crate::core::Value;

/// `a op b` in a type that both operands have, except that the right operand of a shift has a type of its own.
pub fn binary(sink: &mut dyn Sink, op: Operator, ty: Arithmetic, a: Operand, b: Operand) -> Operand {
    use Operator::*;
    let (a, b) = match op {
        ShiftLeft | ShiftRight => (of_type(ty, a), b),
        And | Or => (a, b),
        _ => (of_type(ty, a), of_type(ty, b)),
    };
    if let (Some(x), Some(y)) = (a.known(), b.known())
        && let Ok(result) = arithmetic::binary(op, (x, ty), (y, ty))
    {
        return Operand::number(result);
    }
    let points = match op {
        Add | Subtract | BitAnd | BitOr | BitXor | ShiftLeft | ShiftRight => a.points.or(b.points),
        _ => None,
    };
    let integer = ty.promoted();
    let result = match op {
        Less | Greater | LessOrEqual | GreaterOrEqual | Equal | NotEqual => compare(op, a, b),
        And => both(BinaryOp::And, a, b),
        Or => both(BinaryOp::Or, a, b),
        Add | Subtract | Multiply => {
            if integer.signed {
                check_overflow(sink, op, ty, &a, &b);
            }
            ring(op, integer, integer.signed, a, b)
        }
        BitAnd | BitOr | BitXor => bits(op, a, b),
        Divide | Remainder => divide(sink, op, integer, a, b),
        ShiftLeft | ShiftRight => shift(sink, op, integer, a, b),
    };
    Operand { points, ..result }
}

/// Converts an operand to the type if its range does not fit, because a large unsigned number may be given as the negative number that represents it.
fn of_type(ty: Arithmetic, operand: Operand) -> Operand {
    match ty.has(operand.range.0) && ty.has(operand.range.1) {
        true => operand,
        false => super::convert(ty, operand),
    }
}

/// `a op b`, an addition, subtraction, multiplication or operation on bits that wraps around for signed types as well.
pub fn wrapping(op: Operator, ty: Arithmetic, a: Operand, b: Operand) -> Operand {
    use Operator::*;
    let points = a.points.or(b.points);
    let result = match op {
        BitAnd | BitOr | BitXor => super::convert(ty, bits(op, a, b)),
        _ => match ty {
            Arithmetic::Integer(integer) => ring(op, integer, false, a, b),
            Arithmetic::Bool => super::convert(ty, ring(op, Integer::INT, false, a, b)),
        },
    };
    Operand { points, ..result }
}

fn both(op: BinaryOp, a: Operand, b: Operand) -> Operand {
    let decides = i128::from(op == BinaryOp::Or);
    let (a, b) = (truth(a), truth(b));
    match (a.known(), b.known()) {
        (Some(known), _) => {
            if known == decides {
                a
            } else {
                b
            }
        }
        (_, Some(known)) => {
            if known == decides {
                b
            } else {
                a
            }
        }
        _ => Operand::new(Value::binary(op, a.value, b.value), (0, 1)),
    }
}

/// `+`, `-` and `*`. The result wraps around where it may not fit. If `checked`, a preceding overflow check ensures that the result fits.
fn ring(op: Operator, ty: Integer, checked: bool, a: Operand, b: Operand) -> Operand {
    let values = Arithmetic::Integer(ty);
    let exact = exact_range(op, a.range, b.range);
    let (least, greatest) = (values.least(), values.greatest());
    let fits = checked
        || a.is_exact() && b.is_exact() && exact.0 >= least && exact.1 <= greatest.min(i64::MAX.into());
    let range = match checked {
        true => (exact.0.clamp(least, greatest), exact.1.clamp(least, greatest)),
        false => converted_range(values, exact),
    };
    let value = match (op, &a.value, &b.value) {
        (Operator::Subtract, Value::Register(x), Value::Register(y)) if x == y => return Operand::number(0),
        (Operator::Add | Operator::Subtract, _, Value::Number(0)) => return a,
        (Operator::Add, Value::Number(0), _) => return b,
        (Operator::Multiply, _, Value::Number(1)) => return a,
        (Operator::Multiply, Value::Number(1), _) => return b,
        (Operator::Subtract, Value::Number(0), _) => Value::unary(UnaryOp::Neg, b.value),
        // Written as `a - 1` rather than `a + -1`.
        (Operator::Add, _, &Value::Number(number)) if number < 0 && number > i64::MIN => {
            a.value.with(BinaryOp::Sub, -i128::from(number))
        }
        _ => Value::binary(operation(op), a.value, b.value),
    };
    Operand::new(if fits { value } else { wrap(ty, value) }, range)
}

/// The same operator in `.fw`, which computes in mathematical integers, or on bits.
pub(super) fn operation(op: Operator) -> BinaryOp {
    use Operator::*;
    match op {
        Multiply => BinaryOp::Mul,
        Divide => BinaryOp::Div,
        Remainder => BinaryOp::Rem,
        Add => BinaryOp::Add,
        Subtract => BinaryOp::Sub,
        ShiftLeft => BinaryOp::Shl,
        ShiftRight => BinaryOp::Shr,
        Less => BinaryOp::Lt,
        Greater => BinaryOp::Gt,
        LessOrEqual => BinaryOp::Le,
        GreaterOrEqual => BinaryOp::Ge,
        Equal => BinaryOp::Eq,
        NotEqual => BinaryOp::Ne,
        BitAnd => BinaryOp::BitAnd,
        BitXor => BinaryOp::BitXor,
        BitOr => BinaryOp::BitOr,
        And => BinaryOp::And,
        Or => BinaryOp::Or,
    }
}

/// The range of the mathematical result, before it wraps around.
fn exact_range(op: Operator, a: Range, b: Range) -> Range {
    match op {
        Operator::Add => (a.0 + b.0, a.1 + b.1),
        Operator::Subtract => (a.0 - b.1, a.1 - b.0),
        _ => {
            // If the product of two unsigned numbers exceeds `i128`, the range is unbounded above.
            let corners = [(a.0, b.0), (a.0, b.1), (a.1, b.0), (a.1, b.1)].map(|(x, y)| x.checked_mul(y));
            let least = corners.iter().copied().min().flatten();
            least.zip(corners.into_iter().max().flatten()).unwrap_or((0, i128::MAX))
        }
    }
}

/// Checks that an addition, subtraction or multiplication in a signed type does not overflow.
fn check_overflow(sink: &mut dyn Sink, op: Operator, ty: Arithmetic, a: &Operand, b: &Operand) {
    let exact = exact_range(op, a.range, b.range);
    let (least, greatest) = (ty.least(), ty.greatest());
    if exact.0 >= least && exact.1 <= greatest {
        return;
    }
    // With a constant on one side, the check compares the other side with constants.
    let allowed = match (op, a.known(), b.known()) {
        (Operator::Add, _, Some(n)) => Some((a, (least - n, greatest - n))),
        (Operator::Add, Some(n), _) => Some((b, (least - n, greatest - n))),
        (Operator::Subtract, _, Some(n)) => Some((a, (least + n, greatest + n))),
        (Operator::Subtract, Some(n), _) => Some((b, (n - greatest, n - least))),
        (Operator::Multiply, _, Some(n)) => factor(n, least, greatest).map(|range| (a, range)),
        (Operator::Multiply, Some(n), _) => factor(n, least, greatest).map(|range| (b, range)),
        _ => None,
    };
    if let Some((operand, range)) = allowed {
        return check_within(sink, operand, range, OVERFLOW);
    }
    let result = Value::binary(operation(op), a.value.clone(), b.value.clone());
    if exact.0 >= i64::MIN.into() && exact.1 <= i64::MAX.into() {
        return check_within(sink, &Operand::new(result, exact), (least, greatest), OVERFLOW);
    }
    let (x, y) = (|| a.value.clone(), || b.value.clone());
    let limit = |limit: i128, op| Value::binary(op, Value::Number(limit as i64), y());
    let negative = y().with(BinaryOp::Lt, 0);
    let fits = match op {
        Operator::Add => Value::choice(
            negative,
            Value::binary(BinaryOp::Ge, x(), limit(least, BinaryOp::Sub)),
            Value::binary(BinaryOp::Le, x(), limit(greatest, BinaryOp::Sub)),
        ),
        Operator::Subtract => Value::choice(
            negative,
            Value::binary(BinaryOp::Le, x(), limit(greatest, BinaryOp::Add)),
            Value::binary(BinaryOp::Ge, x(), limit(least, BinaryOp::Add)),
        ),
        _ => {
            // The product modulo 2^64 divided by one factor is the other factor only if no bits are lost. (Division by 0 and -1 is excluded first.)
            let back = Value::binary(BinaryOp::Div, wrap(ty.promoted(), result), y());
            let general = Value::binary(BinaryOp::Eq, back, x());
            let minus_one = Value::choice(y().with(BinaryOp::Eq, -1), x().with(BinaryOp::Ne, least), general);
            Value::binary(BinaryOp::Or, y().with(BinaryOp::Eq, 0), minus_one)
        }
    };
    sink.check(fits, OVERFLOW);
}

/// The numbers whose product with `n` is in the range from `least` to `greatest`; `None` if every number is such a number.
fn factor(n: i128, least: i128, greatest: i128) -> Option<Range> {
    match n {
        0 => None,
        // Division rounds towards zero. `least` is negative and `greatest` positive, so the rounded quotients are inside the exact bounds.
        1.. => Some((least / n, greatest / n)),
        _ => Some((greatest / n, least / n)),
    }
}

/// Checks that a number is in a range; a bound that always holds is not checked.
fn check_within(sink: &mut dyn Sink, operand: &Operand, (least, greatest): Range, fault: &'static str) {
    let possible = operand.represented();
    let value = || operand.value.clone();
    let low = (possible.0 < least).then(|| match least > possible.1 {
        true => Value::Number(0),
        false => value().with(BinaryOp::Ge, least),
    });
    let high = (possible.1 > greatest).then(|| match greatest < possible.0 {
        true => Value::Number(0),
        false => value().with(BinaryOp::Le, greatest),
    });
    let condition = match (low, high) {
        (Some(low), Some(high)) => Value::binary(BinaryOp::And, low, high),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => return,
    };
    sink.check(condition, fault);
}

/// `&`, `|` and `^`, which work on two's complement in C and in `.fw`.
fn bits(op: Operator, a: Operand, b: Operand) -> Operand {
    let natural = |operand: &Operand| operand.range.0 >= 0;
    let largest = |operand: &Operand| operand.range.1.max(!operand.range.0);
    // A mask of ones, as wide as the wider operand.
    let ones = (1i128 << (128 - largest(&a).max(largest(&b)).leading_zeros())) - 1;
    let range = match op {
        Operator::BitAnd => match (natural(&a), natural(&b)) {
            (true, true) => (0, a.range.1.min(b.range.1)),
            (true, false) => (0, a.range.1),
            (false, true) => (0, b.range.1),
            (false, false) => (!ones, ones),
        },
        Operator::BitOr if natural(&a) && natural(&b) => (a.range.0.max(b.range.0), ones),
        _ if natural(&a) && natural(&b) => (0, ones),
        _ => (!ones, ones),
    };
    match (op, &a.value, &b.value) {
        (Operator::BitXor, Value::Register(x), Value::Register(y)) if x == y => Operand::number(0),
        (Operator::BitOr | Operator::BitXor, _, Value::Number(0)) => a,
        (Operator::BitOr | Operator::BitXor, Value::Number(0), _) => b,
        _ => Operand::new(Value::binary(operation(op), a.value, b.value), range),
    }
}

/// `/` and `%`.
fn divide(sink: &mut dyn Sink, op: Operator, ty: Integer, mut a: Operand, mut b: Operand) -> Operand {
    let values = Arithmetic::Integer(ty);
    if b.range.0 <= 0 && b.range.1 >= 0 {
        sink.check(truth(b.clone()).value, DIVISION);
        // After the check the divisor is not 0, so a bound of 0 moves by one towards the other bound.
        b.range.0 += i128::from(b.range.0 == 0);
        b.range.1 -= i128::from(b.range.1 == 0);
        if b.range.0 > b.range.1 {
            return Operand::number(0);
        }
    }
    let least = values.least();
    if ty.signed && a.range.0 == least && b.range.0 <= -1 && b.range.1 >= -1 {
        let smallest = compare(Operator::NotEqual, a.clone(), Operand::number(least));
        let other = compare(Operator::NotEqual, b.clone(), Operand::number(-1));
        sink.check(both(BinaryOp::Or, smallest, other).value, OVERFLOW);
    }
    let size = |range: Range| range.0.abs().max(range.1.abs());
    let natural = a.range.0 >= 0;
    let range = match op {
        Operator::Divide if natural && b.range.0 > 0 => (a.range.0 / b.range.1, a.range.1 / b.range.0),
        Operator::Divide => {
            let most = size(a.range);
            (least.max(-most), values.greatest().min(most))
        }
        _ => {
            let most = (size(b.range) - 1).min(size(a.range));
            (if natural { 0 } else { -most }, if a.range.1 <= 0 { 0 } else { most })
        }
    };
    if a.is_exact() && b.is_exact() {
        return Operand::new(Value::binary(operation(op), a.value, b.value), range);
    }
    a.value = simple(sink, a.value);
    b.value = simple(sink, b.value);
    let value = divide_large(sink, op, ty, a, b);
    Operand::new(value, range)
}

/// `/` and `%` of unsigned values that may be 2^63 or more, which negative numbers represent.
fn divide_large(sink: &mut dyn Sink, op: Operator, ty: Integer, a: Operand, b: Operand) -> Value {
    let (x, y) = (|| a.value.clone(), || b.value.clone());
    let quotient = op == Operator::Divide;
    // If the divisor is 2^63 or more, the quotient is 0 or 1.
    let by_large = || {
        let once = compare(Operator::GreaterOrEqual, a.clone(), b.clone()).value;
        match quotient {
            true => once,
            false => Value::choice(once, wrap(ty, Value::binary(BinaryOp::Sub, x(), y())), x()),
        }
    };
    let by_small = match a.is_exact() {
        true => Value::binary(operation(op), x(), y()),
        false => {
            // Half of the dividend is below 2^63, so it represents itself. The quotient of the dividend is twice the quotient of this half, or one
            // more.
            let half = x().with(BinaryOp::Shr, 1).with(BinaryOp::BitAnd, i64::MAX.into());
            let twice = Value::binary(BinaryOp::Div, half, y()).with(BinaryOp::Mul, 2);
            let twice = sink.name(wrap(ty, twice));
            let product = Value::binary(BinaryOp::Mul, twice.clone(), y());
            let rest = sink.name(wrap(ty, Value::binary(BinaryOp::Sub, x(), product)));
            let one_less = Value::binary(
                BinaryOp::Or,
                rest.clone().with(BinaryOp::Lt, 0),
                Value::binary(BinaryOp::Ge, rest.clone(), y()),
            );
            match quotient {
                true => wrap(ty, Value::binary(BinaryOp::Add, twice, one_less)),
                false => {
                    Value::choice(one_less, wrap(ty, Value::binary(BinaryOp::Sub, rest.clone(), y())), rest)
                }
            }
        }
    };
    match b.is_exact() {
        true => by_small,
        false => Value::choice(y().with(BinaryOp::Lt, 0), by_large(), by_small),
    }
}

/// A value that can be duplicated: a constant or a register.
fn simple(sink: &mut dyn Sink, value: Value) -> Value {
    match value {
        Value::Number(_) | Value::Register(_) => value,
        other => sink.name(other),
    }
}

/// `<<` and `>>`.
fn shift(sink: &mut dyn Sink, op: Operator, ty: Integer, mut a: Operand, mut by: Operand) -> Operand {
    let values = Arithmetic::Integer(ty);
    let most = i128::from(ty.bits()) - 1;
    check_within(sink, &by, (0, most), SHIFT);
    by.range = (by.range.0.clamp(0, most), by.range.1.clamp(0, most));
    if op == Operator::ShiftRight {
        if by.known() == Some(0) {
            return a;
        }
        let ends = |end: i128| [end >> by.range.0, end >> by.range.1];
        let [low, high] = [ends(a.range.0), ends(a.range.1)];
        let range = (low[0].min(low[1]), high[0].max(high[1]));
        let value = match (a.is_exact(), by.known()) {
            (true, _) => Value::binary(BinaryOp::Shr, a.value, by.value),
            (false, Some(n)) => a.value.with(BinaryOp::Shr, n).with(BinaryOp::BitAnd, (1 << (64 - n)) - 1),
            (false, None) => {
                a.value = simple(sink, a.value);
                by.value = simple(sink, by.value);
                let half = a.value.clone().with(BinaryOp::Shr, 1).with(BinaryOp::BitAnd, i64::MAX.into());
                let rest = Value::binary(BinaryOp::Shr, half, by.value.clone().with(BinaryOp::Sub, 1));
                Value::choice(by.value.with(BinaryOp::Eq, 0), a.value, rest)
            }
        };
        return Operand::new(value, range);
    }
    if ty.signed {
        check_within(sink, &a, (0, values.greatest()), NEGATIVE_SHIFT);
        a.range = (a.range.0.max(0), a.range.1.max(0));
        let greatest = values.greatest();
        match by.known() {
            Some(n) => check_within(sink, &a, (0, greatest >> n.clamp(0, most)), OVERFLOW),
            None if a.range.1 << by.range.1 > greatest => {
                let limit = Value::binary(BinaryOp::Shr, Value::Number(greatest as i64), by.value.clone());
                sink.check(Value::binary(BinaryOp::Le, a.value.clone(), limit), OVERFLOW);
            }
            None => {}
        }
    }
    let exact = (a.range.0 << by.range.0, a.range.1 << by.range.1);
    let fits = a.is_exact() && values.has(exact.1) && exact.1 <= i64::MAX.into();
    let value = Value::binary(BinaryOp::Shl, a.value, by.value);
    let range = converted_range(values, exact);
    Operand::new(if fits || ty.signed { value } else { wrap(ty, value) }, range)
}
