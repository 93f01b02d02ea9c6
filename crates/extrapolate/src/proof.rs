//! States of a boolean program as an inductive invariant.

use fencewright_memory::linear::{Constraint, Cube};

use super::entailment::{Frame, Judge};
use super::vector::{Literal, Vector};
use super::vocabulary::Vocabulary;

/// A state with more cubes than this makes no certificate that anybody would check.
const MOST_CUBES: usize = 1 << 10;

/// A state as a disjunction of conjunctions of constraints on cells. It is one conjunction, unless a literal is a disjunction: `not x = 0`,
/// or the negation of a cube. What contradicts itself is left out. Nothing if there are too many.
pub fn cubes(vocabulary: &Vocabulary, vector: &Vector, judge: &mut Judge) -> Option<Vec<Cube>> {
    let cases = |literal: &Literal| vocabulary.predicates()[literal.predicate()].cases(literal.holds());
    let mut literals = vocabulary.essential(vector);
    // What is no disjunction comes first, and rules out cases of the others.
    literals.sort_by_key(|literal| cases(literal).len());
    let mut frame = Frame::default();
    let prepared: Vec<_> = literals.iter().map(|literal| frame.disjunction(cases(literal))).collect();
    let mut found = vec![(Cube::new(), vec![frame.world()])];
    for (literal, prepared) in literals.iter().zip(&prepared) {
        let mut longer = Vec::with_capacity(found.len());
        for (cube, worlds) in &found {
            // A disjunction that holds anyway says nothing.
            let opposite = vocabulary.predicates()[literal.predicate()].cases(!literal.holds());
            let opposite = frame.clone().disjunction(opposite);
            if prepared.len() > 1 && judge.excludes(worlds, &opposite) {
                longer.push((cube.clone(), worlds.clone()));
                continue;
            }
            for (case, facts) in cases(literal).iter().zip(prepared) {
                let worlds = judge.assume(worlds, std::slice::from_ref(facts));
                if !worlds.is_empty() {
                    let constraints = case.iter().cloned().map(Constraint::AtMost);
                    let cube = cube.iter().cloned().chain(constraints).collect();
                    longer.push((cube, worlds));
                }
            }
        }
        found = longer;
        if found.len() > MOST_CUBES {
            return None;
        }
    }
    let mut cubes: Vec<Cube> = found
        .into_iter()
        .map(|(mut cube, _)| {
            cube.sort_unstable();
            cube.dedup();
            cube
        })
        .collect();
    cubes.sort_unstable();
    cubes.dedup();
    Some(cubes)
}
