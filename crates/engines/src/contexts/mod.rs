//! Engine `contexts`: everything that can happen within so many contexts (CONTEXT24).
//!
//! The machine `Contexts` with one of the domains: `order`, for which programs of the paper's fragment are decided exactly, whatever the
//! values and however long the buffers; or zones or predicates for everything else, where a path that is no execution makes
//! the domain more precise, as in `cegar`. The number of contexts grows from 1 on, so a violation is found with the
//! smallest number that shows it.
//!
//! Without a violation the answer is `unknown`: there is none within that many contexts. Only if more contexts would not lead to
//! a single new state, and no two stores were put together because of the bound, is the program safe; `cegar` is then asked for a
//! certificate.

mod graph;
pub mod groups;
mod layers;
pub mod machine;
mod relevance;
mod trace;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use fencewright_memory::{Cells, Command, Machine};
use fencewright_program::{MemoryModel, Property, PropertyKind};

use crate::cegar::Cegar;
use crate::domain::order::{self, Order, Relations};
use crate::domain::predicates::{Predicates, Template};
use crate::domain::zones::Zones;
use crate::domain::{Domain, DomainName};
use crate::examine::{self, Examined};
use crate::task::{Answer, Early, Engine, Limits, Progress, Reason, Report, Round, Task};
use graph::{Graph, most_groups};
use layers::{Found, Layers, Next};
use machine::Contexts;
use relevance::Relevance;

/// How to search.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// How many contexts at most.
    pub contexts: Option<u32>,
    /// How integers are represented: `order` where that is exact and otherwise zones, unless something is said.
    pub domain: Option<DomainName>,
}

/// More contexts than this would take forever.
pub const MOST_CONTEXTS: u32 = 64;
/// Zones begin with this clip constant and end with that one.
const FIRST_CLIP: i32 = 2;
const LAST_CLIP: i32 = 64;

/// How long to look for a certificate at least, once it is known that there is no violation.
const PROOF: Duration = Duration::from_secs(2);

/// The engine.
#[derive(Clone, Debug, Default)]
pub struct ContextBound {
    /// How to search.
    pub options: Options,
}

/// How integers are known at the moment.
enum Precision {
    Order(Order),
    Zones(i32),
    Predicates(BTreeSet<Template>),
}

/// How a search ended.
enum Ended {
    /// With an answer to the property with this number.
    Answer(usize, Answer),
    /// With nothing, or only paths that are no executions as far as one can tell, for these properties; and whether more contexts
    /// would find nothing more.
    Nothing { saturated: bool, doubtful: BTreeSet<usize> },
    /// It must be done again: with a more precise domain, or with more groups.
    Again,
    /// At a limit.
    Stopped(Reason),
}

impl Engine for ContextBound {
    fn name(&self) -> &'static str {
        ContextBound::NAME
    }

    fn about(&self) -> &'static str {
        "all executions in which threads take turns so many times: exact for programs that only compare values"
    }

    fn run(&self, task: &Task<'_>, limits: &Limits, progress: &Progress) -> Report {
        let mut run = Run {
            task,
            limits,
            progress,
            report: Report::default(),
            answers: task.properties.iter().map(|p| unanswerable(task, p)).collect(),
            bound: 1,
            most: self.options.contexts.unwrap_or(MOST_CONTEXTS),
            since: Instant::now(),
            began: Instant::now(),
        };
        match self.precision(task, limits) {
            Ok(precision) => run.iterate(precision),
            Err(reason) => run.give_up(&reason),
        }
        run.report.answers = run.answers.into_iter().flatten().collect();
        run.report
    }
}

/// What the engine cannot decide whatever it finds.
fn unanswerable(task: &Task<'_>, property: &Property) -> Option<Answer> {
    let what = match (&property.kind, task.model) {
        (_, MemoryModel::Pso) => "engine contexts knows SC and TSO, not PSO",
        (PropertyKind::NoDeadlock, _) => "engine contexts cannot decide deadlocks",
        _ if task.program.threads.is_empty() => "engine contexts needs a thread",
        _ => return None,
    };
    Some(Answer::Unknown(Reason::Unsupported(what.into(), None)))
}

impl ContextBound {
    const NAME: &str = "contexts";

    fn precision(&self, task: &Task<'_>, limits: &Limits) -> Result<Precision, Reason> {
        let fragment = order::fragment(task.program, &task.properties, Relations::Equality, limits);
        if let Some(reason) = limits.exceeded(0) {
            return Err(reason);
        }
        let reals = task.program.has_real_choices();
        match (self.options.domain, fragment) {
            (None | Some(DomainName::Order), Ok(order)) => Ok(Precision::Order(order)),
            (Some(DomainName::Order), Err(reason)) => Err(reason),
            // No other domain knows the reals.
            (None, Err(reason)) if reals => Err(reason),
            (Some(DomainName::Zones | DomainName::Predicates), _) if reals => {
                let what = "programs that choose real numbers need domain order";
                Err(Reason::Unsupported(what.into(), None))
            }
            (None | Some(DomainName::Zones), _) => Ok(Precision::Zones(FIRST_CLIP)),
            (Some(DomainName::Predicates), _) => Ok(Precision::Predicates(examine::hints(task))),
        }
    }
}

