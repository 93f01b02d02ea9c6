//! Engine `explicit`: enumeration of all reachable states (THESIS16 Algorithms 2.3 and 2.4, chapter 4).
//!
//! Exact for SC, TSO and PSO. States are packed into a few machine words ([`layout`](self)) and explored breadth first or depth first on all cores.
//! The state space is reduced by live variables, symmetry of threads, and local events first or another partial order reduction ([`Reduction`]). If
//! the search explores all reachable states, a property that no state violates is proved. If buffers or integers grow without bound, the search goes
//! on until it finds a violation, reaches a limit, or is given up because of the growth. A `*` with infinitely many values is tried with samples
//! only. Unless an execution decides a property, the answer is then `unknown`.
//!
//! As printed, local events first (Algorithms 4.2 and 4.3) preserves memory contents only. Here properties also refer to labels and registers, so
//! four corrections are needed; without them states are missed. (1) An event that changes a label or register observed by a property is not local.
//! (2) Lock operations and atomic steps are not local either, so no thread is the favourite (the thread whose local events come first) after one of
//! them. (3) No thread is the favourite after the favourite has ended, and a blocked favourite is ignored. (4) The favourite is part of the stored
//! state.
//!
//! The crate also contains the other engines that enumerate states or executions: [`buffers`], which runs this search with abstract store buffers;
//! [`dynamic`], which explores executions and stores no states; [`finals`], which decides litmus tests; and [`overflow`], which searches for a store
//! that does not fit into a bounded buffer.

#![forbid(unsafe_code)]

mod abstract_buffer;
mod abstracted;
pub mod buffers;
mod code;
mod divergence;
pub mod dynamic;
mod expand;
mod families;
pub mod finals;
mod gate;
mod initial;
mod instructions;
mod layout;
mod liveness;
mod mail;
mod orbits;
pub mod overflow;
mod proof;
mod reduction;
mod search;
mod shorten;
mod store;
mod trace;
mod versions;
mod worker;

use std::collections::BTreeSet;
use std::sync::Arc;

use fencewright_analysis::constants::constants;
use fencewright_certify::automorphism::Family;
use fencewright_certify::{Certificate, Claim, Proof, property};
use fencewright_memory::Bound;
use fencewright_program::{MemoryModel, Program, Property, Thread};
use fencewright_verdict::fingerprint::fingerprint;
use fencewright_verdict::{
    About, Answer, Author, Counts, Early, Engine, EngineName, Limits, Progress, Reason, Report, Seen, Task,
    Work,
};

pub(crate) use abstract_buffer::Abstraction;
use code::Code;
pub use divergence::buffers_may_grow;
use dynamic::Endless;
pub use fencewright_verdict::Order;
pub use reduction::Reduction;
use search::{Decided, Found};

/// Options of engine `explicit` and of the other engines that use its search.
#[derive(Clone, Debug)]
pub struct Options {
    /// The order in which states are expanded. With several workers the depth-first order is only approximate.
    pub order: Order,
    /// Whether the values of dead registers are dropped.
    pub live_variables: bool,
    /// The partial order reduction; `Reduction::Suited` chooses one for the program.
    pub reduction: Reduction,
    /// Whether to reduce by symmetry: of states that differ only by a permutation of the threads of a [`Family`], one is stored.
    pub symmetry: bool,
    /// The maximum number of worker threads.
    pub workers: usize,
    /// The number of states waiting to be expanded at which worker threads are started; until then one thread does all the work.
    pub threads_from: usize,
    /// The bound on the size of store buffers; `None` if they are unbounded. A store that does not fit is not explored; then there is no proof, and
    /// the answer is `unknown` unless an execution decides the property.
    pub buffer_bound: Option<Bound>,
    /// Whether proofs should be checkable sets of states. If the reduction of a search does not yield such a set, a second search with persistent
    /// sets follows.
    pub certificates: bool,
    /// Whether versions (unbounded tags, version counters and identities) are stored only up to their order. Such a search finds proofs only, and
    /// only for programs that have versions.
    pub versions: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            order: Order::BreadthFirst,
            live_variables: true,
            reduction: Reduction::default(),
            symmetry: true,
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            threads_from: 1_000,
            buffer_bound: None,
            certificates: false,
            versions: false,
        }
    }
}

/// Engine `explicit`, which enumerates all reachable states.
#[derive(Clone, Debug, Default)]
pub struct Explicit {
    /// The options of the searches that the engine runs. The engine replaces a reduction that does not suit the program.
    pub options: Options,
}

impl Engine for Explicit {
    fn name(&self) -> EngineName {
        EngineName::Explicit
    }

    fn about(&self) -> About {
        About {
            summary: "all reachable states one by one: exact, a proof if there are finitely many",
            models: &MemoryModel::ALL,
            machines: &["exact"],
            domains: &["concrete"],
        }
    }

