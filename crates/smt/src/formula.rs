//! Quantifier-free formulas in negation normal form.
//!
//! Formulas are shared, so copies are cheap. No function here recurses, not even the one that drops formulas: a formula nested a million levels deep
//! is handled like any other.

use crate::integer::Int;
use crate::term::{Atom, Linear, Relation, Var, plain_name};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, Not};
use std::sync::Arc;

/// A formula: atoms under conjunction and disjunction. Negation is pushed to the atoms.
#[derive(Clone)]
pub enum Formula {
    /// Always true.
    True,
    /// Never true.
    False,
    /// A linear term compared with zero.
    Atom(Atom),
    /// The conjunction of at least two formulas, none of them a conjunction or a truth value.
    And(Parts),
    /// The disjunction of at least two formulas, none of them a disjunction or a truth value.
    Or(Parts),
}

/// The parts of a conjunction or disjunction; reads as a slice.
#[derive(Clone)]
pub struct Parts(Arc<Vec<Formula>>);

impl Deref for Parts {
    type Target = [Formula];
    fn deref(&self) -> &[Formula] {
        &self.0
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        // Parts with no other owner are dropped with a worklist instead of recursion.
        let Some(parts) = Arc::get_mut(&mut self.0) else { return };
        if parts.iter().all(|part| !matches!(part, Formula::And(_) | Formula::Or(_))) {
            return;
        }
        let mut work = std::mem::take(parts);
        while let Some(formula) = work.pop() {
            if let Formula::And(mut parts) | Formula::Or(mut parts) = formula
                && let Some(parts) = Arc::get_mut(&mut parts.0)
            {
                work.append(parts);
            }
        }
    }
}

impl From<Atom> for Formula {
    fn from(atom: Atom) -> Formula {
        Formula::Atom(atom)
    }
}

impl From<bool> for Formula {
    fn from(value: bool) -> Formula {
        if value { Formula::True } else { Formula::False }
    }
}

impl Formula {
    /// `linear RELATION 0`.
    pub fn atom(linear: Linear, relation: Relation) -> Formula {
        match Atom::new(linear, relation) {
            Ok(atom) => Formula::Atom(atom),
            Err(value) => Formula::from(value),
        }
    }

    /// `left <= right`.
    pub fn le(left: impl Into<Linear>, right: impl Into<Linear>) -> Formula {
        Formula::atom(left.into() - right.into(), Relation::Le)
    }

    /// `left < right`.
    pub fn lt(left: impl Into<Linear>, right: impl Into<Linear>) -> Formula {
        Formula::atom((left.into() - right.into()).plus(1), Relation::Le)
    }

    /// `left = right`.
    pub fn eq(left: impl Into<Linear>, right: impl Into<Linear>) -> Formula {
        Formula::atom(left.into() - right.into(), Relation::Eq)
    }

    /// `left != right`.
    pub fn ne(left: impl Into<Linear>, right: impl Into<Linear>) -> Formula {
        Formula::atom(left.into() - right.into(), Relation::Ne)
    }

    /// The conjunction of the formulas. Parts that are true are dropped, a false part makes the result false, nested conjunctions are flattened.
    pub fn and(formulas: impl IntoIterator<Item = Formula>) -> Formula {
        match Formula::flatten(true, formulas) {
            None => Formula::False,
            Some(mut parts) => match parts.len() {
                0 => Formula::True,
                1 => parts.remove(0),
                _ => Formula::And(Parts(Arc::new(parts))),
            },
        }
    }

    /// The disjunction of the formulas: the dual of [`Formula::and`].
    pub fn or(formulas: impl IntoIterator<Item = Formula>) -> Formula {
        match Formula::flatten(false, formulas) {
            None => Formula::True,
            Some(mut parts) => match parts.len() {
                0 => Formula::False,
                1 => parts.remove(0),
                _ => Formula::Or(Parts(Arc::new(parts))),
            },
        }
    }

    /// The parts of a conjunction (or disjunction); `None` if one part decides the whole.
    fn flatten(conjunction: bool, formulas: impl IntoIterator<Item = Formula>) -> Option<Vec<Formula>> {
        let mut parts = Vec::new();
        for formula in formulas {
            match formula {
                Formula::True if conjunction => {}
                Formula::False if !conjunction => {}
                Formula::True | Formula::False => return None,
                Formula::And(inner) if conjunction => parts.extend(inner.iter().cloned()),
                Formula::Or(inner) if !conjunction => parts.extend(inner.iter().cloned()),
                other => parts.push(other),
            }
        }
        Some(parts)
    }

