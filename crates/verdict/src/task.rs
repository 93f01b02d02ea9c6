//! What an engine is asked, what it may use, and what it answers.

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

/// A question: which of these properties hold of this program under this memory model?
#[derive(Clone, Debug)]
pub struct Task<'p> {
    /// The program.
    pub program: &'p Program,
    /// The memory model.
    pub model: MemoryModel,
    /// The properties, all answered by one run.
    pub properties: Vec<Property>,
    /// What to report about final states; empty for most questions.
    pub observed: Vec<Observable>,
    /// Whether one violation is enough: then the other properties may stay open, and final states unseen.
    pub first_violation: bool,
    /// Receives each answer at once, if there is a listener. The field is not public, so that a task made from this one does not by
    /// accident inherit a listener that numbers properties differently.
    listener: Option<&'p dyn Listener>,
}

impl<'p> Task<'p> {
    /// A question about some properties.
    pub fn new(program: &'p Program, model: MemoryModel, properties: Vec<Property>) -> Self {
        Task { program, model, properties, observed: Vec::new(), first_violation: false, listener: None }
    }

    /// The same question, with a listener that receives each answer at once.
    pub fn heard_by<'a>(&self, listener: &'a dyn Listener) -> Task<'a>
    where
        'p: 'a,
    {
        Task { listener: Some(listener), ..self.clone() }
    }

    /// The same question about another program with other properties under another memory model, without a listener.
    pub fn about<'a>(&self, program: &'a Program, model: MemoryModel, properties: Vec<Property>) -> Task<'a> {
        let observed = self.observed.clone();
        Task { program, model, properties, observed, first_violation: self.first_violation, listener: None }
    }

    /// Whether there is a listener.
    #[inline]
    pub fn is_heard(&self) -> bool {
        self.listener.is_some()
    }

    /// Tells the listener the answer to the property with this number. An answer that carries its evidence, a trace or an invariant,
    /// counts as soon as that is confirmed; one without waits for a better one until the end of the run.
    pub fn tell(&self, property: usize, early: Early) {
        if let Some(listener) = self.listener {
            listener.hear(property, early);
        }
    }

    /// Whether somebody examines what is told and then settles the property: then an answer alone is not yet the end of it.
    #[inline]
    pub fn is_judged(&self) -> bool {
        self.listener.is_some_and(|listener| listener.judges())
    }

    /// Whether the property with this number has a verdict already, so that it need not be examined any more.
    #[inline]
    pub fn is_settled(&self, property: usize) -> bool {
        self.listener.is_some_and(|listener| listener.is_settled(property))
    }
}

/// Receives the answers of a run before it ends, and knows which properties have their verdict.
pub trait Listener: Sync + fmt::Debug {
    /// Receives the answer to the property with this number.
    fn hear(&self, property: usize, early: Early);
    /// Whether this property has its verdict.
    fn is_settled(&self, property: usize) -> bool;
    /// Whether it examines what it hears, and settles a property that is decided by it.
    fn judges(&self) -> bool;
}

/// An answer that comes before the end of a run.
#[derive(Clone, Debug)]
pub struct Early {
    /// The answer.
    pub answer: Answer,
    /// Who gives it.
    pub author: Author,
}

/// The engine that gives an answer, and what its own run took until then.
#[derive(Clone, Debug)]
pub struct Author {
    /// The engine.
    pub engine: EngineName,
    /// Its own figures.
    pub work: Work,
}

/// What the run of one engine took. Of several engines that work on the same question, figures are not put together as if they were those of
/// one: a state of one is not a state of another.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// States stored.
    pub states: u64,
    /// Bytes used at most.
    pub bytes: u64,
    /// What not every engine counts.
    pub counts: Counts,
}

/// What an engine counts beside states and bytes.
#[derive(Clone, Debug, Default)]
pub enum Counts {
    /// Nothing.
    #[default]
    Nothing,
    /// Of engines that store single states.
    States {
        /// Bytes of the stored states themselves.
        state_bytes: u64,
        /// Steps taken from state to state, if all of them were counted.
        transitions: Option<u64>,
        /// The names of threads that were exchanged: of states that differ in nothing else, one was stored.
        symmetry: Vec<Vec<String>>,
    },
    /// Of engines that explore executions one by one.
    Executions(Executions),
    /// Of engines that allow more and more contexts: what each number of them took.
    Rounds(Vec<Round>),
    /// Of engines that look for predicates: how many they have found.
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

    /// Steps taken from state to state, if the engine counts them.
    pub fn transitions(&self) -> Option<u64> {
        match self.counts {
            Counts::States { transitions, .. } => transitions,
            _ => None,
        }
    }

    /// The names of threads that were exchanged.
    pub fn symmetry(&self) -> &[Vec<String>] {
        match &self.counts {
            Counts::States { symmetry, .. } => symmetry,
            _ => &[],
        }
    }

    /// How many executions were explored, if they were explored one by one.
    pub fn executions(&self) -> Option<Executions> {
        match self.counts {
            Counts::Executions(executions) => Some(executions),
            _ => None,
        }
    }

