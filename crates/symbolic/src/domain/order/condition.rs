//! Conditions of the fragment: comparisons of cells and constants, joined by `and` and `or`, in negation normal form.

use fencewright_memory::CellId;
use fencewright_memory::linear::{Linear, cases};
use fencewright_program::{BinaryOp, Expr, Numbers, UnaryOp};

/// An operand of a comparison or an assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// The value of a cell.
    Cell(CellId),
    /// A constant.
    Constant(i64),
}

/// A relation between two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// `left = right`.
    Equal,
    /// `left != right`.
    Different,
    /// `left < right`.
    Less,
    /// `left <= right`.
    AtMost,
}

/// A condition over operands of type `O`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition<O> {
    /// A constant truth value.
    Constant(bool),
    /// A comparison.
    Related {
        /// The relation that has to hold between the two sides.
        relation: Relation,
        /// The left operand.
        left: O,
        /// The right operand.
        right: O,
        /// Whether the program requires a distance between the two sides: `left + n < right` or `left + n <= right` with n > 0.
        distant: bool,
    },
    /// Conjunction.
    All(Vec<Condition<O>>),
    /// Disjunction.
    Any(Vec<Condition<O>>),
}

/// The value of an assignment.
pub enum Value {
    /// The value of a cell, or a constant.
    Same(Operand),
    /// 1 if the condition holds, else 0.
    Truth(Condition<Operand>),
}

/// Why an expression is outside of the fragment, in words.
pub type Outside = &'static str;

const ARITHMETIC: Outside = "arithmetic on values";
const UPPER_BOUND: Outside = "an upper bound on how far apart two values are";

impl<O> Condition<O> {
    /// Renames the operands; `None` if some operand has no new name.
    pub fn map<P>(&self, name: &mut impl FnMut(&O) -> Option<P>) -> Option<Condition<P>> {
        Some(match self {
            Condition::Constant(value) => Condition::Constant(*value),
            Condition::Related { relation, left, right, distant } => Condition::Related {
                relation: *relation,
                left: name(left)?,
                right: name(right)?,
                distant: *distant,
            },
            Condition::All(parts) => {
                Condition::All(parts.iter().map(|p| p.map(name)).collect::<Option<_>>()?)
            }
            Condition::Any(parts) => {
                Condition::Any(parts.iter().map(|p| p.map(name)).collect::<Option<_>>()?)
            }
        })
    }

    /// Calls `visit` on every operand.
    pub fn for_each(&self, visit: &mut impl FnMut(&O)) {
        self.for_each_comparison(&mut |_, left, right, _| {
            visit(left);
            visit(right);
        });
    }

    /// Calls `visit` on every comparison.
    pub fn for_each_comparison(&self, visit: &mut impl FnMut(Relation, &O, &O, bool)) {
        match self {
            Condition::Constant(_) => {}
            Condition::Related { relation, left, right, distant } => visit(*relation, left, right, *distant),
            Condition::All(parts) | Condition::Any(parts) => {
                parts.iter().for_each(|p| p.for_each_comparison(visit));
            }
        }
    }
}

/// Classifies the value of an assigned expression.
pub fn value(e: &Expr<CellId>, numbers: Numbers) -> Result<Value, Outside> {
    match e {
        Expr::Leaf(cell) => Ok(Value::Same(Operand::Cell(*cell))),
        _ if e.constant().is_some() => Ok(Value::Same(Operand::Constant(e.constant().unwrap_or(0)))),
        _ if is_truth(e) => truth(e, true, numbers).map(Value::Truth),
        _ => Err(ARITHMETIC),
    }
}

/// Whether an expression evaluates to 0 or 1 because of its outermost operator.
fn is_truth(e: &Expr<CellId>) -> bool {
    match e {
        Expr::Unary(UnaryOp::Not, _) => true,
        Expr::Binary(op, _, _) => op.is_comparison() || matches!(op, BinaryOp::And | BinaryOp::Or),
        _ => false,
    }
}

/// The condition under which an expression is true (not 0), or its negation if `wanted` is false.
pub fn truth(e: &Expr<CellId>, wanted: bool, numbers: Numbers) -> Result<Condition<Operand>, Outside> {
    match e {
        _ if e.constant().is_some() => Ok(Condition::Constant((e.constant() != Some(0)) == wanted)),
        Expr::Unary(UnaryOp::Not, operand) => truth(operand, !wanted, numbers),
        Expr::Binary(op @ (BinaryOp::And | BinaryOp::Or), left, right) => {
            let parts = vec![truth(left, wanted, numbers)?, truth(right, wanted, numbers)?];
            Ok(if (*op == BinaryOp::And) == wanted { Condition::All(parts) } else { Condition::Any(parts) })
        }
        Expr::Binary(op, left, right) if op.is_comparison() => {
            let op = if wanted { *op } else { op.negated() };
            match (linear(left), linear(right)) {
                (Some(left), Some(right)) => {
                    let difference = left.minus(&right).ok_or(ARITHMETIC)?;
                    comparison(op, difference, numbers)
                }
                // `(a < b) == 1` and similar: a truth value compared with a constant.
                _ => against_constant(op, left, right, numbers),
            }
        }
        _ => {
            let difference = linear(e).ok_or(ARITHMETIC)?;
            comparison(if wanted { BinaryOp::Ne } else { BinaryOp::Eq }, difference, numbers)
        }
    }
}

