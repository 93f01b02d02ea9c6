//! Engine `cegar`: buffers abstracted by what they keep in order, integers by zones or predicates, both refined by
//! counterexamples (FENCES12).
//!
//! An abstract counterexample is examined as in s.7 of the paper. (1, 2) If its events are an execution of the exact memory model, the
//! program is unsafe. (3) If they are possible with the abstract buffers but exact integers, more stores must be kept in
//! order; where no number of them is enough, the values of the others are kept in summary cells. (4) Otherwise the integers were known too coarsely: the clip constant of zones grows, or interpolants give new
//! predicates. A search that ends without a counterexample is a proof, and its states are an inductive invariant.

mod nonlinear;
mod path;

use std::collections::BTreeSet;
use std::sync::Arc;

use fencewright_memory::buffer_machine::OVERFLOW;
use fencewright_memory::{BufferMachine, Buffers, Command, Kept, Summarised};
use fencewright_program::{MemoryModel, Program, Property, Span};

use crate::domain::order::{self, Relations};
use crate::domain::predicates::{Predicates, Template};
use crate::domain::zones::Zones;
use crate::domain::{Domain, DomainName};
use crate::examine::{self, Examined};
use crate::search::live::LiveCells;
use crate::search::reach::{Path, Reach, Reached};
use crate::search::symmetry::Symmetry;
use crate::task::{Answer, Early, Engine, Invariant, Limits, Order, Part, Progress, Reason, Report, Task};
use nonlinear::is_nonlinear;

/// Where to start.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many stores to keep in order.
    pub k: u32,
    /// Which ones.
    pub kept: Kept,
    /// Whether to keep the values of the others from the start, in summary cells.
    pub summaries: bool,
    /// How integers are represented.
    pub domain: DomainName,
    /// The clip constant of zones.
    pub clip: i32,
    /// What stays as it starts.
    pub fixed: Fixed,
    /// Exact buffers with at most so many stores instead of abstract ones; a run that needs more is `unknown`.
    pub buffer_bound: Option<u32>,
    /// In which order states are expanded.
    pub order: Order,
}

/// What is never refined: a counterexample that only this would rule out leaves the question open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fixed {
    /// How many stores are kept in order.
    pub k: bool,
    /// The clip constant.
    pub clip: bool,
    /// The predicates: those that the source suggests are all there are.
    pub predicates: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            k: 1,
            kept: Kept::Newest,
            summaries: false,
            domain: DomainName::Zones,
            clip: 1,
            fixed: Fixed::default(),
            buffer_bound: None,
            order: Order::BreadthFirst,
        }
    }
}

/// Keeping more than this in order has never helped.
const MOST_KEPT: u32 = 8;
/// Nor has knowing differences beyond this.
const MOST_CLIP: i32 = 64;
/// Exact buffers with more stores than this are not proofs that the checker accepts.
const LARGEST_BOUND: u32 = 64;
/// A clip constant that drops nothing.
const EXACT: i32 = i32::MAX - 1;

/// The engine.
#[derive(Clone, Debug, Default)]
pub struct Cegar {
    /// Where to start.
    pub options: Options,
}

