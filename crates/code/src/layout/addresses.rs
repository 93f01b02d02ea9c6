//! What a program may learn from addresses.
//!
//! Pointers are numbers of places, but a program may rely on no more than this: an object lies somewhere in [2^16, 2^47), aligned for its type; objects that are alive
//! at the same time are disjoint; the addresses of an execution have one total order, and within an object it is that of its parts. Numbers of places are chosen
//! ([`crate::layout::classes`]) so that comparisons which this decides come out right as comparisons of numbers. Which of two objects comes first is a choice, made once for the
//! execution and kept in a variable that nobody writes ([`Order`]). Low bits below the alignment and the bits from 2^47 on may carry something else. Whatever else
//! depends on the bits of an address is refused: as an error where it is certain, otherwise as the end of what is modelled.

use fencewright_c::typed::tree::Step as PathStep;
use fencewright_program::{BinaryOp, UnaryOp, Width};
use fencewright_text::Diagnostic;

use crate::core::{Access, Core, HIGHEST_ADDRESS, LOWEST_ADDRESS, NodeId, Register, ThreadNumber, Value};
use crate::flat::{Cell, StepKind, Term, Wrong};
use crate::layout::classes::{ALIGNMENT, Class, Layout, Part, Placement, Source, among};
use crate::layout::containers::ways_back;
use crate::layout::resolve::Resolver;
use crate::nodes::{Nodes, Shape};
use fencewright_text::Stop;

/// Maximum number of objects whose order in memory is a choice.
const MOST_ORDERED: usize = 4;
/// How many numbers are set aside for the structures that one way back finds outside of any.
const OUTSIDE: i64 = 1 << 40;
/// Maximum number of ways back that need such numbers: all of them are below [`HIGHEST_ADDRESS`].
const MOST_WAYS_BACK: usize = 100;

/// Numbers of one class that are in the order of addresses: all those of one object that come from the same source, with the number behind the end of each array.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// The object.
    pub of: Placement,
    /// The first number.
    pub low: i64,
    /// The last one.
    pub high: i64,
}

impl Piece {
    /// So many numbers from the first on.
    pub fn new(of: Placement, low: i64, count: i64) -> Self {
        Piece { of, low, high: low + count - 1 }
    }

    fn has(self, scale: i64, pointer: &Term) -> Term {
        pointer.clone().within(self.low * scale, self.high * scale + scale - 1)
    }
}

/// Which of the objects whose addresses are compared comes first: a variable that holds the number of a permutation.
#[derive(Debug)]
pub struct Order {
    /// The class of that variable.
    class: usize,
    objects: Vec<Placement>,
    /// For each permutation the position of each object.
    positions: Vec<Vec<usize>>,
}

impl Order {
    fn new(class: usize, objects: Vec<Placement>) -> Self {
        let mut positions = vec![Vec::new()];
        for count in 1..=objects.len() {
            let longer = |shorter: &Vec<usize>| {
                let shorter = shorter.clone();
                (0..count).map(move |place| {
                    let moved = shorter.iter().map(|&other| other + usize::from(other >= place));
                    moved.chain([place]).collect()
                })
            };
            positions = positions.iter().flat_map(longer).collect();
        }
        Order { class, objects, positions }
    }

    /// Whether the second of two objects comes before the first.
    fn reversed(&self, chosen: &Term, first: Placement, second: Placement) -> Option<Term> {
        let number = |object| self.objects.iter().position(|&other| other == object);
        let (first, second) = (number(first)?, number(second)?);
        let mut runs: Vec<(i64, i64)> = Vec::new();
        for (n, position) in (0..).zip(&self.positions) {
            if position[second] < position[first] {
                match runs.last_mut() {
                    Some((_, last)) if *last == n - 1 => *last = n,
                    _ => runs.push((n, n)),
                }
            }
        }
        Some(among(&runs, chosen))
    }
}

/// A way from a member back to its structure, as `container_of` goes it. Where the member is not one of such a structure, the result is a pointer to nowhere, which is
/// the address of that member and a number of its own for each way: going forward again on the same way gives the member.
#[derive(Debug)]
pub struct WayBack {
    /// The class of the structure.
    pub outer: usize,
    /// The way to the member.
    pub path: Vec<PathStep>,
    /// The class of the member.
    pub inner: usize,
    /// The number of a member is `width` times that of the structure and `base`.
    pub width: i64,
    /// See `width`.
    pub base: i64,
    /// What is added to the address of a member that is in no structure.
    pub outside: i64,
    /// Whether the member has the address of the structure.
    pub at_start: bool,
}

