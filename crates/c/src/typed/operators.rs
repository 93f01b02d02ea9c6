//! Operators (C11 6.5.3 to 6.5.16), and `_Generic`, which selects an expression.

use super::conversions::{convert, floating};
use super::expressions::Operand;
use super::tree::{Expr, ExprKind, Place, Type, TypeKind};
use super::types::{LONG, compatible};
use super::{Typer, Typing};
use crate::arithmetic::Arithmetic;
use crate::ast::{self, BinaryOp, UnaryOp};
use crate::error::Error;

impl Typer<'_> {
    /// `+`, `-`, `!` and `~`.
    pub(super) fn unary(&mut self, op: UnaryOp, inner: &ast::Expr, expr: &ast::Expr) -> Typing<Expr> {
        let value = self.value(inner)?;
        if op == UnaryOp::Not {
            let value = self.scalar(value)?;
            return Ok(self.made(ExprKind::Not(value.into()), Arithmetic::INT, expr));
        }
        let value = self.promoted(value)?;
        let ty = value.ty.clone();
        Ok(match op {
            UnaryOp::Minus => self.made(ExprKind::Negate(value.into()), ty, expr),
            UnaryOp::Complement => self.made(ExprKind::Complement(value.into()), ty, expr),
            _ => value,
        })
    }

    /// An error if nothing can be assigned to the place.
    pub(super) fn writable(&self, place: &Place) -> Typing<()> {
        match &place.ty.kind {
            TypeKind::Array(..) | TypeKind::Function(_) | TypeKind::Void => {
                Err(Error::new(place.span, format!("`{}` cannot be assigned to", self.said(&place.ty)))
                    .help("assign to its elements, or copy it with `memcpy`"))
            }
            _ => Ok(()),
        }
    }

    /// `++` and `--`.
    pub(super) fn step(&mut self, step: ast::Step, inner: &ast::Expr, expr: &ast::Expr) -> Typing<Expr> {
        let place = self.place(inner, "what is counted")?;
        self.writable(&place)?;
        let (op, left, value) = match place.ty.arithmetic() {
            Some(values) => {
                let left = self.promotion(&place, values);
                let one = self.made(ExprKind::Constant(1), left, expr);
                (if step.up { BinaryOp::Add } else { BinaryOp::Subtract }, Type::from(left), one)
            }
            None if place.ty.pointee().is_some() => {
                let by = ExprKind::Constant(if step.up { 1 } else { -1 });
                (BinaryOp::Add, place.ty.unqualified(), self.made(by, LONG, expr))
            }
            None => return Err(self.not_counted(&place)),
        };
        let ty = place.ty.unqualified();
        let kind = ExprKind::Modify { place: place.into(), op, left, value: value.into(), old: !step.prefix };
        Ok(self.made(kind, ty, expr))
    }

    fn not_counted(&self, place: &Place) -> Error {
        match place.ty.kind {
            TypeKind::Floating(_) => floating(place.span),
            _ => Error::new(
                place.span,
                format!("a number or a pointer is expected here, and this is `{}`", self.said(&place.ty)),
            ),
        }
    }

    /// The promoted type of a place with this integer type, in which arithmetic on its value is computed; bit-fields of less than 32 bits promote to
    /// `int`.
    fn promotion(&self, place: &Place, values: Arithmetic) -> Arithmetic {
        match self.bits(place) {
            Some(bits) if bits < 32 => Arithmetic::INT,
            _ => Arithmetic::Integer(values.promoted()),
        }
    }

    /// `place op= value`.
    pub(super) fn compound_assignment(
        &mut self,
        op: BinaryOp,
        place: &ast::Expr,
        value: &ast::Expr,
        expr: &ast::Expr,
    ) -> Typing<Expr> {
        let place = self.place(place, "the target of an assignment")?;
        self.writable(&place)?;
        let value = self.value(value)?;
        let ty = place.ty.unqualified();
        let (op, left, value) = match (place.ty.arithmetic(), op) {
            (Some(values), BinaryOp::ShiftLeft | BinaryOp::ShiftRight) => {
                (op, Type::from(self.promotion(&place, values)), self.promoted(value)?)
            }
            (Some(values), _) => {
                let value = self.promoted(value)?;
                let other = value.ty.arithmetic().unwrap_or(Arithmetic::INT);
                let left = Type::from(Arithmetic::Integer(self.promotion(&place, values).common(other)));
                let value = convert(value, &left);
                (op, left, value)
            }
            (None, BinaryOp::Add | BinaryOp::Subtract) if place.ty.pointee().is_some() => {
                let by = self.distance(value, op == BinaryOp::Subtract, expr)?;
                (BinaryOp::Add, ty.clone(), by)
            }
            _ => return Err(self.not_counted(&place)),
        };
        let kind = ExprKind::Modify { place: place.into(), op, left, value: value.into(), old: false };
        Ok(self.made(kind, ty, expr))
    }

    /// The number of elements by which a pointer is moved, as a `long`; negated if the pointer moves `back`.
    fn distance(&mut self, value: Expr, back: bool, at: &ast::Expr) -> Typing<Expr> {
        let value = convert(self.promoted(value)?, &LONG.into());
        Ok(match back {
            true => self.made(ExprKind::Negate(value.into()), LONG, at),
            false => value,
        })
    }

    /// A binary operator.
    pub(super) fn binary(
        &mut self,
        op: BinaryOp,
        a: &ast::Expr,
        b: &ast::Expr,
        expr: &ast::Expr,
    ) -> Typing<Expr> {
        use BinaryOp::*;
        let (a, b) = (self.value(a)?, self.value(b)?);
        let pointers = (a.ty.pointee().is_some(), b.ty.pointee().is_some());
        let kind = match op {
            And | Or => {
                let (a, b) = (self.scalar(a)?.into(), self.scalar(b)?.into());
                let kind = if op == And { ExprKind::And(a, b) } else { ExprKind::Or(a, b) };
                return Ok(self.made(kind, Arithmetic::INT, expr));
            }
            Less | Greater | LessOrEqual | GreaterOrEqual | Equal | NotEqual => {
                let (a, b) = match pointers {
                    (false, false) => self.common(a, b)?,
                    _ => {
                        let (a, b) = (self.scalar(a)?, self.scalar(b)?);
                        self.common_pointer(a, b)?
                    }
                };
                return Ok(self.made(ExprKind::Binary(op, a.into(), b.into()), Arithmetic::INT, expr));
            }
            ShiftLeft | ShiftRight => {
                let (a, b) = (self.promoted(a)?, self.promoted(b)?);
                let ty = a.ty.clone();
                return Ok(self.made(ExprKind::Binary(op, a.into(), b.into()), ty, expr));
            }
            Add if pointers == (true, false) => return self.moved(a, b, false, expr),
            Add if pointers == (false, true) => return self.moved(b, a, false, expr),
            Subtract if pointers == (true, false) => return self.moved(a, b, true, expr),
            Subtract if pointers == (true, true) => {
                let (a, b) = self.common_pointer(a, b)?;
                let size = self.element_size(&a.ty, expr)?;
                let kind = match (&a.kind, &b.kind) {
                    (ExprKind::Constant(x), ExprKind::Constant(y)) => ExprKind::Constant((x - y) / size),
                    _ => ExprKind::Difference(a.into(), b.into()),
                };
                return Ok(self.made(kind, LONG, expr));
            }
            _ => {
                let (a, b) = self.common(a, b)?;
                let ty = a.ty.clone();
                (ExprKind::Binary(op, a.into(), b.into()), ty)
            }
        };
        Ok(self.made(kind.0, kind.1, expr))
    }

    /// The size of the pointee in bytes, which scales pointer arithmetic; at least 1, since differences are divided by it.
    fn element_size(&mut self, pointer: &Type, expr: &ast::Expr) -> Typing<i128> {
        let to = pointer.pointee().cloned().unwrap_or(Type::void());
        Ok(i128::from(self.size(&to, expr.span)?.max(1)))
    }

    /// A pointer moved forwards, or `back`, by a number of elements.
    fn moved(&mut self, pointer: Expr, by: Expr, back: bool, expr: &ast::Expr) -> Typing<Expr> {
        let ty = pointer.ty.clone();
        let size = self.element_size(&ty, expr)?;
        let by = self.distance(by, back, expr)?;
        if let (ExprKind::Constant(from), ExprKind::Constant(by)) = (&pointer.kind, &by.kind) {
            let value = super::constants::converted(&ty, from + by * size);
            return Ok(self.made(ExprKind::Constant(value), ty, expr));
        }
        Ok(self.made(ExprKind::Move(pointer.into(), by.into()), ty, expr))
    }

    /// `a ? b : c` and `a ?: c` (C11 6.5.15).
    pub(super) fn conditional(
        &mut self,
        condition: &ast::Expr,
        a: Option<&ast::Expr>,
        b: &ast::Expr,
        expr: &ast::Expr,
    ) -> Typing<Expr> {
        let condition = self.value(condition)?;
        let condition = self.scalar(condition)?;
        let Some(a) = a else {
            let b = self.value(b)?;
            // The condition is also the value of the first alternative. The conversion to the common type does not change whether this value is zero.
            let (a, b) = self.alternatives(condition, b, expr)?;
            let ty = a.ty.clone();
            return Ok(self.made(ExprKind::Otherwise(a.into(), b.into()), ty, expr));
        };
        let (a, b) = (self.value(a)?, self.value(b)?);
        let (a, b) = self.alternatives(a, b, expr)?;
        let ty = a.ty.clone();
        Ok(self.made(ExprKind::Conditional(condition.into(), a.into(), b.into()), ty, expr))
    }

    /// The second and third operand of a conditional expression, converted to a common type.
    fn alternatives(&mut self, a: Expr, b: Expr, expr: &ast::Expr) -> Typing<(Expr, Expr)> {
        match (&a.ty.kind, &b.ty.kind) {
            (TypeKind::Integer(_), TypeKind::Integer(_)) => self.common(a, b),
            (TypeKind::Record(x), TypeKind::Record(y)) if x == y => Ok((a, b)),
            (TypeKind::Void, _) | (_, TypeKind::Void) => {
                Ok((convert(a, &Type::void()), convert(b, &Type::void())))
            }
            (TypeKind::Pointer(_), TypeKind::Integer(_) | TypeKind::Pointer(_))
            | (TypeKind::Integer(_), TypeKind::Pointer(_)) => self.common_pointer(a, b),
            (TypeKind::Floating(x), TypeKind::Floating(y)) if x == y => Ok((a, b)),
            (TypeKind::Floating(_), _) | (_, TypeKind::Floating(_)) => Err(floating(expr.span)),
            _ => {
                let (x, y) = (self.said(&a.ty), self.said(&b.ty));
                Err(Error::new(expr.span, format!("the alternatives are `{x}` and `{y}`"))
                    .help("give both the same type"))
            }
        }
    }

    /// `_Generic` (C11 6.5.1.1).
    pub(super) fn generic_selection(
        &mut self,
        decides: &ast::Expr,
        choices: &[(Option<ast::Type>, ast::Expr)],
        expr: &ast::Expr,
    ) -> Typing<Operand> {
        let ty = self.value(decides)?.ty;
        let mut chosen = None;
        for (choice, result) in choices {
            let Some(choice) = choice else { continue };
            let choice = self.ty(choice, expr.span)?;
            if compatible(&choice, &ty) && !choice.atomic {
                if chosen.is_some() {
                    return Err(Error::new(expr.span, format!("two choices fit `{}`", self.said(&ty))).help(
                        "`char` and `signed char`, and types that differ in `const` only, are one type here",
                    ));
                }
                chosen = Some(result);
            }
        }
        let default = choices.iter().find(|(ty, _)| ty.is_none()).map(|(_, result)| result);
        match chosen.or(default) {
            Some(result) => self.operand(result),
            None => Err(Error::new(expr.span, format!("no choice fits `{}`", self.said(&ty)))
                .help("add a choice for it, or `default`")),
        }
    }
}
