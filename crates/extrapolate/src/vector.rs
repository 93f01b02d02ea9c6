//! Three-valued states over {0, 1, *}: two bits per predicate, packed into words.
//!
//! Literal 2n means that predicate n holds, literal 2n + 1 that it does not; a predicate with neither literal is `*`.

/// A predicate or its negation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Literal(pub u32);

impl Literal {
    /// The literal that the predicate holds or does not hold.
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

    /// The negation.
    pub fn negated(self) -> Self {
        Literal(self.0 ^ 1)
    }
}

/// A set of literals: the known values in a state.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Vector {
    words: Box<[u64]>,
}

/// A mask of the positive literals.
const EVEN: u64 = 0x5555_5555_5555_5555;

impl Vector {
    /// The state in which all of the given number of predicates are `*`.
    pub fn unknown(predicates: usize) -> Self {
        Vector { words: vec![0; (2 * predicates).div_ceil(64)].into() }
    }

    /// The set of these literals.
    pub fn of(predicates: usize, literals: impl IntoIterator<Item = Literal>) -> Self {
        let mut vector = Vector::unknown(predicates);
        literals.into_iter().for_each(|literal| vector.insert(literal));
        vector
    }

    /// Whether the set contains the literal.
    pub fn contains(&self, literal: Literal) -> bool {
        self.words[literal.0 as usize / 64] >> (literal.0 % 64) & 1 == 1
    }

    /// Adds a literal.
    pub fn insert(&mut self, literal: Literal) {
        self.words[literal.0 as usize / 64] |= 1 << (literal.0 % 64);
    }

    /// Adds all literals of another set (union).
    pub fn extend(&mut self, other: &Vector) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, more)| *word |= more);
    }

    /// Keeps only the literals of another set (intersection).
    pub fn restrict(&mut self, kept: &Vector) {
        self.words.iter_mut().zip(&kept.words).for_each(|(word, kept)| *word &= kept);
    }

    /// Removes the literals of another set (difference).
    pub fn remove(&mut self, gone: &Vector) {
        self.words.iter_mut().zip(&gone.words).for_each(|(word, gone)| *word &= !gone);
    }

    /// Whether the two sets have a literal in common.
    pub fn meets(&self, other: &Vector) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    /// Whether this state represents all valuations of another one: its literals are a subset.
    pub fn covers(&self, other: &Vector) -> bool {
        self.words.iter().zip(&other.words).all(|(a, b)| a & !b == 0)
    }

    /// Whether some predicate has both literals.
    pub fn is_contradictory(&self) -> bool {
        self.words.iter().any(|word| word & (word >> 1) & EVEN != 0)
    }

    /// Whether all predicates are `*`.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// The literals, in order.
    pub fn literals(&self) -> impl Iterator<Item = Literal> {
        self.words.iter().enumerate().flat_map(|(n, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros();
                (left != 0).then(|| {
                    left &= left - 1;
                    Literal(n as u32 * 64 + bit)
                })
            })
        })
    }

    /// Memory use in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(self) + size_of_val(&*self.words)
    }
}
