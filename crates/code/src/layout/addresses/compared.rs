//! Comparisons of addresses, for equality and for order.

use fencewright_program::{BinaryOp, UnaryOp};

use super::{Points, Unknown};
use crate::core::{Access, HIGHEST_ADDRESS, LOWEST_ADDRESS};
use crate::flat::{Cell, StepKind, Term};
use crate::layout::classes::among;
use crate::layout::resolve::Resolver;

impl Resolver<'_> {
    pub(super) fn compared(
        &mut self,
        op: BinaryOp,
        (one, x): (Points, Term),
        (other, y): (Points, Term),
    ) -> Term {
        let plain = Term::binary(op, x.clone(), y.clone());
        let equality = matches!(op, BinaryOp::Eq | BinaryOp::Ne);
        let (Points::Class(class), true) = (one, one == other) else {
            // The operands are not both pointers into one class. If both are addresses, only the equality of two functions is determined. A
            // comparison with a number that is not an address is always determined.
            let both = self.is_address(one, &x).and(self.is_address(other, &y));
            if one != other || !equality {
                self.unknown_if(both, Unknown::Order);
            }
            return plain;
        };
        self.with_odd(class, &x, &y, equality);
        self.end_at_overlaps(class, &x, &y);
        self.end_at_literals(class, &x, &y, equality);
        match equality {
            true => {
                let adjacent = self.adjacent(class, &x, &y).or(self.adjacent(class, &y, &x));
                self.unknown_if(adjacent, Unknown::Order);
            }
            false => {
                let result = self.ordered(class, op, &x, &y);
                self.ordered_or_equal(class, op, (&x, &y), &result);
                return result;
            }
        }
        plain
    }

    /// Ends the model where the result depends on whether the address one past the end of an array equals that of the object after the array.
    pub(super) fn ordered_or_equal(
        &mut self,
        class: usize,
        op: BinaryOp,
        (x, y): (&Term, &Term),
        result: &Term,
    ) {
        let (end, start) = if matches!(op, BinaryOp::Lt | BinaryOp::Ge) { (x, y) } else { (y, x) };
        let adjacent = self.adjacent(class, end, start);
        if adjacent.number() != Some(0) {
            let strict = matches!(op, BinaryOp::Lt | BinaryOp::Gt);
            let before = if strict { result.clone() } else { Term::unary(UnaryOp::Not, result.clone()) };
            self.unknown_if(adjacent.and(before), Unknown::Order);
        }
    }

    /// Ends the model where the comparison of two pointers has an unknown result because one of them is a number in the range of addresses, the
    /// result of `container_of` for a member that is in no structure of the class, or, in a comparison for order, the address of a function.
    pub(super) fn with_odd(&mut self, class: usize, x: &Term, y: &Term, equality: bool) {
        let layout = self.layout;
        let of = &layout.classes[class];
        let odd = of.strangers.numbers.iter().filter(|odd| (LOWEST_ADDRESS..=HIGHEST_ADDRESS).contains(*odd));
        for &odd in odd {
            for (one, other) in [(x, y), (y, x)] {
                let is_address = self.is_address(Points::Class(class), other);
                self.unknown_if(one.clone().with(BinaryOp::Eq, odd).and(is_address), Unknown::Number);
            }
        }
        let ways = layout.ways_back.iter().filter(|way| way.outer == class);
        let ways: Vec<Term> = match equality {
            // Two uses of `container_of` may give the same address, so whether their results are equal is unknown.
            true => {
                let pairs = ways.clone().flat_map(|one| ways.clone().map(move |other| (one, other)));
                let different = pairs.filter(|(one, other)| one.outside != other.outside);
                let different = different.map(|(one, other)| one.is_outside(x).and(other.is_outside(y)));
                let gaps: Vec<(i64, i64)> =
                    of.gaps().iter().map(|&(low, high)| (low * of.scale, high * of.scale)).collect();
                let after_array = ways.clone().flat_map(|way| {
                    [(x, y), (y, x)].map(|(one, other)| way.is_outside(one).and(among(&gaps, other)))
                });
                different.chain(after_array).collect()
            }
            false => ways.flat_map(|way| [way.is_outside(x), way.is_outside(y)]).collect(),
        };
        if equality && layout.is_way_back_to(class) {
            for (one, other) in [(x, y), (y, x)] {
                let address_or_null =
                    self.is_address(Points::Class(class), other).or(other.clone().with(BinaryOp::Eq, 0));
                let number = Term::unary(UnaryOp::Not, address_or_null);
                self.unknown_if(self.is_of_number(class, one).and(number), Unknown::Number);
            }
        }
        if let Some(outside) = ways.into_iter().reduce(Term::or) {
            self.unknown_if(outside, Unknown::Order);
        }
        if !equality {
            for (one, other) in [(x, y), (y, x)] {
                let is_function = |&function: &i64| one.clone().with(BinaryOp::Eq, function);
                let Some(functions) = of.strangers.functions.iter().map(is_function).reduce(Term::or) else {
                    return;
                };
                let is_address = self.is_address(Points::Class(class), other);
                let different = Term::binary(BinaryOp::Ne, x.clone(), y.clone());
                self.unknown_if(functions.and(is_address).and(different), Unknown::Order);
            }
        }
    }

    /// The condition that one pointer is one past the end of an array and the other points to the start of another object, which may or may not be
    /// adjacent in memory.
    pub(super) fn adjacent(&self, class: usize, end: &Term, start: &Term) -> Term {
        let of = &self.layout.classes[class];
        let (runs, scale) = (of.runs(), of.scale);
        let is_array = |run: &(i64, i64)| {
            let behind = (run.1 + 1 - of.first) as usize;
            of.places.get(behind).is_some_and(|place| place.is_none())
        };
        // In the run of an array, only the first element starts an object; in any other run, every place may start one.
        let starts: Vec<(i64, i64)> =
            runs.iter().map(|run| if is_array(run) { (run.0, run.0) } else { *run }).collect();
        let mut adjacent = Term::Number(0);
        for (n, run) in runs.iter().enumerate().filter(|(_, run)| is_array(run)) {
            let others = starts.iter().enumerate().filter(|(other, _)| *other != n);
            let others: Vec<(i64, i64)> =
                others.map(|(_, start)| (start.0 * scale, start.1 * scale)).collect();
            let is_end = end.clone().with(BinaryOp::Eq, (run.1 + 1) * scale);
            adjacent = adjacent.or(is_end.and(among(&others, start)));
        }
        adjacent
    }

    /// Compares two pointers into a class for order: by their numbers, unless the chosen order of their objects is the reverse of the order of the
    /// numbers. Ends the model where the order is unknown.
    pub(super) fn ordered(&mut self, class: usize, op: BinaryOp, x: &Term, y: &Term) -> Term {
        let layout = self.layout;
        let of = &layout.classes[class];
        let plain = self.as_numbers(class, op, x, y);
        if of.pieces.len() < 2 {
            return plain;
        }
        if of.used.tagged {
            let upper =
                |value: &Term| value.clone().with(BinaryOp::BitAnd, !HIGHEST_ADDRESS).with(BinaryOp::Ne, 0);
            self.unknown_if(upper(x).or(upper(y)), Unknown::Order);
        }
        let (mut unknown, mut pairs) = (Term::Number(0), Vec::new());
        for (n, one) in of.pieces.iter().enumerate() {
            for other in &of.pieces[n + 1..] {
                let there = one.has(of.scale, x).and(other.has(of.scale, y));
                let across = there.or(other.has(of.scale, x).and(one.has(of.scale, y)));
                match one.of == other.of || layout.order.is_none() {
                    _ if across.number() == Some(0) => {}
                    true => unknown = unknown.or(across),
                    false => pairs.push((one.of, other.of, across)),
                }
            }
        }
        self.unknown_if(unknown, Unknown::Order);
        let (Some(order), false) = (&layout.order, pairs.is_empty()) else { return plain };
        let chosen = self.register("order", 0);
        self.push(StepKind::Load(chosen, Cell { class: order.class, index: None }, Access::Own));
        let chosen = Term::Register(chosen);
        let swapped = pairs
            .into_iter()
            .filter_map(|(one, other, across)| Some(across.and(order.reversed(&chosen, one, other)?)));
        let swapped = swapped.reduce(Term::or).unwrap_or(Term::Number(0));
        Term::binary(BinaryOp::Ne, plain, swapped)
    }

    /// Compares the numbers of two pointers. If the class has no computed numbers, no tags, no negative constants and no results of `container_of`
    /// outside of structures, all its numbers are natural, so none is less than 0.
    pub(super) fn as_numbers(&self, class: usize, op: BinaryOp, x: &Term, y: &Term) -> Term {
        let of = &self.layout.classes[class];
        let natural = !of.strangers.computed
            && !of.used.tagged
            && of.strangers.numbers.iter().all(|&number| number >= 0)
            && !self.layout.is_way_back_to(class);
        match (op, y.number()) {
            (BinaryOp::Lt, Some(0)) if natural => Term::Number(0),
            _ => Term::binary(op, x.clone(), y.clone()),
        }
    }
}
