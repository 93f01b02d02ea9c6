//! Engine `contexts`: explores all executions with a bounded number of contexts (CONTEXT24).
//!
//! The engine runs the machine `Contexts` with one of the domains. The domain `order` decides the programs of its fragment exactly (see
//! `domain::order`), for unbounded values and buffers. Zones and predicates handle all other programs; there, spurious paths refine the domain, as in
//! `cegar`. The number of contexts grows from 1 on, so a violation is found with the smallest number that exhibits it.
//!
//! If there is no violation within the bound, the answer is `unknown`, with one exception: if more contexts would reach no new state and, in
//! a program with several threads, no two stores were merged because of the bound, then there is no violation at all. In this case engine `cegar` is
//! run to find a certificate, if one is wanted; without a certificate the property holds on the word of this engine.

pub mod groups;
mod layers;
pub mod machine;
mod relevance;
mod relevant;
mod trace;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use fencewright_memory::{Command, Linear, Machine};
use fencewright_program::{MemoryModel, Property, PropertyKind};
use fencewright_verdict::{
    About, Answer, Author, Early, Engine, EngineName, Limits, Progress, Reason, Report, Round, Task,
};

use crate::cegar::Cegar;
use crate::domain::{Choice, Domain, DomainName, SpuriousPath, WithDomain, with_domain};
use crate::examine::{self, Examined};
use crate::search::explore::{Counterexample, Unmodelled};
use layers::{Layers, Next, most_groups};
use machine::Contexts;
use relevance::Relevance;
use relevant::Relevant;

/// Options of engine `contexts`.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Maximum number of contexts; `None` means [`MOST_CONTEXTS`].
    pub contexts: Option<u32>,
    /// The representation of integers; `None` means `order` where it is exact, and zones elsewhere.
    pub domain: Option<DomainName>,
    /// Whether engine `cegar` is run to find a certificate, once it is known that there is no violation.
    pub certificates: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { contexts: None, domain: None, certificates: true }
    }
}

/// Maximum number of contexts by default, because more contexts are intractable.
pub const MOST_CONTEXTS: u32 = 64;
/// The clip constant of zones before any refinement.
const FIRST_CLIP: i32 = 2;

/// Minimum time granted to `cegar` for a certificate, as far as the limits of the run allow.
const PROOF: Duration = Duration::from_secs(2);

/// Engine `contexts`, which searches with more and more contexts.
#[derive(Clone, Debug, Default)]
pub struct ContextBound {
    /// The bound on contexts, the domain, and whether certificates are wanted.
    pub options: Options,
}

/// How a search ended.
enum Ended {
    /// The property with this index has an answer.
    Answer(usize, Answer),
    /// The search ended without an answer. For the `doubtful` properties there are paths to evidence, but none that could be shown to be an
    /// execution. If `saturated`, more contexts reach no additional states.
    Nothing { saturated: bool, doubtful: BTreeSet<usize> },
    /// The search must be repeated, with a more precise domain or with more groups.
    Again,
    /// A limit was reached.
    Stopped(Reason),
}

impl Engine for ContextBound {
    fn name(&self) -> EngineName {
        EngineName::Contexts
    }

    fn about(&self) -> About {
        About {
            summary: "all executions within a number of contexts: exact for programs that only copy and compare values",
            models: &[MemoryModel::Sc, MemoryModel::Tso],
            machines: &["contexts"],
            domains: &["order", "zones", "predicates", "concrete"],
        }
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
            certificates: self.options.certificates,
            since: Instant::now(),
            began: Instant::now(),
        };
        let choice = Choice {
            name: self.options.domain,
            clip: FIRST_CLIP,
            clip_is_fixed: false,
            predicates_are_fixed: false,
            certificates: false,
        };
        if let Err(reason) = with_domain(choice, task, limits, &mut run) {
            run.leave_open(&Answer::Unknown(reason));
        }
        run.report.answers = run.answers.into_iter().flatten().collect();
        run.report
    }
}

/// The answer `unknown` to a property that this engine can never decide; `None` if the engine may decide it.
fn unanswerable(task: &Task<'_>, property: &Property) -> Option<Answer> {
    let what = match (&property.kind, task.model) {
        (_, MemoryModel::Pso) => "engine contexts knows SC and TSO, not PSO",
        (PropertyKind::NoDeadlock, _) => "engine contexts cannot decide deadlocks",
        _ if task.program.threads.is_empty() => "engine contexts needs a thread",
        _ => return None,
    };
    Some(Answer::Unknown(Reason::Unsupported(what.into(), None)))
}

