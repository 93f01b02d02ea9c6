//! Examining an abstract counterexample (FENCES12 s.7): is it an execution, and if not, what was too coarse?

use fencewright_memory::{Command, Control, Machine, Outcome, Step};
use fencewright_program::{Event, EventKind, Init, MemoryModel, Op, Program, Property, Trace};

use crate::domain::Domain;
use crate::domain::zones::{Zone, Zones};
use crate::search::live::LiveCells;

/// The path as an execution of the exact memory model, if it is one that violates the property.
pub fn execution(program: &Program, model: MemoryModel, path: &[Step], property: &Property) -> Option<Trace> {
    let value = |init: &Init| match *init {
        Init::Value(v) => Some(v),
        Init::Any(_) => None,
    };
    let registers = program
        .threads
        .iter()
        .map(|t| t.registers.iter().map(|r| value(&r.init)).collect::<Option<Vec<i64>>>())
        .collect::<Option<Vec<_>>>()?;
    let memory = program.variables.iter().flat_map(|v| &v.init).map(value).collect::<Option<Vec<i64>>>()?;
    let event = |step: &Step| -> Option<Event> {
        let kind = match (step.edge, step.flushed) {
            (Some(edge), _) => {
                let ops = program.thread(step.thread).edge(edge).action.ops();
                if ops.iter().any(|op| matches!(op, Op::Havoc(..))) {
                    return None;
                }
                EventKind::Step { edge, chosen: Vec::new() }
            }
            (None, Some(cell)) => EventKind::Flush { cell },
            (None, None) => return None,
        };
        Some(Event { thread: step.thread, kind })
    };
    let events = path
        .iter()
        .filter(|step| model != MemoryModel::Sc || step.flushed.is_none())
        .map(event)
        .collect::<Option<Vec<Event>>>()?;
    let trace = Trace { registers, memory, events };
    trace.replay_for(program, model, property).is_ok().then_some(trace)
}

/// Whether the events of a path can happen on a machine, with cells as precisely as zones with this clip constant know them, and
/// end in a violation. The machine may be another one than that of the path.
pub fn feasible(
    machine: &Machine<'_>,
    live: &LiveCells,
    path: &[Step],
    property: &Property,
    clip: i32,
) -> bool {
    let mut zones = Zones::new(clip);
    let first = machine.initial();
    let start = zones.transition(&[], &machine.initial_values(), &live.of(machine, &first));
    let nothing = zones.anything(&[]);
    let mut states = Vec::new();
    zones.post(&start, &nothing, &mut states);
    let mut front: Vec<(Control, Vec<Zone>)> = vec![(first, states)];
    for event in path {
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
                    next.push((target.clone(), after));
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
