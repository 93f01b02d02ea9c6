//! Tasks, the trait of engines, and their reports.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use fencewright_certify::{Certificate, Claim};
use fencewright_memory::linear::Cube;
use fencewright_memory::{Buffers, Control};
use fencewright_program::{MemoryModel, Observable, Program, Property, Span, Trace};

pub use crate::limits::{Limits, Token};
pub use crate::reason::{Advice, Reason};
pub use crate::work::{Author, Counts, Executions, Round, Work};

/// A task for an engine: which of these properties hold of this program under this memory model?
#[derive(Clone, Debug)]
pub struct Task<'p> {
    /// The program that the properties are about.
    pub program: &'p Program,
    /// The memory model under which the program runs.
    pub model: MemoryModel,
    /// The properties to check. One run of the engine answers all of them.
    pub properties: Vec<Property>,
    /// The observables to report in final states; empty for most tasks.
    pub observed: Vec<Observable>,
    /// Whether the run may stop at the first violation. Then other properties may have no answer, and some final states may not be found.
    pub first_violation: bool,
    /// Receives each answer as soon as the engine finds it; `None` if answers are only needed at the end. The field is private, so that a task
    /// derived from this one does not accidentally inherit a listener that numbers properties differently.
    listener: Option<&'p dyn Listener>,
}

impl<'p> Task<'p> {
    /// A task to check these properties, without observables and without a listener. The run continues after a violation.
    pub fn new(program: &'p Program, model: MemoryModel, properties: Vec<Property>) -> Self {
        Task { program, model, properties, observed: Vec::new(), first_violation: false, listener: None }
    }

    /// The same task, with a listener that receives each answer as soon as the engine finds it.
    pub fn heard_by<'a>(&self, listener: &'a dyn Listener) -> Task<'a>
    where
        'p: 'a,
    {
        Task { listener: Some(listener), ..self.clone() }
    }

    /// A task about another program, memory model and properties, with the observables and `first_violation` of this task, but without a listener.
    pub fn about<'a>(&self, program: &'a Program, model: MemoryModel, properties: Vec<Property>) -> Task<'a> {
        let observed = self.observed.clone();
        Task { program, model, properties, observed, first_violation: self.first_violation, listener: None }
    }

    /// Whether there is a listener.
    #[inline]
    pub fn is_heard(&self) -> bool {
        self.listener.is_some()
    }

    /// Passes the answer to the property with this index to the listener. An answer with evidence (a trace, an invariant or a certificate) counts as
    /// soon as the evidence is confirmed. An answer without evidence counts only at the end of the run, if no better answer was found until then (at
    /// once if nothing is confirmed).
    pub fn tell(&self, property: usize, early: Early) {
        if let Some(listener) = self.listener {
            listener.hear(property, early);
        }
    }

    /// Whether the listener examines each answer before it settles the property. If so, a property is not settled just because it has an answer.
    #[inline]
    pub fn is_judged(&self) -> bool {
        self.listener.is_some_and(|listener| listener.judges())
    }

    /// Whether the property with this index already has a verdict, so that it need not be examined any more.
    #[inline]
    pub fn is_settled(&self, property: usize) -> bool {
        self.listener.is_some_and(|listener| listener.is_settled(property))
    }
}

/// Receives the answers of a run before the run ends, and tells the engine which properties have a verdict.
pub trait Listener: Sync + fmt::Debug {
    /// Receives the answer to the property with this index.
    fn hear(&self, property: usize, early: Early);
    /// Whether this property has a verdict.
    fn is_settled(&self, property: usize) -> bool;
    /// Whether the listener examines the answers and settles the properties that they decide.
    fn judges(&self) -> bool;
}

/// An answer given before the end of a run.
#[derive(Clone, Debug)]
pub struct Early {
    /// The answer to one property of the task.
    pub answer: Answer,
    /// The engine that gave the answer, and its statistics until then.
    pub author: Author,
}

/// A subset of the properties of a task, from which a separate task can be made. Answers to that task are passed to the listener of the whole task.
#[derive(Debug)]
pub struct Part<'a> {
    task: &'a Task<'a>,
    numbers: &'a [usize],
    /// Number of states that the same engine stored before this part began.
    states: u64,
}

impl<'a> Part<'a> {
    /// The part of the task with the properties at the indices `numbers`. The same engine has stored `states` states before this part begins.
    pub fn new(task: &'a Task<'a>, numbers: &'a [usize], states: u64) -> Self {
        Part { task, numbers, states }
    }

