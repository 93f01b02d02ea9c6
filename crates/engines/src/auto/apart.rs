//! Splits the properties of a task into two groups: properties that must hold in every state and mention registers, and all others. Each group is
//! searched separately.
//!
//! If a property of the first group mentions a register, explicit engines keep the register in all states, even where it is dead otherwise. For
//! example, in a C program `assertions` mentions no register, while `memory` mentions the registers that record which memory has been freed. A search
//! for both properties can have several times as many states as a search for `assertions` alone. So each group becomes a member of a portfolio, which
//! may use all engines.

use std::time::Duration;

use fencewright_program::{Observable, Property, PropertyKind};

use super::portfolio::{self, Member};
use super::{Auto, EngineName};
use crate::task::{About, Engine, Limits, Progress, Report, Task};
use crate::turns;

/// Two lists of indices: the properties that must hold in every state and mention registers are in the second list, all others in the first. `None`
/// if a list is empty.
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

/// Checks both groups concurrently, each with the engines that `auto` uses after its first explicit run.
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

/// Engine `auto` without its first run of the explicit engine.
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
