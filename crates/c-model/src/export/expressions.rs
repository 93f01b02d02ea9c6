//! Expressions as C text, with the parentheses and conversions that make C compute in the intended type and gcc give no warnings.

use fencewright_fw::ast::{Expr, ExprKind, Place};
use fencewright_fw::lower::values_of;
use fencewright_program::{BinaryOp, Range, Span, UnaryOp};

use super::prelude::{Helper, cas};
use super::{Known, Result, Role, Writer, cannot};

/// An expression as text, with the information that decides how it is parenthesised and converted in a larger expression.
pub(super) struct Written {
    pub text: String,
    shape: Shape,
    /// Whether the type in C is `int` even if integers are `int64_t`: true for constants and truth values.
    narrow: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// A name, a call, a number.
    Plain,
    /// A prefix operator or a conversion.
    Prefix,
    /// A comparison, or one of `&&`, `||` and `!`: 0 or 1.
    Truth(Option<BinaryOp>),
    /// Any other operator, or `c ? a : b`.
    Binary,
}

impl Written {
    pub fn plain(text: String) -> Self {
        Written { text, shape: Shape::Plain, narrow: false }
    }

    /// A constant, or another expression whose type in C is `int`.
    pub fn narrow(text: String) -> Self {
        Written { text, shape: Shape::Plain, narrow: true }
    }

    fn prefix(text: String) -> Self {
        Written { text, shape: Shape::Prefix, narrow: false }
    }

    fn binary(text: String) -> Self {
        Written { text, shape: Shape::Binary, narrow: false }
    }

    fn truth(text: String, op: Option<BinaryOp>) -> Self {
        Written { text, shape: Shape::Truth(op), narrow: true }
    }

    /// `c ? a : b`
    pub fn choice(condition: Written, then: Written, otherwise: Written) -> Self {
        let condition = condition.asked();
        let condition = match condition.shape {
            Shape::Truth(Some(_)) => format!("({})", condition.text),
            _ => condition.text,
        };
        let narrow = then.narrow && otherwise.narrow;
        let text = format!("{condition} ? {} : {}", then.operand(), otherwise.operand());
        Written { narrow, ..Written::binary(text) }
    }

    /// The text as an operand of an arithmetic operator or a comparison.
    pub fn operand(self) -> String {
        match self.shape {
            Shape::Plain | Shape::Prefix => self.text,
            Shape::Binary => format!("({})", self.text),
            Shape::Truth(_) => format!("({} ? 1 : 0)", self.text),
        }
    }

    /// The expression as a condition: only whether it is zero matters.
    pub fn asked(self) -> Self {
        match self.shape {
            Shape::Plain | Shape::Truth(_) => self,
            Shape::Prefix => Written::truth(format!("{} != 0", self.text), Some(BinaryOp::Ne)),
            Shape::Binary => Written::truth(format!("({}) != 0", self.text), Some(BinaryOp::Ne)),
        }
    }

    /// The text as an operand of `&&` or `||`. An operand with the same operator needs no parentheses.
    fn side(self, op: BinaryOp) -> String {
        let condition = self.asked();
        match condition.shape {
            Shape::Truth(Some(inner @ (BinaryOp::And | BinaryOp::Or))) if inner != op => {
                format!("({})", condition.text)
            }
            _ => condition.text,
        }
    }

    /// The negation of the expression as a condition.
    pub fn negated(self) -> Written {
        match self.shape {
            Shape::Plain => Written::truth(format!("!{}", self.text), None),
            Shape::Truth(_) => Written::truth(format!("!({})", self.text), None),
            Shape::Prefix | Shape::Binary => {
                Written::truth(format!("{} == 0", self.operand()), Some(BinaryOp::Eq))
            }
        }
    }
}

impl Writer {
    /// The text of a condition, as in `if` and `while`.
    pub(super) fn condition(&mut self, e: &Expr) -> Result<String> {
        Ok(self.write(e)?.asked().text)
    }

    /// The text of the negated condition.
    pub(super) fn negation(&mut self, e: &Expr) -> Result<String> {
        Ok(self.write(e)?.negated().text)
    }

    /// The text of a value, as an argument or on the right side of `=`.
    pub(super) fn value(&mut self, e: &Expr) -> Result<String> {
        Ok(self.write(e)?.text)
    }

