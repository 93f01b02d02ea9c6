//! Examination of an abstract counterexample (FENCES12 s. 7): is it an execution, and if not, which abstraction is too coarse?

use std::collections::BTreeSet;

use fencewright_memory::arithmetic::AUXILIARY;
use fencewright_memory::linear::{Constraint, Cube, Simple, truths, ways};
use fencewright_memory::{BufferMachine, Command, Control, Linear, Machine, Outcome, Step, Summarised};
use fencewright_program::{Property, Trace};
use fencewright_verdict::{Limits, Reason, Task};

use crate::domain::{Domain, kept};
use crate::examine::{self, Examined};
use crate::execution::Execution;
use crate::search::live::{LiveCells, known_at_first};
use crate::search::reduced::Path;

/// The events of the path as an execution of the exact memory model that violates the property, if they can be shown to be one within the limits.
pub fn execution(task: &Task<'_>, path: &Path, property: &Property, limits: &Limits) -> Option<Trace> {
    let mut execution = Execution::new(task.program, task.model, path.len());
    for (event, _) in path {
        if limits.exceeded(0).is_some() {
            return None;
        }
        let mut steps = execution.machine().steps(execution.control()).into_iter();
        let step = steps.find(|step| same_event(step, event))?;
        execution.take(step)?;
    }
    execution.finish(property, &limits.budget())
}

/// The control state at the end of a path.
fn end(machine: &BufferMachine<'_>, path: &Path) -> Control {
    match path.last() {
        Some((Step { outcome: Outcome::Control(control), .. }, _)) => control.clone(),
        _ => machine.initial(),
    }
}

/// The linear forms in the violated condition at the end of a path and in its assumptions, rewritten backward in terms of the values at each earlier
/// point (weakest preconditions along the branches that the search took).
pub fn sums(machine: &BufferMachine<'_>, path: &Path, property: &Property) -> BTreeSet<Linear> {
    let Some(violation) = machine.violation(&end(machine, path), property) else { return BTreeSet::new() };
    let at_the_end: Cube = truths(&violation, true).into_iter().flatten().collect();
    let is_own = |form: &&Linear| form.terms.iter().all(|(cell, _)| *cell < AUXILIARY);
    let mut wanted: BTreeSet<Linear> =
        at_the_end.iter().filter_map(Constraint::at_most).filter(is_own).cloned().collect();
    let mut met = wanted.clone();
    for (step, branch) in path.iter().rev() {
        let way = ways(&step.commands).into_iter().nth(branch.unwrap_or(0) as usize).unwrap_or_default();
        for simple in way.iter().rev() {
            let (cell, value) = match simple {
                Simple::Assume(constraint) => {
                    wanted.extend(constraint.at_most().cloned());
                    continue;
                }
                Simple::Assign(cell, value) => (*cell, value.clone()),
                Simple::Expand(cell, summary) => (*cell, Some(Linear::cell(*summary))),
                Simple::Fold(..) => continue,
            };
            let before = |linear: &Linear| match (&value, linear.terms.iter().any(|&(c, _)| c == cell)) {
                (_, false) => Some(linear.clone()),
                (None, true) => None,
                (Some(value), true) => {
                    linear.substituted(&|c| if c == cell { value.clone() } else { Linear::cell(c) })
                }
            };
            wanted = wanted.iter().filter_map(before).collect();
        }
        met.extend(wanted.iter().cloned());
    }
    met
}

/// Examines a path with exact integers, along the branches of its commands that the search took.
pub fn examine(machine: &BufferMachine<'_>, path: &Path, property: &Property, limits: &Limits) -> Examined {
    let Some(violation) = machine.violation(&end(machine, path), property) else { return Examined::Unknown };
    let start = machine.initial_values();
    let steps = path.iter().map(|(step, way)| (step.commands.as_slice(), *way));
    let steps: Vec<(&[Command], Option<u32>)> =
        std::iter::once((start.as_slice(), Some(0))).chain(steps).collect();
    examine::examine(&steps, &[Command::Assume(violation)], &limits.budget())
}

