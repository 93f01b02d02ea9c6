//! Translates states of the reduced program `P_M` to an invariant of the machine with bounded queues, so that a proof about `P_M` becomes a
//! certificate about `P`.
//!
//! A state of the queue machine is *encoded* by a state of `P_M`: the counts, cells of places and epochs (the number of barriers before each store)
//! describe the shape of the buffer, a *place* (the registers of `P_M` for one buffered store) in use has the value of the buffer entry, and all
//! other places and auxiliary registers are 0. `P_M` simulates the queue machine step by step, until an overflow. So let a set of states of `P_M` be
//! closed under steps and contain no overflow: then the queue machine states that are encoded by states of the set are closed under steps too. They
//! are the invariant: for each state of `P_M`, all shapes of buffers that agree with its counts, cells and epochs, with places replaced by buffer
//! entries. A count that the state does not constrain may have any value within the bound. The translation is not trusted: the invariant is checked
//! like any other.
//!
//! Of several locations of `P_M` that stand for one location of `P`, only the location that has the same number as in `P` is translated, because
//! every behaviour that is possible from another one is possible from this location too. The locations of a faulted thread are the exception: all of
//! them have new numbers in `P_M`, so all of them are translated.

use std::collections::{HashMap, HashSet};

use fencewright_memory::linear::{Constraint, Cube};
use fencewright_memory::{
    Bound, BufferMachine, BufferShape, Buffers, Cell, CellBounds, CellId, Control, Entry, Linear,
};
use fencewright_program::reference::Buffered;
use fencewright_program::{Bounds as ValueBounds, LocationId, Program, Range, RegisterId, ThreadId};
use fencewright_reduce::{Bounds, Queues, Reduced};
use fencewright_verdict::{Invariant, Limits, Reason};

use super::lift::stored;

/// Maximum number of cubes (conjunctions of constraints) of an invariant; checking more cubes is infeasible.
const MOST_CUBES: usize = 1 << 17;

/// The invariant of the queue machine that corresponds to these states of `P_M` under SC, given as cubes per control state.
pub fn invariant(
    program: &Program,
    reduced: &Reduced,
    properties: Vec<String>,
    states: &[(Control, Vec<Cube>)],
    limits: &Limits,
) -> Result<Invariant, Reason> {
    let buffers = Buffers::Queue { model: reduced.model, bound: bound(program, &reduced.bounds)? };
    let translation = Translation {
        program,
        reduced,
        from: BufferMachine::new(&reduced.program, Buffers::Sc),
        to: BufferMachine::new(program, buffers),
        stored: program.threads.iter().map(|thread| stored(program, thread)).collect(),
    };
    let mut found: HashMap<Control, HashSet<Cube>> = HashMap::new();
    let mut order: Vec<Control> = Vec::new();
    let mut many = 0;
    for (control, cubes) in states {
        let Some(locations) = translation.locations(control)? else { continue };
        for cube in cubes {
            limits.exceeded(0).map_or(Ok(()), Err)?;
            for (shapes, cube) in translation.cubes(cube)? {
                let control = Control { locations: locations.clone(), buffers: shapes, lock: control.lock };
                let known = found.entry(control.clone()).or_insert_with(|| {
                    order.push(control);
                    HashSet::new()
                });
                many += usize::from(known.insert(cube));
                if many > MOST_CUBES {
                    return Err(too_many());
                }
            }
        }
    }
    let states = order.into_iter().map(|control| {
        let mut cubes: Vec<Cube> = found.remove(&control).unwrap_or_default().into_iter().collect();
        cubes.sort_unstable();
        (control, cubes)
    });
    Ok(Invariant { buffers, properties, symmetry: Vec::new(), states: states.collect() })
}

fn too_many() -> Reason {
    Reason::Unsupported("the proof leaves too many shapes of buffers open".into(), None)
}

