//! The reasons why a property has no verdict.

use std::fmt;
use std::time::Duration;

use fencewright_certify::Undecided;
use fencewright_memory::Bound;
use fencewright_program::Span;
use fencewright_program::reference::Limit;

/// The reason why a property has no verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The time limit, which is given here, was reached.
    Timeout(Duration),
    /// The memory limit, given here in bytes, was reached; or a search has more states than it can number, with this memory use.
    Memory(u64),
    /// The run was cancelled, by the user or because its answer was not needed any more.
    Cancelled,
    /// A buffer reached the bound given by the user.
    BufferBound(Bound),
    /// Only samples were tried for a `*`, because it has no range or a very large one: the values up to this absolute value, and those near constants
    /// of the program.
    UnboundedChoice(i64),
    /// A value that does not fit 64 bits, or an access outside the modelled part of an open array, at this place in the source.
    Limit(Limit, Span),
    /// The engine does not support some construct: a description, and the place in the source, if there is one.
    Unsupported(String, Option<Span>),
    /// There is no violation within this many contexts. The inner reason says why executions with more contexts were not searched; `None` if this is
    /// the maximum number of contexts.
    Contexts(u32, Option<Box<Reason>>),
    /// The engine stopped early: it had found no violation, and a buffer or value grew in a loop that does not visibly bound it. The rest of the
    /// memory is left to other engines.
    Endless,
    /// There is a proof or an execution, but no time was left to confirm it.
    NotConfirmed,
    /// There is a proof, but the checker could not decide whether it is valid.
    Unconfirmed(Undecided),
    /// Two independent computations disagree: a defect of the tool.
    Contradiction(String),
    /// The system could not start all threads of a search.
    TooFewThreads {
        /// The number of threads that the system started.
        started: usize,
        /// The number of threads that the search needs.
        wanted: usize,
    },
}

/// What the user can do to obtain a verdict. Front ends describe it in terms of their options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Allow more time, or accept proofs that are not confirmed.
    AcceptUnconfirmed,
    /// Search with fewer threads.
    FewerThreads,
}

impl Reason {
    /// What the user can do to obtain a verdict, if any advice is known.
    pub fn advice(&self) -> Option<Advice> {
        match self {
            Reason::NotConfirmed => Some(Advice::AcceptUnconfirmed),
            Reason::TooFewThreads { .. } => Some(Advice::FewerThreads),
            Reason::Contexts(_, Some(why)) => why.advice(),
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
            Reason::NotConfirmed => {
                write!(f, "a proof was found, but there was no time left to check it")
            }
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