/// Nothing within so many contexts, and why no more were tried.
fn within(contexts: u32, reason: Reason) -> Reason {
    if contexts == 0 { reason } else { Reason::Contexts(contexts, Some(Box::new(reason))) }
}

/// Why a path that is no execution could not be ruled out.
fn doubt(precision: &Precision) -> &'static str {
    match precision {
        Precision::Order(_) => {
            "a path to a violation remains for which no values were found that are 64-bit integers"
        }
        Precision::Zones(_) => "a path to a violation remains that bounds on differences do not rule out",
        Precision::Predicates(_) => {
            "a path to a violation remains for which interpolation finds no predicates"
        }
    }
}

/// A run of the engine.
struct Run<'a, 'p> {
    task: &'a Task<'p>,
    limits: &'a Limits,
    progress: &'a Progress,
    report: Report,
    answers: Vec<Option<Answer>>,
    /// How many contexts are allowed now, and at most.
    bound: u32,
    most: u32,
    /// When they were allowed.
    since: Instant,
    /// When the run began.
    began: Instant,
}

impl Run<'_, '_> {
    /// More and more contexts, until everything is answered.
    fn iterate(&mut self, mut precision: Precision) {
        while self.bound <= self.most && !self.open().is_empty() {
            match self.explore(&mut precision) {
                Ended::Answer(n, answer) => {
                    self.tell(n, answer.clone());
                    self.answers[n] = Some(answer);
                    if self.task.first_violation {
                        self.give_up(&Reason::Cancelled);
                    }
                }
                Ended::Again => {}
                Ended::Nothing { saturated, doubtful } => {
                    let doubt = Reason::Unsupported(doubt(&precision).into(), None);
                    for n in doubtful {
                        self.answers[n] = Some(Answer::Unknown(within(self.bound - 1, doubt.clone())));
                    }
                    if saturated {
                        self.close();
                    }
                    self.bound += 1;
                }
                Ended::Stopped(reason) => return self.give_up(&within(self.bound - 1, reason)),
            }
        }
        self.give_up(&Reason::Contexts(self.bound - 1, None));
    }

    /// The numbers of the properties that have no answer, here or elsewhere.
    fn open(&self) -> Vec<usize> {
        let is_open = |&n: &usize| self.answers[n].is_none() && !self.task.is_settled(n);
        (0..self.answers.len()).filter(is_open).collect()
    }

    /// Tells an answer at once.
    fn tell(&self, n: usize, answer: Answer) {
        let (states, bytes, rounds) = (self.report.states, self.report.bytes, self.report.rounds.clone());
        self.task.tell(n, Early { answer, engine: ContextBound::NAME, states, bytes, rounds });
    }

    /// All executions with so many contexts and more, for the properties that are open.
    fn explore(&mut self, precision: &mut Precision) -> Ended {
        let open = self.open();
        let properties = open.iter().map(|&n| self.task.properties[n].clone()).collect();
        let sub = Task::new(self.task.program, self.task.model, properties);
        let ended = match precision {
            Precision::Order(order) => {
                // Order is exact: a path without values is one that explicit numbers cannot hold.
                let order = order.clone();
                self.search(&sub, |cells| order.on(cells, true), |_, _, _| None)
            }
            Precision::Zones(clip) => {
                let (from, mut finer) = (*clip, None);
                let ended = self.search(
                    &sub,
                    |_| Zones::new(from),
                    |layers, found, _| {
                        let enough = |&more: &i32| !layers.feasible(found, &mut Zones::new(more));
                        finer = (from + 1..=LAST_CLIP).find(enough);
                        finer.map(drop)
                    },
                );
                *clip = finer.unwrap_or(from);
                ended
            }
            Precision::Predicates(templates) => {
                let mut more = templates.clone();
                let budget = self.limits.budget();
                let domain = Predicates::new(templates.clone(), budget.clone());
                let ended = self.search(
                    &sub,
                    |_| domain,
                    |_, found, start| {
                        let steps = found.path.iter().map(|s| (s.commands.as_slice(), s.way));
                        let path: Vec<(&[Command], u32)> = std::iter::once((start, 0)).chain(steps).collect();
                        let examined = examine::examine(&path, &found.condition, &budget);
                        let Examined::Impossible(interpolants) = examined else { return None };
                        let before = more.len();
                        more.extend(interpolants.iter().map(Template::of));
                        (more.len() > before).then_some(())
                    },
                );
                *templates = more;
                ended
            }
        };
        match ended {
            Ended::Answer(n, answer) => Ended::Answer(open[n], answer),
            Ended::Nothing { saturated, doubtful } => {
                Ended::Nothing { saturated, doubtful: doubtful.into_iter().map(|n| open[n]).collect() }
            }
            other => other,
        }
    }

