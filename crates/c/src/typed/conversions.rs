//! Conversions (C11 6.3): implicit conversions and casts. Where gcc only warns about a conversion, so does this module.

use fencewright_program::Span;

use super::constants::{folded, is_null};
use super::tree::{Expr, ExprKind, Place, PlaceKind, Type, TypeKind};
use super::types::compatible;
use super::{Typer, Typing};
use crate::arithmetic::Arithmetic;
use crate::ast::Rank;
use crate::error::Error;

/// Converts a value to a type. The caller has checked that C allows this conversion.
pub(super) fn convert(expr: Expr, to: &Type) -> Expr {
    let ty = to.unqualified();
    if expr.ty == ty {
        return expr;
    }
    let (span, expansion) = (expr.span, expr.expansion);
    let inner = match expr.kind {
        // If a promotion preserves all values, a conversion of its result equals the same conversion of its operand.
        ExprKind::Convert(inner) if only_wider(&inner.ty, &expr.ty) => inner,
        _ => expr.into(),
    };
    if inner.ty == ty {
        return Expr { span, expansion, ..*inner };
    }
    folded(Expr { kind: ExprKind::Convert(inner), ty, span, expansion })
}

/// Whether every value of type `from` is also a value of type `to`.
fn only_wider(from: &Type, to: &Type) -> bool {
    match (from.arithmetic(), to.arithmetic()) {
        (Some(from), Some(to)) => to.has(from.least()) && to.has(from.greatest()),
        _ => false,
    }
}

/// The error for floating-point arithmetic.
pub(super) fn floating(at: Span) -> Error {
    Error::new(at, "floating-point arithmetic is not supported")
        .help("use integers, scaled if fractions matter")
}