/// The reason for an answer `unknown`: there is no violation within this many contexts, and executions with more contexts were not searched because
/// of `reason`.
fn within(contexts: u32, reason: Reason) -> Reason {
    if contexts == 0 { reason } else { Reason::Contexts(contexts, Some(Box::new(reason))) }
}

/// The state of a run of the engine on one task.
struct Run<'a, 'p> {
    task: &'a Task<'p>,
    limits: &'a Limits,
    progress: &'a Progress,
    report: Report,
    answers: Vec<Option<Answer>>,
    /// The current number of contexts.
    bound: u32,
    /// The maximum number of contexts.
    most: u32,
    certificates: bool,
    /// When `bound` got its current value.
    since: Instant,
    /// When the run began.
    began: Instant,
}

/// A path to evidence for which no execution was found.
struct Spurious<'s, 'a, 'p> {
    machine: &'s Relevant<'a, 'p>,
    path: &'s Counterexample<Relevant<'a, 'p>>,
    limits: &'s Limits,
}

impl<D: Domain> SpuriousPath<D> for Spurious<'_, '_, '_> {
    fn is_feasible(&mut self, domain: &mut D) -> bool {
        self.path.is_feasible(self.machine, domain, self.limits)
    }

    fn interpolants(&mut self) -> Option<Vec<Linear>> {
        let start = self.machine.initial_values();
        let steps = self.path.steps.iter().map(|(step, branch)| (step.commands.as_slice(), *branch));
        let path: Vec<(&[Command], Option<u32>)> =
            std::iter::once((start.as_slice(), Some(0))).chain(steps).collect();
        match examine::examine(&path, &self.path.evidence.commands, &self.limits.budget()) {
            Examined::Impossible(interpolants) => Some(interpolants),
            Examined::Possible | Examined::Unknown => None,
        }
    }
}

impl WithDomain for &mut Run<'_, '_> {
    type Output = ();

    fn run<D: Domain>(self, domain: D) {
        self.iterate(domain);
    }
}

impl Run<'_, '_> {
    /// Allows more and more contexts until every property is answered, `most` contexts have been allowed, or a limit is reached.
    fn iterate<D: Domain>(&mut self, mut domain: D) {
        while self.bound <= self.most && !self.open().is_empty() {
            match self.explore(&mut domain) {
                Ended::Answer(n, answer) => {
                    self.tell(n, answer.clone());
                    self.answers[n] = Some(answer);
                    if self.task.first_violation {
                        self.leave_open(&Answer::Open);
                    }
                }
                Ended::Again => {}
                Ended::Nothing { saturated, doubtful } => {
                    let doubt = Reason::Unsupported(domain.doubt().into(), None);
                    for n in doubtful {
                        self.answers[n] = Some(Answer::Unknown(within(self.bound - 1, doubt.clone())));
                    }
                    if saturated {
                        self.close();
                    }
                    self.bound += 1;
                }
                Ended::Stopped(reason) => {
                    return self.leave_open(&Answer::Unknown(within(self.bound - 1, reason)));
                }
            }
        }
        self.leave_open(&Answer::Unknown(Reason::Contexts(self.bound - 1, None)));
    }

    /// The indices of the properties that neither this engine nor another one has answered.
    fn open(&self) -> Vec<usize> {
        let is_open = |&n: &usize| self.answers[n].is_none() && !self.task.is_settled(n);
        (0..self.answers.len()).filter(is_open).collect()
    }

    /// Publishes an answer at once, before the run ends.
    fn tell(&self, n: usize, answer: Answer) {
        let author = Author { engine: EngineName::Contexts, work: self.report.work.clone() };
        self.task.tell(n, Early { answer, author });
    }

    /// Like `search`, for the open properties: translates between their indices and those of the task.
    fn explore<D: Domain>(&mut self, domain: &mut D) -> Ended {
        let open = self.open();
        let properties = open.iter().map(|&n| self.task.properties[n].clone()).collect();
        let sub = Task::new(self.task.program, self.task.model, properties);
        let ended = self.search(&sub, domain);
        match ended {
            Ended::Answer(n, answer) => Ended::Answer(open[n], answer),
            Ended::Nothing { saturated, doubtful } => {
                Ended::Nothing { saturated, doubtful: doubtful.into_iter().map(|n| open[n]).collect() }
            }
            other => other,
        }
    }

