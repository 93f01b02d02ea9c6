//! Expressions in both languages. C promotes and converts values implicitly; `.fw` has mathematical numbers, so its expressions wrap them explicitly
//! wherever C wraps.

use super::cells::Type;
use super::{REGISTERS, Writer};

/// The type in which C evaluates an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Int,
    Unsigned,
    Long,
}

/// An expression in both languages, and the range of its values.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub fw: String,
    pub c: String,
    pub kind: Kind,
    pub low: i64,
    pub high: i64,
}

/// The range of values of registers.
const SMALL: (i64, i64) = (-32_768, 65_535);

impl Value {
    pub fn new(fw: String, c: String, kind: Kind, (low, high): (i64, i64)) -> Self {
        Value { fw, c, kind, low, high }
    }

    pub fn constant(value: i64) -> Self {
        Value::new(format!("({value})"), format!("({value})"), Kind::Int, (value, value))
    }

    /// The value of a cell of this type, after promotion.
    pub fn of(of: Type, fw: String, c: String) -> Self {
        let kind = match of {
            Type::U32 => Kind::Unsigned,
            Type::I64 => Kind::Long,
            _ => Kind::Int,
        };
        Value::new(fw, c, kind, of.values())
    }

    /// The value converted to `kind`, the common type of two operands.
    fn to(self, kind: Kind) -> Value {
        match kind == Kind::Unsigned && self.low < 0 {
            true => Value { fw: format!("u32({})", self.fw), low: 0, high: u32::MAX.into(), kind, ..self },
            false => Value { kind, ..self },
        }
    }

    fn fits(&self, (low, high): (i64, i64)) -> bool {
        low <= self.low && self.high <= high
    }
}

