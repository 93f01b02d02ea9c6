//! The reference semantics: exact SC, TSO and PSO, as one small interpreter.
//!
//! This is the definition of the meaning of a program. It follows THESIS16 Fig. 2.19 and Fig. C.1 (TSO and SC with locks) and EXTRA13 Semantics 1 and
//! 2 (PSO), and is written to be read, not to be fast. Traces are replayed on it and tests compare every engine with it, so it shares no code with
//! any engine.
//!
//! A state consists of the control location and registers of each thread, shared memory, a store buffer for each thread, and the holder of the global
//! lock. A thread may *access* (load, flush, lock, run an atomic step) only while no other thread holds the lock.
//!
//! | event | enabled if | effect |
//! |---|---|---|
//! | register work, `assume e` | `e` is not 0 | |
//! | load `c` | may access | the newest buffered value of `c`, else memory (RB, RM) |
//! | store `c` | SC: may access | SC: to memory (LSWM); TSO, PSO: appended to the buffer (LS) |
//! | flush `c` | may access; TSO: `c` is the oldest entry; PSO: no older barrier | the oldest entry of `c` goes to memory (WM) |
//! | `fence` | own buffer empty | (LF) |
//! | `sfence` | | PSO: a barrier is appended, unless the buffer is empty |
//! | `lock` | own buffer empty, lock free | takes it (Lock) |
//! | `unlock` | own buffer empty, lock held by the thread | frees it (Unlock) |
//! | `atomic` step | may access, own buffer empty, all its operations can run | all of them at once, on memory |
//! | `snapshot` step | may access, all its operations can run | all of them at once; loads see the own buffer first |
//!
//! Differences from the papers: a load takes the *newest* own entry (Semantics 2 prints the oldest); an atomic step needs an empty buffer
//! (BEGIN/END-ATOMIC as printed do not drain). A faulting action (failed assertion; index, value or shift out of range; division by zero) takes its
//! thread to the thread's fault location, where it stays; the other threads continue. The effects of the operations of a step before the faulting
//! one are kept; buffered stores of the faulted thread still reach memory, and a lock that it holds is never released.

use crate::expr::{EvalError, Expr};
use crate::model::*;
use crate::property::{Formula, Observable, Quantifier};
use crate::span::Span;

/// A state of the whole program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The control location of each thread.
    pub locations: Vec<LocationId>,
    /// The registers of each thread.
    pub registers: Vec<Vec<i64>>,
    /// The value of each memory cell.
    pub memory: Vec<i64>,
    /// The store buffer of each thread, oldest entry first. Under PSO the entries between two barriers are kept sorted by
    /// cell, because only the order of entries of the same cell matters.
    pub buffers: Vec<Vec<Buffered>>,
    /// The holder of the global lock; `None` if it is free.
    pub lock: Option<ThreadId>,
}

/// An entry of a store buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Buffered {
    /// A store that has not reached memory yet.
    Store {
        /// The memory cell that a flush will write.
        cell: u32,
        /// The value that a flush will write to memory.
        value: i64,
    },
    /// A store-store fence: later entries stay in the buffer until all earlier ones have left; then the barrier is removed.
    Barrier,
}

/// One step of a program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// The thread that moves; for a flush, the owner of the buffer.
    pub thread: ThreadId,
    /// Whether the event is a step along an edge or a flush.
    pub kind: EventKind,
}

/// A step along an edge, or a flush.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// The thread takes an edge.
    Step {
        /// The edge that the thread takes.
        edge: EdgeId,
        /// The values chosen for the `*`s of the edge, in order.
        chosen: Vec<i64>,
    },
    /// The oldest buffered store to a cell reaches memory.
    Flush {
        /// The memory cell that the flush writes.
        cell: u32,
    },
}