    pub(super) fn write(&mut self, e: &Expr) -> Result<Written> {
        Ok(match &e.kind {
            ExprKind::Int(value) => Written::narrow(self.number(*value)),
            ExprKind::Place(place) => self.read(place)?,
            ExprKind::Unary(op, operand) => {
                let operand = self.write(operand)?;
                self.unary(*op, operand, e.span)?
            }
            ExprKind::Binary(op, left, right) => self.binary(*op, left, right)?,
            ExprKind::If(condition, then, otherwise) => {
                let (condition, then) = (self.write(condition)?, self.write(then)?);
                Written::choice(condition, then, self.write(otherwise)?)
            }
            ExprKind::Cas(place, old, new) => {
                let known = self.known(&place.name)?.clone();
                let at = self.place(&known, place)?;
                let old = self.value(old)?;
                // The program checks the new value against the range only if the `cas` succeeds, and C cannot express a check at that point.
                if known.range.is_some_and(|range| !self.is_inside(new, range)) {
                    return Err(cannot("a `cas` that is checked against a range", e.span));
                }
                let new = self.converted(known.wraps, new)?;
                let c_type = self.type_of(known.wraps);
                self.helpers.insert(Helper::Cas(c_type));
                Written::narrow(format!("{}(&{at}, {old}, {new})", cas(c_type, self.integer())))
            }
            ExprKind::Swap(place, value) => {
                let known = self.known(&place.name)?.clone();
                let at = self.place(&known, place)?;
                let value = self.written(&known, value)?;
                self.widened(&known, format!("atomic_exchange(&{at}, {value})"))
            }
            ExprKind::FetchAdd(place, value) => {
                let known = self.known(&place.name)?.clone();
                if known.range.is_some() {
                    return Err(cannot("a `fetch_add` that is checked against a range", e.span));
                }
                let at = self.place(&known, place)?;
                let value = self.converted(known.wraps, value)?;
                self.widened(&known, format!("atomic_fetch_add(&{at}, {value})"))
            }
            ExprKind::Call(name, arguments) => {
                let arguments: Vec<String> =
                    arguments.iter().map(|a| self.value(a)).collect::<Result<_>>()?;
                let callee = self.procedures.get(&name.text);
                let callee = callee.ok_or_else(|| cannot(&format!("`{}`", name.text), name.span))?;
                Written::plain(format!("{}({})", callee.name, arguments.join(", ")))
            }
            ExprKind::At(..) | ExprKind::Register(..) | ExprKind::Quantified(..) => {
                return Err(cannot("a formula about threads", e.span));
            }
        })
    }

    /// A constant, a register or a load.
    pub(super) fn read(&mut self, place: &Place) -> Result<Written> {
        let known = self.known(&place.name)?.clone();
        let at = self.place(&known, place)?;
        Ok(match known.role {
            Role::Shared => self.widened(&known, format!("load({at})")),
            Role::Mutex => return Err(cannot("the value of a mutex", place.name.span)),
            Role::Register => {
                self.read.insert(known.text.clone());
                self.widened(&known, at)
            }
            Role::Constant => {
                self.read.insert(known.text.clone());
                Written::narrow(at)
            }
        })
    }

    /// A value read from a variable, converted to `int64_t` if integers have that type: without the conversion, C promotes narrow types only to
    /// `int`.
    fn widened(&self, known: &Known, text: String) -> Written {
        match self.wide && known.wraps.is_some_and(|w| self.type_of(Some(w)) != "int64_t") {
            true => Written::prefix(format!("(int64_t){text}")),
            false => Written::plain(text),
        }
    }

    /// The C text of a variable or an array element.
    pub(super) fn place(&mut self, known: &Known, place: &Place) -> Result<String> {
        match &place.index {
            None => Ok(known.text.clone()),
            Some(index) => {
                let position = self.position(known, index)?;
                Ok(format!("{}[{position}]", known.text))
            }
        }
    }

    /// The index in the C array, whose indices begin at 0. An assertion checks the bounds unless the index is known to be within them. (Constant
    /// indices were checked when the program was read.)
    fn position(&mut self, known: &Known, index: &Expr) -> Result<String> {
        let indices = known.indices.unwrap_or(Range { low: 0, high: 0 });
        let written = self.write(index)?;
        let position = match indices.low {
            0 => written.text,
            low if low < 0 => format!("{} + {}", written.operand(), self.number(-low)),
            low => format!("{} - {}", written.operand(), self.number(low)),
        };
        if self.is_certain(index, indices) {
            return Ok(position);
        }
        self.helpers.insert(Helper::At);
        Ok(format!("at({position}, {})", self.number(indices.size() as i64)))
    }

    /// Whether an index is known to be within the bounds of its array.
    pub(super) fn is_certain(&self, index: &Expr, indices: Range) -> bool {
        let inside = |values: Range| indices.low <= values.low && values.high <= indices.high;
        match &index.kind {
            ExprKind::Place(place) if place.index.is_none() => self.known(&place.name).is_ok_and(|known| {
                known.role == Role::Constant
                    || known.role == Role::Register && known.values().is_some_and(inside)
            }),
            _ => self.is_constant(index),
        }
    }

    /// Whether an expression consists of constants only.
    pub(super) fn is_constant(&self, e: &Expr) -> bool {
        match &e.kind {
            ExprKind::Int(_) => true,
            ExprKind::Place(place) => {
                place.index.is_none() && self.known(&place.name).is_ok_and(|k| k.role == Role::Constant)
            }
            ExprKind::Unary(_, operand) => self.is_constant(operand),
            ExprKind::Binary(_, left, right) => self.is_constant(left) && self.is_constant(right),
            ExprKind::If(c, a, b) => [c, a, b].into_iter().all(|part| self.is_constant(part)),
            _ => false,
        }
    }

