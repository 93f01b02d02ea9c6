//! Resolution of places to classes and numbers, with the checks of pointers and indices.

use fencewright_c::typed::tree::Step as PathStep;
use fencewright_program::BinaryOp;
use fencewright_text::Diagnostic;

use super::{Resolved, Resolver, not};
use crate::core::{Base, Location, Projection, Strangers, Value};
use crate::flat::claims::{About, Claims};
use crate::flat::{CellEvent, StepKind, Term, Touching, Wrong};
use crate::layout::addresses::{Unknown, WayBack};
use crate::layout::classes::{Layout, among};
use crate::nodes::Shape;

/// A way back whose path is followed forward again: the way, the condition that a pointer is the result of this way for a member outside of any
/// structure, and the number of that member.
pub(super) type Forward<'a> = (&'a WayBack, Term, Term);

impl<'a> Resolver<'a> {
    /// Resolves a place that is accessed. Returns `None`, after a check that always fails, if no such place exists.
    pub(super) fn access(&mut self, place: &Location) -> Option<Resolved> {
        let resolved = self.place(place, true);
        let Some(resolved) = resolved.filter(|place| self.layout.classes[place.class].count > 0) else {
            self.check_with(Term::Number(0), Wrong::Pointer, Claims::plain(&Term::Number(0), Wrong::Pointer));
            return None;
        };
        // A local variable accessed by name is alive. Accesses through pointers are announced by
        // [`ObjectEvent::Follow`](crate::core::ObjectEvent::Follow) or checked here.
        let by_name = match place.base {
            Base::Object(object) => !self.layout.placed(object).heap,
            Base::Pointed(..) => false,
        };
        if !by_name && self.layout.can_be_freed(resolved.class, self.thread) {
            let number = self.in_registers(resolved.number);
            self.push(StepKind::Special(CellEvent::Touch(resolved.class, number.clone(), Touching::Access)));
            return Some(Resolved { number, ..resolved });
        }
        Some(resolved)
    }

    /// Checks that a place exists. If the place may be freed, the check is attached to an added step without effect, because control may reach the
    /// next statement without passing this one.
    pub(super) fn reach(&mut self, place: &Location) {
        let before = self.out.len();
        self.access(place);
        if let Base::Object(object) = place.base
            && let placed = self.layout.placed(object)
            && !placed.heap
            && self.layout.is_freed_during(self.thread, object)
        {
            self.push(StepKind::Special(CellEvent::Touch(
                placed.class,
                Term::Number(placed.first),
                Touching::Access,
            )));
        }
        if self.out[before..].iter().any(|step| matches!(step.kind, StepKind::Special(CellEvent::Touch(..))))
        {
            self.push(StepKind::Special(CellEvent::Skip));
        }
    }

    /// The number; if it is no formula ([`Term::is_formula`]), its value is first assigned to a register, because it becomes part of a property.
    pub(crate) fn in_registers(&mut self, number: Term) -> Term {
        if number.is_formula() {
            return number;
        }
        let register = self.register("address", 0);
        self.push(StepKind::Assign(register, number));
        Term::Register(register)
    }

