//! Translates states of a boolean program to an inductive invariant.

use fencewright_memory::linear::{Constraint, Cube};

use super::entailment::{Frame, Judge};
use super::vector::{Literal, Vector};
use super::vocabulary::Vocabulary;

/// Maximum number of cubes (conjunctions of constraints) per state; checking more cubes is infeasible.
const MOST_CUBES: usize = 1 << 10;

/// A state as a disjunction of conjunctions of constraints on cells. It is a single conjunction, unless a literal is a disjunction: `not x = 0`, or a
/// negated cube. Unsatisfiable conjunctions are dropped. `None` if there are too many conjunctions.
pub fn cubes(vocabulary: &Vocabulary, vector: &Vector, judge: &mut Judge) -> Option<Vec<Cube>> {
    let cases = |literal: &Literal| vocabulary.predicates()[literal.predicate()].cases(literal.holds());
    let mut literals = vocabulary.essential(vector);
    // Literals that are not disjunctions come first, because they exclude cases of the others.
    literals.sort_by_key(|literal| cases(literal).len());
    let mut frame = Frame::default();
    let prepared: Vec<_> = literals.iter().map(|literal| frame.disjunction(cases(literal))).collect();
    let mut found = vec![(Cube::new(), vec![frame.world()])];
    for (literal, prepared) in literals.iter().zip(&prepared) {
        let mut longer = Vec::with_capacity(found.len());
        for (cube, worlds) in &found {
            // A disjunction that the other literals imply is redundant.
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
