//! Versions up to their order. Versions are unbounded numbers: tags, version counters and identities. Only their relative order is stored, so that
//! there are finitely many states.
//!
//! The rules, and the proof that only the order matters, are in [`fencewright_certify::states::versions`]; the checker of certificates applies the
//! rules again. Which variables hold versions is guessed: each variable to which a store writes a computed value or which is initially unconstrained,
//! closed under data flow.
//!
//! A search with versions over-approximates, so it can only find proofs: a new version may or may not be equal to another one, and both cases are
//! explored.

use std::collections::BTreeSet;

use fencewright_certify::states::versions::{self, Misfit, Place, Start, Types, rename};
use fencewright_program::{BinaryOp, Expr, Init, Op, Program, Property};

use super::code::{Code, Slot};
use super::layout::{Growth, Layout, Sizes};

/// Maximum number of edges of a program in which versions are searched for.
const MOST_EDGES: usize = 5_000;
/// Maximum scale (a constant by which the program divides versions) that is tried.
const MOST_SCALE: i64 = 64;
/// Versions are searched for only in programs with at most this many variables.
const MOST_VARIABLES: usize = 64;

/// The slots of a packed state that hold versions.
pub struct Versions {
    /// The variables and registers of the program that hold versions, with their scales.
    pub of: versions::Versions,
    /// How the initial values of versions are ordered.
    pub start: Start,
    /// The slots of memory cells that hold versions, with their scales.
    cells: Vec<(Slot, i64)>,
    /// For each thread and location, the slots of registers that hold versions, with their scales.
    registers: Vec<Vec<Vec<(Slot, i64)>>>,
    /// For each thread, the scale of each kind of buffer entry; 0 if entries of this kind hold no versions.
    buffered: Vec<Vec<i64>>,
}

impl Versions {
    /// The versions of a program, if it has any. `live` contains the live registers of each location of each thread.
    pub fn new(
        program: &Program,
        properties: &[Property],
        code: &Code,
        live: &[Vec<Vec<u32>>],
    ) -> Option<Self> {
        let (of, types) = find(program, properties, live)?;
        of.check_exchanges(&types, code.orbits.families()).ok()?;
        let scale_of = |cell: usize| {
            let variable = program.variables.iter().position(|v| v.cells().contains(&cell));
            variable.map_or(0, |variable| of.variables[variable])
        };
        let cells = (0..program.cells()).map(|cell| (code.memory + cell as Slot, scale_of(cell)));
        let registers = live.iter().enumerate().map(|(t, live)| {
            let at = |(location, live): (usize, &Vec<u32>)| {
                let scales = live
                    .iter()
                    .map(|&r| (code.threads[t].registers[r as usize], types.scale(t, location, r as usize)));
                scales.filter(|(_, scale)| *scale > 0).collect()
            };
            live.iter().enumerate().map(at).collect()
        });
        let buffered = code.threads.iter().map(|thread| {
            let scales = thread.buffered_cells.iter().map(|&cell| scale_of(cell as usize));
            scales.chain([0]).collect()
        });
        let cells = cells.filter(|(_, scale)| *scale > 0).collect();
        let (registers, buffered) = (registers.collect(), buffered.collect());
        let start = of.start(program);
        Some(Versions { start, cells, registers, buffered, of })
    }

    /// Makes the slots wide enough for the usual number of versions.
    pub fn make_room(&self, sizes: &mut Sizes) {
        let registers = || self.registers.iter().flatten().flatten().copied();
        let slots: BTreeSet<(Slot, i64)> = self.cells.iter().copied().chain(registers()).collect();
        let most = 2 * slots.len() as i64 + 2;
        for (slot, scale) in slots {
            let bounds = &mut sizes.values[slot as usize];
            (bounds.low, bounds.high) = (bounds.low.min(0), bounds.high.max(scale * most));
            *bounds = bounds.rounded();
        }
    }
}

/// Renames the versions of packed states to a canonical form.
#[derive(Default)]
pub struct Renaming {
    fields: Vec<Part>,
    values: Vec<(i64, i64)>,
    order: Vec<i64>,
    image: Vec<u64>,
}

/// The position of a value in a packed state.
enum Part {
    Slot(Slot),
    Entry(usize, usize),
}

impl Renaming {
    fn collect(&mut self, versions: &Versions, code: &Code, layout: &Layout, state: &[u64]) {
        let Renaming { fields, values, .. } = self;
        fields.clear();
        values.clear();
        let mut add = |(slot, scale): (Slot, i64)| {
            fields.push(Part::Slot(slot));
            values.push((scale, layout.slots[slot as usize].get(state)));
        };
        versions.cells.iter().for_each(|&cell| add(cell));
        for (t, registers) in versions.registers.iter().enumerate() {
            let location = layout.slots[code.pc(t)].raw(state) as usize;
            registers[location].iter().for_each(|&register| add(register));
        }
        for (t, buffer) in layout.buffers.iter().enumerate() {
            for (n, (kind, value)) in buffer.entries[..buffer.count.get(state) as usize].iter().enumerate() {
                let scale = versions.buffered[t][kind.raw(state) as usize];
                if scale > 0 {
                    fields.push(Part::Entry(t, n));
                    values.push((scale, value.get(state)));
                }
            }
        }
    }

