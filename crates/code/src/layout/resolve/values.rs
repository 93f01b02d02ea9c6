//! Translation of symbolic values to terms.

use fencewright_c::typed::tree::Step as PathStep;
use fencewright_program::BinaryOp;

use super::{Resolver, not};
use crate::core::{Base, Location, NodeId, Register, Value, function_number};
use crate::flat::claims::About;
use crate::flat::{Term, Wrong};
use crate::layout::addresses::Unknown;

impl<'a> Resolver<'a> {
    /// A value that is evaluated only if a condition holds.
    pub(super) fn guarded(&mut self, when: Term, value: &Value) -> Term {
        self.when(when, |this| this.value(value))
    }

    /// Runs `work` for parts of a value that are evaluated only if a condition holds. The checks that `work` adds are guarded by that condition.
    pub(crate) fn when<T>(&mut self, when: Term, work: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.guard.clone();
        self.guard = Some(match &outer {
            None => when,
            Some(guard) => guard.clone().and(when),
        });
        let result = work(self);
        self.guard = outer;
        result
    }

    /// The node that a register points to; `None` if it cannot hold a pointer.
    pub(crate) fn points_of(&self, register: Register) -> Option<NodeId> {
        self.core.threads[self.thread.0 as usize].registers[register.0 as usize].points
    }

    pub(crate) fn value(&mut self, value: &Value) -> Term {
        match value {
            Value::Number(number) => Term::Number(*number),
            Value::Register(register) => Term::Register(*register),
            Value::Function(function) => Term::Number(function_number(*function)),
            Value::Unary(op, a) => {
                let term = self.value(a);
                self.operation_on(*op, a, term)
            }
            Value::Binary(op, a, b) => {
                let x = self.value(a);
                let y = match op {
                    BinaryOp::And => self.guarded(x.clone(), b),
                    BinaryOp::Or => self.guarded(not(x.clone()), b),
                    _ => self.value(b),
                };
                self.operation(*op, (a, x), (b, y))
            }
            Value::If(condition, a, b) => {
                let condition = self.value(condition);
                let a = self.guarded(condition.clone(), a);
                let b = self.guarded(not(condition.clone()), b);
                Term::choice(condition, a, b)
            }
            Value::Address(place) => self.address(place),
            Value::Move(pointer, by, node) => {
                let (pointer, by) = (self.value(pointer), self.value(by));
                self.moved(pointer, by, *node)
            }
            Value::Difference(a, b, node) => {
                let (a, b) = (self.value(a), self.value(b));
                self.distance(a, b, *node)
            }
            Value::Container { member, node, path, .. } => {
                let member = self.value(member);
                self.container(member, *node, path)
            }
        }
    }

    /// The address of a place as a term; for a path that starts at a null pointer, the offset of the part.
    fn address(&mut self, place: &Location) -> Term {
        // A number as a pointer: `(struct s *)-8`, which `container_of` gives for a constant null pointer.
        if let Base::Pointed(pointer, node) = &place.base
            && let Value::Number(number) = **pointer
            && number != 0
            && !place.has_computed_index()
        {
            let offset = self.nodes.offset(*node, place.least_path()) as i64;
            return Term::Number(number.wrapping_add(offset));
        }
        let Some(resolved) = self.place(place, false) else { return Term::Number(0) };
        let address = resolved.number.times(self.layout.classes[resolved.class].scale);
        let of_null = resolved.of_null.into_iter();
        of_null
            .fold(address, |address, (is_null, offset)| Term::choice(is_null, Term::Number(offset), address))
    }

    /// Pointer arithmetic, with a check that the result stays in the array or is one past its end.
    pub(super) fn moved(&mut self, pointer: Term, by: Term, node: NodeId) -> Term {
        let Some(class) = self.layout.class(self.nodes, node) else {
            return Term::binary(BinaryOp::Add, pointer, by);
        };
        let of = &self.layout.classes[class];
        let scale = of.scale;
        let moved = Term::binary(BinaryOp::Add, pointer.clone(), by.clone().times(scale));
        if by.number() == Some(0) {
            return moved;
        }
        let mut same_array = Term::Number(0);
        for (low, high) in of.arrays() {
            let (low, high) = (low * scale, high * scale);
            same_array =
                same_array.or(pointer.clone().within(low, high).and(moved.clone().within(low, high)));
        }
        let number = moved.clone().with(BinaryOp::Div, scale);
        self.claim(same_array, Wrong::Bounds, About::Moved, Some((class, number)));
        moved
    }

    /// `container_of`: from a pointer to a member to the structure; if the member is in no such structure, a pointer to no place.
    pub(super) fn container(&mut self, member: Term, node: NodeId, path: &[PathStep]) -> Term {
        let layout = self.layout;
        let Some(outer) = layout.class(self.nodes, node) else { return Term::Number(0) };
        let way = layout.ways_back.iter().find(|way| way.outer == outer && way.path == path);
        let Some(way) = way else {
            if layout.way(self.nodes, outer, path).is_some() {
                // Each member has the number of its structure, so the pointer stays the same.
                return member;
            }
            self.check(member.with(BinaryOp::Eq, 0), Wrong::Pointer);
            return Term::Number(0);
        };
        let (from, of) = (layout.classes[way.inner].scale, &layout.classes[outer]);
        let distance = member.clone().with(BinaryOp::Div, from).plus(-way.base);
        let number = distance.clone().with(BinaryOp::Div, way.width);
        // `has_number` also accepts the number one past the end of an array.
        let mut fits = of.has_number(&number);
        if from != 1 {
            fits = fits.and(member.clone().with(BinaryOp::Rem, from).with(BinaryOp::Eq, 0));
        }
        if way.width != 1 {
            fits = fits.and(distance.with(BinaryOp::Rem, way.width).with(BinaryOp::Eq, 0));
        }
        let outside = member.clone().plus(way.outside);
        let fits_or_out = fits.clone().or(way.is_outside(&outside));
        self.unknown_if(not(fits_or_out), Unknown::Number);
        // The address of a member of null is the offset of the member. If such addresses occur, the offset is the number of no place, so a pointer
        // that equals the offset was computed from null.
        let (offset, strangers) = (way.offset as i64, &layout.classes[way.inner].strangers);
        let may_be_of_null = offset == 0 || strangers.computed || strangers.numbers.contains(&offset);
        let outside = match may_be_of_null {
            true => Term::choice(member.clone().with(BinaryOp::Eq, offset), Term::Number(0), outside),
            false => outside,
        };
        Term::choice(fits, number.times(of.scale), outside)
    }
}
