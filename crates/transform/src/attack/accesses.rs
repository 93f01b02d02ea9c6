//! Memory accesses of edges, and the candidate attacks: pairs of a store and a load for which an attack is possible. The *cone* of a load is defined
//! in [`attack`](super).

use std::collections::HashMap;
use std::ops::Range;

use fencewright_kit::accesses::{cells_of, only_cell};
use fencewright_program::{Action, Address, EdgeId, LocationId, Op, Program, Thread, ThreadId};

use super::{Attack, Notion};

/// The address that an operation accesses and whether it stores there; `None` if it accesses no memory.
pub fn access(op: &Op) -> Option<(&Address, bool)> {
    match op {
        Op::Load(_, address) => Some((address, false)),
        Op::Store(address, _) => Some((address, true)),
        Op::Skip | Op::Assign(..) | Op::Havoc(..) | Op::Assume(_) | Op::Assert(..) => None,
    }
}

/// The address of a store that goes through the buffer; `None` for any other action.
pub fn delayed_store(action: &Action) -> Option<&Address> {
    match action {
        Action::Op(Op::Store(address, _)) => Some(address),
        _ => None,
    }
}

/// The addresses that an action loads; none for an action that waits for an empty buffer, because no store of its thread is delayed then.
pub fn plain_loads(action: &Action) -> impl Iterator<Item = &Address> {
    let ops = if action.drains() { &[] } else { action.ops() };
    ops.iter().filter_map(|op| match op {
        Op::Load(_, address) => Some(address),
        _ => None,
    })
}

/// For each cell, whether at least two threads access it, at least one of them with a store. Only accesses to such a cell can conflict.
pub fn contended(program: &Program) -> Vec<bool> {
    let mut accessed = vec![None; program.cells()];
    let mut several = vec![false; program.cells()];
    let mut written = vec![false; program.cells()];
    for (t, thread) in program.threads() {
        for (address, stores) in thread.edges.iter().flat_map(|e| e.action.ops()).filter_map(access) {
            for cell in cells_of(program, address) {
                let cell = cell as usize;
                several[cell] |= accessed[cell].replace(t).is_some_and(|other| other != t);
                written[cell] |= stores;
            }
        }
    }
    several.iter().zip(written).map(|(&several, written)| several && written).collect()
}

/// Maximum number of candidate attacks of a program; a program with more of them is never found robust.
pub const MOST_ATTACKS: usize = 50_000;

/// All candidate attacks. A store and a load of a thread are a candidate under three conditions: a path without an action that waits for an empty
/// buffer leads from the store to the load; the load may access another cell than the store; and conflicts with and between the other threads may
/// lead from the load back to the store, or, for triangular races, another thread may store to a loaded cell (values are ignored). Stores at which
/// the thread certainly holds the lock are left out. Of several interchangeable threads only the first one attacks. Stops after [`MOST_ATTACKS`] + 1
/// attacks. `None` if `stop` returned true.
pub fn candidates(program: &Program, notion: Notion, stop: &dyn Fn() -> bool) -> Option<Vec<Attack>> {
    let mut attacks = Vec::new();
    let accesses = Accesses::new(program);
    for (t, thread) in program.threads() {
        if program.threads[..t.index()].iter().any(|earlier| earlier.is_like(thread)) {
            continue;
        }
        // For each load, its edge, its location, and the index of its cone in `cones`. Loads of the same cells share a cone.
        let mut cones: Vec<Vec<bool>> = Vec::new();
        let mut numbers: HashMap<Vec<Range<u32>>, usize> = HashMap::new();
        let mut loads: Vec<(usize, LocationId, usize)> = Vec::new();
        for (l, load) in thread.edges.iter().enumerate() {
            let cells: Vec<Range<u32>> = plain_loads(&load.action).map(|a| cells_of(program, a)).collect();
            if cells.is_empty() {
                continue;
            }
            if stop() {
                return None;
            }
            let number = *numbers.entry(cells).or_insert_with_key(|cells| {
                cones.push(accesses.cone(notion, t, cells));
                cones.len() - 1
            });
            loads.push((l, load.from, number));
        }
        let holding = always_locked(thread);
        for (s, store) in thread.edges.iter().enumerate().filter(|(_, e)| !holding[e.from.index()]) {
            let Some(address) = delayed_store(&store.action) else { continue };
            if stop() {
                return None;
            }
            let stored = cells_of(program, address);
            let region = reachable(thread, store.to, |a| !a.drains());
            for (l, _, cone) in loads.iter().filter(|(_, from, _)| region[from.index()]) {
                let loaded = || plain_loads(&thread.edges[*l].action);
                if !loaded().all(|loaded| must_alias(program, loaded, address))
                    && stored.clone().any(|cell| cones[*cone][cell as usize])
                {
                    attacks.push(Attack { thread: t, store: EdgeId(s as u32), load: EdgeId(*l as u32) });
                }
                if attacks.len() > MOST_ATTACKS {
                    return Some(attacks);
                }
            }
        }
    }
    Some(attacks)
}