impl Writer<'_> {
    pub(super) fn read_register(&mut self) -> Value {
        let number = self.random.below(REGISTERS);
        let c = self.register(number);
        Value::new(format!("r{number}"), c, Kind::Int, SMALL)
    }

    /// A constant, a register, or, with `loads`, a load.
    fn leaf(&mut self, loads: bool) -> Value {
        match self.random.below(if loads { 6 } else { 4 }) {
            0 | 1 => {
                let value = *self.random.pick(&[0, 0, 1, 1, 2, -1, 3, 255]);
                Value::constant(value)
            }
            2 | 3 => self.read_register(),
            _ => self.load(),
        }
    }

    pub(super) fn value(&mut self, depth: usize, loads: bool) -> Value {
        if depth == 0 || self.random.one_in(3) {
            return self.leaf(loads);
        }
        let left = self.value(depth - 1, loads);
        match self.random.below(8) {
            0 => self.unary(left),
            1 => {
                let of = *self.random.pick(&[Type::I8, Type::U8, Type::I16, Type::U16]);
                self.cast(left, of)
            }
            2 => {
                let condition = self.condition(1, false);
                let right = self.value(depth - 1, loads);
                either(condition, left, right)
            }
            3 => self.condition(depth, loads),
            _ => {
                let right = self.value(depth - 1, loads);
                self.binary(left, right)
            }
        }
    }

    pub(super) fn cast(&mut self, value: Value, of: Type) -> Value {
        let fw = of.converted(&value.fw);
        Value::of(of, fw, format!("(({}){})", of.c(), value.c))
    }

    fn unary(&mut self, value: Value) -> Value {
        let Value { fw, c, kind, low, high } = value.clone();
        match (self.random.below(3), kind) {
            (0, _) => Value::new(format!("(!{fw})"), format!("(!{c})"), Kind::Int, (0, 1)),
            (1, Kind::Unsigned) => {
                Value::new(format!("u32(-{fw})"), format!("(-{c})"), kind, (0, u32::MAX.into()))
            }
            (1, _) => Value::new(format!("(-{fw})"), format!("(-{c})"), kind, (-high, -low)),
            (_, Kind::Unsigned) => {
                Value::new(format!("u32(~{fw})"), format!("(~{c})"), kind, (0, u32::MAX.into()))
            }
            _ => Value::new(format!("(~{fw})"), format!("(~{c})"), kind, (-high - 1, -low - 1)),
        }
    }

    fn binary(&mut self, left: Value, right: Value) -> Value {
        let op = *self.random.pick(&["+", "+", "-", "*", "&", "|", "^", "/", "%", ">>", "<<"]);
        let right = match op {
            "/" | "%" => Value::constant(2 + self.random.below(3) as i64),
            ">>" | "<<" => Value::constant(1),
            _ => right,
        };
        let (kind, alone) = (common(&left, &right), left.clone());
        let (left, right) = (left.to(kind), right.to(kind));
        let range = match op {
            "+" => Some((left.low + right.low, left.high + right.high)),
            "-" => Some((left.low - right.high, left.high - right.low)),
            "*" => {
                let ends = [
                    (left.low, right.low),
                    (left.low, right.high),
                    (left.high, right.low),
                    (left.high, right.high),
                ];
                let ends: Option<Vec<i64>> = ends.into_iter().map(|(a, b)| a.checked_mul(b)).collect();
                ends.and_then(|ends| Some((*ends.iter().min()?, *ends.iter().max()?)))
            }
            "/" | "%" => {
                let most = left.low.abs().max(left.high.abs());
                Some((if left.low < 0 { -most } else { 0 }, most))
            }
            ">>" => Some((left.low.min(0), left.high.max(0))),
            // In C, only non-negative values may be shifted to the left.
            "<<" if left.low >= 0 => Some((0, left.high * 2)),
            "<<" => None,
            _ => {
                // The result of a bit operation has at most as many bits as the larger operand.
                let most = [left.low, left.high, right.low, right.high].map(|v| if v < 0 { !v } else { v });
                let bits = most.into_iter().max().unwrap_or(0);
                let all = (1_i64 << (64 - bits.leading_zeros())) - 1;
                let low = if left.low < 0 || right.low < 0 { -all - 1 } else { 0 };
                Some((low, all))
            }
        };
        let (fw, c) = (format!("({} {op} {})", left.fw, right.fw), format!("({} {op} {})", left.c, right.c));
        match (kind, range) {
            (Kind::Unsigned, Some(_)) => Value::new(format!("u32({fw})"), c, kind, (0, u32::MAX.into())),
            (Kind::Int, Some((low, high))) if i32::MIN as i64 <= low && high <= i32::MAX as i64 => {
                Value::new(fw, c, kind, (low, high))
            }
            (Kind::Long, Some((low, high))) if low > -(1 << 52) && high < 1 << 52 => {
                Value::new(fw, c, kind, (low, high))
            }
            // The operation could overflow, so the left operand is used alone.
            _ => alone,
        }
    }

    /// A condition, with the value 0 or 1.
    pub(super) fn condition(&mut self, depth: usize, loads: bool) -> Value {
        let truth = |fw, c| Value::new(fw, c, Kind::Int, (0, 1));
        match self.random.below(if depth > 0 { 6 } else { 4 }) {
            4 => {
                let op = *self.random.pick(&["&&", "||"]);
                let left = self.condition(depth - 1, loads);
                let right = self.condition(depth - 1, loads);
                truth(format!("({} {op} {})", left.fw, right.fw), format!("({} {op} {})", left.c, right.c))
            }
            5 => {
                let inner = self.condition(depth - 1, loads);
                truth(format!("(!{})", inner.fw), format!("(!{})", inner.c))
            }
            _ => {
                let left = self.value(depth.min(1), loads);
                let right = if self.random.one_in(2) { self.leaf(false) } else { Value::constant(1) };
                let kind = common(&left, &right);
                let (left, right) = (left.to(kind), right.to(kind));
                let op = *self.random.pick(&["==", "==", "!=", "!=", "<", "<=", ">", ">="]);
                truth(format!("({} {op} {})", left.fw, right.fw), format!("({} {op} {})", left.c, right.c))
            }
        }
    }

    /// Casts a value so that it fits into a register.
    pub(super) fn small(&mut self, value: Value) -> Value {
        match value.fits(SMALL) {
            true => value,
            false => {
                let of = *self.random.pick(&[Type::I8, Type::U8, Type::I16, Type::U16]);
                self.cast(value, of)
            }
        }
    }

    /// Casts a value so that a cell of this type remains within its range of values ([`Type::values`]).
    pub(super) fn stored(&mut self, of: Type, value: Value) -> Value {
        match matches!(of, Type::I32 | Type::I64) {
            true => self.small(value),
            false => value,
        }
    }
}

fn either(condition: Value, then: Value, otherwise: Value) -> Value {
    let kind = common(&then, &otherwise);
    let (then, otherwise) = (then.to(kind), otherwise.to(kind));
    let range = (then.low.min(otherwise.low), then.high.max(otherwise.high));
    let fw = format!("({} ? {} : {})", condition.fw, then.fw, otherwise.fw);
    Value::new(fw, format!("({} ? {} : {})", condition.c, then.c, otherwise.c), kind, range)
}

/// The common type of two operands.
fn common(left: &Value, right: &Value) -> Kind {
    match (left.kind, right.kind) {
        (Kind::Long, _) | (_, Kind::Long) => Kind::Long,
        (Kind::Unsigned, _) | (_, Kind::Unsigned) => Kind::Unsigned,
        _ => Kind::Int,
    }
}