    /// What each number of contexts took; none if the engine does not count contexts.
    pub fn rounds(&self) -> &[Round] {
        match &self.counts {
            Counts::Rounds(rounds) => rounds,
            _ => &[],
        }
    }

    /// How many predicates were found; 0 if the engine looks for none.
    pub fn predicates(&self) -> usize {
        match self.counts {
            Counts::Predicates(predicates) => predicates,
            _ => 0,
        }
    }

    /// Notes what one more number of contexts took.
    pub fn add_round(&mut self, round: Round) {
        match &mut self.counts {
            Counts::Rounds(rounds) => rounds.push(round),
            counts => *counts = Counts::Rounds(vec![round]),
        }
    }

    /// Forgets how many steps were taken, because some were not counted.
    fn forget_transitions(&mut self) {
        if let Counts::States { transitions, .. } = &mut self.counts {
            *transitions = None;
        }
    }
}

impl Author {
    /// With what the same engine took for another part of the same answer, if it counts the same things there.
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

/// Some of the properties of a task, as a task of their own. Its answers go to the listener of the whole task.
#[derive(Debug)]
pub struct Part<'a> {
    task: &'a Task<'a>,
    numbers: &'a [usize],
    /// States that the same engine stored before this part began.
    states: u64,
}

impl<'a> Part<'a> {
    /// The properties with these numbers; the engine that asks about them has stored `states` before.
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
        // What was taken before this part began is not known step by step.
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

/// In which order states are expanded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Level by level: traces are as short as possible.
    #[default]
    BreadthFirst,
    /// The newest state first: less memory for the frontier.
    DepthFirst,
}

/// The domains that one can ask for by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DomainName {
    /// Difference bounds, clipped at a constant.
    Zones,
    /// Conjunctions of predicates from interpolants.
    Predicates,
    /// How values compare.
    Order,
    /// One value for each cell.
    Concrete,
}

impl DomainName {
    /// As the command line and all output write it.
    pub fn as_str(self) -> &'static str {
        match self {
            DomainName::Zones => "zones",
            DomainName::Predicates => "predicates",
            DomainName::Order => "order",
            DomainName::Concrete => "concrete",
        }
    }
}

/// How far a run has come: written by the engine, read by whoever shows it.
#[derive(Debug, Default)]
pub struct Progress {
    /// States stored.
    pub states: AtomicU64,
    /// States not yet expanded.
    pub frontier: AtomicU64,
    /// Bytes used.
    pub bytes: AtomicU64,
    /// What an engine that works in rounds is doing, in words; empty for others.
    pub note: Mutex<String>,
}

impl Progress {
    /// Says what the engine is doing.
    pub fn say(&self, note: String) {
        *self.note.lock().unwrap_or_else(PoisonError::into_inner) = note;
    }

    /// What the engine is doing.
    pub fn said(&self) -> String {
        self.note.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Why there is no verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The time was up.
    Timeout(Duration),
    /// The memory was used up.
    Memory(u64),
    /// Somebody asked to stop.
    Cancelled,
    /// A buffer reached the bound of `--buffer`.
    BufferBound(Bound),
    /// A `*` without a range (or with a very large one) was tried with some values only.
    UnboundedChoice(i64),
    /// A value or address that explicit computation cannot hold.
    Limit(Limit, Span),
    /// The engine does not support something: what, in words, and where in the source, if there is a place.
    Unsupported(String, Option<Span>),
    /// There is no violation within this many contexts. The reason says why no more were tried; `None` if no more were asked for.
    Contexts(u32, Option<Box<Reason>>),
    /// There is no violation among the states seen so far, and something grows in a loop that nothing bounds: the rest of the memory is
    /// left to other engines.
    Endless,
    /// There is a proof, but no time was left to check it.
    NotConfirmed,
    /// There is a proof, but its checker can tell neither that it is right nor that it is wrong.
    Unconfirmed(Undecided),
    /// Two independent computations disagree: a defect of the tool.
    Contradiction(String),
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
            Reason::NotConfirmed => write!(
                f,
                "a proof was found, but there was no time left to check it; allow more, or accept it with --no-certify"
            ),
            Reason::Unconfirmed(why) => write!(f, "a proof was found, but it cannot be confirmed: {why}"),
            Reason::Contradiction(what) => write!(f, "internal contradiction, please report it: {what}"),
        }
    }
}

/// A bound on buffers in words.
fn in_words(bound: Bound) -> String {
    match bound {
        Bound::Thread(n) => format!("at most {n} buffered stores per thread"),
        Bound::Cell(bounds) => match bounds.list() {
            [n] => format!("at most {n} buffered stores per thread and variable"),
            _ => "these bounds on the buffered stores to each variable".into(),
        },
    }
}

/// A duration as people write it on the command line.
fn seconds(t: Duration) -> String {
    if t.subsec_nanos() == 0 { format!("{} s", t.as_secs()) } else { format!("{:.3} s", t.as_secs_f64()) }
}

