//! Every machine over-approximates the reference semantics: along random executions of random programs, each step of the
//! reference semantics is matched by a step of the machine that leads to a related state.

use std::collections::{BTreeMap, BTreeSet};

use fencewright_executions::oracle;
use fencewright_memory::{
    BufferMachine, BufferShape, Buffers, Cell, CellId, Command, Control, Entry, Kept, Outcome, Step,
    Summarised,
};
use fencewright_program::reference::{Buffered, Refusal};
use fencewright_program::{
    Event, EventKind, Expr, MemoryModel, Program, Reference, RegisterId, State, ThreadId,
};
use fencewright_testing::bounds::{bound, exceeds};
use fencewright_testing::{Random, Shape, program};

/// A state of a machine: control, the values of ordinary cells, and the set of values of each summary cell.
#[derive(Clone, Debug)]
struct Pair {
    control: Control,
    cells: Vec<i64>,
    summaries: BTreeMap<CellId, BTreeSet<i64>>,
}

fn value(e: &Expr<u32>, cells: &[i64]) -> Option<i64> {
    e.eval(&mut |c| cells[*c as usize]).ok()
}

/// Runs the commands of a step; a `*` takes the value that the cell has in `wanted`, or else the next chosen one.
fn run(
    machine: &BufferMachine<'_>,
    step: &Step,
    from: &Pair,
    wanted: &[i64],
    chosen: &[i64],
) -> Option<Pair> {
    let mut cells = from.cells.clone();
    let mut summaries = from.summaries.clone();
    let mut chosen = chosen.iter();
    let value = |e: &Expr<CellId>, cells: &[i64]| {
        e.for_each_leaf(&mut |c| assert!(!machine.cells.is_summary(*c), "{step:?} reads a summary"));
        value(e, cells)
    };
    for command in &step.commands {
        match command {
            Command::Assign(cell, e) if machine.cells.is_summary(*cell) => {
                summaries.insert(*cell, BTreeSet::from([value(e, &cells)?]));
            }
            Command::Fold(summary, e) => {
                let stands_for = summaries.get_mut(summary).expect("the first value is assigned");
                stands_for.insert(value(e, &cells)?);
            }
            Command::Expand(cell, summary) => {
                cells[*cell as usize] = wanted[*cell as usize];
                if !summaries[summary].contains(&cells[*cell as usize]) {
                    return None;
                }
            }
            Command::Assume(e) => {
                if value(e, &cells)? == 0 {
                    return None;
                }
            }
            Command::Assign(cell, e) => cells[*cell as usize] = value(e, &cells)?,
            Command::Havoc(cell) => {
                cells[*cell as usize] = match machine.cells.cell(*cell) {
                    Cell::Register(..) => *chosen.next()?,
                    _ => wanted[*cell as usize],
                }
            }
        }
    }
    match &step.outcome {
        Outcome::Control(control) => Some(Pair { control: control.clone(), cells, summaries }),
        Outcome::Beyond(..) => None,
    }
}

/// The memory and registers of a state as cells of the machine; all other cells are 0.
fn cells_of(machine: &BufferMachine<'_>, state: &State) -> Vec<i64> {
    let mut cells = vec![0; machine.cells.len()];
    cells[..state.memory.len()].copy_from_slice(&state.memory);
    for (t, registers) in state.registers.iter().enumerate() {
        for (r, &v) in registers.iter().enumerate() {
            cells[machine.cells.id(Cell::Register(ThreadId(t as u32), RegisterId(r as u32))) as usize] = v;
        }
    }
    cells
}

/// Whether a state of the machine abstracts this state of the reference semantics.
fn related(machine: &BufferMachine<'_>, pair: &Pair, state: &State) -> bool {
    let exact = cells_of(machine, state);
    let data = (0..machine.cells.len() as u32).all(|c| match machine.cells.cell(c) {
        Cell::Memory(_) | Cell::Register(..) => pair.cells[c as usize] == exact[c as usize],
        Cell::Entry(..) | Cell::Last(..) | Cell::Forgotten(..) => true,
    });
    data && pair.control.locations == state.locations
        && pair.control.lock == state.lock
        && pair
            .control
            .buffers
            .iter()
            .enumerate()
            .all(|(t, shape)| represents(machine, ThreadId(t as u32), shape, pair, &state.buffers[t]))
}