    fn run(&self, task: &Task<'_>, limits: &Limits, progress: &Progress) -> Report {
        let options = &self.options_for(task);
        if options.reduction == Reduction::Dynamic {
            return self.run_dynamic(task, limits, progress);
        }
        let mut report = Report::default();
        let mut answers: Vec<Option<Answer>> = vec![None; task.properties.len()];
        let give_up = |report, reason| Report {
            answers: vec![Answer::Unknown(reason); task.properties.len()],
            ..report
        };
        let code = match Code::new(task, options, None, limits) {
            Ok(code) => code,
            Err(reason) => return give_up(report, reason),
        };
        if options.versions && code.versions.is_none() {
            let what = "there are no numbers of which only the order matters";
            return give_up(report, Reason::Unsupported(what.into(), None));
        }
        let symmetry = exchanged(task.program, code.orbits.families());
        let counts = |state_bytes, transitions| Counts::States {
            state_bytes,
            transitions,
            symmetry: symmetry.clone(),
        };
        report.work.counts = counts(0, None);
        // An unbounded `*` is sampled with a growing radius, one round per radius. A program without such a `*` needs a single round.
        let mut radius = FEW_SAMPLES;
        loop {
            let samples = samples(task.program, radius);
            let known: Vec<bool> = answers.iter().map(Option::is_some).collect();
            let mut on_decided = |decided: &Decided<'_>| {
                if options.versions {
                    let what = "a violation may take an order of versions that there is not".into();
                    answers[decided.property] = Some(Answer::Unknown(Reason::Unsupported(what, None)));
                    return;
                }
                let answer = shown(task, &code, decided, &samples, options, limits);
                answers[decided.property] = Some(answer.clone());
                let states = decided.stores.iter().map(|s| s.len() as u64).sum();
                let stored = decided.stores.iter().map(|s| s.bytes() as u64).sum();
                let counts = counts(stored, Some(decided.transitions));
                let work = Work { states, bytes: decided.bytes, counts };
                let author = Author { engine: self.name(), work };
                task.tell(decided.property, Early { answer, author });
            };
            let found =
                search::search(task, &code, options, &samples, &known, limits, progress, &mut on_decided);
            let found = match found {
                Ok(found) => found,
                Err(reason) => return give_up(report, reason),
            };
            // Once every property is decided, the search goes on only if the task asks for all final states.
            let undecided = answers.iter().any(Option::is_none);
            let wanted = undecided || (!task.observed.is_empty() && !task.first_violation);
            let more = found.sampled && wanted && found.stopped.is_none() && radius < MOST_SAMPLES;
            let stored = found.stores.iter().map(|s| s.bytes() as u64).sum();
            report.work = Work {
                states: found.stores.iter().map(|s| s.len() as u64).sum(),
                bytes: report.work.bytes.max(found.bytes),
                counts: counts(stored, Some(found.transitions)),
            };
            if more {
                radius *= 4;
                continue;
            }
            let incomplete = why_incomplete(&found, options, radius);
            report.seen = match &incomplete {
                _ if !wanted && !task.properties.is_empty() => Seen::UntilDecided,
                Some(reason) => Seen::Until(reason.clone()),
                None => Seen::All,
            };
            conclude(task, &code, answers, (found, incomplete), options, limits, &mut report);
            if options.certificates && !options.reduction.has_proof() {
                self.certify(task, limits, progress, &mut report);
            }
            return report;
        }
    }
}

/// Writes the final states of a search into the report, and an answer to each property: the known answer, if there is one, and otherwise the answer
/// that the states prove.
fn conclude(
    task: &Task<'_>,
    code: &Code,
    answers: Vec<Option<Answer>>,
    (found, incomplete): (Found, Option<Reason>),
    options: &Options,
    limits: &Limits,
    report: &mut Report,
) {
    if found.stopped.is_some() {
        report.growth = divergence::explain(task.program, code, &found.sizes);
    }
    report.finals = found.finals.iter().cloned().collect();
    let proofs = match &incomplete {
        // With other reductions the state set is closed under the explored steps only, so it is not a proof.
        None if options.reduction.has_proof() => Proofs::new(task, code, &answers, found, limits),
        _ => Proofs::default(),
    };
    let answers = answers.into_iter().enumerate();
    let answer = |(n, known): (usize, Option<Answer>)| {
        known.unwrap_or_else(|| not_shown(task, n, &incomplete, &proofs))
    };
    report.answers = answers.map(answer).collect();
}

