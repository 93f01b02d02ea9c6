//! The part of a litmus test about its final states: `locations`, `filter` and the condition.
//!
//! As in herd, numbers are compared modulo the width of the compared register or location: a location of 32 bits that holds -1 also equals
//! 4294967295.

mod parse;

use std::fmt::Write as _;

use fencewright_front_end::{Shown, ShownPlace, View};
use fencewright_fw::ast::{self, Expr, ExprKind, Property, PropertyKind, ThreadRef};
use fencewright_fw::build;
use fencewright_program::{BinaryOp, Span, UnaryOp};

use super::Test;
use super::types::{RegisterPart, Type, mask, reduce, unsigned, wrap};

/// A register or location, whose final value can be observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Register(usize, RegisterPart),
    Location(usize),
}

/// One side of an equation.
#[derive(Clone, Copy, Debug)]
enum Side {
    Place(Place),
    Number(i128),
    /// The address of a location.
    Address(usize),
}

#[derive(Debug)]
enum Proposition {
    Constant(bool),
    Equal(Place, Side),
    Not(Box<Item>),
    And(Vec<Item>),
    Or(Vec<Item>),
    Implies(Box<[Item; 2]>),
}

/// A proposition with its position.
#[derive(Debug)]
struct Item {
    proposition: Proposition,
    span: Span,
}

/// The part of a test after its program.
pub(super) struct Question {
    locations: Vec<Place>,
    filter: Option<Item>,
    condition: Option<(PropertyKind, Item, Span)>,
}

impl Question {
    /// Whether there is no condition.
    pub(super) fn is_empty(&self) -> bool {
        self.condition.is_none()
    }

    /// The property `condition`, and the values of final states to show.
    pub(super) fn build(&self, test: &Test) -> (Option<Property>, View) {
        let mut places = self.locations.clone();
        let mut view = View { condition: String::new(), shown: Vec::new(), filter: None };
        let property = |formula, kind, name, span| Property {
            name: Some(build::name(name, span)),
            kind,
            binders: Vec::new(),
            formula,
            span,
        };
        let filter = self.filter.as_ref().map(|filter| expression(filter, test));
        view.filter =
            filter.clone().map(|f| property(f.clone(), PropertyKind::FinallyExists, FILTER, f.span));
        let condition = self.condition.as_ref().map(|(kind, item, span)| {
            observed(item, &mut places);
            let quantifier = match kind {
                PropertyKind::FinallyNever => "~exists",
                PropertyKind::FinallyForall => "forall",
                _ => "exists",
            };
            view.condition = format!("{quantifier} (");
            write(item, test, 0, &mut view.condition);
            view.condition.push(')');
            let mut formula = expression(item, test);
            if let Some(filter) = filter {
                // The property is only about final states that pass the filter.
                let at = filter.span;
                formula = match kind {
                    PropertyKind::FinallyForall => {
                        build::binary(BinaryOp::Or, build::unary(UnaryOp::Not, filter, at), formula, *span)
                    }
                    _ => build::binary(BinaryOp::And, filter, formula, *span),
                };
            }
            property(formula, *kind, "condition", *span)
        });
        // The order of herd: registers first, thread by thread, then locations by name.
        places.sort_by_cached_key(|place| match *place {
            Place::Register(thread, part) => {
                (0, test.threads[thread].number, part.family, std::cmp::Reverse(part.bits()), String::new())
            }
            Place::Location(l) => (1, 0, 0, std::cmp::Reverse(0), test.locations[l].written.clone()),
        });
        places.dedup();
        view.shown = places.into_iter().map(|place| shown(place, test)).collect();
        (condition, view)
    }
}

/// The name of the property that a final state satisfies if it passes the filter.
pub(super) const FILTER: &str = "filter";

/// The location whose address a place holds, if any.
fn address(place: Place, test: &Test) -> Option<usize> {
    match place {
        Place::Register(thread, part) => test.threads[thread].register(part.family).address,
        Place::Location(_) => None,
    }
}

/// The type in which the final value of a register is shown: its declared type, otherwise `int` as in herd. It is narrower if `part` is.
fn register_type(thread: usize, part: RegisterPart, test: &Test) -> Type {
    let declared = test.threads[thread].register(part.family).declared.unwrap_or(Type::INT);
    Type { bits: declared.bits.min(part.bits()), ..declared }
}

fn type_of(place: Place, test: &Test) -> Type {
    match place {
        Place::Register(thread, part) => register_type(thread, part, test),
        Place::Location(location) => test.locations[location].shown_as(),
    }
}

/// The variable for a place, and its width in bits.
fn variable(place: Place, test: &Test, span: Span) -> (Expr, u32) {
    match place {
        Place::Register(thread, part) => {
            let thread = &test.threads[thread];
            let register = thread.register(part.family);
            let owner = ThreadRef { name: build::name(&thread.name, span), index: None };
            let name = build::name(register.name(), span);
            (
                Expr { kind: ExprKind::Register(owner, ast::Place { name, index: None }), span },
                register.bits(),
            )
        }
        Place::Location(location) => {
            let location = &test.locations[location];
            (build::variable(&location.name, span), location.bits())
        }
    }
}