    /// The value to write to a variable: with an assertion if the variable has a range, otherwise converted so that it wraps around.
    pub(super) fn written(&mut self, known: &Known, value: &Expr) -> Result<String> {
        let Some(range) = known.range else { return self.converted(known.wraps, value) };
        let text = self.value(value)?;
        if self.is_inside(value, range) {
            return Ok(text);
        }
        self.helpers.insert(Helper::Within);
        Ok(format!("within({text}, {}, {})", self.number(range.low), self.number(range.high)))
    }

    /// Whether a value is known to be in a range. This is decided only for constants and truth values.
    fn is_inside(&self, value: &Expr, range: Range) -> bool {
        use BinaryOp::*;
        match &value.kind {
            ExprKind::Binary(Eq | Ne | Lt | Le | Gt | Ge | And | Or, ..)
            | ExprKind::Unary(UnaryOp::Not, _)
            | ExprKind::Cas(..) => range.contains(0) && range.contains(1),
            _ => self.constants.eval(value).is_ok_and(|value| range.contains(value)),
        }
    }

    /// A value converted to the type of a variable.
    pub(super) fn converted(&mut self, wraps: Option<UnaryOp>, value: &Expr) -> Result<String> {
        let written = self.write(value)?;
        let fits = |values: Range| self.constants.eval(value).is_ok_and(|value| values.contains(value));
        Ok(match wraps {
            Some(wraps) if !values_of(wraps).is_some_and(fits) => {
                format!("({}){}", self.type_of(Some(wraps)), enclosed(written))
            }
            _ => written.text,
        })
    }

    pub(super) fn unary(&mut self, op: UnaryOp, operand: Written, span: Span) -> Result<Written> {
        Ok(match op {
            UnaryOp::Neg => Written::prefix(format!("-{}", enclosed(self.computed(operand)))),
            UnaryOp::Not => operand.negated(),
            UnaryOp::BitNot => Written::prefix(format!("~{}", self.computed(operand).operand())),
            UnaryOp::Unsigned(_) if values_of(op).is_none() => return Err(cannot("`u64`", span)),
            UnaryOp::Unsigned(_) | UnaryOp::Signed(_) => {
                let wide = if self.wide { "(int64_t)" } else { "" };
                Written::prefix(format!("{wide}({}){}", self.type_of(Some(op)), enclosed(operand)))
            }
        })
    }

    fn binary(&mut self, op: BinaryOp, left: &Expr, right: &Expr) -> Result<Written> {
        let by = self.constants.eval(right).ok();
        let (left, right) = (self.write(left)?, self.write(right)?);
        Ok(self.combined(op, left, right, by))
    }

    /// An operand of an arithmetic operation, converted to `int64_t` if integers have that type.
    fn computed(&self, operand: Written) -> Written {
        match self.wide && operand.narrow {
            true => Written::prefix(format!("(int64_t){}", enclosed(operand))),
            false => operand,
        }
    }

    /// A binary operation; `constant` is the value of the right operand if that is a constant.
    pub(super) fn combined(
        &mut self,
        op: BinaryOp,
        left: Written,
        right: Written,
        constant: Option<i64>,
    ) -> Written {
        use BinaryOp::*;
        let bits = if self.wide { 64 } else { 32 };
        let by = constant.filter(|by| (0..bits - 1).contains(by));
        let (function, name) = match (op, by) {
            (And | Or, _) => {
                let text = format!("{} {} {}", left.side(op), op.symbol(), right.side(op));
                return Written::truth(text, Some(op));
            }
            (Eq | Ne | Lt | Le | Gt | Ge, _) => {
                let text = format!("{} {} {}", left.operand(), op.symbol(), right.operand());
                return Written::truth(text, Some(op));
            }
            // Shifting a negative number to the left is undefined in C, so the number is multiplied by a power of two instead.
            (Shl, Some(by)) => {
                let left = self.computed(left);
                return Written::binary(format!("{} * {}", left.operand(), self.number(1 << by)));
            }
            (Add | Sub | Mul | Div | Rem | BitAnd | BitOr | BitXor, _) | (Shr, Some(_)) => {
                let left = if right.narrow { self.computed(left) } else { left };
                return Written::binary(format!("{} {} {}", left.operand(), op.symbol(), right.operand()));
            }
            (Shl, None) => (Helper::ShiftLeft, "shift_left"),
            (Shr, None) => (Helper::ShiftRight, "shift_right"),
            (Min, _) => (Helper::Least, "least"),
            (Max, _) => (Helper::Greatest, "greatest"),
        };
        self.helpers.insert(function);
        Written::plain(format!("{name}({}, {})", left.text, right.text))
    }
}

/// The text as the operand of a conversion, in parentheses if necessary.
fn enclosed(written: Written) -> String {
    match written.shape {
        Shape::Plain => written.text,
        _ => format!("({})", written.text),
    }
}
