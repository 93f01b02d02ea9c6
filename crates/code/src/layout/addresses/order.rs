//! The order of objects in memory: a permutation chosen once per execution.

use crate::flat::Term;
use crate::layout::classes::{Class, Layout, Placement, among};

/// Maximum number of objects whose order in memory is a choice.
pub(super) const MOST_ORDERED: usize = 4;

/// The interval of numbers in a class that one source of the class (`Source` in `layout/classes.rs`) assigns to the parts of one object, including
/// the numbers one past the ends of arrays. In the interval, a smaller number never represents a higher address.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// The object to which the numbers belong.
    pub of: Placement,
    /// The first number.
    pub low: i64,
    /// The last number.
    pub high: i64,
}

impl Piece {
    /// The `count` numbers from `low` on.
    pub fn new(of: Placement, low: i64, count: i64) -> Self {
        Piece { of, low, high: low + count - 1 }
    }

    pub(super) fn has(self, scale: i64, pointer: &Term) -> Term {
        pointer.clone().within(self.low * scale, self.high * scale + scale - 1)
    }
}

/// The order of the objects whose addresses are compared: a variable that holds the number of a permutation.
#[derive(Debug)]
pub struct Order {
    /// The class of that variable.
    pub(super) class: usize,
    objects: Vec<Placement>,
    /// The position of each object in each permutation.
    positions: Vec<Vec<usize>>,
}

impl Order {
    pub(super) fn new(class: usize, objects: Vec<Placement>) -> Self {
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

    /// The condition that the second of two objects comes before the first; `None` if the order does not include both.
    pub(super) fn reversed(&self, chosen: &Term, first: Placement, second: Placement) -> Option<Term> {
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

impl Layout {
    /// Introduces the choice of an order, if addresses of different objects are compared for order and there are at most [`MOST_ORDERED`] such
    /// objects.
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
}