/// What an engine says about one property, before it is checked.
#[derive(Clone, Debug)]
pub enum Answer {
    /// It holds; for `finally exists` with the execution that shows it.
    Holds(Option<Trace>),
    /// It holds, and this invariant shows it.
    Proved(Arc<Invariant>),
    /// It holds, and this certificate shows it: by a set of states, or by proofs about other programs than the one that was asked about. Or it
    /// does not hold, if that is what the certificate claims.
    Certified(Arc<Certificate>),
    /// It does not hold; with the execution that shows it, except for `finally exists`.
    Violated(Option<Trace>),
    /// No verdict.
    Unknown(Reason),
    /// It was not examined to the end: another property was violated and that was enough, or the property has its verdict already.
    Open,
}

impl Answer {
    /// Whether the property holds, if the answer says so.
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

    /// Whether it comes with what shows it.
    pub fn has_evidence(&self) -> bool {
        self.is_definite() && !matches!(self, Answer::Holds(None) | Answer::Violated(None))
    }
}

/// An inductive invariant: for each reachable control state of a machine what holds there, a disjunction of conjunctions of constraints.
#[derive(Clone, Debug)]
pub struct Invariant {
    /// The machine.
    pub buffers: Buffers,
    /// The names of the properties it shows.
    pub properties: Vec<String>,
    /// Classes of threads that may be exchanged: see [`fencewright_certify::InductiveInvariant`].
    pub symmetry: Vec<Vec<u32>>,
    /// The reachable control states and their invariants.
    pub states: Vec<(Control, Vec<Cube>)>,
}

/// How many executions were explored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executions {
    /// In which every thread has ended or faulted.
    pub complete: u64,
    /// In which some thread waits forever.
    pub blocked: u64,
    /// That were not explored to their end, because they do not have one or are too long.
    pub cut: u64,
    /// All of whose continuations were known: there should be none.
    pub redundant: u64,
    /// Events, all executions together, common beginnings counted once.
    pub events: u64,
}

/// What exploring all executions with so many contexts took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// How many contexts.
    pub contexts: u32,
    /// How many states were stored.
    pub states: u64,
    /// How long it took.
    pub seconds: f64,
}

/// What one engine tried, and why it has no answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// The engine.
    pub engine: EngineName,
    /// How it represents integers, if there is a choice.
    pub domain: Option<DomainName>,
    /// The memory model that it was asked about.
    pub model: MemoryModel,
    /// The names of the threads that it was asked about, if others were left out.
    pub threads: Vec<String>,
    /// How many states it stored.
    pub states: u64,
    /// How long it ran, turns of others included.
    pub seconds: f64,
    /// Why it has no answer, and where it got stuck.
    pub reason: String,
}

impl Tried {
    /// Who tried it on what: of two with the same, the later one counts.
    pub fn who(&self) -> (EngineName, Option<DomainName>, MemoryModel, &[String]) {
        (self.engine, self.domain, self.model, &self.threads)
    }
}

/// Which of the reachable states a search has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Seen {
    /// All of them.
    All,
    /// Those that were found before everything that was asked was decided.
    UntilDecided,
    /// Not all of them, for this reason.
    Until(Reason),
    /// None: the engine does not look at single states.
    #[default]
    Nothing,
}

/// What an engine returns. It proves nothing: its answers become verdicts at the door ([`check`](mod@crate::check)).
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// One answer for each property of the task.
    pub answers: Vec<Answer>,
    /// For each answer who gave it, if several engines work together.
    pub authors: Vec<Author>,
    /// What the run took; where several engines work together, the states of all and the bytes of the one that used most.
    pub work: Work,
    /// Which of the reachable states were seen.
    pub seen: Seen,
    /// The values of [`Task::observed`] in the final states that were seen, sorted.
    pub finals: Vec<Vec<i64>>,
    /// What grew without end when there was no verdict: one sentence each, with the place it speaks of.
    pub growth: Vec<(String, Option<Span>)>,
    /// For each property without an answer what was tried, if several engines work together.
    pub tried: Vec<Vec<Tried>>,
}

/// Who gives answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineName {
    /// The engine that chooses and combines others.
    Auto,
    /// All states, one by one.
    Explicit,
    /// Abstraction, refined by counterexamples.
    Cegar,
    /// TSO by way of SC.
    Lazy,
    /// Executions with few contexts.
    Contexts,
    /// Buffers that forget.
    Buffers,
    /// Proofs under SC, extrapolated.
    Extrapolate,
    /// The analysis of robustness, where there is nothing for an engine to do.
    Robust,
}

impl EngineName {
    /// As the command line and all output write it.
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

/// What an engine is: what it is made of, and which options mean something to it.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// In one line.
    pub summary: &'static str,
    /// The memory models that it answers for.
    pub models: &'static [MemoryModel],
    /// The machines it searches: how buffers are represented.
    pub machines: &'static [&'static str],
    /// The domains it knows: how integers are represented.
    pub domains: &'static [&'static str],
    /// The options of `check` that mean something to it and not to every engine.
    pub options: &'static [&'static str],
}

/// A way to answer questions.
pub trait Engine: Sync {
    /// Its name.
    fn name(&self) -> EngineName;
    /// What it is, for people who choose one.
    fn about(&self) -> About;
    /// Answers a question.
    fn run(&self, task: &Task<'_>, limits: &Limits, progress: &Progress) -> Report;
}
