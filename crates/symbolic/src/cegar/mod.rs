//! Engine `cegar` (FENCES12): abstracts buffers by keeping only some stores in order, abstracts integers by zones or predicates, and refines both
//! abstractions by counterexamples.
//!
//! An abstract counterexample is examined as in s. 7 of FENCES12. (1, 2) If its events are an execution of the exact memory model, the program is
//! unsafe. (3) If they are feasible with abstract buffers and exact integers, more stores must be kept in order. (4) Otherwise the abstraction of
//! integers is too coarse, and the domain is refined: zones get a larger clip constant, rows for sums or thresholds for widening, and interpolants
//! give new predicates. Sometimes neither refinement excludes the counterexample, or excluding it takes more than a few stores in order. Then
//! *summary cells* keep the values of the stores that are not kept in order. There are summary cells only for as few memory cells as suffice to
//! exclude the counterexample. A search without a counterexample is a proof, and its states are an inductive invariant.

pub mod path;

use std::sync::Arc;

use fencewright_analysis::nonlinear::is_nonlinear;
use fencewright_memory::{Bound, BufferMachine, Buffers, Command, Kept, Limitation, Linear, Summarised};
use fencewright_program::{MemoryModel, Program, Property, Span};
use fencewright_verdict::{
    About, Answer, Author, Counts, Early, Engine, EngineName, Invariant, Limits, Order, Part, Progress,
    Reason, Report, Task,
};

use crate::domain::zones::Zones;
use crate::domain::{Choice, Domain, DomainName, SpuriousPath, WithDomain, with_domain};
use crate::examine::Examined;
use crate::search::explore::{ReachedControl, Unmodelled};
use crate::search::live::LiveCells;
use crate::search::reach::{Reach, Reached};
use crate::search::reduced::{Path, Reduced};
use crate::search::symmetry::Symmetry;

/// The initial precision of the abstraction, and which parts of it are never refined.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Number of stores that each buffer keeps in order (under PSO: of stores to each memory cell).
    pub k: u32,
    /// Whether the oldest or the newest stores are kept in order.
    pub kept: Kept,
    /// Whether the values of stores beyond the `k` ordered ones are kept in summary cells from the start.
    pub summaries: bool,
    /// The domain that represents integers.
    pub domain: DomainName,
    /// The initial clip constant of zones; ignored by other domains.
    pub clip: i32,
    /// Which of these parameters are never refined.
    pub fixed: Fixed,
    /// If set, exact buffers with this bound are used instead of abstract ones, and the answer is `unknown` if a store does not
    /// fit, unless a violation is found.
    pub buffer_bound: Option<Bound>,
    /// The order in which the search expands states.
    pub order: Order,
}

/// Parameters that are never refined. If a counterexample can only be excluded by refining one of them, the answer is `unknown`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fixed {
    /// Whether the number of stores kept in order is fixed.
    pub k: bool,
    /// Whether the clip constant is fixed.
    pub clip: bool,
    /// Whether only the predicates suggested by the source are used.
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

/// Maximum number of stores kept in order that refinement tries; larger numbers have never helped.
const MOST_KEPT: u32 = 8;
/// Maximum number of stores kept in order before summaries of the other stores are tried. A loop can give a spurious counterexample for each k, each
/// one store longer than the previous one. In `examples/dijkstra.fw`, `assertions` took 105,066 states when all k up to 8 were tried first; now it
/// takes 36,886.
const FEW_KEPT: u32 = 4;
/// The checker accepts certificates about exact buffers up to this bound.
const LARGEST_BOUND: u32 = 64;

/// Engine `cegar`: counterexample-guided refinement of the abstractions of buffers and integers.
#[derive(Clone, Debug, Default)]
pub struct Cegar {
    /// The initial precision, and the parameters that are never refined.
    pub options: Options,
}

impl Engine for Cegar {
    fn name(&self) -> EngineName {
        EngineName::Cegar
    }

