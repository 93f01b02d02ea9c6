//! What checks are about, for reports. Claims ride on the checks that they explain, so that their terms are rewritten with them; they are no part of what the program does.

use crate::core::Register;
use crate::flat::{StepKind, Term, Violation, Wrong};

/// What a check claims, about places and values.
#[derive(Clone, Debug)]
pub struct Claim {
    /// What has to hold.
    pub holds: Term,
    /// What it says.
    pub about: About,
    /// The class and number of the place that it is about.
    pub place: Option<(usize, Term)>,
}

/// What can be wrong.
#[derive(Clone, Debug)]
pub enum About {
    /// A pointer points to no object.
    Pointer,
    /// An array has so many elements, and this is the index.
    Element(Term, i64),
    /// A pointer is moved out of its array.
    Moved,
    /// A register or element has no value.
    Undefined(Term),
    /// Something is given back that no allocation gave.
    Free,
    /// What the program calls wrong.
    Said(String),
}

/// The claims of a check. Checks with other claims do the same.
#[derive(Clone, Debug, Default)]
pub struct Claims(pub Vec<Claim>);

impl PartialEq for Claims {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Claims {
    /// What a check of this kind says where nothing more is known.
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

    /// One claim.
    pub fn one(holds: &Term, about: About, place: Option<(usize, Term)>) -> Self {
        Claims(vec![Claim { holds: holds.clone(), about, place }])
    }

    /// The terms in them.
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

/// A check that a register or an element has a value.
pub fn defined(condition: Term, value: Term) -> StepKind {
    let claims = Claims::one(&condition, About::Undefined(value), None);
    StepKind::Check(condition, Violation { wrong: Wrong::Undefined, claims })
}

/// Whether all registers of a term are in another one, which is computed in the same state.
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