impl WayBack {
    /// Whether a pointer to a structure was found by this way, and points to none.
    pub fn is_outside(&self, pointer: &Term) -> Term {
        pointer.clone().within(self.outside - OUTSIDE / 2, self.outside + OUTSIDE / 2 - 1)
    }
}

impl Layout {
    /// The power of two that divides all addresses of places that come from these sources.
    pub(crate) fn alignment(&self, sources: &[Source], nodes: &Nodes) -> u64 {
        let common = |a: u64, b: u64| 1 << (a | b).trailing_zeros().min(30);
        let of = |source: &Source| match source {
            Source::Object(object) => {
                let placed = self.placed(*object);
                let node = self.classes[placed.class].node;
                match (placed.heap, placed.elements) {
                    (false, _) => nodes.alignment(node),
                    (true, 1) => ALIGNMENT,
                    (true, _) => common(ALIGNMENT, nodes.size(node).unwrap_or(1)),
                }
            }
            Source::Parts(container, parts) => {
                let outer = &self.classes[*container];
                let start = |(part, _): &(Part, u64)| match (part, nodes.shape_of(outer.node)) {
                    (Part::Field(field), Shape::Record(record, _)) => {
                        nodes.structure(*record).fields[*field as usize].offset
                    }
                    (Part::Elements, Shape::Array(_, element)) => nodes.size(*element).unwrap_or(1),
                    _ => 1,
                };
                parts.iter().map(start).fold(outer.alignment, common)
            }
        };
        sources.iter().map(of).reduce(common).unwrap_or(1)
    }

    /// The choice of an order, if addresses of different objects are compared, and there are not too many.
    pub(crate) fn choose_order(&mut self) {
        let mut objects: Vec<Placement> = Vec::new();
        for class in self.classes.iter().filter(|class| class.used.ordered) {
            let mut found: Vec<Placement> = class.pieces.iter().map(|piece| piece.of).collect();
            found.dedup();
            if found.len() > 1 {
                found.retain(|object| !objects.contains(object));
                objects.extend(found);
            }
        }
        if !(2..=MOST_ORDERED).contains(&objects.len()) {
            return;
        }
        let order = Order::new(self.classes.len(), objects);
        self.classes.push(Class::chosen("order_of_addresses", order.positions.len() as i64));
        self.order = Some(order);
    }

    /// The ways back on which a member of something else can be met.
    pub(crate) fn find_ways_back(
        &mut self,
        core: &Core,
        nodes: &Nodes,
        stop: &Stop<'_>,
    ) -> Result<(), Vec<Diagnostic>> {
        for (node, path, span) in ways_back(core, stop) {
            let Some(outer) = self.class(nodes, node) else { continue };
            let Some((inner, width, base)) = self.way(nodes, outer, path) else { continue };
            let (member, structure) = (&self.classes[inner], &self.classes[outer]);
            // Every member is one of such a structure, and has its number.
            let only =
                (width, base) == (1, 0) && (member.scale, member.count) == (structure.scale, structure.count);
            let at_start = offset(nodes, node, path) == 0;
            if only && at_start || self.ways_back.iter().any(|way| way.outer == outer && way.path == path) {
                continue;
            }
            let count = self.ways_back.len() as i64;
            if self.ways_back.len() == MOST_WAYS_BACK {
                let message = "there are too many ways from members back to their structures";
                return Err(vec![Diagnostic::new(span, message).help("split the harness")]);
            }
            let (path, outside) = (path.to_vec(), (count + 1) * OUTSIDE);
            self.ways_back.push(WayBack { outer, path, inner, width, base, outside, at_start });
        }
        Ok(())
    }

    /// Where a way to a part leads: its class, and `width` and `base` so that its number is `width * number + base`.
    pub(crate) fn way(
        &self,
        nodes: &Nodes,
        mut class: usize,
        path: &[PathStep],
    ) -> Option<(usize, i64, i64)> {
        let (mut width, mut base) = (1, 0);
        for &step in path {
            let (inner, further, offset) = self.part(class, nodes, step)?;
            let index = if let PathStep::Element(index) = step { index as i64 } else { 0 };
            (class, width, base) = (inner, width * further, base * further + offset + index);
        }
        Some((class, width, base))
    }
}

/// How many bytes a part is away from the start.
fn offset(nodes: &Nodes, mut node: NodeId, path: &[PathStep]) -> u64 {
    let mut offset: u64 = 0;
    for &step in path {
        offset = offset.saturating_add(match (step, nodes.shape_of(node)) {
            (PathStep::Field(field), Shape::Record(record, _)) => {
                nodes.structure(*record).fields[field as usize].offset
            }
            (PathStep::Element(index), Shape::Array(_, element)) => {
                index.saturating_mul(nodes.size(*element).unwrap_or(1))
            }
            _ => 0,
        });
        let Some(part) = nodes.part(node, step) else { break };
        node = part;
    }
    offset
}