    pub(super) fn place(&mut self, place: &Location, access: bool) -> Option<Resolved> {
        let layout = self.layout;
        let (mut ways, mut is_null) = (Vec::new(), None);
        let (mut resolved, allocation) = match &place.base {
            Base::Object(object) => {
                let placed = layout.placed(*object);
                let resolved =
                    Resolved { class: placed.class, number: Term::Number(placed.first), of_null: Vec::new() };
                (resolved, placed.heap.then_some(placed.elements))
            }
            Base::Pointed(pointer, node) => {
                let pointer = self.value(pointer);
                let class = layout.class(self.nodes, *node)?;
                ways = Self::ways_forward(layout, class, place, &pointer);
                is_null = (!access).then(|| pointer.clone().with(BinaryOp::Eq, 0));
                (self.pointed(class, pointer, &ways, access, place.path.len()), None)
            }
        };
        let start = resolved.number.clone();
        let end = layout.class(self.nodes, place.node);
        let mut path = place.path.as_slice();
        if let (Some(elements), Some((Projection::Element(index, _), rest))) =
            (allocation, path.split_first())
            && (self.end_of(resolved.class, path) != end || end.is_none())
        {
            let of = (resolved.class, resolved.number.clone());
            let number = self.element(index, (elements, None), access || !rest.is_empty(), of);
            resolved.number = Term::binary(BinaryOp::Add, resolved.number, number);
            path = rest;
        }
        for (n, projection) in path.iter().enumerate() {
            let (step, index) = match projection {
                Projection::Field(field) => (PathStep::Field(*field), Term::Number(0)),
                Projection::Element(index, length) => {
                    let node = layout.classes[resolved.class].node;
                    let length = match node.map(|node| self.nodes.shape_of(node)) {
                        Some(Shape::Array(of_shape, _)) if *length == 0 => *of_shape,
                        _ => *length,
                    };
                    let of = (resolved.class, resolved.number.clone());
                    let lengths = (length, layout.classes[resolved.class].laid);
                    (PathStep::Element(0), self.element(index, lengths, access || n + 1 < path.len(), of))
                }
            };
            let (class, width, base) = layout.part(resolved.class, self.nodes, step)?;
            let number = Term::binary(BinaryOp::Add, resolved.number.times(width).plus(base), index);
            resolved = Resolved { class, number, of_null: resolved.of_null };
            for (way, is_outside, member) in ways.iter().filter(|(way, ..)| way.path.len() == n + 1) {
                debug_assert_eq!(way.inner, class);
                resolved.number = Term::choice(is_outside.clone(), member.clone(), resolved.number);
                if !access && n + 1 < path.len() {
                    let is_null = is_outside.clone().and(member.clone().with(BinaryOp::Eq, 0));
                    if place.has_computed_index() {
                        self.beyond_if(is_null.clone(), Unknown::Number);
                    }
                    let Base::Pointed(_, node) = &place.base else { continue };
                    let offset = self.nodes.offset(*node, place.least_path()) as i64 - way.offset as i64;
                    resolved.of_null.push((is_null, offset));
                }
            }
        }
        if Some(resolved.class) != end {
            let message = "this memory is used with two different types";
            self.errors.push(Diagnostic::new(self.span, message).help("give every object one type"));
            return None;
        }
        if let (Some(is_null), Base::Pointed(_, node)) = (&is_null, &place.base) {
            let offset = self.nodes.offset(*node, place.least_path()) as i64;
            if offset != 0 || resolved.number != start {
                if place.has_computed_index() {
                    self.beyond_if(is_null.clone(), Unknown::Number);
                }
                resolved.of_null.push((is_null.clone(), offset));
            }
        }
        Some(resolved)
    }

