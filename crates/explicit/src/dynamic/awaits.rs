//! Waiting loops collapsed into steps that block.
//!
//! `await x == 1` loads `x` repeatedly until it is 1 (unless the program was read for `deadlock`, where it blocks), so some executions are infinite
//! and exploring them proves nothing. Here such a loop becomes one step `{ load; assume }`, which is enabled when the condition holds. The result is
//! another program with the same locations, registers and memory. Each of its edges stands for a sequence of one or more original edges, except for
//! an edge that is never enabled.
//!
//! An edge is *idle* for a location `head` if it only loads, computes, branches or waits for its own buffer to drain, and writes only registers that
//! are dead at `head`: no property observes them, and the thread overwrites them before it reads them again. The *region* of `head` is the set of
//! locations such that
//! * only idle edges enter them, and these come from `head` or from the region;
//! * the thread can always leave them, along one idle edge without an assumption or along two with complementary assumptions;
//! * no property distinguishes them from `head`.
//!
//! A location of the region is *doomed* if every path from it returns to `head` or stays in doomed locations, along edges that cannot fail. Two
//! transformations are applied:
//! 1. **Remove idle edges from `head` and its region that lead back to `head` or to a doomed location.** This preserves the properties: take an
//!    execution, and remove each sequence of steps in the region that a thread takes between leaving `head` and coming back to it. The removed steps
//!    change nothing but registers that are dead at `head`. So the other steps form an execution, in which the thread is at `head` whenever it was in
//!    the region before, and no property observes the difference. This shorter execution is one of the new program: a waiting thread either loads the
//!    value that it waits for, or does not load at all.
//! 2. **Merge a load with the only remaining path after it**, up to an assumption whose alternative was removed. The steps after the load are local
//!    and the locations before and after them look the same to properties, so they may be taken in one step. If the steps after a load cannot be
//!    taken, the merged step is disabled; this loses only an execution that is stuck. A load that is followed by another load stays as it is: of
//!    `await x + y == 1` only the load of `y` waits. `await x == 1 && y == 1` waits for `x`, and then for `y`.
//!
//! A `cas` in an empty loop waits until the buffer of its thread is empty, and changes nothing if it fails. So its failure is idle, and `while
//! !cas(l, 0, 1) { }` waits until it succeeds.
//!
//! | property | why it is preserved |
//! |---|---|
//! | a formula that must never hold | its values are those in the states of the shorter execution; a formula that distinguishes two locations of a region, or observes a register written there, prevents the transformation |
//! | `assertions` | no edge that may fault is removed (nor an edge that may access an open array out of bounds, which gives no answer), and of a merged step only the first part may fault |
//! | `finally` | in a final state every thread has ended, so no thread is in a region |
//! | `deadlock` | a thread in a waiting loop can move, so a state is a deadlock only if no thread can move *in the original program* ([`Judge`](super::Judge) decides that). A thread is stuck in a region only while another thread holds the lock, so programs with locks are not transformed |

use fencewright_analysis::liveness::LiveRegisters;
use fencewright_analysis::looks::Looks;
use fencewright_analysis::loops::loop_depths;
use fencewright_kit::ThreadBuilder;
use fencewright_kit::accesses::written_register;
use fencewright_program::{
    Action, Edge, EdgeId, Expr, LocationId, Observable, Op, Program, PropertyKind, Thread, ThreadId,
};
use fencewright_verdict::{Limits, Task};

use super::waits::are_opposite;

/// Maximum number of locations in a region; larger loops are left alone.
const LARGEST_REGION: usize = 64;

/// For each thread and edge of a transformed program, the edges of the original program that it stands for; none for an edge that is never enabled.
pub type Origins = Vec<Vec<Vec<EdgeId>>>;

/// A program whose waiting loops are blocking steps.
pub struct Waiting {
    /// The transformed program, which has the locations, registers and memory of the original one.
    pub program: Program,
    /// For each thread and edge of the transformed program, the sequence of original edges that the edge stands for.
    pub origins: Origins,
}

