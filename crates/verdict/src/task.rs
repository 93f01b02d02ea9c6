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
    /// The program to check.
    pub program: &'p Program,
    /// The memory model.
    pub model: MemoryModel,
    /// The properties, all answered by one run.
    pub properties: Vec<Property>,
    /// The observables to report in final states; empty for most tasks.
    pub observed: Vec<Observable>,
    /// Whether one violation is enough: then the other properties may stay open, and final states unexplored.
    pub first_violation: bool,
    /// Receives each answer at once, if present. The field is private, so that a task made from this one does not accidentally inherit a listener
    /// that numbers properties differently.
    listener: Option<&'p dyn Listener>,
}

impl<'p> Task<'p> {
    /// A task with these properties.
    pub fn new(program: &'p Program, model: MemoryModel, properties: Vec<Property>) -> Self {
        Task { program, model, properties, observed: Vec::new(), first_violation: false, listener: None }
    }

    /// The same task, with a listener that receives each answer at once.
    pub fn heard_by<'a>(&self, listener: &'a dyn Listener) -> Task<'a>
    where
        'p: 'a,
    {
        Task { listener: Some(listener), ..self.clone() }
    }

    /// The same kind of task about another program, with other properties under another memory model, without a listener.
    pub fn about<'a>(&self, program: &'a Program, model: MemoryModel, properties: Vec<Property>) -> Task<'a> {
        let observed = self.observed.clone();
        Task { program, model, properties, observed, first_violation: self.first_violation, listener: None }
    }

    /// Whether there is a listener.
    #[inline]
    pub fn is_heard(&self) -> bool {
        self.listener.is_some()
    }

    /// Passes the answer to the property with this index to the listener. An answer with evidence, a trace or an invariant, counts as soon as the
    /// evidence is confirmed; one without waits for a better one until the end of the run.
    pub fn tell(&self, property: usize, early: Early) {
        if let Some(listener) = self.listener {
            listener.hear(property, early);
        }
    }

    /// Whether the listener examines answers and then settles the property: then an answer alone does not settle it.
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

/// Receives the answers of a run before it ends, and knows which properties have a verdict.
pub trait Listener: Sync + fmt::Debug {
    /// Receives the answer to the property with this index.
    fn hear(&self, property: usize, early: Early);
    /// Whether this property has a verdict.
    fn is_settled(&self, property: usize) -> bool;
    /// Whether it examines the answers, and settles the properties they decide.
    fn judges(&self) -> bool;
}

/// An answer given before the end of a run.
#[derive(Clone, Debug)]
pub struct Early {
    /// The answer.
    pub answer: Answer,
    /// The author of the answer.
    pub author: Author,
}

/// A subset of the properties of a task, as a task of its own. Its answers go to the listener of the whole task.
#[derive(Debug)]
pub struct Part<'a> {
    task: &'a Task<'a>,
    numbers: &'a [usize],
    /// Number of states that the same engine stored before this part began.
    states: u64,
}

impl<'a> Part<'a> {
    /// The properties with these indices; the engine has stored `states` states before.
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
        // The transitions before this part began were not counted.
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
    /// Level by level: traces have minimal length.
    #[default]
    BreadthFirst,
    /// The newest state first: the frontier takes less memory.
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
    /// Number of stored states.
    pub states: AtomicU64,
    /// Number of states not yet expanded.
    pub frontier: AtomicU64,
    /// Bytes used.
    pub bytes: AtomicU64,
    /// The current activity of an engine that works in rounds, in words; otherwise empty.
    pub note: Mutex<String>,
}

impl Progress {
    /// Sets the current activity.
    pub fn say(&self, note: String) {
        *self.note.lock().unwrap_or_else(PoisonError::into_inner) = note;
    }