/// An effect of a step on memory or a buffer, for traces shown to users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A load read this value from memory, or from the thread's own buffer.
    Read {
        /// The memory cell that the load reads.
        cell: u32,
        /// The value read.
        value: i64,
        /// Whether the value was read from the buffer, not from memory.
        buffered: bool,
    },
    /// A store wrote this value to memory, or put it into the thread's buffer.
    Write {
        /// The memory cell that the store writes, at once or when it is flushed.
        cell: u32,
        /// The value stored.
        value: i64,
        /// Whether the store went into the buffer, not directly to memory.
        buffered: bool,
    },
    /// An operation faulted, in this way; the thread is at its fault location.
    Fault(Fault),
}

/// The reason why an event is not a step from a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The event is not enabled, for this reason.
    Disabled(Disabled),
    /// The interpreter cannot represent the result: a limit of the tool, not a property of the program.
    Limit(Limit, Span),
}

/// The reason why an event is not enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disabled {
    /// The thread is at another location.
    Elsewhere,
    /// The thread's own buffer is not empty.
    Pending,
    /// The buffer has no store to this cell that could leave it now.
    NoStore,
    /// Another thread holds the lock.
    Locked,
    /// The lock is not free.
    LockTaken,
    /// The thread does not hold the lock.
    LockNotHeld,
    /// The condition of an `assume` is 0.
    Condition,
    /// No value was chosen for a `*`; every earlier operation of the step could run.
    NoChoice,
    /// More values were chosen than the step has `*`s.
    Choices,
    /// A chosen value is not in the range of its `*`.
    Range,
    /// A chosen value is negative in a program over the naturals.
    Negative,
}

impl Disabled {
    /// The reason as a text for users.
    pub fn describe(self) -> &'static str {
        match self {
            Disabled::Elsewhere => "the thread is not at the start of this edge",
            Disabled::Pending => "the own buffer is not empty",
            Disabled::NoStore => "no such store can leave the buffer now",
            Disabled::Locked => "another thread holds the lock",
            Disabled::LockTaken => "the lock is not free",
            Disabled::LockNotHeld => "the thread does not hold the lock",
            Disabled::Condition => "the condition does not hold",
            Disabled::NoChoice => "no value was chosen for `*`",
            Disabled::Choices => "more values chosen than needed",
            Disabled::Range => "the chosen value is not in the range of `*`",
            Disabled::Negative => "`*` is a natural number here",
        }
    }
}

/// Limits of the interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// A value does not fit 64 bits.
    Overflow,
    /// An access outside the modelled part of an open array.
    Window,
}

impl Limit {
    /// The limit as a text for users.
    pub fn describe(self) -> &'static str {
        match self {
            Limit::Overflow => "a value does not fit 64 bits",
            Limit::Window => "an access outside the modelled part of an open array",
        }
    }
}

/// The result of a step: the next state, and the accesses in order.
pub type Stepped = (State, Vec<Access>);

/// The reason why an operation did not complete.
enum Stop {
    Fault(Fault),
    Refused(Refusal),
}

/// The interpreter: a program under a memory model.
#[derive(Clone, Copy)]
pub struct Reference<'p> {
    /// The program whose steps are computed.
    pub program: &'p Program,
    /// The memory model under which the program runs.
    pub model: MemoryModel,
}

impl<'p> Reference<'p> {
    /// The interpreter for `program` under `model`.
    pub fn new(program: &'p Program, model: MemoryModel) -> Self {
        Reference { program, model }
    }

    /// The initial state with the given registers and memory; `None` if the program does not allow these values.
    pub fn initial(&self, registers: Vec<Vec<i64>>, memory: Vec<i64>) -> Option<State> {
        let allowed = |init: &Init, value: i64| match *init {
            Init::Value(v) => v == value,
            Init::Any(Some(range)) => range.contains(value),
            Init::Any(None) => self.program.numbers != Numbers::Nat || value >= 0,
        };
        let threads = &self.program.threads;
        let registers_fit = registers.len() == threads.len()
            && threads.iter().zip(&registers).all(|(t, values)| {
                t.registers.len() == values.len()
                    && t.registers.iter().zip(values).all(|(r, &v)| allowed(&r.init, v))
            });
        let cells: Vec<&Init> = self.program.variables.iter().flat_map(|v| &v.init).collect();
        let memory_fits =
            cells.len() == memory.len() && cells.iter().zip(&memory).all(|(i, &v)| allowed(i, v));
        (registers_fit && memory_fits).then(|| State {
            locations: threads.iter().map(|t| t.entry).collect(),
            registers,
            memory,
            buffers: vec![Vec::new(); threads.len()],
            lock: None,
        })
    }

