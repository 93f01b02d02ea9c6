//! Operations on addresses: which results are determined by C and the model, and which are unknown.
//!
//! Pointers are numbers of places, but a program may rely on no more than this: an object lies somewhere in [2^16, 2^47), aligned for its type;
//! objects that are alive at the same time are disjoint; all addresses of an execution are totally ordered, and within an object in the order of its
//! parts. Numbers of places are chosen ([`crate::layout::classes`]) so that comparisons determined by these rules give the same result on the
//! numbers. Which of two objects comes first is a nondeterministic choice, made once per execution and kept in a variable that is never written
//! ([`Order`]). The bits below the alignment and from 2^47 on may carry tags. Every other dependence on the bits of an address is rejected with an
//! error if it is certain. If it depends on the execution, the model ends at this point, and the answer for such executions is unknown.

mod compared;
mod literals;
mod order;
mod ways_back;

use fencewright_program::{BinaryOp, UnaryOp, Width};
use fencewright_text::Diagnostic;

use crate::core::{HIGHEST_ADDRESS, LOWEST_ADDRESS, NodeId, Register, ThreadNumber, Value};
use crate::flat::{StepKind, Term, Wrong};
use crate::layout::classes::{ALIGNMENT, Class, Layout, Part, Source};
use crate::layout::resolve::Resolver;
use crate::nodes::{Nodes, Shape};

pub(crate) use order::{Order, Piece};
pub(crate) use ways_back::WayBack;

impl Layout {
    /// The greatest power of two known to divide all addresses of places from these sources.
    pub(crate) fn alignment(&self, sources: &[Source], nodes: &Nodes) -> u64 {
        let common = |a: u64, b: u64| 1 << (a | b).trailing_zeros().min(30);
        let of = |source: &Source| match source {
            Source::Object(object) => {
                let placed = self.placed(*object);
                let Some(node) = self.classes[placed.class].node else { return 1 };
                match (placed.heap, placed.elements) {
                    (false, _) => nodes.alignment(node),
                    (true, 1) => ALIGNMENT,
                    (true, _) => common(ALIGNMENT, nodes.size(node).unwrap_or(1)),
                }
            }
            Source::Parts(container, parts) => {
                let outer = &self.classes[*container];
                let shape = outer.node.map(|node| nodes.shape_of(node));
                let start = |(part, _): &(Part, u64)| match (part, shape) {
                    (Part::Field(field), Some(Shape::Record(record, _))) => {
                        nodes.structure(*record).fields[*field as usize].offset
                    }
                    (Part::Elements, Some(Shape::Array(_, element))) => nodes.size(*element).unwrap_or(1),
                    _ => 1,
                };
                parts.iter().map(start).fold(outer.alignment, common)
            }
        };
        sources.iter().map(of).reduce(common).unwrap_or(1)
    }
}

impl Class {
    /// A variable that initially holds any of the numbers `0..choices` and is never written.
    fn chosen(name: &str, choices: i64) -> Self {
        let mut class = Class::new(None);
        class.name = name.to_string();
        class.used.accessed_by.extend([ThreadNumber(0), ThreadNumber(1)]);
        (class.scalar, class.count, class.choice) = (true, 1, Some(choices));
        (class.places, class.initial) = (vec![None], vec![0]);
        class
    }

    /// A power of two: the bits below it are 0 in all pointers to places of this class, both in real addresses and in the numbers of the model.
    fn free_bits(&self) -> i64 {
        (self.alignment as i64).min(1 << self.scale.trailing_zeros())
    }

    /// The mask of the bits in which the addresses of places of this class are unknown.
    fn unknown_bits(&self) -> i64 {
        HIGHEST_ADDRESS & !(self.free_bits() - 1)
    }

    /// The condition that two pointers point into the same [`Piece`].
    fn same_piece(&self, one: &Term, other: &Term) -> Term {
        let both = |piece: &Piece| piece.has(self.scale, one).and(piece.has(self.scale, other));
        self.pieces.iter().map(both).reduce(Term::or).unwrap_or(Term::Number(0))
    }
}