/// Whether a buffer is one of those that a shape with these values stands for.
fn represents(
    machine: &BufferMachine<'_>,
    t: ThreadId,
    shape: &BufferShape,
    Pair { cells, summaries, .. }: &Pair,
    buffer: &[Buffered],
) -> bool {
    let pso = machine.buffers.model() == MemoryModel::Pso;
    let oldest_kept = !matches!(machine.buffers, Buffers::Partial { kept: Kept::Newest, .. });
    let stores = |wanted: Option<u32>| -> Vec<(u32, i64)> {
        let all = buffer.iter().filter_map(|e| match e {
            Buffered::Store { cell, value } => Some((*cell, *value)),
            Buffered::Barrier => None,
        });
        all.filter(|(c, _)| wanted.is_none_or(|w| w == *c)).collect()
    };
    let ordered = |wanted: Option<u32>| -> Vec<(u32, i64)> {
        let entry = |(p, e): (usize, &Entry)| match e {
            Entry::Store(c) => Some((*c, cells[machine.cells.id(Cell::Entry(t, p as u32)) as usize])),
            Entry::Barrier => None,
        };
        let all = shape.queue.iter().enumerate().filter_map(entry);
        all.filter(|(c, _)| wanted.is_none_or(|w| w == *c)).collect()
    };
    // Under TSO the whole buffer is one queue; under PSO there is one queue per memory cell.
    let parts: Vec<Option<u32>> =
        if pso { (0..machine.program.cells() as u32).map(Some).collect() } else { vec![None] };
    parts.into_iter().all(|part| {
        let (exact, kept) = (stores(part), ordered(part));
        if kept.len() > exact.len() {
            return false;
        }
        let (in_order, forgotten) = match oldest_kept {
            true => exact.split_at(kept.len()),
            false => {
                let (forgotten, in_order) = exact.split_at(exact.len() - kept.len());
                (in_order, forgotten)
            }
        };
        let set: Vec<u32> = shape.set.iter().copied().filter(|&c| part.is_none_or(|p| p == c)).collect();
        in_order == kept
            && forgotten.iter().all(|(c, _)| set.contains(c))
            && set.iter().all(|&c| {
                let newest = forgotten.iter().rev().find(|(x, _)| *x == c);
                newest.is_some_and(|(_, v)| cells[machine.cells.id(Cell::Last(t, c)) as usize] == *v)
            })
            && forgotten
                .iter()
                .filter(|(c, _)| summarised(machine, *c))
                .all(|(c, v)| summaries[&machine.cells.id(Cell::Forgotten(t, *c))].contains(v))
    })
}

fn summarised(machine: &BufferMachine<'_>, cell: u32) -> bool {
    matches!(machine.buffers, Buffers::Partial { summaries, .. } if summaries.contains(cell))
}

/// The machine's state after a step that matches the event, and whether a value was read from a summary.
fn matched(machine: &BufferMachine<'_>, pair: &Pair, event: &Event, next: &State) -> Option<(Pair, bool)> {
    let wanted = cells_of(machine, next);
    let steps = machine.steps(&pair.control);
    let same = |step: &&Step| match &event.kind {
        EventKind::Step { edge, .. } => step.name.edge == Some(*edge) && step.name.thread == event.thread,
        EventKind::Flush { cell } => step.name.flushed == Some(*cell) && step.name.thread == event.thread,
    };
    let chosen: &[i64] = match &event.kind {
        EventKind::Step { chosen, .. } => chosen,
        EventKind::Flush { .. } => &[],
    };
    let expands = |step: &Step| step.commands.iter().any(|c| matches!(c, Command::Expand(..)));
    let mut results = steps
        .iter()
        .filter(same)
        .filter_map(|step| Some((run(machine, step, pair, &wanted, chosen)?, expands(step))));
    results.find(|(result, _)| related(machine, result, next))
}

/// Whether a step of the machine reports that this event leads to a state that the machine cannot represent.
fn leaves(machine: &BufferMachine<'_>, pair: &Pair, event: &Event) -> bool {
    let EventKind::Step { edge, chosen } = &event.kind else { return false };
    let steps = machine.steps(&pair.control);
    let mut same = steps.iter().filter(|s| s.name.edge == Some(*edge) && s.name.thread == event.thread);
    same.any(|step| {
        // Only whether the commands can be performed matters, so any target state will do.
        let outcome = Outcome::Control(pair.control.clone());
        matches!(step.outcome, Outcome::Beyond(..))
            && run(machine, &Step { outcome, ..step.clone() }, pair, &pair.cells, chosen).is_some()
    })
}

