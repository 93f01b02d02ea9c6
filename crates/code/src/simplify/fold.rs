//! Constant folding and algebraic simplification of symbolic values.

use fencewright_program::{BinaryOp, UnaryOp};
use rustc_hash::FxHashSet;

use crate::core::{Base, Location, ObjectId, Register, Value};
use crate::nodes::Nodes;
use crate::statement::Parts;

/// Facts about the whole program that folding needs.
pub(super) struct Whole<'a> {
    /// The classes of places.
    pub nodes: &'a Nodes,
    /// Local variables whose lifetime ends while pointers to them may exist: an access through such a pointer has to be checked.
    pub ended: FxHashSet<ObjectId>,
}

/// Whether a register never holds an undefined value.
pub(super) type IsDefined<'a> = &'a dyn Fn(Register) -> bool;

/// Simplifies a value. An operation on a value that may be undefined is kept, so that the use of the undefined value is detected.
pub(super) fn fold(value: &mut Value, whole: &Whole<'_>, is_defined: IsDefined<'_>) {
    match value {
        Value::Number(_) | Value::Function(_) | Value::Register(_) => return,
        Value::Unary(_, inner) | Value::Container { member: inner, .. } => fold(inner, whole, is_defined),
        Value::Binary(_, a, b) | Value::Move(a, b, _) | Value::Difference(a, b, _) => {
            fold(a, whole, is_defined);
            fold(b, whole, is_defined);
        }
        Value::If(condition, a, b) => {
            [condition, a, b].into_iter().for_each(|part| fold(part, whole, is_defined));
        }
        Value::Address(place) => fold_place(place, whole, is_defined),
    }
    if let Some(simpler) = simpler(value, is_defined) {
        *value = simpler;
    }
}

/// Simplifies a place: if the base is a pointer whose value is a known address, the path starts at the addressed object.
pub(super) fn fold_place(place: &mut Location, whole: &Whole<'_>, is_defined: IsDefined<'_>) {
    place.values_mut(&mut |value| fold(value, whole, is_defined));
    let Base::Pointed(pointer, node) = &mut place.base else { return };
    let Value::Address(target) = &mut **pointer else { return };
    let is_ended = matches!(&target.base, Base::Object(object) if whole.ended.contains(object));
    if is_ended || whole.nodes.find(target.node) != whole.nodes.find(*node) {
        return;
    }
    let rest = std::mem::take(&mut place.path);
    let mut start = (**target).clone();
    start.path.extend(rest);
    (place.base, place.path) = (start.base, start.path);
}

fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => Some(*number),
        _ => None,
    }
}

fn is_truth(value: &Value) -> bool {
    match value {
        Value::Number(number) => matches!(number, 0 | 1),
        Value::Unary(op, _) => *op == UnaryOp::Not,
        Value::Binary(op, ..) => op.is_comparison() || matches!(op, BinaryOp::And | BinaryOp::Or),
        _ => false,
    }
}

fn simpler(value: &Value, is_defined: IsDefined<'_>) -> Option<Value> {
    let all_defined = |value: &Value| {
        let mut all = true;
        value.registers(&mut |register| all &= is_defined(register));
        all
    };
    match value {
        Value::Unary(op, inner) => op.apply(number(inner)?).ok().map(Value::Number),
        Value::Binary(op, a, b) => {
            if let (Some(x), Some(y)) = (number(a), number(b)) {
                return op.apply(x, y).ok().map(Value::Number);
            }
            match (op, number(a), number(b)) {
                // The left operand decides the result, so the right one is not evaluated.
                (BinaryOp::And, Some(0), _) => return Some(Value::Number(0)),
                (BinaryOp::Or, Some(x), _) if x != 0 => return Some(Value::Number(1)),
                (BinaryOp::And, Some(_), _) | (BinaryOp::Or, Some(_), _) if is_truth(b) => {
                    return Some((**b).clone());
                }
                _ => {}
            }
            if !all_defined(value) {
                return None;
            }
            let same = a == b;
            match (op, number(a), number(b)) {
                (BinaryOp::BitXor | BinaryOp::Sub, ..) if same => Some(Value::Number(0)),
                (BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Gt, ..) if same => Some(Value::Number(0)),
                (BinaryOp::Eq | BinaryOp::Le | BinaryOp::Ge, ..) if same => Some(Value::Number(1)),
                (BinaryOp::BitAnd | BinaryOp::BitOr, ..) if same => Some((**a).clone()),
                (BinaryOp::Mul | BinaryOp::BitAnd, Some(0), _)
                | (BinaryOp::Mul | BinaryOp::BitAnd, _, Some(0)) => Some(Value::Number(0)),
                (BinaryOp::Add | BinaryOp::BitOr | BinaryOp::BitXor, Some(0), _)
                | (BinaryOp::Mul, Some(1), _) => Some((**b).clone()),
                (BinaryOp::Add | BinaryOp::Sub | BinaryOp::BitOr | BinaryOp::BitXor, _, Some(0))
                | (BinaryOp::Mul | BinaryOp::Div, _, Some(1)) => Some((**a).clone()),
                (BinaryOp::And, _, Some(0)) => Some(Value::Number(0)),
                (BinaryOp::And, _, Some(_)) | (BinaryOp::Or, _, Some(0)) if is_truth(a) => {
                    Some((**a).clone())
                }
                (BinaryOp::Or, _, Some(x)) if x != 0 => Some(Value::Number(1)),
                _ => None,
            }
        }
        Value::If(condition, a, b) => match number(condition)? {
            0 => Some((**b).clone()),
            _ => Some((**a).clone()),
        },
        Value::Move(pointer, by, _) if number(by) == Some(0) => Some((**pointer).clone()),
        _ => None,
    }
}
