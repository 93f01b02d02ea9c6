//! Random expressions of threads, and constants.

use fencewright_lang::ast::*;
use fencewright_lang::fw;
use fencewright_program::{BinaryOp, Numbers, UnaryOp, Width};

use super::super::declarations::Interval;
use super::{Generator, NOWHERE, RegisterShape, expr, int, name, named};

impl Generator {
    /// A constant expression with this value.
    pub fn constant(&mut self, value: i64) -> Expr {
        let same: Vec<String> = self
            .constants
            .iter()
            .filter(|(_, i)| *i == (value, value))
            .map(|(name, _)| name.clone())
            .collect();
        match self.random.below(6) {
            0 | 1 if !same.is_empty() => self.one_of(&same),
            2 => {
                let part = self.random.between(-1, 2);
                let parts = (Box::new(int(value - part)), Box::new(int(part)));
                expr(ExprKind::Binary(BinaryOp::Add, parts.0, parts.1))
            }
            3 => expr(ExprKind::Unary(UnaryOp::Neg, Box::new(int(-value)))),
            _ => int(value),
        }
    }

    pub fn one_of(&mut self, names: &[String]) -> Expr {
        named(self.random.pick::<String>(names))
    }

    pub fn range(&mut self, (low, high): Interval) -> RangeExpr {
        let inclusive = self.one_in(2);
        let high = high + i64::from(!inclusive);
        RangeExpr { low: self.constant(low), high: self.constant(high), inclusive, span: NOWHERE }
    }

    pub fn operator(&mut self) -> BinaryOp {
        use BinaryOp::*;
        let real: &[BinaryOp] = &[Add, Add, Sub, Mul, Min, Max, Eq, Ne, Lt, Le, Gt, Ge];
        let whole: &[BinaryOp] = &[
            Add, Sub, Sub, Mul, Div, Div, Rem, BitAnd, BitOr, BitXor, Shl, Shr, Min, Max, Eq, Ne, Lt, Le, Gt,
            Ge,
        ];
        *self.random.pick(if self.numbers == Numbers::Real { real } else { whole })
    }

    pub fn unary_operator(&mut self) -> UnaryOp {
        use UnaryOp::*;
        let ops: &[UnaryOp] = match self.numbers {
            Numbers::Real => &[Neg, Not],
            Numbers::Nat => &[Neg, Not, BitNot, Unsigned(Width::Bits8)],
            Numbers::Int => &[Neg, Not, BitNot, Unsigned(Width::Bits8), Signed(Width::Bits8)],
        };
        *self.random.pick(ops)
    }

    /// A small number, or rarely one close to the upper limit.
    pub fn number(&mut self) -> Expr {
        match self.random.below(100) {
            0 => int(i64::MAX),
            1..=15 => int(-1),
            _ => int(self.random.between(0, 2)),
        }
    }

    /// An expression of a thread.
    pub fn value(&mut self, depth: usize) -> Expr {
        match self.random.below(if depth == 0 { 8 } else { 20 }) {
            0..=2 => self.number(),
            3 if !self.constants.is_empty() => {
                let constants: Vec<String> = self.constants.iter().map(|(name, _)| name.clone()).collect();
                self.one_of(&constants)
            }
            3..=5 => match self.register_place() {
                Some((place, _)) => expr(ExprKind::Place(place)),
                None => int(1),
            },
            6 | 7 => self.load(),
            8 | 9 if self.indivisible.is_none() => self.read_modify_write(),
            10 => {
                let op = self.unary_operator();
                expr(ExprKind::Unary(op, Box::new(self.value(depth - 1))))
            }
            11 => {
                let (condition, then) = (Box::new(self.value(depth - 1)), Box::new(self.value(depth - 1)));
                expr(ExprKind::If(condition, then, Box::new(self.value(depth - 1))))
            }
            12..=14 => {
                let op = *self.random.pick(&[BinaryOp::And, BinaryOp::Or]);
                let parts = (0..2 + self.random.below(2)).map(|_| self.value(depth - 1)).collect();
                fw::chain(op, parts)
            }
            _ => {
                let op = self.operator();
                let left = self.value(depth - 1);
                expr(ExprKind::Binary(op, Box::new(left), Box::new(self.value(depth - 1))))
            }
        }
    }