/// How precisely the program is represented at the moment.
#[derive(Clone, Debug)]
struct Precision {
    k: u32,
    summaries: Summarised,
    clip: i32,
    templates: BTreeSet<Template>,
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
        let Options { k, clip, .. } = self.options;
        let all = Summarised::all(task.program.cells());
        let summaries = if self.options.summaries { all } else { Summarised::default() };
        let mut precision = Precision { k, summaries, clip, templates: examine::hints(task) };
        let mut rounds = 0;
        if let Some(bound) = self.options.buffer_bound.filter(|&bound| bound > LARGEST_BOUND) {
            let reason = format!("engine cegar has exact buffers up to {LARGEST_BOUND} stores, not {bound}");
            report.answers = vec![Answer::Unknown(Reason::Unsupported(reason, None)); answers.len()];
            return report;
        }
        let exact = BufferMachine::new(task.program, Buffers::Sc);
        for (answer, property) in answers.iter_mut().zip(&task.properties) {
            // What an over-approximation cannot show: that a state exists, or that nothing can move.
            let reals = task.program.has_real_choices();
            if reals || exact.violation(&exact.initial(), property).is_none() {
                let what = if reals { "programs that choose real numbers" } else { &property.name };
                let reason = format!("engine cegar cannot decide {what}");
                let place = (!reals && property.span != Span::default()).then_some(property.span);
                *answer = Some(Answer::Unknown(Reason::Unsupported(reason, place)));
            }
        }
        loop {
            let is_open = |&n: &usize| answers[n].is_none() && !task.is_settled(n);
            let open: Vec<usize> = (0..answers.len()).filter(is_open).collect();
            if open.is_empty() {
                break;
            }
            let part = Part::new(task, &open, 0);
            let mut sub = part.task();
            sub.observed.clear();
            let live = match LiveCells::new(&sub, limits) {
                Ok(live) => live,
                Err(reason) => {
                    open.iter().for_each(|&n| answers[n] = Some(Answer::Unknown(reason.clone())));
                    break;
                }
            };
            let machine =
                BufferMachine::new(task.program, self.buffers(task.model, precision.k, precision.summaries));
            rounds += 1;
            let kept = format!(
                "k = {}{}",
                precision.k,
                if precision.summaries.is_empty() { "" } else { " with summaries" }
            );
            progress.say(match self.options.domain {
                DomainName::Zones => format!("round {rounds}: {kept}, clip = {}", precision.clip),
                DomainName::Predicates => {
                    format!("round {rounds}: {kept}, {} predicates", precision.templates.len())
                }
                DomainName::Order => format!("round {rounds}: {kept}"),
            });
            let (order, run) = (self.options.order, Run { limits, progress, report: &mut report });
            let found = match self.options.domain {
                DomainName::Zones => search(&sub, &machine, &live, Zones::new(precision.clip), order, run),
                DomainName::Predicates => {
                    let domain = Predicates::new(precision.templates.clone(), limits.budget());
                    search(&sub, &machine, &live, domain, order, run)
                }
                DomainName::Order => {
                    match order::fragment(task.program, &sub.properties, Relations::Order, limits) {
                        Ok(domain) => {
                            search(&sub, &machine, &live, domain.on(&machine.cells, false), order, run)
                        }
                        Err(reason) => Found::Nothing(reason),
                    }
                }
            };
            let unknown = |reason: Reason| Some(Answer::Unknown(reason));
            let tell = |n: usize, answer: Answer| {
                let (states, bytes, rounds) = (report.states, report.bytes, Vec::new());
                task.tell(n, Early { answer, engine: self.name(), states, bytes, rounds });
            };
            match found {
                Found::Invariant(invariant) => {
                    open.iter().for_each(|&n| tell(n, Answer::Proved(Arc::clone(&invariant))));
                    open.iter().for_each(|&n| answers[n] = Some(Answer::Proved(Arc::clone(&invariant))));
                }
                Found::Nothing(reason) => open.iter().for_each(|&n| answers[n] = unknown(reason.clone())),
                // Another engine was faster.
                Found::Path(n, _) if sub.is_settled(n) => {}
                Found::Path(n, path) => {
                    let property = &sub.properties[n];
                    if let Some(trace) = path::execution(task, &path, property, limits) {
                        let answer = Answer::Violated(Some(trace));
                        tell(open[n], answer.clone());
                        answers[open[n]] = Some(answer);
                        if task.first_violation {
                            answers
                                .iter_mut()
                                .for_each(|a| _ = a.get_or_insert(Answer::Unknown(Reason::Cancelled)));
                        }
                    } else if let Some(reason) = limits.exceeded(0) {
                        open.iter().for_each(|&n| answers[n] = unknown(reason.clone()));
                    } else if let Err(reason) =
                        self.refine(&sub, &machine, &live, &path, property, &mut precision, limits)
                    {
                        answers[open[n]] = unknown(reason);
                    }
                }
            }
        }
        report.predicates = precision.templates.len();
        let settled = Answer::Unknown(Reason::Cancelled);
        report.answers = answers.into_iter().map(|answer| answer.unwrap_or(settled.clone())).collect();
        report
    }
}

/// The first statement on a path whose arithmetic is not linear, if there is one.
fn nonlinear_step(program: &Program, path: &Path) -> Option<Span> {
    let is_nonlinear = |command: &Command| match command {
        Command::Assume(e) | Command::Assign(_, e) | Command::Fold(_, e) => is_nonlinear(e),
        Command::Havoc(_) | Command::Expand(..) => false,
    };
    let step = path.iter().map(|(step, _)| step).find(|step| step.commands.iter().any(is_nonlinear))?;
    step.name.edge.map(|edge| program.thread(step.name.thread).edge(edge).span)
}

/// What a search found.
enum Found {
    Invariant(Arc<Invariant>),
    Path(usize, Path),
    Nothing(Reason),
}

/// What a search may use and what it tells.
struct Run<'a> {
    limits: &'a Limits,
    progress: &'a Progress,
    report: &'a mut Report,
}

