//! A program with fences inserted, and the translation between executions with and without empty steps.
//!
//! Clauses are about the *marked* program, which has an empty step at every place ([`Placed`]). For verification, the empty steps at unused places
//! are removed, so that the engines do not explore them; those that stand for steps of the source stay unless a fence replaces them, and each cycle
//! keeps one. An execution of the smaller program becomes an execution of the marked program by reinserting each empty step as late as possible: just
//! before the next step of its thread.

use std::collections::{BTreeSet, HashMap};
use std::mem::discriminant;

use fencewright_kit::formulas::{relocate, relocated};
use fencewright_kit::{Built, ThreadBuilder};
use fencewright_lang::places::Placed;
use fencewright_program::{
    Action, EdgeId, Event, EventKind, Formula, LocationId, Op, Program, Property, Thread, ThreadId, Trace,
};

use crate::candidate::{Candidate, Kind};

/// A program with fences inserted.
pub struct Fenced {
    /// The program with the fences, and with an empty step at every unused place.
    pub marked: Program,
    /// The program with the fences and without the empty steps at unused places.
    pub program: Program,
    /// For each thread and edge of `program`, the corresponding edge of `marked`.
    edges: Vec<Vec<EdgeId>>,
    /// For each thread and location of `marked`, the removed empty step that leaves it.
    removed: Vec<Vec<Option<EdgeId>>>,
}