/// Counts of what the random walks covered.
#[derive(Default)]
struct Met {
    /// Steps compared.
    steps: usize,
    /// Steps compared that read a value from a summary.
    expanded: usize,
    /// Steps that leave the window of an open array.
    outside: usize,
    /// Stores that did not fit into a buffer.
    overflows: usize,
}

fn walk(seed: u64, program: &Program, buffers: Buffers, random: &mut Random, met: &mut Met) {
    let machine = BufferMachine::new(program, buffers);
    let model = buffers.model();
    let reference = Reference::new(program, model);
    let Ok(first) = oracle::initial_states(&reference, 100, &mut || false) else { return };
    let mut state = random.pick(&first).clone();
    let mut pair =
        Pair { control: machine.initial(), cells: cells_of(&machine, &state), summaries: BTreeMap::new() };
    assert!(related(&machine, &pair, &state));
    for _ in 0..40 {
        let mut possible = Vec::new();
        for event in reference.candidates(&state, &[]) {
            match reference.step(&state, &event) {
                Ok((next, _)) => possible.push((event, next)),
                Err(Refusal::Disabled(_)) => {}
                Err(Refusal::Limit(..)) => {
                    assert!(
                        leaves(&machine, &pair, &event),
                        "seed {seed}, {buffers:?}: {event:?} is not reported"
                    );
                    met.outside += 1;
                }
            }
        }
        if possible.is_empty() {
            break;
        }
        // Flushes are enabled so often that buffers would rarely fill up; so up to two times another event is drawn in place of a flush.
        let mut choice = random.pick(&possible).clone();
        for _ in 0..2 {
            if matches!(choice.0.kind, EventKind::Flush { .. }) {
                choice = random.pick(&possible).clone();
            }
        }
        let (event, next) = choice;
        if matches!(buffers, Buffers::Queue { bound, .. } if exceeds(&next, bound)) {
            met.overflows += 1;
            let beyond =
                machine.steps(&pair.control).iter().any(|s| matches!(s.outcome, Outcome::Beyond(..)));
            assert!(beyond, "seed {seed}, {buffers:?}: an overflow that is not reported");
            break;
        }
        match matched(&machine, &pair, &event, &next) {
            Some((result, expanded)) => {
                pair = result;
                met.expanded += expanded as usize;
            }
            None => panic!(
                "seed {seed}, {buffers:?}: nothing matches {event:?}\nfrom {state:?}\nto {next:?}\nat {pair:?}\nsteps {:#?}",
                machine.steps(&pair.control)
            ),
        }
        state = next;
        met.steps += 1;
    }
}

#[test]
fn machines_match_every_step_of_the_reference_semantics() {
    let mut met = Met::default();
    for seed in 0..4_000 {
        let mut random = Random::new(seed);
        let program = program(&mut random, Shape { length: 8, corners: seed % 2 == 1, ..Shape::default() });
        let model = *random.pick(&[MemoryModel::Tso, MemoryModel::Pso]);
        let kept = *random.pick(&[Kept::Oldest, Kept::Newest]);
        let k = random.below(4) as u32;
        let buffers = match random.below(8) {
            0 => Buffers::Sc,
            1 | 2 => Buffers::Queue { model, bound: bound(&mut random) },
            _ => {
                // Summaries for no, some, or all memory cells.
                let cells = 0..program.cells() as u32;
                let summaries = match random.below(3) {
                    0 => Summarised::default(),
                    1 => cells.filter(|_| random.one_in(2)).collect(),
                    _ => cells.collect(),
                };
                Buffers::Partial { model, k, kept, summaries }
            }
        };
        for _ in 0..4 {
            walk(seed, &program, buffers, &mut random, &mut met);
        }
    }
    let Met { steps, expanded, outside, overflows } = met;
    println!(
        "{steps} steps, {expanded} values out of summaries, {outside} steps outside the window, {overflows} overflows"
    );
    assert!(steps > 40_000, "only {steps} steps were compared");
    assert!(expanded > 300, "only {expanded} values came out of a summary");
    assert!(overflows > 200, "only {overflows} buffers were full");
    assert!(outside > 1_000, "only {outside} steps outside the window were met");
}