fn search<D: Domain>(
    task: &Task<'_>,
    machine: &BufferMachine<'_>,
    live: &LiveCells,
    domain: D,
    order: Order,
    run: Run<'_>,
) -> Found {
    let Run { limits, progress, report } = run;
    let symmetry = Symmetry::new(task);
    let mut reach = Reach::new(task, machine, live, domain).with_symmetry(symmetry.as_ref()).in_order(order);
    let reached = reach.run(limits, progress);
    report.states += reach.states() as u64;
    report.bytes = report.bytes.max(reach.bytes());
    match reached {
        Reached::Closed(states) => {
            let domain = reach.domain();
            let states = states
                .into_iter()
                .map(|(control, live, states)| {
                    let cubes = states.iter().map(|state| domain.cube(&live, state)).collect();
                    (control, cubes)
                })
                .collect();
            let states = match &symmetry {
                Some(symmetry) => match symmetry.expanded(machine, states, limits) {
                    Ok(states) => states,
                    Err(reason) => return Found::Nothing(reason),
                },
                None => states,
            };
            let properties = task.properties.iter().map(|p| p.name.clone()).collect();
            Found::Invariant(Arc::new(Invariant { buffers: machine.buffers, properties, states }))
        }
        Reached::Violation(property, path) => Found::Path(property, path),
        Reached::Beyond(what, span) => Found::Nothing(match machine.buffers {
            Buffers::Queue { bound, .. } if what == OVERFLOW => Reason::BufferBound(bound),
            _ => Reason::Unsupported(what.to_string(), Some(span)),
        }),
        Reached::Stopped(reason) => Found::Nothing(reason),
    }
}

impl Cegar {
    fn buffers(&self, model: MemoryModel, k: u32, summaries: Summarised) -> Buffers {
        match (model, self.options.buffer_bound) {
            (MemoryModel::Sc, _) => Buffers::Sc,
            (model, Some(bound)) => Buffers::Queue { model, bound },
            (model, None) => Buffers::Partial { model, k, kept: self.options.kept, summaries },
        }
    }

    /// Cases (3) and (4) of FENCES12 s.7: makes the representation precise enough to rule the path out.
    #[allow(clippy::too_many_arguments)]
    fn refine(
        &self,
        task: &Task<'_>,
        machine: &BufferMachine<'_>,
        live: &LiveCells,
        path: &Path,
        property: &Property,
        precision: &mut Precision,
        limits: &Limits,
    ) -> Result<(), Reason> {
        let nonlinear = nonlinear_step(task.program, path);
        let stuck = |what: &str| {
            // Out of time, every question was answered as if nothing helped.
            if let Some(reason) = limits.exceeded(0) {
                return Err(reason);
            }
            let what = if nonlinear.is_some() { "it depends on arithmetic that is not linear" } else { what };
            Err(Reason::Unsupported(format!("a spurious counterexample remains: {what}"), nonlinear))
        };
        match path::examine(machine, path, property, limits) {
            Examined::Possible => {
                if task.model == MemoryModel::Sc || self.options.buffer_bound.is_some() {
                    return stuck("the solver says that it is possible");
                }
                let enough = |k: u32, summaries: Summarised| {
                    let finer = BufferMachine::new(task.program, self.buffers(task.model, k, summaries));
                    !path::feasible(&finer, live, path, property, EXACT, limits)
                };
                let more = (precision.k + 1..=MOST_KEPT).find(|&k| enough(k, precision.summaries));
                match (more, self.options.fixed.k) {
                    (Some(more), false) => precision.k = more,
                    (more, fixed) => {
                        // Summaries make more states than stores in order, so they come last. With them, fewer stores in order may be
                        // enough than were tried before.
                        let most = if fixed { precision.k } else { MOST_KEPT };
                        let all = path::summarised(path, precision.summaries);
                        let useful = all != precision.summaries && self.options.domain != DomainName::Order;
                        match ((self.options.k..=most).filter(|_| useful).find(|&k| enough(k, all)), more) {
                            (Some(k), _) => {
                                precision.k = k;
                                precision.summaries =
                                    path::fewest(all, precision.summaries, |fewer| enough(k, fewer));
                            }
                            (None, Some(more)) => {
                                let fixed = precision.k;
                                return stuck(&format!("it takes k = {more}, and k is fixed at {fixed}"));
                            }
                            (None, None) => return stuck("no number of stores kept in order rules it out"),
                        }
                    }
                }
            }
            Examined::Impossible(interpolants) => match self.options.domain {
                DomainName::Zones => {
                    let enough = |&more: &i32| !path::feasible(machine, live, path, property, more, limits);
                    match (precision.clip + 1..=MOST_CLIP).find(enough) {
                        Some(more) if self.options.fixed.clip => {
                            let fixed = precision.clip;
                            return stuck(&format!("it takes clip = {more}, and clip is fixed at {fixed}"));
                        }
                        Some(more) => precision.clip = more,
                        None => return stuck("no clip constant rules it out"),
                    }
                }
                DomainName::Order => return stuck("how values compare does not rule it out"),
                DomainName::Predicates if self.options.fixed.predicates => {
                    return stuck("it takes more predicates, and those of the file are all there are");
                }
                DomainName::Predicates => {
                    let before = precision.templates.len();
                    precision.templates.extend(interpolants.iter().map(Template::of));
                    if precision.templates.len() == before {
                        return stuck("interpolation finds no new predicates");
                    }
                }
            },
            Examined::Unknown => return stuck("the solver gave up on it"),
        }
        Ok(())
    }
}