impl Fenced {
    /// Inserts the chosen candidates into a program.
    pub fn new(placed: &Placed, chosen: &[&Candidate]) -> Self {
        let mut marked = placed.program.clone();
        let mut unused: BTreeSet<(ThreadId, EdgeId)> =
            placed.places.iter().flat_map(|p| p.edges.iter().copied()).collect();
        // Full fences are inserted last, so that at a place with both kinds the full fence replaces the store-store fence, which is redundant there.
        let mut chosen = chosen.to_vec();
        chosen.sort_by_key(|candidate| candidate.kind != Kind::StoreStore);
        for candidate in chosen {
            for &(thread, edge) in &candidate.place.edges {
                let action = &mut marked.threads[thread.index()].edges[edge.index()].action;
                *action = match (candidate.kind, &*action) {
                    (Kind::Full, _) => Action::Fence,
                    (Kind::StoreStore, _) => Action::StoreFence,
                    (Kind::Swap, Action::Op(store @ Op::Store(..))) => {
                        Action::Atomic { ops: vec![store.clone()], drains: true }
                    }
                    (Kind::Swap, other) => other.clone(),
                };
                unused.remove(&(thread, edge));
            }
        }
        // An empty step that stands for one of the source itself (see `Placed::steps`) is removed only if a fence is inserted at one of the preceding
        // places listed for it, because that fence replaces it.
        for (&(thread, edge), before) in &placed.steps {
            if before.iter().all(|&other| unused.contains(&(thread, other))) {
                unused.remove(&(thread, edge));
            }
        }
        let mut program = marked.clone();
        let (mut edges, mut removed, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
        for (t, thread) in marked.threads() {
            let steps = removable(thread, &|e| unused.contains(&(t, e)));
            let built = without(thread, &steps);
            program.threads[t.index()] = built.thread;
            edges.push(built.origins);
            removed.push(steps);
            numbers.push(built.numbers);
        }
        relocate(&mut program, &|t, at| at.iter().filter_map(|l| numbers[t.index()][l.index()]).collect());
        Fenced { marked, program, edges, removed }
    }

    /// Translates an execution of `program` to an execution of `marked`; `None` if a step has no counterpart. Each thread stops after its last step
    /// that is not empty; the second component has the empty steps that each thread could take after that.
    pub fn lifted(&self, trace: &Trace) -> Option<(Trace, Vec<Vec<Event>>)> {
        let mut at: Vec<LocationId> = self.marked.threads.iter().map(|t| t.entry).collect();
        let mut events = Vec::with_capacity(trace.events.len() * 2);
        for event in &trace.events {
            let t = event.thread.index();
            let EventKind::Step { edge, chosen } = &event.kind else {
                events.push(event.clone());
                continue;
            };
            let edge = self.edges[t][edge.index()];
            let code = self.marked.threads[t].edge(edge);
            while at[t] != code.from {
                let (step, to) = self.step(event.thread, at[t])?;
                events.push(step);
                at[t] = to;
            }
            events.push(Event { kind: EventKind::Step { edge, chosen: chosen.clone() }, ..event.clone() });
            at[t] = code.to;
        }
        let trailing = |(thread, mut here): (usize, LocationId)| {
            let mut steps = Vec::new();
            while let Some((step, to)) = self.step(ThreadId(thread as u32), here) {
                steps.push(step);
                here = to;
            }
            steps
        };
        Some((Trace { events, ..trace.clone() }, at.into_iter().enumerate().map(trailing).collect()))
    }

    /// Translates an execution of `marked` to an execution of `program` by leaving out the removed steps.
    pub fn plain(&self, trace: &Trace) -> Trace {
        let number =
            |edges: &Vec<EdgeId>| edges.iter().zip((0..).map(EdgeId)).map(|(a, b)| (*a, b)).collect();
        let numbers: Vec<HashMap<EdgeId, EdgeId>> = self.edges.iter().map(number).collect();
        let plain = |event: &Event| {
            let EventKind::Step { edge, chosen } = &event.kind else { return Some(event.clone()) };
            let edge = *numbers[event.thread.index()].get(edge)?;
            let kind = EventKind::Step { edge, chosen: chosen.clone() };
            Some(Event { kind, ..event.clone() })
        };
        Trace { events: trace.events.iter().filter_map(plain).collect(), ..trace.clone() }
    }

    /// The removed empty step at a location of `marked`, and the location to which it leads.
    fn step(&self, thread: ThreadId, at: LocationId) -> Option<(Event, LocationId)> {
        let edge = self.removed[thread.index()][at.index()]?;
        let event = Event { thread, kind: EventKind::Step { edge, chosen: Vec::new() } };
        Some((event, self.marked.thread(thread).edge(edge).to))
    }
}

/// For each location, the empty step that can be removed there: the step at an unused place, if no other edge leaves the location.
fn removable(thread: &Thread, unused: &dyn Fn(EdgeId) -> bool) -> Vec<Option<EdgeId>> {
    let mut steps: Vec<Option<EdgeId>> = vec![None; thread.locations.len()];
    for (n, step) in steps.iter_mut().enumerate() {
        let here = LocationId(n as u32);
        let mut leaving = thread.edges_from(here);
        if let (Some((edge, code)), None) = (leaving.next(), leaving.next())
            && unused(edge)
            && code.to != here
        {
            *step = Some(edge);
        }
    }
    // A cycle of empty steps is an infinite loop. Removing all of its steps would remove the loop, so one step is kept.
    let mut seen_from = vec![usize::MAX; steps.len()];
    for start in 0..steps.len() {
        let mut here = start;
        while let Some(edge) = steps[here] {
            if seen_from[here] == start {
                steps[here] = None;
                break;
            }
            if std::mem::replace(&mut seen_from[here], start) != usize::MAX {
                break;
            }
            here = thread.edge(edge).to.index();
        }
    }
    steps
}

/// The thread without the given empty steps. The source of each removed step is merged with its target.
fn without(thread: &Thread, steps: &[Option<EdgeId>]) -> Built<EdgeId> {
    let mut builder = ThreadBuilder::like(thread, |_| ());
    let numbered = thread.edges.iter().cloned().zip((0..).map(EdgeId));
    builder.edges = numbered.filter(|(edge, _)| steps[edge.from.index()].is_none()).collect();
    for (step, location) in steps.iter().zip((0..).map(LocationId)) {
        if let Some(edge) = step {
            builder.dissolve(location, thread.edge(*edge).to);
        }
    }
    builder.finish(thread.entry, thread.fault)
}

/// Whether two programs have the same properties and the same reachable control-flow graphs, up to the numbering of locations and source positions.
/// Variables and registers are not compared; the caller guarantees that both programs have the same declarations.
pub fn same(one: &Program, other: &Program) -> bool {
    let threads = one.threads.len() == other.threads.len();
    let numbers: Option<Vec<Vec<Option<LocationId>>>> =
        one.threads.iter().zip(&other.threads).map(|(a, b)| matched(a, b)).collect();
    let Some(numbers) = numbers.filter(|_| threads) else { return false };
    let renamed = |formula: &Formula| {
        relocated(formula, &|t, at| at.iter().filter_map(|l| numbers[t.index()][l.index()]).collect())
    };
    // Unreachable locations do not affect a formula.
    let reached = |formula: &Formula| {
        relocated(formula, &|t, at| {
            at.iter().copied().filter(|l| numbers[t.index()].contains(&Some(*l))).collect()
        })
    };
    let formulas = |a: &Property, b: &Property| a.formula().map(renamed) == b.formula().map(reached);
    let kinds = |a: &Property, b: &Property| discriminant(&a.kind) == discriminant(&b.kind);
    one.properties.len() == other.properties.len()
        && one
            .properties
            .iter()
            .zip(&other.properties)
            .all(|(a, b)| a.name == b.name && kinds(a, b) && formulas(a, b))
}

/// For each reachable location of one thread, the corresponding location of the other thread; `None` if the control-flow graphs differ.
fn matched(one: &Thread, other: &Thread) -> Option<Vec<Option<LocationId>>> {
    let mut numbers: Vec<Option<LocationId>> = vec![None; one.locations.len()];
    numbers[one.fault.index()] = Some(other.fault);
    numbers[one.entry.index()] = Some(other.entry);
    let mut open = vec![one.entry];
    while let Some(here) = open.pop() {
        let there = numbers[here.index()]?;
        let (mut a, mut b) = (one.edges_from(here), other.edges_from(there));
        loop {
            match (a.next(), b.next()) {
                (None, None) => break,
                (Some((_, x)), Some((_, y))) if x.action == y.action => match numbers[x.to.index()] {
                    Some(known) if known == y.to => {}
                    Some(_) => return None,
                    None => {
                        numbers[x.to.index()] = Some(y.to);
                        open.push(x.to);
                    }
                },
                _ => return None,
            }
        }
    }
    Some(numbers)
}
