//! Joins adjacent checks into one. Each check is a step of the thread, but no other thread can observe at which of several adjacent checks the thread
//! ends. Also removes unreachable code after a check that always fails, and after a certain end of the model.

use fencewright_text::Stop;

use crate::flat::{Step, StepKind, Violation, Wrong};

/// Joins adjacent checks of the same kind.
pub(crate) fn join(code: &mut Vec<Step>, stop: &Stop<'_>) {
    let mut joined: Vec<Step> = Vec::new();
    for mut step in stop.polled(std::mem::take(code)) {
        step.kind.blocks_mut().for_each(|block| join(block, stop));
        // Checks for undefined values are not joined, because a later check may compute with a value that an earlier check found to be defined.
        if let StepKind::Check(second, Violation { wrong, claims }) = &mut step.kind
            && *wrong != Wrong::Undefined
            && let Some(Step {
                kind: StepKind::Check(first, Violation { wrong: other, claims: earlier }),
                ..
            }) = joined.last_mut()
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

/// Removes unreachable code after a check that always fails or a certain end of the model; such code may contain constant indices that are out of
/// bounds. Returns true only if control never reaches the end of the code.
pub(crate) fn cut(code: &mut Vec<Step>, stop: &Stop<'_>) -> bool {
    let mut ended = false;
    code.retain_mut(|step| {
        if stop.now() {
            return true;
        }
        ended &= !has_label(step);
        if ended {
            return false;
        }
        ended = match &mut step.kind {
            StepKind::Check(condition, ..) => condition.number() == Some(0),
            StepKind::Beyond(condition, _) => condition.number().is_some_and(|number| number != 0),
            StepKind::Loop(body) => {
                cut(body, stop);
                false
            }
            kind => {
                let ends: Vec<bool> = kind.blocks_mut().map(|block| cut(block, stop)).collect();
                !ends.is_empty() && ends.into_iter().all(|ends| ends)
            }
        };
        true
    });
    ended
}

fn has_label(step: &Step) -> bool {
    matches!(step.kind, StepKind::Label(_)) || step.kind.blocks().flatten().any(has_label)
}
