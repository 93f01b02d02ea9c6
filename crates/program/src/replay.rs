//! Traces, and their replay on the reference semantics. Every trace that an engine reports is replayed before it is shown.

use std::fmt;

use crate::difference::States;
use crate::model::{MemoryModel, Program};
use crate::property::{Property, PropertyKind};
use crate::reference::{Access, Disabled, Event, Limit, Reference, Refusal, State, decided_by, holds};

/// An execution: the initial values and the events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The initial values of the registers of each thread.
    pub registers: Vec<Vec<i64>>,
    /// The initial value of each memory cell.
    pub memory: Vec<i64>,
    /// The events, in order.
    pub events: Vec<Event>,
}

/// A replayed trace: the states it visits and the accesses of each event.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// The memory model under which the trace was replayed.
    pub model: MemoryModel,
    /// The events, in order.
    pub events: Vec<Event>,
    /// The states: the initial one, and one after each event.
    pub states: States,
    /// The accesses of each event.
    pub effects: Vec<Effect>,
}

/// The accesses of one event.
pub type Effect = Vec<Access>;

/// The reason why a trace is not an execution, or not evidence about a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayError {
    /// The initial values are not those of an initial state.
    Initial,
    /// The event with this index is not enabled.
    Event(usize, Disabled),
    /// The event with this index exceeds a limit of the reference semantics.
    Limit(usize, Limit),
    /// The last state is not evidence about the property.
    Property,
    /// The caller's `stop` returned true.
    Stopped,
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplayError::Initial => write!(f, "the program does not start in the first state of the trace"),
            ReplayError::Event(n, why) => {
                write!(f, "event {n} of the trace cannot happen: {}", why.describe())
            }
            ReplayError::Limit(n, limit) => write!(f, "event {n} of the trace: {}", limit.describe()),
            ReplayError::Property => write!(f, "the last state of the trace is no evidence for the property"),
            ReplayError::Stopped => write!(f, "the replay of the trace was stopped"),
        }
    }
}

impl std::error::Error for ReplayError {}

impl Trace {
    /// Replays the trace under a memory model, event by event.
    pub fn replay(&self, program: &Program, model: MemoryModel) -> Result<Replayed, ReplayError> {
        self.replay_until(program, model, &|| false)
    }

    /// Like [`Trace::replay`], polling `stop` every 64 events.
    pub fn replay_until(
        &self,
        program: &Program,
        model: MemoryModel,
        stop: &dyn Fn() -> bool,
    ) -> Result<Replayed, ReplayError> {
        let reference = Reference::new(program, model);
        let first =
            reference.initial(self.registers.clone(), self.memory.clone()).ok_or(ReplayError::Initial)?;
        let mut states = States::new(first);
        let mut effects = Vec::new();
        for (n, event) in self.events.iter().enumerate() {
            if n % 64 == 0 && stop() {
                return Err(ReplayError::Stopped);
            }
            let (next, effect) = reference.step(states.last(), event).map_err(|refusal| match refusal {
                Refusal::Disabled(why) => ReplayError::Event(n, why),
                Refusal::Limit(limit, _) => ReplayError::Limit(n, limit),
            })?;
            states.push(next);
            effects.push(effect);
        }
        Ok(Replayed { model, events: self.events.clone(), states, effects })
    }

    /// Replays the trace and checks that its last state is evidence about `property`: a violation, or for `finally exists` a witness.
    pub fn replay_for(
        &self,
        program: &Program,
        model: MemoryModel,
        property: &Property,
    ) -> Result<Replayed, ReplayError> {
        self.replay_for_until(program, model, property, &|| false)
    }

    /// Like [`Trace::replay_for`], polling `stop` every 64 events.
    pub fn replay_for_until(
        &self,
        program: &Program,
        model: MemoryModel,
        property: &Property,
        stop: &dyn Fn() -> bool,
    ) -> Result<Replayed, ReplayError> {
        let replayed = self.replay_until(program, model, stop)?;
        let reference = Reference::new(program, model);
        let last = replayed.last();
        let decides = match &property.kind {
            PropertyKind::Never(formula) => holds(last, formula) == Some(true),
            PropertyKind::Assertions => reference.has_fault(last),
            PropertyKind::NoDeadlock => reference.is_deadlock(last),
            PropertyKind::Finally(quantifier, formula) => {
                let decision = holds(last, formula).and_then(|holds| decided_by(*quantifier, holds));
                reference.is_final(last) && decision.is_some()
            }
        };
        if decides { Ok(replayed) } else { Err(ReplayError::Property) }
    }
}

impl Replayed {
    /// The number of contexts, that is of maximal runs of events of the same thread. A flush counts as an event of the thread that owns the buffer.
    pub fn contexts(&self) -> usize {
        let turns = self.events.windows(2).filter(|pair| pair[0].thread != pair[1].thread).count();
        turns + !self.events.is_empty() as usize
    }

    /// Visits all events in order, each with the state before it.
    pub fn for_each_event(&self, mut visit: impl FnMut(&Event, &State)) {
        self.states.for_each(|n, state| {
            if let Some(event) = self.events.get(n) {
                visit(event, state);
            }
        });
    }

    /// The last state.
    pub fn last(&self) -> &State {
        self.states.last()
    }
}