/// The bound of the queue machine that corresponds to these bounds of `P_M`; an error if the machine does not support it.
fn bound(program: &Program, bounds: &Bounds) -> Result<Bound, Reason> {
    let each = match bounds {
        Bounds::PerThread(k) => return Ok(Bound::Thread(*k)),
        Bounds::PerVariable(each) => each,
    };
    let of = |(variable, k): (&fencewright_program::Variable, &u32)| {
        u8::try_from(*k).ok().map(|k| variable.cells().map(move |_| k))
    };
    let cells: Option<Vec<_>> = program.variables.iter().zip(each).map(of).collect();
    let mut cells: Vec<u8> = cells.into_iter().flatten().flatten().collect();
    while cells.len() > 1 && cells[cells.len() - 2] == cells[cells.len() - 1] {
        cells.pop();
    }
    let bounds = CellBounds::new(&cells).or_else(|| cells.is_empty().then(|| CellBounds::new(&[0]))?);
    bounds
        .map(Bound::Cell)
        .ok_or_else(|| Reason::Unsupported("more than 64 memory cells with bounds of their own".into(), None))
}

struct Translation<'a> {
    program: &'a Program,
    reduced: &'a Reduced,
    from: BufferMachine<'a>,
    to: BufferMachine<'a>,
    /// For each thread, the memory cells that it stores to through its buffer.
    stored: Vec<Vec<u32>>,
}

/// The meaning of a register of `P_M` in a state of the queue machine.
#[derive(Clone, Copy)]
enum Meaning {
    Constant(i64),
    Cell(CellId),
}

/// A shape of a buffer, with the meanings of the registers of `P_M` that encode it.
#[derive(Clone)]
struct Content {
    shape: BufferShape,
    meanings: Vec<(CellId, Meaning)>,
    /// The values that each buffer entry may have: the declared range of its variable. A flush in `P_M` is a store, which assumes that the value is
    /// in range. A flush of the queue machine assumes nothing, because the value was checked when it was stored, so the invariant has to state the
    /// range.
    ranges: Vec<(CellId, ValueBounds)>,
}

