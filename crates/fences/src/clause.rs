//! From a violating execution to a clause: the set of candidates each of which would make this execution impossible.
//!
//! | | makes an execution impossible if |
//! |---|---|
//! | a full fence | its thread passes the place with a store in its buffer |
//! | a store-store fence | of two stores of its thread, one issued before the place and one after it, the later one reaches memory first |
//! | a locked instruction for a store | the store never reaches memory, its thread takes a step before it does, or an older store does so later |
//! | a locked instruction for a store that faults | its thread still has an older store in its buffer |
//!
//! First, irrelevant delays are removed from the execution: a flush moves earlier past every event that it commutes with, and steps that the
//! violation does not need are dropped. Fewer candidates then prevent the execution, so the clause is smaller and rules out more sets of fences.
//!
//! If a property mentions labels, existing fences may themselves cause its violation (module `labels`). Removing such a fence then also satisfies the
//! clause.

use std::collections::{HashMap, VecDeque};

use fencewright_program::reference::Access;
use fencewright_program::{
    Action, Event, EventKind, Formula, MemoryModel, Program, Property, PropertyKind, Quantifier, Replayed,
    ThreadId, Trace,
};

use crate::candidate::{Catalogue, Kind};
use crate::fenced::Fenced;
use crate::goal::Broken;
use crate::hitting::{Clause, Item};
use crate::labels::Labels;

/// Maximum number of events replayed in the search for unnecessary events; in a long execution, the search therefore does not try every event.
const MOST_REPLAYED: usize = 1 << 20;

/// An execution with the same violation and shorter delays: unnecessary events are removed as far as they are found, and every remaining store
/// reaches memory no later than before. If `stop` returns true, the search for unnecessary events ends early; for [`Broken::Goal`], no events are
/// removed.
pub fn shortened(
    program: &Program,
    model: MemoryModel,
    trace: &Trace,
    broken: &Broken,
    stop: &dyn Fn() -> bool,
) -> Trace {
    let valid = |trace: &Trace| broken.replay(program, model, trace);
    let mut best = trace.clone();
    if *broken != Broken::Goal {
        let mut n = best.events.len();
        let mut replayed = 0;
        while n > 0 && replayed < MOST_REPLAYED && !stop() {
            n -= 1;
            let mut fewer = best.clone();
            fewer.events.remove(n);
            replayed += fewer.events.len();
            if valid(&fewer).is_some() {
                best = fewer;
            }
        }
    }
    let Some(replayed) = valid(&best) else { return trace.clone() };
    let earlier = Trace { events: flushed_early(program, &replayed), ..best.clone() };
    if valid(&earlier).is_some() { earlier } else { best }
}

/// The events, with every flush moved to the earliest position that leaves the effects of all events unchanged.
fn flushed_early(program: &Program, replayed: &Replayed) -> Vec<Event> {
    let mut events: Vec<(Event, &[Access])> =
        replayed.events.iter().cloned().zip(replayed.effects.iter().map(Vec::as_slice)).collect();
    for n in 0..events.len() {
        let EventKind::Flush { cell } = events[n].0.kind else { continue };
        let mut at = n;
        while at > 0 && commutes(program, events[at].0.thread, cell, &events[at - 1]) {
            events.swap(at - 1, at);
            at -= 1;
        }
    }
    events.into_iter().map(|(event, _)| event).collect()
}

/// Whether a flush of `cell` by thread `owner` commutes with the event just before it.
fn commutes(program: &Program, owner: ThreadId, cell: u32, (event, effect): &(Event, &[Access])) -> bool {
    let own = event.thread == owner;
    let edge = match event.kind {
        EventKind::Flush { cell: other } => return !own && other != cell,
        EventKind::Step { edge, .. } => program.thread(event.thread).edge(edge),
    };
    let stands = match edge.action {
        Action::Lock | Action::Unlock => true,
        Action::Fence | Action::StoreFence => own,
        Action::Atomic { drains, .. } => own && drains,
        Action::Op(_) => false,
    };
    // The thread that owns the flushed store reads the same value from its buffer before the flush as from memory after it.
    let touches = |access: &Access| match *access {
        Access::Read { cell: other, buffered, .. } => other == cell && !own && !buffered,
        Access::Write { cell: other, buffered, .. } => other == cell && (own || !buffered),
        Access::Fault(_) => false,
    };
    !stands && !effect.iter().any(touches)
}