impl Explicit {
    /// The options of a search, with a reduction that suits the program.
    fn options_for(&self, task: &Task<'_>) -> Options {
        let mut options = self.options.clone();
        let bounded = options.buffer_bound.is_some();
        options.reduction = options.reduction.suited(task.program.threads.len(), bounded);
        if options.versions {
            // Reductions based on summaries do not support versions.
            options.reduction = options.reduction.without_summaries();
        }
        options
    }

    /// Runs the stateless search. If certificates are requested, a search with persistent sets follows, which replaces definite answers without
    /// evidence.
    fn run_dynamic(&self, task: &Task<'_>, limits: &Limits, progress: &Progress) -> Report {
        if self.options.buffer_bound.is_some() {
            let what = "a dynamic reduction has no bound on buffers: all executions must end";
            let answer = Answer::Unknown(Reason::Unsupported(what.into(), None));
            return Report { answers: vec![answer; task.properties.len()], ..Report::default() };
        }
        let samples = samples(task.program, FEW_SAMPLES);
        let mut report = dynamic::run(task, &samples, FEW_SAMPLES, Endless::Cut, limits, progress);
        if self.options.certificates {
            self.certify(task, limits, progress, &mut report);
        }
        report
    }

    /// Runs a second search, with persistent sets, after a search whose reduction yields no certificates. Definite answers without evidence are
    /// replaced by certified ones. If the second search finds an execution that contradicts such an answer, the answer becomes `unknown`.
    fn certify(&self, task: &Task<'_>, limits: &Limits, progress: &Progress, report: &mut Report) {
        let shown = |answer: &Answer| matches!(answer, Answer::Holds(None) | Answer::Violated(None));
        if !report.answers.iter().any(shown) {
            return;
        }
        let options = Options { reduction: Reduction::Persistent, ..self.options.clone() };
        let again = Explicit { options }.run(task, limits, progress);
        report.work.bytes = report.work.bytes.max(again.work.bytes);
        for (answer, again) in report.answers.iter_mut().zip(again.answers) {
            match again {
                again @ Answer::Certified(_) if shown(answer) => *answer = again,
                Answer::Holds(Some(_)) | Answer::Violated(Some(_)) if shown(answer) => {
                    let what = "a reduced search has missed a state that decides the property";
                    *answer = Answer::Unknown(Reason::Contradiction(what.into()));
                }
                // Otherwise the answer of the first search stays, for example because the second search reached a limit.
                _ => {}
            }
        }
    }
}

/// The stateless search as a member of a portfolio. It stops at the first infinite execution, because no proof is possible then. An execution with
/// 2,000 events counts as infinite.
#[derive(Clone, Debug, Default)]
pub struct Traces;

impl Traces {
    /// Whether the end of every thread is reachable in its control-flow graph, so that executions may be finite.
    pub fn are_promising(program: &Program) -> bool {
        let ends = |thread: &Thread| {
            let mut reached = vec![false; thread.locations.len()];
            let mut work = vec![thread.entry];
            while let Some(location) = work.pop() {
                if thread.is_end(location) {
                    return true;
                }
                if !std::mem::replace(&mut reached[location.index()], true) {
                    work.extend(thread.edges_from(location).map(|(_, edge)| edge.to));
                }
            }
            false
        };
        program.threads.iter().all(ends)
    }
}

impl Engine for Traces {
    fn name(&self) -> EngineName {
        EngineName::Explicit
    }

    fn about(&self) -> About {
        Explicit::default().about()
    }

    fn run(&self, task: &Task<'_>, limits: &Limits, progress: &Progress) -> Report {
        let samples = samples(task.program, FEW_SAMPLES);
        dynamic::run(task, &samples, FEW_SAMPLES, Endless::GiveUp, limits, progress)
    }
}

/// Whether versions are found in the program within the limits, so that a search up to their order makes sense.
pub fn has_versions(task: &Task<'_>, options: &Options, limits: &Limits) -> bool {
    let options = Options { versions: true, ..options.clone() };
    versions::are_likely(task.program)
        && Code::new(task, &options, None, limits).is_ok_and(|code| code.versions.is_some())
}

/// The names of the threads of each [`Family`].
fn exchanged(program: &Program, families: &[Family]) -> Vec<Vec<String>> {
    let name = |&thread: &u32| program.threads[thread as usize].name.clone();
    families.iter().map(|family| family.threads.iter().map(name).collect()).collect()
}

/// The first radius for samples of an unbounded `*`.
const FEW_SAMPLES: i64 = 2;

/// The largest radius for samples of an unbounded `*`.
const MOST_SAMPLES: i64 = 1 << 13;

