//! Truth values: comparisons, negation, and bounds on registers that a condition implies.

use fencewright_c::ast::BinaryOp as Operator;
use fencewright_program::{BinaryOp, UnaryOp};

use super::{Operand, Range};
use crate::core::{Register, Value};

const TRUTH: Range = (0, 1);

/// A comparison of two values of the same integer type, or of two pointers.
pub fn compare(op: Operator, a: Operand, b: Operand) -> Operand {
    use Operator::*;
    let (below, above) = (a.range.1 < b.range.0, a.range.0 > b.range.1);
    let decided = match op {
        Less if below => Some(true),
        Less if a.range.0 >= b.range.1 => Some(false),
        LessOrEqual if a.range.1 <= b.range.0 => Some(true),
        LessOrEqual if above => Some(false),
        Greater if above => Some(true),
        Greater if a.range.1 <= b.range.0 => Some(false),
        GreaterOrEqual if a.range.0 >= b.range.1 => Some(true),
        GreaterOrEqual if below => Some(false),
        Equal if below || above => Some(false),
        NotEqual if below || above => Some(true),
        _ => None,
    };
    if let Some(decided) = decided {
        return Operand::number(decided.into());
    }
    let is_zero = |operand: &Operand| matches!(operand.value, Value::Number(0));
    match op {
        NotEqual if is_zero(&b) && a.is_truth() => return Operand { points: None, ..a },
        Equal if is_zero(&b) && a.is_truth() => return not(a),
        _ => {}
    }
    let (a_exact, b_exact) = (a.is_exact(), b.is_exact());
    let plain = |op, a: Value, b: Value| Value::binary(op, a, b);
    let value = match op {
        Equal => plain(BinaryOp::Eq, a.value, b.value),
        NotEqual => plain(BinaryOp::Ne, a.value, b.value),
        Less => order(BinaryOp::Lt, (a.value, a_exact), (b.value, b_exact)),
        LessOrEqual => order(BinaryOp::Le, (a.value, a_exact), (b.value, b_exact)),
        Greater if a_exact && b_exact => plain(BinaryOp::Gt, a.value, b.value),
        GreaterOrEqual if a_exact && b_exact => plain(BinaryOp::Ge, a.value, b.value),
        Greater => order(BinaryOp::Lt, (b.value, b_exact), (a.value, a_exact)),
        _ => order(BinaryOp::Le, (b.value, b_exact), (a.value, a_exact)),
    };
    Operand::new(value, TRUTH)
}

/// `a < b` or `a <= b`, where a negative number in an inexact operand represents a value of 2^63 or more.
fn order(op: BinaryOp, (a, a_exact): (Value, bool), (b, b_exact): (Value, bool)) -> Value {
    let negative = |value: &Value| value.clone().with(BinaryOp::Lt, 0);
    match (a_exact, b_exact) {
        (true, true) => Value::binary(op, a, b),
        (false, true) => {
            let exact = a.clone().with(BinaryOp::Ge, 0);
            Value::binary(BinaryOp::And, exact, Value::binary(op, a, b))
        }
        (true, false) => Value::binary(BinaryOp::Or, negative(&b), Value::binary(op, a, b)),
        (false, false) => {
            let different = Value::binary(BinaryOp::Ne, negative(&a), negative(&b));
            Value::binary(BinaryOp::Ne, Value::binary(op, a, b), different)
        }
    }
}

/// 1 if a value is not 0, otherwise 0.
pub fn truth(operand: Operand) -> Operand {
    compare(Operator::NotEqual, operand, Operand::number(0))
}

/// `!a`.
pub fn not(operand: Operand) -> Operand {
    let value = match operand.value {
        Value::Number(number) => return Operand::number((number == 0).into()),
        Value::Binary(op, a, b) if op.is_comparison() => Value::Binary(op.negated(), a, b),
        Value::Unary(UnaryOp::Not, inner) if operand.range == TRUTH && is_truth(&inner) => *inner,
        other if operand.is_truth() => Value::unary(UnaryOp::Not, other),
        _ => return compare(Operator::Equal, operand, Operand::number(0)),
    };
    Operand::new(value, TRUTH)
}

/// Whether a value is 0 or 1 because of its outermost operator.
fn is_truth(value: &Value) -> bool {
    match value {
        Value::Binary(op, ..) => op.is_comparison() || matches!(op, BinaryOp::And | BinaryOp::Or),
        Value::Unary(op, _) => *op == UnaryOp::Not,
        _ => false,
    }
}

/// Reports the ranges of registers that a condition, or its negation, implies.
pub fn implied(condition: &Value, holds: bool, report: &mut dyn FnMut(Register, Range)) {
    use BinaryOp::*;
    match condition {
        Value::Unary(UnaryOp::Not, inner) => implied(inner, !holds, report),
        Value::Binary(And, a, b) if holds => [a, b].into_iter().for_each(|part| implied(part, true, report)),
        Value::Binary(Or, a, b) if !holds => [a, b].into_iter().for_each(|part| implied(part, false, report)),
        Value::Binary(op, a, b) if op.is_comparison() => {
            let op = if holds { *op } else { op.negated() };
            let mirrored = match op {
                Lt => Gt,
                Le => Ge,
                Gt => Lt,
                Ge => Le,
                other => other,
            };
            match (&**a, &**b) {
                (Value::Register(register), Value::Number(number)) => bound(*register, op, *number, report),
                (Value::Number(number), Value::Register(register)) => {
                    bound(*register, mirrored, *number, report);
                }
                _ => {}
            }
        }
        _ => {}
    }
}

fn bound(register: Register, op: BinaryOp, number: i64, report: &mut dyn FnMut(Register, Range)) {
    let (number, least, greatest) = (i128::from(number), i64::MIN.into(), i64::MAX.into());
    let range = match op {
        BinaryOp::Eq => (number, number),
        BinaryOp::Lt => (least, number - 1),
        BinaryOp::Le => (least, number),
        BinaryOp::Gt => (number + 1, greatest),
        BinaryOp::Ge => (number, greatest),
        _ => return,
    };
    report(register, range);
}