/// A formula that holds exactly in the states (for `finally`: the final states) that violate a property; `None` for assertions, freedom from deadlock
/// and `finally exists`.
pub(crate) fn violating(property: &Property) -> Option<Formula> {
    match &property.kind {
        PropertyKind::Never(formula) | PropertyKind::Finally(Quantifier::Never, formula) => {
            Some(formula.clone())
        }
        PropertyKind::Finally(Quantifier::Forall, formula) => Some(formula.clone().not()),
        PropertyKind::Finally(Quantifier::Exists, _)
        | PropertyKind::Assertions
        | PropertyKind::NoDeadlock => None,
    }
}

/// The clause that follows from a violation of the program with the fences `set`, and this violation as an execution of the marked program (see
/// [`Fenced`]). Every sufficient set satisfies the clause. `None` if the execution cannot be translated to the marked program, or does not replay
/// there.
pub(crate) fn clause(
    labels: Labels<'_>,
    fenced: &Fenced,
    set: &[Item],
    violation: &Trace,
    model: MemoryModel,
    property: Option<&Property>,
) -> Option<(Clause, Trace)> {
    let (short, trailing) = fenced.lifted(violation)?;
    let formula = property.and_then(violating);
    let learn = |moving: &dyn Fn(usize) -> bool| {
        let threads = trailing.iter().enumerate().filter(|(t, _)| moving(*t));
        let more = threads.flat_map(|(_, steps)| steps.iter().cloned());
        let trace = Trace { events: short.events.iter().cloned().chain(more).collect(), ..short.clone() };
        let replayed = trace.replay(&fenced.marked, model).ok()?;
        let Clause { any: seen, unless } = match &formula {
            Some(formula) => labels.dependence(formula, replayed.last(), set),
            None => Clause::default(),
        };
        let mut any = prevented(&replayed, labels.catalogue);
        any.extend(&seen);
        Some((Clause::new(any, unless), trace, seen))
    };
    // In a final state, all threads have ended and all buffers are empty, so every thread also takes its remaining empty steps.
    if property.is_some_and(|p| matches!(p.kind, PropertyKind::Finally(..))) {
        return learn(&|_| true).map(|(clause, trace, _)| (clause, trace));
    }
    let (clause, trace, seen) = learn(&|_| false)?;
    // Unused places may appear in the clause only because the execution ends just before some threads pass them. The clause may become smaller if
    // these threads pass the places, so both executions are tried.
    let passes = |t: usize| {
        trailing[t].iter().any(|step| {
            let EventKind::Step { edge, .. } = step.kind else { return false };
            labels.catalogue.at(step.thread, edge).iter().any(|item| seen.contains(item))
        })
    };
    if !seen.is_empty()
        && let Some((other, passed, _)) = learn(&passes)
        && other.any.len() + other.unless.len() <= clause.any.len() + clause.unless.len()
    {
        return Some((other, passed));
    }
    Some((clause, trace))
}

