//! Claims: the explanations of checks for reports. A claim is stored in the check that it explains, so that passes rewrite the terms of claims too;
//! claims are not evaluated.

use crate::core::Register;
use crate::flat::{StepKind, Term, Violation, Wrong};

/// The claim of a check about a place or a value.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The condition that has to hold.
    pub holds: Term,
    /// The kind of violation if the condition does not hold.
    pub about: About,
    /// The class and number of the place concerned, if there is one.
    pub place: Option<(usize, Term)>,
}

/// A kind of mistake.
#[derive(Clone, Debug)]
pub enum About {
    /// A pointer does not point to an object.
    Pointer,
    /// An index is out of bounds: the index and the length of the array.
    Element(Term, i64),
    /// Pointer arithmetic leaves the array.
    Moved,
    /// A register or array element holds the undefined value.
    Undefined(Term),
    /// `free` of something other than the start of an allocation.
    Free,
    /// Another fault, with this message.
    Said(String),
}

/// The claims of a check. All claims compare equal, so that checks that differ only in their claims are equal.
#[derive(Clone, Debug, Default)]
pub struct Claims(pub Vec<Claim>);

impl PartialEq for Claims {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Claims {
    /// The default claim of a check of this kind.
    pub fn plain(holds: &Term, wrong: Wrong) -> Self {
        let about = match wrong {
            Wrong::Pointer => About::Pointer,
            Wrong::Bounds => About::Moved,
            Wrong::Undefined => About::Undefined(holds.clone()),
            Wrong::Free => About::Free,
            Wrong::Other => About::Said(String::new()),
        };
        Claims::one(holds, about, None)
    }

    /// A single claim.
    pub fn one(holds: &Term, about: About, place: Option<(usize, Term)>) -> Self {
        Claims(vec![Claim { holds: holds.clone(), about, place }])
    }

    /// Mutable access to the terms in the claims.
    pub fn terms_mut(&mut self) -> impl Iterator<Item = &mut Term> {
        self.0.iter_mut().flat_map(|claim| {
            let about = match &mut claim.about {
                About::Element(term, _) | About::Undefined(term) => Some(term),
                _ => None,
            };
            let place = claim.place.as_mut().map(|(_, number)| number);
            [Some(&mut claim.holds), about, place].into_iter().flatten()
        })
    }
}

/// A check that a register or array element is not undefined.
pub fn defined(condition: Term, value: Term) -> StepKind {
    let claims = Claims::one(&condition, About::Undefined(value), None);
    StepKind::Check(condition, Violation { wrong: Wrong::Undefined, claims })
}

/// Whether all registers and arrays of a term also occur in another term.
pub fn is_read_in(term: &Term, other: &Term) -> bool {
    let mut all = true;
    term.registers(&mut |register: Register| all &= other.has(register));
    term.arrays(&mut |array| {
        let mut found = false;
        other.arrays(&mut |one| found |= one == array);
        all &= found;
    });
    all
}