    /// The state after `event`, and the accesses that the event performed.
    pub fn step(&self, state: &State, event: &Event) -> Result<Stepped, Refusal> {
        match &event.kind {
            EventKind::Flush { cell } => self.flush(state, event.thread, *cell),
            EventKind::Step { edge, chosen } => self.take(state, event.thread, *edge, chosen),
        }
    }

    fn flush(&self, state: &State, thread: ThreadId, cell: u32) -> Result<Stepped, Refusal> {
        let buffer = &state.buffers[thread.index()];
        if !may_access(state, thread) {
            return Err(Refusal::Disabled(Disabled::Locked));
        }
        let oldest_of_cell = buffer
            .iter()
            .take_while(|entry| **entry != Buffered::Barrier)
            .position(|entry| matches!(entry, Buffered::Store { cell: c, .. } if *c == cell));
        let position = match oldest_of_cell {
            Some(p) if p == 0 || self.model == MemoryModel::Pso => p,
            _ => return Err(Refusal::Disabled(Disabled::NoStore)),
        };
        let mut next = state.clone();
        let buffer = &mut next.buffers[thread.index()];
        let Buffered::Store { value, .. } = buffer.remove(position) else {
            unreachable!("a barrier has no cell")
        };
        if buffer.first() == Some(&Buffered::Barrier) {
            buffer.remove(0);
        }
        next.memory[cell as usize] = value;
        Ok((next, vec![Access::Write { cell, value, buffered: false }]))
    }

    fn take(
        &self,
        state: &State,
        thread: ThreadId,
        edge: EdgeId,
        chosen: &[i64],
    ) -> Result<Stepped, Refusal> {
        let code = self.program.thread(thread);
        let at = state.locations[thread.index()];
        let Some(edge) = code.edges.get(edge.index()).filter(|e| e.from == at) else {
            return Err(Refusal::Disabled(Disabled::Elsewhere));
        };
        let empty = state.buffers[thread.index()].is_empty();
        let require = |condition: bool, why: Disabled| match condition {
            true => Ok(()),
            false => Err(Refusal::Disabled(why)),
        };
        let mut next = state.clone();
        let mut accesses = Vec::new();
        let mut chosen = chosen.iter().copied();
        let mut fault = None;
        match &edge.action {
            Action::Fence => require(empty, Disabled::Pending)?,
            Action::StoreFence => {
                if self.model == MemoryModel::Pso
                    && !matches!(next.buffers[thread.index()].last(), None | Some(Buffered::Barrier))
                {
                    next.buffers[thread.index()].push(Buffered::Barrier);
                }
            }
            Action::Lock => {
                require(empty, Disabled::Pending)?;
                require(state.lock.is_none(), Disabled::LockTaken)?;
                next.lock = Some(thread);
            }
            Action::Unlock => {
                require(empty, Disabled::Pending)?;
                require(state.lock == Some(thread), Disabled::LockNotHeld)?;
                next.lock = None;
            }
            Action::Op(_) | Action::Atomic { .. } => {
                let indivisible = matches!(edge.action, Action::Atomic { .. });
                let drains = matches!(edge.action, Action::Atomic { drains: true, .. });
                require(!indivisible || may_access(state, thread), Disabled::Locked)?;
                require(!drains || empty, Disabled::Pending)?;
                for op in edge.action.ops() {
                    match self.perform(&mut next, thread, op, drains, &mut chosen, &mut accesses, edge.span) {
                        Ok(()) => {}
                        Err(Stop::Refused(refusal)) => return Err(refusal),
                        Err(Stop::Fault(kind)) => {
                            accesses.push(Access::Fault(kind));
                            fault = Some(kind);
                            break;
                        }
                    }
                }
                require(fault.is_some() || chosen.next().is_none(), Disabled::Choices)?;
            }
        }
        next.locations[thread.index()] = if fault.is_some() { code.fault } else { edge.to };
        Ok((next, accesses))
    }

