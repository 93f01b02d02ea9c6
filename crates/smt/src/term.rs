//! Linear terms and atoms over integer variables, always in normal form.

use crate::integer::Int;
use std::fmt;
use std::ops::{Add, Neg, Sub};

/// An integer variable, identified by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Var(pub u32);

/// A sum of coefficients times variables, plus a constant. Terms are sorted by variable and no coefficient is zero.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Linear {
    terms: Vec<(Var, Int)>,
    constant: Int,
}

impl Linear {
    /// The term without variables that has this value.
    pub fn constant(value: impl Into<Int>) -> Linear {
        Linear { terms: Vec::new(), constant: value.into() }
    }

    /// A sum of coefficients times variables, in any order and with repetitions, plus a constant.
    pub fn sum<C: Into<Int>>(terms: impl IntoIterator<Item = (C, Var)>, constant: impl Into<Int>) -> Linear {
        let mut sorted: Vec<(Var, Int)> =
            terms.into_iter().map(|(factor, var)| (var, factor.into())).collect();
        sorted.sort_by_key(|(var, _)| *var);
        sorted.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = &kept.1 + &next.1;
            }
            same
        });
        sorted.retain(|(_, factor)| !factor.is_zero());
        Linear { terms: sorted, constant: constant.into() }
    }

    /// The coefficients and their variables, sorted by variable.
    pub fn terms(&self) -> &[(Var, Int)] {
        &self.terms
    }

    /// The constant of the sum.
    pub fn constant_part(&self) -> &Int {
        &self.constant
    }

    /// Whether the term has no variable.
    pub fn is_constant(&self) -> bool {
        self.terms.is_empty()
    }

    /// The coefficient of a variable; zero if it does not occur.
    pub fn coefficient(&self, var: Var) -> Int {
        match self.terms.binary_search_by_key(&var, |(other, _)| *other) {
            Ok(position) => self.terms[position].1.clone(),
            Err(_) => Int::ZERO,
        }
    }

    /// This term plus a constant.
    pub fn plus(mut self, value: impl Into<Int>) -> Linear {
        self.constant = &self.constant + &value.into();
        self
    }

    /// This term times a constant.
    pub fn times(&self, factor: &Int) -> Linear {
        if factor.is_zero() {
            return Linear::constant(0);
        }
        Linear {
            terms: self.terms.iter().map(|(var, coefficient)| (*var, coefficient * factor)).collect(),
            constant: &self.constant * factor,
        }
    }

    /// This term plus `factor` times another term.
    pub fn plus_scaled(&self, factor: &Int, other: &Linear) -> Linear {
        if factor.is_zero() {
            return self.clone();
        }
        let mut terms = Vec::with_capacity(self.terms.len() + other.terms.len());
        let mut mine = self.terms.iter().peekable();
        for (var, coefficient) in &other.terms {
            while let Some(term) = mine.next_if(|term| term.0 < *var) {
                terms.push(term.clone());
            }
            let sum = match mine.next_if(|term| term.0 == *var) {
                Some((_, own)) => own.plus_product(factor, coefficient),
                None => factor * coefficient,
            };
            if !sum.is_zero() {
                terms.push((*var, sum));
            }
        }
        terms.extend(mine.cloned());
        Linear { terms, constant: self.constant.plus_product(factor, &other.constant) }
    }

    /// Replaces `var` by `replacement`.
    pub fn substitute(&self, var: Var, replacement: &Linear) -> Linear {
        match self.terms.binary_search_by_key(&var, |(other, _)| *other) {
            Err(_) => self.clone(),
            Ok(position) => {
                let mut rest = self.clone();
                let (_, factor) = rest.terms.remove(position);
                rest.plus_scaled(&factor, replacement)
            }
        }
    }

    /// The value when each variable has the given value.
    pub fn evaluate(&self, value: &dyn Fn(Var) -> Int) -> Int {
        self.terms
            .iter()
            .fold(self.constant.clone(), |sum, (var, factor)| sum.plus_product(factor, &value(*var)))
    }

    /// The greatest common divisor of the coefficients; zero if there are none.
    fn content(&self) -> Int {
        let mut divisor = Int::ZERO;
        for (_, coefficient) in &self.terms {
            divisor = divisor.gcd(coefficient);
            if divisor.is_one() {
                break;
            }
        }
        divisor
    }

    /// Writes the sum without its constant, with the given names.
    fn write_terms(&self, out: &mut impl fmt::Write, name: &dyn Fn(Var) -> String) -> fmt::Result {
        for (position, (var, factor)) in self.terms.iter().enumerate() {
            match (position, factor.is_negative()) {
                (0, false) => {}
                (0, true) => out.write_str("-")?,
                (_, false) => out.write_str(" + ")?,
                (_, true) => out.write_str(" - ")?,
            }
            let size = factor.abs();
            if !size.is_one() {
                write!(out, "{size}*")?;
            }
            out.write_str(&name(*var))?;
        }
        Ok(())
    }
}

impl From<Var> for Linear {
    fn from(var: Var) -> Linear {
        Linear { terms: vec![(var, Int::ONE)], constant: Int::ZERO }
    }
}

impl From<i64> for Linear {
    fn from(value: i64) -> Linear {
        Linear::constant(value)
    }
}

impl From<i32> for Linear {
    fn from(value: i32) -> Linear {
        Linear::constant(value)
    }
}

impl From<Int> for Linear {
    fn from(value: Int) -> Linear {
        Linear::constant(value)
    }
}

impl Add for Linear {
    type Output = Linear;
    fn add(self, other: Linear) -> Linear {
        self.plus_scaled(&Int::ONE, &other)
    }
}

impl Sub for Linear {
    type Output = Linear;
    fn sub(self, other: Linear) -> Linear {
        self.plus_scaled(&Int::from(-1), &other)
    }
}

