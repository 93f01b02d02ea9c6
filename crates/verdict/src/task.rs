//! Tasks, the trait of engines, and their reports.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fencewright_certify::{Certificate, Claim, Undecided};
use fencewright_memory::linear::Cube;
use fencewright_memory::{Bound, Buffers, Control};
use fencewright_program::reference::Limit;
use fencewright_program::{MemoryModel, Observable, Program, Property, Span, Trace};

pub use crate::limits::{Limits, Token};

/// A task for an engine: which of these properties hold of this program under this memory model?
#[derive(Clone, Debug)]
pub struct Task<'p> {
    /// The program.
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

/// The engine that gave an answer, and the statistics of its run until then.
#[derive(Clone, Debug)]
pub struct Author {
    /// The engine.
    pub engine: EngineName,
    /// The statistics of this engine alone.
    pub work: Work,
}

/// Statistics of the run of one engine. Those of several engines are not added up, because their states are not comparable.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// Number of stored states.
    pub states: u64,
    /// Peak memory use in bytes.
    pub bytes: u64,
    /// Statistics of certain engines only.
    pub counts: Counts,
}

/// The statistics of an engine besides states and bytes.
#[derive(Clone, Debug, Default)]
pub enum Counts {
    /// None.
    #[default]
    Nothing,
    /// For engines that store single states.
    States {
        /// Bytes of the stored states themselves.
        state_bytes: u64,
        /// Number of transitions, if all of them were counted.
        transitions: Option<u64>,
        /// The names of threads that were permuted: of states equal up to such a permutation, one was stored.
        symmetry: Vec<Vec<String>>,
    },
    /// For engines that explore executions one by one.
    Executions(Executions),
    /// For engines that increase the number of contexts: statistics for each number.
    Rounds(Vec<Round>),
    /// For engines that search for predicates: the number of predicates found.
    Predicates(usize),
}

impl Work {
    /// Bytes of the stored states themselves; 0 if the engine does not count them.
    pub fn state_bytes(&self) -> u64 {
        match self.counts {
            Counts::States { state_bytes, .. } => state_bytes,
            _ => 0,
        }
    }

    /// The number of transitions, if the engine counts them.
    pub fn transitions(&self) -> Option<u64> {
        match self.counts {
            Counts::States { transitions, .. } => transitions,
            _ => None,
        }
    }

    /// The names of threads that were permuted.
    pub fn symmetry(&self) -> &[Vec<String>] {
        match &self.counts {
            Counts::States { symmetry, .. } => symmetry,
            _ => &[],
        }
    }

    /// The number of explored executions, if the engine explores executions.
    pub fn executions(&self) -> Option<Executions> {
        match self.counts {
            Counts::Executions(executions) => Some(executions),
            _ => None,
        }
    }

    /// The statistics for each number of contexts; empty if the engine has no contexts.
    pub fn rounds(&self) -> &[Round] {
        match &self.counts {
            Counts::Rounds(rounds) => rounds,
            _ => &[],
        }
    }

    /// The number of predicates found; 0 if the engine searches for none.
    pub fn predicates(&self) -> usize {
        match self.counts {
            Counts::Predicates(predicates) => predicates,
            _ => 0,
        }
    }

    /// Adds the statistics for one more number of contexts.
    pub fn add_round(&mut self, round: Round) {
        match &mut self.counts {
            Counts::Rounds(rounds) => rounds.push(round),
            counts => *counts = Counts::Rounds(vec![round]),
        }
    }

    /// Removes the number of transitions, because some were not counted.
    fn forget_transitions(&mut self) {
        if let Counts::States { transitions, .. } = &mut self.counts {
            *transitions = None;
        }
    }
}

