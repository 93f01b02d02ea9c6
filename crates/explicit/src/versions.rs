//! Versions up to their order: tags, version counters and identities without bound, of which finitely many orders are stored.
//!
//! The rules, and why only the order matters, are those of [`fencewright_certify::states::versions`]; the checker of certificates goes over them
//! again. Which variables hold versions is guessed: each one that a store makes a new version of, or that may be any number at the start,
//! and whatever has to hold versions then.
//!
//! A search with versions is one for proofs: where a new version may be equal to another one or not, both are followed, so that a state
//! that it reaches need not be reachable.

use std::collections::BTreeSet;

use fencewright_certify::states::versions::{self, Misfit, Place, Start, Types, rename};
use fencewright_program::{BinaryOp, Expr, Init, Op, Program, Property};

use super::code::{Code, Slot};
use super::layout::{Growth, Layout, Sizes};

/// Larger programs have no versions: to find them takes long.
const MOST_EDGES: usize = 5_000;
/// Scales beyond this one are not tried.
const MOST_SCALE: i64 = 64;
/// At most so many variables are tried.
const MOST_VARIABLES: usize = 64;

/// Where versions are in packed states.
pub struct Versions {
    /// Where they are in the program.
    pub of: versions::Versions,
    /// Where they start.
    pub start: Start,
    /// The slots of memory cells, with their scales.
    cells: Vec<(Slot, i64)>,
    /// The same for registers, for each thread and location.
    registers: Vec<Vec<Vec<(Slot, i64)>>>,
    /// For each thread the scale of each kind of buffer entry.
    buffered: Vec<Vec<i64>>,
}

impl Versions {
    /// The versions of a program, if it has any. `live`: the live registers of each location of each thread.
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

    /// Makes room for as many versions as there usually are.
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

/// Renames the versions of packed states.
#[derive(Default)]
pub struct Renaming {
    fields: Vec<Part>,
    values: Vec<(i64, i64)>,
    order: Vec<i64>,
    image: Vec<u64>,
}

/// Where a value is.
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

    /// Gives `visit` the states that stand for one that a step leads to, or for an initial one. An error says what the layout has no room for.
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

/// Whether a program may have versions, at first sight.
pub fn are_likely(program: &Program) -> bool {
    !seeds(program).is_empty()
}

/// Groups of variables whose values may be versions, at first sight: those that may be any number at the start, which may be compared with
/// each other, and all that a store computes something for.
fn seeds(program: &Program) -> Vec<Vec<usize>> {
    let is_any = |&v: &usize| program.variables[v].init.iter().any(|init| matches!(init, Init::Any(None)));
    let all = 0..program.variables.len();
    let any: Vec<usize> = all.clone().filter(is_any).collect();
    let single = all.filter(|v| any.len() > 1 && any.contains(v) || grows(program, *v)).map(|v| vec![v]);
    let single: Vec<Vec<usize>> = single.collect();
    std::iter::once(any).filter(|any| !any.is_empty()).chain(single).collect()
}

/// The versions of a program, as many as there are.
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

/// The guess with everything that has to hold versions too; nothing if it breaks the rules.
fn completed(
    program: &Program,
    properties: &[Property],
    live: &[Vec<Vec<u32>>],
    mut guess: versions::Versions,
) -> Option<(versions::Versions, Types)> {
    // Each round adds something.
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

/// Whether a store to a variable computes with numbers that are not all constants.
fn grows(program: &Program, variable: usize) -> bool {
    let edges = program.threads.iter().flat_map(|t| &t.edges);
    edges.flat_map(|edge| edge.action.ops()).any(|op| match op {
        Op::Store(address, e) => {
            address.variable.index() == variable && e.constant().is_none() && !matches!(e, Expr::Leaf(_))
        }
        _ => false,
    })
}

/// The scales to try: 1, and what the program divides by.
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
