//! A search with abstract buffers: one round of engine `buffers`.

use fencewright_memory::Bound;
use fencewright_program::{Span, Trace};
use fencewright_verdict::{Answer, Limits, Progress, Reason, Task};

use super::abstract_buffer::Abstraction;
use super::code::Code;
use super::search::{self, Decided};
use super::{Options, Proofs, divergence, not_shown, samples, trace, why_incomplete};

/// The values that are tried for an unbounded `*`: within this radius.
const RADIUS: i64 = 2;

/// What a search has found.
pub struct Found {
    /// For each property what the search says: a path to a state that decides it, which need not be an execution; or an answer.
    pub outcomes: Vec<Outcome>,
    /// How many states were stored, how many bytes they take, and how many bytes were in use at most.
    pub states: u64,
    /// See `states`.
    pub state_bytes: u64,
    /// See `states`.
    pub bytes: u64,
    /// What grew, if the search did not end.
    pub growth: Vec<(String, Option<Span>)>,
}

/// What a search says about one property.
pub enum Outcome {
    /// The events of a path that decides it.
    Path(Path),
    /// An answer: definite if no state decides it and all were seen.
    Answer(Answer),
}

/// A path of an abstract machine.
#[derive(Clone, Debug)]
pub struct Path {
    /// Its events, as those of an execution.
    pub trace: Trace,
    /// The value that each flush writes.
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
    // Other reductions know exact buffers only, and what they find is no proof.
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
        // What is not reached may be reached by stores that were left out.
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