impl Translation<'_> {
    /// The locations of the threads of `P`; an error if some thread is at its overflow location. `None` if this control state is left out because a
    /// thread is at a duplicate of a location, or at the fault location of `P_M`. No action of `P_M` faults, because `P_M` tests for faults first;
    /// the machine reaches the fault location only where it over-approximates a test that is not linear.
    fn locations(&self, control: &Control) -> Result<Option<Vec<LocationId>>, Reason> {
        let mut locations = Vec::with_capacity(control.locations.len());
        for (t, code) in self.program.threads() {
            let here = control.locations[t.index()];
            let Some(original) = self.reduced.original_location(t, here) else {
                return Err(Reason::BufferBound(bound(self.program, &self.reduced.bounds)?));
            };
            let beyond_checks = here == self.reduced.program.thread(t).fault;
            if beyond_checks || here != original && original != code.fault {
                return Ok(None);
            }
            locations.push(original);
        }
        Ok(Some(locations))
    }

    /// A cube about `P_M` as cubes about the queue machine, each with the shapes of the buffers in the states that it describes.
    fn cubes(&self, cube: &Cube) -> Result<Vec<(Vec<BufferShape>, Cube)>, Reason> {
        let constrained = ranges(cube);
        let mut chosen: Vec<Vec<Content>> = vec![Vec::new()];
        for (t, _) in self.program.threads() {
            let contents = self.contents(t, &constrained)?;
            if chosen.len().saturating_mul(contents.len()) > MOST_CUBES {
                return Err(too_many());
            }
            let with = |before: &Vec<Content>| -> Vec<Vec<Content>> {
                contents.iter().map(|content| [&before[..], std::slice::from_ref(content)].concat()).collect()
            };
            chosen = chosen.iter().flat_map(with).collect();
        }
        let mut cubes = Vec::new();
        for contents in chosen {
            let meanings = contents.iter().flat_map(|content| content.meanings.iter().copied()).collect();
            if let Some(mut cube) = self.translated(cube, &meanings)? {
                let known = ranges(&cube);
                for &(entry, declared) in contents.iter().flat_map(|content| &content.ranges) {
                    let (low, high) = known.get(&entry).copied().unwrap_or((i64::MIN, i64::MAX));
                    cube.extend(within(declared.beyond(Range { low, high }.into()), entry));
                }
                cube.sort_unstable();
                cube.dedup();
                cubes.push((contents.into_iter().map(|content| content.shape).collect(), cube));
            }
        }
        Ok(cubes)
    }

    /// A cube in terms of the queue machine; `None` if one of its constraints becomes false there.
    fn translated(&self, cube: &Cube, meanings: &HashMap<CellId, Meaning>) -> Result<Option<Cube>, Reason> {
        let overflow = || Reason::Unsupported("numbers of a proof beyond 64 bits".into(), None);
        let mut translated = Cube::with_capacity(cube.len());
        for constraint in cube {
            let form = constraint.form();
            let mut sum = Linear::constant(form.constant);
            for &(cell, coefficient) in &form.terms {
                let meaning = meanings.get(&cell).copied();
                let term = match meaning
                    .unwrap_or_else(|| Meaning::Cell(self.to.cells.id(self.from.cells.cell(cell))))
                {
                    Meaning::Constant(value) => value.checked_mul(coefficient).map(Linear::constant),
                    Meaning::Cell(cell) => Linear::cell(cell).scaled(coefficient),
                };
                sum = term.and_then(|term| sum.plus(&term)).ok_or_else(overflow)?;
            }
            let holds = match (sum.terms.is_empty(), constraint) {
                (false, _) => None,
                (true, Constraint::AtMost(_)) => Some(sum.constant <= 0),
                (true, Constraint::Multiple(_, modulus)) => Some(sum.constant.rem_euclid(*modulus) == 0),
            };
            match holds {
                Some(true) => {}
                Some(false) => return Ok(None),
                None => translated.push(constraint.about(sum)),
            }
        }
        Ok(Some(translated))
    }

    /// All contents of the buffer of a thread that these ranges allow.
    fn contents(&self, t: ThreadId, ranges: &HashMap<CellId, (i64, i64)>) -> Result<Vec<Content>, Reason> {
        let within = |register: RegisterId, value: i64| {
            let range = ranges.get(&self.from.cells.id(Cell::Register(t, register)));
            range.is_none_or(|&(low, high)| low <= value && value <= high)
        };
        let registers = self.reduced.program.thread(t).registers.len();
        // All assignments to the registers that determine the shape.
        let mut ways: Vec<Vec<i64>> = vec![vec![0; registers]];
        let choose = |ways: Vec<Vec<i64>>, register: RegisterId, values: &[i64]| {
            let values: Vec<i64> = values.iter().copied().filter(|&value| within(register, value)).collect();
            if ways.len().saturating_mul(values.len()) > MOST_CUBES {
                return Err(too_many());
            }
            let with = |way: &Vec<i64>| -> Vec<Vec<i64>> {
                let set = |&value: &i64| {
                    let mut way = way.clone();
                    way[register.index()] = value;
                    way
                };
                values.iter().map(set).collect()
            };
            Ok(ways.iter().flat_map(with).collect())
        };
        let queues = self.reduced.queues(t);
        let values: Vec<RegisterId> = match queues {
            Queues::Tso(queue) => {
                let counts: Vec<i64> = (0..=queue.values.len() as i64).collect();
                let targets: Vec<i64> = self.stored[t.index()].iter().map(|&cell| cell.into()).collect();
                let Some(count) = queue.count else { return Ok(vec![self.content(t, &ways[0])]) };
                let mut all = Vec::new();
                for &filled in counts.iter().filter(|&&filled| within(count, filled)) {
                    let mut some = choose(ways.clone(), count, &[filled])?;
                    for (n, &cell) in queue.cells.iter().enumerate() {
                        some = choose(some, cell, if (n as i64) < filled { &targets } else { &[0] })?;
                    }
                    all.extend(some);
                }
                ways = all;
                queue.values.clone()
            }
            Queues::Pso { cells, epoch } => {
                let most = cells.iter().map(|queue| queue.values.len() as i64).sum::<i64>();
                let epochs: Vec<i64> = (0..=most).collect();
                if let Some(epoch) = epoch {
                    ways = choose(ways, *epoch, &epochs)?;
                }
                for queue in cells {
                    let mut all = Vec::new();
                    for filled in 0..=queue.values.len() {
                        let mut some = choose(ways.clone(), queue.count, &[filled as i64])?;
                        for (n, &own) in queue.epochs.iter().enumerate() {
                            some = choose(some, own, if n < filled { &epochs } else { &[0] })?;
                        }
                        all.extend(some);
                    }
                    ways = all;
                }
                ways.retain(|way| is_regular(queues, way));
                cells.iter().flat_map(|queue| queue.values.iter().copied()).collect()
            }
        };
        if let (Bounds::PerThread(k), Queues::Pso { cells, .. }) = (&self.reduced.bounds, queues) {
            let stores = |way: &Vec<i64>| cells.iter().map(|queue| way[queue.count.index()]).sum::<i64>();
            ways.retain(|way| stores(way) <= i64::from(*k));
        }
        // The value of each place is the index of its register, so that `content` can tell which place becomes which buffer entry.
        for way in &mut ways {
            values.iter().for_each(|value| way[value.index()] = value.0.into());
        }
        Ok(ways.iter().map(|way| self.content(t, way)).collect())
    }

    /// The content encoded by registers with these values, where the value of each place is the index of its register.
    fn content(&self, t: ThreadId, way: &[i64]) -> Content {
        let queues = self.reduced.queues(t);
        let new = self.reduced.original_registers(t)..way.len();
        let cell = |register: usize| self.from.cells.id(Cell::Register(t, RegisterId(register as u32)));
        let mut meanings: HashMap<CellId, Meaning> =
            new.map(|register| (cell(register), Meaning::Constant(way[register]))).collect();
        let places: Vec<RegisterId> = match queues {
            Queues::Tso(queue) => queue.values.clone(),
            Queues::Pso { cells, .. } => cells.iter().flat_map(|queue| queue.values.clone()).collect(),
        };
        places.iter().for_each(|place| _ = meanings.insert(cell(place.index()), Meaning::Constant(0)));
        let (mut shape, mut ranges) = (BufferShape::default(), Vec::new());
        for (position, entry) in queues.contents(way).into_iter().enumerate() {
            shape.queue.push(match entry {
                Buffered::Barrier => Entry::Barrier,
                Buffered::Store { cell: target, value } => {
                    let entry = self.to.cells.id(Cell::Entry(t, position as u32));
                    meanings.insert(cell(value as usize), Meaning::Cell(entry));
                    let declared = self.program.variable_of(target).range;
                    ranges.push((entry, self.program.writable(declared)));
                    Entry::Store(target)
                }
            });
        }
        Content { shape, meanings: meanings.into_iter().collect(), ranges }
    }
}