    fn about(&self) -> About {
        About {
            summary: "abstract buffers and integers, refined by counterexamples: proofs for unbounded programs",
            models: &MemoryModel::ALL,
            machines: &["sc", "partial", "queue"],
            domains: &["zones", "predicates", "order", "concrete"],
        }
    }

    fn run(&self, task: &Task<'_>, limits: &Limits, progress: &Progress) -> Report {
        let mut answers: Vec<Option<Answer>> = vec![None; task.properties.len()];
        if let Some(bound) = self.options.buffer_bound.map(Bound::most).filter(|&bound| bound > LARGEST_BOUND)
        {
            let reason = format!("engine cegar has exact buffers up to {LARGEST_BOUND} stores, not {bound}");
            let answers = vec![Answer::Unknown(Reason::Unsupported(reason, None)); answers.len()];
            return Report { answers, ..Report::default() };
        }
        let exact = BufferMachine::new(task.program, Buffers::Sc);
        for (answer, property) in answers.iter_mut().zip(&task.properties) {
            // Programs that choose real numbers are declined. So are properties that need a proof that a state is reachable, or that no thread can
            // move, because an over-approximation can show neither.
            let reals = task.program.has_real_choices();
            if reals || exact.violation(&exact.initial(), property).is_none() {
                let what = if reals { "programs that choose real numbers" } else { &property.name };
                let reason = format!("engine cegar cannot decide {what}");
                let place = (!reals && property.span != Span::default()).then_some(property.span);
                *answer = Some(Answer::Unknown(Reason::Unsupported(reason, place)));
            }
        }
        let (options, report) = (&self.options, Report::default());
        let all = Summarised::all(task.program.cells());
        let summaries = if options.summaries { all } else { Summarised::default() };
        let (k, rounds) = (options.k, 0);
        let mut run = Run { options, task, limits, progress, k, summaries, rounds, answers, report };
        let open = run.open();
        if !open.is_empty() {
            let choice = Choice {
                name: Some(self.options.domain),
                clip: self.options.clip,
                clip_is_fixed: self.options.fixed.clip,
                predicates_are_fixed: self.options.fixed.predicates,
                certificates: true,
            };
            if let Err(reason) = with_domain(choice, &Part::new(task, &open, 0).task(), limits, &mut run) {
                run.leave_open(&open, &Answer::Unknown(reason));
            }
        }
        // A property without an answer was answered by another engine in the meantime.
        let answers = run.answers.into_iter().map(|answer| answer.unwrap_or(Answer::Open));
        run.report.answers = answers.collect();
        run.report
    }
}

/// The state of a run of the engine on one task.
struct Run<'a, 'p> {
    options: &'a Options,
    task: &'a Task<'p>,
    limits: &'a Limits,
    progress: &'a Progress,
    /// The current number of stores kept in order.
    k: u32,
    /// The memory cells for which the values of the stores beyond the `k` ordered ones are kept in summary cells.
    summaries: Summarised,
    rounds: u32,
    answers: Vec<Option<Answer>>,
    report: Report,
}

impl WithDomain for &mut Run<'_, '_> {
    type Output = ();

    fn run<D: Domain>(self, domain: D) {
        self.iterate(domain);
    }
}

impl Run<'_, '_> {
    /// Searches and refines until all properties are answered, or an error ends the run.
    fn iterate<D: Domain>(&mut self, mut domain: D) {
        loop {
            let open = self.open();
            if open.is_empty() {
                break;
            }
            let part = Part::new(self.task, &open, 0);
            let mut sub = part.task();
            sub.observed.clear();
            if let Err(reason) = self.round(&sub, &open, &mut domain) {
                self.leave_open(&open, &Answer::Unknown(reason));
                break;
            }
        }
        self.report.work.counts = Counts::Predicates(domain.predicates());
    }

