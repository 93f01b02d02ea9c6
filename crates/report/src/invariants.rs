//! The facts that an invariant proves at each program point, in the names of the program.
//!
//! A control state consists of the locations of all threads, and a certificate has one invariant for each control state. For a location of one
//! thread, the invariants of all control states with the thread at this location are joined: the result is the strongest bounds on differences
//! between memory cells and the thread's own registers that hold in all of these control states. A certificate up to symmetry has only one control
//! state of each orbit, so its facts are transferred between the threads of a class.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use fencewright_certify::symmetry::Permutation;
use fencewright_certify::{Certificate, Claim, InductiveInvariant, Proof};
use fencewright_lang::source::escape;
use fencewright_memory::linear::{Constraint, Cube};
use fencewright_memory::{BufferMachine, Cell, CellId};
use fencewright_program::{LocationId, Program, Thread, ThreadId};
use fencewright_transform::extend::Extended;
use fencewright_transform::separated::stores_are_separated;

use crate::words::Source;

/// A difference-bound matrix: entry (i, j) is an upper bound on cell i minus cell j. Index 0 is the constant 0.
#[derive(Clone)]
pub(crate) struct Bounds {
    size: usize,
    entries: Vec<Option<i64>>,
}

impl Bounds {
    pub(crate) fn get(&self, i: usize, j: usize) -> Option<i64> {
        self.entries[i * self.size + j]
    }

    fn tighten(&mut self, i: usize, j: usize, c: i64) {
        let entry = &mut self.entries[i * self.size + j];
        *entry = Some(entry.map_or(c, |known| known.min(c)));
    }
}

/// The executions that a proof is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executions {
    /// All executions of the memory model.
    All,
    /// The executions under SC. The program is robust, so every execution is one of these, up to the order of independent steps.
    UnderSc,
    /// The executions in which each choice takes one of a few values. These values suffice to decide the property.
    WithFewerValues,
}

impl Executions {
    /// The restriction to mention before the facts; `None` if they hold for all executions.
    pub fn remark(self) -> Option<&'static str> {
        match self {
            Executions::All => None,
            Executions::UnderSc => Some("the program is robust: under sc it does the same; proved of that"),
            Executions::WithFewerValues => {
                Some("fewer values of `*` are enough to decide this; proved of those")
            }
        }
    }
}

/// The facts that hold whenever a thread is at a point.
pub struct Point {
    /// The thread that the facts are about.
    pub thread: ThreadId,
    /// The location at which the facts hold.
    pub location: LocationId,
    /// The facts, in the names of the program; empty if the invariants imply none.
    pub facts: Vec<String>,
}

/// The proof of a certificate, if the proof's program points are those of this program. This is so for four kinds of claims: a plain safety claim; a
/// PSO claim about a program with separated stores, whose proof is about TSO; a claim about a robust program that was proved under SC without being
/// extended; and a claim about a program whose choices were narrowed.
pub fn about_itself<'c>(source: Source<'_>, certificate: &'c Certificate) -> Option<(&'c Proof, Executions)> {
    let (mut claim, mut is_narrowed) = (&certificate.claim, false);
    loop {
        claim = match claim {
            Claim::Reordered { tso } if stores_are_separated(source.program) => tso,
            Claim::Narrowed { fewer } => {
                is_narrowed = true;
                fewer
            }
            _ => break,
        };
    }
    let (proof, executions) = match (claim, &certificate.proofs[..]) {
        (Claim::Safe { .. }, [proof]) => (proof, Executions::All),
        (Claim::Lazy { extensions, .. }, [proof, ..])
            if extensions.is_empty() && is_extended_by_nothing(source.program) =>
        {
            (proof, Executions::UnderSc)
        }
        _ => return None,
    };
    let executions = if is_narrowed { Executions::WithFewerValues } else { executions };
    has_its_points(source, proof).then_some((proof, executions))
}

/// Whether engine `lazy` leaves the control-flow graphs unchanged when it delays no stores. It changes them if it has to split steps that may
/// fault.
fn is_extended_by_nothing(program: &Program) -> bool {
    let size = |thread: &Thread| (thread.locations.len(), thread.edges.len(), thread.registers.len());
    Extended::new(program)
        .is_ok_and(|extended| program.threads.iter().map(size).eq(extended.program.threads.iter().map(size)))
}