impl Class {
    /// A variable that holds any of so many numbers and is never written, whoever reads it.
    fn chosen(name: &str, choices: i64) -> Self {
        let mut class = Class::new(NodeId(u32::MAX));
        class.name = name.to_string();
        class.used.accessed_by.extend([ThreadNumber(0), ThreadNumber(1)]);
        (class.scalar, class.count, class.choice) = (true, 1, Some(choices));
        (class.places, class.initial) = (vec![None], vec![0]);
        class
    }

    /// The power of two below which the bits of all pointers to its places are 0, in memory and here.
    fn free_bits(&self) -> i64 {
        (self.alignment as i64).min(1 << self.scale.trailing_zeros())
    }

    /// The bits of addresses of its places that are not known.
    fn unknown_bits(&self) -> i64 {
        HIGHEST_ADDRESS & !(self.free_bits() - 1)
    }

    /// Whether two pointers are into the same piece.
    fn same_piece(&self, one: &Term, other: &Term) -> Term {
        let both = |piece: &Piece| piece.has(self.scale, one).and(piece.has(self.scale, other));
        self.pieces.iter().map(both).reduce(Term::or).unwrap_or(Term::Number(0))
    }
}

/// What a value points to, if it can be an address at all.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Points {
    /// It is a number.
    Nowhere,
    /// It is the address of a function.
    Function,
    /// It may be the address of a place or function of this class.
    Class(usize),
}

/// What about an address is not known.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// Which of two addresses comes first, or whether an object starts where another one ends.
    Order,
    /// Its bits.
    Bits,
    /// Whether a number is the address of some object.
    Number,
    /// Whether an object lies where another one was.
    Overlap,
}

