//! Three-valued states over {0, 1, *}: two bits per predicate.
//!
//! Literal 2n means that predicate n holds, literal 2n + 1 that it does not; a predicate with neither literal is `*`.

use fixedbitset::FixedBitSet;

/// A predicate or its negation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Literal(pub u32);

impl Literal {
    /// The literal which states that the predicate holds, or that it does not hold.
    pub fn new(predicate: usize, holds: bool) -> Self {
        Literal(2 * predicate as u32 + u32::from(!holds))
    }

    /// The number of the predicate.
    pub fn predicate(self) -> usize {
        self.0 as usize / 2
    }

    /// Whether the literal is positive.
    pub fn holds(self) -> bool {
        self.0.is_multiple_of(2)
    }

    /// The negation of the literal.
    pub fn negated(self) -> Self {
        Literal(self.0 ^ 1)
    }
}

/// A set of literals: the known values in a state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Vector(FixedBitSet);

/// A mask of the positive literals, which are the even bits.
const EVEN: usize = usize::MAX / 3;

impl Vector {
    /// The state in which all of the given number of predicates are `*`.
    pub fn unknown(predicates: usize) -> Self {
        Vector(FixedBitSet::with_capacity(2 * predicates))
    }

    /// The set of these literals.
    pub fn of(predicates: usize, literals: impl IntoIterator<Item = Literal>) -> Self {
        let mut vector = Vector::unknown(predicates);
        literals.into_iter().for_each(|literal| vector.insert(literal));
        vector
    }

    /// Whether the set contains the literal.
    pub fn contains(&self, literal: Literal) -> bool {
        self.0.contains(literal.0 as usize)
    }

    /// Adds a literal.
    pub fn insert(&mut self, literal: Literal) {
        self.0.insert(literal.0 as usize);
    }

    /// Adds all literals of another set (union).
    pub fn extend(&mut self, other: &Vector) {
        self.0.union_with(&other.0);
    }

    /// Keeps only the literals of another set (intersection).
    pub fn restrict(&mut self, kept: &Vector) {
        self.0.intersect_with(&kept.0);
    }

    /// Removes the literals of another set (difference).
    pub fn remove(&mut self, gone: &Vector) {
        self.0.difference_with(&gone.0);
    }

    /// Whether the two sets have a literal in common.
    pub fn meets(&self, other: &Vector) -> bool {
        !self.0.is_disjoint(&other.0)
    }

    /// Whether this state represents all valuations of another state: every literal of this state is a literal of the other.
    pub fn covers(&self, other: &Vector) -> bool {
        self.0.is_subset(&other.0)
    }

    /// Whether some predicate has both literals.
    pub fn is_contradictory(&self) -> bool {
        self.0.as_slice().iter().any(|word| word & (word >> 1) & EVEN != 0)
    }

    /// Whether all predicates are `*`.
    pub fn is_empty(&self) -> bool {
        self.0.is_clear()
    }

    /// The literals, in ascending order.
    pub fn literals(&self) -> impl Iterator<Item = Literal> {
        self.0.ones().map(|n| Literal(n as u32))
    }

    /// Memory use in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(self) + size_of_val(self.0.as_slice())
    }
}