/// Whether the threads and locations that a proof names exist in the program, and, for a set of states, its cells and registers too.
fn has_its_points(source: Source<'_>, proof: &Proof) -> bool {
    let threads = &source.program.threads;
    match proof {
        Proof::Invariant(proof) => proof.states.iter().all(|state| {
            let places = state.locations.iter().zip(threads);
            state.locations.len() == threads.len()
                && places.into_iter().all(|(at, thread)| (*at as usize) < thread.locations.len())
        }),
        Proof::States(set) => {
            let registers = set.layout.registers.iter().zip(threads);
            let live = set.live.iter().zip(threads);
            set.layout.locations.len() == threads.len()
                && set.layout.memory.len() == source.program.cells()
                && registers.into_iter().all(|(fields, thread)| fields.len() == thread.registers.len())
                && live.into_iter().all(|(live, thread)| live.len() == thread.locations.len())
        }
    }
}

/// The invariants of a certificate as text, one line for each reachable program point.
pub fn invariants(source: Source<'_>, certificate: &Certificate) -> String {
    let Some((proof, executions)) = about_itself(source, certificate) else {
        return "  the proof is about other programs, made from this one: its points are not those of this program\n".into();
    };
    let Proof::Invariant(proof) = proof else {
        return "  the proof is the set of all states that can be reached, not an invariant; --engine cegar looks for one\n".into();
    };
    let mut text = format!("  {}, for each point of each thread:\n", executions.remark().unwrap_or("proved"));
    for Point { thread, location, facts } in points(source, proof) {
        let place = source.place(thread, location);
        let name = escape(&source.program.thread(thread).name);
        let facts =
            if facts.is_empty() { "nothing about its own cells".to_string() } else { facts.join(", ") };
        let _ = writeln!(text, "    {name} {}: {}", escape(&place), escape(&facts));
    }
    text
}

/// The facts of an invariant at each point of each thread.
pub fn points(source: Source<'_>, proof: &InductiveInvariant) -> Vec<Point> {
    let machine = BufferMachine::new(source.program, proof.machine.buffers());
    let point = |((thread, location), (cells, bounds)): ((usize, LocationId), (Vec<CellId>, Bounds))| {
        let facts = facts(&machine, &cells, &bounds);
        Point { thread: ThreadId(thread as u32), location, facts }
    };
    bounds_at_points(&machine, proof).into_iter().map(point).collect()
}

/// The joined bounds at each point of each thread, on the cells that are shown there.
pub(crate) fn bounds_at_points(
    machine: &BufferMachine<'_>,
    proof: &InductiveInvariant,
) -> BTreeMap<(usize, LocationId), (Vec<CellId>, Bounds)> {
    let threads = machine.program.threads.len();
    let alike = |thread: usize| {
        let class = proof.symmetry.iter().find(|class| class.contains(&(thread as u32)));
        class.map_or_else(|| vec![thread], |class| class.iter().map(|&t| t as usize).collect())
    };
    let mut points: BTreeMap<(usize, LocationId), (Vec<CellId>, Bounds)> = BTreeMap::new();
    for state in &proof.states {
        let cubes = state.cubes();
        for (there, location) in state.control().locations.into_iter().enumerate() {
            for thread in alike(there) {
                let cells = cells_of(machine, thread);
                let exchange = Permutation::exchange(threads, thread, there);
                let seen: Vec<CellId> = cells.iter().map(|&c| exchange.before(&machine.cells, c)).collect();
                for cube in &cubes {
                    let bounds = closed(cube, &seen);
                    points
                        .entry((thread, location))
                        .and_modify(|(_, known)| join(known, &bounds))
                        .or_insert_with(|| (cells.clone(), bounds));
                }
            }
        }
    }
    points
}

/// All memory cells, and the registers of a thread that have names in the source.
fn cells_of(machine: &BufferMachine<'_>, thread: usize) -> Vec<CellId> {
    let interesting = |cell: &CellId| match machine.cells.cell(*cell) {
        Cell::Memory(_) => true,
        Cell::Register(t, r) => {
            t.index() == thread && !machine.program.thread(t).registers[r.index()].name.starts_with('%')
        }
        Cell::Entry(..) | Cell::Last(..) | Cell::Forgotten(..) => false,
    };
    (0..machine.cells.len() as CellId).filter(interesting).collect()
}

