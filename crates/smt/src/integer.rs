//! Exact integers: a machine word while the value fits, a big number when it does not.
//!
//! The coefficients that verification problems produce are tiny, so every operation tries checked 64-bit arithmetic first and uses a big number if
//! the result overflows. A result that fits in a word is always stored as a word, so that equal values have equal representations.

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{Signed, ToPrimitive, Zero};
use std::cmp::Ordering;
use std::fmt;
use std::ops::{Add, Mul, Neg, Sub};

/// An integer of any size.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Int(Form);

/// Invariant: `Wide` holds only values that do not fit in `Word`.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Form {
    Word(i64),
    Wide(Box<BigInt>),
}

use Form::{Wide, Word};

impl Int {
    /// Zero.
    pub const ZERO: Int = Int(Word(0));
    /// One.
    pub const ONE: Int = Int(Word(1));

    /// The value as a machine word; `None` if it does not fit.
    pub fn to_i64(&self) -> Option<i64> {
        match &self.0 {
            Word(value) => Some(*value),
            Wide(_) => None,
        }
    }

    /// The value as a big number.
    pub fn to_big(&self) -> BigInt {
        match &self.0 {
            Word(value) => BigInt::from(*value),
            Wide(value) => BigInt::clone(value),
        }
    }

    /// Whether this is zero.
    pub fn is_zero(&self) -> bool {
        matches!(self.0, Word(0))
    }

    /// Whether this is one.
    pub fn is_one(&self) -> bool {
        matches!(self.0, Word(1))
    }

    /// Whether this is greater than zero.
    pub fn is_positive(&self) -> bool {
        match &self.0 {
            Word(value) => *value > 0,
            Wide(value) => value.is_positive(),
        }
    }

    /// Whether this is less than zero.
    pub fn is_negative(&self) -> bool {
        match &self.0 {
            Word(value) => *value < 0,
            Wide(value) => value.is_negative(),
        }
    }

    /// The absolute value.
    pub fn abs(&self) -> Int {
        if self.is_negative() { -self } else { self.clone() }
    }

    /// The greatest common divisor, never negative; `gcd(0, 0)` is 0.
    pub fn gcd(&self, other: &Int) -> Int {
        match (&self.0, &other.0) {
            (Word(left), Word(right)) => {
                let (mut a, mut b) = (left.unsigned_abs(), right.unsigned_abs());
                while b != 0 {
                    (a, b) = (b, a % b);
                }
                Int::from(i128::from(a))
            }
            _ => Int::from(self.to_big().gcd(&other.to_big())),
        }
    }

    /// The quotient rounded towards negative infinity. The divisor must not be zero.
    pub fn div_floor(&self, divisor: &Int) -> Int {
        match (&self.0, &divisor.0) {
            (Word(left), Word(right)) if *right != -1 => Int(Word(Integer::div_floor(left, right))),
            _ => Int::from(self.to_big().div_floor(&divisor.to_big())),
        }
    }

    /// The quotient rounded towards positive infinity. The divisor must not be zero.
    pub fn div_ceil(&self, divisor: &Int) -> Int {
        -&(-self).div_floor(divisor)
    }

    /// Whether `divisor`, which must not be zero, divides this without remainder.
    pub fn is_multiple_of(&self, divisor: &Int) -> bool {
        match (&self.0, &divisor.0) {
            (Word(left), Word(right)) => *right == -1 || left % right == 0,
            _ => self.to_big().is_multiple_of(&divisor.to_big()),
        }
    }

    /// `self + factor * other`, the inner step of every linear combination.
    pub fn plus_product(&self, factor: &Int, other: &Int) -> Int {
        if let (Word(a), Word(b), Word(c)) = (&self.0, &factor.0, &other.0)
            && let Some(sum) = b.checked_mul(*c).and_then(|product| product.checked_add(*a))
        {
            return Int(Word(sum));
        }
        self + &(factor * other)
    }
}

impl Default for Int {
    fn default() -> Int {
        Int::ZERO
    }
}

impl From<i64> for Int {
    fn from(value: i64) -> Int {
        Int(Word(value))
    }
}

impl From<i32> for Int {
    fn from(value: i32) -> Int {
        Int(Word(i64::from(value)))
    }
}

