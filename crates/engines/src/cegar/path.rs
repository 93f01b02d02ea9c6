//! Examining an abstract counterexample (FENCES12 s.7): is it an execution, and if not, what was too coarse?

use fencewright_memory::linear::ways;
use fencewright_memory::{Buffers, Command, Control, Linear, Machine, Outcome, Step};
use fencewright_program::{
    Event, EventKind, Init, MemoryModel, Numbers, Op, Property, Range, RegisterId, Trace,
};
use fencewright_smt::interpolate::interpolants;
use fencewright_smt::{Answer, Atom, Budget, Native, Relation, Solver, Tiered, Var};

use super::encode::Encoding;
use crate::domain::Domain;
use crate::domain::zones::{Zone, Zones};
use crate::search::live::LiveCells;
use crate::search::reach::Path;
use crate::task::{Limits, Task};

/// The events of the path as an execution of an exact memory model that violates the property, if they are one. Under SC the
/// flushes of the path are dropped.
pub fn execution(task: &Task<'_>, model: MemoryModel, path: &Path, property: &Property) -> Option<Trace> {
    let buffers = match model {
        MemoryModel::Sc => Buffers::Sc,
        model => Buffers::Queue { model, bound: path.len() as u32 },
    };
    let machine = Machine::new(task.program, buffers);
    let steps = path.iter().map(|(step, _)| step);
    let events: Vec<&Step> = steps.filter(|s| model != MemoryModel::Sc || s.flushed.is_none()).collect();
    let steps = follow(&machine, &events)?;
    let last = match steps.last() {
        Some(Step { outcome: Outcome::Control(control), .. }) => control.clone(),
        _ => machine.initial(),
    };
    let violation = machine.violation(&last, property)?;
    let mut encoding = Encoding::default();
    encoding.push_any(&machine.initial_values());
    steps.iter().for_each(|step| encoding.push_any(&step.commands));
    encoding.push_any(&[Command::Assume(violation)]);
    let Answer::Sat(found) = Tiered::new().check(&encoding.formulas, &Budget::default()) else { return None };
    let value = |variable: Var| found.value(variable).to_i64();
    let (registers, memory) = initial_values(&machine, &encoding, &value)?;
    let event = |(n, step): (usize, &Step)| -> Option<Event> {
        let kind = match (step.edge, step.flushed) {
            (Some(edge), _) => {
                let ops = task.program.thread(step.thread).edge(edge).action.ops();
                let wanted = ops.iter().filter(|op| matches!(op, Op::Havoc(..))).count();
                let mut chosen: Vec<i64> = encoding.choices[n + 1]
                    .iter()
                    .map(|(_, variable)| value(*variable))
                    .collect::<Option<_>>()?;
                // A choice that faults is not written to a cell, so the path does not know its value.
                if chosen.len() < wanted {
                    let Some(Op::Havoc(register, range)) =
                        ops.iter().filter(|op| matches!(op, Op::Havoc(..))).nth(chosen.len())
                    else {
                        return None;
                    };
                    chosen.push(faulting_value(&machine, step, *register, *range)?);
                }
                EventKind::Step { edge, chosen }
            }
            (None, Some(cell)) => EventKind::Flush { cell },
            (None, None) => return None,
        };
        Some(Event { thread: step.thread, kind })
    };
    let events = steps.iter().enumerate().map(event).collect::<Option<Vec<Event>>>()?;
    let trace = Trace { registers, memory, events };
    trace.replay_for(task.program, model, property).is_ok().then_some(trace)
}

/// A value for a `*` that faults: the first of a few that lies outside what may be written.
fn faulting_value(
    machine: &Machine<'_>,
    step: &Step,
    register: RegisterId,
    range: Option<Range>,
) -> Option<i64> {
    let Outcome::Control(next) = &step.outcome else { return None };
    let thread = machine.program.thread(step.thread);
    if next.locations[step.thread.index()] != thread.fault {
        return None;
    }
    let natural = machine.program.numbers == Numbers::Nat;
    let declared = thread.registers[register.index()].range;
    let fits = |v: &i64| declared.is_none_or(|r| r.contains(*v)) && (!natural || *v >= 0);
    let beyond = declared.map(|r| [r.low.checked_sub(1), r.high.checked_add(1)]);
    let near = beyond.into_iter().flatten().flatten().chain([-1]);
    let ends = range.into_iter().flat_map(|r| [r.low, r.high]);
    let possible = |v: &i64| match range {
        Some(range) => range.contains(*v),
        None => !natural || *v >= 0,
    };
    ends.chain(near).find(|v| possible(v) && !fits(v))
}

/// The registers and memory that the encoding starts with: its first formula has a version for each.
fn initial_values(
    machine: &Machine<'_>,
    encoding: &Encoding,
    value: &impl Fn(Var) -> Option<i64>,
) -> Option<(Vec<Vec<i64>>, Vec<i64>)> {
    // The initial commands write memory and then registers, each once, in the order of their cells.
    let mut variables = (0..).map(Var);
    let mut next = |init: &Init| {
        let variable = variables.next()?;
        debug_assert!((variable.0 as usize) < encoding.cells.len());
        match init {
            Init::Value(v) => Some(*v),
            Init::Any(_) => value(variable),
        }
    };
    let program = machine.program;
    let memory =
        program.variables.iter().flat_map(|v| &v.init).map(&mut next).collect::<Option<Vec<i64>>>()?;
    let registers = program
        .threads
        .iter()
        .map(|t| t.registers.iter().map(|r| next(&r.init)).collect::<Option<Vec<i64>>>())
        .collect::<Option<Vec<_>>>()?;
    Some((registers, memory))
}