/// The samples for an unbounded `*`, in order of absolute value: the values from `-radius` to `radius`, and each constant of the program with its two
/// neighbours.
fn samples(program: &Program, radius: i64) -> Vec<i64> {
    let mut values: BTreeSet<i64> = (-radius..=radius).collect();
    let near = |c: i64| [c.saturating_sub(1), c, c.saturating_add(1)];
    values.extend(constants(program).into_iter().flat_map(near));
    let mut values: Vec<i64> = values.into_iter().collect();
    values.sort_by_key(|v| (v.unsigned_abs(), *v));
    values
}

/// Why some reachable states may not have been explored; `None` if all were explored.
fn why_incomplete(found: &Found, options: &Options, radius: i64) -> Option<Reason> {
    if let Some(reason) = &found.stopped {
        return Some(reason.clone());
    }
    if let (true, Some(bound)) = (found.bounded, options.buffer_bound) {
        return Some(Reason::BufferBound(bound));
    }
    if let Some((limit, span)) = found.limit {
        return Some(Reason::Limit(limit, span));
    }
    found.sampled.then_some(Reason::UnboundedChoice(radius))
}

/// The answer to a property that a state decides, with an execution that reaches the state; `unknown` if no such execution is reconstructed.
fn shown(
    task: &Task<'_>,
    code: &Code,
    decided: &Decided<'_>,
    samples: &[i64],
    options: &Options,
    limits: &Limits,
) -> Answer {
    let property = &task.properties[decided.property];
    let limits = &limits.finishing();
    match trace::path(task, code, decided, samples, options.buffer_bound, limits) {
        Ok(Some(path)) if property.kind.is_existence() => Answer::Holds(Some(path.trace)),
        Ok(Some(path)) if options.reduction.needs_summaries() => {
            Answer::Violated(Some(shorten::shortened(task, property, path.trace, limits)))
        }
        Ok(Some(path)) => Answer::Violated(Some(path.trace)),
        Ok(None) => Answer::Unknown(Reason::Contradiction("a stored state cannot be reached again".into())),
        Err(reason) => Answer::Unknown(reason),
    }
}

/// The answer to a property that no state decides. It is definite only if all reachable states were explored.
fn not_shown(task: &Task<'_>, property: usize, incomplete: &Option<Reason>, proofs: &Proofs) -> Answer {
    let exists = task.properties[property].kind.is_existence();
    match incomplete {
        // The property was settled during the search, so the states found later were not checked for it.
        _ if task.is_settled(property) => Answer::Open,
        Some(reason) => Answer::Unknown(reason.clone()),
        None => match proofs.of(&task.properties[property]) {
            Some(certificate) => Answer::Certified(certificate),
            None if exists => Answer::Violated(None),
            None => Answer::Holds(None),
        },
    }
}

/// The certificates of a search that explored all states.
#[derive(Default)]
struct Proofs {
    certificates: Vec<Arc<Certificate>>,
}

impl Proofs {
    /// One certificate for the properties that hold, and one for the `finally exists` that are violated; both contain the set of all states. No
    /// certificates if time or memory does not suffice, or the lists of live registers are too large.
    fn new(task: &Task<'_>, code: &Code, answers: &[Option<Answer>], found: Found, limits: &Limits) -> Self {
        let open = |n: &usize| answers[*n].is_none() && !task.is_settled(*n);
        let properties = (0..answers.len()).filter(open).map(|n| &task.properties[n]);
        // Certificates refer to properties by the names they have in the program.
        let named = |p: &&Property| property(task.program, &p.name).is_some_and(|own| own.kind == p.kind);
        let (exist, hold): (Vec<&Property>, Vec<&Property>) =
            properties.filter(named).partition(|p| p.kind.is_existence());
        let stored = found.stores.iter().map(|s| s.bytes() as u64).sum();
        // Within the grace period after the deadline, a complete search may still produce its proof.
        if (exist.is_empty() && hold.is_empty())
            || limits.finishing().exceeded_with(stored, proof::bytes_to_check(&found)).is_some()
        {
            return Proofs::default();
        }
        let Some(set) = proof::states(task.program, code, found) else { return Proofs::default() };
        let set = Arc::new(set);
        let names = |properties: Vec<&Property>| properties.iter().map(|p| p.name.clone()).collect();
        let certificate = |claim: Claim| {
            let proofs = vec![Proof::States(Arc::clone(&set))];
            Arc::new(Certificate::new(fingerprint(task.program), claim, proofs))
        };
        let holds = (!hold.is_empty()).then(|| certificate(Claim::Safe { properties: names(hold) }));
        let violated =
            (!exist.is_empty()).then(|| certificate(Claim::Unsatisfied { properties: names(exist) }));
        Proofs { certificates: holds.into_iter().chain(violated).collect() }
    }

    /// The certificate for a property, if there is one.
    fn of(&self, property: &Property) -> Option<Arc<Certificate>> {
        self.certificates.iter().find(|c| c.properties().contains(&property.name)).cloned()
    }
}
