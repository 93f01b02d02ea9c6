//! Audits the fences that a program already has. Each fence is removed alone, and the remaining program is verified: if it meets the goal, the fence
//! is superfluous. The superfluous fences are then removed one after another; a fence that is needed once earlier ones are gone is put back.

use std::collections::BTreeMap;

use fencewright_engines::{Limits, Progress};
use fencewright_lang::places::{Place, Placed, Side};
use fencewright_program::{Action, EdgeId, Op, Program, Property, Span, ThreadId};

use crate::candidate::Kind;
use crate::fenced::Fenced;
use crate::goal::{Broken, Examined, Goal, Violation, named};
use crate::synthesis::Because;

/// The result of the audit for one fence.
#[derive(Debug)]
pub enum Need {
    /// Without the fence, this violation is possible.
    Needed(Box<Because>),
    /// Without the fence, no execution satisfies this property (`finally exists`).
    NeededFor(Box<Property>),
    /// The program meets the goal without the fence. All superfluous fences with `together` can be removed at once. If one of the others is removed
    /// as well, the goal is violated or could not be verified.
    Superfluous {
        /// Whether the fence is among those that can be removed at once.
        together: bool,
    },
    /// Undecided, with the reason.
    Unknown(String),
}

/// A fence of the program, with the result of its audit.
#[derive(Debug)]
pub struct Audited {
    /// The span of the fence statement in the source.
    pub span: Span,
    /// The kind of the fence: full or store-store.
    pub kind: Kind,
    /// The threads that execute the fence.
    pub threads: Vec<ThreadId>,
    /// Whether the fence is needed, with the evidence.
    pub need: Need,
}

/// The reason why there is no audit: the goal is violated or undecided even with all existing fences.
#[derive(Debug)]
pub struct Unmet {
    /// The reason as a sentence, for the user.
    pub reason: String,
    /// The violated property; `None` if instead a bound on buffers or the goal as a whole is violated, or if the goal is undecided.
    pub property: Option<Property>,
}

/// The control-flow edges that one fence statement has become, in all threads that execute it.
type Edges = Vec<(ThreadId, EdgeId)>;

/// Audits every fence of a program.
pub fn audit(
    program: &Program,
    goal: &dyn Goal,
    limits: &Limits,
    progress: &Progress,
) -> Result<Vec<Audited>, Unmet> {
    let unmet = |broken: Broken| {
        let what = match &broken {
            Broken::Bound(_) => "a buffer overflows".into(),
            Broken::Property(name) => format!("`{name}` does not hold"),
            Broken::Goal => format!("{} does not hold", goal.name()),
        };
        let property = broken.property(program);
        Unmet { reason: format!("{what} with all the fences there are"), property }
    };
    match goal.examine(program, limits, progress) {
        Examined::Met(_) => {}
        Examined::Violated(violation) => return Err(unmet(violation.broken)),
        Examined::Lost(property) => return Err(unmet(Broken::Property(property))),
        Examined::Unknown(reason) => return Err(Unmet { reason, property: None }),
    }
    let mut fences: BTreeMap<Span, Edges> = BTreeMap::new();
    for (t, thread) in program.threads() {
        for (e, edge) in thread.edges.iter().enumerate() {
            if matches!(edge.action, Action::Fence | Action::StoreFence) {
                fences.entry(edge.span.text()).or_default().push((t, EdgeId(e as u32)));
            }
        }
    }
    let fences: Vec<(Span, Edges)> = fences.into_iter().collect();
    let examine = |edges: &[&Edges]| {
        // There may be thousands of fences, and the program is copied for each removal, so the limits are checked here too.
        if let Some(reason) = limits.exceeded(0) {
            return Need::Unknown(reason.to_string());
        }
        let program = without(program, edges);
        match goal.examine(&program, limits, progress) {
            Examined::Met(_) => Need::Superfluous { together: true },
            Examined::Unknown(reason) => Need::Unknown(reason),
            Examined::Lost(property) => Need::NeededFor(Box::new(named(&program, &property))),
            Examined::Violated(violation) => shown(program, goal, violation),
        }
    };
    let mut audited = Vec::new();
    for (span, edges) in &fences {
        progress.say(format!("fence {}", audited.len() + 1));
        let stores_only =
            |&(t, e): &(ThreadId, EdgeId)| program.thread(t).edge(e).action == Action::StoreFence;
        let kind = if edges.iter().any(stores_only) { Kind::StoreStore } else { Kind::Full };
        let mut threads: Vec<ThreadId> = edges.iter().map(|(t, _)| *t).collect();
        threads.dedup();
        audited.push(Audited { span: *span, kind, threads, need: examine(&[edges]) });
    }
    let superfluous: Vec<usize> =
        (0..audited.len()).filter(|&n| matches!(audited[n].need, Need::Superfluous { .. })).collect();
    let all: Vec<&Edges> = superfluous.iter().map(|&n| &fences[n].1).collect();
    if all.len() > 1 && !matches!(examine(&all), Need::Superfluous { .. }) {
        let mut gone: Vec<&Edges> = Vec::new();
        for n in superfluous {
            gone.push(&fences[n].1);
            let together = gone.len() == 1 || matches!(examine(&gone), Need::Superfluous { .. });
            audited[n].need = Need::Superfluous { together };
            if !together {
                gone.pop();
            }
        }
    }
    Ok(audited)
}

/// The program without some fences. The locations before and after a removed fence are merged.
fn without(program: &Program, fences: &[&Edges]) -> Program {
    let mut program = program.clone();
    let mut places = Vec::new();
    for &edges in fences {
        for &(t, e) in edges {
            program.threads[t.index()].edges[e.index()].action = Action::Op(Op::Skip);
        }
        let edges = edges.clone();
        let statement = Span::default();
        places.push(Place {
            offset: 0,
            side: Side::Before,
            statement,
            label: None,
            bare: false,
            uses: 0,
            edges,
        });
    }
    Fenced::new(&Placed { program, places, ..Placed::default() }, &[]).program
}

fn shown(program: Program, goal: &dyn Goal, Violation { trace, broken }: Violation) -> Need {
    match broken.replay(&program, goal.model(), &trace) {
        Some(replayed) => Need::Needed(Box::new(Because::new(program, replayed, &broken))),
        None => {
            Need::Unknown("internal contradiction, please report it: an execution does not replay".into())
        }
    }
}