/// The tightest bounds on differences between the `wanted` cells that follow from a cube: the closure of its difference constraints by
/// Floyd-Warshall.
fn closed(cube: &Cube, wanted: &[CellId]) -> Bounds {
    let mut cells: Vec<CellId> = wanted.to_vec();
    let mut edges = Vec::new();
    for linear in cube.iter().filter_map(Constraint::at_most) {
        let mut index = |cell: CellId| match cells.iter().position(|&c| c == cell) {
            Some(n) => n + 1,
            None => {
                cells.push(cell);
                cells.len()
            }
        };
        let Some((x, y)) = linear.difference().filter(|_| !linear.terms.is_empty()) else { continue };
        let edge = (x.map_or(0, &mut index), y.map_or(0, &mut index));
        edges.extend(linear.constant.checked_neg().map(|c| (edge, c)));
    }
    let size = cells.len() + 1;
    let mut bounds = Bounds { size, entries: vec![None; size * size] };
    (0..size).for_each(|i| bounds.tighten(i, i, 0));
    edges.into_iter().for_each(|((i, j), c)| bounds.tighten(i, j, c));
    for k in 0..size {
        for i in 0..size {
            let Some(first) = bounds.get(i, k) else { continue };
            for j in 0..size {
                if let Some(sum) = bounds.get(k, j).and_then(|second| first.checked_add(second)) {
                    bounds.tighten(i, j, sum);
                }
            }
        }
    }
    let small = wanted.len() + 1;
    let entries = (0..small).flat_map(|i| (0..small).map(move |j| (i, j))).map(|(i, j)| bounds.get(i, j));
    Bounds { size: small, entries: entries.collect() }
}

/// Joins two sets of bounds: for each pair of cells, keeps the weaker bound.
fn join(known: &mut Bounds, other: &Bounds) {
    for (bound, other) in known.entries.iter_mut().zip(&other.entries) {
        *bound = bound.zip(*other).map(|(a, b)| a.max(b));
    }
}

/// Bounds as facts: values, ranges, and those differences that the ranges do not imply.
fn facts(machine: &BufferMachine<'_>, cells: &[CellId], bounds: &Bounds) -> Vec<String> {
    facts_about(machine, cells, bounds).into_iter().map(|(_, fact)| fact).collect()
}

/// Like [`facts`], but each fact comes with the one or two cells that it mentions.
pub(crate) fn facts_about(
    machine: &BufferMachine<'_>,
    cells: &[CellId],
    bounds: &Bounds,
) -> Vec<(Vec<CellId>, String)> {
    let name = |n: usize| machine.cells.name(machine.program, cells[n - 1]);
    let mut facts = Vec::new();
    for n in 1..=cells.len() {
        let fact = range_of(&name(n), bounds.get(0, n).and_then(i64::checked_neg), bounds.get(n, 0));
        facts.extend(fact.map(|fact| (vec![cells[n - 1]], fact)));
    }
    let follows = |i: usize, j: usize, c: i64| {
        bounds.get(i, 0).zip(bounds.get(0, j)).is_some_and(|(a, b)| a.saturating_add(b) <= c)
    };
    for i in 1..=cells.len() {
        for j in 1..=cells.len() {
            let Some(c) = bounds.get(i, j).filter(|&c| i != j && !follows(i, j, c)) else { continue };
            let equal = bounds.get(j, i) == Some(-c);
            let relation = match (equal, c) {
                (true, _) if i > j => continue,
                (true, 0) => format!("{} == {}", name(i), name(j)),
                (true, c) if c > 0 => format!("{} == {} + {c}", name(i), name(j)),
                (true, c) => format!("{} == {} - {}", name(i), name(j), -c),
                (false, 0) => format!("{} <= {}", name(i), name(j)),
                (false, -1) => format!("{} < {}", name(i), name(j)),
                (false, c) if c > 0 => format!("{} <= {} + {c}", name(i), name(j)),
                (false, c) => format!("{} <= {} - {}", name(i), name(j), -c),
            };
            facts.push((vec![cells[i - 1], cells[j - 1]], relation));
        }
    }
    facts
}

/// The bounds of one cell as a fact; `None` if there are no bounds.
pub(crate) fn range_of(name: &str, low: Option<i64>, high: Option<i64>) -> Option<String> {
    match (low, high) {
        (Some(low), Some(high)) if low == high => Some(format!("{name} == {low}")),
        (Some(low), Some(high)) => Some(format!("{low} <= {name} <= {high}")),
        (Some(low), None) => Some(format!("{name} >= {low}")),
        (None, Some(high)) => Some(format!("{name} <= {high}")),
        (None, None) => None,
    }
}
