//! The second interpreter: it executes threads on the syntax tree, one event at a time, with memory, store buffers and the global lock. It was
//! written from `docs/language.md` and shares no code with lowering or the reference semantics.

use std::collections::{HashSet, VecDeque};

use fencewright_lang::ast::*;
use fencewright_program::{MemoryModel, Numbers};

use super::control::{Code, Position, Target, is_entered};
use super::declarations::{Declared, Values, interval, unary};
use super::evaluate::{Answers, Evaluation, Modification, Need, Trouble, Value};

/// A state of the whole program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub memory: Vec<i64>,
    pub threads: Vec<ThreadState>,
    lock: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ThreadState {
    pub position: Position,
    /// The results of the accesses of the current statement so far.
    pub log: Vec<i64>,
    pub faulted: bool,
    pub registers: Vec<i64>,
    /// Stores that have not reached memory, oldest first.
    buffer: Vec<Buffered>,
    /// Whether an `sfence` follows the last store in the buffer.
    fenced: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Buffered {
    cell: usize,
    value: i64,
    /// The number of `sfence`s before the store in the buffer.
    epoch: usize,
}

/// The reason why the exploration is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incomplete {
    TooManyStates,
    /// A value that does not fit 64 bits, or an access outside the modelled part of an open array.
    Limit,
}

/// The second interpreter, for one program and memory model.
pub struct Machine<'f> {
    pub declared: &'f Declared<'f>,
    pub codes: &'f [Code<'f>],
    pub model: MemoryModel,
}

/// The result of a step: the next state, `None` if the step is disabled, or a fault or limit.
type Step = Result<Option<State>, Trouble>;

/// All reachable states, and whether one of them is a deadlock.
pub struct Reachable {
    pub states: HashSet<State>,
    /// If `await` is a loop: whether some state is a deadlock, in which no step is enabled.
    pub deadlock: bool,
    /// If `await` blocks: whether some state is a deadlock, in which threads can at most return to an `await` without a change.
    pub blocked: bool,
}

impl<'f> Machine<'f> {
    pub fn explore(&self, limit: usize) -> Result<Reachable, Incomplete> {
        let mut queue: VecDeque<State> = self.initial().into();
        let mut states: HashSet<State> = queue.iter().cloned().collect();
        let (mut deadlock, mut blocked) = (false, false);
        while let Some(state) = queue.pop_front() {
            if states.len() > limit {
                return Err(Incomplete::TooManyStates);
            }
            let successors = self.successors(&state).map_err(|_| Incomplete::Limit)?;
            let waiting = state.threads.iter().any(|t| !t.faulted && !t.position.is_empty());
            deadlock |= successors.is_empty() && waiting;
            blocked |= waiting && self.is_blocked(&state).map_err(|_| Incomplete::Limit)?;
            for next in successors {
                if states.insert(next.clone()) {
                    queue.push_back(next);
                }
            }
        }
        Ok(Reachable { states, deadlock, blocked })
    }

