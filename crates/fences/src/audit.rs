//! Which fences already in a program are needed: each is taken out alone, and the rest is verified again.

use std::collections::BTreeMap;

use fencewright_engines::{Limits, Progress};
use fencewright_program::{Action, EdgeId, Op, Program, Property, Replayed, Span, ThreadId, Trace};

use crate::candidate::Kind;
use crate::goal::{Examined, Goal, Violation};
use crate::synthesis::named;

/// What an audit says about a fence.
#[derive(Debug)]
pub enum Need {
    /// Without it there is this violation, replayed, of this property.
    Needed(Box<Replayed>, Option<Property>),
    /// The goal is met without it.
    Superfluous,
    /// Nobody knows, and why.
    Unknown(String),
}

/// A fence of the program.
#[derive(Debug)]
pub struct Audited {
    /// The statement.
    pub span: Span,
    /// What it is.
    pub kind: Kind,
    /// The threads that have it.
    pub threads: Vec<ThreadId>,
    /// Whether it is needed.
    pub need: Need,
}

/// Examines every fence of a program; in words why that makes no sense, if the goal is not met with all of them.
pub fn audit(
    program: &Program,
    goal: &dyn Goal,
    limits: &Limits,
    progress: &Progress,
) -> Result<Vec<Audited>, String> {
    match goal.examine(program, limits, progress) {
        Examined::Met(_) => {}
        Examined::Violated(_) => {
            return Err(format!("{} does not hold with all the fences there are", goal.name()));
        }
        Examined::Unknown(reason) => return Err(reason),
    }
    let mut fences: BTreeMap<Span, Vec<(ThreadId, EdgeId)>> = BTreeMap::new();
    for (t, thread) in program.threads() {
        for (e, edge) in thread.edges.iter().enumerate() {
            if matches!(edge.action, Action::Fence | Action::StoreFence) {
                fences.entry(edge.span).or_default().push((t, EdgeId(e as u32)));
            }
        }
    }
    let mut audited = Vec::new();
    for (span, edges) in fences {
        progress.say(format!("fence {}", audited.len() + 1));
        let stores_only =
            |&(t, e): &(ThreadId, EdgeId)| program.thread(t).edge(e).action == Action::StoreFence;
        let kind = if edges.iter().any(stores_only) { Kind::StoreStore } else { Kind::Full };
        // There may be thousands of fences, and taking one out is a copy of the program.
        let need = match limits.exceeded(0) {
            Some(reason) => Need::Unknown(reason.to_string()),
            None => need(program, &edges, goal, limits, progress),
        };
        let mut threads: Vec<ThreadId> = edges.iter().map(|(t, _)| *t).collect();
        threads.dedup();
        audited.push(Audited { span, kind, threads, need });
    }
    Ok(audited)
}

/// Whether the goal is met without the fences at these edges.
fn need(
    program: &Program,
    fences: &[(ThreadId, EdgeId)],
    goal: &dyn Goal,
    limits: &Limits,
    progress: &Progress,
) -> Need {
    let mut without = program.clone();
    for &(t, e) in fences {
        without.threads[t.index()].edges[e.index()].action = Action::Op(Op::Skip);
    }
    match goal.examine(&without, limits, progress) {
        Examined::Met(_) => Need::Superfluous,
        Examined::Unknown(reason) => Need::Unknown(reason),
        Examined::Violated(violation) => shown(&without, goal, &violation),
    }
}

fn shown(program: &Program, goal: &dyn Goal, Violation { trace, property }: &Violation) -> Need {
    let property = property.as_ref().map(|name| named(program, name));
    let replay = |trace: &Trace| match &property {
        Some(property) => trace.replay_for(program, goal.model(), property).ok(),
        None => trace.replay(program, goal.model()).ok(),
    };
    match replay(trace) {
        Some(replayed) => Need::Needed(Box::new(replayed), property),
        None => {
            Need::Unknown("internal contradiction, please report it: an execution does not replay".into())
        }
    }
}
