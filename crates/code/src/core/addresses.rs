//! Which nodes a symbolic value may point to, and which numbers other than addresses of objects may occur where a pointer is expected.

use std::collections::BTreeSet;

use fencewright_program::{BinaryOp, UnaryOp, Width};

use super::{NodeId, Register, Value};

/// The points-to node of each register; `None` for registers too narrow to hold a pointer.
pub type Points<'a> = &'a dyn Fn(Register) -> Option<NodeId>;

/// Nonzero numbers that are not addresses of objects but are stored where pointers are stored, or compared with pointers: `(struct node *)1`,
/// addresses of functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strangers {
    /// Constants in the source.
    pub numbers: BTreeSet<i64>,
    /// Addresses of functions.
    pub functions: BTreeSet<i64>,
    /// Whether the program also computes such numbers at run time.
    pub computed: bool,
}

impl Strangers {
    /// The union of this set and another one.
    pub fn or(mut self, other: &Strangers) -> Self {
        self.add(other);
        self
    }

    /// Adds the numbers of another set.
    pub fn add(&mut self, other: &Strangers) {
        self.numbers.extend(&other.numbers);
        self.functions.extend(&other.functions);
        self.computed |= other.computed;
    }

    /// The set that contains only this constant.
    pub fn number(number: i64) -> Self {
        Strangers { numbers: [number].into(), ..Strangers::default() }
    }

    /// The set that contains only the address of this function.
    pub fn function(function: u32) -> Self {
        Strangers { functions: [function_number(function)].into(), ..Strangers::default() }
    }

    /// The set of unknown numbers that the program computes.
    pub fn computed() -> Self {
        Strangers { computed: true, ..Strangers::default() }
    }

    /// The constants and the addresses of functions, in ascending order.
    pub fn known(&self) -> BTreeSet<i64> {
        self.numbers.union(&self.functions).copied().collect()
    }
}

/// The lowest address of an object or function: Linux maps nothing below it.
pub const LOWEST_ADDRESS: i64 = 1 << 16;
/// The highest address of an object or function: the upper half of the address space belongs to the kernel.
pub const HIGHEST_ADDRESS: i64 = (1 << 47) - 1;

/// The number that represents a pointer to this function.
pub fn function_number(function: u32) -> i64 {
    LOWEST_ADDRESS + i64::from(function)
}

impl Value {
    /// The nodes that a value may point to.
    pub fn pointed_to(&self, points: Points<'_>) -> Vec<NodeId> {
        match self {
            Value::Number(_) | Value::Function(_) | Value::Difference(..) => Vec::new(),
            Value::Register(register) => points(*register).into_iter().collect(),
            Value::Unary(_, inner) => inner.pointed_to(points),
            Value::Binary(op, ..) if op.is_comparison() || matches!(op, BinaryOp::And | BinaryOp::Or) => {
                Vec::new()
            }
            Value::Binary(_, a, b) | Value::If(_, a, b) => {
                [a, b].into_iter().flat_map(|part| part.pointed_to(points)).collect()
            }
            Value::Address(place) => vec![place.node],
            Value::Move(.., node) | Value::Container { node, .. } => vec![*node],
        }
    }

    /// The numbers, except 0 and addresses of objects, that a value may be or may be computed from.
    pub fn strangers(&self, points: Points<'_>) -> Strangers {
        match self {
            Value::Number(0) | Value::Address(_) | Value::Move(..) | Value::Container { .. } => {
                Strangers::default()
            }
            Value::Number(n) => Strangers::number(*n),
            Value::Function(function) => Strangers::function(*function),
            Value::Register(register) => {
                Strangers { computed: points(*register).is_none(), ..Strangers::default() }
            }
            Value::Unary(UnaryOp::Not, _) => Strangers::number(1),
            Value::Unary(UnaryOp::Signed(Width::Bits64), inner) => inner.strangers(points),
            Value::Unary(_, inner) => Strangers { computed: true, ..inner.strangers(points) },
            Value::Binary(op, ..) if op.is_comparison() || matches!(op, BinaryOp::And | BinaryOp::Or) => {
                Strangers::number(1)
            }
            Value::Binary(op, a, b) => {
                let mut either = a.strangers(points).or(&b.strangers(points));
                // The result of a bit operation on an address (a tagged pointer) counts as an address. The result of an operation that is not a bit
                // operation may be any number.
                let bits = matches!(op, BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor);
                either.computed = !bits || either.computed && self.pointed_to(points).is_empty();
                either
            }
            Value::If(_, a, b) => a.strangers(points).or(&b.strangers(points)),
            Value::Difference(..) => Strangers::computed(),
        }
    }
}