/// The constraints that the value of a cell satisfies these bounds. A bound that no 64-bit constraint expresses is left out.
fn within(bounds: ValueBounds, cell: CellId) -> Cube {
    let value = Linear::cell(cell);
    let difference = |from: Option<Linear>, bound: Option<i64>, sign: i64| {
        let constant = Linear::constant(bound?.checked_mul(sign)?);
        from?.plus(&constant).map(Constraint::AtMost)
    };
    let least = difference(value.scaled(-1), bounds.low, 1);
    let most = difference(Some(value), bounds.high, -1);
    least.into_iter().chain(most).collect()
}

/// Whether epochs are consistent: stores to a memory cell are ordered by epoch, no epoch is later than that of the next store, and every epoch before
/// that one contains a store.
fn is_regular(queues: &Queues, way: &[i64]) -> bool {
    let Queues::Pso { cells, epoch: Some(next) } = queues else { return true };
    let next = way[next.index()];
    let mut used: Vec<i64> = Vec::new();
    for queue in cells {
        let filled = way[queue.count.index()] as usize;
        let epochs: Vec<i64> = queue.epochs.iter().take(filled).map(|epoch| way[epoch.index()]).collect();
        if !epochs.is_sorted() || epochs.iter().any(|&epoch| epoch > next) {
            return false;
        }
        used.extend(epochs);
    }
    (0..next).all(|epoch| used.contains(&epoch))
}

/// The ranges of cells implied by constraints on single cells with coefficient 1 or -1.
fn ranges(cube: &Cube) -> HashMap<CellId, (i64, i64)> {
    let mut ranges: HashMap<CellId, (i64, i64)> = HashMap::new();
    for constraint in cube {
        let (Constraint::AtMost(form), [(cell, coefficient)]) = (constraint, &constraint.form().terms[..])
        else {
            continue;
        };
        let range = ranges.entry(*cell).or_insert((i64::MIN, i64::MAX));
        match (coefficient, form.constant.checked_neg()) {
            (1, Some(most)) => range.1 = range.1.min(most),
            (-1, _) => range.0 = range.0.max(form.constant),
            _ => {}
        }
    }
    ranges
}

#[cfg(test)]
mod tests;