    /// The place in a class that a pointer points to. For an access, checks that the place exists; if only the address of a part is taken, ends the
    /// model where the pointer points to no structure.
    fn pointed(
        &mut self,
        class: usize,
        pointer: Term,
        ways: &[Forward<'_>],
        access: bool,
        path: usize,
    ) -> Resolved {
        let layout = self.layout;
        let of = &layout.classes[class];
        let number = pointer.clone().with(BinaryOp::Div, of.scale);
        if access {
            let mut is_there = of.is_place(&number);
            if of.scale != 1 {
                is_there = pointer.with(BinaryOp::Rem, of.scale).with(BinaryOp::Eq, 0).and(is_there);
            }
            for (way, is_outside, member) in ways {
                let is_member = layout.classes[way.inner].is_place(member);
                is_there = is_there.or(is_outside.clone().and(is_member));
            }
            self.claim(is_there, Wrong::Pointer, About::Pointer, Some((class, number.clone())));
        } else if path > 0 {
            self.part_of_nothing(class, &pointer, ways, path);
        }
        Resolved { class, number, of_null: Vec::new() }
    }

    /// Ends the model where the address of a part is taken through a pointer that points to no structure, unless the part is the member from which
    /// `container_of` computed the pointer, or in that member. `path` is the length of the path to the part.
    pub(super) fn part_of_nothing(
        &mut self,
        class: usize,
        pointer: &Term,
        ways: &[Forward<'_>],
        path: usize,
    ) {
        let layout = self.layout;
        let of = &layout.classes[class];
        let possible = of.used.moved || of.strangers != Strangers::default() || layout.is_way_back_to(class);
        if !possible {
            return;
        }
        let number = pointer.clone().with(BinaryOp::Div, of.scale);
        let known = pointer.clone().with(BinaryOp::Eq, 0).or(of.is_place(&number));
        let known = ways.iter().fold(known, |known, (way, is_outside, member)| {
            let inner = &layout.classes[way.inner];
            let mut comes_back = is_outside.clone();
            if inner.scale != 1 {
                let rest = way.member(pointer).with(BinaryOp::Rem, inner.scale);
                comes_back = comes_back.and(rest.with(BinaryOp::Eq, 0));
            }
            if way.path.len() < path {
                comes_back = comes_back.and(member.clone().with(BinaryOp::Eq, 0).or(inner.is_place(member)));
            }
            known.or(comes_back)
        });
        self.beyond_if(not(known), Unknown::Number);
    }

    /// Those ways back to a class for which the path to the member is a prefix of the path of the place. The prefix leads from the structure back to
    /// the member.
    pub(super) fn ways_forward(
        layout: &'a Layout,
        class: usize,
        place: &Location,
        pointer: &Term,
    ) -> Vec<Forward<'a>> {
        let goes = |way: &&WayBack| {
            way.outer == class
                && way.path.len() <= place.path.len()
                && way.path.iter().zip(&place.path).all(|(step, projection)| match (step, projection) {
                    (PathStep::Field(a), Projection::Field(b)) => a == b,
                    (PathStep::Element(a), Projection::Element(Value::Number(b), _)) => {
                        i64::try_from(*a) == Ok(*b)
                    }
                    _ => false,
                })
        };
        let ways = layout.ways_back.iter().filter(goes);
        let member = |way: &'_ WayBack| {
            let member = pointer.clone().plus(-way.outside);
            member.with(BinaryOp::Div, layout.classes[way.inner].scale)
        };
        ways.map(|way| (way, way.is_outside(pointer), member(way))).collect()
    }

    /// The class at the end of a path; `None` if a part on the path has no class.
    pub(super) fn end_of(&self, class: usize, path: &[Projection]) -> Option<usize> {
        path.iter().try_fold(class, |class, projection| {
            let step = match projection {
                Projection::Field(field) => PathStep::Field(*field),
                Projection::Element(..) => PathStep::Element(0),
            };
            Some(self.layout.part(class, self.nodes, step)?.0)
        })
    }

    /// An index with its bounds check. For an address, the index one past the end is allowed. If only the first elements of the array are `laid` out,
    /// the model ends where the index is that of another element.
    fn element(
        &mut self,
        index: &Value,
        (length, laid): (u64, Option<u64>),
        access: bool,
        of: (usize, Term),
    ) -> Term {
        let index = self.value(index);
        if length == 0 {
            let message = "the length of this array is unknown";
            self.errors.push(Diagnostic::new(self.span, message).help("give it a length"));
        }
        let length = length.min(1 << 40) as i64;
        let last = |length: i64| if access { length - 1 } else { length };
        let within = index.clone().within(0, last(length));
        self.claim(within, Wrong::Bounds, About::Element(index.clone(), length), Some(of.clone()));
        for (shorter, arrays) in self.layout.classes[of.0].by_length() {
            let shorter = shorter.min(1 << 40) as i64;
            if shorter < length {
                let other = not(among(&arrays, &of.1));
                let within = other.or(index.clone().within(0, last(shorter)));
                self.claim(within, Wrong::Bounds, About::Element(index.clone(), shorter), Some(of.clone()));
            }
        }
        if let Some(laid) = laid {
            self.beyond_if(index.clone().with(BinaryOp::Ge, laid as i64), Unknown::Cut);
        }
        index
    }
}