impl Waiting {
    /// Transforms the program of a task; `None` if the program has no waiting loops, if it has locks and the task asks for deadlocks, or if time runs
    /// out.
    pub fn new(task: &Task<'_>, limits: &Limits) -> Option<Self> {
        let edges = || task.program.threads.iter().flat_map(|t| &t.edges);
        let asks_for_deadlocks = task.properties.iter().any(|p| p.kind == PropertyKind::NoDeadlock);
        if asks_for_deadlocks && edges().any(|edge| edge.action == Action::Lock) {
            return None;
        }
        let (mut threads, mut origins, mut found) = (Vec::new(), Origins::new(), false);
        for (id, thread) in task.program.threads() {
            let depths = loop_depths(thread);
            if depths.iter().all(|depth| *depth == 0) {
                threads.push(thread.clone());
                origins.push((0..thread.edges.len() as u32).map(|n| vec![EdgeId(n)]).collect());
                continue;
            }
            let mut heads: Vec<(usize, LocationId)> = Vec::new();
            let mut graph = Graph::new(task, id, limits)?;
            for (n, _) in depths.iter().enumerate().filter(|(_, depth)| **depth > 0) {
                let head = LocationId(n as u32);
                heads.push((graph.region(head).len(), head));
                if n % 64 == 0 && limits.exceeded(0).is_some() {
                    return None;
                }
            }
            // Outer loops, which have larger regions, come first, so that the conditions of an outer loop and its inner loop merge into one step.
            heads.sort_by_key(|(size, head)| (std::cmp::Reverse(*size), *head));
            for (n, (_, head)) in heads.into_iter().enumerate() {
                found |= graph.wait_at(head);
                if n % 64 == 0 && limits.exceeded(0).is_some() {
                    return None;
                }
            }
            let (thread, of) = graph.finish();
            threads.push(thread);
            origins.push(of);
        }
        found.then(|| Waiting { program: Program { threads, ..task.program.clone() }, origins })
    }
}

/// An edge, and the original edges that it stands for.
#[derive(Clone)]
struct Step {
    edge: Edge,
    origin: Vec<EdgeId>,
}

/// The control-flow graph of a thread while it is changed.
struct Graph<'t> {
    program: &'t Program,
    thread: &'t Thread,
    live: LiveRegisters,
    looks: Looks,
    steps: Vec<Step>,
    /// For each location, the indices of the outgoing steps, in order.
    leaving: Vec<Vec<usize>>,
    entering: Vec<Vec<usize>>,
    /// For each location, whether an outgoing step was removed.
    lost: Vec<bool>,
    /// For each step, whether it was removed.
    removed: Vec<bool>,
}

impl<'t> Graph<'t> {
    fn new(task: &Task<'t>, id: ThreadId, limits: &Limits) -> Option<Self> {
        let program = task.program;
        let thread = program.thread(id);
        let size = thread.locations.len();
        let mut looks = Looks::alike(size);
        for property in &task.properties {
            let PropertyKind::Never(formula) = &property.kind else { continue };
            formula.for_each_leaf(&mut |leaf| match leaf {
                Observable::At(of, at) if *of == id => looks.tell_apart(at),
                _ => {}
            });
        }
        let mut graph = Graph {
            program,
            thread,
            live: LiveRegisters::new(task, id, limits).ok()?,
            looks,
            steps: Vec::new(),
            leaving: vec![Vec::new(); size],
            entering: vec![Vec::new(); size],
            lost: vec![false; size],
            removed: vec![false; thread.edges.len()],
        };
        for (n, edge) in thread.edges.iter().enumerate() {
            graph.leaving[edge.from.index()].push(n);
            graph.entering[edge.to.index()].push(n);
            graph.steps.push(Step { edge: edge.clone(), origin: vec![EdgeId(n as u32)] });
        }
        Some(graph)
    }

    fn edges_from(&self, location: LocationId) -> impl Iterator<Item = &Edge> {
        self.leaving[location.index()].iter().map(|&n| &self.steps[n].edge)
    }