impl Neg for Linear {
    type Output = Linear;
    fn neg(self) -> Linear {
        self.times(&Int::from(-1))
    }
}

impl fmt::Display for Linear {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_terms(formatter, &plain_name)?;
        match (self.terms.is_empty(), self.constant.is_negative()) {
            (true, _) => write!(formatter, "{}", self.constant),
            (false, _) if self.constant.is_zero() => Ok(()),
            (false, false) => write!(formatter, " + {}", self.constant),
            (false, true) => write!(formatter, " - {}", self.constant.abs()),
        }
    }
}

impl fmt::Debug for Linear {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// The name of a variable without a given name.
pub(crate) fn plain_name(var: Var) -> String {
    format!("v{}", var.0)
}

/// The relation of the linear term of an atom to zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Relation {
    /// At most zero.
    Le,
    /// Equal to zero.
    Eq,
    /// Different from zero.
    Ne,
}

/// A linear term compared with zero.
///
/// Normal form: at least one variable; the coefficients have no common divisor (the constant of an inequality is rounded, which is sound over the
/// integers only); the first coefficient of an equality or disequality is positive.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Atom {
    linear: Linear,
    relation: Relation,
}

impl Atom {
    /// The normal form of `linear RELATION 0`; the error is a truth value, if no variable remains or divisibility decides the comparison.
    pub fn new(mut linear: Linear, relation: Relation) -> Result<Atom, bool> {
        if linear.is_constant() {
            return Err(relation.holds(&linear.constant));
        }
        let divisor = linear.content();
        if !divisor.is_one() {
            if relation != Relation::Le && !linear.constant.is_multiple_of(&divisor) {
                return Err(relation == Relation::Ne);
            }
            for (_, coefficient) in &mut linear.terms {
                *coefficient = coefficient.div_floor(&divisor);
            }
            // a*x <= -c with a = divisor: x <= floor(-c / a), and so the constant is rounded up.
            linear.constant = linear.constant.div_ceil(&divisor);
        }
        if relation != Relation::Le && linear.terms[0].1.is_negative() {
            linear = -linear;
        }
        Ok(Atom { linear, relation })
    }

    /// The linear term that is compared with zero.
    pub fn linear(&self) -> &Linear {
        &self.linear
    }

    /// The relation of the term to zero.
    pub fn relation(&self) -> Relation {
        self.relation
    }

    /// The atom that is true exactly if this atom is false.
    pub fn negated(&self) -> Atom {
        match self.relation {
            // The negation of t <= 0 is t >= 1. The coefficients of an atom have no common divisor, so none has to be divided out.
            Relation::Le => Atom { linear: (-self.linear.clone()).plus(1), relation: Relation::Le },
            Relation::Eq => Atom { linear: self.linear.clone(), relation: Relation::Ne },
            Relation::Ne => Atom { linear: self.linear.clone(), relation: Relation::Eq },
        }
    }

    /// Whether the atom is true when each variable has the given value.
    pub fn evaluate(&self, value: &dyn Fn(Var) -> Int) -> bool {
        self.relation.holds(&self.linear.evaluate(value))
    }

    /// Writes the atom as `terms RELATION constant`, with the given names.
    pub(crate) fn write(&self, out: &mut impl fmt::Write, name: &dyn Fn(Var) -> String) -> fmt::Result {
        self.linear.write_terms(out, name)?;
        let sign = match self.relation {
            Relation::Le => "<=",
            Relation::Eq => "=",
            Relation::Ne => "!=",
        };
        write!(out, " {sign} {}", -&self.linear.constant)
    }
}

impl Relation {
    /// Whether a value has this relation to zero.
    pub fn holds(self, value: &Int) -> bool {
        match self {
            Relation::Le => !value.is_positive(),
            Relation::Eq => value.is_zero(),
            Relation::Ne => !value.is_zero(),
        }
    }
}

impl fmt::Display for Atom {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(formatter, &plain_name)
    }
}

impl fmt::Debug for Atom {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linear(terms: &[(i64, u32)], constant: i64) -> Linear {
        Linear::sum(terms.iter().map(|(factor, var)| (*factor, Var(*var))), constant)
    }

    #[test]
    fn sums_are_sorted_and_without_zeros() {
        assert_eq!(linear(&[(2, 3), (1, 1), (-2, 3)], 5), linear(&[(1, 1)], 5));
        assert_eq!(linear(&[(2, 3), (1, 1)], 5).to_string(), "v1 + 2*v3 + 5");
        assert_eq!((linear(&[(2, 3)], 1) - linear(&[(2, 3)], 4)).to_string(), "-3");
        assert_eq!(
            linear(&[(2, 0), (1, 1)], 0).substitute(Var(0), &linear(&[(1, 1)], 3)),
            linear(&[(3, 1)], 6)
        );
    }

    #[test]
    fn atoms_are_tightened() {
        let check = |terms: &[(i64, u32)], constant, relation, expected: &str| {
            let shown = match Atom::new(linear(terms, constant), relation) {
                Ok(atom) => atom.to_string(),
                Err(value) => value.to_string(),
            };
            assert_eq!(shown, expected);
        };
        check(&[(2, 0), (-4, 1)], -3, Relation::Le, "v0 - 2*v1 <= 1");
        check(&[(2, 0), (-4, 1)], 3, Relation::Le, "v0 - 2*v1 <= -2");
        check(&[(-2, 0)], 4, Relation::Eq, "v0 = 2");
        check(&[(2, 0), (-4, 1)], 3, Relation::Eq, "false");
        check(&[(2, 0), (-4, 1)], 3, Relation::Ne, "true");
        check(&[], 1, Relation::Le, "false");
    }
}
