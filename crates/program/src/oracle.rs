//! The oracle: all reachable states of a program on the reference semantics, as plainly as possible.
//!
//! Tests compare engines with it, and a `safe` of the explicit engine is confirmed by it where the state space is small.

use std::collections::{HashSet, VecDeque};

use crate::model::{Init, MemoryModel, Program};
use crate::property::{Property, PropertyKind, Quantifier};
use crate::reference::{Reference, Refusal, State, decided_by, holds};

/// Everything that is reachable.
#[derive(Clone, Debug)]
pub struct Reachable {
    /// The states.
    pub states: HashSet<State>,
    /// Those of them in which nothing can move although some thread has not ended.
    pub deadlocks: HashSet<State>,
}

/// Why not everything reachable was explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incomplete {
    /// More states than allowed.
    TooManyStates,
    /// A `*` without a range: infinitely many successors.
    UnboundedChoice,
    /// A value or address beyond explicit computation.
    Limit,
    /// The caller asked to stop.
    Stopped,
}

/// All states reachable under `model`, at most `limit` of them; `stop` is asked now and then whether to give up.
pub fn explore(
    program: &Program,
    model: MemoryModel,
    limit: usize,
    stop: &mut dyn FnMut() -> bool,
) -> Result<Reachable, Incomplete> {
    let reference = Reference::new(program, model);
    let mut states = HashSet::new();
    let mut deadlocks = HashSet::new();
    let mut queue = VecDeque::new();
    for first in initial_states(&reference, limit)? {
        if states.insert(first.clone()) {
            queue.push_back(first);
        }
    }
    while let Some(state) = queue.pop_front() {
        if states.len() > limit {
            return Err(Incomplete::TooManyStates);
        }
        if states.len() % 64 == 0 && stop() {
            return Err(Incomplete::Stopped);
        }
        if reference.has_unbounded_choice(&state) {
            return Err(Incomplete::UnboundedChoice);
        }
        if reference.is_deadlock(&state) {
            deadlocks.insert(state.clone());
        }
        for event in reference.candidates(&state, &[]) {
            match reference.step(&state, &event) {
                Ok((next, _)) => {
                    if states.insert(next.clone()) {
                        queue.push_back(next);
                    }
                }
                Err(Refusal::Disabled(_)) => {}
                Err(Refusal::Limit(..)) => return Err(Incomplete::Limit),
            }
        }
    }
    Ok(Reachable { states, deadlocks })
}

/// All initial states, the product of the initial ranges, at most `limit` of them.
pub fn initial_states(reference: &Reference<'_>, limit: usize) -> Result<Vec<State>, Incomplete> {
    let program = reference.program;
    let registers = program.threads.iter().flat_map(|t| t.registers.iter().map(|r| r.init));
    let inits: Vec<Init> =
        registers.chain(program.variables.iter().flat_map(|v| v.init.iter().copied())).collect();
    let mut valuations = vec![Vec::new()];
    for init in inits {
        let range = match init {
            Init::Value(v) => v..=v,
            Init::Any(Some(range)) => range.low..=range.high,
            Init::Any(None) => return Err(Incomplete::UnboundedChoice),
        };
        let mut extended = Vec::new();
        for prefix in &valuations {
            for value in range.clone() {
                if extended.len() > limit {
                    return Err(Incomplete::TooManyStates);
                }
                extended.push([prefix.as_slice(), &[value]].concat());
            }
        }
        valuations = extended;
    }
    let state = |values: Vec<i64>| {
        let mut values = values.into_iter();
        let registers =
            program.threads.iter().map(|t| values.by_ref().take(t.registers.len()).collect()).collect();
        reference.initial(registers, values.collect()).expect("the values are taken from the ranges")
    };
    Ok(valuations.into_iter().map(state).collect())
}

impl Reachable {
    /// Whether `property` holds of a program with these reachable states.
    pub fn satisfies(&self, program: &Program, model: MemoryModel, property: &Property) -> bool {
        let reference = Reference::new(program, model);
        match &property.kind {
            PropertyKind::Never(formula) => !self.states.iter().any(|s| holds(s, formula)),
            PropertyKind::Assertions => !self.states.iter().any(|s| reference.has_fault(s)),
            PropertyKind::NoDeadlock => self.deadlocks.is_empty(),
            PropertyKind::Finally(quantifier, formula) => {
                let mut finals = self.states.iter().filter(|s| reference.is_final(s));
                let decision = finals.find_map(|s| decided_by(*quantifier, holds(s, formula)));
                decision.unwrap_or(*quantifier != Quantifier::Exists)
            }
        }
    }
}
