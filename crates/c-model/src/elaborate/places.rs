//! Places: lvalues and pointers as locations in memory.

use fencewright_c::ast::{BinaryOp as Operator, RecordId};
use fencewright_c::typed::tree::{Expr, Place, PlaceKind, Step, Type, TypeKind};
use fencewright_code::core::{
    Access, Base, Known, Location, Object, ObjectId, Origin, Projection, Value, View, known,
};
use fencewright_code::nodes::Shape;
use fencewright_code::numbers::{ADDRESSES, Operand, Range};
use fencewright_program::{BinaryOp, Span};

use super::frames::Slot;
use super::objects::{Spot, Target};
use super::{Elaborator, Result};

/// The alignment of allocations in bytes.
const ALIGNMENT: u64 = 16;

impl Elaborator<'_> {
    /// The place that an lvalue denotes.
    pub fn place(&mut self, place: &Place) -> Result<Target> {
        let span = place.span;
        self.deeper(span, |this| match &place.kind {
            PlaceKind::Local(local) => {
                let spot = match this.slot(*local) {
                    Slot::Register(register) => Spot::Register(register),
                    Slot::Object(object) => Spot::Memory(this.location(object, &[])),
                };
                Ok(Target::new(spot, place.ty.clone()))
            }
            PlaceKind::Global(global) => {
                let object = this.global(*global)?;
                Ok(Target::new(Spot::Memory(this.location(object, &[])), place.ty.clone()))
            }
            PlaceKind::Pointed(pointer) => {
                let operand = this.value(pointer)?;
                this.pointed(&operand, &place.ty, span)
            }
            PlaceKind::Field(of, field) => {
                let of = this.place(of)?;
                this.field(&of, *field, &place.ty, span)
            }
            PlaceKind::Element(of, index) => {
                let of = this.place(of)?;
                let index = this.value(index)?;
                this.element(&of, index, &place.ty, span)
            }
            PlaceKind::Compound(local, initial) => {
                this.declare(*local, Some(initial), span)?;
                let Slot::Object(object) = this.slot(*local) else {
                    let Slot::Register(register) = this.slot(*local) else {
                        unreachable!("a slot is one of two")
                    };
                    return Ok(Target::new(Spot::Register(register), place.ty.clone()));
                };
                Ok(Target::new(Spot::Memory(this.location(object, &[])), place.ty.clone()))
            }
            PlaceKind::Value(value) => this.aggregate(value),
        })
    }

    /// The place of a member of a structure.
    pub(super) fn field(&mut self, of: &Target, field: u32, ty: &Type, span: Span) -> Result<Target> {
        let Spot::Memory(location) = &of.spot else { unreachable!("structures are in memory") };
        if let TypeKind::Record(record) = &of.ty.kind {
            let member = &self.unit.records[record.0 as usize].fields[field as usize];
            if member.bits.is_some() {
                return self.error(
                    span,
                    "bit-fields are not supported",
                    "use a whole integer, with masks if need be",
                );
            }
        }
        self.one_shape(span)?;
        let mut location = location.clone();
        location.node = self.nodes.field(location.node, field);
        // All members of a union are the same place.
        let union =
            matches!(&of.ty.kind, TypeKind::Record(record) if self.unit.records[record.0 as usize].union);
        location.path.push(Projection::Field(if union { 0 } else { field }));
        Ok(self.part(of, location, ty))
    }

    /// An error if unification has found a clash, because a union with incompatible members has no layout.
    fn one_shape(&self, span: Span) -> Result<()> {
        match self.nodes.clashes().first() {
            None => Ok(()),
            Some(clash) => self.error(
                span,
                format!("the same memory is used as {} and as {}", clash.one.0, clash.other.0),
                clash.help(),
            ),
        }
    }

    /// The place of an element of an array.
    pub(super) fn element(&mut self, of: &Target, index: Operand, ty: &Type, span: Span) -> Result<Target> {
        let Spot::Memory(location) = &of.spot else { unreachable!("arrays are in memory") };
        self.one_shape(span)?;
        // The length of a flexible array member is known if the object is known. Otherwise layout determines the length.
        let length = match (&of.ty.kind, &location.base) {
            (TypeKind::Array(_, 0), Base::Object(object)) => self.open_length(*object),
            (TypeKind::Array(_, length), _) => *length,
            _ => 1,
        };
        let mut location = location.clone();
        location.node = self.nodes.element(location.node);
        location.path.push(Projection::Element(index.value, length));
        Ok(self.part(of, location, ty))
    }

    fn part(&self, of: &Target, location: Location, ty: &Type) -> Target {
        let target = Target::new(Spot::Memory(location), ty.clone());
        match of.ty.volatile && target.access == Access::Plain {
            true => target.accessed(Access::Volatile),
            false => target,
        }
    }

    /// The address of a place.
    pub(super) fn address(&mut self, target: &Target, span: Span) -> Result<Operand> {
        match &target.spot {
            Spot::Register(_) => self.error(
                span,
                "the address of this variable is not known to be taken",
                "declare it in a way that takes its address",
            ),
            Spot::Memory(location) => {
                // `&*p` is `p`.
                if let (Base::Pointed(pointer, node), []) = (&location.base, location.path.as_slice()) {
                    return Ok(Operand::pointer((**pointer).clone(), *node));
                }
                self.take_address(location, span);
                let points = Some(location.node);
                let range = match location.base {
                    Base::Object(_) => ADDRESSES,
                    // The pointer may be null, or `container_of` applied to null, so the address of a member may be any number.
                    Base::Pointed(..) => (0, u64::MAX.into()),
                };
                Ok(Operand { value: Value::Address(Box::new(location.clone())), range, points })
            }
        }
    }

    /// The place that a pointer points to.
    pub fn pointed(&mut self, pointer: &Operand, ty: &Type, span: Span) -> Result<Target> {
        if let Some(Known::Address(object, way)) = known(&pointer.value) {
            let way = self.fitted(object, way, ty);
            self.typed_allocation(object, ty);
            let location = self.location(object, &way);
            self.shape(location.node, ty, span)?;
            return Ok(Target::new(Spot::Memory(location), ty.clone()));
        }
        if let Value::Address(location) = &pointer.value {
            self.shape(location.node, ty, span)?;
            return Ok(Target::new(Spot::Memory((**location).clone()), ty.clone()));
        }
        let node = match pointer.points {
            Some(node) => node,
            None => self.nodes.unknown(),
        };
        self.shape(node, ty, span)?;
        // Accesses through this pointer are not recorded as uses of the object. Therefore its address is treated as stored.
        self.kept(&pointer.value);
        let base = Base::Pointed(Box::new(pointer.value.clone()), node);
        Ok(Target::new(
            Spot::Memory(Location { base, path: Vec::new(), node, view: View::default() }),
            ty.clone(),
        ))
    }

    /// Gives an allocation its element type, which is the first type with which the allocation is accessed.
    fn typed_allocation(&mut self, object: ObjectId, ty: &Type) {
        let entry = &mut self.objects[object.0 as usize];
        if matches!(entry.origin, Origin::Heap { .. }) && entry.ty.is_none() && ty.kind != TypeKind::Void {
            entry.ty = Some(ty.clone());
        }
    }

    /// Adjusts the path `way` so that it leads to a place of type `ty` at the same address: a shorter path if it ends in a first member or element,
    /// otherwise a longer one through first members or elements. Returns `way` unchanged if there is no such place.
    pub(super) fn fitted(&self, object: ObjectId, mut way: Vec<Step>, ty: &Type) -> Vec<Step> {
        if ty.kind == TypeKind::Void {
            return way;
        }
        let fits = |way: &[Step]| self.type_at(object, way).is_none_or(|there| self.same_place(&there, ty));
        let start = way.clone();
        if fits(&way) {
            return way;
        }
        let heap = usize::from(matches!(self.objects[object.0 as usize].origin, Origin::Heap { .. }));
        while way.len() > heap && matches!(way.last(), Some(Step::Field(0) | Step::Element(0))) {
            way.pop();
            if fits(&way) {
                return way;
            }
        }
        way.clone_from(&start);
        while let Some(there) = self.type_at(object, &way) {
            match &there.kind {
                TypeKind::Array(..) => way.push(Step::Element(0)),
                TypeKind::Record(record) if !self.unit.records[record.0 as usize].fields.is_empty() => {
                    way.push(Step::Field(0))
                }
                _ => break,
            }
            if fits(&way) {
                return way;
            }
        }
        start
    }

    /// Whether an access of one type may be made to a place of the other type: both are the same structure type, arrays of the same length
    /// whose elements fit in this sense, or scalars.
    fn same_place(&self, a: &Type, b: &Type) -> bool {
        match (&a.kind, &b.kind) {
            (TypeKind::Array(a, one), TypeKind::Array(b, other)) => one == other && self.same_place(a, b),
            (TypeKind::Record(a), TypeKind::Record(b)) => a == b,
            (TypeKind::Array(..) | TypeKind::Record(_), _)
            | (_, TypeKind::Array(..) | TypeKind::Record(_)) => false,
            _ => true,
        }
    }

    /// Pointer arithmetic: moves a pointer by a number of elements of type `ty`.
    pub(super) fn moved(&mut self, pointer: Operand, by: Operand, ty: &Type, span: Span) -> Result<Operand> {
        if matches!(by.value, Value::Number(0)) {
            return Ok(pointer);
        }
        if let Value::Address(location) = &pointer.value {
            let mut location = location.clone();
            if let Some(Known::Address(object, way)) = known(&pointer.value) {
                let untyped = self.objects[object.0 as usize].ty.is_none();
                self.typed_allocation(object, ty);
                let way = self.fitted(object, way, ty);
                if matches!(by.value, Value::Number(1))
                    && let Some((Step::Field(field), around)) = way.split_last()
                    && let Some(TypeKind::Record(record)) = self.type_at(object, around).map(|ty| ty.kind)
                    && let Some(next) = self.behind(record, *field, ty)
                {
                    let behind = around.iter().copied().chain([Step::Field(next)]).collect();
                    let behind = self.known_operand(&Known::Address(object, behind), pointer.range);
                    return Ok(behind.expect("an address is defined"));
                }
                location = Box::new(self.location(object, &way));
                if untyped && ty.kind != TypeKind::Void {
                    self.shape(location.node, ty, span)?;
                }
            } else if matches!(by.value, Value::Number(1))
                && let Some(behind) = self.place_behind(&location, ty)
            {
                let points = Some(behind.node);
                return Ok(Operand { value: Value::Address(Box::new(behind)), range: pointer.range, points });
            }
            if let Some(Projection::Element(index, _)) = location.path.last_mut() {
                *index = match (&*index, &by.value) {
                    (Value::Number(0), _) => by.value,
                    (Value::Number(a), Value::Number(b)) => Value::Number(a.wrapping_add(*b)),
                    _ => Value::binary(BinaryOp::Add, index.clone(), by.value),
                };
                let points = Some(location.node);
                return Ok(Operand { value: Value::Address(location), range: pointer.range, points });
            }
        }
        let node = match pointer.points {
            Some(node) => node,
            None => self.nodes.unknown(),
        };
        self.shape(node, ty, span)?;
        let range = if ranges_over_objects(pointer.range) { pointer.range } else { (0, u64::MAX.into()) };
        let value = Value::Move(Box::new(pointer.value), Box::new(by.value), node);
        Ok(Operand { value, range, points: Some(node) })
    }

    /// The target of `p + 1`, where `p` points to the structure of type `ty` in the member `field` of a structure: the number of the member directly
    /// after it, as in programs that place an array behind the structure that describes it. `None` if there is no such member, or if an access of type
    /// `ty` to it is possible: then `p + 1` is taken as the end of an array with one element, so that such an access is out of bounds.
    fn behind(&self, around: RecordId, field: u32, ty: &Type) -> Option<u32> {
        let TypeKind::Record(_) = &ty.kind else { return None };
        let fields = &self.unit.records[around.0 as usize].fields;
        let end = fields.get(field as usize)?.offset + self.size(ty);
        let next = fields.get(field as usize + 1).filter(|next| next.offset == end)?;
        (!self.starts_with(&next.ty, ty)).then_some(field + 1)
    }

    /// Whether an object of type `whole`, its first member or its first element, or a first part of these, is a place of type `ty`.
    fn starts_with(&self, whole: &Type, ty: &Type) -> bool {
        self.same_place(whole, ty)
            || match &whole.kind {
                TypeKind::Array(element, _) => self.starts_with(element, ty),
                TypeKind::Record(record) => {
                    let first = self.unit.records[record.0 as usize].fields.first();
                    first.is_some_and(|first| self.starts_with(&first.ty, ty))
                }
                _ => false,
            }
    }

    /// The place behind a member of type `ty`, as [`Self::behind`], where indices or the object are unknown.
    fn place_behind(&mut self, location: &Location, ty: &Type) -> Option<Location> {
        let (Projection::Field(field), around) = location.path.split_last()? else { return None };
        let (mut node, skipped) = match &location.base {
            Base::Object(object) => {
                let Object { node, origin, .. } = &self.objects[object.0 as usize];
                (*node, usize::from(matches!(origin, Origin::Heap { .. })))
            }
            Base::Pointed(_, node) => (*node, 0),
        };
        for projection in around.iter().skip(skipped) {
            let step = match projection {
                Projection::Field(field) => Step::Field(*field),
                Projection::Element(..) => Step::Element(0),
            };
            node = self.nodes.part(node, step)?;
        }
        let Shape::Record(record, _) = self.nodes.shape_of(node) else { return None };
        let record = *record;
        let next = self.behind(record, *field, ty)?;
        let mut ty = &self.unit.records[record.0 as usize].fields[next as usize].ty;
        let mut path: Vec<Projection> = around.iter().cloned().chain([Projection::Field(next)]).collect();
        node = self.nodes.field(node, next);
        // The program will use the pointer as one to the first element.
        while let TypeKind::Array(element, length) = &ty.kind {
            path.push(Projection::Element(Value::Number(0), *length));
            (node, ty) = (self.nodes.part(node, Step::Element(0))?, element);
        }
        Some(Location { base: location.base.clone(), path, node, view: View::default() })
    }

    /// A known address combined with a mask by `&`: 0 if the mask has only bits below the alignment, the address if the mask lacks only such bits.
    pub(super) fn masked(&self, op: Operator, address: &Operand, mask: &Operand) -> Option<Operand> {
        let (Operator::BitAnd, Some(Known::Address(object, way)), Value::Number(mask)) =
            (op, known(&address.value), &mask.value)
        else {
            return None;
        };
        let low = self.alignment(object, &way)? - 1;
        match (*mask as u64 & !low, *mask as u64 | low) {
            (0, _) => Some(Operand::number(0)),
            (_, u64::MAX) => Some(address.clone()),
            _ => None,
        }
    }

    /// A power of two that divides the address of a part of an object; `None` if it is unknown.
    fn alignment(&self, object: ObjectId, way: &[Step]) -> Option<u64> {
        let Object { ty, origin, .. } = &self.objects[object.0 as usize];
        let start = match origin {
            Origin::Heap { .. } => ALIGNMENT,
            _ => self.align(ty.as_ref()?),
        };
        let offset = match way {
            [] | [Step::Element(0)] => 0,
            way => self.offset(object, way)?,
        };
        Some(1 << (offset | start).trailing_zeros())
    }

    /// The alignment of a type in bytes.
    fn align(&self, ty: &Type) -> u64 {
        match &ty.kind {
            TypeKind::Array(element, _) => self.align(element),
            TypeKind::Record(record) => self.unit.records[record.0 as usize].align.max(1),
            _ => self.size(ty).max(1),
        }
    }

    /// The place to which a pointer expression points.
    pub fn pointed_by(&mut self, pointer: &Expr) -> Result<Target> {
        let operand = self.value(pointer)?;
        match &pointer.ty.kind {
            TypeKind::Pointer(to) => self.pointed(&operand, to, pointer.span),
            _ => self.error(pointer.span, "this is not a pointer", "pass the address of a variable"),
        }
    }
}

/// Whether all values in a range are addresses of objects: neither null nor other numbers.
pub(super) fn ranges_over_objects((low, high): Range) -> bool {
    ADDRESSES.0 <= low && high <= ADDRESSES.1
}