impl Typer<'_> {
    /// Integer promotion (C11 6.3.1.1 p. 2); the promoted type of a bit-field depends on its width.
    pub(super) fn promoted(&self, expr: Expr) -> Typing<Expr> {
        let Some(values) = expr.ty.arithmetic() else {
            return Err(match expr.ty.kind {
                TypeKind::Floating(_) => floating(expr.span),
                _ => Error::new(
                    expr.span,
                    format!("an integer is expected here, and this is `{}`", self.said(&expr.ty)),
                ),
            });
        };
        let narrow = match &expr.kind {
            ExprKind::Load(place) => self.bits(place).is_some_and(|bits| bits < 32),
            _ => false,
        };
        let small = matches!(values, Arithmetic::Integer(integer) if integer.rank <= Rank::Int);
        let to = if narrow && small { Arithmetic::INT } else { Arithmetic::Integer(values.promoted()) };
        Ok(convert(expr, &to.into()))
    }

    /// The width of a place that is a bit-field; `None` otherwise.
    pub(super) fn bits(&self, place: &Place) -> Option<u32> {
        match (&place.kind, place) {
            (PlaceKind::Field(inner, number), _) => match inner.ty.kind {
                TypeKind::Record(id) => self.records[id.0 as usize].fields[*number as usize].bits,
                _ => None,
            },
            _ => None,
        }
    }

    /// The usual arithmetic conversions (C11 6.3.1.8).
    pub(super) fn common(&self, a: Expr, b: Expr) -> Typing<(Expr, Expr)> {
        let (a, b) = (self.promoted(a)?, self.promoted(b)?);
        let (Some(x), Some(y)) = (a.ty.arithmetic(), b.ty.arithmetic()) else {
            return Err(Error::new(a.span, "integers are expected here"));
        };
        let ty = Arithmetic::Integer(x.common(y)).into();
        Ok((convert(a, &ty), convert(b, &ty)))
    }

    /// The default promotion of an argument that has no declared parameter (C11 6.5.2.2 p. 6).
    pub(super) fn unguided(&mut self, expr: Expr) -> Typing<Expr> {
        match expr.ty.kind {
            TypeKind::Integer(_) => self.promoted(expr),
            TypeKind::Void => Err(Error::new(expr.span, "this has no value")),
            _ => Ok(expr),
        }
    }

    /// Passes on a value that can be used as a condition (an integer or a pointer); an error for other values.
    pub(super) fn scalar(&self, expr: Expr) -> Typing<Expr> {
        match &expr.ty.kind {
            TypeKind::Integer(_) | TypeKind::Pointer(_) => Ok(expr),
            TypeKind::Floating(_) => Err(floating(expr.span)),
            _ => Err(Error::new(
                expr.span,
                format!("a number or a pointer is expected here, and this is `{}`", self.said(&expr.ty)),
            )),
        }
    }

    /// An implicit conversion (C11 6.5.16.1): of an assigned value, an argument, or a returned value. Messages use `what` for the target of the
    /// value.
    pub(super) fn implicit(&mut self, expr: Expr, to: &Type, what: &str) -> Typing<Expr> {
        let span = expr.span;
        match (&expr.ty.kind, &to.kind) {
            (_, TypeKind::Void) | (TypeKind::Integer(_), TypeKind::Integer(_)) => Ok(convert(expr, to)),
            (TypeKind::Pointer(_), TypeKind::Integer(Arithmetic::Bool)) => Ok(convert(expr, to)),
            (TypeKind::Record(a), TypeKind::Record(b)) if a == b => Ok(expr),
            (TypeKind::Floating(a), TypeKind::Floating(b)) if a == b => Ok(expr),
            (TypeKind::Floating(_), _) | (_, TypeKind::Floating(_)) => Err(floating(span)),
            (TypeKind::Pointer(from), TypeKind::Pointer(into)) => {
                let fits = from.is_void()
                    || into.is_void()
                    || is_null(&expr)
                    || compatible(from, into)
                    || same_but_for_sign(from, into);
                if !fits {
                    let (from, into) = (self.said(&expr.ty), self.said(to));
                    self.warn(span, format!("{what} of type `{into}` from a pointer of type `{from}`"));
                }
                Ok(convert(expr, to))
            }
            (TypeKind::Integer(_), TypeKind::Pointer(_)) => {
                if !is_null(&expr) {
                    let into = self.said(to);
                    self.warn(span, format!("{what} of type `{into}` from an integer without a cast"));
                }
                Ok(convert(expr, to))
            }
            (TypeKind::Pointer(_), TypeKind::Integer(_)) => {
                let from = self.said(&expr.ty);
                self.warn(
                    span,
                    format!("{what}, an integer, from a pointer of type `{from}` without a cast"),
                );
                Ok(convert(expr, to))
            }
            (TypeKind::Void, _) => {
                Err(Error::new(span, "this has no value")
                    .help("a function that returns `void` has no result"))
            }
            _ => {
                let (from, into) = (self.said(&expr.ty), self.said(to));
                Err(Error::new(span, format!("{what} of type `{into}` from a value of type `{from}`"))
                    .help("convert it member by member, or use pointers"))
            }
        }
    }

    /// `(type) value`.
    pub(super) fn cast(&mut self, expr: Expr, to: &Type) -> Typing<Expr> {
        match (&expr.ty.kind, &to.kind) {
            (_, TypeKind::Void) => Ok(convert(expr, to)),
            (TypeKind::Integer(_) | TypeKind::Pointer(_), TypeKind::Integer(_) | TypeKind::Pointer(_)) => {
                Ok(convert(expr, to))
            }
            (TypeKind::Floating(a), TypeKind::Floating(b)) if a == b => Ok(expr),
            (TypeKind::Record(a), TypeKind::Record(b)) if a == b => Ok(expr),
            (TypeKind::Floating(_), _) | (_, TypeKind::Floating(_)) => Err(floating(expr.span)),
            (TypeKind::Void, _) => Err(Error::new(expr.span, "this has no value")),
            _ => {
                let (from, into) = (self.said(&expr.ty), self.said(to));
                Err(Error::new(expr.span, format!("`{from}` cannot be converted to `{into}`"))
                    .help("convert the address and dereference it, or convert member by member"))
            }
        }
    }

    /// Converts two pointers, or a pointer and a number, to a common type (C11 6.5.9, 6.5.15).
    pub(super) fn common_pointer(&mut self, a: Expr, b: Expr) -> Typing<(Expr, Expr)> {
        let ty = match (a.ty.pointee(), b.ty.pointee()) {
            (Some(_), None) => a.ty.clone(),
            (None, Some(_)) => b.ty.clone(),
            (Some(_), Some(_)) if is_null(&b) => a.ty.clone(),
            (Some(_), Some(_)) if is_null(&a) => b.ty.clone(),
            (Some(x), Some(_)) if x.is_void() => a.ty.clone(),
            (Some(_), Some(y)) if y.is_void() => b.ty.clone(),
            (Some(x), Some(y)) => {
                if !compatible(x, y) {
                    let (x, y) = (self.said(&a.ty), self.said(&b.ty));
                    self.warn(a.span, format!("pointers of different types, `{x}` and `{y}`"));
                }
                a.ty.clone()
            }
            (None, None) => return Err(Error::new(a.span, "a pointer is expected here")),
        };
        let a = self.implicit(a, &ty, "a pointer")?;
        let b = self.implicit(b, &ty, "a pointer")?;
        Ok((a, b))
    }
}

/// Whether two integer types have the same rank, so that they differ at most in sign. gcc accepts pointers to two such types without a warning.
fn same_but_for_sign(a: &Type, b: &Type) -> bool {
    match (a.arithmetic(), b.arithmetic()) {
        (Some(Arithmetic::Integer(a)), Some(Arithmetic::Integer(b))) => a.rank == b.rank,
        _ => false,
    }
}