    /// The implication from `self` to `conclusion`.
    pub fn implies(self, conclusion: Formula) -> Formula {
        Formula::or([!self, conclusion])
    }

    /// Rebuilds the formula with each atom replaced; if `dual`, also exchanges conjunction and disjunction, and true and false.
    pub fn map(&self, dual: bool, replace: &mut dyn FnMut(&Atom) -> Formula) -> Formula {
        let leaf = |formula: &Formula| match formula {
            Formula::Atom(atom) => replace(atom),
            other => Formula::from(matches!(other, Formula::True) != dual),
        };
        self.fold(leaf, |conjunction, parts| match conjunction != dual {
            true => Formula::and(parts),
            false => Formula::or(parts),
        })
    }

    /// Computes a value bottom-up: `join` gives the value of a conjunction (or disjunction) from the values of its parts.
    pub(crate) fn fold<T>(
        &self,
        mut leaf: impl FnMut(&Formula) -> T,
        mut join: impl FnMut(bool, Vec<T>) -> T,
    ) -> T {
        // The stack of open connectives, outermost first, with the values of their parts so far.
        let mut open: Vec<(bool, &[Formula], Vec<T>)> = Vec::new();
        let mut current = self;
        loop {
            let mut done = match current {
                Formula::And(parts) | Formula::Or(parts) => {
                    let conjunction = matches!(current, Formula::And(_));
                    open.push((conjunction, parts, Vec::with_capacity(parts.len())));
                    current = &parts[0];
                    continue;
                }
                other => leaf(other),
            };
            // Add the value to the innermost open connective, and close every connective that has the values of all its parts.
            loop {
                let Some((conjunction, parts, joined)) = open.last_mut() else { return done };
                joined.push(done);
                if let Some(next) = parts.get(joined.len()) {
                    current = next;
                    break;
                }
                done = join(*conjunction, std::mem::take(joined));
                open.pop();
            }
        }
    }

    /// Replaces `var` by `replacement`.
    pub fn substitute(&self, var: Var, replacement: &Linear) -> Formula {
        self.map(false, &mut |atom| {
            Formula::atom(atom.linear().substitute(var, replacement), atom.relation())
        })
    }

    /// Whether the formula is true when each variable has the given value.
    pub fn evaluate(&self, value: &dyn Fn(Var) -> Int) -> bool {
        self.decide(&mut |atom| atom.evaluate(value))
    }

    /// Whether the formula is true when each atom has the given truth value.
    pub(crate) fn decide(&self, holds: &mut dyn FnMut(&Atom) -> bool) -> bool {
        let mut open: Vec<(bool, &[Formula])> = Vec::new();
        let mut current = self;
        loop {
            let value = match current {
                Formula::True => true,
                Formula::False => false,
                Formula::Atom(atom) => holds(atom),
                Formula::And(parts) | Formula::Or(parts) => {
                    open.push((matches!(current, Formula::And(_)), &parts[1..]));
                    current = &parts[0];
                    continue;
                }
            };
            loop {
                let Some((conjunction, rest)) = open.last_mut() else { return value };
                // A false part decides a conjunction and a true part a disjunction; if no part does, the last part decides. In each case the whole
                // has the value of the part just seen.
                if value == *conjunction
                    && let Some((next, others)) = rest.split_first()
                {
                    *rest = others;
                    current = next;
                    break;
                }
                open.pop();
            }
        }
    }

    /// Every atom, from left to right, with repetitions.
    pub fn atoms(&self) -> impl Iterator<Item = &Atom> {
        let mut work = vec![self];
        std::iter::from_fn(move || {
            while let Some(formula) = work.pop() {
                match formula {
                    Formula::True | Formula::False => {}
                    Formula::Atom(atom) => return Some(atom),
                    Formula::And(parts) | Formula::Or(parts) => work.extend(parts.iter().rev()),
                }
            }
            None
        })
    }

    /// The variables that occur, sorted, each once.
    pub fn variables(&self) -> Vec<Var> {
        let mut variables: Vec<Var> =
            self.atoms().flat_map(|atom| atom.linear().terms().iter().map(|(var, _)| *var)).collect();
        variables.sort_unstable();
        variables.dedup();
        variables
    }

