//! Detection of threads that spin forever, for the property `termination`. A thread *spins* if it is in a loop without effect, and neither a flush
//! nor a step of another thread can make it leave that loop. The property is violated by a reachable state in which no thread can make progress any
//! more: each of them has ended, is blocked or spins, and not all have ended.
//!
//! In such a state memory does not change any more. A thread spins there if, with these contents of memory, no path from its location leads to a
//! *departure*: a store, a read-modify-write that changes memory, a failed assertion, or a step out of the loop. Each loop that can return to its
//! head without a departure, and from whose head a departure is not always possible, gets a waiting location:
//!
//! ```text
//! head -> waiting        always
//! waiting -> head        one edge for each path from the head to a departure: the loads and conditions of the path, as one indivisible step
//! ```
//!
//! The new edges only change the location of the thread, so other properties are unaffected. A thread at its waiting location is blocked if and only
//! if it spins forever. So a deadlock of the new program is a state as described above. Conversely, from such a state the spinning threads can
//! continue to the heads of their loops and from there to the waiting locations, which gives a deadlock.
//!
//! The paths from a head are found by symbolic execution with constant memory (`ways`). The search need not continue a path that has returned to a
//! location with the same values in all relevant registers (`relevance`), because every later departure was possible at the first visit too. A loop
//! that counts towards a bound terminates (`counting`), so it needs no waiting location. A loop that none of these analyses decides is rejected with
//! an error.

mod counting;
mod relevance;
mod value;
mod ways;

use std::collections::{BTreeSet, HashSet};

use fencewright_kit::ThreadBuilder;
use fencewright_program::{Action, Edge, Expr, LocationId, Op, Program, RegisterId, Span, Thread, ThreadId};
use fencewright_text::{Diagnostic, Stop};
use relevance::Relevance;
use rustc_hash::FxHashMap;
use ways::Departures;

/// Maximum number of locations of a loop that are tried as its head.
const MOST_HEADS: usize = 8;

/// Adds waiting locations to every thread that needs them. If some loops could not be decided, returns an error for each of them, and the program
/// must not be used.
///
/// `exits` are the locations where threads stay after the end of the process.
pub fn add_waiting_places(
    program: &mut Program,
    exits: &BTreeSet<(ThreadId, LocationId)>,
    stop: &Stop<'_>,
) -> Result<(), Vec<Diagnostic>> {
    let mut undecided = Vec::new();
    for (id, thread) in (0..).map(ThreadId).zip(&mut program.threads) {
        let exits: HashSet<LocationId> =
            exits.iter().filter(|(thread, _)| *thread == id).map(|(_, location)| *location).collect();
        let heads = Loops { thread, exits, stop }.heads(&mut undecided);
        if !heads.is_empty() {
            *thread = with_waiting_places(thread, heads);
        }
    }
    undecided.sort_unstable();
    undecided.dedup();
    if undecided.is_empty() {
        return Ok(());
    }
    let undecided = undecided.into_iter().map(|span| {
        let message = "whether a thread can spin in this loop for ever is not decided: its iterations depend on more than the values that it reads";
        let help = "`termination` knows loops that read what they look at again in every round, and loops that count up or down to a bound; \
                    write the loop like that, or ask for other properties";
        Diagnostic::new(span, message).help(help)
    });
    Err(undecided.collect())
}

/// The head of a loop, and the paths from it to a departure.
struct Head {
    at: LocationId,
    ways: Vec<Vec<Op>>,
}

/// The search for loops in which a thread may spin.
struct Loops<'t> {
    thread: &'t Thread,
    /// The locations where threads stay after the end of the process.
    exits: HashSet<LocationId>,
    stop: &'t Stop<'t>,
}

/// Whether a step may leave memory and the lock unchanged.
fn is_quiet(edge: &Edge) -> bool {
    !matches!(edge.action, Action::Op(Op::Store(..)) | Action::Lock | Action::Unlock)
}