/// The locations where a thread certainly holds the lock. A store at such a location is in no attack: the thread cannot unlock while it delays the
/// store, and until it unlocks, no other thread can access memory.
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

/// An index of all memory accesses of a program.
struct Accesses<'p> {
    program: &'p Program,
    /// For each cell, the accesses whose address denotes this cell only: thread, edge, and whether the access is a store.
    cells: Vec<Vec<(ThreadId, EdgeId, bool)>>,
    /// For each variable, the accesses whose address may denote any of its cells, if it has several; in the same form.
    arrays: Vec<Vec<(ThreadId, EdgeId, bool)>>,
    /// The variable of each cell.
    variables: Vec<usize>,
    /// For each thread, whether it takes the lock.
    locks: Vec<bool>,
}

impl<'p> Accesses<'p> {
    fn new(program: &'p Program) -> Self {
        let variables = program.variables.iter().enumerate().flat_map(|(n, v)| v.cells().map(move |_| n));
        let mut accesses = Accesses {
            program,
            cells: vec![Vec::new(); program.cells()],
            arrays: vec![Vec::new(); program.variables.len()],
            variables: variables.collect(),
            locks: program.threads.iter().map(|t| t.edges.iter().any(|e| e.action == Action::Lock)).collect(),
        };
        for (t, thread) in program.threads() {
            for (e, edge) in thread.edges.iter().enumerate() {
                for (address, stores) in edge.action.ops().iter().filter_map(access) {
                    let cells = cells_of(program, address);
                    let list = match cells.len() {
                        1 => &mut accesses.cells[cells.start as usize],
                        _ => &mut accesses.arrays[address.variable.index()],
                    };
                    list.push((t, EdgeId(e as u32), stores));
                }
            }
        }
        accesses
    }

    /// For each cell, whether the cone of a load of the cells `loaded` may access it: the load, or accesses of other threads that may happen after it
    /// ([`Cone`]). False for all cells if no other thread may store to a loaded cell; otherwise, for triangular races, true for all cells.
    fn cone(&self, notion: Notion, attacker: ThreadId, loaded: &[Range<u32>]) -> Vec<bool> {
        let mut cone = Cone::new(self, attacker);
        loaded.iter().cloned().flatten().for_each(|cell| cone.touch(cell, false));
        while let Some((cell, stored)) = cone.work.pop() {
            // An access in the cone conflicts with stores of other threads to its cell; a store in the cone conflicts with their loads, too. (A cell
            // that is stored to is on the worklist twice: as accessed and as stored to.)
            let meets = |(_, _, stores): &&(ThreadId, EdgeId, bool)| *stores != stored;
            let array = self.variables[cell as usize];
            for &(t, edge, _) in self.cells[cell as usize].iter().chain(&self.arrays[array]).filter(meets) {
                if t != attacker {
                    cone.enter(t, edge);
                }
            }
        }
        let cells = self.program.cells();
        match notion {
            Notion::Triangular => vec![cone.helped; cells],
            // If no other thread is in the cone, no path leads from the load back to the store, even if both access the same cell.
            Notion::HappensBefore if !cone.helped => vec![false; cells],
            Notion::HappensBefore => cone.touched,
        }
    }
}

/// Over-approximates the cone of a load with a worklist: the accesses of other threads that may happen after the load.
struct Cone<'a, 'p> {
    accesses: &'a Accesses<'p>,
    touched: Vec<bool>,
    stored: Vec<bool>,
    /// For loads and for stores: for each variable, whether the cone contains such an access whose address may denote any cell of the variable.
    whole: [Vec<bool>; 2],
    /// The worklist: (cell, false) for a cell that the cone accesses, (cell, true) for one that it stores to.
    work: Vec<(u32, bool)>,
    /// For each thread and edge, whether the edge is in the cone (empty for the attacker).
    entered: Vec<Vec<bool>>,
    /// For each thread and location, whether all its outgoing edges are in the cone.
    passed: Vec<Vec<bool>>,
    /// Whether a thread other than the attacker is in the cone.
    helped: bool,
}