    /// The current activity.
    pub fn said(&self) -> String {
        self.note.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The answer of an engine to one property, before it is checked.
#[derive(Clone, Debug)]
pub enum Answer {
    /// It holds; for `finally exists` with an execution that shows it.
    Holds(Option<Trace>),
    /// It holds, as proved by this invariant.
    Proved(Arc<Invariant>),
    /// It holds, as proved by this certificate: by a set of states, or by proofs about other programs than that of the task. Or it is violated, if
    /// the certificate claims that.
    Certified(Arc<Certificate>),
    /// It is violated; with an execution that shows it, except for `finally exists`.
    Violated(Option<Trace>),
    /// No verdict.
    Unknown(Reason),
    /// It was not fully examined: the violation of another property was enough, or the property has a verdict already.
    Open,
}

impl Answer {
    /// Whether the property holds, if the answer is definite.
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

    /// Whether it decides the property.
    #[inline]
    pub fn is_definite(&self) -> bool {
        self.holds().is_some()
    }

    /// Whether it is definite and contains its evidence.
    pub fn has_evidence(&self) -> bool {
        self.is_definite() && !matches!(self, Answer::Holds(None) | Answer::Violated(None))
    }
}

/// An inductive invariant: for each reachable control state of a machine, a disjunction of conjunctions of constraints.
#[derive(Clone, Debug)]
pub struct Invariant {
    /// The machine.
    pub buffers: Buffers,
    /// The names of the properties it proves.
    pub properties: Vec<String>,
    /// Classes of threads that may be permuted: see [`fencewright_certify::InductiveInvariant`].
    pub symmetry: Vec<Vec<u32>>,
    /// The reachable control states and their invariants.
    pub states: Vec<(Control, Vec<Cube>)>,
}

/// An attempt of one engine, and why it gave no answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// The engine that was tried.
    pub engine: EngineName,
    /// The representation of integers, if there is a choice.
    pub domain: Option<DomainName>,
    /// The memory model of its task.
    pub model: MemoryModel,
    /// The names of the threads of its task, if others were left out.
    pub threads: Vec<String>,
    /// Number of stored states.
    pub states: u64,
    /// Time in seconds, including the turns of other engines.
    pub seconds: f64,
    /// Why it gave no answer, and where it got stuck.
    pub reason: String,
}

impl Tried {
    /// The key of the attempt: of several with the same key, the last one counts.
    pub fn who(&self) -> (EngineName, Option<DomainName>, MemoryModel, &[String]) {
        (self.engine, self.domain, self.model, &self.threads)
    }
}

/// The part of the reachable states that a search has explored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Seen {
    /// All of them.
    All,
    /// Those found before all properties were decided.
    UntilDecided,
    /// A part of them, for this reason.
    Until(Reason),
    /// The engine does not enumerate states.
    #[default]
    Nothing,
}

/// The result of an engine. It proves nothing: its answers become verdicts at the door ([`check`](mod@crate::check)).
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// One answer for each property of the task.
    pub answers: Vec<Answer>,
    /// The author of each answer, if several engines work together.
    pub authors: Vec<Author>,
    /// Statistics of the run; for several engines, the sum of states, and the maximum of bytes.
    pub work: Work,
    /// The part of the reachable states that was explored.
    pub seen: Seen,
    /// The values of [`Task::observed`] in the final states that were seen, sorted.
    pub finals: Vec<Vec<i64>>,
    /// Buffers and values that grew without bound if there was no verdict: one sentence each, with its place.
    pub growth: Vec<(String, Option<Span>)>,
    /// For each unanswered property the attempts, if several engines work together.
    pub tried: Vec<Vec<Tried>>,
}

/// The names of the engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineName {
    /// The engine that chooses and combines others.
    Auto,
    /// Enumeration of all states.
    Explicit,
    /// Abstraction with counterexample-guided refinement.
    Cegar,
    /// TSO via SC.
    Lazy,
    /// Executions with a bounded number of contexts.
    Contexts,
    /// Abstract store buffers.
    Buffers,
    /// Proofs under SC, extrapolated to the relaxed model.
    Extrapolate,
    /// The analysis of robustness, as the author of answers that need no engine.
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

/// Description of an engine.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// A summary in one line.
    pub summary: &'static str,
    /// The supported memory models.
    pub models: &'static [MemoryModel],
    /// The machines it uses: representations of buffers.
    pub machines: &'static [&'static str],
    /// The domains it supports: representations of integers.
    pub domains: &'static [&'static str],
}

/// An engine.
pub trait Engine: Sync {
    /// Its name.
    fn name(&self) -> EngineName;
    /// Its description, for users who choose an engine.
    fn about(&self) -> About;
    /// Answers a task.
    fn run(&self, task: &Task<'_>, limits: &Limits, progress: &Progress) -> Report;
}
