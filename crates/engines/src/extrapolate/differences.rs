//! Differences between cells that hold under SC, as predicates.
//!
//! Interpolants say what rules out one path, and often no more than that. A proof with zones knows at each control state by how much any two
//! cells differ at most: for counters that follow each other, these are the predicates that still mean something when
//! one of the cells is a buffered value. Their closure under consequences also makes up for cubes: what two of them imply together is one of them.

use fencewright_memory::linear::{Constraint, Cube};
use fencewright_memory::{Buffers, CellId, Linear};
use fencewright_program::{MemoryModel, Program, Property};

use super::entailment::{Frame, Judge};
use super::vocabulary::Predicate;
use crate::cegar::{Cegar, Options};
use crate::task::{Answer, Engine, Invariant, Limits, Progress, Reason, Task};

/// More predicates than this are too many to be lifted; those with small constants are kept.
const MOST: usize = 128;

/// The differences between these cells that a proof of the properties under SC with zones knows; none if there is no such proof.
pub fn differences(
    (task, program): (&Task<'_>, &Program),
    properties: &[Property],
    cells: &[CellId],
    limits: &Limits,
    progress: &Progress,
) -> Result<Vec<Predicate>, Reason> {
    let task = task.about(program, MemoryModel::Sc, properties.to_vec());
    let report = Cegar { options: Options::default() }.run(&task, limits, progress);
    limits.exceeded(0).map_or(Ok(()), Err)?;
    let mut forms: Vec<Linear> = Vec::new();
    for answer in &report.answers {
        if let Answer::Proved(invariant) = answer {
            forms.extend(known(invariant, cells, limits)?);
        }
    }
    forms.sort_by(|a, b| (a.constant.abs(), a).cmp(&(b.constant.abs(), b)));
    forms.dedup();
    Ok(forms.iter().filter_map(Predicate::at_most).take(MOST).collect())
}

/// What an invariant says about the differences between these cells.
fn known(invariant: &Invariant, cells: &[CellId], limits: &Limits) -> Result<Vec<Linear>, Reason> {
    let mut judge = Judge::new(limits.budget());
    let mut forms: Vec<Linear> = Vec::new();
    if invariant.buffers != Buffers::Sc {
        return Ok(forms);
    }
    for (_, cubes) in &invariant.states {
        limits.exceeded(0).map_or(Ok(()), Err)?;
        for cube in cubes {
            forms.extend(closure(cube, cells, &mut judge));
        }
        forms.sort_unstable();
        forms.dedup();
    }
    Ok(forms)
}

/// The differences between these cells that follow from a conjunction of constraints.
fn closure(cube: &Cube, cells: &[CellId], judge: &mut Judge) -> Vec<Linear> {
    let at_most: Vec<Linear> = cube.iter().filter_map(Constraint::at_most).cloned().collect();
    let mut frame = Frame::default();
    let facts = frame.disjunction([&at_most]);
    let worlds = judge.assume(&[frame.world()], &facts);
    let all = worlds.iter().flat_map(|world| frame.differences(world));
    all.filter(|form| form.terms.iter().all(|(cell, _)| cells.contains(cell))).collect()
}