    /// Performs one operation. `direct`: the step is atomic and has waited for an empty buffer, so its stores go to memory immediately, as all stores
    /// do under SC.
    #[allow(clippy::too_many_arguments)]
    fn perform(
        &self,
        state: &mut State,
        thread: ThreadId,
        op: &Op,
        direct: bool,
        chosen: &mut impl Iterator<Item = i64>,
        accesses: &mut Vec<Access>,
        span: Span,
    ) -> Result<(), Stop> {
        let disabled = |why| Err(Stop::Refused(Refusal::Disabled(why)));
        let t = thread.index();
        let value_of = |state: &State, e: &Expr<RegisterId>| {
            e.eval(&mut |r| state.registers[t][r.index()]).map_err(|error| match error {
                EvalError::DivisionByZero => Stop::Fault(Fault::DivisionByZero),
                EvalError::ShiftOutOfRange => Stop::Fault(Fault::Shift),
                EvalError::Overflow => Stop::Refused(Refusal::Limit(Limit::Overflow, span)),
            })
        };
        let in_range = |range: Option<Range>, value: i64| {
            let natural = self.program.numbers != Numbers::Nat || value >= 0;
            if natural && range.is_none_or(|r| r.contains(value)) {
                Ok(value)
            } else {
                Err(Stop::Fault(Fault::Range))
            }
        };
        let register_range = |r: RegisterId| self.program.threads[t].registers[r.index()].range;
        match op {
            Op::Skip => {}
            Op::Assign(register, e) => {
                let value = in_range(register_range(*register), value_of(state, e)?)?;
                state.registers[t][register.index()] = value;
            }
            Op::Havoc(register, range) => {
                let Some(value) = chosen.next() else { return disabled(Disabled::NoChoice) };
                let natural = self.program.numbers != Numbers::Nat || value >= 0;
                match range {
                    Some(range) if !range.contains(value) => {
                        return disabled(Disabled::Range);
                    }
                    None if !natural => return disabled(Disabled::Negative),
                    _ => state.registers[t][register.index()] = in_range(register_range(*register), value)?,
                }
            }
            Op::Assume(e) => {
                if value_of(state, e)? == 0 {
                    return disabled(Disabled::Condition);
                }
            }
            Op::Assert(e, fault) => {
                if value_of(state, e)? == 0 {
                    return Err(Stop::Fault(*fault));
                }
            }
            Op::Load(register, address) => {
                if !may_access(state, thread) {
                    return disabled(Disabled::Locked);
                }
                let cell = self.cell(address, |e| value_of(state, e), span)?;
                let newest = state.buffers[t].iter().rev().find_map(|entry| match entry {
                    Buffered::Store { cell: c, value } if *c == cell => Some(*value),
                    _ => None,
                });
                let value = newest.unwrap_or(state.memory[cell as usize]);
                accesses.push(Access::Read { cell, value, buffered: newest.is_some() });
                state.registers[t][register.index()] = in_range(register_range(*register), value)?;
            }
            Op::Store(address, e) => {
                let direct = direct || self.model == MemoryModel::Sc;
                if direct && !may_access(state, thread) {
                    return disabled(Disabled::Locked);
                }
                let cell = self.cell(address, |e| value_of(state, e), span)?;
                let range = self.program.variables[address.variable.index()].range;
                let value = in_range(range, value_of(state, e)?)?;
                accesses.push(Access::Write { cell, value, buffered: !direct });
                if direct {
                    state.memory[cell as usize] = value;
                } else {
                    state.buffers[t].push(Buffered::Store { cell, value });
                    if self.model == MemoryModel::Pso {
                        sort_last_segment(&mut state.buffers[t]);
                    }
                }
            }
        }
        Ok(())
    }