    /// Runs one search for the open properties, and answers properties or refines the abstraction. An error ends the run.
    fn round<D: Domain>(&mut self, sub: &Task<'_>, open: &[usize], domain: &mut D) -> Result<(), Reason> {
        let live = LiveCells::new(sub, self.limits)?;
        let machine =
            BufferMachine::new(sub.program, self.options.buffers(sub.model, self.k, self.summaries));
        self.rounds += 1;
        let precision = domain.describe().map_or(String::new(), |precision| format!(", {precision}"));
        let summaries = if self.summaries.is_empty() { "" } else { " with summaries" };
        self.progress.say(format!("round {}: k = {}{summaries}{precision}", self.rounds, self.k));
        match self.search(sub, &machine, &live, domain)? {
            Searched::Invariant(invariant) if domain.is_checkable() => {
                open.iter().for_each(|&n| self.tell(n, Answer::Proved(Arc::clone(&invariant))));
            }
            Searched::Invariant(_) => open.iter().for_each(|&n| self.answers[n] = Some(Answer::Holds(None))),
            // Another engine has answered the property in the meantime.
            Searched::Path(n, _) if sub.is_settled(n) => {}
            Searched::Path(n, path) => {
                let property = &sub.properties[n];
                if let Some(trace) = path::execution(sub, &path, property, self.limits) {
                    self.tell(open[n], Answer::Violated(Some(trace)));
                    if self.task.first_violation {
                        self.leave_open(open, &Answer::Open);
                    }
                } else if let Some(reason) = self.limits.exceeded(0) {
                    return Err(reason);
                } else {
                    let mut spurious = Spurious {
                        machine: &machine,
                        live: &live,
                        path: &path,
                        property,
                        interpolants: Vec::new(),
                        limits: self.limits,
                    };
                    if let Err(reason) = self.refine(sub, &mut spurious, domain) {
                        self.answers[open[n]] = Some(Answer::Unknown(reason));
                    }
                }
            }
        }
        Ok(())
    }

    /// The indices of the properties that neither this engine nor another one has answered.
    fn open(&self) -> Vec<usize> {
        let is_open = |&n: &usize| self.answers[n].is_none() && !self.task.is_settled(n);
        (0..self.answers.len()).filter(is_open).collect()
    }

    /// Answers a property, and publishes the answer at once.
    fn tell(&mut self, n: usize, answer: Answer) {
        let author = Author { engine: EngineName::Cegar, work: self.report.work.clone() };
        self.task.tell(n, Early { answer: answer.clone(), author });
        self.answers[n] = Some(answer);
    }

    /// Gives this answer, which decides nothing, to those of the given properties that have no answer yet.
    fn leave_open(&mut self, open: &[usize], answer: &Answer) {
        open.iter().for_each(|&n| _ = self.answers[n].get_or_insert_with(|| answer.clone()));
    }

    /// Explores a machine: returns all its states, or a path to a state that may violate a property.
    fn search<D: Domain>(
        &mut self,
        task: &Task<'_>,
        machine: &BufferMachine<'_>,
        live: &LiveCells,
        domain: &mut D,
    ) -> Result<Searched, Reason> {
        let symmetry = Symmetry::new(task);
        let reduced = Reduced::new(machine, live, symmetry.as_ref());
        let mut reach =
            Reach::new(&reduced, &task.properties, domain, self.limits).in_order(self.options.order);
        let reached = reach.run(self.limits, self.progress);
        self.report.work.states += reach.states() as u64;
        self.report.work.bytes = self.report.work.bytes.max(reach.bytes());
        match reached {
            Reached::Closed(states) => {
                let domain = reach.domain();
                let states = states
                    .into_iter()
                    .map(|ReachedControl { control, live, states }| {
                        let cubes = states.iter().map(|state| domain.cube(&live, state)).collect();
                        (control, cubes)
                    })
                    .collect();
                let properties = task.properties.iter().map(|p| p.name.clone()).collect();
                let symmetry = symmetry.as_ref().map_or_else(Vec::new, Symmetry::classes);
                let buffers = machine.buffers;
                Ok(Searched::Invariant(Arc::new(Invariant { buffers, properties, symmetry, states })))
            }
            Reached::Evidence(path) => Ok(Searched::Path(path.property, reduced.unfolded(&path.steps))),
            Reached::Unmodelled(Unmodelled::Machine(what, span)) => Err(match machine.buffers {
                Buffers::Queue { bound, .. } if what == Limitation::BufferOverflow => {
                    Reason::BufferBound(bound)
                }
                _ => Reason::Unsupported(what.to_string(), Some(span)),
            }),
            Reached::Unmodelled(Unmodelled::Domain(reason)) | Reached::Stopped(reason) => Err(reason),
        }
    }