fn expression(item: &Item, test: &Test) -> Expr {
    let span = item.span;
    let all = |op, parts: &[Item]| {
        build::balanced(op, parts.iter().map(|part| expression(part, test)).collect(), span)
    };
    match &item.proposition {
        Proposition::Constant(value) => build::int(*value as i64, span),
        Proposition::Equal(place, side) => equation(*place, *side, test, span),
        Proposition::Not(operand) => match &operand.proposition {
            Proposition::Equal(place, side) => match equation(*place, *side, test, span) {
                Expr { kind: ExprKind::Binary(BinaryOp::Eq, a, b), .. } => {
                    build::binary(BinaryOp::Ne, *a, *b, span)
                }
                other => build::unary(UnaryOp::Not, other, span),
            },
            _ => build::unary(UnaryOp::Not, expression(operand, test), span),
        },
        Proposition::And(parts) => all(BinaryOp::And, parts),
        Proposition::Or(parts) => all(BinaryOp::Or, parts),
        Proposition::Implies(sides) => {
            let refuted = build::unary(UnaryOp::Not, expression(&sides[0], test), span);
            build::binary(BinaryOp::Or, refuted, expression(&sides[1], test), span)
        }
    }
}

fn equation(left: Place, right: Side, test: &Test, span: Span) -> Expr {
    let equal = |a, b| build::binary(BinaryOp::Eq, a, b, span);
    if let Some(held) = address(left, test) {
        let same = match right {
            Side::Place(right) => address(right, test) == Some(held),
            Side::Address(location) => location == held,
            Side::Number(_) => false,
        };
        return build::int(same as i64, span);
    }
    let (value, bits) = variable(left, test, span);
    let shown = type_of(left, test);
    match right {
        Side::Number(number) => {
            // The bits of a location above its accessed width are always 0, so a number in which one of these bits is set never equals the location's
            // value.
            let declared = match left {
                Place::Location(location) => test.locations[location].declared,
                Place::Register(..) => None,
            };
            if declared.is_some_and(|d| d.bits > bits && reduce(number, d.bits) >> bits != 0) {
                return build::int(0, span);
            }
            match shown.bits < bits {
                false => equal(value, build::int(reduce(number, shown.bits), span)),
                true => {
                    let low = reduce(number, shown.bits) & mask(shown.bits);
                    equal(unsigned(value, shown.bits, span), build::int(low, span))
                }
            }
        }
        Side::Place(right) => {
            let (other, other_bits) = variable(right, test, span);
            let other_shown = type_of(right, test);
            if shown.bits == other_shown.bits {
                let low = |e, has| if shown.bits < has { wrap(e, shown.bits, span) } else { e };
                return equal(low(value, bits), low(other, other_bits));
            }
            let read = |e, has, shown: Type| match shown.signed || shown.bits == 64 {
                true if shown.bits < has => wrap(e, shown.bits, span),
                true => e,
                false => unsigned(e, shown.bits, span),
            };
            equal(read(value, bits, shown), read(other, other_bits, other_shown))
        }
        Side::Address(_) => build::int(0, span),
    }
}

/// The places that a proposition observes.
fn observed(item: &Item, places: &mut Vec<Place>) {
    match &item.proposition {
        Proposition::Constant(_) => {}
        Proposition::Equal(left, right) => {
            places.push(*left);
            if let Side::Place(right) = right {
                places.push(*right);
            }
        }
        Proposition::Not(operand) => observed(operand, places),
        Proposition::And(parts) | Proposition::Or(parts) => parts.iter().for_each(|p| observed(p, places)),
        Proposition::Implies(sides) => sides.iter().for_each(|p| observed(p, places)),
    }
}

/// The name of a place in herd's notation.
fn place_name(place: Place, test: &Test) -> String {
    match place {
        Place::Register(thread, part) => {
            let name = part.name();
            let name = if test.is_64 { name.to_ascii_lowercase() } else { name };
            format!("{}:{name}", test.threads[thread].number)
        }
        Place::Location(location) => format!("[{}]", test.locations[location].written),
    }
}

fn shown(place: Place, test: &Test) -> Shown {
    let Type { bits, signed } = type_of(place, test);
    let what = match (place, address(place, test)) {
        (_, Some(location)) => ShownPlace::Address(test.locations[location].written.clone()),
        (Place::Register(thread, part), None) => {
            let thread = &test.threads[thread];
            ShownPlace::Register(thread.name.clone(), thread.register(part.family).name())
        }
        (Place::Location(location), None) => ShownPlace::Memory(test.locations[location].name.clone()),
    };
    Shown { name: place_name(place, test), place: what, bits, signed }
}

/// Writes a proposition in herd's notation; `outer` is the precedence of the enclosing operator.
fn write(item: &Item, test: &Test, outer: u8, text: &mut String) {
    let joined = |parts: &[Item], symbol: &str, tightness: u8, text: &mut String| {
        if tightness < outer {
            text.push('(');
        }
        for (number, part) in parts.iter().enumerate() {
            if number > 0 {
                text.push_str(symbol);
            }
            write(part, test, tightness + 1, text);
        }
        if tightness < outer {
            text.push(')');
        }
    };
    match &item.proposition {
        Proposition::Constant(value) => text.push_str(if *value { "true" } else { "false" }),
        Proposition::Equal(place, side) => {
            let _ = match side {
                Side::Number(number) => write!(text, "{}={number}", place_name(*place, test)),
                Side::Address(location) => {
                    write!(text, "{}={}", place_name(*place, test), test.locations[*location].written)
                }
                Side::Place(other) => {
                    write!(text, "{}={}", place_name(*place, test), place_name(*other, test))
                }
            };
        }
        Proposition::Not(operand) => {
            text.push_str("not (");
            write(operand, test, 0, text);
            text.push(')');
        }
        Proposition::Implies(sides) => joined(&sides[..], " => ", 0, text),
        Proposition::Or(parts) => joined(parts, " \\/ ", 1, text),
        Proposition::And(parts) => joined(parts, " /\\ ", 2, text),
    }
}