    /// Searches for evidence, with the current number of contexts and then with more. Returns `Ended::Again` if more groups are needed, or after it
    /// has replaced `domain` by a finer one because of a spurious path.
    fn search<D: Domain>(&mut self, task: &Task<'_>, domain: &mut D) -> Ended {
        let relevance = match Relevance::new(task, self.limits) {
            Ok(relevance) => relevance,
            Err(reason) => return Ended::Stopped(reason),
        };
        let groups = most_groups(self.bound.max(2), relevance.sees_memory());
        let Some(contexts) = Contexts::new(task.program, task.model, groups) else {
            return Ended::Stopped(Reason::Cancelled);
        };
        let machine = Relevant::new(contexts, &relevance);
        let mut finer = None;
        let mut layers = Layers::new(&machine, &task.properties, domain, (self.bound, groups), self.limits);
        let mut doubtful = BTreeSet::new();
        let mut counted = 0;
        let ended = loop {
            self.progress.say(format!("{} contexts", self.bound));
            match layers.next(self.limits, self.progress) {
                Next::Evidence(path) => {
                    let property = &task.properties[path.property];
                    let trace = trace::execution(task, &path, property, self.limits);
                    if let Some(reason) = self.limits.exceeded(0).filter(|_| trace.is_none()) {
                        break Ended::Stopped(reason);
                    }
                    match trace {
                        Some(trace) if property.kind.is_existence() => {
                            break Ended::Answer(path.property, Answer::Holds(Some(trace)));
                        }
                        Some(trace) => break Ended::Answer(path.property, Answer::Violated(Some(trace))),
                        None => {
                            let mut spurious =
                                Spurious { machine: &machine, path: &path, limits: self.limits };
                            finer = layers.domain().refine(&mut spurious).ok();
                            if finer.is_some() {
                                break Ended::Again;
                            }
                            doubtful.insert(path.property);
                        }
                    }
                }
                Next::Done { .. } if !layers.suffices_for(self.bound) => break Ended::Again,
                Next::Done { saturated } => {
                    // If some reachable states may be missing, nothing is concluded.
                    match layers.unmodelled() {
                        Some(Unmodelled::Machine(what, span)) => {
                            break Ended::Stopped(Reason::Unsupported(what.to_string(), Some(*span)));
                        }
                        Some(Unmodelled::Domain(reason)) => break Ended::Stopped(reason.clone()),
                        None => {}
                    }
                    let states = layers.states() as u64;
                    let seconds = self.since.elapsed().as_secs_f64();
                    let round = Round { contexts: self.bound, states: states - counted, seconds };
                    self.report.work.add_round(round);
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
        self.report.work.states += layers.states() as u64;
        self.report.work.bytes = self.report.work.bytes.max(layers.bytes());
        drop(layers);
        if let Some(finer) = finer {
            *domain = finer;
        }
        ended
    }

    /// Called when more contexts would reach no additional states, so the open properties hold. The context machine leaves executions out, so its
    /// states are not an inductive invariant for a certificate. So engine `cegar` is run to find one, if
    /// certificates are wanted.
    fn close(&mut self) {
        let open = self.open();
        let properties = open.iter().map(|&n| self.task.properties[n].clone()).collect();
        let task = Task::new(self.task.program, self.task.model, properties);
        let proofs = match self.certificates {
            true => {
                let limits = self.limits.within(PROOF.max(10 * self.began.elapsed()));
                self.progress.say("a certificate".into());
                Cegar::default().run(&task, &limits, self.progress)
            }
            false => Report { answers: vec![Answer::Open; open.len()], ..Report::default() },
        };
        self.report.work.states += proofs.work.states;
        self.report.work.bytes = self.report.work.bytes.max(proofs.work.bytes);
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

    /// Gives every open property this answer, which decides nothing.
    fn leave_open(&mut self, answer: &Answer) {
        self.answers.iter_mut().for_each(|a| _ = a.get_or_insert_with(|| answer.clone()));
    }
}