impl From<i128> for Int {
    fn from(value: i128) -> Int {
        match i64::try_from(value) {
            Ok(word) => Int(Word(word)),
            Err(_) => Int(Wide(Box::new(BigInt::from(value)))),
        }
    }
}

impl From<BigInt> for Int {
    fn from(value: BigInt) -> Int {
        match value.to_i64() {
            Some(word) => Int(Word(word)),
            None => Int(Wide(Box::new(value))),
        }
    }
}

impl From<&BigInt> for Int {
    fn from(value: &BigInt) -> Int {
        match value.to_i64() {
            Some(word) => Int(Word(word)),
            None => Int(Wide(Box::new(value.clone()))),
        }
    }
}

impl Add for &Int {
    type Output = Int;
    fn add(self, other: &Int) -> Int {
        match (&self.0, &other.0) {
            (Word(left), Word(right)) => match left.checked_add(*right) {
                Some(sum) => Int(Word(sum)),
                None => Int::from(i128::from(*left) + i128::from(*right)),
            },
            _ => Int::from(self.to_big() + other.to_big()),
        }
    }
}

impl Sub for &Int {
    type Output = Int;
    fn sub(self, other: &Int) -> Int {
        match (&self.0, &other.0) {
            (Word(left), Word(right)) => match left.checked_sub(*right) {
                Some(difference) => Int(Word(difference)),
                None => Int::from(i128::from(*left) - i128::from(*right)),
            },
            _ => Int::from(self.to_big() - other.to_big()),
        }
    }
}

impl Mul for &Int {
    type Output = Int;
    fn mul(self, other: &Int) -> Int {
        match (&self.0, &other.0) {
            (Word(left), Word(right)) => match left.checked_mul(*right) {
                Some(product) => Int(Word(product)),
                None => Int::from(i128::from(*left) * i128::from(*right)),
            },
            _ => Int::from(self.to_big() * other.to_big()),
        }
    }
}

impl Neg for &Int {
    type Output = Int;
    fn neg(self) -> Int {
        &Int::ZERO - self
    }
}

impl PartialOrd for Int {
    fn partial_cmp(&self, other: &Int) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Int {
    fn cmp(&self, other: &Int) -> Ordering {
        match (&self.0, &other.0) {
            (Word(left), Word(right)) => left.cmp(right),
            (Wide(left), Wide(right)) => left.cmp(right),
            // A wide value lies outside the range of words: its sign decides.
            (Word(_), Wide(right)) => BigInt::zero().cmp(right),
            (Wide(left), Word(_)) => BigInt::cmp(left, &BigInt::zero()),
        }
    }
}

impl fmt::Display for Int {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Word(value) => value.fmt(formatter),
            Wide(value) => value.fmt(formatter),
        }
    }
}

impl fmt::Debug for Int {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_agrees_with_big_numbers_at_every_border() {
        let mut interesting: Vec<BigInt> = Vec::new();
        for base in [0i64, 1, 2, 3, 1 << 31, 1 << 32, i64::MAX, i64::MIN, i64::MIN + 1, -7] {
            for offset in -1..=1 {
                interesting.push(BigInt::from(base) + offset);
                interesting.push(BigInt::from(base) * 6 + offset);
            }
        }
        for a in &interesting {
            for b in &interesting {
                let (x, y) = (Int::from(a.clone()), Int::from(b.clone()));
                assert_eq!(&x + &y, Int::from(a + b));
                assert_eq!(&x - &y, Int::from(a - b));
                assert_eq!(&x * &y, Int::from(a * b));
                assert_eq!(x.plus_product(&y, &x), Int::from(a + b * a));
                assert_eq!(x.gcd(&y), Int::from(a.gcd(b)));
                assert_eq!(x.cmp(&y), a.cmp(b));
                if !b.is_zero() {
                    assert_eq!(x.div_floor(&y), Int::from(a.div_floor(b)));
                    assert_eq!(x.div_ceil(&y), Int::from(Integer::div_ceil(a, b)));
                    assert_eq!(x.is_multiple_of(&y), (a % b).is_zero());
                }
            }
        }
    }
}