    /// The memory cell that an address denotes.
    fn cell(
        &self,
        address: &Address,
        value_of: impl Fn(&Expr<RegisterId>) -> Result<i64, Stop>,
        span: Span,
    ) -> Result<u32, Stop> {
        let variable = &self.program.variables[address.variable.index()];
        match (&address.index, variable.indices) {
            (Some(index), Some(range)) => {
                let index = value_of(index)?;
                if range.contains(index) {
                    Ok(variable.base + (index - range.low) as u32)
                } else if variable.open {
                    Err(Stop::Refused(Refusal::Limit(Limit::Window, span)))
                } else {
                    Err(Stop::Fault(Fault::Index))
                }
            }
            _ => Ok(variable.base),
        }
    }

    /// All events that could be steps from `state`, enabled or not. If the `*`s of an edge have more than [`MOST_CHOICES`] combinations of values,
    /// only the `samples` are tried for each of them.
    pub fn candidates(&self, state: &State, samples: &[i64]) -> Vec<Event> {
        let mut events = Vec::new();
        for (thread, code) in self.program.threads() {
            for (edge, e) in code.edges_from(state.locations[thread.index()]) {
                let sampled = self.program.is_sampled(&e.action);
                let mut choices = vec![Vec::new()];
                for op in e.action.ops() {
                    let Op::Havoc(_, range) = op else { continue };
                    let values: Vec<i64> = match range {
                        Some(range) if !sampled => (range.low..=range.high).collect(),
                        Some(range) => samples.iter().copied().filter(|&v| range.contains(v)).collect(),
                        None => samples.to_vec(),
                    };
                    // Without a value for the `*` the event is still a candidate, because an earlier operation of the step may fault.
                    if values.is_empty() {
                        break;
                    }
                    choices = choices
                        .iter()
                        .flat_map(|prefix| values.iter().map(move |&v| [prefix.as_slice(), &[v]].concat()))
                        .collect();
                }
                events.extend(
                    choices
                        .into_iter()
                        .map(|chosen| Event { thread, kind: EventKind::Step { edge, chosen } }),
                );
            }
            let mut cells: Vec<u32> = state.buffers[thread.index()]
                .iter()
                .filter_map(|entry| match entry {
                    Buffered::Store { cell, .. } => Some(*cell),
                    Buffered::Barrier => None,
                })
                .collect();
            cells.sort_unstable();
            cells.dedup();
            events.extend(cells.into_iter().map(|cell| Event { thread, kind: EventKind::Flush { cell } }));
        }
        events
    }

    /// Whether all threads have terminated and all buffers are empty.
    pub fn is_final(&self, state: &State) -> bool {
        state.buffers.iter().all(Vec::is_empty)
            && self.program.threads().all(|(t, code)| code.is_end(state.locations[t.index()]))
    }

    /// Whether some thread has faulted.
    pub fn has_fault(&self, state: &State) -> bool {
        self.program.threads().any(|(t, code)| state.locations[t.index()] == code.fault)
    }

    /// Whether no step is enabled although some thread has not terminated; a faulted thread counts as terminated.
    pub fn is_deadlock(&self, state: &State) -> bool {
        let unfinished = self.program.threads().any(|(t, code)| {
            let at = state.locations[t.index()];
            at != code.fault && !code.is_end(at)
        });
        // Whether a sampled edge is enabled may depend on the chosen value. It counts as enabled if the step can be performed up to the choice.
        let may_move = |event: &Event| match self.step(state, event) {
            Err(Refusal::Disabled(why)) => why == Disabled::NoChoice && self.is_sampled_event(event),
            Ok(_) | Err(Refusal::Limit(..)) => true,
        };
        let sampled = self.program.threads().flat_map(|(thread, code)| {
            let edges = code.edges_from(state.locations[thread.index()]);
            edges.map(move |(edge, _)| Event { thread, kind: EventKind::Step { edge, chosen: Vec::new() } })
        });
        let sampled = sampled.filter(|event| self.is_sampled_event(event));
        unfinished && !self.candidates(state, &[]).into_iter().chain(sampled).any(|e| may_move(&e))
    }