    /// Finds a buffer abstraction that excludes a path which is feasible with the current buffers and exact integers: the number of stores kept in
    /// order, and the summarised memory cells. The error says in words why there is none.
    fn finer_buffers(&self, path: &Spurious<'_>, keeps_summaries: bool) -> Result<(u32, Summarised), String> {
        let more = (self.k + 1..=MOST_KEPT).find(|&k| self.rule_out(path, k, self.summaries));
        let allowed = more.filter(|_| !self.options.fixed.k);
        match allowed.filter(|&k| k <= FEW_KEPT) {
            Some(k) => Ok((k, self.summaries)),
            None => {
                let summarised = || self.summarising_buffers(path, keeps_summaries);
                let found = summarised().or(allowed.map(|k| (k, self.summaries)));
                found.ok_or_else(|| match more {
                    Some(more) => format!("it takes k = {more}, and k is fixed at {}", self.k),
                    None => "no number of stores kept in order rules it out".into(),
                })
            }
        }
    }

    /// A buffer abstraction with more summaries that excludes a path, if the domain keeps information about summary cells.
    fn summarising_buffers(&self, path: &Spurious<'_>, keeps_summaries: bool) -> Option<(u32, Summarised)> {
        let all = path::summarised(path.path, self.summaries);
        if all == self.summaries || !keeps_summaries {
            return None;
        }
        // With summaries, fewer stores in order may suffice than without, so the search for k starts at its initial value again.
        let most = if self.options.fixed.k { self.k } else { MOST_KEPT };
        let k = (self.options.k..=most).find(|&k| self.rule_out(path, k, all))?;
        Some((k, path::fewest(all, self.summaries, |fewer| self.rule_out(path, k, fewer))))
    }

    /// Whether a path is infeasible with these buffers, as far as difference bounds can show.
    fn rule_out(&self, path: &Spurious<'_>, k: u32, summaries: Summarised) -> bool {
        let buffers = self.options.buffers(self.task.model, k, summaries);
        !path.is_feasible_on(&BufferMachine::new(self.task.program, buffers), &mut Zones::unclipped())
    }

    /// Cases (3) and (4) of FENCES12 s. 7: refines buffers or domain in order to exclude the path.
    fn refine<D: Domain>(
        &mut self,
        task: &Task<'_>,
        path: &mut Spurious<'_>,
        domain: &mut D,
    ) -> Result<(), Reason> {
        let nonlinear = nonlinear_step(task.program, path.path);
        let stuck = |what: &str| {
            // When time is up, solver queries fail, which must not be mistaken for "no refinement helps".
            if let Some(reason) = path.limits.exceeded(0) {
                return reason;
            }
            let what = if nonlinear.is_some() { "it depends on arithmetic that is not linear" } else { what };
            Reason::Unsupported(format!("a spurious counterexample remains: {what}"), nonlinear)
        };
        let keeps = domain.keeps_summaries();
        let is_abstract = self.options.is_abstract(task.model);
        let coarse = match path::examine(path.machine, path.path, path.property, path.limits) {
            Examined::Possible if is_abstract => {
                (self.k, self.summaries) = self.finer_buffers(path, keeps).map_err(|what| stuck(&what))?;
                return Ok(());
            }
            Examined::Possible => "the solver says that it is possible".into(),
            Examined::Unknown => "the solver gave up on it".into(),
            Examined::Impossible(interpolants) => {
                path.interpolants = interpolants;
                match domain.refine(path) {
                    Ok(finer) => {
                        *domain = finer;
                        return Ok(());
                    }
                    Err(what) => what,
                }
            }
        };
        // Without a summary, a flush from an abstract buffer may write an arbitrary value to a cell. With a summary, the domain may constrain the
        // stored values.
        let finer = if is_abstract { self.summarising_buffers(path, keeps) } else { None };
        (self.k, self.summaries) = finer.ok_or_else(|| stuck(&coarse))?;
        Ok(())
    }
}