    /// A condition that mostly holds for some values and not for others.
    pub fn condition(&mut self) -> Expr {
        match self.random.below(13) {
            0 => int(self.random.between(0, 1)),
            1 => self.value(2),
            2 | 3 => {
                let op = *self.random.pick(&[BinaryOp::And, BinaryOp::Or]);
                let parts = vec![self.condition(), self.condition()];
                fw::chain(op, parts)
            }
            4 => expr(ExprKind::Unary(UnaryOp::Not, Box::new(self.condition()))),
            5 if self.indivisible.is_none() => self.read_modify_write(),
            6 => {
                let (condition, then) = (Box::new(self.condition()), Box::new(self.condition()));
                expr(ExprKind::If(condition, then, Box::new(self.condition())))
            }
            _ => {
                use BinaryOp::*;
                let op = *self.random.pick(&[Eq, Eq, Ne, Lt, Le, Gt, Ge]);
                let left = if self.one_in(2) { self.load() } else { self.value(1) };
                let right = if self.one_in(5) { self.value(1) } else { int(self.random.between(0, 1)) };
                expr(ExprKind::Binary(op, Box::new(left), Box::new(right)))
            }
        }
    }

    /// A register that is not an array.
    fn register_name(&mut self) -> Option<String> {
        let scalars: Vec<&RegisterShape> = self.registers.iter().filter(|r| r.indices.is_none()).collect();
        (!scalars.is_empty()).then(|| self.random.pick(&scalars).name.clone())
    }

    /// A register, or an element of an array of registers.
    pub fn register_place(&mut self) -> Option<(Place, RegisterShape)> {
        let shape = (!self.registers.is_empty()).then(|| self.random.pick(&self.registers).clone())?;
        Some((self.element(shape.name.clone(), shape.indices, false), shape))
    }

    pub fn load(&mut self) -> Expr {
        let place = self.shared_place();
        expr(ExprKind::Place(place))
    }

    pub fn read_modify_write(&mut self) -> Expr {
        let place = self.shared_place();
        let kind = match self.random.below(4) {
            0 | 1 => {
                let deep = usize::from(self.one_in(3));
                let old = Box::new(self.value(deep));
                ExprKind::Cas(place, old, Box::new(self.value(1)))
            }
            2 => ExprKind::Swap(place, Box::new(self.value(1))),
            _ => ExprKind::FetchAdd(place, Box::new(self.value(1))),
        };
        expr(kind)
    }

    /// A shared variable or an element of a shared array. Only an index that is not constant may be out of bounds.
    pub fn shared_place(&mut self) -> Place {
        let number = self.random.below(self.shared.len());
        let shared = &self.shared[number];
        let (text, indices, open) = (shared.name.clone(), shared.indices, shared.open);
        self.element(text, indices, open)
    }

    /// A mutex, if there are any.
    pub fn mutex_place(&mut self) -> Option<Place> {
        let mutex = self.mutexes.first()?;
        let (text, indices) = (mutex.name.clone(), mutex.indices);
        Some(self.element(text, indices, false))
    }

    fn element(&mut self, text: String, indices: Option<Interval>, open: bool) -> Place {
        let index = indices.map(|interval| Box::new(self.index(interval, open)));
        Place { name: name(text), index }
    }

    fn index(&mut self, (low, high): Interval, open: bool) -> Expr {
        let inside: Vec<String> = self
            .constants
            .iter()
            .filter(|(_, (least, greatest))| low <= *least && *greatest <= high)
            .map(|(name, _)| name.clone())
            .collect();
        match self.random.below(8) {
            0 | 1 if !inside.is_empty() => self.one_of(&inside),
            2 if open => int(high + 1),
            3..=5 => {
                let Some(register) = self.register_name() else { return int(low) };
                match self.random.below(4) {
                    0 => {
                        let by = self.number();
                        expr(ExprKind::Binary(BinaryOp::Add, Box::new(named(&register)), Box::new(by)))
                    }
                    1 if self.numbers != Numbers::Real => {
                        let by = int(self.random.between(1, 2));
                        expr(ExprKind::Binary(BinaryOp::Rem, Box::new(named(&register)), Box::new(by)))
                    }
                    _ => named(&register),
                }
            }
            6 if self.shared.iter().any(|s| s.indices.is_none()) => {
                let scalars: Vec<String> =
                    self.shared.iter().filter(|s| s.indices.is_none()).map(|s| s.name.clone()).collect();
                self.one_of(&scalars)
            }
            _ => {
                let value = self.random.between(low, high);
                self.constant(value)
            }
        }
    }
}
