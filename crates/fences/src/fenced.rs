//! A program with fences put in.
//!
//! The program with an empty step at every place ([`Placed`]) is the one that clauses speak of. To verify it, the steps at places
//! that got nothing are taken out again, so that engines do not pay for them; an execution of the smaller program becomes one of
//! the larger by putting each step back as late as possible: right before the next step of its thread.

use std::collections::BTreeSet;

use fencewright_lang::places::Placed;
use fencewright_program::{
    Action, EdgeId, Event, EventKind, Expr, Formula, Location, LocationId, MemoryModel, Observable, Op,
    Program, Property, PropertyKind, Thread, ThreadId, Trace,
};

use crate::candidate::{Candidate, Kind};

/// A program with fences.
pub struct Fenced {
    /// With all empty steps.
    pub marked: Program,
    /// Without those that mark places with nothing in them.
    pub program: Program,
    /// For each thread and edge of the program the edge of the marked one.
    edges: Vec<Vec<EdgeId>>,
    /// For each thread and location of the marked program the empty step that was taken out there.
    removed: Vec<Vec<Option<EdgeId>>>,
}

impl Fenced {
    /// Puts these into a program.
    pub fn new(placed: &Placed, chosen: &[&Candidate]) -> Self {
        let mut marked = placed.program.clone();
        let mut unused: BTreeSet<(ThreadId, EdgeId)> =
            placed.places.iter().flat_map(|p| p.edges.iter().copied()).collect();
        // A full fence does what a store-store fence does, so it comes last.
        let mut chosen = chosen.to_vec();
        chosen.sort_by_key(|candidate| candidate.kind != Kind::StoreStore);
        for candidate in chosen {
            for &(thread, edge) in &candidate.edges {
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
        let mut program = marked.clone();
        let (mut edges, mut removed, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
        for (t, thread) in marked.threads() {
            let looked_at = looked_at(&marked, t);
            let steps = removable(thread, &|e| unused.contains(&(t, e)), &looked_at);
            let (smaller, originals, number) = without(thread, &steps);
            program.threads[t.index()] = smaller;
            edges.push(originals);
            removed.push(steps);
            numbers.push(number);
        }
        let rename = |formula: &Formula| {
            formula.map(&mut |o| {
                Expr::Leaf(match o {
                    Observable::At(t, at) => {
                        let number = |l: &LocationId| numbers[t.index()][l.index()];
                        Observable::At(*t, at.iter().map(number).collect())
                    }
                    other => other.clone(),
                })
            })
        };
        for property in &mut program.properties {
            match &mut property.kind {
                PropertyKind::Never(formula) | PropertyKind::Finally(_, formula) => {
                    *formula = rename(formula)
                }
                PropertyKind::Assertions | PropertyKind::NoDeadlock => {}
            }
        }
        program.hints.predicates.iter_mut().for_each(|formula| *formula = rename(formula));
        Fenced { marked, program, edges, removed }
    }

    /// An execution of the program as one of the marked program, for the property if there is one; nothing if it is none.
    pub fn lifted(&self, trace: &Trace, model: MemoryModel, property: Option<&Property>) -> Option<Trace> {
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
        let begun = Trace { events, ..trace.clone() };
        let Some(property) = property else {
            return begun.replay(&self.marked, model).is_ok().then_some(begun);
        };
        let fits = |trace: &Trace| trace.replay_for(&self.marked, model, property).is_ok();
        if fits(&begun) {
            return Some(begun);
        }
        // At the end some threads must have taken the steps before the labels they are at: no more of them than needed.
        let trailing = |thread: usize| {
            let (mut steps, mut here) = (Vec::new(), at[thread]);
            while let Some((step, to)) = self.step(ThreadId(thread as u32), here) {
                steps.push(step);
                here = to;
            }
            steps
        };
        let mut trailing: Vec<Vec<Event>> = (0..at.len()).map(trailing).collect();
        let with = |trailing: &[Vec<Event>]| {
            let events = begun.events.iter().chain(trailing.iter().flatten()).cloned().collect();
            Trace { events, ..begun.clone() }
        };
        if !fits(&with(&trailing)) {
            return None;
        }
        for thread in 0..trailing.len() {
            let steps = std::mem::take(&mut trailing[thread]);
            if !fits(&with(&trailing)) {
                trailing[thread] = steps;
            }
        }
        Some(with(&trailing))
    }

    /// The empty step that was taken out at a location of the marked program, and where it leads.
    fn step(&self, thread: ThreadId, at: LocationId) -> Option<(Event, LocationId)> {
        let edge = self.removed[thread.index()][at.index()]?;
        let event = Event { thread, kind: EventKind::Step { edge, chosen: Vec::new() } };
        Some((event, self.marked.thread(thread).edge(edge).to))
    }
}

/// The locations of a thread that some property or hint looks at.
fn looked_at(program: &Program, thread: ThreadId) -> BTreeSet<LocationId> {
    let mut found = BTreeSet::new();
    let formulas = program.properties.iter().filter_map(Property::formula);
    for formula in formulas.chain(&program.hints.predicates) {
        formula.for_each_leaf(&mut |o| {
            if let Observable::At(t, at) = o
                && *t == thread
            {
                found.extend(at.iter().copied());
            }
        });
    }
    found
}

/// For each location the empty step that can be taken out there: the only one that leaves it, from a location without a name.
fn removable(
    thread: &Thread,
    unused: &dyn Fn(EdgeId) -> bool,
    looked_at: &BTreeSet<LocationId>,
) -> Vec<Option<EdgeId>> {
    let mut steps: Vec<Option<EdgeId>> = vec![None; thread.locations.len()];
    for (n, location) in thread.locations.iter().enumerate() {
        let here = LocationId(n as u32);
        let mut leaving = thread.edges_from(here);
        if let (Some((edge, code)), None) = (leaving.next(), leaving.next())
            && unused(edge)
            && code.to != here
            && location.labels.is_empty()
            && !looked_at.contains(&here)
        {
            steps[n] = Some(edge);
        }
    }
    // A cycle of empty steps only is a loop that does nothing: it stays.
    for start in 0..steps.len() {
        let (mut here, mut length) = (start, 0);
        while let Some(edge) = steps[here] {
            here = thread.edge(edge).to.index();
            length += 1;
            if length > steps.len() {
                steps[here] = None;
            }
        }
    }
    steps
}

/// A thread without some steps, for each of its edges the original one, and the new number of every location.
fn without(thread: &Thread, steps: &[Option<EdgeId>]) -> (Thread, Vec<EdgeId>, Vec<LocationId>) {
    let end = |mut here: LocationId| {
        while let Some(edge) = steps[here.index()] {
            here = thread.edge(edge).to;
        }
        here
    };
    let mut numbers = vec![LocationId(0); steps.len()];
    let kept = steps.iter().enumerate().filter(|(_, step)| step.is_none());
    for (number, (n, _)) in kept.enumerate() {
        numbers[n] = LocationId(number as u32);
    }
    for n in 0..steps.len() {
        numbers[n] = numbers[end(LocationId(n as u32)).index()];
    }
    let (mut edges, mut originals, mut locations) = (Vec::new(), Vec::new(), Vec::new());
    for (n, location) in thread.locations.iter().enumerate().filter(|(n, _)| steps[*n].is_none()) {
        let first_edge = edges.len() as u32;
        for (id, edge) in thread.edges_from(LocationId(n as u32)) {
            let mut edge = edge.clone();
            edge.from = numbers[edge.from.index()];
            edge.to = numbers[edge.to.index()];
            edges.push(edge);
            originals.push(id);
        }
        locations.push(Location { first_edge, last_edge: edges.len() as u32, ..location.clone() });
    }
    let smaller = Thread {
        locations,
        edges,
        entry: numbers[thread.entry.index()],
        fault: numbers[thread.fault.index()],
        ..thread.clone()
    };
    (smaller, originals, numbers)
}
