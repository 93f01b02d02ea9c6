//! Concretization of a path: from its events to an execution, by solving for the values (CONTEXT24 Lemmas 4 and 5, FENCES12 s. 7 case 1).
//!
//! The steps of an exact machine give the conditions on the values. A solver finds such values, and the execution is then replayed on the reference
//! semantics.

use fencewright_kit::choices::faulting_choices;
use fencewright_memory::{Bound, BufferMachine, Buffers, Command, Control, Outcome, Step};
use fencewright_program::{
    EdgeId, Event, EventKind, Init, MemoryModel, Op, Program, Property, ThreadId, Trace,
};
use fencewright_smt::{Answer, Budget, Solver, Tiered, Var};

use crate::encode::Encoding;

/// A prefix of an execution: its events, and the constraints on their values.
pub struct Execution<'p> {
    machine: BufferMachine<'p>,
    model: MemoryModel,
    control: Control,
    encoding: Encoding,
    events: Vec<OpenEvent>,
}

/// An event whose chosen values are not known yet.
struct OpenEvent {
    thread: ThreadId,
    /// The edge and whether it faults, or the memory cell of a flush.
    what: Result<(EdgeId, bool), u32>,
}

impl<'p> Execution<'p> {
    /// The empty prefix, with buffers large enough for this many events.
    pub fn new(program: &'p Program, model: MemoryModel, events: usize) -> Self {
        let buffers = match model {
            MemoryModel::Sc => Buffers::Sc,
            model => Buffers::Queue { model, bound: Bound::Thread(events as u32) },
        };
        let machine = BufferMachine::new(program, buffers);
        let mut encoding = Encoding::default();
        encoding.push_any(&machine.initial_values());
        Execution { control: machine.initial(), machine, model, encoding, events: Vec::new() }
    }

    /// The exact machine that the prefix is an execution of.
    pub fn machine(&self) -> &BufferMachine<'p> {
        &self.machine
    }

    /// The control state at the end of the prefix.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// The number of entries in the buffer of a thread: stores, and barriers under PSO.
    pub fn buffered(&self, thread: ThreadId) -> usize {
        self.control.buffers.get(thread.index()).map_or(0, |b| b.queue.len())
    }

    /// Appends a step of the exact machine; `None` if the machine does not represent its target.
    pub fn take(&mut self, step: Step) -> Option<()> {
        let Outcome::Control(next) = step.outcome else { return None };
        let fault =
            next.locations[step.name.thread.index()] == self.machine.program.thread(step.name.thread).fault;
        let what = match (step.name.edge, step.name.flushed) {
            (Some(edge), _) => Ok((edge, fault)),
            (None, cell) => Err(cell?),
        };
        self.encoding.push_any(&step.commands);
        self.events.push(OpenEvent { thread: step.name.thread, what });
        self.control = next;
        Some(())
    }

    /// The execution, with values for which it is evidence about the property, if the solver finds such values within the budget.
    pub fn finish(mut self, property: &Property, budget: &Budget) -> Option<Trace> {
        let evidence = self.machine.evidence_condition(&self.control, property)?;
        self.encoding.push_any(&[Command::Assume(evidence)]);
        let Answer::Sat(found) = Tiered::new().check(&self.encoding.formulas, budget) else { return None };
        let value = |variable: Var| found.value(variable).to_i64();
        let (registers, memory) = initial_values(&self.machine, &self.encoding, &value)?;
        let complete = |(n, event): (usize, &OpenEvent)| -> Option<Event> {
            let kind = match event.what {
                Ok((edge, fault)) => {
                    let choices = self.encoding.choices[n + 1].iter();
                    let chosen = choices.map(|(_, variable)| value(*variable)).collect::<Option<_>>()?;
                    EventKind::Step { edge, chosen: self.completed(event.thread, edge, fault, chosen)? }
                }
                Err(cell) => EventKind::Flush { cell },
            };
            Some(Event { thread: event.thread, kind })
        };
        let events = self.events.iter().enumerate().map(complete).collect::<Option<Vec<Event>>>()?;
        let trace = Trace { registers, memory, events };
        trace.replay_for(self.machine.program, self.model, property).is_ok().then_some(trace)
    }

    /// The values chosen at an edge, completed from the values `chosen` in the path. The path does not contain the value of a choice that faults,
    /// because it is not written to a cell; choices after a fault are not made. `None` if there are too few or too many values for an edge that does
    /// not fault.
    fn completed(&self, thread: ThreadId, edge: EdgeId, fault: bool, chosen: Vec<i64>) -> Option<Vec<i64>> {
        let program = self.machine.program;
        let ops = program.thread(thread).edge(edge).action.ops();
        let choices = ops.iter().filter(|op| matches!(op, Op::Havoc(..))).count();
        match fault {
            true => Some(faulting_choices(program, thread, edge, chosen)),
            false => (chosen.len() == choices).then_some(chosen),
        }
    }
}

/// The initial registers and memory; the first formula of the encoding has a version for each. `None` if some initial value does not fit 64 bits.
fn initial_values(
    machine: &BufferMachine<'_>,
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