/// The steps of an exact machine with these events, if there are any: each event has one step there.
fn follow(machine: &Machine<'_>, events: &[&Step]) -> Option<Vec<Step>> {
    let mut control = machine.initial();
    let mut steps = Vec::with_capacity(events.len());
    for event in events {
        let step = machine.steps(&control).into_iter().find(|step| same_event(step, event))?;
        let Outcome::Control(next) = &step.outcome else { return None };
        control = next.clone();
        steps.push(step);
    }
    Some(steps)
}

/// What exact integers say about a path of a machine.
pub enum Examined {
    /// It can be taken: the buffers of the machine are too coarse.
    Possible,
    /// It cannot: interpolants at each step, as constraints on cells.
    Impossible(Vec<Linear>),
    /// The solver does not know.
    Unknown,
}

/// Examines a path with exact integers, on the ways through its commands that the search took.
pub fn examine(machine: &Machine<'_>, path: &Path, property: &Property) -> Examined {
    let last = match path.last() {
        Some((Step { outcome: Outcome::Control(control), .. }, _)) => control.clone(),
        _ => machine.initial(),
    };
    let Some(violation) = machine.violation(&last, property) else { return Examined::Unknown };
    let mut found = Vec::new();
    for way in ways(&[Command::Assume(violation)]) {
        let mut encoding = Encoding::default();
        encoding.push(&machine.initial_values(), 0);
        path.iter().for_each(|(step, way)| encoding.push(&step.commands, *way));
        encoding.push_simple(&way);
        let mut solver = Tiered::new();
        let budget = Budget::default();
        match solver.check(&encoding.formulas, &budget) {
            Answer::Sat(_) => return Examined::Possible,
            Answer::Unsat(refutation) => {
                let sequence =
                    interpolants(&mut Native::new(), &encoding.formulas, &refutation.proof, &budget);
                for formula in sequence.into_iter().flatten() {
                    found.extend(formula.atoms().flat_map(|atom| constraints(&encoding, atom)));
                }
            }
            // An opinion is enough to look for a better representation: what is proved with it is checked.
            Answer::UnsatUnproved => {}
            Answer::Unknown(_) => return Examined::Unknown,
        }
    }
    found.sort();
    found.dedup();
    Examined::Impossible(found)
}

/// An atom over versions of cells as constraints on the cells: an equation is two, a disequation its two strict halves.
fn constraints(encoding: &Encoding, atom: &Atom) -> Vec<Linear> {
    let form = || -> Option<Linear> {
        let mut linear = Linear::constant(atom.linear().constant_part().to_i64()?);
        for (variable, coefficient) in atom.linear().terms() {
            linear = linear.plus(&Linear::cell(encoding.cell(*variable)).scaled(coefficient.to_i64()?)?)?;
        }
        Some(linear)
    };
    let Some(linear) = form() else { return Vec::new() };
    let below = |by: i64| linear.plus(&Linear::constant(by));
    let above = |by: i64| linear.scaled(-1).and_then(|l| l.plus(&Linear::constant(by)));
    let both = match atom.relation() {
        Relation::Le => [below(0), None],
        Relation::Eq => [below(0), above(0)],
        Relation::Ne => [below(1), above(1)],
    };
    both.into_iter().flatten().filter(|l| !l.terms.is_empty()).collect()
}

/// Whether the events of a path can happen on a machine, with cells as precisely as zones with this clip constant know them, and
/// end in a violation. The machine may be another one than that of the path.
pub fn feasible(
    machine: &Machine<'_>,
    live: &LiveCells,
    path: &Path,
    property: &Property,
    clip: i32,
    limits: &Limits,
) -> bool {
    let mut zones = Zones::new(clip);
    let first = machine.initial();
    let start = zones.transition(&[], &machine.initial_values(), &live.of(machine, &first));
    let nothing = zones.anything(&[]);
    let mut states = Vec::new();
    zones.post(&start, &nothing, &mut states);
    let only = |states: Vec<(u32, Zone)>| states.into_iter().map(|(_, zone)| zone).collect::<Vec<Zone>>();
    let mut front: Vec<(Control, Vec<Zone>)> = vec![(first, only(states))];
    for (event, _) in path {
        // Out of time, anything may be possible.
        if limits.exceeded(0).is_some() {
            return true;
        }
        let mut next: Vec<(Control, Vec<Zone>)> = Vec::new();
        for (control, states) in &front {
            for step in machine.steps(control).iter().filter(|s| same_event(s, event)) {
                let Outcome::Control(target) = &step.outcome else { continue };
                let transition =
                    zones.transition(&live.of(machine, control), &step.commands, &live.of(machine, target));
                let mut after = Vec::new();
                for state in states {
                    zones.post(&transition, &zones.stored(state), &mut after);
                }
                if !after.is_empty() {
                    next.push((target.clone(), only(after)));
                }
            }
        }
        front = next;
        if front.is_empty() {
            return false;
        }
    }
    front.iter().any(|(control, states)| {
        let Some(condition) = machine.violation(control, property) else { return false };
        let live = live.of(machine, control);
        let violation = zones.transition(&live, &[Command::Assume(condition)], &live);
        states.iter().any(|state| {
            let mut bad = Vec::new();
            zones.post(&violation, &zones.stored(state), &mut bad);
            !bad.is_empty()
        })
    })
}

/// Whether a step is the same event, and for an edge the same case of it, as one of another machine.
fn same_event(step: &Step, event: &Step) -> bool {
    let same_case = step.edge.is_none() || step.case == event.case;
    (step.thread, step.edge, step.flushed) == (event.thread, event.edge, event.flushed) && same_case
}
