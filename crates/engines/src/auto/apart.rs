//! Splits the properties of a task into two groups with a search each: those that look at registers, and those that do not.
//!
//! A register that a property looks at matters as long as its thread runs, and whoever explores states tells them apart by its value. `assertions` of
//! a C program looks at none, `memory` at what has been freed: together they may have several times as many states as `assertions` alone,
//! and its answer would have to wait for the other. So each group is a member of a portfolio, with all the engines in it.

use std::time::Duration;

use fencewright_program::{Observable, Property, PropertyKind};

use super::portfolio::{self, Member};
use super::{Auto, EngineName};
use crate::task::{About, Engine, Limits, Progress, Report, Task};
use crate::turns;

/// The numbers of the properties that look at no register, and of those that do; nothing if all are alike.
pub fn groups(task: &Task<'_>) -> Option<[Vec<usize>; 2]> {
    let (with, without): (Vec<usize>, Vec<usize>) =
        (0..task.properties.len()).partition(|&n| looks_at_registers(&task.properties[n]));
    (!with.is_empty() && !without.is_empty()).then_some([without, with])
}

fn looks_at_registers(property: &Property) -> bool {
    let PropertyKind::Never(formula) = &property.kind else { return false };
    let mut looks = false;
    formula.for_each_leaf(&mut |observable| looks |= matches!(observable, Observable::Register(..)));
    looks
}

/// Answers groups of properties side by side, with what `auto` does after its first moment.
pub fn run(
    groups: [Vec<usize>; 2],
    auto: &Auto,
    task: &Task<'_>,
    limits: &Limits,
    progress: &Progress,
) -> Report {
    let cores = auto.cores(limits);
    let member = |numbers| Member {
        engine: Box::new(Later(auto.clone())),
        domain: None,
        numbers,
        part: turns::Part { weight: 1.0, width: cores, head_start: Duration::ZERO },
    };
    portfolio::run(&groups.map(member), task, cores, limits, progress)
}

/// `auto` after its first moment.
pub(super) struct Later(pub(super) Auto);

impl Engine for Later {
    fn name(&self) -> EngineName {
        EngineName::Auto
    }

    fn about(&self) -> About {
        self.0.about()
    }

    fn run(&self, task: &Task<'_>, limits: &Limits, progress: &Progress) -> Report {
        self.0.rest(task, limits, progress)
    }
}
