//! Joins checks that follow each other into one: each is a step, and nothing outside the thread can tell at which of them it ends.

use super::flat::{Step, StepKind, Wrong};

/// Puts checks of the same kind that follow each other together.
pub(super) fn join(code: &mut Vec<Step>) {
    let mut joined: Vec<Step> = Vec::new();
    for mut step in std::mem::take(code) {
        step.kind.blocks_mut().into_iter().for_each(join);
        // What is undefined is looked at one by one: a later check may compute with what an earlier one found to be defined.
        if let StepKind::Check(second, wrong, claims) = &mut step.kind
            && *wrong != Wrong::Undefined
            && let Some(Step { kind: StepKind::Check(first, other, earlier), .. }) = joined.last_mut()
            && other == wrong
        {
            *first = first.clone().and(second.clone());
            earlier.0.append(&mut claims.0);
            continue;
        }
        joined.push(step);
    }
    *code = joined;
}
