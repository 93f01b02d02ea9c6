//! String literals: whether two of them are one object, or one is part of another, is unspecified (C11 6.4.5 p. 7), and none may be written.

use fencewright_c::typed::tree::{Step, TypeKind};
use fencewright_program::{BinaryOp, UnaryOp};

use super::{Piece, Unknown};
use crate::core::{Known, LITERAL_WRITTEN, ObjectId, Purpose};
use crate::flat::claims::{About, Claims};
use crate::flat::{StepKind, Term, Violation, Wrong};
use crate::layout::classes::{Runs, among};
use crate::layout::resolve::Resolver;

impl Resolver<'_> {
    fn is_literal(&self, object: ObjectId) -> bool {
        self.core.objects[object.0 as usize].purpose == Purpose::Literal
    }

    /// The characters of a string literal with the final null character.
    fn characters(&self, object: ObjectId) -> Vec<i64> {
        let object = &self.core.objects[object.0 as usize];
        let length = match object.ty.as_ref().map(|ty| &ty.kind) {
            Some(TypeKind::Array(_, length)) => *length as usize,
            _ => 0,
        };
        let mut characters = vec![0; length];
        for (path, known) in &object.initial {
            if let ([Step::Element(n)], Known::Number(number)) = (path.as_slice(), known)
                && let Some(character) = characters.get_mut(*n as usize)
            {
                *character = *number;
            }
        }
        characters
    }

    /// Ends the model where pointers into two string literals are compared and the literals may overlap in memory such that the result depends on the
    /// overlap. For a comparison for equality, only overlaps that make the pointers equal count.
    pub(super) fn end_at_literals(&mut self, class: usize, x: &Term, y: &Term, equality: bool) {
        let of = &self.layout.classes[class];
        let (scale, scalar) = (of.scale, of.scalar);
        let pieces: Vec<Piece> =
            of.pieces.iter().copied().filter(|piece| self.is_literal(piece.of.object)).collect();
        let mut unknown = Term::Number(0);
        for one in &pieces {
            let characters = self.characters(one.of.object);
            for other in pieces.iter().filter(|other| other.of != one.of) {
                let shifts = shifts(&characters, &self.characters(other.of.object));
                let shifts: Runs = shifts
                    .into_iter()
                    .filter(|shift| scalar || *shift == 0 || !equality)
                    .map(|shift| (one.low - other.low + shift) * scale)
                    .map(|shift| (shift, shift))
                    .collect();
                if shifts.is_empty() {
                    continue;
                }
                let mut both = one.has(scale, x).and(other.has(scale, y));
                if equality && both.number() != Some(0) {
                    let distance = Term::binary(BinaryOp::Sub, x.clone(), y.clone());
                    both = both.and(among(&shifts, &distance));
                }
                unknown = unknown.or(both);
            }
        }
        self.beyond_if(unknown, Unknown::Literals);
    }

    /// Checks that a place that is written is in no string literal.
    pub(crate) fn no_literal(&mut self, class: usize, number: &Term) {
        let of = &self.layout.classes[class];
        let is_literal = |piece: &&Piece| self.is_literal(piece.of.object);
        let literals: Runs =
            of.pieces.iter().filter(is_literal).map(|piece| (piece.low, piece.high)).collect();
        let holds = Term::unary(UnaryOp::Not, among(&literals, number));
        if holds.number() != Some(1) {
            let claims = Claims::one(&holds, About::Said(LITERAL_WRITTEN.into()), None);
            self.push(StepKind::Check(holds, Violation { wrong: Wrong::Other, claims }));
        }
    }
}

/// The possible distances from the start of one string to the start of another if the strings overlap in memory: those at which both have the same
/// characters in the overlap.
fn shifts(one: &[i64], other: &[i64]) -> Vec<i64> {
    let (length, further) = (one.len() as i64, other.len() as i64);
    let fits = |shift: &i64| {
        let overlap = 0.max(*shift)..length.min(further + shift);
        overlap.clone().all(|n| one[n as usize] == other[(n - shift) as usize])
    };
    (1 - further..length).filter(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::shifts;

    fn of(one: &str, other: &str) -> Vec<i64> {
        let characters = |text: &str| text.bytes().chain([0]).map(i64::from).collect::<Vec<i64>>();
        shifts(&characters(one), &characters(other))
    }

    #[test]
    fn literals_overlap_where_they_agree() {
        assert_eq!(of("abc", "abc"), [0]);
        assert_eq!(of("abc", "c"), [2]);
        assert_eq!(of("c", "abc"), [-2]);
        assert_eq!(of("abc", ""), [3]);
        assert_eq!(of("abc", "abd"), []);
        assert_eq!(of("aaa", "aa"), [1]);
        // The null character of the first literal is followed by the rest of the second one.
        assert_eq!(of("a", "\0b"), [1]);
        assert_eq!(of("a\0b", "b\0"), [2]);
    }
}