    /// A search with one domain. `refine` is asked about paths that are no executions whether a more precise domain rules them out.
    fn search<D: Domain>(
        &mut self,
        task: &Task<'_>,
        domain: impl FnOnce(&Cells) -> D,
        mut refine: impl FnMut(&Layers<'_, '_, D>, &Found, &[Command]) -> Option<()>,
    ) -> Ended {
        let relevance = match Relevance::new(task, self.limits) {
            Ok(relevance) => relevance,
            Err(reason) => return Ended::Stopped(reason),
        };
        let groups = most_groups(self.bound.max(2), relevance.sees_memory());
        let Some(machine) = Contexts::new(task.program, task.model, groups) else {
            return Ended::Stopped(Reason::Cancelled);
        };
        let start = machine.initial_values();
        let domain = domain(machine.cells());
        let graph = Graph::new(machine, &relevance, &task.properties, groups);
        let mut layers = Layers::new(graph, domain, self.bound);
        let mut doubtful = BTreeSet::new();
        let mut counted = 0;
        let ended = loop {
            self.progress.say(format!("{} contexts", self.bound));
            match layers.next(self.limits, self.progress) {
                Next::Found(found) => {
                    let property = &task.properties[found.property];
                    let trace = trace::execution(task, &found, property, self.limits);
                    if let Some(reason) = self.limits.exceeded(0).filter(|_| trace.is_none()) {
                        break Ended::Stopped(reason);
                    }
                    match trace {
                        Some(trace) if property.kind.is_existence() => {
                            break Ended::Answer(found.property, Answer::Holds(Some(trace)));
                        }
                        Some(trace) => break Ended::Answer(found.property, Answer::Violated(Some(trace))),
                        None if refine(&layers, &found, &start).is_some() => break Ended::Again,
                        None => _ = doubtful.insert(found.property),
                    }
                }
                Next::Done { .. } if !layers.suffices_for(self.bound) => break Ended::Again,
                // What happens out there is not known.
                Next::Done { .. } if layers.beyond().is_some() => {
                    let beyond =
                        layers.beyond().map(|(what, span)| Reason::Unsupported(what.into(), Some(span)));
                    break Ended::Stopped(beyond.unwrap_or(Reason::Cancelled));
                }
                Next::Done { saturated } => {
                    let states = layers.states() as u64;
                    let seconds = self.since.elapsed().as_secs_f64();
                    let round = Round { contexts: self.bound, states: states - counted, seconds };
                    self.report.rounds.push(round);
                    (self.since, counted) = (Instant::now(), states);
                    if saturated || !doubtful.is_empty() || self.bound == self.most {
                        break Ended::Nothing { saturated, doubtful };
                    }
                    self.bound += 1;
                    if !layers.suffices_for(self.bound) {
                        break Ended::Again;
                    }
                    layers.deepen();
                }
                Next::Stopped(reason) => break Ended::Stopped(reason),
            }
        };
        self.report.states += layers.states() as u64;
        self.report.bytes = self.report.bytes.max(layers.bytes());
        ended
    }

    /// More contexts would not lead to more states: what is open holds. The states of this machine are no certificate, for it is one of
    /// selected executions; `cegar` is asked for one.
    fn close(&mut self) {
        let open = self.open();
        let properties = open.iter().map(|&n| self.task.properties[n].clone()).collect();
        let task = Task::new(self.task.program, self.task.model, properties);
        let limits = self.limits.within(PROOF.max(10 * self.began.elapsed()));
        self.progress.say("a certificate".into());
        let proofs = Cegar::default().run(&task, &limits, self.progress);
        self.report.states += proofs.states;
        self.report.bytes = self.report.bytes.max(proofs.bytes);
        for (n, proof) in open.into_iter().zip(proofs.answers) {
            self.answers[n] = Some(match (proof, self.task.properties[n].kind.is_existence()) {
                (proof @ Answer::Proved(_), _) => proof,
                (Answer::Violated(Some(_)), _) => Answer::Unknown(Reason::Contradiction(
                    "no number of contexts shows the violation that cegar found".into(),
                )),
                (_, false) => Answer::Holds(None),
                (_, true) => Answer::Violated(None),
            });
        }
    }

    /// Leaves what is open open, for this reason.
    fn give_up(&mut self, reason: &Reason) {
        self.answers.iter_mut().for_each(|a| _ = a.get_or_insert_with(|| Answer::Unknown(reason.clone())));
    }
}
