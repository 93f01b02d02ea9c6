//! One round of engine `buffers`: a search with one abstraction of store buffers.

use fencewright_memory::Bound;
use fencewright_program::{Span, Trace};
use fencewright_verdict::{Answer, Limits, Progress, Reason, Task};

use super::abstract_buffer::Abstraction;
use super::code::Code;
use super::search::{self, Decided};
use super::{Options, Proofs, divergence, not_shown, samples, trace, why_incomplete};

/// The samples for an unbounded `*` are all values of at most this absolute value, and the values near constants of the program.
const RADIUS: i64 = 2;

/// The result of a search with one abstraction.
pub struct Found {
    /// For each property, an abstract path (possibly spurious) to a state that decides the property, or an answer.
    pub outcomes: Vec<Outcome>,
    /// The number of stored states of the abstract machine.
    pub states: u64,
    /// The part of `bytes` that the stored states take at the end of the search, including predecessors and hash tables.
    pub state_bytes: u64,
    /// Peak memory use of the search, in bytes.
    pub bytes: u64,
    /// If the search did not terminate, a sentence for each buffer or value that kept growing, with the source position of the store or assignment
    /// responsible, if it is known.
    pub growth: Vec<(String, Option<Span>)>,
}

/// The result of a search for one property.
pub enum Outcome {
    /// An abstract path to a state that decides the property.
    Path(Path),
    /// No such path was found; the answer is definite if all states were explored. Or a state was found but the path to it was not reconstructed;
    /// then the answer is `unknown`.
    Answer(Answer),
}

/// A path of an abstract machine from an initial state.
#[derive(Clone, Debug)]
pub struct Path {
    /// The events of the path, in the form of a trace; they need not form an execution of the program.
    pub trace: Trace,
    /// For each flush of the trace, the value it writes.
    pub flushed: Vec<i64>,
}

/// Searches with abstract buffers for states that decide the properties of a task.
pub fn run(
    task: &Task<'_>,
    options: &Options,
    abstraction: Abstraction,
    limits: &Limits,
    progress: &Progress,
) -> Result<Found, Reason> {
    // Reductions based on summaries support exact buffers only.
    let options = &Options { reduction: options.reduction.without_summaries(), ..options.clone() };
    let code = Code::new(task, options, Some(abstraction), limits)?;
    let samples = samples(task.program, RADIUS);
    let mut paths: Vec<Option<Result<Path, Reason>>> = vec![None; task.properties.len()];
    let mut on_decided = |decided: &Decided<'_>| {
        let path = trace::path(task, &code, decided, &samples, None, &limits.finishing());
        let lost = || Err(Reason::Contradiction("a stored state cannot be reached again".into()));
        paths[decided.property] = Some(path.and_then(|path| path.map_or_else(lost, Ok)));
    };
    let known = vec![false; task.properties.len()];
    let found = search::search(task, &code, options, &samples, &known, limits, progress, &mut on_decided)?;
    let bytes = found.bytes;
    let states = found.stores.iter().map(|s| s.len() as u64).sum();
    let state_bytes = found.stores.iter().map(|s| s.bytes() as u64).sum();
    let incomplete = match why_incomplete(&found, options, RADIUS) {
        // Stores may have been left out, so states that were not reached may be reachable.
        None if abstraction.cut => Some(Reason::BufferBound(Bound::Thread(abstraction.many))),
        reason => reason,
    };
    let growth = match &found.stopped {
        Some(_) => divergence::explain(task.program, &code, &found.sizes),
        None => Vec::new(),
    };
    let decided: Vec<Option<Answer>> = paths.iter().map(|path| path.as_ref().map(|_| Answer::Open)).collect();
    let proofs = match &incomplete {
        None => Proofs::new(task, &code, &decided, found, limits),
        Some(_) => Proofs::default(),
    };
    let outcome = |(n, path): (usize, Option<Result<Path, Reason>>)| match path {
        Some(Ok(path)) => Outcome::Path(path),
        Some(Err(reason)) => Outcome::Answer(Answer::Unknown(reason)),
        None => Outcome::Answer(not_shown(task, n, &incomplete, &proofs)),
    };
    let outcomes = paths.into_iter().enumerate().map(outcome).collect();
    Ok(Found { outcomes, states, state_bytes, bytes, growth })
}