    /// The part as a task.
    pub fn task(&self) -> Task<'_> {
        let properties = self.numbers.iter().map(|&n| self.task.properties[n].clone()).collect();
        let part = Task { properties, ..self.task.clone() };
        if self.task.is_heard() { part.heard_by(self) } else { part }
    }
}

impl Listener for Part<'_> {
    fn hear(&self, property: usize, early: Early) {
        // The transitions that the engine took before this part began were not counted, so the total is unknown.
        let Early { answer, author: Author { engine, mut work } } = early;
        work.states += self.states;
        if self.states > 0 {
            work.forget_transitions();
        }
        self.task.tell(self.numbers[property], Early { answer, author: Author { engine, work } });
    }

    fn is_settled(&self, property: usize) -> bool {
        self.task.is_settled(self.numbers[property])
    }

    fn judges(&self) -> bool {
        self.task.is_judged()
    }
}

/// The order in which states are expanded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// By distance from the initial states, so that traces have minimal length among those that the reduction leaves.
    #[default]
    BreadthFirst,
    /// The newest state first, so that the frontier takes less memory.
    DepthFirst,
}

/// The domains that can be selected by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DomainName {
    /// Difference bounds, clipped at a constant.
    Zones,
    /// Conjunctions of predicates from interpolants.
    Predicates,
    /// The relative order of values.
    Order,
    /// One value per cell.
    Concrete,
}

impl DomainName {
    /// The name used on the command line and in all output.
    pub fn as_str(self) -> &'static str {
        match self {
            DomainName::Zones => "zones",
            DomainName::Predicates => "predicates",
            DomainName::Order => "order",
            DomainName::Concrete => "concrete",
        }
    }
}

/// The progress of a run: written by the engine, read for display.
#[derive(Debug, Default)]
pub struct Progress {
    /// Number of states stored so far, or of events if the engine stores no states.
    pub states: AtomicU64,
    /// Estimated number of states not yet expanded.
    pub frontier: AtomicU64,
    /// Memory use of the run, in bytes.
    pub bytes: AtomicU64,
    /// The current activity of an engine that works in rounds, in words; otherwise empty.
    pub note: Mutex<String>,
}

impl Progress {
    /// Sets the current activity, which replaces the previous one.
    pub fn say(&self, note: String) {
        *self.note.lock().unwrap_or_else(PoisonError::into_inner) = note;
    }

    /// The current activity, as last set by [`Progress::say`].
    pub fn said(&self) -> String {
        self.note.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The answer of an engine to one property, before it is checked.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The property holds. For `finally exists`, the trace shows a final state that satisfies the formula.
    Holds(Option<Trace>),
    /// The property holds, as proved by this invariant.
    Proved(Arc<Invariant>),
    /// The property holds, or it is violated, whichever the certificate claims. The certificate proves its claim by a set of states, or by proofs
    /// about programs other than the one of the task.
    Certified(Arc<Certificate>),
    /// The property is violated. The trace shows the violation; for `finally exists` there is no trace.
    Violated(Option<Trace>),
    /// The engine could not decide the property, for this reason.
    Unknown(Reason),
    /// The engine did not finish with the property, because the violation of another property was enough, or because the property has a verdict
    /// already.
    Open,
}

impl Answer {
    /// Whether the property holds; `None` if the answer is not definite.
    pub fn holds(&self) -> Option<bool> {
        match self {
            Answer::Holds(_) | Answer::Proved(_) => Some(true),
            Answer::Certified(certificate) => {
                Some(!matches!(certificate.claim.about_properties(), Claim::Unsatisfied { .. }))
            }
            Answer::Violated(_) => Some(false),
            Answer::Unknown(_) | Answer::Open => None,
        }
    }

    /// Whether the answer decides the property, with or without evidence.
    #[inline]
    pub fn is_definite(&self) -> bool {
        self.holds().is_some()
    }

