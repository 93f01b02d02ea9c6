//! Entailment by congruences alone: the common cases, which do not need the refuter.

use fencewright_memory::{Constraint, Linear};

/// Whether a sufficient condition shows that the form is a multiple of `modulus`: modulo `modulus`, the form is 0, or is, up to its sign, a form that
/// `known` states to be a multiple of `modulus`.
pub fn follows(known: &[Constraint], form: &Linear, modulus: i64) -> bool {
    let wanted = reduced(form, modulus);
    let says_so = |constraint: &Constraint| match constraint {
        Constraint::Multiple(other, m) if m % modulus == 0 => {
            let other = reduced(other, modulus);
            other == wanted || other.scaled(-1).is_some_and(|other| reduced(&other, modulus) == wanted)
        }
        _ => false,
    };
    (wanted.terms.is_empty() && wanted.constant == 0) || known.iter().any(says_so)
}

/// Whether two congruences contradict each other by a sufficient condition: they have the same modulus, and their forms differ by a constant that is
/// not a multiple of the modulus.
pub fn contradict(one: &Constraint, other: &Constraint) -> bool {
    match (one, other) {
        (Constraint::Multiple(a, m), Constraint::Multiple(b, n)) if m == n => {
            let difference = a.minus(b).map(|difference| reduced(&difference, *m));
            difference.is_some_and(|d| d.terms.is_empty() && d.constant != 0)
        }
        _ => false,
    }
}

/// The form with all numbers reduced modulo the modulus; it is congruent to the original for all values of the cells.
fn reduced(form: &Linear, modulus: i64) -> Linear {
    let reduce = |&(cell, c): &(u32, i64)| (cell, c.rem_euclid(modulus));
    let terms = form.terms.iter().map(reduce).filter(|&(_, c)| c != 0).collect();
    Linear { terms, constant: form.constant.rem_euclid(modulus) }
}
