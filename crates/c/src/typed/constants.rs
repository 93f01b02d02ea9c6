//! Constants: integer constant expressions (C11 6.6), and folding of expressions with constant operands.

use super::names::Entity;
use super::tree::{Expr, ExprKind, Place, PlaceKind, Type, TypeKind};
use super::{Typer, Typing};
use crate::arithmetic::{self, Arithmetic};
use crate::ast::{self, BinaryOp, UnaryOp};
use crate::error::Error;
use crate::preprocess::Origin;

impl Typer<'_> {
    /// The value of an integer constant expression; an error if the expression is not constant.
    pub(super) fn constant(&mut self, expr: &ast::Expr) -> Typing<i128> {
        let value = self.value(expr)?;
        if value.ty.arithmetic().is_none() {
            return Err(Error::new(expr.span, "an integer is expected here"));
        }
        self.evaluated(&value).ok_or_else(|| {
            Error::new(expr.span, "this is not known before the program runs")
                .help("use literals, enumerators, `sizeof` and operators on them")
        })
    }

    /// The value of an expression if it can be computed at compile time. Operands that are not evaluated, such as `x` in `0 && x`, need not be
    /// constant.
    pub(super) fn evaluated(&self, expr: &Expr) -> Option<i128> {
        self.evaluated_with(expr, &binary)
    }

    /// Like [`evaluated`](Self::evaluated), but sums, differences and products wrap around, as compilers compute them after a warning.
    pub(super) fn evaluated_around(&self, expr: &Expr) -> Option<i128> {
        self.evaluated_with(expr, &around)
    }

    fn evaluated_with(&self, expr: &Expr, binary: &Apply) -> Option<i128> {
        let value = |expr: &Expr| self.evaluated_with(expr, binary);
        match &expr.kind {
            ExprKind::Constant(value) => Some(*value),
            ExprKind::Convert(inner) => Some(converted(&expr.ty, value(inner)?)),
            ExprKind::Negate(inner) => unary(UnaryOp::Minus, value(inner)?, &inner.ty),
            ExprKind::Complement(inner) => unary(UnaryOp::Complement, value(inner)?, &inner.ty),
            ExprKind::Not(inner) => Some(i128::from(value(inner)? == 0)),
            ExprKind::Binary(op, a, b) => {
                let (x, y) = (value(a)?, value(b)?);
                binary(*op, (x, &a.ty), (y, &b.ty))
            }
            ExprKind::And(a, b) => match value(a)? {
                0 => Some(0),
                _ => Some(i128::from(value(b)? != 0)),
            },
            ExprKind::Or(a, b) => match value(a)? {
                0 => Some(i128::from(value(b)? != 0)),
                _ => Some(1),
            },
            ExprKind::Conditional(condition, a, b) => match value(condition)? {
                0 => value(b),
                _ => value(a),
            },
            ExprKind::Otherwise(a, b) => match value(a)? {
                0 => value(b),
                value => Some(converted(&expr.ty, value)),
            },
            ExprKind::Load(place) => self.value_of_constant(place),
            _ => None,
        }
    }

    /// The value of a variable that never changes and is initialised with a constant; needed for array lengths, where GNU C allows `const` variables.
    fn value_of_constant(&self, place: &Place) -> Option<i128> {
        match place.kind {
            PlaceKind::Local(id) => self.body.as_ref()?.constants.get(&id).copied(),
            PlaceKind::Global(id) => self.constants.get(&id).copied(),
            _ => None,
        }
    }

    /// Declares enumerators, and determines the types of their enumerations: an unsigned type if no value is negative, as in gcc.
    pub(super) fn enumerators(&mut self, enumerators: &[ast::Enumerator]) -> Typing<()> {
        let mut next = 0;
        let mut range = (0, 0);
        for enumerator in enumerators {
            if enumerator.first {
                (next, range) = (0, (0, 0));
            }
            if let Some(value) = &enumerator.value {
                next = self.constant(value)?;
            }
            let candidates =
                [Arithmetic::INT, super::types::UNSIGNED, super::types::LONG, super::types::UNSIGNED_LONG];
            let ty = candidates.into_iter().find(|ty| ty.has(next)).ok_or_else(|| {
                Error::new(enumerator.name.span, "the value of this enumerator does not fit into 64 bits")
            })?;
            let name = &enumerator.name;
            let known = self.scopes.last().is_some_and(|scope| scope.contains_key(&name.symbol));
            // An enumerator in a system header may repeat one of the user or of a model header.
            if !(known && self.origin(name.span) == Origin::System) {
                self.declare_new(name.symbol, Entity::Number(next, ty), name.span)?;
            }
            range = (range.0.min(next), range.1.max(next));
            let fits = |ty: &&Arithmetic| ty.has(range.0) && ty.has(range.1);
            let made_of =
                [super::types::UNSIGNED, Arithmetic::INT, super::types::UNSIGNED_LONG, super::types::LONG];
            let small = [ast::Rank::Char, ast::Rank::Short].into_iter();
            let small = small.flat_map(|rank| [false, true].map(|signed| ast::Integer { rank, signed }));
            let small = small.filter(|_| enumerator.packed).map(Arithmetic::Integer);
            let made_of = small.chain(made_of).find(|ty| fits(&ty)).unwrap_or(super::types::LONG);
            self.enumerations[enumerator.enumeration.0 as usize] = made_of;
            next += 1;
        }
        Ok(())
    }

    /// Checks the conditions of `_Static_assert`.
    pub(super) fn static_assertions(&mut self, assertions: &[(ast::Expr, Option<String>)]) -> Typing<()> {
        for (condition, text) in assertions {
            let holds = match self.constant(condition) {
                Ok(value) => value != 0,
                Err(error) if error.always || self.body.is_some() => return Err(error),
                Err(error) => {
                    let message = format!("this static assertion is not evaluated: {}", error.message);
                    self.warn(condition.span, message);
                    continue;
                }
            };
            if !holds {
                let text = text.as_deref().unwrap_or("it is false");
                return Err(Error::new(condition.span, format!("static assertion failed: {text}"))
                    .always()
                    .help("sizes and types are those of x86-64 under Linux, with the model headers"));
            }
        }
        Ok(())
    }

    /// The offset in bytes that `offsetof` denotes: `path` leads from an object of type `ty` to a member.
    pub(super) fn offset(&mut self, ty: &Type, path: &[ast::Designator], at: &ast::Expr) -> Typing<u64> {
        let (mut offset, mut ty) = (0u64, ty.clone());
        for step in path {
            match (step, &ty.kind) {
                (ast::Designator::Member(name), TypeKind::Record(id)) => {
                    let mut id = *id;
                    for &number in self.member(id, name)?.iter() {
                        let field = &self.records[id.0 as usize].fields[number as usize];
                        if field.bits.is_some() {
                            return Err(Error::new(name.span, "a bit-field has no offset in bytes"));
                        }
                        offset += field.offset;
                        ty = field.ty.clone();
                        if let TypeKind::Record(inner) = ty.kind {
                            id = inner;
                        }
                    }
                }
                (ast::Designator::Index(index), TypeKind::Array(element, _)) => {
                    let index = self.constant(index)?;
                    let size = self.size(element, at.span)?;
                    let bytes = u64::try_from(index).ok().and_then(|index| index.checked_mul(size));
                    offset = bytes
                        .and_then(|bytes| offset.checked_add(bytes))
                        .filter(|&offset| offset <= 1 << 40)
                        .ok_or_else(|| Error::new(at.span, "this offset is too large"))?;
                    ty = (**element).clone();
                }
                _ => return Err(Error::new(at.span, "this leads to no member")),
            }
        }
        Ok(offset)
    }

    /// The address of a place based on a constant pointer, as in `&((struct s *)0)->member`.
    pub(super) fn constant_address(&mut self, place: &Place) -> Typing<Option<i128>> {
        Ok(match &place.kind {
            PlaceKind::Pointed(pointer) => match pointer.kind {
                ExprKind::Constant(value) => Some(value),
                _ => None,
            },
            PlaceKind::Field(inner, number) => match (self.constant_address(inner)?, &inner.ty.kind) {
                (Some(base), TypeKind::Record(id)) => {
                    Some(base + i128::from(self.records[id.0 as usize].fields[*number as usize].offset))
                }
                _ => None,
            },
            PlaceKind::Element(inner, index) => {
                match (self.constant_address(inner)?, self.evaluated(index)) {
                    (Some(base), Some(index)) => {
                        Some(base + index * i128::from(self.size(&place.ty, place.span)?))
                    }
                    _ => None,
                }
            }
            _ => None,
        })
    }
}