impl Loops<'_> {
    /// The heads of the loops that need a waiting location. The spans of undecided loops are added to `undecided`.
    fn heads(&self, undecided: &mut Vec<Span>) -> Vec<Head> {
        let mut heads = Vec::new();
        let all: Vec<LocationId> = (0..self.thread.locations.len() as u32).map(LocationId).collect();
        let mut open = self.components(&all);
        while let Some(component) = open.pop() {
            // A loop in which threads stay after the end of the process does not count as spinning.
            if component.iter().any(|l| self.exits.contains(l)) || self.stop.now() {
                continue;
            }
            let inside: Vec<bool> = {
                let mut inside = vec![false; self.thread.locations.len()];
                component.iter().for_each(|l| inside[l.index()] = true);
                inside
            };
            let relevance = Relevance::new(self.thread, &component, &inside);
            let mut candidates = component.clone();
            candidates.sort_by_key(|l| (relevance.at(*l).len(), *l));
            let tried = candidates.iter().take(MOST_HEADS);
            let decided = tried.copied().find_map(|head| {
                let part = ways::Part { thread: self.thread, inside: &inside, relevance: &relevance };
                if counting::ends(part, head) {
                    return Some((head, None));
                }
                match ways::departures(part, head, self.stop)? {
                    Departures::Always => Some((head, None)),
                    Departures::Sometimes(ways) => Some((head, Some(ways))),
                }
            });
            let Some((head, ways)) = decided else {
                undecided.push(self.text(candidates[0]));
                continue;
            };
            heads.extend(ways.map(|ways| Head { at: head, ways }));
            let rest: Vec<LocationId> = component.into_iter().filter(|l| *l != head).collect();
            open.extend(self.components(&rest));
        }
        heads.sort_by_key(|head| head.at);
        heads
    }

    /// The source span of the statement at a location, without the call that contains it.
    fn text(&self, at: LocationId) -> Span {
        let edge = self.thread.edges_from(at).next().map(|(_, edge)| edge.span);
        self.thread.locations[at.index()].span.or(edge).unwrap_or_default().text()
    }

    /// The strongly connected components of the graph of these locations and their quiet steps. Components without a cycle are left out.
    fn components(&self, locations: &[LocationId]) -> Vec<Vec<LocationId>> {
        let numbers: FxHashMap<LocationId, usize> = locations.iter().copied().zip(0..).collect();
        let quiet = |n: usize| {
            let edges = self.thread.edges_from(locations[n]).filter(|(_, edge)| is_quiet(edge));
            edges.filter_map(|(_, edge)| numbers.get(&edge.to).copied())
        };
        let mut components: Vec<Vec<LocationId>> = vec![Vec::new(); locations.len()];
        for (location, component) in
            locations.iter().zip(fencewright_graph::components(locations.len(), quiet))
        {
            components[component as usize].push(*location);
        }
        let turns_back = |l: &LocationId| quiet(numbers[l]).any(|to| to == numbers[l]);
        components.retain(|component| component.len() > 1 || component.iter().any(turns_back));
        components
    }
}

/// Adds waiting locations to a thread. Existing locations keep their numbers.
fn with_waiting_places(thread: &Thread, heads: Vec<Head>) -> Thread {
    let mut builder: ThreadBuilder<()> = ThreadBuilder::like(thread, |_| ());
    builder.edges = thread.edges.iter().map(|edge| (edge.clone(), ())).collect();
    let mut copies: FxHashMap<RegisterId, RegisterId> = FxHashMap::default();
    for Head { at, ways } in heads {
        let edge = thread.edges_from(at).next().map(|(_, edge)| edge.span);
        let span = thread.locations[at.index()].span.or(edge).unwrap_or_default();
        let waiting = builder.location((), Some(span));
        builder.op(at, waiting, Op::Skip, span, ());
        if ways.is_empty() {
            builder.op(waiting, at, Op::Assume(Expr::Const(0)), span, ());
        }
        for way in ways {
            // A path writes only to copies of registers, numbered from `registers.len()`, and never to the thread's own registers. The copies are
            // reset to 0 at the end of the path.
            let mut used = Vec::new();
            let mut copy = |register: RegisterId| {
                if register.index() < thread.registers.len() {
                    return register;
                }
                let copy = *copies
                    .entry(register)
                    .or_insert_with(|| builder.register(format!("%waiting_{}", register.0), None));
                used.push(copy);
                copy
            };
            let mut ops: Vec<Op> = way.iter().map(|op| value::renamed(op, &mut copy)).collect();
            used.sort_unstable();
            used.dedup();
            ops.extend(used.into_iter().map(|register| Op::Assign(register, Expr::Const(0))));
            builder.edge(waiting, at, Action::Atomic { ops, drains: false }, span, ());
        }
    }
    builder.finish(thread.entry, thread.fault).thread
}
