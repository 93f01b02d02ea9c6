//! Whether two ranges of memory overlap, decided by the ways in which they are reached, without comparing addresses.

use fencewright_code::core::{Base, Projection, Value};
use fencewright_program::BinaryOp;

/// The start of an array.
#[derive(PartialEq)]
enum Start {
    /// The target of a pointer.
    Pointer(Value),
    /// The place at the end of a path.
    Place(Base, Vec<Projection>),
}

/// The condition that two ranges of `count` elements overlap, of which pointers to the first elements are given; `None` if they do not overlap, or if
/// they are reached in different ways, so that only a comparison of addresses would tell. Such comparisons can distinguish executions in which memory
/// is reused, so the model does not add any.
pub(super) fn overlap(one: &Value, other: &Value, count: u64) -> Option<Value> {
    let ((start, from), (other, to)) = (start_and_index(one), start_and_index(other));
    let count = i64::try_from(count).ok().filter(|count| *count > 0 && start == other)?;
    if let (Value::Number(from), Value::Number(to)) = (&from, &to) {
        return (from.abs_diff(*to) < count as u64).then_some(Value::Number(1));
    }
    let distance = Value::binary(BinaryOp::Sub, from, to);
    let below = Value::binary(BinaryOp::Lt, distance.clone(), Value::Number(count));
    let above = Value::binary(BinaryOp::Gt, distance, Value::Number(-count));
    Some(Value::binary(BinaryOp::And, below, above))
}

/// A pointer as the start of an array and an index.
fn start_and_index(pointer: &Value) -> (Start, Value) {
    let sum = |a: Value, b: &Value| match (&a, b) {
        (Value::Number(0), b) => b.clone(),
        (_, Value::Number(0)) => a,
        (Value::Number(a), Value::Number(b)) => Value::Number(a.saturating_add(*b)),
        _ => Value::binary(BinaryOp::Add, a, b.clone()),
    };
    match pointer {
        Value::Move(from, by, _) => {
            let (start, index) = start_and_index(from);
            (start, sum(index, by))
        }
        Value::Address(place) => {
            let (path, index) = match place.path.split_last() {
                Some((Projection::Element(index, _), path)) => (path, index),
                _ => (&place.path[..], &Value::Number(0)),
            };
            match &place.base {
                // `p` and `&p[0]` are one pointer.
                Base::Pointed(pointer, _) if path.is_empty() => {
                    let (start, before) = start_and_index(pointer);
                    (start, sum(before, index))
                }
                base => (Start::Place(base.clone(), path.to_vec()), index.clone()),
            }
        }
        _ => (Start::Pointer(pointer.clone()), Value::Number(0)),
    }
}
