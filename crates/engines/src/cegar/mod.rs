//! Engine `cegar`: buffers abstracted by what they keep in order, integers by zones, both refined by counterexamples (FENCES12).
//!
//! An abstract counterexample is examined as in s.7 of the paper: if its events are an execution of the exact memory model, the
//! program is unsafe; if they are possible with the abstract buffers but exact integers, more stores must be kept in order;
//! otherwise the integers were known too coarsely, and the clip constant grows.

mod path;

use std::sync::Arc;

use fencewright_memory::{Buffers, CellId, Control, Kept, Machine};
use fencewright_program::{MemoryModel, Property};

use crate::domain::zones::{Zone, Zones};
use crate::search::live::LiveCells;
use crate::search::reach::{Reach, Reached};
use crate::task::{Answer, Engine, Invariant, Limits, Progress, Reason, Report, Task};

/// Where to start.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many stores to keep in order.
    pub k: u32,
    /// Which ones.
    pub kept: Kept,
    /// The clip constant of zones.
    pub clip: i32,
}

impl Default for Options {
    fn default() -> Self {
        Options { k: 1, kept: Kept::Newest, clip: 1 }
    }
}

/// Keeping more than this in order has never helped.
const MOST_KEPT: u32 = 8;
/// Nor has knowing differences beyond this.
const MOST_CLIP: i32 = 64;

/// The engine.
#[derive(Clone, Debug, Default)]
pub struct Cegar {
    /// Where to start.
    pub options: Options,
}

/// What an abstract counterexample calls for.
enum Refinement {
    Keep(u32),
    Clip(i32),
    None,
}

impl Engine for Cegar {
    fn name(&self) -> &'static str {
        "cegar"
    }

    fn about(&self) -> &'static str {
        "abstract buffers and integers, refined by counterexamples: proofs for unbounded programs"
    }

    fn run(&self, task: &Task<'_>, limits: &Limits, progress: &Progress) -> Report {
        let mut report = Report::default();
        let mut answers: Vec<Option<Answer>> = vec![None; task.properties.len()];
        let (mut k, mut clip) = (self.options.k, self.options.clip);
        let machine_for = |k| Machine::new(task.program, self.buffers(task.model, k));
        // Properties that speak of what an over-approximation cannot show.
        for (answer, property) in answers.iter_mut().zip(&task.properties) {
            let machine = machine_for(k);
            if machine.violation(&machine.initial(), property).is_none() {
                *answer = Some(Answer::Unknown(Reason::Unsupported(format!(
                    "this engine cannot decide `{}`",
                    property.name
                ))));
            }
        }
        while answers.iter().any(Option::is_none) {
            let open: Vec<usize> = (0..answers.len()).filter(|&n| answers[n].is_none()).collect();
            let properties: Vec<Property> = open.iter().map(|&n| task.properties[n].clone()).collect();
            let sub = Task { properties, observed: Vec::new(), ..task.clone() };
            let live = LiveCells::new(&sub);
            let machine = machine_for(k);
            let mut reach = Reach::new(&sub, &machine, &live, Zones::new(clip));
            let reached = reach.run(limits, progress);
            report.states += reach.states() as u64;
            match reached {
                Reached::Closed(states) => {
                    let cubes = |(control, live, zones): (Control, Vec<CellId>, Vec<Zone>)| {
                        (control, zones.iter().map(|zone| zone.cube(&live)).collect())
                    };
                    let states = states.into_iter().map(cubes).collect();
                    let invariant = Arc::new(Invariant { buffers: machine.buffers, states });
                    open.iter().for_each(|&n| answers[n] = Some(Answer::Proved(Arc::clone(&invariant))));
                }
                Reached::Stopped(reason) => {
                    open.iter().for_each(|&n| answers[n] = Some(Answer::Unknown(reason.clone())));
                }
                Reached::Beyond(what, _, _) => {
                    let reason = Reason::Unsupported(what.to_string());
                    open.iter().for_each(|&n| answers[n] = Some(Answer::Unknown(reason.clone())));
                }
                Reached::Violation(n, path) => {
                    let property = &sub.properties[n];
                    if let Some(trace) = path::execution(task.program, task.model, &path, property) {
                        answers[open[n]] = Some(Answer::Violated(Some(trace)));
                        continue;
                    }
                    match self.refinement(task, &machine, &live, &path, property, k, clip) {
                        Refinement::Keep(more) => k = more,
                        Refinement::Clip(more) => clip = more,
                        Refinement::None => {
                            let reason = format!(
                                "no refinement rules out a spurious counterexample (k = {k}, clip = {clip})"
                            );
                            answers[open[n]] = Some(Answer::Unknown(Reason::Unsupported(reason)));
                        }
                    }
                }
            }
        }
        report.answers = answers.into_iter().flatten().collect();
        report
    }
}

impl Cegar {
    fn buffers(&self, model: MemoryModel, k: u32) -> Buffers {
        match model {
            MemoryModel::Sc => Buffers::Sc,
            model => Buffers::Partial { model, k, kept: self.options.kept },
        }
    }

    /// Cases (3) and (4) of FENCES12 s.7.
    #[allow(clippy::too_many_arguments)]
    fn refinement(
        &self,
        task: &Task<'_>,
        machine: &Machine<'_>,
        live: &LiveCells,
        path: &[fencewright_memory::Step],
        property: &Property,
        k: u32,
        clip: i32,
    ) -> Refinement {
        const EXACT: i32 = i32::MAX - 1;
        if path::feasible(machine, live, path, property, EXACT) {
            if task.model == MemoryModel::Sc {
                return Refinement::None;
            }
            let enough = |&more: &u32| {
                let finer = Machine::new(task.program, self.buffers(task.model, more));
                !path::feasible(&finer, live, path, property, EXACT)
            };
            (k + 1..=MOST_KEPT).find(enough).map_or(Refinement::None, Refinement::Keep)
        } else {
            let enough = |&more: &i32| !path::feasible(machine, live, path, property, more);
            (clip + 1..=MOST_CLIP).find(enough).map_or(Refinement::None, Refinement::Clip)
        }
    }
}