/// The kind of addresses that a value may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Points {
    /// The value is a number and not an address.
    Nowhere,
    /// The value is the address of a function.
    Function,
    /// The value may be the address of a place or function of this class.
    Class(usize),
}

/// The reason why the model ends at a point of an execution: a property of addresses, or a value ([`Unknown::Cut`]), that the layout does not know.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// Which of two addresses comes first, or whether an object starts where another one ends.
    Order,
    /// The bits of an address.
    Bits,
    /// Whether a number is the address of some object.
    Number,
    /// Whether an object reuses the address of an earlier one.
    Overlap,
    /// The contents of an array element that is not modelled, because the array is too large.
    Cut,
    /// Whether two string literals are one object, or one is part of the other.
    Literals,
}

impl Unknown {
    /// The message of the error.
    fn error(self) -> &'static str {
        match self {
            Unknown::Order => "the order of these addresses is unknown",
            Unknown::Bits => "this depends on the bits of an address, which are unknown",
            Unknown::Number => "this number may be the address of an object",
            Unknown::Literals => "these string literals may be one object",
            Unknown::Overlap => "one of these objects may have the former address of the other",
            Unknown::Cut => "this element of a large array is not modelled",
        }
    }

    /// The reason given with the answer `unknown`; a line number follows it.
    fn reason(self) -> &'static str {
        match self {
            Unknown::Order => "an order of addresses",
            Unknown::Bits => "bits of an address",
            Unknown::Number => "a number that may be an address",
            Unknown::Literals => "whether equal string literals are one object",
            Unknown::Overlap => "an address at which another object was before",
            Unknown::Cut => "a later element of a large array",
        }
    }
}