/// Applies a binary operation to two constants; `None` for undefined behaviour, except `1 << 31` and `-1 << 4`, which gcc allows and which are common
/// in masks.
pub(super) fn binary(op: BinaryOp, (x, a): (i128, &Type), (y, b): (i128, &Type)) -> Option<i128> {
    let types = (
        a.arithmetic().unwrap_or(super::types::UNSIGNED_LONG),
        b.arithmetic().unwrap_or(super::types::UNSIGNED_LONG),
    );
    let promoted = types.0.promoted();
    match (op, u32::try_from(y)) {
        (BinaryOp::ShiftLeft, Ok(by)) if by < promoted.bits() => {
            Some(Arithmetic::Integer(promoted).converted(x << by))
        }
        _ => arithmetic::binary(op, (x, types.0), (y, types.1)).ok(),
    }
}

/// Applies a binary operation to two constants; `None` if that is not possible.
type Apply = dyn Fn(BinaryOp, (i128, &Type), (i128, &Type)) -> Option<i128>;

/// Like [`binary`], but a sum, difference or product that does not fit its signed type wraps around.
fn around(op: BinaryOp, a: (i128, &Type), b: (i128, &Type)) -> Option<i128> {
    let (Some(one), Some(other)) = (a.1.arithmetic(), b.1.arithmetic()) else { return binary(op, a, b) };
    let common = Arithmetic::Integer(one.common(other));
    let (x, y) = (common.converted(a.0), common.converted(b.0));
    match op {
        BinaryOp::Add => Some(common.converted(x + y)),
        BinaryOp::Subtract => Some(common.converted(x - y)),
        BinaryOp::Multiply => Some(common.converted(x.wrapping_mul(y))),
        _ => binary(op, a, b),
    }
}