    /// Whether an edge may fault, or load beyond the modelled part of an open array, which must be reported too.
    fn may_fail(&self, edge: &Edge) -> bool {
        let is_open =
            |op: &Op| matches!(op, Op::Load(_, a) if self.program.variables[a.variable.index()].open);
        self.program.edge_may_fault(self.thread, edge) || edge.action.ops().iter().any(is_open)
    }

    /// Whether an edge is idle for `head`, as the module head defines it.
    fn is_idle(&self, edge: &Edge, head: LocationId) -> bool {
        let is_dead = |op: &Op| written_register(op).is_none_or(|r| !self.live.is_live(r, head));
        let is_idle = |op: &Op| match op {
            Op::Skip | Op::Assume(_) | Op::Assign(..) | Op::Load(..) => is_dead(op),
            Op::Store(..) | Op::Havoc(..) | Op::Assert(..) => false,
        };
        match &edge.action {
            Action::Op(op) => is_idle(op),
            Action::Atomic { ops, .. } => ops.iter().all(is_idle),
            Action::Fence => true,
            Action::StoreFence | Action::Lock | Action::Unlock => false,
        }
    }

    /// Whether a single edge without a condition or two edges with opposite conditions leave the location, all of them idle for `head`. Then no
    /// condition keeps the thread there.
    fn is_passed(&self, location: LocationId, head: LocationId) -> bool {
        // A location may have very many edges, but one with more than two edges is never passed, so three edges suffice to decide.
        let edges: Vec<&Edge> = self.edges_from(location).take(3).collect();
        let goes_on = match &edges[..] {
            [only] => !only.action.ops().iter().any(|op| matches!(op, Op::Assume(_))),
            [one, other] => match (&one.action, &other.action) {
                (Action::Op(Op::Assume(a)), Action::Op(Op::Assume(b))) => are_opposite(a, b),
                _ => false,
            },
            _ => false,
        };
        goes_on && edges.iter().all(|edge| self.is_idle(edge, head))
    }

    /// The region of `head` as the module head defines it; empty if it has more than `LARGEST_REGION` locations.
    fn region(&self, head: LocationId) -> Vec<LocationId> {
        let targets = |from: LocationId| {
            self.edges_from(from).filter(|edge| self.is_idle(edge, head)).map(|edge| edge.to)
        };
        let mut region: Vec<LocationId> = Vec::new();
        let mut work: Vec<LocationId> = targets(head).collect();
        while let Some(location) = work.pop() {
            let belongs = location != head
                && location != self.thread.entry
                && !region.contains(&location)
                && self.looks.is_alike(location, head)
                && self.is_passed(location, head);
            if belongs {
                region.push(location);
                work.extend(targets(location));
            }
            if region.len() > LARGEST_REGION {
                return Vec::new();
            }
        }
        keep(&mut region, |region, location| {
            let mut entering = self.entering[location.index()].iter().map(|&n| &self.steps[n].edge);
            entering.all(|e| (e.from == head || region.contains(&e.from)) && self.is_idle(e, head))
        });
        region
    }

    /// Turns the waiting loops at `head` into blocking steps. Returns whether there are any.
    fn wait_at(&mut self, head: LocationId) -> bool {
        let region = self.region(head);
        let mut doomed = region.clone();
        keep(&mut doomed, |doomed, location| {
            self.edges_from(location)
                .all(|edge| (edge.to == head || doomed.contains(&edge.to)) && !self.may_fail(edge))
        });
        let places: Vec<LocationId> =
            [head].into_iter().chain(region.iter().copied().filter(|l| !doomed.contains(l))).collect();
        let back: Vec<usize> = places.iter().flat_map(|l| &self.leaving[l.index()]).copied().collect();
        let leads_back = |n: &usize| {
            let edge = &self.steps[*n].edge;
            (edge.to == head || doomed.contains(&edge.to)) && self.is_idle(edge, head) && !self.may_fail(edge)
        };
        let back: Vec<usize> = back.into_iter().filter(leads_back).collect();
        for &n in &back {
            self.lost[self.steps[n].edge.from.index()] = true;
            self.removed[n] = true;
        }
        places.iter().for_each(|l| self.leaving[l.index()].retain(|&n| !self.removed[n]));
        self.tidy(back.iter().map(|&n| self.steps[n].edge.to).collect());
        let mut left = Vec::new();
        for place in places {
            for n in self.leaving[place.index()].clone() {
                if let Some(step) = self.load_and_go(n, &region) {
                    left.push(self.steps[n].edge.to);
                    self.entering[step.edge.to.index()].push(n);
                    self.steps[n] = step;
                }
            }
        }
        self.tidy(left);
        !back.is_empty()
    }