impl Resolver<'_> {
    fn points(&self, value: &Value) -> Points {
        match value {
            Value::Number(_) | Value::Difference(..) => Points::Nowhere,
            Value::Function(_) => Points::Function,
            Value::Register(register) => self.register_points(*register),
            Value::Unary(UnaryOp::Signed(Width::Bits64) | UnaryOp::Unsigned(Width::Bits64), inner) => {
                self.points(inner)
            }
            Value::Unary(..) => Points::Nowhere,
            Value::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::BitOr | BinaryOp::BitXor, a, b) => {
                self.either(a, b)
            }
            // A mask that clears all unknown bits leaves only the tag, which is not an address.
            Value::Binary(BinaryOp::BitAnd, a, b) => match (&**a, &**b, self.either(a, b)) {
                (Value::Number(mask), _, Points::Class(class))
                | (_, Value::Number(mask), Points::Class(class))
                    if mask & self.layout.classes[class].unknown_bits() == 0 =>
                {
                    Points::Nowhere
                }
                (_, _, points) => points,
            },
            Value::Binary(..) => Points::Nowhere,
            Value::If(_, a, b) => self.either(a, b),
            Value::Address(place) => self.node_points(place.node),
            Value::Move(.., node) | Value::Container { node, .. } => self.node_points(*node),
        }
    }

    fn either(&self, a: &Value, b: &Value) -> Points {
        match self.points(a) {
            Points::Nowhere => self.points(b),
            points => points,
        }
    }

    fn register_points(&self, register: Register) -> Points {
        let node = self.core.threads[self.thread.0 as usize].registers[register.0 as usize].points;
        node.map_or(Points::Nowhere, |node| self.node_points(node))
    }

    fn node_points(&self, node: NodeId) -> Points {
        let functions = !self.nodes.strangers(node).functions.is_empty();
        match self.layout.class(self.nodes, node) {
            Some(class)
                if functions
                    || !self.layout.classes[class].pieces.is_empty()
                    || self.layout.is_way_back_to(class) =>
            {
                Points::Class(class)
            }
            None if functions => Points::Function,
            _ => Points::Nowhere,
        }
    }

    /// The condition that a value is an address, possibly with tag bits set.
    fn is_address(&self, points: Points, value: &Term) -> Term {
        let Points::Class(class) = points else { return Term::Number((points == Points::Function).into()) };
        let of = &self.layout.classes[class];
        let value = if of.used.tagged {
            value.clone().with(BinaryOp::BitAnd, HIGHEST_ADDRESS)
        } else {
            value.clone()
        };
        let (first, last) = (of.first * of.scale, (of.first + of.count as i64) * of.scale - 1);
        let mut is_address = Term::Number(0);
        if !of.pieces.is_empty() {
            is_address = value.clone().within(first, last);
        }
        for &function in &of.strangers.functions {
            is_address = is_address.or(value.clone().with(BinaryOp::Eq, function));
        }
        self.is_outside(class, &value).or(is_address)
    }

    /// The condition that a pointer to a structure came from `container_of` of a member that is not in such a structure.
    fn is_outside(&self, class: usize, pointer: &Term) -> Term {
        let ways = self.layout.ways_back.iter().filter(|way| way.outer == class);
        ways.map(|way| way.is_outside(pointer)).reduce(Term::or).unwrap_or(Term::Number(0))
    }

    /// The condition that a pointer to a structure came from `container_of` of a number that is not an address.
    fn is_of_number(&self, class: usize, pointer: &Term) -> Term {
        let ways = self.layout.ways_back.iter().filter(|way| way.outer == class);
        ways.map(|way| self.way_of_number(way, pointer)).reduce(Term::or).unwrap_or(Term::Number(0))
    }

    fn way_of_number(&self, way: &WayBack, pointer: &Term) -> Term {
        let is_address = self.is_address(Points::Class(way.inner), &way.member(pointer));
        way.is_outside(pointer).and(Term::unary(UnaryOp::Not, is_address))
    }

    /// The number as which a pointer is compared with other numbers. The result of `container_of` for a number is that number minus the offset of the
    /// member.
    fn as_number(&self, points: Points, pointer: Term) -> Term {
        let Points::Class(class) = points else { return pointer };
        let ways = self.layout.ways_back.iter().filter(|way| way.outer == class);
        ways.fold(pointer.clone(), |otherwise, way| {
            let number = way.member(&pointer).plus(-(way.offset as i64));
            Term::choice(self.way_of_number(way, &pointer), number, otherwise)
        })
    }

    /// Ends the model here if a condition holds; reports an error if the condition certainly holds.
    pub(crate) fn unknown_if(&mut self, condition: Term, what: Unknown) {
        let condition = match &self.guard {
            None => condition,
            Some(guard) => guard.clone().and(condition),
        };
        match condition.number() {
            Some(0) => {}
            Some(_) => self.refuse(what.error()),
            None => self.beyond(condition, what),
        }
    }

    /// Like [`Self::unknown_if`], but without an error even if the condition certainly holds, because the statement may be unreachable.
    pub(crate) fn beyond_if(&mut self, condition: Term, what: Unknown) {
        let condition = match &self.guard {
            None => condition,
            Some(guard) => guard.clone().and(condition),
        };
        if condition.number() != Some(0) {
            self.beyond(condition, what);
        }
    }

    fn beyond(&mut self, condition: Term, what: Unknown) {
        let text = self.with_line(what.reason(), self.span);
        self.push(StepKind::Beyond(condition, text));
    }

    fn refuse(&mut self, text: &str) {
        let help = "an object lies anywhere in memory: compare addresses for equality, or number the objects in a member of their own";
        self.errors.push(Diagnostic::new(self.span, text).help(help));
    }

    /// A binary operation whose operands may be addresses.
    pub(crate) fn operation(&mut self, op: BinaryOp, (a, x): (&Value, Term), (b, y): (&Value, Term)) -> Term {
        let points = match (self.points(a), self.points(b)) {
            // The address of a function that is compared with pointers to a class is treated as an address of that class.
            (class @ Points::Class(_), Points::Function) | (Points::Function, class @ Points::Class(_)) => {
                (class, class)
            }
            points => points,
        };
        if points == (Points::Nowhere, Points::Nowhere) {
            return Term::binary(op, x, y);
        }
        match op {
            BinaryOp::And | BinaryOp::Or => Term::binary(op, x, y),
            _ if !op.is_comparison() => self.computed(op, (points.0, x), (points.1, y)),
            _ => match points {
                (address, Points::Nowhere) => {
                    self.with_number(address, &x, &y);
                    let x = self.as_number(address, x);
                    match address {
                        Points::Class(class) => self.as_numbers(class, op, &x, &y),
                        _ => Term::binary(op, x, y),
                    }
                }
                (Points::Nowhere, address) => {
                    self.with_number(address, &y, &x);
                    let y = self.as_number(address, y);
                    Term::binary(op, x, y)
                }
                (one, other) => self.compared(op, (one, x), (other, y)),
            },
        }
    }

    /// Ends the model where an address is compared with a number in the range of addresses.
    fn with_number(&mut self, points: Points, address: &Term, number: &Term) {
        let possible = number.clone().within(LOWEST_ADDRESS, HIGHEST_ADDRESS);
        let mut both = self.is_address(points, address).and(possible);
        if let Points::Class(class) = points {
            // `container_of` of a member at the lowest address gives an address below the lowest one.
            for way in self.layout.ways_back.iter().filter(|way| way.outer == class && way.offset > 0) {
                let below = number.clone().within(LOWEST_ADDRESS - way.offset as i64, LOWEST_ADDRESS - 1);
                both = both.or(way.is_outside(address).and(below));
            }
        }
        self.unknown_if(both, Unknown::Number);
    }

    /// A binary operation, other than a comparison, on an address. Ends the model where the result depends on unknown bits. It does not depend on
    /// them if tag bits are set or read, an address is moved within its object, or two addresses in one object are subtracted.
    fn computed(&mut self, op: BinaryOp, (one, x): (Points, Term), (other, y): (Points, Term)) -> Term {
        let result = Term::binary(op, x.clone(), y.clone());
        let (is_one, is_other) = (self.is_address(one, &x), self.is_address(other, &y));
        let looks = match op {
            BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor => {
                let one = is_one.clone().and(self.clashes(op, one, &y));
                one.or(is_other.clone().and(self.clashes(op, other, &x)))
            }
            BinaryOp::Add | BinaryOp::Sub => {
                let leaves = self.leaves(one, &x, &result);
                let not_other = Term::unary(UnaryOp::Not, is_other.clone());
                let not_one = Term::unary(UnaryOp::Not, is_one.clone());
                let (from_other, both) = match op {
                    BinaryOp::Sub => (Term::Number(1), self.apart(one, other, &x, &y)),
                    _ => (self.leaves(other, &y, &result), Term::Number(1)),
                };
                let first = is_one.clone().and(not_other).and(leaves);
                let second = is_other.clone().and(not_one).and(from_other);
                first.or(second).or(is_one.clone().and(is_other.clone()).and(both))
            }
            BinaryOp::Rem if self.divides_alignment(one, &y) => is_other.clone(),
            BinaryOp::Shl | BinaryOp::Shr => {
                // A shift to the right by the width of addresses or more leaves no address bits.
                let upper = y.clone().with(BinaryOp::Ge, i64::from(HIGHEST_ADDRESS.count_ones()));
                let none = y.clone().with(BinaryOp::Eq, 0);
                let harmless = if op == BinaryOp::Shr { none.or(upper) } else { none };
                is_one.clone().and(Term::unary(UnaryOp::Not, harmless)).or(is_other.clone())
            }
            _ => is_one.clone().or(is_other.clone()),
        };
        let is_outside = |points, value: &Term| match points {
            Points::Class(class) => self.is_outside(class, value),
            _ => Term::Number(0),
        };
        let outside = is_outside(one, &x).or(is_outside(other, &y));
        self.unknown_if(looks.or(outside), Unknown::Bits);
        let counts =
            |points| matches!(points, Points::Class(class) if self.layout.classes[class].strangers.computed);
        if counts(one) || counts(other) {
            let number = Term::unary(UnaryOp::Not, is_one.or(is_other));
            self.unknown_if(
                number.and(result.clone().within(LOWEST_ADDRESS, HIGHEST_ADDRESS)),
                Unknown::Number,
            );
        }
        result
    }

    /// The condition that a bit operation with this mask reads or changes unknown bits of an address.
    fn clashes(&self, op: BinaryOp, points: Points, mask: &Term) -> Term {
        let unknown = match points {
            Points::Class(class) => self.layout.classes[class].unknown_bits(),
            _ => HIGHEST_ADDRESS,
        };
        let bits = mask.clone().with(BinaryOp::BitAnd, unknown);
        let changes = bits.clone().with(BinaryOp::Ne, 0);
        match op {
            BinaryOp::BitAnd => changes.and(bits.with(BinaryOp::Ne, unknown)),
            _ => changes,
        }
    }

    /// The condition that an address and the result of moving it are not in the same object.
    fn leaves(&self, points: Points, from: &Term, to: &Term) -> Term {
        match points {
            Points::Class(class) => {
                Term::unary(UnaryOp::Not, self.layout.classes[class].same_piece(from, to))
            }
            _ => Term::Number(1),
        }
    }

    /// The condition that the distance between two addresses is unknown.
    fn apart(&self, one: Points, other: Points, x: &Term, y: &Term) -> Term {
        match (one, other) {
            (Points::Class(class), _) if one == other => {
                Term::unary(UnaryOp::Not, self.layout.classes[class].same_piece(x, y))
            }
            _ => Term::Number(1),
        }
    }

    fn divides_alignment(&self, points: Points, by: &Term) -> bool {
        let (Points::Class(class), Some(by)) = (points, by.number()) else { return false };
        by > 0 && self.layout.classes[class].free_bits() % by == 0
    }

    /// A unary operation whose operand may be an address.
    pub(crate) fn operation_on(&mut self, op: UnaryOp, a: &Value, x: Term) -> Term {
        let whole =
            matches!(op, UnaryOp::Not | UnaryOp::Signed(Width::Bits64) | UnaryOp::Unsigned(Width::Bits64));
        if !whole {
            let looks = self.is_address(self.points(a), &x);
            self.unknown_if(looks, Unknown::Bits);
        }
        Term::unary(op, x)
    }

    /// The distance between two pointers in elements, with a check that both are equal or point into one array.
    pub(crate) fn distance(&mut self, x: Term, y: Term, node: NodeId) -> Term {
        let layout = self.layout;
        let Some(class) = layout.class(self.nodes, node) else { return Term::binary(BinaryOp::Sub, x, y) };
        let of = &layout.classes[class];
        let scale = of.scale;
        let mut together = Term::binary(BinaryOp::Eq, x.clone(), y.clone());
        for (low, high) in of.arrays() {
            let (low, high) = (low * scale, high * scale);
            together = together.or(x.clone().within(low, high).and(y.clone().within(low, high)));
        }
        self.check(together, Wrong::Bounds);
        Term::binary(BinaryOp::Sub, x, y).with(BinaryOp::Div, scale)
    }

    /// Ends the model where a computed number in the range of addresses is stored in memory that holds pointers.
    pub(crate) fn kept_number(&mut self, node: Option<NodeId>, number: &Term) {
        let Some(Points::Class(class)) = node.map(|node| self.node_points(node)) else { return };
        if self.layout.classes[class].strangers.computed {
            self.unknown_if(number.clone().within(LOWEST_ADDRESS, HIGHEST_ADDRESS), Unknown::Number);
        }
    }

    /// Like [`Self::kept_number`], for a value that may be a computed number or an address.
    pub(crate) fn kept(&mut self, node: Option<NodeId>, value: &Value, term: &Term) {
        match (value, self.points(value)) {
            (Value::Number(_), _) => {}
            (_, Points::Nowhere) => self.kept_number(node, term),
            (Value::If(condition, a, b), _) => {
                let condition = self.value(condition);
                let otherwise = Term::unary(UnaryOp::Not, condition.clone());
                for (when, part) in [(condition, a), (otherwise, b)] {
                    self.when(when, |this| {
                        let term = this.value(part);
                        this.kept(node, part, &term);
                    });
                }
            }
            _ => {}
        }
    }
}