    /// Whether no store can leave a buffer and no thread can do more than wait at an `await`.
    fn is_blocked(&self, state: &State) -> Result<bool, Trouble> {
        for (t, thread) in state.threads.iter().enumerate() {
            let mut flushed = Vec::new();
            self.flushes(state, t, &mut flushed);
            if !flushed.is_empty() || !thread.faulted && self.departs(state, t, &thread.position)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a thread has a step from `position` other than a failed `await` that changes nothing.
    fn departs(&self, state: &State, t: usize, position: &Position) -> Result<bool, Trouble> {
        let code = &self.codes[t];
        match code.statement(position).map(|statement| &statement.kind) {
            Some(StatementKind::Choose(blocks)) => {
                for block in blocks {
                    let start = code.settle(code.enter(position, block, None));
                    if is_entered(block) || self.departs(state, t, &start)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Some(StatementKind::Await(e)) if code.has_access(e) && state.threads[t].log.is_empty() => {
                let mut log = Vec::new();
                loop {
                    let need = match self.evaluation(state, t, position, &log).truth(e) {
                        Ok(holds) => return Ok(holds),
                        Err(need) => need,
                    };
                    match self.perform(state, t, need) {
                        // Other threads can observe this change, even if a later step of the statement undoes it.
                        Ok(Some((next, _))) if next != *state => return Ok(true),
                        Ok(Some((_, answer))) => log.push(answer),
                        Ok(None) => return Ok(false),
                        Err(Trouble::Fault) => return Ok(true),
                        Err(Trouble::Limit) => return Err(Trouble::Limit),
                    }
                }
            }
            _ => {
                let mut next = Vec::new();
                self.steps(state, t, position, &mut next)?;
                Ok(!next.is_empty())
            }
        }
    }

    /// Whether all threads have ended and all buffers are empty.
    pub fn is_final(&self, state: &State) -> bool {
        state.threads.iter().all(|t| !t.faulted && t.position.is_empty() && t.buffer.is_empty())
    }

    fn initial(&self) -> Vec<State> {
        let registers = self.declared.threads.iter().flat_map(|t| t.registers.iter().map(|r| r.initial));
        let mut choices: Vec<Vec<i64>> = vec![Vec::new()];
        for (low, high) in registers.chain(self.declared.memory.iter().copied()) {
            let extended = choices.iter().flat_map(|c| (low..=high).map(|v| [c.as_slice(), &[v]].concat()));
            choices = extended.collect();
        }
        let state = |values: Vec<i64>| {
            let mut values = values.into_iter();
            let threads = self.codes.iter().map(|code| ThreadState {
                position: code.start(),
                log: Vec::new(),
                faulted: false,
                registers: values.by_ref().take(code.thread.registers.len()).collect(),
                buffer: Vec::new(),
                fenced: false,
            });
            State { threads: threads.collect(), memory: values.collect(), lock: None }
        };
        choices.into_iter().map(state).collect()
    }

    fn successors(&self, state: &State) -> Result<Vec<State>, Trouble> {
        let mut next = Vec::new();
        for t in 0..state.threads.len() {
            self.flushes(state, t, &mut next);
            let thread = &state.threads[t];
            if !thread.faulted {
                self.steps(state, t, &thread.position, &mut next)?;
            }
        }
        Ok(next)
    }

    fn may_access(&self, state: &State, t: usize) -> bool {
        state.lock.is_none_or(|holder| holder == t)
    }

    fn flushes(&self, state: &State, t: usize, out: &mut Vec<State>) {
        let buffer = &state.threads[t].buffer;
        for (n, entry) in buffer.iter().enumerate() {
            let overtakes = match self.model {
                MemoryModel::Pso => buffer[..n].iter().any(|e| e.cell == entry.cell || e.epoch < entry.epoch),
                _ => n > 0,
            };
            if overtakes || !self.may_access(state, t) {
                continue;
            }
            let mut next = state.clone();
            next.memory[entry.cell] = entry.value;
            let thread = &mut next.threads[t];
            thread.buffer.remove(n);
            thread.fenced &= !thread.buffer.is_empty();
            let passed = thread.buffer.first().map_or(0, |first| first.epoch);
            thread.buffer.iter_mut().for_each(|e| e.epoch -= passed);
            out.push(next);
        }
    }

    /// The steps of a thread at `position`, which is its position or the start of a block that it may choose.
    fn steps(
        &self,
        state: &State,
        t: usize,
        position: &Position,
        out: &mut Vec<State>,
    ) -> Result<(), Trouble> {
        let code = &self.codes[t];
        let Some(statement) = code.statement(position) else { return Ok(()) };
        match &statement.kind {
            StatementKind::Choose(blocks) => {
                for block in blocks {
                    let start = code.enter(position, block, None);
                    match is_entered(block) {
                        true => out.push(self.moved(state, t, start)),
                        false => self.steps(state, t, &code.settle(start), out)?,
                    }
                }
            }
            StatementKind::Atomic(block) => {
                if self.may_access(state, t) && state.threads[t].buffer.is_empty() {
                    self.indivisible(state, t, position, block, out)?;
                }
            }
            StatementKind::Snapshot(block) => {
                if self.may_access(state, t) {
                    self.indivisible(state, t, position, block, out)?;
                }
            }
            StatementKind::Havoc(place, range) => {
                self.havoc(state, t, position, place, range.as_ref(), out)?
            }
            _ => match self.step(state, t, position, &statement.kind) {
                Ok(next) => out.extend(next),
                Err(Trouble::Fault) => out.push(faulted(state, t)),
                Err(Trouble::Limit) => return Err(Trouble::Limit),
            },
        }
        Ok(())
    }

    /// The only possible next step of a statement without choices.
    fn step(&self, state: &State, t: usize, position: &Position, kind: &'f StatementKind) -> Step {
        let code = &self.codes[t];
        let drained = state.threads[t].buffer.is_empty();
        let on = || self.moved(state, t, code.after(position.clone()));
        match kind {
            StatementKind::Skip => Ok(Some(on())),
            StatementKind::Fence => Ok(drained.then(on)),
            StatementKind::StoreFence => {
                let mut next = on();
                next.threads[t].fenced = self.model == MemoryModel::Pso && !drained;
                Ok(Some(next))
            }
            StatementKind::Lock(Some(mutex)) => self.mutex(state, t, position, mutex, true),
            StatementKind::Unlock(Some(mutex)) => self.mutex(state, t, position, mutex, false),
            StatementKind::Lock(None) => {
                Ok((drained && state.lock.is_none()).then(|| State { lock: Some(t), ..on() }))
            }
            StatementKind::Unlock(None) => {
                Ok((drained && state.lock == Some(t)).then(|| State { lock: None, ..on() }))
            }
            StatementKind::Assign(..) | StatementKind::Expr(_) | StatementKind::Assert(..) => {
                self.evaluated(state, t, position, kind)
            }
            StatementKind::Assume(_)
            | StatementKind::Await(_)
            | StatementKind::If(..)
            | StatementKind::While(..) => self.decided(state, t, position, kind),
            StatementKind::Goto(_) | StatementKind::Break | StatementKind::Continue | StatementKind::Stop => {
                Ok(code.jump(position).map(|target| self.moved(state, t, target)))
            }
            // An empty loop.
            _ => Ok(code.without_step(position).map(|next| self.moved(state, t, next))),
        }
    }

    /// `lock` or `unlock` of a mutex: after the accesses in its index, one step that waits until the thread's buffer is empty.
    fn mutex(&self, state: &State, t: usize, position: &Position, mutex: &'f Place, takes: bool) -> Step {
        let cell = match self.evaluation(state, t, position, &state.threads[t].log).cell(mutex) {
            Ok((cell, _)) => cell,
            Err(need) => return self.performed(state, t, position, need),
        };
        if !self.may_access(state, t) || !state.threads[t].buffer.is_empty() {
            return Ok(None);
        }
        let (cell, own) = (cell?, t as i64 + 1);
        let mut next = self.moved(state, t, self.codes[t].after(position.clone()));
        next.memory[cell] = match (takes, state.memory[cell]) {
            (true, 0) => own,
            (true, _) => return Ok(None),
            (false, holder) if holder == own => 0,
            (false, _) => return Err(Trouble::Fault),
        };
        Ok(Some(next))
    }

    pub fn evaluation<'a>(
        &'a self,
        state: &'a State,
        t: usize,
        position: &'a Position,
        log: &'a [i64],
    ) -> Evaluation<'a, 'f> {
        Evaluation {
            declared: self.declared,
            code: &self.codes[t],
            position,
            registers: &state.threads[t].registers,
            answers: Answers::Log(log, 0),
        }
    }

    /// A step of a statement that computes a value: one of its accesses, or at the end its effect.
    fn evaluated(&self, state: &State, t: usize, position: &Position, kind: &'f StatementKind) -> Step {
        let code = &self.codes[t];
        let log = &state.threads[t].log;
        let mut evaluation = self.evaluation(state, t, position, log);
        let on = |state: &State| self.moved(state, t, code.after(position.clone()));
        match kind {
            StatementKind::Assign(place, e) => match code.written(position, place) {
                Target::Element(name, indices, index) => {
                    let mut needed = || {
                        let (element, value) = (evaluation.element(indices, index)?, evaluation.value(e)?);
                        evaluation.check(indices, index, element)?;
                        evaluation.answer(Need::Decide(element.map(|_| ())))?;
                        Ok((element, value))
                    };
                    match needed() {
                        Err(need) => self.performed(state, t, position, need),
                        Ok((element, value)) => {
                            let register = code.thread.register(name, Some(element?)).expect("an element");
                            Ok(Some(on(&self.assigned(state, t, register, value)?)))
                        }
                    }
                }
                Target::Register(register) => match evaluation.value(e) {
                    Err(need) => {
                        let Some((next, answer)) = self.perform(state, t, need)? else { return Ok(None) };
                        match self.is_one_access(t, position, register, e)
                            && self.is_complete(&next, t, position, e, answer)
                        {
                            true => Ok(Some(on(&self.assigned(&next, t, register, Ok(answer))?))),
                            false => Ok(Some(self.logged(next, t, position, answer))),
                        }
                    }
                    Ok(value) => Ok(Some(on(&self.assigned(state, t, register, value)?))),
                },
                Target::Shared => {
                    let mut needed = || Ok((evaluation.cell(place)?, evaluation.value(e)?));
                    match needed() {
                        Err(need) => self.performed(state, t, position, need),
                        Ok(((cell, variable), value)) => {
                            self.stored(state, t, position, cell, variable, value)
                        }
                    }
                }
            },
            StatementKind::Expr(e) => match evaluation.value(e) {
                Err(need) => {
                    let Some((next, answer)) = self.perform(state, t, need)? else { return Ok(None) };
                    match self.is_complete(&next, t, position, e, answer) {
                        true => Ok(Some(on(&next))),
                        false => Ok(Some(self.logged(next, t, position, answer))),
                    }
                }
                Ok(_) => unreachable!("it ends with its last access"),
            },
            StatementKind::Assert(e, _) => match evaluation.value(e) {
                Err(need) => self.performed(state, t, position, need),
                Ok(value) if value? == 0 => Err(Trouble::Fault),
                Ok(_) => Ok(Some(on(state))),
            },
            _ => unreachable!("not a statement with a value"),
        }
    }

    /// A step of a statement with a condition. The step that decides the condition also moves the thread to the next statement.
    fn decided(&self, state: &State, t: usize, position: &Position, kind: &'f StatementKind) -> Step {
        let code = &self.codes[t];
        let condition = match kind {
            StatementKind::If(e, ..) | StatementKind::While(e, _) => e,
            StatementKind::Assume(e) | StatementKind::Await(e) => e,
            _ => unreachable!("not a condition"),
        };
        let target = |holds: bool| match kind {
            StatementKind::If(_, then, otherwise) => {
                Some(code.branch(position, holds, then, otherwise.as_ref()))
            }
            StatementKind::While(_, body) if holds => Some(code.enter(position, body, None)),
            StatementKind::Await(_) if !holds && code.has_access(condition) => Some(code.again(position)),
            StatementKind::Assume(_) | StatementKind::Await(_) if !holds => None,
            _ => Some(code.after(position.clone())),
        };
        let log = &state.threads[t].log;
        let (next, answer) = match self.evaluation(state, t, position, log).truth(condition) {
            // Constants decide the condition, but the statement still takes a step.
            Ok(holds) => return Ok(target(holds).map(|to| self.moved(state, t, to))),
            Err(need) => match self.perform(state, t, need)? {
                Some(performed) => performed,
                None => return Ok(None),
            },
        };
        let log = [log.as_slice(), &[answer]].concat();
        match self.evaluation(&next, t, position, &log).truth(condition) {
            Ok(holds) => Ok(target(holds).map(|to| self.moved(&next, t, to))),
            Err(_) => Ok(Some(self.logged(next, t, position, answer))),
        }
    }

    /// Whether `r = e` is a single step, together with its only access. A loaded value is written in a separate step if it may wrap around to the
    /// type of the register. The result of a read-modify-write operation is written in a separate step if the register has a range or a type.
    fn is_one_access(&self, t: usize, position: &Position, register: usize, e: &Expr) -> bool {
        let values = self.codes[t].thread.registers[register].values;
        match &e.kind {
            ExprKind::Place(place) => {
                let shared = self.declared.shared(&place.name.text);
                shared.is_some_and(|shared| values.take(shared.values))
            }
            ExprKind::Cas(..) | ExprKind::Swap(..) | ExprKind::FetchAdd(..) => {
                values.range.is_none() && values.wraps.is_none()
            }
            // If constants decide the condition, only the chosen side matters.
            ExprKind::If(condition, then, otherwise) => {
                self.codes[t].decided_value(position, condition).is_some_and(|value| {
                    self.is_one_access(t, position, register, if value != 0 { then } else { otherwise })
                })
            }
            _ => false,
        }
    }

    /// Whether the evaluation of an expression is complete with `answer` as one more result.
    fn is_complete(&self, state: &State, t: usize, position: &Position, e: &Expr, answer: i64) -> bool {
        let log = [state.threads[t].log.as_slice(), &[answer]].concat();
        self.evaluation(state, t, position, &log).value(e).is_ok()
    }

    fn performed(&self, state: &State, t: usize, position: &Position, need: Need) -> Step {
        let performed = self.perform(state, t, need)?;
        Ok(performed.map(|(next, answer)| self.logged(next, t, position, answer)))
    }

    /// The state after an event in the middle of a statement, and the result of the event; `None` if the event is disabled.
    fn perform(&self, state: &State, t: usize, need: Need) -> Result<Option<(State, i64)>, Trouble> {
        let mut next = state.clone();
        match need {
            Need::Decide(decided) => decided.map(|()| Some((next, 1))),
            Need::Load(_) | Need::Modify(..) if !self.may_access(state, t) => Ok(None),
            Need::Load(cell) => Ok(Some((next, self.load(state, t, cell?)))),
            Need::Modify(..) if !state.threads[t].buffer.is_empty() => Ok(None),
            Need::Modify(cell, variable, modification) => {
                let cell = cell?;
                let old = state.memory[cell];
                let (new, answer) = match modification {
                    Modification::Cas(expected, _) if expected? != old => (None, 0),
                    Modification::Cas(_, new) => (Some(new?), 1),
                    Modification::Swap(new) => (Some(new?), old),
                    Modification::FetchAdd(more) => {
                        (Some(old.checked_add(more?).ok_or(Trouble::Limit)?), old)
                    }
                };
                if let Some(new) = new {
                    next.memory[cell] = self.checked(self.declared.shared[variable].values, new)?;
                }
                Ok(Some((next, answer)))
            }
        }
    }

    /// The thread's newest buffered store to the cell, or else memory.
    pub fn load(&self, state: &State, t: usize, cell: usize) -> i64 {
        let own = state.threads[t].buffer.iter().rev().find(|entry| entry.cell == cell);
        own.map_or(state.memory[cell], |entry| entry.value)
    }

    fn stored(
        &self,
        state: &State,
        t: usize,
        position: &Position,
        cell: Result<usize, Trouble>,
        variable: usize,
        value: Value,
    ) -> Step {
        if self.model == MemoryModel::Sc && !self.may_access(state, t) {
            return Ok(None);
        }
        let cell = cell?;
        let value = self.checked(self.declared.shared[variable].values, value?)?;
        let mut next = self.moved(state, t, self.codes[t].after(position.clone()));
        if self.model == MemoryModel::Sc {
            next.memory[cell] = value;
            return Ok(Some(next));
        }
        let thread = &mut next.threads[t];
        let epoch = thread.buffer.last().map_or(0, |last| last.epoch + usize::from(thread.fenced));
        thread.fenced = false;
        thread.buffer.push(Buffered { cell, value, epoch });
        if self.model == MemoryModel::Pso {
            // Only the order of epochs and of stores to the same cell matters.
            thread.buffer.sort_by_key(|entry| (entry.epoch, entry.cell));
        }
        Ok(Some(next))
    }

    /// A value as it is written: wrapped to the type and checked against the range.
    pub fn checked(&self, Values { range, wraps }: Values, value: i64) -> Value {
        let value = wraps.map_or(Some(value), |wraps| unary(wraps, value)).ok_or(Trouble::Limit)?;
        let natural = self.declared.numbers != Numbers::Nat || value >= 0;
        let inside = range.is_none_or(|(low, high)| low <= value && value <= high);
        if natural && inside { Ok(value) } else { Err(Trouble::Fault) }
    }

    pub fn assigned(&self, state: &State, t: usize, register: usize, value: Value) -> Result<State, Trouble> {
        let value = self.checked(self.codes[t].thread.registers[register].values, value?)?;
        let mut next = state.clone();
        next.threads[t].registers[register] = value;
        Ok(next)
    }

    /// `r = *` is one step; `x = *` chooses (after the accesses in its index) and then stores.
    fn havoc(
        &self,
        state: &State,
        t: usize,
        position: &Position,
        place: &Place,
        range: Option<&RangeExpr>,
        out: &mut Vec<State>,
    ) -> Result<(), Trouble> {
        let code = &self.codes[t];
        let chosen = range.map(|r| interval(r, &|name| code.constant(position, name)));
        let mut push = |step: Step| {
            out.extend(match step {
                Ok(next) => next,
                Err(Trouble::Fault) => Some(faulted(state, t)),
                Err(Trouble::Limit) => return Err(Trouble::Limit),
            });
            Ok(())
        };
        let log = &state.threads[t].log;
        let mut evaluation = self.evaluation(state, t, position, log);
        let register = match code.written(position, place) {
            Target::Register(register) => Some(register),
            Target::Shared => None,
            Target::Element(name, indices, index) => {
                let mut needed = || {
                    let element = evaluation.element(indices, index)?;
                    evaluation.check(indices, index, element)?;
                    evaluation.answer(Need::Decide(element.map(|_| ())))?;
                    Ok(element)
                };
                match needed() {
                    Err(need) => return push(self.performed(state, t, position, need)),
                    Ok(element) => code.thread.register(name, Some(element?)),
                }
            }
        };
        if let Some(register) = register {
            let (low, high) = chosen.or(code.thread.registers[register].values.range).expect("bounded");
            for value in low..=high {
                let next = self.assigned(state, t, register, Ok(value));
                push(next.map(|next| Some(self.moved(&next, t, code.after(position.clone())))))?;
            }
            return Ok(());
        }
        let (cell, variable) = match evaluation.cell(place) {
            Ok(found) => found,
            Err(need) => return push(self.performed(state, t, position, need)),
        };
        if let Ok(value) = evaluation.answer(Need::Decide(Ok(()))) {
            return push(self.stored(state, t, position, cell, variable, Ok(value)));
        }
        let (low, high) = chosen.or(self.declared.shared[variable].values.range).expect("bounded");
        for value in low..=high {
            // With `numbers nat`, choosing a negative number is a fault.
            let natural = self.checked(Values::default(), value);
            push(natural.map(|value| Some(self.logged(state.clone(), t, position, value))))?;
        }
        Ok(())
    }

    /// Moves the thread to another position, at the start of the statement there.
    pub fn moved(&self, state: &State, t: usize, to: Position) -> State {
        let mut next = state.clone();
        next.threads[t].position = self.codes[t].settle(to);
        next.threads[t].log.clear();
        next
    }

    /// Moves the thread one event further in the statement at `position`.
    fn logged(&self, mut state: State, t: usize, position: &Position, answer: i64) -> State {
        state.threads[t].position = position.clone();
        state.threads[t].log.push(answer);
        state
    }
}

/// Stops the thread with a fault; the others continue.
pub fn faulted(state: &State, t: usize) -> State {
    let mut next = state.clone();
    let thread = &mut next.threads[t];
    (thread.faulted, thread.position, thread.log) = (true, Position::new(), Vec::new());
    next
}
