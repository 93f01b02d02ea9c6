//! Conversions and assignments.

use fencewright_c::arithmetic::Arithmetic;
use fencewright_c::ast::{BinaryOp as Operator, Integer};
use fencewright_c::typed::tree::{Expr, ExprKind, Place, PlaceKind, Step, Type, TypeKind};
use fencewright_code::core::{Known, StmtKind, Value, known};
use fencewright_code::numbers::{self, Operand, convert, truth};
use fencewright_program::Span;

use super::expressions::pointee;
use super::objects::Target;
use super::places::ranges_over_objects;
use super::{Elaborator, Result};

impl Elaborator<'_> {
    /// The value of an expression, converted to another type.
    pub(super) fn converted(&mut self, inner: &Expr, to: &Type, span: Span) -> Result<Operand> {
        if to.kind == TypeKind::Void {
            self.dropped(inner)?;
            return Ok(Operand::number(0));
        }
        if let Some(operand) = self.raw_memory(inner, span)? {
            return Ok(operand);
        }
        if let Some(operand) = self.container_of(inner, to, span)? {
            return Ok(operand);
        }
        let operand = self.value(inner)?;
        self.cast(operand, &inner.ty, to, span)
    }

    /// Converts a value to another type.
    pub fn cast(&mut self, operand: Operand, from: &Type, to: &Type, span: Span) -> Result<Operand> {
        match (&from.kind, &to.kind) {
            (TypeKind::Integer(_), TypeKind::Integer(to)) => Ok(convert(*to, operand)),
            (TypeKind::Pointer(_) | TypeKind::Function(_), TypeKind::Integer(Arithmetic::Bool)) => {
                match known(&operand.value) {
                    Some(Known::Address(..) | Known::Function(_)) => Ok(Operand::number(1)),
                    _ => Ok(truth(operand)),
                }
            }
            (TypeKind::Pointer(_), TypeKind::Integer(to)) => {
                if let Some(points) = operand.points {
                    self.nodes.mark_integer(points);
                }
                match to {
                    // A pointer and an unsigned 64-bit integer have the same representation.
                    Arithmetic::Integer(Integer { signed: false, .. })
                        if to.greatest() == u64::MAX.into() =>
                    {
                        Ok(operand)
                    }
                    _ => Ok(convert(*to, operand)),
                }
            }
            (TypeKind::Integer(_), TypeKind::Pointer(_)) => {
                let unsigned =
                    Arithmetic::Integer(Integer { rank: fencewright_c::ast::Rank::Long, signed: false });
                let mut operand = convert(unsigned, operand);
                if !Self::is_null(&operand) && operand.points.is_none() {
                    let node = self.nodes.unknown();
                    self.nodes.mark_integer(node);
                    operand.points = Some(node);
                }
                Ok(operand)
            }
            (TypeKind::Pointer(from), TypeKind::Pointer(to)) => self.cast_pointer(operand, from, to, span),
            (TypeKind::Record(_), TypeKind::Record(_)) => Ok(operand),
            (TypeKind::Floating(_), _) | (_, TypeKind::Floating(_)) => {
                self.arithmetic(&Type { kind: TypeKind::Floating(8), atomic: false, volatile: false }, span)?;
                Ok(operand)
            }
            _ => self.error(
                span,
                "this conversion is not supported",
                "convert between integers and pointers only",
            ),
        }
    }

    /// Converts a pointer to another pointer type: to the first member of the structure, to the structure around a first member, or unchanged.
    fn cast_pointer(&mut self, operand: Operand, from: &Type, to: &Type, span: Span) -> Result<Operand> {
        if from.kind == TypeKind::Void
            || to.kind == TypeKind::Void
            || Self::is_null(&operand)
            || from.kind == to.kind
        {
            return Ok(operand);
        }
        if let Some(Known::Address(object, way)) = known(&operand.value) {
            let way = self.fitted(object, way, to);
            return Ok(self
                .known_operand(&Known::Address(object, way), operand.range)
                .expect("an address is defined"));
        }
        let Some(points) = operand.points else { return Ok(operand) };
        if let Some(way) = self.first_members(from, to) {
            let mut target = self.pointed(&operand, from, span)?;
            for step in way {
                target = self.part_at(&target, step, span)?;
            }
            return self.address(&target, span);
        }
        if let (Some(way), TypeKind::Record(record)) = (self.first_members(to, from), &to.kind)
            && way.iter().all(|step| matches!(step, Step::Field(_)))
        {
            self.shape(points, from, span)?;
            return self.container(operand, to, *record, way, span);
        }
        Ok(operand)
    }

    /// `container_of`: converts a pointer to a member to a pointer to the structure that contains the member.
    fn container(
        &mut self,
        member: Operand,
        ty: &Type,
        record: fencewright_c::ast::RecordId,
        path: Vec<Step>,
        span: Span,
    ) -> Result<Operand> {
        let node = self.nodes.object(ty, span);
        let mut part = node;
        for step in &path {
            part = match step {
                Step::Field(field) => self.nodes.field(part, *field),
                Step::Element(_) => self.nodes.element(part),
            };
        }
        let points = match member.points {
            Some(points) => points,
            None => self.nodes.unknown(),
        };
        self.unify(part, points, span)?;
        let offset = i128::from(self.nodes.offset(node, path.iter().copied()));
        let range = match member.range {
            range if offset == 0 => range,
            (low, high) if ranges_over_objects((low, high)) => (low - offset, high),
            _ => (0, u64::MAX.into()),
        };
        let value = Value::Container { member: Box::new(member.value), node, record, path };
        Ok(Operand { value, range, points: Some(node) })
    }

    /// The part of `target` that `step` selects: a member of a structure or an element of an array.
    pub(super) fn part_at(&mut self, target: &Target, step: Step, span: Span) -> Result<Target> {
        match (&target.ty.kind, step) {
            (TypeKind::Record(record), Step::Field(field)) => {
                let ty = self.unit.records[record.0 as usize].fields[field as usize].ty.clone();
                self.field(target, field, &ty, span)
            }
            (TypeKind::Array(element, _), Step::Element(index)) => {
                let ty = (**element).clone();
                self.element(target, Operand::number(index.into()), &ty, span)
            }
            _ => self.error(span, "this initial value does not fit its variable", ""),
        }
    }

    /// The path that leads from a place of one type through first members and first elements to a place of another type, which has the same address;
    /// `None` if there is no such place.
    fn first_members(&self, from: &Type, to: &Type) -> Option<Vec<Step>> {
        let mut way = Vec::new();
        let mut ty = from.clone();
        loop {
            let (step, inner) = match &ty.kind {
                TypeKind::Record(record) => {
                    let first = self.unit.records[record.0 as usize].fields.first()?;
                    (Step::Field(0), first.ty.clone())
                }
                TypeKind::Array(element, _) => (Step::Element(0), (**element).clone()),
                _ => return None,
            };
            way.push(step);
            if inner.kind == to.kind {
                return Some(way);
            }
            ty = inner;
        }
    }

    /// Recognises `(T *)((char *)p - offset)` and `(T *)((uintptr_t)p - offset)`: the structure with the member to which `p` points. `None` for other
    /// expressions.
    fn container_of(&mut self, inner: &Expr, to: &Type, span: Span) -> Result<Option<Operand>> {
        let TypeKind::Pointer(to) = &to.kind else { return Ok(None) };
        let TypeKind::Record(record) = to.kind else { return Ok(None) };
        let Some((member, by, sign)) = moved_back(as_typed(inner)) else { return Ok(None) };
        let TypeKind::Pointer(member_type) = &member.ty.kind else { return Ok(None) };
        let is_odd = !matches!(member_type.kind, TypeKind::Integer(_) | TypeKind::Record(_));
        if !is_simple(by) || self.size(member_type) == 1 && is_odd {
            return Ok(None);
        }
        let by = self.value(by)?.known().map(|by| by * sign);
        let Some(offset) = by.and_then(|by| u64::try_from(by).ok()) else { return Ok(None) };
        let Some(path) = self.member_at(to, offset, member_type) else { return Ok(None) };
        let operand = self.value(member)?;
        if let Some(Known::Address(object, mut way)) = known(&operand.value)
            && way.ends_with(&path)
            && let Some(around) = self.type_at(object, &way[..way.len() - path.len()])
            && around.kind == TypeKind::Record(record)
        {
            way.truncate(way.len() - path.len());
            return Ok(self.known_operand(&Known::Address(object, way), operand.range));
        }
        self.container(operand, to, record, path, span).map(Some)
    }

    /// The path to the member of type `member` at an offset in bytes, if there is one.
    fn member_at(&self, ty: &Type, offset: u64, member: &Type) -> Option<Vec<Step>> {
        if offset == 0 && ty.kind == member.kind {
            return Some(Vec::new());
        }
        let TypeKind::Record(record) = &ty.kind else { return None };
        let fields = self.unit.records[record.0 as usize].fields.iter().enumerate();
        for (n, field) in fields {
            if (field.offset..field.offset + self.size(&field.ty).max(1)).contains(&offset)
                && let Some(mut way) = self.member_at(&field.ty, offset - field.offset, member)
            {
                way.insert(0, Step::Field(n as u32));
                return Some(way);
            }
        }
        None
    }

    /// `place = value`.
    pub(super) fn assign(&mut self, place: &Place, value: &Expr, span: Span) -> Result<Operand> {
        if matches!(place.ty.kind, TypeKind::Record(_)) {
            let target = self.place(place)?;
            let from = self.aggregate(value)?;
            self.copy(&from, &target, span)?;
            return Ok(Operand::number(0));
        }
        let target = self.place(place)?;
        let operand = self.value(value)?;
        if place.ty.atomic {
            self.exchanged(&target, operand.clone(), span)?;
        } else {
            self.write(&target, operand.clone(), span)?;
        }
        Ok(match &target.spot {
            super::Spot::Register(register) => self.register_value(*register),
            super::Spot::Memory(_) => operand,
        })
    }

    /// `place op= value`, `++` and `--`.
    pub(super) fn modify(
        &mut self,
        place: &Place,
        op: Operator,
        left: &Type,
        value: &Expr,
        old: bool,
        span: Span,
    ) -> Result<Operand> {
        let target = self.place(place)?;
        if place.ty.atomic {
            let value = self.value(value)?;
            if matches!(
                op,
                Operator::Divide | Operator::Remainder | Operator::ShiftLeft | Operator::ShiftRight
            ) {
                return self.modify_checked(&target, (op, left), value, old, span);
            }
            let mut new = None;
            let before = self.update(
                &target,
                |this, before| {
                    let result = this.operated(before.clone(), op, &place.ty, left, value, true, span)?;
                    new = Some(result.clone());
                    Ok((None, result))
                },
                span,
            )?;
            return Ok(if old { before } else { new.expect("it was computed") });
        }
        let before = self.read(&target, span)?;
        let before = if old { self.kept_value(before, &place.ty, span)? } else { before };
        let start = self.accesses;
        let value = self.value(value)?;
        if self.accesses.since(start).writes > 0 && matches!(target.spot, super::Spot::Memory(_)) {
            let text = "C does not define the order of these accesses to memory: the left side is read first, but last by gcc";
            self.warn(span, text);
        }
        let new = self.operated(before.clone(), op, &place.ty, left, value, false, span)?;
        self.write(&target, new.clone(), span)?;
        match (&target.spot, old) {
            (_, true) => Ok(before),
            (super::Spot::Register(register), false) => Ok(self.register_value(*register)),
            (super::Spot::Memory(_), false) => Ok(new),
        }
    }

    /// `place op= value` on an atomic place, for an operation that may fault: in one atomic step, the value that was read is checked and then used.
    fn modify_checked(
        &mut self,
        target: &Target,
        (op, left): (Operator, &Type),
        value: Operand,
        old: bool,
        span: Span,
    ) -> Result<Operand> {
        let mut result = Operand::number(0);
        let steps = self.written(|this| {
            let before = this.read(target, span)?;
            let before = this.kept_value(before, &target.ty, span)?;
            let new = this.operated(before.clone(), op, &target.ty, left, value, true, span)?;
            let new = this.kept_value(new, &target.ty, span)?;
            this.write(target, new.clone(), span)?;
            result = if old { before } else { new };
            Ok(())
        })?;
        match steps.is_empty() {
            true => self.emit(StmtKind::Fence, span),
            false => self.emit(StmtKind::Atomic(steps), span),
        }
        Ok(result)
    }

    /// The value that `op=` assigns, given the value `before`.
    #[allow(clippy::too_many_arguments)] // all parts of the expression
    fn operated(
        &mut self,
        before: Operand,
        op: Operator,
        ty: &Type,
        left: &Type,
        value: Operand,
        wraps: bool,
        span: Span,
    ) -> Result<Operand> {
        if let TypeKind::Pointer(to) = &ty.kind {
            return self.moved(before, value, to, span);
        }
        let (of, inside) = (self.arithmetic(ty, span)?, self.arithmetic(left, span)?);
        let before = convert(inside, before);
        use Operator::{Add, BitAnd, BitOr, BitXor, Multiply, Subtract};
        let result = match op {
            Add | Subtract | Multiply | BitAnd | BitOr | BitXor if wraps => {
                numbers::wrapping(op, inside, before, value)
            }
            _ => numbers::binary(self, op, inside, before, value),
        };
        Ok(convert(of, result))
    }
}