/// The source position of the first edge on a path with nonlinear arithmetic, if there is one.
fn nonlinear_step(program: &Program, path: &Path) -> Option<Span> {
    let is_nonlinear = |command: &Command| match command {
        Command::Assume(e) | Command::Assign(_, e) | Command::Fold(_, e) => is_nonlinear(e),
        Command::Havoc(_) | Command::Expand(..) => false,
    };
    let step = path.iter().map(|(step, _)| step).find(|step| step.commands.iter().any(is_nonlinear))?;
    step.name.edge.map(|edge| program.thread(step.name.thread).edge(edge).span)
}

/// The result of a search.
enum Searched {
    /// No violation is reachable; all states form this inductive invariant.
    Invariant(Arc<Invariant>),
    /// A path to a state that may violate the property with this index.
    Path(usize, Path),
}

/// A counterexample that is not an execution, with the data that refinement needs.
struct Spurious<'a> {
    machine: &'a BufferMachine<'a>,
    live: &'a LiveCells,
    path: &'a Path,
    property: &'a Property,
    /// The interpolants found by the solver; empty until the path is known to be infeasible with exact integers.
    interpolants: Vec<Linear>,
    limits: &'a Limits,
}

impl Spurious<'_> {
    /// Whether the path is feasible on a machine and ends in a violation, as far as a domain can tell within the limits.
    fn is_feasible_on<D: Domain>(&self, machine: &BufferMachine<'_>, domain: &mut D) -> bool {
        path::is_feasible(machine, self.live, self.path, self.property, domain, self.limits)
    }
}

impl<D: Domain> SpuriousPath<D> for Spurious<'_> {
    fn is_feasible(&mut self, domain: &mut D) -> bool {
        self.is_feasible_on(self.machine, domain)
    }

    fn interpolants(&mut self) -> Option<Vec<Linear>> {
        Some(self.interpolants.clone())
    }

    fn sums(&mut self) -> Vec<Linear> {
        let cells = &self.machine.cells;
        let has_no_summary = |linear: &Linear| !linear.terms.iter().any(|(cell, _)| cells.is_summary(*cell));
        let on_the_path = path::sums(self.machine, self.path, self.property);
        on_the_path.into_iter().chain(self.interpolants.iter().cloned()).filter(has_no_summary).collect()
    }
}

impl Options {
    /// The buffers of the machine: none under SC; exact buffers if `buffer_bound` is set; otherwise an abstraction that keeps `k` stores in order.
    fn buffers(&self, model: MemoryModel, k: u32, summaries: Summarised) -> Buffers {
        match (model, self.buffer_bound) {
            (MemoryModel::Sc, _) => Buffers::Sc,
            (model, Some(bound)) => Buffers::Queue { model, bound },
            (model, None) => Buffers::Partial { model, k, kept: self.kept, summaries },
        }
    }

    /// Whether the machine forgets the order of some stores, so that more stores can be kept in order.
    fn is_abstract(&self, model: MemoryModel) -> bool {
        model != MemoryModel::Sc && self.buffer_bound.is_none()
    }
}