/// The linear form of an expression; `None` if the expression is not linear or splits into cases.
fn linear(e: &Expr<CellId>) -> Option<Linear> {
    match cases(e).as_slice() {
        [(cube, Some(value))] if cube.is_empty() => Some(value.clone()),
        _ => None,
    }
}

fn against_constant(
    op: BinaryOp,
    left: &Expr<CellId>,
    right: &Expr<CellId>,
    numbers: Numbers,
) -> Result<Condition<Operand>, Outside> {
    let e = match (left.constant(), right.constant()) {
        (None, Some(_)) if is_truth(left) => left,
        (Some(_), None) if is_truth(right) => right,
        _ => return Err(ARITHMETIC),
    };
    let side = |e: &Expr<CellId>, value: i64| e.constant().unwrap_or(value);
    let holds = |value: i64| op.apply(side(left, value), side(right, value)).is_ok_and(|v| v != 0);
    match (holds(1), holds(0)) {
        (true, false) => truth(e, true, numbers),
        (false, true) => truth(e, false, numbers),
        (both, _) => Ok(Condition::Constant(both)),
    }
}

/// `difference op 0` as a condition.
fn comparison(op: BinaryOp, difference: Linear, numbers: Numbers) -> Result<Condition<Operand>, Outside> {
    use BinaryOp::*;
    let constant = difference.constant;
    // The condition is `left + gap op right`; the domain only tracks how `left` and `right` compare.
    let (left, right, gap) = match difference.difference().ok_or(ARITHMETIC)? {
        (None, None) => return Ok(Condition::Constant(op.apply(constant, 0).is_ok_and(|v| v != 0))),
        (Some(x), None) => {
            (Operand::Cell(x), Operand::Constant(constant.checked_neg().ok_or(ARITHMETIC)?), 0)
        }
        (None, Some(y)) => (Operand::Constant(constant), Operand::Cell(y), 0),
        (Some(x), Some(y)) => (Operand::Cell(x), Operand::Cell(y), constant),
    };
    let related = |relation, left, right, distant| {
        Ok(natural(Condition::Related { relation, left, right, distant }, numbers))
    };
    let whole = numbers != Numbers::Real;
    match (op, gap) {
        (Eq, 0) => related(Relation::Equal, left, right, false),
        (Ne, 0) => related(Relation::Different, left, right, false),
        (Le, 0) => related(Relation::AtMost, left, right, false),
        (Lt, 0) => related(Relation::Less, left, right, false),
        (Ge, 0) => related(Relation::AtMost, right, left, false),
        (Gt, 0) => related(Relation::Less, right, left, false),
        // Over the integers, `left + 1 <= right` is equivalent to `left < right`, and `left < right + 1` to `left <= right`.
        (Le, 1) if whole => related(Relation::Less, left, right, false),
        (Ge, -1) if whole => related(Relation::Less, right, left, false),
        (Lt, -1) if whole => related(Relation::AtMost, left, right, false),
        (Gt, 1) if whole => related(Relation::AtMost, right, left, false),
        (Le | Lt, 1..) => related(Relation::Less, left, right, true),
        (Ge | Gt, ..=-1) => related(Relation::Less, right, left, true),
        (Le | Lt | Ge | Gt, _) => Err(UPPER_BOUND),
        _ => Err(ARITHMETIC),
    }
}

/// Simplifies a comparison over the naturals: a comparison with a negative constant becomes a truth value, and an inequality with 0 becomes a truth
/// value or a test whether the other side equals 0.
fn natural(condition: Condition<Operand>, numbers: Numbers) -> Condition<Operand> {
    let Condition::Related { relation, left, right, .. } = condition else { return condition };
    if numbers != Numbers::Nat {
        return condition;
    }
    let simpler = |relation| Condition::Related { relation, left, right, distant: false };
    match (relation, left, right) {
        (Relation::Equal, Operand::Constant(..=-1), _) | (Relation::Equal, _, Operand::Constant(..=-1)) => {
            Condition::Constant(false)
        }
        (Relation::Different, Operand::Constant(..=-1), _)
        | (Relation::Different, _, Operand::Constant(..=-1)) => Condition::Constant(true),
        (Relation::AtMost, Operand::Constant(..=0), _) => Condition::Constant(true),
        (Relation::AtMost, _, Operand::Constant(..=-1)) => Condition::Constant(false),
        (Relation::AtMost, _, Operand::Constant(0)) => simpler(Relation::Equal),
        (Relation::Less, Operand::Constant(..=-1), _) => Condition::Constant(true),
        (Relation::Less, Operand::Constant(0), _) => simpler(Relation::Different),
        (Relation::Less, _, Operand::Constant(..=0)) => Condition::Constant(false),
        _ => condition,
    }
}