/// Whether the events of a path are feasible on a machine and end in a violation, as far as a domain can tell within the limits. The machine may
/// differ from that of the path.
pub fn is_feasible<D: Domain>(
    machine: &BufferMachine<'_>,
    live: &LiveCells,
    path: &Path,
    property: &Property,
    domain: &mut D,
    limits: &Limits,
) -> bool {
    // If the domain cannot represent a state, the path counts as feasible.
    follow(machine, live, path, property, domain, limits).unwrap_or(true)
}

fn follow<D: Domain>(
    machine: &BufferMachine<'_>,
    live: &LiveCells,
    path: &Path,
    property: &Property,
    domain: &mut D,
    limits: &Limits,
) -> Result<bool, Reason> {
    let contents = machine.contents();
    domain.attach(&contents);
    let live_in = |control: &Control, domain: &D| kept(domain, &contents, live.of(machine, control));
    let first = machine.initial();
    let live_at_first = live_in(&first, domain);
    let known = known_at_first(machine.initial_values(), &live_at_first);
    let start = domain.transition(&[], &known, &live_at_first);
    let blank = domain.blank();
    let mut states = Vec::new();
    domain.post(&start, &blank, &mut states)?;
    let only = |states: Vec<(u32, D::State)>| -> Vec<D::State> {
        states.into_iter().map(|(_, state)| state).collect()
    };
    let mut front: Vec<(Control, Vec<D::State>)> = vec![(first, only(states))];
    for (event, _) in path {
        // When time is up, the path counts as feasible.
        limits.exceeded(0).map_or(Ok(()), Err)?;
        let mut next: Vec<(Control, Vec<D::State>)> = Vec::new();
        for (control, states) in &front {
            for step in machine.steps(control).iter().filter(|s| same_event(s, event)) {
                let Outcome::Control(target) = &step.outcome else { continue };
                let (before, after) = (live_in(control, domain), live_in(target, domain));
                let transition = domain.transition(&before, &step.commands, &after);
                let mut after = Vec::new();
                for state in states {
                    limits.exceeded(0).map_or(Ok(()), Err)?;
                    let stored = domain.stored(state);
                    domain.post(&transition, &stored, &mut after)?;
                }
                if !after.is_empty() {
                    next.push((target.clone(), only(after)));
                }
            }
        }
        front = next;
        if front.is_empty() {
            return Ok(false);
        }
    }
    for (control, states) in &front {
        let Some(condition) = machine.violation(control, property) else { continue };
        let violation = domain.transition(&live_in(control, domain), &[Command::Assume(condition)], &[]);
        for state in states {
            let stored = domain.stored(state);
            let mut bad = Vec::new();
            domain.post(&violation, &stored, &mut bad)?;
            if !bad.is_empty() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The memory cells in `known`, and those to which some flush on the path writes an arbitrary value, because a summary of the stores to such a cell
/// would restrict the value.
pub fn summarised(path: &Path, known: Summarised) -> Summarised {
    let arbitrary =
        |step: &Step| step.name.flushed.filter(|&cell| step.commands.contains(&Command::Havoc(cell)));
    known.cells().chain(path.iter().filter_map(|(step, _)| arbitrary(step))).collect()
}

/// A small sufficient subset of `all` that contains `known`: greedily removes one cell after the other, as long as the rest is sufficient.
pub fn fewest(all: Summarised, known: Summarised, mut enough: impl FnMut(Summarised) -> bool) -> Summarised {
    let mut kept = all;
    for cell in all.cells().filter(|&cell| !known.contains(cell)) {
        let fewer = kept.cells().filter(|&c| c != cell).collect();
        if enough(fewer) {
            kept = fewer;
        }
    }
    kept
}

/// Whether two steps are the same event and, for an edge, the same case of the edge. They may belong to different machines.
fn same_event(step: &Step, event: &Step) -> bool {
    let (step, event) = (step.name, event.name);
    let same_case = step.edge.is_none() || step.case == event.case;
    (step.thread, step.edge, step.flushed) == (event.thread, event.edge, event.flushed) && same_case
}