/// The pointer before its conversions to `void *`, which are common between those to other types.
fn as_typed(mut pointer: &Expr) -> &Expr {
    use fencewright_c::typed::tree::ExprKind;
    while let ExprKind::Convert(inner) = &pointer.kind
        && matches!((&pointer.ty.kind, &inner.ty.kind), (TypeKind::Pointer(to), TypeKind::Pointer(_)) if to.kind == TypeKind::Void)
    {
        pointer = inner;
    }
    pointer
}

/// The pointer `p`, the number `n` and the sign `s` of an address that is `s * n` bytes before `p`: `(char *)p + n` has the sign -1, and
/// `(uintptr_t)p - n` the sign 1. `None` for other expressions.
fn moved_back(address: &Expr) -> Option<(&Expr, &Expr, i128)> {
    let (from, by, sign) = match &address.kind {
        ExprKind::Move(bytes, by) => {
            let is_byte = matches!(pointee(&bytes.ty).kind, TypeKind::Integer(ty) if ty.greatest() <= 255);
            (Some(bytes).filter(|_| is_byte)?, by, -1)
        }
        ExprKind::Binary(Operator::Subtract, number, by) => {
            let is_whole = |ty: Arithmetic| ty.greatest() - ty.least() == u64::MAX.into();
            let is_address = matches!(number.ty.kind, TypeKind::Integer(ty) if is_whole(ty));
            (Some(number).filter(|_| is_address)?, by, 1)
        }
        _ => return None,
    };
    match &from.kind {
        ExprKind::Convert(pointer) => Some((as_typed(pointer), by, sign)),
        _ => None,
    }
}

/// Whether evaluating an expression emits nothing: it is computed from constants, offsets of members and local variables.
fn is_simple(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Constant(_) => true,
        ExprKind::Load(place) => {
            matches!(place.kind, PlaceKind::Local(_)) && !place.ty.volatile && !place.ty.atomic
        }
        ExprKind::Negate(inner) | ExprKind::Convert(inner) => is_simple(inner),
        ExprKind::Address(place) => is_offset(place),
        ExprKind::Binary(Operator::Add | Operator::Subtract | Operator::Multiply, a, b) => {
            is_simple(a) && is_simple(b)
        }
        _ => false,
    }
}

/// Whether a place is a part of a structure at a constant address: `&((struct s *)0)->member` is the offset of the member.
fn is_offset(place: &Place) -> bool {
    match &place.kind {
        PlaceKind::Pointed(pointer) => is_simple(pointer),
        PlaceKind::Field(of, _) => is_offset(of),
        PlaceKind::Element(of, index) => is_offset(of) && is_simple(index),
        _ => false,
    }
}
