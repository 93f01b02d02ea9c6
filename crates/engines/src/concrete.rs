//! From the events of a path to an execution: choosing the values (CONTEXT24 Lemmas 4 and 5, FENCES12 s.7 case 1).
//!
//! The steps of an exact machine say which conditions the values must meet; a solver finds some, and the reference semantics has the last
//! word.

use fencewright_memory::{Buffers, Command, Machine, Outcome, Step};
use fencewright_program::{
    Event, EventKind, Init, MemoryModel, Numbers, Op, Program, Property, Range, RegisterId, Trace,
};
use fencewright_smt::{Answer, Budget, Solver, Tiered, Var};

use crate::encode::Encoding;

/// The exact machine for executions with at most so many events.
pub fn machine(program: &Program, model: MemoryModel, events: usize) -> Machine<'_> {
    let buffers = match model {
        MemoryModel::Sc => Buffers::Sc,
        model => Buffers::Queue { model, bound: events as u32 },
    };
    Machine::new(program, buffers)
}

/// The steps of the exact machine as an execution that is evidence about the property, if there are values that make them one.
pub fn execution(
    machine: &Machine<'_>,
    model: MemoryModel,
    steps: &[Step],
    property: &Property,
) -> Option<Trace> {
    let last = match steps.last() {
        Some(Step { outcome: Outcome::Control(control), .. }) => control.clone(),
        _ => machine.initial(),
    };
    let evidence = machine.evidence(&last, property)?;
    let mut encoding = Encoding::default();
    encoding.push_any(&machine.initial_values());
    steps.iter().for_each(|step| encoding.push_any(&step.commands));
    encoding.push_any(&[Command::Assume(evidence)]);
    let Answer::Sat(found) = Tiered::new().check(&encoding.formulas, &Budget::default()) else { return None };
    let value = |variable: Var| found.value(variable).to_i64();
    let (registers, memory) = initial_values(machine, &encoding, &value)?;
    let event = |(n, step): (usize, &Step)| -> Option<Event> {
        let kind = match (step.edge, step.flushed) {
            (Some(edge), _) => {
                let ops = machine.program.thread(step.thread).edge(edge).action.ops();
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
                    chosen.push(faulting_value(machine, step, *register, *range)?);
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
    trace.replay_for(machine.program, model, property).is_ok().then_some(trace)
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