/// The candidates each of which would make the execution impossible.
fn prevented(replayed: &Replayed, catalogue: &Catalogue) -> Vec<Item> {
    let mut threads: HashMap<ThreadId, Buffer> = HashMap::new();
    for store in stores(replayed) {
        threads.entry(store.thread).or_default().stores.push(store);
    }
    threads.values_mut().for_each(Buffer::summarise);
    // The steps of each thread. Empty steps at places are left out, because the thread could also take them after its stores have been flushed.
    let mut busy: HashMap<ThreadId, Vec<usize>> = HashMap::new();
    for (n, event) in replayed.events.iter().enumerate() {
        let EventKind::Step { edge, .. } = event.kind else { continue };
        if !replayed.effects[n].is_empty() || catalogue.at(event.thread, edge).is_empty() {
            busy.entry(event.thread).or_default().push(n);
        }
    }
    let mut found = Vec::new();
    for (n, event) in replayed.events.iter().enumerate() {
        let EventKind::Step { edge, .. } = event.kind else { continue };
        let items = catalogue.at(event.thread, edge);
        let Some(buffer) = threads.get(&event.thread).filter(|_| !items.is_empty()) else { continue };
        // Splits the thread's stores into those issued before and after this step.
        let before = buffer.stores.partition_point(|s| s.issued < n);
        let after = buffer.stores.partition_point(|s| s.issued <= n);
        let latest = before.checked_sub(1).map(|last| buffer.latest[last]);
        for &item in items {
            let prevented = match catalogue.all[item].kind {
                Kind::Full => latest.is_some_and(|arrived| arrived > n),
                Kind::StoreStore => {
                    let earliest = buffer.earliest.get(after);
                    latest.zip(earliest).is_some_and(|(latest, &earliest)| earliest < latest)
                }
                // A faulting store writes nothing. A locked instruction in its place would wait until all older stores have reached memory, and fault
                // only then.
                Kind::Swap if faults(&replayed.effects[n]) => latest.is_some_and(|arrived| arrived > n),
                Kind::Swap => buffer.stores[before..after].iter().any(|store| {
                    let own = busy.get(&event.thread).map_or(&[][..], Vec::as_slice);
                    let next = own.get(own.partition_point(|&m| m <= n));
                    store.arrived == usize::MAX
                        || next.is_some_and(|&m| m < store.arrived)
                        || latest.is_some_and(|latest| latest > store.arrived)
                }),
            };
            if prevented {
                found.push(item);
            }
        }
    }
    found
}

fn faults(effect: &[Access]) -> bool {
    effect.iter().any(|access| matches!(access, Access::Fault(_)))
}

/// A buffered store of an execution, with the indices of the events in which it is issued and flushed.
struct Store {
    thread: ThreadId,
    issued: usize,
    /// The event that flushes the store; `usize::MAX` if the store never reaches memory.
    arrived: usize,
}

/// The stores of a thread, in the order in which they are issued.
#[derive(Default)]
struct Buffer {
    stores: Vec<Store>,
    /// For each store, the greatest `arrived` among this store and all older ones (prefix maxima).
    latest: Vec<usize>,
    /// For each store, the least `arrived` among this store and all younger ones (suffix minima).
    earliest: Vec<usize>,
}

impl Buffer {
    fn summarise(&mut self) {
        let arrived = || self.stores.iter().map(|s| s.arrived);
        let latest = arrived().scan(0, |latest, at| {
            *latest = at.max(*latest);
            Some(*latest)
        });
        let earliest = arrived().rev().scan(usize::MAX, |earliest, at| {
            *earliest = at.min(*earliest);
            Some(*earliest)
        });
        (self.latest, self.earliest) = (latest.collect(), earliest.collect());
        self.earliest.reverse();
    }
}

fn stores(replayed: &Replayed) -> Vec<Store> {
    let mut stores: Vec<Store> = Vec::new();
    let mut waiting: HashMap<(ThreadId, u32), VecDeque<usize>> = HashMap::new();
    for (n, event) in replayed.events.iter().enumerate() {
        match event.kind {
            EventKind::Flush { cell } => {
                let oldest = waiting.get_mut(&(event.thread, cell)).and_then(VecDeque::pop_front);
                if let Some(oldest) = oldest {
                    stores[oldest].arrived = n;
                }
            }
            EventKind::Step { .. } => {
                for access in &replayed.effects[n] {
                    if let Access::Write { cell, buffered: true, .. } = *access {
                        waiting.entry((event.thread, cell)).or_default().push_back(stores.len());
                        stores.push(Store { thread: event.thread, issued: n, arrived: usize::MAX });
                    }
                }
            }
        }
    }
    stores
}