fn unary(op: UnaryOp, value: i128, ty: &Type) -> Option<i128> {
    arithmetic::unary(op, (value, ty.arithmetic()?)).ok().map(|(value, _)| value)
}

/// The value of a constant after conversion to another type.
pub(super) fn converted(ty: &Type, value: i128) -> i128 {
    match ty.kind {
        TypeKind::Integer(values) => values.converted(value),
        TypeKind::Pointer(_) => super::types::UNSIGNED_LONG.converted(value),
        _ => value,
    }
}

/// Whether an expression is a null pointer constant (C11 6.3.2.3 p. 3).
pub(super) fn is_null(expr: &Expr) -> bool {
    let void = Type::void();
    matches!(expr.kind, ExprKind::Constant(0))
        && match &expr.ty.kind {
            TypeKind::Integer(_) => true,
            TypeKind::Pointer(to) => **to == void,
            _ => false,
        }
}

/// The expression, folded if its operands are constants.
pub(super) fn folded(expr: Expr) -> Expr {
    let known = |inner: &Expr| match inner.kind {
        ExprKind::Constant(value) => Some(value),
        _ => None,
    };
    let value = match &expr.kind {
        ExprKind::Convert(inner) if expr.ty.is_scalar() => {
            known(inner).map(|value| converted(&expr.ty, value))
        }
        ExprKind::Negate(inner) => known(inner).and_then(|value| unary(UnaryOp::Minus, value, &inner.ty)),
        ExprKind::Complement(inner) => {
            known(inner).and_then(|value| unary(UnaryOp::Complement, value, &inner.ty))
        }
        ExprKind::Not(inner) => known(inner).map(|value| i128::from(value == 0)),
        ExprKind::Binary(op, a, b) => match (known(a), known(b)) {
            (Some(x), Some(y)) => binary(*op, (x, &a.ty), (y, &b.ty)),
            _ => None,
        },
        ExprKind::And(a, b) => known(a).zip(known(b)).map(|(x, y)| i128::from(x != 0 && y != 0)),
        ExprKind::Or(a, b) => known(a).zip(known(b)).map(|(x, y)| i128::from(x != 0 || y != 0)),
        ExprKind::Conditional(condition, a, b) => match (known(condition), known(a), known(b)) {
            (Some(condition), Some(x), Some(y)) => Some(if condition != 0 { x } else { y }),
            _ => None,
        },
        _ => None,
    };
    match value {
        Some(value) => Expr { kind: ExprKind::Constant(value), ..expr },
        None => expr,
    }
}
