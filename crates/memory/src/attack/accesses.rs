//! Which edges access which cells, and which pairs of a store and a load could be an attack at all.

use std::ops::Range;

use fencewright_program::{Action, Address, EdgeId, LocationId, Op, Program, Thread, ThreadId};

use super::{Attack, Notion};

/// Whether an operation is an access, and then its address and whether it stores.
pub fn access(op: &Op) -> Option<(&Address, bool)> {
    match op {
        Op::Load(_, address) => Some((address, false)),
        Op::Store(address, _) => Some((address, true)),
        Op::Skip | Op::Assign(..) | Op::Havoc(..) | Op::Assume(_) | Op::Assert(_) => None,
    }
}

/// The address of a store that goes through the buffer.
pub fn delayed_store(action: &Action) -> Option<&Address> {
    match action {
        Action::Op(Op::Store(address, _)) => Some(address),
        _ => None,
    }
}

/// The addresses an action loads while stores may be delayed.
pub fn plain_loads(action: &Action) -> impl Iterator<Item = &Address> {
    let ops = if action.drains() { &[] } else { action.ops() };
    ops.iter().filter_map(|op| match op {
        Op::Load(_, address) => Some(address),
        _ => None,
    })
}

/// For each cell whether two threads access it and one of them stores: where threads meet.
pub fn contended(program: &Program) -> Vec<bool> {
    let mut accessed = vec![None; program.cells()];
    let mut several = vec![false; program.cells()];
    let mut written = vec![false; program.cells()];
    for (t, thread) in program.threads() {
        for (address, stores) in thread.edges.iter().flat_map(|e| e.action.ops()).filter_map(access) {
            for cell in program.cells_of(address) {
                let cell = cell as usize;
                several[cell] |= accessed[cell].replace(t).is_some_and(|other| other != t);
                written[cell] |= stores;
            }
        }
    }
    several.iter().zip(written).map(|(&several, written)| several && written).collect()
}

/// A program with more attacks than this is too large to examine.
pub const MOST_ATTACKS: usize = 50_000;

/// All attacks that are not impossible at first sight: from the store a path without a fence leads to the load, which may be of
/// another cell, and the conflicts between the other threads, whatever their data, may lead from the load back to the store. Of several
/// threads that are alike only the first attacks. No more than [`MOST_ATTACKS`] and one are looked for.
pub fn candidates(program: &Program, notion: Notion, stop: &dyn Fn() -> bool) -> Option<Vec<Attack>> {
    let mut attacks = Vec::new();
    for (t, thread) in program.threads() {
        if program.threads[..t.index()].iter().any(|earlier| earlier.is_like(thread)) {
            continue;
        }
        let mut cones: Vec<Option<Vec<bool>>> = vec![None; thread.edges.len()];
        let holding = always_locked(thread);
        for (s, store) in thread.edges.iter().enumerate().filter(|(_, e)| !holding[e.from.index()]) {
            let Some(address) = delayed_store(&store.action) else { continue };
            let stored = program.cells_of(address);
            let region = thread.reachable(store.to, |a| !a.drains());
            for (l, load) in thread.edges.iter().enumerate().filter(|(_, e)| region[e.from.index()]) {
                if stop() {
                    return None;
                }
                if plain_loads(&load.action).all(|loaded| must_alias(program, loaded, address)) {
                    continue;
                }
                let cone = cones[l].get_or_insert_with(|| cone_of(program, notion, t, &load.action));
                if stored.clone().any(|cell| cone[cell as usize]) {
                    attacks.push(Attack { thread: t, store: EdgeId(s as u32), load: EdgeId(l as u32) });
                }
                if attacks.len() > MOST_ATTACKS {
                    return Some(attacks);
                }
            }
        }
    }
    Some(attacks)
}

/// The locations where a thread always holds the lock. A store there is no attack: the thread cannot unlock while it delays the store, and
/// nobody else can access anything.
fn always_locked(thread: &Thread) -> Vec<bool> {
    let mut locked = vec![true; thread.locations.len()];
    locked[thread.entry.index()] = false;
    loop {
        let mut changed = false;
        for edge in &thread.edges {
            let after = match edge.action {
                Action::Lock => true,
                Action::Unlock => false,
                _ => locked[edge.from.index()],
            };
            if locked[edge.to.index()] && !after {
                locked[edge.to.index()] = false;
                changed = true;
            }
        }
        if !changed {
            return locked;
        }
    }
}