impl Unknown {
    /// What an error says about it.
    fn error(self) -> &'static str {
        match self {
            Unknown::Order => "which of these addresses comes first is not known",
            Unknown::Bits => "this depends on the bits of an address, which are not known",
            Unknown::Number => "this number may be the address of an object",
            Unknown::Overlap => "one of these objects may lie where the other one was",
        }
    }

    /// What an `unknown` says about it; a line follows.
    fn reason(self) -> &'static str {
        match self {
            Unknown::Order => "an order of addresses",
            Unknown::Bits => "bits of an address",
            Unknown::Number => "a number that may be an address",
            Unknown::Overlap => "an address at which another object was before",
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
            // Bits below the alignment alone are no address any more.
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
            Some(class) if functions || !self.layout.classes[class].pieces.is_empty() => Points::Class(class),
            None if functions => Points::Function,
            _ => Points::Nowhere,
        }
    }

    /// Whether a value is an address, with whatever is in the bits that are free.
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

    /// Whether a pointer to a structure was found by way of a member that is in none.
    fn is_outside(&self, class: usize, pointer: &Term) -> Term {
        let ways = self.layout.ways_back.iter().filter(|way| way.outer == class);
        ways.map(|way| way.is_outside(pointer)).reduce(Term::or).unwrap_or(Term::Number(0))
    }

    /// Here ends what is modelled if this holds: an error if it certainly does.
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

    /// Here ends what is modelled if this holds, even if it certainly does: the thread need not come here.
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

    /// An operation on two values, of which some may be addresses.
    pub(crate) fn operation(&mut self, op: BinaryOp, (a, x): (&Value, Term), (b, y): (&Value, Term)) -> Term {
        let points = match (self.points(a), self.points(b)) {
            // A class that functions are compared with counts them among its numbers.
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
                    match address {
                        Points::Class(class) => self.as_numbers(class, op, &x, &y),
                        _ => Term::binary(op, x, y),
                    }
                }
                (Points::Nowhere, address) => {
                    self.with_number(address, &y, &x);
                    Term::binary(op, x, y)
                }
                (one, other) => self.compared(op, (one, x), (other, y)),
            },
        }
    }

    /// An address is compared with a number, which is none unless it lies where objects can be.
    fn with_number(&mut self, points: Points, address: &Term, number: &Term) {
        let possible = number.clone().within(LOWEST_ADDRESS, HIGHEST_ADDRESS);
        let both = self.is_address(points, address).and(possible);
        self.unknown_if(both, Unknown::Number);
    }

    fn compared(&mut self, op: BinaryOp, (one, x): (Points, Term), (other, y): (Points, Term)) -> Term {
        let plain = Term::binary(op, x.clone(), y.clone());
        let equality = matches!(op, BinaryOp::Eq | BinaryOp::Ne);
        let (Points::Class(class), true) = (one, one == other) else {
            // Functions, and addresses of things that were never used as one type.
            let both = self.is_address(one, &x).and(self.is_address(other, &y));
            if one != other || !equality {
                self.unknown_if(both, Unknown::Order);
            }
            return plain;
        };
        self.with_odd(class, &x, &y, equality);
        self.end_at_overlaps(class, &x, &y);
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

    /// An address behind the end of an array may be that of an object which comes later, not only come before it.
    fn ordered_or_equal(&mut self, class: usize, op: BinaryOp, (x, y): (&Term, &Term), result: &Term) {
        let (end, start) = if matches!(op, BinaryOp::Lt | BinaryOp::Ge) { (x, y) } else { (y, x) };
        let adjacent = self.adjacent(class, end, start);
        if adjacent.number() != Some(0) {
            let strict = matches!(op, BinaryOp::Lt | BinaryOp::Gt);
            let before = if strict { result.clone() } else { Term::unary(UnaryOp::Not, result.clone()) };
            self.unknown_if(adjacent.and(before), Unknown::Order);
        }
    }

    /// Two pointers are compared, of which one may be a number that objects can have as their address, or point to nowhere.
    fn with_odd(&mut self, class: usize, x: &Term, y: &Term, equality: bool) {
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
            // Two ways back may lead to the same address.
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

    /// Whether a pointer points behind the end of an array and another one to the start of something else, which may or may not come next in memory.
    fn adjacent(&self, class: usize, end: &Term, start: &Term) -> Term {
        let of = &self.layout.classes[class];
        let (runs, scale) = (of.runs(), of.scale);
        let is_array = |run: &(i64, i64)| {
            let behind = (run.1 + 1 - of.first) as usize;
            of.places.get(behind).is_some_and(|place| place.is_none())
        };
        // An array starts at its first element; of other places each may be a start.
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

    /// Two pointers into a class are compared for order: as their numbers are, unless they point into different objects that come in another order.
    fn ordered(&mut self, class: usize, op: BinaryOp, x: &Term, y: &Term) -> Term {
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

    /// A number computed from an address: bits that are free may be set and looked at, and an address may be moved within its object.
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
                // Nothing of an address is left above.
                let upper = y.clone().with(BinaryOp::Ge, i64::from(HIGHEST_ADDRESS.count_ones()));
                let none = y.clone().with(BinaryOp::Eq, 0);
                let harmless = if op == BinaryOp::Shr { none.or(upper) } else { none };
                is_one.clone().and(Term::unary(UnaryOp::Not, harmless)).or(is_other.clone())
            }
            _ => is_one.clone().or(is_other.clone()),
        };
        self.unknown_if(looks, Unknown::Bits);
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

    /// Whether an operation on bits with this other operand depends on bits of an address that are not known, or changes them.
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

    /// Whether an address and what it was moved to are not in the same object.
    fn leaves(&self, points: Points, from: &Term, to: &Term) -> Term {
        match points {
            Points::Class(class) => {
                Term::unary(UnaryOp::Not, self.layout.classes[class].same_piece(from, to))
            }
            _ => Term::Number(1),
        }
    }

    /// Whether the distance between two addresses is not known.
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

    /// An operation on one value that may be an address.
    pub(crate) fn operation_on(&mut self, op: UnaryOp, a: &Value, x: Term) -> Term {
        let whole =
            matches!(op, UnaryOp::Not | UnaryOp::Signed(Width::Bits64) | UnaryOp::Unsigned(Width::Bits64));
        if !whole {
            let looks = self.is_address(self.points(a), &x);
            self.unknown_if(looks, Unknown::Bits);
        }
        Term::unary(op, x)
    }

    /// The distance between two pointers, in elements: both are into one array.
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

    /// A comparison of the numbers; none is negative, unless the class says so.
    fn as_numbers(&self, class: usize, op: BinaryOp, x: &Term, y: &Term) -> Term {
        let of = &self.layout.classes[class];
        let natural = !of.strangers.computed
            && !of.used.tagged
            && of.strangers.numbers.iter().all(|&number| number >= 0);
        match (op, y.number()) {
            (BinaryOp::Lt, Some(0)) if natural => Term::Number(0),
            _ => Term::binary(op, x.clone(), y.clone()),
        }
    }

    /// A number that the program computes is kept where addresses are kept too: it must not be any.
    pub(crate) fn kept_number(&mut self, node: Option<NodeId>, number: &Term) {
        let Some(Points::Class(class)) = node.map(|node| self.node_points(node)) else { return };
        if self.layout.classes[class].strangers.computed {
            self.unknown_if(number.clone().within(LOWEST_ADDRESS, HIGHEST_ADDRESS), Unknown::Number);
        }
    }

    /// The same for a value that may be such a number, or an address.
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
