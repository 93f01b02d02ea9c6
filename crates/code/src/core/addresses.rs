//! Which values are addresses, and which are numbers that stand where addresses stand.

use std::collections::BTreeSet;

use fencewright_program::{BinaryOp, UnaryOp, Width};

use super::{NodeId, Register, Value};

/// The nodes that registers point to, for those that hold a pointer or an integer as wide as one.
pub type Points<'a> = &'a dyn Fn(Register) -> Option<NodeId>;

/// Numbers other than 0 that are no addresses of objects, but kept or compared with some: `(struct node *)1`, functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strangers {
    /// Constants of the text.
    pub numbers: BTreeSet<i64>,
    /// Addresses of functions.
    pub functions: BTreeSet<i64>,
    /// Whether there are others, computed by the program.
    pub computed: bool,
}

impl Strangers {
    /// These and others.
    pub fn or(mut self, other: &Strangers) -> Self {
        self.add(other);
        self
    }

    /// Adds others.
    pub fn add(&mut self, other: &Strangers) {
        self.numbers.extend(&other.numbers);
        self.functions.extend(&other.functions);
        self.computed |= other.computed;
    }

    /// One constant.
    pub fn number(number: i64) -> Self {
        Strangers { numbers: [number].into(), ..Strangers::default() }
    }

    /// One function.
    pub fn function(function: u32) -> Self {
        Strangers { functions: [function_number(function)].into(), ..Strangers::default() }
    }

    /// Numbers that the program computes.
    pub fn computed() -> Self {
        Strangers { computed: true, ..Strangers::default() }
    }

    /// The constants and the functions, in order.
    pub fn known(&self) -> BTreeSet<i64> {
        self.numbers.union(&self.functions).copied().collect()
    }
}

/// Where objects and functions can be: from the first number to the last one.
///
/// Linux maps nothing below, and the other half of the address space is the kernel's.
pub const LOWEST_ADDRESS: i64 = 1 << 16;
/// The last of them.
pub const HIGHEST_ADDRESS: i64 = (1 << 47) - 1;

/// The number of a function as a pointer.
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

    /// The numbers other than 0 that a value may be, or be computed from, and that are no addresses of objects.
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
                // What is put into the bits of an address leaves it one; what is added to something need not be any.
                let bits = matches!(op, BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor);
                either.computed = !bits || either.computed && self.pointed_to(points).is_empty();
                either
            }
            Value::If(_, a, b) => a.strangers(points).or(&b.strangers(points)),
            Value::Difference(..) => Strangers::computed(),
        }
    }
}
