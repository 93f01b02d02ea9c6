//! Entailment by congruences alone: the common cases, which need no refutation.

use fencewright_memory::{Constraint, Linear};

/// Whether a form is a multiple of a number because these constraints say so of it, or of its negative, or of the same up to multiples of
/// the number; or because it is a constant.
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

/// Whether two constraints say of forms that differ by a constant that they are multiples of a number, although the constant is none.
pub fn contradict(one: &Constraint, other: &Constraint) -> bool {
    match (one, other) {
        (Constraint::Multiple(a, m), Constraint::Multiple(b, n)) if m == n => {
            let difference = a.minus(b).map(|difference| reduced(&difference, *m));
            difference.is_some_and(|d| d.terms.is_empty() && d.constant != 0)
        }
        _ => false,
    }
}

/// A form that differs by a multiple of the modulus, whatever the values are.
fn reduced(form: &Linear, modulus: i64) -> Linear {
    let reduce = |&(cell, c): &(u32, i64)| (cell, c.rem_euclid(modulus));
    let terms = form.terms.iter().map(reduce).filter(|&(_, c)| c != 0).collect();
    Linear { terms, constant: form.constant.rem_euclid(modulus) }
}