    /// Whether the event takes an edge for whose `*`s only samples are tried.
    fn is_sampled_event(&self, event: &Event) -> bool {
        match &event.kind {
            EventKind::Step { edge, .. } => {
                self.program.is_sampled(&self.program.thread(event.thread).edge(*edge).action)
            }
            EventKind::Flush { .. } => false,
        }
    }

    /// Whether, in this state, some thread is at a location with an outgoing edge for whose `*`s only samples are tried.
    pub fn has_unbounded_choice(&self, state: &State) -> bool {
        self.program.threads().any(|(t, code)| {
            code.edges_from(state.locations[t.index()]).any(|(_, e)| self.program.is_sampled(&e.action))
        })
    }
}

/// Maximum number of combinations of values of the `*`s of one step; with more of them, only samples are tried.
pub const MOST_CHOICES: u64 = 1 << 16;

impl Program {
    /// The number of values that a `*` with this range can choose. Over the reals it is infinite (`u64::MAX`) unless the range has at most one value.
    pub fn choices(&self, range: Option<Range>) -> u64 {
        match range.map(Range::size) {
            Some(size) if size <= 1 || self.numbers != Numbers::Real => size,
            _ => u64::MAX,
        }
    }

    /// Whether the `*`s of an action have more combinations of values than [`MOST_CHOICES`].
    pub fn is_sampled(&self, action: &Action) -> bool {
        let values = |op: &Op| match op {
            Op::Havoc(_, range) => self.choices(*range),
            _ => 1,
        };
        action.ops().iter().map(values).fold(1, u64::saturating_mul) > MOST_CHOICES
    }
}

/// Whether the thread may load, flush, lock or run an atomic step: no other thread holds the lock.
fn may_access(state: &State, thread: ThreadId) -> bool {
    state.lock.is_none_or(|holder| holder == thread)
}

/// Sorts the entries after the last barrier by cell; entries of the same cell keep their order.
fn sort_last_segment(buffer: &mut [Buffered]) {
    let start = buffer.iter().rposition(|entry| *entry == Buffered::Barrier).map_or(0, |p| p + 1);
    buffer[start..].sort_by_key(|entry| match entry {
        Buffered::Store { cell, .. } => *cell,
        Buffered::Barrier => unreachable!("the segment starts after the last barrier"),
    });
}

/// Whether a formula holds in a state; `None` if its value does not fit 64 bits. A formula that divides by zero or shifts out of range does not hold.
/// (The source language lets formulas divide by constants only.)
pub fn holds(state: &State, formula: &Formula) -> Option<bool> {
    let value = formula.eval(&mut |observable| match observable {
        Observable::At(thread, locations) => locations.contains(&state.locations[thread.index()]) as i64,
        Observable::Register(thread, register) => state.registers[thread.index()][register.index()],
        Observable::Memory(cell) => state.memory[*cell as usize],
    });
    match value {
        Ok(value) => Some(value != 0),
        Err(EvalError::DivisionByZero | EvalError::ShiftOutOfRange) => Some(false),
        Err(EvalError::Overflow) => None,
    }
}

/// Whether the property is satisfied, if this final state alone decides that: a state that satisfies the formula satisfies `exists` and violates
/// `never`; a state that does not satisfy the formula violates `forall`. `None` if the state decides nothing.
pub fn decided_by(quantifier: Quantifier, formula_holds: bool) -> Option<bool> {
    match quantifier {
        Quantifier::Exists => formula_holds.then_some(true),
        Quantifier::Never => formula_holds.then_some(false),
        Quantifier::Forall => (!formula_holds).then_some(false),
    }
}