impl Author {
    /// Adds the statistics of the same engine for another part of the same answer, as far as they are comparable.
    pub fn together(mut self, other: &Author) -> Author {
        let (own, more) = (&mut self.work, &other.work);
        if self.engine == other.engine && own.executions().is_none() && more.executions().is_none() {
            own.states += more.states;
            own.bytes = own.bytes.max(more.bytes);
            if let Counts::States { transitions, .. } = &mut own.counts {
                *transitions = transitions.zip(more.transitions()).map(|(own, more)| own + more);
            }
        }
        self
    }
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

/// Why there is no verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The time limit was reached.
    Timeout(Duration),
    /// The memory limit was reached.
    Memory(u64),
    /// The run was cancelled.
    Cancelled,
    /// A buffer reached the bound given by the user.
    BufferBound(Bound),
    /// A `*` without a range (or with a very large one) was only sampled.
    UnboundedChoice(i64),
    /// A value or address that explicit computation cannot hold.
    Limit(Limit, Span),
    /// The engine does not support some construct: a description, and the place in the source, if there is one.
    Unsupported(String, Option<Span>),
    /// There is no violation within this many contexts. The reason tells why no more were tried; `None` if no more were requested.
    Contexts(u32, Option<Box<Reason>>),
    /// No violation was found so far, and a buffer or value grows in a loop that does not visibly bound it: the rest of the memory is left to other
    /// engines.
    Endless,
    /// There is a proof, but no time was left to check it.
    NotConfirmed,
    /// There is a proof, but the checker could decide neither that it is valid nor that it is invalid.
    Unconfirmed(Undecided),
    /// Two independent computations disagree: a defect of the tool.
    Contradiction(String),
    /// The system could not start all threads of a search.
    TooFewThreads {
        /// The number of threads it started.
        started: usize,
        /// The number of threads of the search.
        wanted: usize,
    },
}

/// A way to get a verdict after all. Front ends say it in terms of their options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Allow more time, or accept proofs that are not confirmed.
    AcceptUnconfirmed,
    /// Search with fewer threads.
    FewerThreads,
}

impl Reason {
    /// What may help, if something does.
    pub fn advice(&self) -> Option<Advice> {
        match self {
            Reason::NotConfirmed => Some(Advice::AcceptUnconfirmed),
            Reason::TooFewThreads { .. } => Some(Advice::FewerThreads),
            _ => None,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Timeout(t) => write!(f, "no answer within {}", seconds(*t)),
            Reason::Memory(bytes) => match bytes >> 20 {
                0 => write!(f, "no answer within {bytes} bytes of memory"),
                mebibytes => write!(f, "no answer within {mebibytes} MiB of memory"),
            },
            Reason::Cancelled => write!(f, "stopped"),
            Reason::BufferBound(bound) => {
                write!(f, "no violation with {}, but that bound was reached", in_words(*bound))
            }
            Reason::UnboundedChoice(r) => {
                write!(f, "`*` has too many values to try them all; no violation with those from -{r} to {r}")
            }
            Reason::Limit(limit, _) => write!(f, "{}", limit.describe()),
            Reason::Unsupported(what, _) => write!(f, "{what}"),
            Reason::Contexts(n, why) => {
                let s = if *n == 1 { "" } else { "s" };
                write!(f, "no violation within {n} context{s}")?;
                match why {
                    Some(why) => write!(f, "; with {}: {why}", n + 1),
                    None => Ok(()),
                }
            }
            Reason::Endless => write!(
                f,
                "no violation so far, and the search cannot end: something grows in a loop that nothing bounds"
            ),
            Reason::NotConfirmed => write!(f, "a proof was found, but there was no time left to check it"),
            Reason::Unconfirmed(why) => write!(f, "a proof was found, but it cannot be confirmed: {why}"),
            Reason::Contradiction(what) => write!(f, "internal contradiction, please report it: {what}"),
            Reason::TooFewThreads { started, wanted } => {
                write!(f, "the system starts only {started} of {wanted} threads")
            }
        }
    }
}

/// Describes a bound on buffers in words.
fn in_words(bound: Bound) -> String {
    match bound {
        Bound::Thread(n) => format!("at most {n} buffered stores per thread"),
        Bound::Cell(bounds) => match bounds.list() {
            [n] => format!("at most {n} buffered stores per thread and variable"),
            _ => "these bounds on the buffered stores to each variable".into(),
        },
    }
}

/// A duration in the format of the command line.
fn seconds(t: Duration) -> String {
    if t.subsec_nanos() == 0 { format!("{} s", t.as_secs()) } else { format!("{:.3} s", t.as_secs_f64()) }
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

/// Numbers of explored executions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executions {
    /// Executions in which every thread has ended or faulted.
    pub complete: u64,
    /// Executions in which some thread waits forever.
    pub blocked: u64,
    /// Executions that were not explored to their end, because they have none or are too long.
    pub cut: u64,
    /// Executions all of whose continuations had been explored: there should be none.
    pub redundant: u64,
    /// Number of events of all executions, common prefixes counted once.
    pub events: u64,
}

/// Statistics for one number of contexts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// The number of contexts.
    pub contexts: u32,
    /// Number of stored states.
    pub states: u64,
    /// Time in seconds.
    pub seconds: f64,
}

/// An attempt of one engine, and why it gave no answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// The engine.
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
