//! The oracle: all reachable states of a program on the reference semantics, computed as simply as possible.
//!
//! Tests compare engines with it; and if the state space is small, it confirms answers that come without a trace and without a certificate.

use std::collections::{HashSet, VecDeque};

use fencewright_program::reference::{Refusal, holds};
use fencewright_program::{
    Formula, Init, MemoryModel, Program, Property, PropertyKind, Quantifier, Range, Reference, State,
};

/// The reachable states of a program.
#[derive(Clone, Debug)]
pub struct Reachable {
    /// All reachable states.
    pub states: HashSet<State>,
    /// The states without successors in which some thread has neither ended nor faulted.
    pub deadlocks: HashSet<State>,
}

/// Why the exploration is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incomplete {
    /// There are more states than allowed.
    TooManyStates,
    /// An initial value or a `*` without a range, or a step with too many combinations of values for its `*`s.
    UnboundedChoice,
    /// A value that does not fit 64 bits, or an access outside the modelled part of an open array.
    Limit,
    /// The callback `stop` returned true.
    Stopped,
}

/// The initial capacity of the hash table of states. Most programs have fewer states, and enlarging the table would hash all of them again.
const FEW: usize = 256;

/// All states reachable under `model`; an error if there are more than `limit`, or if not all of them can be computed. `stop` is polled before each
/// step.
pub fn explore(
    program: &Program,
    model: MemoryModel,
    limit: usize,
    stop: &mut dyn FnMut() -> bool,
) -> Result<Reachable, Incomplete> {
    let reference = Reference::new(program, model);
    let mut states = HashSet::with_capacity(limit.min(FEW));
    let mut deadlocks = HashSet::new();
    let mut queue = VecDeque::new();
    for first in initial_states(&reference, limit, stop)? {
        if states.insert(first.clone()) {
            queue.push_back(first);
        }
    }
    while let Some(state) = queue.pop_front() {
        if states.len() > limit {
            return Err(Incomplete::TooManyStates);
        }
        if reference.has_unbounded_choice(&state) {
            return Err(Incomplete::UnboundedChoice);
        }
        let mut moves = false;
        for event in reference.candidates(&state, &[]) {
            // States may be large, and then even a few successors take a lot of memory. So `stop` is polled before each successor.
            if stop() {
                return Err(Incomplete::Stopped);
            }
            match reference.step(&state, &event) {
                Ok((next, _)) => {
                    moves = true;
                    // The state is copied only if it is new: most steps lead to a known state, and a copy costs more than a second look-up.
                    if !states.contains(&next) {
                        states.insert(next.clone());
                        queue.push_back(next);
                    }
                }
                Err(Refusal::Disabled(_)) => {}
                Err(Refusal::Limit(..)) => return Err(Incomplete::Limit),
            }
        }
        if !moves && reference.is_deadlock(&state) {
            deadlocks.insert(state);
        }
    }
    Ok(Reachable { states, deadlocks })
}

/// All initial states: the product of the initial ranges. An error if there are more than `limit` initial states, if an initial value is unbounded,
/// or if `stop` returns true.
pub fn initial_states(
    reference: &Reference<'_>,
    limit: usize,
    stop: &mut dyn FnMut() -> bool,
) -> Result<Vec<State>, Incomplete> {
    let program = reference.program;
    let registers = program.threads.iter().flat_map(|t| t.registers.iter().map(|r| r.init));
    let inits: Vec<Init> =
        registers.chain(program.variables.iter().flat_map(|v| v.init.iter().copied())).collect();
    let mut ranges = Vec::with_capacity(inits.len());
    let mut product = 1u64;
    for init in inits {
        let range = match init {
            Init::Value(v) => Range { low: v, high: v },
            Init::Any(Some(range)) if program.choices(Some(range)) < u64::MAX => range,
            Init::Any(_) => return Err(Incomplete::UnboundedChoice),
        };
        product = product.saturating_mul(range.size());
        ranges.push(range);
    }
    if product > limit as u64 {
        return Err(Incomplete::TooManyStates);
    }
    let state = |values: &[i64]| {
        let mut values = values.iter().copied();
        let registers =
            program.threads.iter().map(|t| values.by_ref().take(t.registers.len()).collect()).collect();
        reference.initial(registers, values.collect()).expect("the values are taken from the ranges")
    };
    let mut values: Vec<i64> = ranges.iter().map(|r| r.low).collect();
    let mut states = Vec::new();
    if product == 0 {
        return Ok(states);
    }
    loop {
        if stop() {
            return Err(Incomplete::Stopped);
        }
        states.push(state(&values));
        let Some(turn) = (0..values.len()).find(|&n| values[n] < ranges[n].high) else { return Ok(states) };
        values[turn] += 1;
        (0..turn).for_each(|n| values[n] = ranges[n].low);
    }
}

impl Reachable {
    /// Whether the program satisfies `property`, given its reachable states; `None` if a formula cannot be computed in some state and no other state
    /// decides the property.
    pub fn satisfies(&self, program: &Program, model: MemoryModel, property: &Property) -> Option<bool> {
        let reference = Reference::new(program, model);
        match &property.kind {
            PropertyKind::Never(formula) => self.never(self.states.iter(), formula),
            PropertyKind::Assertions => Some(!self.states.iter().any(|s| reference.has_fault(s))),
            PropertyKind::NoDeadlock => Some(self.deadlocks.is_empty()),
            PropertyKind::Finally(quantifier, formula) => {
                let finals = || self.states.iter().filter(|s| reference.is_final(s));
                match quantifier {
                    Quantifier::Exists => self.never(finals(), formula).map(|never| !never),
                    Quantifier::Never => self.never(finals(), formula),
                    Quantifier::Forall => self.never(finals(), &formula.clone().not()),
                }
            }
        }
    }

    /// Whether no state satisfies the formula; `None` if the formula cannot be computed in some state and is true in none of the other states.
    fn never<'s>(&self, states: impl Iterator<Item = &'s State>, formula: &Formula) -> Option<bool> {
        let mut computable = true;
        for state in states {
            match holds(state, formula) {
                Some(true) => return Some(false),
                Some(false) => {}
                None => computable = false,
            }
        }
        computable.then_some(true)
    }
}
