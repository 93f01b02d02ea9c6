//! Linear terms, atoms and formulas.
//!
//! Formulas are kept in a list, and each formula refers to earlier ones only. So no formula contains itself, and code that processes them in order
//! needs no recursion.

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{One, Signed, Zero};

/// A sum of variables times coefficients, plus a constant. A variable is identified by a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum<N = BigInt> {
    /// Variables with their coefficients. In an [`Atom`]: sorted by variable, without zero coefficients.
    pub terms: Vec<(u32, N)>,
    /// The constant term.
    pub constant: N,
}

/// The relation of the sum of an atom to zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// At most zero.
    Le,
    /// Equal to zero.
    Eq,
    /// Different from zero.
    Ne,
}

/// A sum compared with zero, in normal form: it has at least one variable; the coefficients have no common divisor (the constant of an inequality is
/// rounded, which is sound over the integers only); the first coefficient of an equality or disequality is positive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Atom {
    sum: Sum,
    relation: Relation,
}

/// The number of a formula in a list of [`Formulas`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormulaId(usize);

impl FormulaId {
    /// The position of the formula in the list.
    pub fn index(self) -> usize {
        self.0
    }
}

/// A formula whose parts are in the same list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Formula {
    /// A truth value.
    Truth(bool),
    /// A sum compared with zero.
    Atom(Atom),
    /// The conjunction of at least two formulas.
    And(Vec<FormulaId>),
    /// The disjunction of at least two formulas.
    Or(Vec<FormulaId>),
}

/// A list of formulas, each made from earlier ones.
#[derive(Clone, Debug, Default)]
pub struct Formulas(Vec<Formula>);

impl Sum {
    /// This sum plus a number.
    pub(crate) fn plus(mut self, value: i32) -> Self {
        self.constant += value;
        self
    }

    /// This sum times -1.
    pub(crate) fn negated(&self) -> Self {
        let terms = self.terms.iter().map(|(variable, factor)| (*variable, -factor)).collect();
        Sum { terms, constant: -&self.constant }
    }
}

impl Atom {
    /// The sum that is compared with zero.
    pub fn sum(&self) -> &Sum {
        &self.sum
    }

    /// The relation of the sum to zero.
    pub fn relation(&self) -> Relation {
        self.relation
    }
}

impl Formula {
    /// The normal form of `sum RELATION 0`: an atom, or a truth value if no variable remains or divisibility decides it.
    pub(crate) fn compared<N: Clone + Into<BigInt>>(sum: &Sum<N>, relation: Relation) -> Formula {
        let mut terms: Vec<(u32, BigInt)> = sum.terms.iter().map(|(v, n)| (*v, n.clone().into())).collect();
        terms.sort_by_key(|(variable, _)| *variable);
        terms.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += &next.1;
            }
            same
        });
        terms.retain(|(_, factor)| !factor.is_zero());
        let mut constant: BigInt = sum.constant.clone().into();
        let unit = terms.iter().any(|(_, factor)| factor.magnitude().is_one());
        let divisor = match unit {
            // With a coefficient of 1 or -1, which most sums have, there is nothing to divide by.
            true => BigInt::one(),
            false => terms.iter().fold(BigInt::zero(), |divisor, (_, factor)| divisor.gcd(factor)),
        };
        if divisor.is_zero() {
            return Formula::Truth(match relation {
                Relation::Le => !constant.is_positive(),
                Relation::Eq => constant.is_zero(),
                Relation::Ne => !constant.is_zero(),
            });
        }
        if !unit {
            if relation != Relation::Le && !constant.is_multiple_of(&divisor) {
                return Formula::Truth(relation == Relation::Ne);
            }
            terms.iter_mut().for_each(|(_, factor)| *factor /= &divisor);
            // a*x <= -c with a = divisor: x <= floor(-c / a), and so the constant is rounded up.
            constant = Integer::div_ceil(&constant, &divisor);
        }
        let mut sum = Sum { terms, constant };
        if relation != Relation::Le && sum.terms[0].1.is_negative() {
            sum = sum.negated();
        }
        Formula::Atom(Atom { sum, relation })
    }
}

impl Formulas {
    /// The formulas, in order.
    pub fn all(&self) -> &[Formula] {
        &self.0
    }

    /// The formula with this number.
    pub fn get(&self, id: FormulaId) -> &Formula {
        &self.0[id.0]
    }

    fn add(&mut self, formula: Formula) -> FormulaId {
        self.0.push(formula);
        FormulaId(self.0.len() - 1)
    }

    /// `sum RELATION 0`.
    pub fn atom<N: Clone + Into<BigInt>>(&mut self, sum: &Sum<N>, relation: Relation) -> FormulaId {
        self.add(Formula::compared(sum, relation))
    }

    /// The formula that is always true, or always false if `value` is false.
    pub fn truth(&mut self, value: bool) -> FormulaId {
        self.add(Formula::Truth(value))
    }

    /// The conjunction of the formulas. Parts that are true are dropped; a false part makes the result false.
    pub fn and(&mut self, parts: Vec<FormulaId>) -> FormulaId {
        self.connected(parts, true)
    }

    /// The disjunction of the formulas. Parts that are false are dropped; a true part makes the result true.
    pub fn or(&mut self, parts: Vec<FormulaId>) -> FormulaId {
        self.connected(parts, false)
    }

    fn connected(&mut self, mut parts: Vec<FormulaId>, conjunction: bool) -> FormulaId {
        if parts.iter().any(|part| *self.get(*part) == Formula::Truth(!conjunction)) {
            return self.truth(!conjunction);
        }
        parts.retain(|part| !matches!(self.get(*part), Formula::Truth(_)));
        match parts.as_slice() {
            [] => self.truth(conjunction),
            [only] => *only,
            _ if conjunction => self.add(Formula::And(parts)),
            _ => self.add(Formula::Or(parts)),
        }
    }
}