impl<'a, 'p> Cone<'a, 'p> {
    fn new(accesses: &'a Accesses<'p>, attacker: ThreadId) -> Self {
        let program = accesses.program;
        let others =
            |t: ThreadId, length: usize| if t == attacker { Vec::new() } else { vec![false; length] };
        let arrays = vec![false; program.variables.len()];
        Cone {
            accesses,
            touched: vec![false; program.cells()],
            stored: vec![false; program.cells()],
            whole: [arrays.clone(), arrays],
            work: Vec::new(),
            entered: program.threads().map(|(t, thread)| others(t, thread.edges.len())).collect(),
            passed: program.threads().map(|(t, thread)| others(t, thread.locations.len())).collect(),
            helped: false,
        }
    }

    fn touch(&mut self, cell: u32, stored: bool) {
        if !std::mem::replace(&mut self.touched[cell as usize], true) {
            self.work.push((cell, false));
        }
        if stored && !std::mem::replace(&mut self.stored[cell as usize], true) {
            self.work.push((cell, true));
        }
    }

    /// Adds an edge to the cone, with its accesses.
    fn take(&mut self, thread: &Thread, t: ThreadId, edge: EdgeId) {
        if std::mem::replace(&mut self.entered[t.index()][edge.index()], true) {
            return;
        }
        for (address, stores) in thread.edge(edge).action.ops().iter().filter_map(access) {
            let cells = cells_of(self.accesses.program, address);
            let known = cells.len() > 1
                && std::mem::replace(&mut self.whole[stores as usize][address.variable.index()], true);
            if !known {
                cells.for_each(|cell| self.touch(cell, stores));
            }
        }
    }

    /// Adds an edge of another thread that conflicts with the cone, and all edges that may follow it in program order. If that thread takes the lock,
    /// adds all its edges: a locked section is in the cone as a whole, with the accesses before the conflict.
    fn enter(&mut self, t: ThreadId, edge: EdgeId) {
        self.helped = true;
        let thread = self.accesses.program.thread(t);
        self.take(thread, t, edge);
        let mut work = vec![thread.edge(edge).to];
        if self.accesses.locks[t.index()] {
            work.extend((0..thread.locations.len() as u32).map(LocationId));
        }
        while let Some(location) = work.pop() {
            if std::mem::replace(&mut self.passed[t.index()][location.index()], true) {
                continue;
            }
            for (later, other) in thread.edges_from(location) {
                self.take(thread, t, later);
                work.push(other.to);
            }
        }
    }
}

/// Whether both addresses are statically known to denote the same single cell. False for an address that may lie outside the modelled window of an
/// open array, even if the window has only one cell.
pub fn must_alias(program: &Program, a: &Address, b: &Address) -> bool {
    let cell = only_cell(program, a);
    cell.is_some() && cell == only_cell(program, b)
}

/// Static facts about the attacker while it delays a store.
#[derive(Clone, Debug)]
pub struct Delay {
    /// For each variable, whether the attacker may both store to and load from one of its cells while stores are delayed. If so, the values of
    /// delayed stores to this variable have to be recorded.
    pub forwarded: Vec<bool>,
    /// For each location, whether the attacker can reach one of the attacking loads from there while it delays.
    pub promising: Vec<bool>,
}

impl Delay {
    /// The facts for the attacks that consist of `store` and one of `loads`.
    pub fn new(program: &Program, thread: &Thread, store: EdgeId, loads: &[EdgeId]) -> Self {
        let first = thread.edge(store);
        let region = reachable(thread, first.to, |a| !a.drains());
        let edges = || thread.edges.iter().filter(|e| region[e.from.index()] && !e.action.drains());
        let mut delayed = vec![false; program.cells()];
        for address in edges().chain([first]).filter_map(|e| delayed_store(&e.action)) {
            cells_of(program, address).for_each(|cell| delayed[cell as usize] = true);
        }
        let mut forwarded = vec![false; program.variables.len()];
        for load in edges().flat_map(|e| plain_loads(&e.action)) {
            forwarded[load.variable.index()] |= cells_of(program, load).any(|cell| delayed[cell as usize]);
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

/// The locations reachable from `from` over edges that `follow` accepts, including `from`.
pub fn reachable(thread: &Thread, from: LocationId, follow: impl Fn(&Action) -> bool) -> Vec<bool> {
    let mut seen = vec![false; thread.locations.len()];
    let mut work = vec![from];
    seen[from.index()] = true;
    while let Some(location) = work.pop() {
        for (_, edge) in thread.edges_from(location).filter(|(_, e)| follow(&e.action)) {
            if !std::mem::replace(&mut seen[edge.to.index()], true) {
                work.push(edge.to);
            }
        }
    }
    seen
}