    /// Merges a load with the path that follows it through the region, if only one path remains.
    fn load_and_go(&self, load: usize, region: &[LocationId]) -> Option<Step> {
        let mut step = self.steps[load].clone();
        let Action::Op(op @ Op::Load(..)) = &step.edge.action else { return None };
        let mut ops = vec![op.clone()];
        let mut passed = false;
        while !passed {
            let at = step.edge.to;
            let [next] = self.leaving[at.index()][..] else { return None };
            let Step { edge, origin } = &self.steps[next];
            let Action::Op(op) = &edge.action else { return None };
            passed = match op {
                Op::Assume(_) => self.lost[at.index()],
                Op::Skip | Op::Assign(..) if ops.len() <= region.len() => false,
                _ => return None,
            };
            if !region.contains(&at) || self.may_fail(edge) || (matches!(op, Op::Assume(_)) && !passed) {
                return None;
            }
            ops.push(op.clone());
            step.origin.extend(origin);
            step.edge.to = edge.to;
        }
        step.edge.action = Action::Atomic { ops, drains: false };
        Some(step)
    }

    /// Updates the incoming steps of some locations after removals, and removes the outgoing steps of locations that no step enters any more.
    fn tidy(&mut self, mut locations: Vec<LocationId>) {
        while !locations.is_empty() {
            locations.sort_unstable();
            locations.dedup();
            let mut next = Vec::new();
            for location in locations {
                let enters = |&n: &usize| !self.removed[n] && self.steps[n].edge.to == location;
                self.entering[location.index()].retain(enters);
                if self.entering[location.index()].is_empty() && location != self.thread.entry {
                    for n in std::mem::take(&mut self.leaving[location.index()]) {
                        self.removed[n] = true;
                        next.push(self.steps[n].edge.to);
                    }
                }
            }
            locations = next;
        }
    }

    /// The transformed thread, and the origins of its edges.
    fn finish(self) -> (Thread, Vec<Vec<EdgeId>>) {
        let mut builder: ThreadBuilder<Vec<EdgeId>> = ThreadBuilder::like(self.thread, |_| ());
        for (n, leaving) in self.leaving.iter().enumerate() {
            let location = LocationId(n as u32);
            for &n in leaving {
                let Step { edge, origin } = self.steps[n].clone();
                builder.edge(edge.from, edge.to, edge.action, edge.span, origin);
            }
            // If all edges of a location were removed, a thread waits there forever but has not ended. A blocked edge keeps the location from
            // counting as an end.
            if let Some((_, edge)) = self.thread.edges_from(location).next().filter(|_| leaving.is_empty()) {
                builder.op(location, location, Op::Assume(Expr::Const(0)), edge.span, Vec::new());
            }
        }
        let built = builder.finish(self.thread.entry, self.thread.fault);
        (built.thread, built.origins)
    }
}

/// Removes elements until every remaining one satisfies `belongs` with respect to the set: the greatest fixpoint.
fn keep(set: &mut Vec<LocationId>, belongs: impl Fn(&[LocationId], LocationId) -> bool) {
    while let Some(n) = set.iter().position(|&location| !belongs(set, location)) {
        set.remove(n);
    }
}