    /// Writes the formula, with the given names for the variables.
    pub fn write(&self, out: &mut impl fmt::Write, name: &dyn Fn(Var) -> String) -> fmt::Result {
        enum Piece<'a> {
            Text(&'static str),
            Formula(&'a Formula, bool),
        }
        let mut work = vec![Piece::Formula(self, false)];
        while let Some(piece) = work.pop() {
            let (formula, nested) = match piece {
                Piece::Text(text) => {
                    out.write_str(text)?;
                    continue;
                }
                Piece::Formula(formula, nested) => (formula, nested),
            };
            let (parts, separator) = match formula {
                Formula::True => {
                    out.write_str("true")?;
                    continue;
                }
                Formula::False => {
                    out.write_str("false")?;
                    continue;
                }
                Formula::Atom(atom) => {
                    atom.write(out, name)?;
                    continue;
                }
                Formula::And(parts) => (parts, " && "),
                Formula::Or(parts) => (parts, " || "),
            };
            if nested {
                out.write_str("(")?;
                work.push(Piece::Text(")"));
            }
            for (position, part) in parts.iter().enumerate().rev() {
                work.push(Piece::Formula(part, true));
                if position > 0 {
                    work.push(Piece::Text(separator));
                }
            }
        }
        Ok(())
    }
}

impl Not for Formula {
    type Output = Formula;
    /// The negation, again in negation normal form.
    fn not(self) -> Formula {
        self.map(true, &mut |atom| Formula::Atom(atom.negated()))
    }
}

impl PartialEq for Formula {
    fn eq(&self, other: &Formula) -> bool {
        let mut work = vec![(self, other)];
        while let Some(pair) = work.pop() {
            let (left, right) = match pair {
                (Formula::True, Formula::True) | (Formula::False, Formula::False) => continue,
                (Formula::Atom(left), Formula::Atom(right)) if left == right => continue,
                (Formula::And(left), Formula::And(right)) | (Formula::Or(left), Formula::Or(right)) => {
                    (left, right)
                }
                _ => return false,
            };
            if Arc::ptr_eq(&left.0, &right.0) {
                continue;
            }
            if left.len() != right.len() {
                return false;
            }
            work.extend(left.iter().zip(right.iter()));
        }
        true
    }
}

impl Eq for Formula {}

impl Hash for Formula {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut work = vec![self];
        while let Some(formula) = work.pop() {
            std::mem::discriminant(formula).hash(state);
            match formula {
                Formula::True | Formula::False => {}
                Formula::Atom(atom) => atom.hash(state),
                Formula::And(parts) | Formula::Or(parts) => {
                    parts.len().hash(state);
                    work.extend(parts.iter());
                }
            }
        }
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(formatter, &plain_name)
    }
}

impl fmt::Debug for Formula {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connectives_are_flat_and_without_truth_values() {
        let (x, y) = (Var(0), Var(1));
        let small = Formula::le(x, 3);
        let both =
            Formula::and([small.clone(), Formula::True, Formula::and([Formula::lt(y, x), small.clone()])]);
        assert_eq!(both.to_string(), "v0 <= 3 && -v0 + v1 <= -1 && v0 <= 3");
        assert_eq!((!both.clone()).to_string(), "-v0 <= -4 || v0 - v1 <= 0 || -v0 <= -4");
        assert_eq!(!!both.clone(), both);
        assert_eq!(Formula::and([small.clone(), Formula::False]), Formula::False);
        assert_eq!(Formula::or([small.clone()]), small);
        assert_eq!(both.substitute(x, &Linear::constant(5)), Formula::False);
        assert_eq!(both.variables(), [x, y]);
        let nested = Formula::or([both, Formula::ne(y, 2)]);
        assert_eq!(nested.to_string(), "(v0 <= 3 && -v0 + v1 <= -1 && v0 <= 3) || v1 != 2");
        assert!(nested.evaluate(&|_| Int::from(7)));
        assert!(!nested.evaluate(&|_| Int::from(2)));
    }

    #[test]
    fn depth_does_not_matter() {
        let mut formula = Formula::le(Var(0), 0);
        for level in 0..100_000 {
            let other = Formula::le(Var(1), level);
            formula =
                if level % 2 == 0 { Formula::and([formula, other]) } else { Formula::or([other, formula]) };
        }
        let copy = formula.map(false, &mut |atom| Formula::Atom(atom.clone()));
        assert_eq!(copy, formula);
        assert_eq!(!!formula.clone(), formula);
        assert!(formula.evaluate(&|_| Int::from(0)));
        assert_eq!(formula.variables(), [Var(0), Var(1)]);
        assert!(formula.to_string().len() > 1_000_000);
    }
}