    /// Calls `visit` with all canonical states for a successor or an initial state. The error is a value that does not fit into the layout.
    pub fn images(
        &mut self,
        versions: &Versions,
        (code, layout): (&Code, &Layout),
        state: &[u64],
        initial: bool,
        visit: &mut impl FnMut(&[u64]),
    ) -> Result<(), Growth> {
        let places = [Place::Between, Place::Joined];
        for place in places.into_iter().take(if initial { 1 } else { 2 }) {
            self.collect(versions, code, layout, state);
            if !rename(&mut self.values, place, &mut self.order) {
                continue;
            }
            self.image.clear();
            self.image.extend_from_slice(state);
            for (part, &(_, value)) in self.fields.iter().zip(&self.values) {
                let (field, growth) = match *part {
                    Part::Slot(slot) => (layout.slots[slot as usize], Growth::Value(slot, value)),
                    Part::Entry(t, n) => {
                        (layout.buffers[t].entries[n].1, Growth::BufferValue(t as u32, value))
                    }
                };
                if !field.set(&mut self.image, value) {
                    return Err(growth);
                }
            }
            visit(&self.image);
        }
        Ok(())
    }
}

/// A quick test whether a program may have versions.
pub fn are_likely(program: &Program) -> bool {
    !seeds(program).is_empty()
}

/// Candidate groups of variables that hold versions. The first group is all initially unconstrained variables, because they may be compared with each
/// other. Every further group is a single variable: an initially unconstrained one (if there are several), or one to which a computed value is
/// stored.
fn seeds(program: &Program) -> Vec<Vec<usize>> {
    let is_any = |&v: &usize| program.variables[v].init.iter().any(|init| matches!(init, Init::Any(None)));
    let all = 0..program.variables.len();
    let any: Vec<usize> = all.clone().filter(is_any).collect();
    let single = all.filter(|v| any.len() > 1 && any.contains(v) || grows(program, *v)).map(|v| vec![v]);
    let single: Vec<Vec<usize>> = single.collect();
    std::iter::once(any).filter(|any| !any.is_empty()).chain(single).collect()
}

/// The versions of a program: grows greedily, by one candidate group after the other, as long as no rule for versions is broken. `None` if there are
/// none, or if the program is too large.
fn find(
    program: &Program,
    properties: &[Property],
    live: &[Vec<Vec<u32>>],
) -> Option<(versions::Versions, Types)> {
    let edges: usize = program.threads.iter().map(|t| t.edges.len()).sum();
    if edges > MOST_EDGES || program.variables.len() > MOST_VARIABLES {
        return None;
    }
    let none = versions::Versions {
        variables: vec![0; program.variables.len()],
        registers: program.threads.iter().map(|t| vec![0; t.registers.len()]).collect(),
    };
    let scales = scales(program);
    let mut found: Option<(versions::Versions, Types)> = None;
    for seeds in seeds(program) {
        let known = found.as_ref().map_or(&none, |(versions, _)| versions);
        if seeds.iter().any(|&v| known.variables[v] > 0) {
            continue;
        }
        let more = scales.iter().find_map(|&scale| {
            let mut guess = known.clone();
            seeds.iter().for_each(|&v| guess.variables[v] = scale);
            completed(program, properties, live, guess)
        });
        found = more.or(found);
    }
    found
}

/// Closes a guess under data flow; `None` if the guess breaks a rule for versions.
fn completed(
    program: &Program,
    properties: &[Property],
    live: &[Vec<Vec<u32>>],
    mut guess: versions::Versions,
) -> Option<(versions::Versions, Types)> {
    // The loop terminates because each round adds to the guess a variable or register that holds versions.
    loop {
        let scale = match Types::new(program, properties, live, &guess) {
            Ok(types) => return Some((guess, types)),
            Err(Misfit::Variable(v, scale)) => (&mut guess.variables[v], scale),
            Err(Misfit::Register(t, r, scale)) => (&mut guess.registers[t][r], scale),
            Err(Misfit::Other(_)) => return None,
        };
        if std::mem::replace(scale.0, scale.1) != 0 || scale.1 == 0 {
            return None;
        }
    }
}

/// Whether some store to a variable writes a computed value, neither a constant nor a copy.
fn grows(program: &Program, variable: usize) -> bool {
    let edges = program.threads.iter().flat_map(|t| &t.edges);
    edges.flat_map(|edge| edge.action.ops()).any(|op| match op {
        Op::Store(address, e) => {
            address.variable.index() == variable && e.constant().is_none() && !matches!(e, Expr::Leaf(_))
        }
        _ => false,
    })
}

/// The scales to try: 1 and the constants that the program divides by.
fn scales(program: &Program) -> BTreeSet<i64> {
    fn divisors<L>(e: &Expr<L>, found: &mut BTreeSet<i64>) {
        match e {
            Expr::Const(_) | Expr::Leaf(_) => {}
            Expr::Unary(_, operand) => divisors(operand, found),
            Expr::Binary(op, left, right) => {
                if matches!(op, BinaryOp::Div | BinaryOp::Rem) {
                    found.extend(right.constant().filter(|m| (1..=MOST_SCALE).contains(m)));
                }
                divisors(left, found);
                divisors(right, found);
            }
            Expr::If(condition, then, otherwise) => {
                [condition, then, otherwise].into_iter().for_each(|part| divisors(part, found));
            }
        }
    }
    let mut found = BTreeSet::from([1]);
    let edges = program.threads.iter().flat_map(|t| &t.edges);
    for op in edges.flat_map(|edge| edge.action.ops()) {
        if let Op::Assign(_, e) | Op::Assume(e) | Op::Assert(e, _) | Op::Store(_, e) = op {
            divisors(e, &mut found);
        }
    }
    found
}