/// The cells that the cone of a load may touch; for triangular races all cells if a racing write may exist.
fn cone_of(program: &Program, notion: Notion, attacker: ThreadId, load: &Action) -> Vec<bool> {
    let mut touched = vec![false; program.cells()];
    let mut stored = vec![false; program.cells()];
    let loaded: Vec<Range<u32>> = plain_loads(load).map(|a| program.cells_of(a)).collect();
    loaded.iter().cloned().flatten().for_each(|cell| touched[cell as usize] = true);
    let mut entered: Vec<Vec<bool>> = program.threads.iter().map(|t| vec![false; t.edges.len()]).collect();
    let mut helped = false;
    loop {
        let mut changed = false;
        for (t, thread) in program.threads().filter(|(t, _)| *t != attacker) {
            for (e, edge) in thread.edges.iter().enumerate() {
                let meets = |(address, stores): (&Address, bool)| {
                    let met = if stores { &touched } else { &stored };
                    program.cells_of(address).any(|cell| met[cell as usize])
                };
                if entered[t.index()][e] || !edge.action.ops().iter().filter_map(access).any(meets) {
                    continue;
                }
                (changed, helped) = (true, true);
                // Everything after it in program order is in the cone too, and with locks what came before in the section.
                let locks = thread.edges.iter().any(|e| e.action == Action::Lock);
                let after = thread.reachable(edge.to, |_| true);
                for (later, other) in thread.edges.iter().enumerate() {
                    if later == e || locks || after[other.from.index()] {
                        entered[t.index()][later] = true;
                        for (address, stores) in other.action.ops().iter().filter_map(access) {
                            for cell in program.cells_of(address) {
                                touched[cell as usize] = true;
                                stored[cell as usize] |= stores;
                            }
                        }
                    }
                }
            }
        }
        if !changed {
            break;
        }
    }
    match notion {
        Notion::Triangular => vec![helped; program.cells()],
        // What the load itself touches is no way back.
        Notion::HappensBefore if !helped => vec![false; program.cells()],
        Notion::HappensBefore => touched,
    }
}

/// Whether two addresses are always the same cell. Outside the window of an open array they need not be.
pub fn must_alias(program: &Program, a: &Address, b: &Address) -> bool {
    let cell = program.only_cell(a);
    cell.is_some() && cell == program.only_cell(b)
}

/// What is known about the time while the store of an edge is delayed.
#[derive(Clone, Debug)]
pub struct Delay {
    /// For each variable whether the attacker may both store to and load from one of its cells meanwhile: then it must remember what it
    /// has delayed.
    pub forwarded: Vec<bool>,
    /// For each location whether an attacking load may still follow.
    pub promising: Vec<bool>,
}

impl Delay {
    /// The delay of a store, for attacks with these loads.
    pub fn new(program: &Program, thread: &Thread, store: EdgeId, loads: &[EdgeId]) -> Self {
        let first = thread.edge(store);
        let region = thread.reachable(first.to, |a| !a.drains());
        let edges = || thread.edges.iter().filter(|e| region[e.from.index()] && !e.action.drains());
        let mut delayed = vec![false; program.cells()];
        for address in edges().chain([first]).filter_map(|e| delayed_store(&e.action)) {
            program.cells_of(address).for_each(|cell| delayed[cell as usize] = true);
        }
        let mut forwarded = vec![false; program.variables.len()];
        for load in edges().flat_map(|e| plain_loads(&e.action)) {
            forwarded[load.variable.index()] |= program.cells_of(load).any(|cell| delayed[cell as usize]);
        }
        let mut before: Vec<Vec<LocationId>> = vec![Vec::new(); thread.locations.len()];
        edges().for_each(|e| before[e.to.index()].push(e.from));
        let mut promising = vec![false; thread.locations.len()];
        let mut work: Vec<LocationId> = loads.iter().map(|&load| thread.edge(load).from).collect();
        while let Some(location) = work.pop() {
            if !std::mem::replace(&mut promising[location.index()], true) {
                work.extend_from_slice(&before[location.index()]);
            }
        }
        Delay { forwarded, promising }
    }
}
