//! From an execution to a clause: what would make this very execution impossible.
//!
//! | | makes an execution impossible if |
//! |---|---|
//! | a full fence | its thread passes the place with a store in its buffer |
//! | a store-store fence | a store that its thread issues after the place reaches memory before one issued before it |
//! | a locked instruction for a store | the store never arrives in memory, the thread does something else before it does, or an older store arrives later |
//!
//! Before that, delays that do not matter are shortened: a flush moves forward over everything it commutes with, and steps that the
//! violation does not need are left out. The clause becomes smaller and says more.

use std::collections::HashMap;

use fencewright_program::reference::{Access, Buffered};
use fencewright_program::{
    Action, EdgeId, Event, EventKind, MemoryModel, Program, Property, Replayed, ThreadId, Trace,
};

use crate::candidate::{Candidate, Kind};
use crate::hitting::Item;

/// The same violation with less delay: nothing of it happens later, and nothing else happens. `stop` is asked whether to be content.
pub fn shortened(
    program: &Program,
    model: MemoryModel,
    trace: &Trace,
    property: Option<&Property>,
    stop: &dyn Fn() -> bool,
) -> Trace {
    let valid = |trace: &Trace| match property {
        Some(property) => trace.replay_for(program, model, property).ok(),
        None => trace.replay(program, model).ok(),
    };
    let mut best = trace.clone();
    if property.is_some() {
        let mut n = best.events.len();
        while n > 0 && !stop() {
            n -= 1;
            let mut fewer = best.clone();
            fewer.events.remove(n);
            if valid(&fewer).is_some() {
                best = fewer;
            }
        }
    }
    let Some(replayed) = valid(&best) else { return trace.clone() };
    let earlier = Trace { events: flushed_early(program, &replayed), ..best.clone() };
    if valid(&earlier).is_some() { earlier } else { best }
}

/// The events with every flush as early as it can be without changing what anybody sees.
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

/// Whether a flush may as well happen before the event that comes before it.
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
    // A thread reads the same from its own buffer as from memory right after the flush.
    let touches = |access: &Access| match *access {
        Access::Read { cell: other, buffered, .. } => other == cell && !own && !buffered,
        Access::Write { cell: other, buffered, .. } => other == cell && (own || !buffered),
        Access::Fault(_) => false,
    };
    !stands && !effect.iter().any(touches)
}

/// The candidates any one of which makes the execution impossible.
pub fn clause(replayed: &Replayed, candidates: &[Candidate]) -> Vec<Item> {
    let mut at_edge: HashMap<(ThreadId, EdgeId), Vec<Item>> = HashMap::new();
    for (item, candidate) in candidates.iter().enumerate() {
        for &edge in &candidate.place.edges {
            at_edge.entry(edge).or_default().push(item);
        }
    }
    let stores = stores(replayed);
    let mut found = Vec::new();
    for (n, event) in replayed.events.iter().enumerate() {
        let EventKind::Step { edge, .. } = event.kind else { continue };
        for &item in at_edge.get(&(event.thread, edge)).into_iter().flatten() {
            let own = || stores.iter().filter(|s| s.thread == event.thread);
            let prevented = match candidates[item].kind {
                Kind::Full => {
                    let buffer = &replayed.states[n].buffers[event.thread.index()];
                    buffer.iter().any(|entry| matches!(entry, Buffered::Store { .. }))
                }
                Kind::StoreStore => own()
                    .filter(|s| s.issued < n)
                    .any(|before| own().any(|after| after.issued > n && after.arrived < before.arrived)),
                Kind::Swap => own().filter(|s| s.issued == n).any(|store| {
                    let busy = |(m, e): (usize, &Event)| {
                        let EventKind::Step { edge, .. } = e.kind else { return false };
                        // An empty step at a place may as well come later.
                        let empty = replayed.effects[m].is_empty() && at_edge.contains_key(&(e.thread, edge));
                        e.thread == event.thread && !empty && store.issued < m && m < store.arrived
                    };
                    let late = |older: &&Store| older.issued < n && older.arrived > store.arrived;
                    let pending = store.arrived == usize::MAX;
                    pending || replayed.events.iter().enumerate().any(busy) || own().any(|s| late(&s))
                }),
            };
            if prevented {
                found.push(item);
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// A buffered store of an execution: the numbers of the events that issued it and that brought it to memory.
struct Store {
    thread: ThreadId,
    cell: u32,
    issued: usize,
    /// `usize::MAX` if it never arrives.
    arrived: usize,
}

fn stores(replayed: &Replayed) -> Vec<Store> {
    let mut stores: Vec<Store> = Vec::new();
    for (n, event) in replayed.events.iter().enumerate() {
        match event.kind {
            EventKind::Flush { cell } => {
                let waiting =
                    |s: &&mut Store| (s.thread, s.cell, s.arrived) == (event.thread, cell, usize::MAX);
                if let Some(oldest) = stores.iter_mut().find(waiting) {
                    oldest.arrived = n;
                }
            }
            EventKind::Step { .. } => {
                for access in &replayed.effects[n] {
                    if let Access::Write { cell, buffered: true, .. } = *access {
                        stores.push(Store { thread: event.thread, cell, issued: n, arrived: usize::MAX });
                    }
                }
            }
        }
    }
    stores
}