    /// Whether the answer is definite and contains evidence: a trace, an invariant or a certificate.
    pub fn has_evidence(&self) -> bool {
        self.is_definite() && !matches!(self, Answer::Holds(None) | Answer::Violated(None))
    }
}

/// An inductive invariant: for each reachable control state of a machine, a disjunction of conjunctions of constraints.
#[derive(Clone, Debug)]
pub struct Invariant {
    /// The representation of buffers in the machine.
    pub buffers: Buffers,
    /// The names of the properties that the invariant proves.
    pub properties: Vec<String>,
    /// Classes of threads that may be permuted: see [`fencewright_certify::InductiveInvariant`].
    pub symmetry: Vec<Vec<u32>>,
    /// The reachable control states and their invariants.
    pub states: Vec<(Control, Vec<Cube>)>,
}

/// An unsuccessful attempt of one engine to answer a property.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// The engine that was tried.
    pub engine: EngineName,
    /// The representation of integers, if there is a choice.
    pub domain: Option<DomainName>,
    /// The memory model of the engine's task.
    pub model: MemoryModel,
    /// The names of the threads of the engine's task, if threads of the program were left out of it; otherwise empty.
    pub threads: Vec<String>,
    /// Number of stored states, counted as in [`Work::states`].
    pub states: u64,
    /// Wall-clock time in seconds, including the time in which other engines had their turns.
    pub seconds: f64,
    /// Why the engine gave no answer, in words, and where in the program that happened.
    pub reason: String,
}

impl Tried {
    /// The key of the attempt. Of several attempts with the same key, only the last one is reported.
    pub fn who(&self) -> (EngineName, Option<DomainName>, MemoryModel, &[String]) {
        (self.engine, self.domain, self.model, &self.threads)
    }
}

/// The part of the reachable states that a search has explored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Seen {
    /// All reachable states.
    All,
    /// The states found before all properties were decided.
    UntilDecided,
    /// The states found before the search stopped for this reason.
    Until(Reason),
    /// The engine does not enumerate states.
    #[default]
    Nothing,
}

/// The result of an engine. It proves nothing; its answers become verdicts only in the module [`check`](mod@crate::check).
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// One answer for each property of the task.
    pub answers: Vec<Answer>,
    /// The author of each answer, if several engines work together; otherwise empty.
    pub authors: Vec<Author>,
    /// Statistics of the run; for several engines, the sum of states, and the maximum of bytes.
    pub work: Work,
    /// The part of the reachable states that was explored.
    pub seen: Seen,
    /// The values of [`Task::observed`] in the explored final states, sorted.
    pub finals: Vec<Vec<i64>>,
    /// If some property has no answer: a sentence for each buffer or value that grew without bound, with the place in the source that makes it grow,
    /// if it is known.
    pub growth: Vec<(String, Option<Span>)>,
    /// The attempts to answer each property, if several engines work together; otherwise empty.
    pub tried: Vec<Vec<Tried>>,
}

/// The engines, by the names that the command line uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineName {
    /// The engine that chooses and combines others.
    Auto,
    /// Enumeration of all states.
    Explicit,
    /// Abstraction of buffers and integers with counterexample-guided refinement.
    Cegar,
    /// Proofs and violations under TSO by way of SC, with stores delayed where it matters.
    Lazy,
    /// Executions with a bounded number of contexts.
    Contexts,
    /// Search with abstract store buffers and concrete values.
    Buffers,
    /// Proofs under SC, extrapolated to the relaxed model.
    Extrapolate,
    /// The analysis of robustness itself: the author of a verdict about robustness for which no instrumented program was given to an engine, for
    /// example because there is no attack.
    Robust,
}

impl EngineName {
    /// The name used on the command line and in all output.
    pub fn as_str(self) -> &'static str {
        match self {
            EngineName::Auto => "auto",
            EngineName::Explicit => "explicit",
            EngineName::Cegar => "cegar",
            EngineName::Lazy => "lazy",
            EngineName::Contexts => "contexts",
            EngineName::Buffers => "buffers",
            EngineName::Extrapolate => "extrapolate",
            EngineName::Robust => "robust",
        }
    }
}

impl fmt::Display for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The description of an engine, for users who choose one.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// What the engine does, in one line.
    pub summary: &'static str,
    /// The supported memory models.
    pub models: &'static [MemoryModel],
    /// The names of the machines that the engine uses, that is, of its representations of buffers.
    pub machines: &'static [&'static str],
    /// The names of the domains that the engine supports, that is, of its representations of integers.
    pub domains: &'static [&'static str],
}

/// An engine: an algorithm that answers tasks. Its answers are not trusted.
pub trait Engine: Sync {
    /// The name of the engine.
    fn name(&self) -> EngineName;
    /// The description of the engine, for users who choose an engine.
    fn about(&self) -> About;
    /// Answers a task. The report has one answer for each property of the task, also if a limit is reached.
    fn run(&self, task: &Task<'_>, limits: &Limits, progress: &Progress) -> Report;
}
