//! The steps that leave a packed state: a second implementation of the reference semantics, on packed states and without allocation.
//!
//! The rules are those of [`fencewright_program::reference`], in the same order and with the same names, but they are implemented independently,
//! except for the evaluation of expressions. The state of the moving thread is unpacked, so that its operations read like those of the reference;
//! memory is updated in packed form. Tests compare the steps from thousands of states of random programs with the reference, one by one.

use fencewright_program::reference::Limit;
use fencewright_program::{
    Action, Address, Edge, EdgeId, EvalError, Expr, LocationId, MemoryModel, Numbers, Op, Program, Range,
    RegisterId, ThreadId,
};

use super::StateSet;
use super::Validated;
use super::abstraction::Abstraction;
use super::buffer::{Buffer, Flush};
use super::persistent::Chooser;

/// Computes the successors of packed states.
pub struct Steps<'a> {
    program: &'a Program,
    set: &'a StateSet,
    model: MemoryModel,
    /// For each edge of each thread, whether it is local.
    local: &'a [Vec<bool>],
    /// The bits of the registers of each thread.
    register_bits: Vec<Vec<u64>>,
    /// The state after the current step, except for the registers and the buffer of the moving thread.
    next: Vec<u64>,
    /// The registers of the moving thread.
    registers: Vec<i64>,
    /// The store buffer of the moving thread.
    buffer: Buffer,
    /// The stores that can leave that buffer.
    flushes: Vec<Flush>,
    /// The values chosen so far for the `*`s of the step, each with the greatest value that may be chosen there.
    chosen: Vec<(i64, i64)>,
    /// Computes closed sets of parts; `None` if persistent sets are not used.
    chooser: Option<Chooser<'a>>,
}

/// The reason why a step does not lead to a packed state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    /// The step leads to a state that does not fit the layout.
    Leaves(ThreadId),
    /// The step exceeds a limit of explicit computation.
    Limit(ThreadId, Limit),
    /// The step chooses among more values than are tried.
    Choice(ThreadId),
}

/// The reason why an operation did not complete.
enum Halt {
    Disabled,
    Fault,
    Limit(Limit),
    Choice,
    /// The written value does not fit the layout.
    Misfit,
}

/// Called with each successor state and the thread that takes the step.
type Visit<'v> = &'v mut dyn FnMut(ThreadId, &[u64]);

fn require(condition: bool) -> Result<(), Halt> {
    if condition { Ok(()) } else { Err(Halt::Disabled) }
}

impl<'a> Steps<'a> {
    /// Steps of the states of a set, with the checked reductions of that set.
    pub fn new(program: &'a Program, set: &'a StateSet, validated: &'a Validated) -> Self {
        let register_bits = (0..program.threads.len()).map(|t| set.layout.register_bits(t)).collect();
        Steps {
            program,
            set,
            model: set.model.into(),
            local: &validated.local,
            register_bits,
            next: vec![0; set.layout.words],
            registers: Vec::new(),
            buffer: Buffer::new(set),
            flushes: Vec::new(),
            chosen: Vec::new(),
            chooser: validated.persistent.as_ref().map(|facts| Chooser::new(facts, set)),
        }
    }

    /// Decodes the location of a thread in a packed state.
    pub fn location(&self, state: &[u64], thread: usize) -> LocationId {
        LocationId(self.set.layout.locations[thread].get(state) as u32)
    }

    /// Whether all numbers of locations, threads and cells in a packed state exist, and the numbers of buffer entries fit the layout.
    pub fn is_state(&self, state: &[u64]) -> bool {
        let layout = &self.set.layout;
        let threads = 0..=self.program.threads.len() as i64;
        let located = layout.locations.iter().zip(&self.program.threads);
        located.into_iter().all(|(field, t)| (0..t.locations.len() as i64).contains(&field.get(state)))
            && threads.contains(&layout.lock.get(state))
            && threads.contains(&layout.favourite.get(state))
            && layout.buffers.iter().all(|buffer| {
                let count = buffer.count.get(state);
                let border = self.set.abstraction.is_some_and(Abstraction::has_border);
                let kinds = 0..=buffer.cells.len() as i64 + border as i64;
                (0..=buffer.entries.len() as i64).contains(&count)
                    && buffer.entries[..count as usize]
                        .iter()
                        .all(|(kind, _)| kinds.contains(&kind.get(state)))
            })
    }

    /// Calls `visit` with each successor state and the thread that takes the step. If a closed set of parts has steps, only its steps are taken;
    /// otherwise, if there is a favourite and it can move, only the steps of the favourite. Returns whether there was a step.
    pub fn all(&mut self, state: &[u64], visit: Visit<'_>) -> Result<bool, Escape> {
        if let Some(mut chooser) = self.chooser.take() {
            let moved = chooser.sets(state).iter().try_fold(false, |moved, &set| match moved {
                true => Ok(true),
                false => self.parts(state, set, visit),
            });
            self.chooser = Some(chooser);
            if moved? {
                return Ok(true);
            }
        }
        let favourite = self.set.layout.favourite.get(state) as usize;
        if favourite > 0 && self.thread(state, favourite - 1, visit)? {
            return Ok(true);
        }
        let mut moved = false;
        for thread in (0..self.program.threads.len()).filter(|t| t + 1 != favourite) {
            moved |= self.thread(state, thread, visit)?;
        }
        Ok(moved)
    }

    /// Takes the steps of the given parts.
    fn parts(&mut self, state: &[u64], set: u64, visit: Visit<'_>) -> Result<bool, Escape> {
        let mut moved = false;
        for part in (0..64).filter(|part| set >> part & 1 == 1) {
            moved |= match part % 2 == 0 {
                true => self.edges(state, part / 2, visit)?,
                false => self.flushes(state, part / 2, visit)?,
            };
        }
        Ok(moved)
    }

    fn thread(&mut self, state: &[u64], t: usize, visit: Visit<'_>) -> Result<bool, Escape> {
        let moved = self.edges(state, t, visit)?;
        Ok(self.flushes(state, t, visit)? || moved)
    }

    fn edges(&mut self, state: &[u64], t: usize, visit: Visit<'_>) -> Result<bool, Escape> {
        let id = ThreadId(t as u32);
        let program = self.program;
        let mut moved = false;
        for (number, edge) in program.threads[t].edges_from(self.location(state, t)) {
            self.chosen.clear();
            loop {
                self.unpack(state, t);
                let fault = match self.take(t, edge) {
                    Ok(()) => false,
                    Err(Halt::Fault) => true,
                    Err(Halt::Disabled) if self.choose_next() => continue,
                    Err(Halt::Disabled) => break,
                    Err(Halt::Limit(limit)) => return Err(Escape::Limit(id, limit)),
                    Err(Halt::Choice) => return Err(Escape::Choice(id)),
                    Err(Halt::Misfit) => return Err(Escape::Leaves(id)),
                };
                self.pack(t, number, edge, fault).ok_or(Escape::Leaves(id))?;
                visit(id, &self.next);
                moved = true;
                if !self.choose_next() {
                    break;
                }
            }
        }
        Ok(moved)
    }

    fn flushes(&mut self, state: &[u64], t: usize, visit: Visit<'_>) -> Result<bool, Escape> {
        let id = ThreadId(t as u32);
        self.unpack(state, t);
        let mut flushes = std::mem::take(&mut self.flushes);
        flushes.clear();
        if self.may_access(t) {
            self.buffer.flushes(&mut flushes);
        }
        for flush in &flushes {
            self.unpack(state, t);
            self.buffer.leave(*flush);
            let layout = &self.set.layout;
            let stored = layout.memory[flush.cell as usize].put(&mut self.next, flush.value);
            let packed = stored.and_then(|()| self.pack_buffer(t));
            packed.and_then(|()| layout.favourite.put(&mut self.next, 0)).ok_or(Escape::Leaves(id))?;
            visit(id, &self.next);
        }
        let moved = !flushes.is_empty();
        self.flushes = flushes;
        Ok(moved)
    }

    /// Prepares a step of a thread: `next` becomes a copy of the state before, and the thread's registers and buffer are unpacked.
    fn unpack(&mut self, state: &[u64], t: usize) {
        let layout = &self.set.layout;
        self.next.copy_from_slice(state);
        self.registers.clear();
        self.registers.resize(layout.registers[t].len(), 0);
        for &register in &self.set.live[t][layout.locations[t].get(state) as usize] {
            self.registers[register as usize] = layout.registers[t][register as usize].get(state);
        }
        self.buffer.unpack(layout.buffers.get(t), state);
    }

    /// Completes a step of a thread along an edge: packs the thread's location, live registers and buffer into `next`, and sets the favourite. `None`
    /// if the layout cannot hold them.
    fn pack(&mut self, t: usize, number: EdgeId, edge: &Edge, fault: bool) -> Option<()> {
        let layout = &self.set.layout;
        let code = &self.program.threads[t];
        let to = if fault { code.fault } else { edge.to };
        layout.locations[t].put(&mut self.next, i64::from(to.0))?;
        self.next.iter_mut().zip(&self.register_bits[t]).for_each(|(word, bits)| *word &= !bits);
        for &register in &self.set.live[t][to.index()] {
            layout.registers[t][register as usize].put(&mut self.next, self.registers[register as usize])?;
        }
        let goes_on = self.local[t][number.index()] && !fault && !code.is_end(to);
        layout.favourite.put(&mut self.next, if goes_on { t as i64 + 1 } else { 0 })?;
        self.pack_buffer(t)
    }

    fn pack_buffer(&mut self, t: usize) -> Option<()> {
        self.buffer.pack(self.set.layout.buffers.get(t), &mut self.next)
    }

    /// Advances to the next combination of values for the `*`s that the last try has reached; false if all combinations were tried.
    fn choose_next(&mut self) -> bool {
        while let Some((value, greatest)) = self.chosen.last_mut() {
            if *value < *greatest {
                *value += 1;
                return true;
            }
            self.chosen.pop();
        }
        false
    }

    /// Whether no other thread holds the lock.
    fn may_access(&self, t: usize) -> bool {
        let holder = self.set.layout.lock.get(&self.next);
        holder == 0 || holder == t as i64 + 1
    }

    /// Takes one step along an edge, with the values in `chosen`.
    fn take(&mut self, t: usize, edge: &Edge) -> Result<(), Halt> {
        let lock = self.set.layout.lock;
        let (holder, me) = (lock.get(&self.next), t as i64 + 1);
        let empty = self.buffer.is_empty();
        match &edge.action {
            Action::Fence => require(empty)?,
            Action::StoreFence => self.buffer.fence(),
            Action::Lock => {
                require(empty && holder == 0)?;
                lock.put(&mut self.next, me).ok_or(Halt::Misfit)?;
            }
            Action::Unlock => {
                require(empty && holder == me)?;
                lock.put(&mut self.next, 0).ok_or(Halt::Misfit)?;
            }
            Action::Op(op) => self.perform(t, op, edge, false, &mut 0)?,
            Action::Atomic { ops, drains } => {
                require(self.may_access(t) && (empty || !drains))?;
                let mut choices = 0;
                ops.iter().try_for_each(|op| self.perform(t, op, edge, *drains, &mut choices))?;
            }
        }
        Ok(())
    }

    /// Performs one operation. `direct`: stores go to memory immediately under every memory model. `choices` counts the `*`s of the step so far.
    fn perform(
        &mut self,
        t: usize,
        op: &Op,
        edge: &Edge,
        direct: bool,
        choices: &mut usize,
    ) -> Result<(), Halt> {
        match op {
            Op::Skip => {}
            Op::Assign(register, e) => {
                let value = self.value(e)?;
                self.write(t, *register, value)?;
            }
            Op::Havoc(register, range) => {
                if *choices == self.chosen.len() {
                    let bounded = !self.program.is_sampled(&edge.action);
                    let Range { low, high } = range.filter(|_| bounded).ok_or(Halt::Choice)?;
                    require(low <= high)?;
                    self.chosen.push((low, high));
                }
                let (value, _) = self.chosen[*choices];
                *choices += 1;
                self.write(t, *register, value)?;
            }
            Op::Assume(e) => require(self.value(e)? != 0)?,
            Op::Assert(e, _) => {
                if self.value(e)? == 0 {
                    return Err(Halt::Fault);
                }
            }
            Op::Load(register, address) => {
                require(self.may_access(t))?;
                let cell = self.cell(address)?;
                let own = self.buffer.newest(cell);
                let value = own.unwrap_or_else(|| self.set.layout.memory[cell as usize].get(&self.next));
                self.write(t, *register, value)?;
            }
            Op::Store(address, e) => {
                let direct = direct || self.model == MemoryModel::Sc;
                require(!direct || self.may_access(t))?;
                let cell = self.cell(address)?;
                let value = self.value(e)?;
                self.fits(self.program.variables[address.variable.index()].range, value)?;
                if direct {
                    self.set.layout.memory[cell as usize].put(&mut self.next, value).ok_or(Halt::Misfit)?;
                } else {
                    self.buffer.store(cell, value);
                }
            }
        }
        Ok(())
    }

    fn value(&self, e: &Expr<RegisterId>) -> Result<i64, Halt> {
        e.eval(&mut |register| self.registers[register.index()]).map_err(|error| match error {
            EvalError::DivisionByZero | EvalError::ShiftOutOfRange => Halt::Fault,
            EvalError::Overflow => Halt::Limit(Limit::Overflow),
        })
    }

    /// Faults if the value must not be written to a register or variable with this declared range.
    fn fits(&self, declared: Option<Range>, value: i64) -> Result<(), Halt> {
        let natural = self.program.numbers != Numbers::Nat || value >= 0;
        if natural && declared.is_none_or(|range| range.contains(value)) { Ok(()) } else { Err(Halt::Fault) }
    }

    fn write(&mut self, t: usize, register: RegisterId, value: i64) -> Result<(), Halt> {
        self.fits(self.program.threads[t].registers[register.index()].range, value)?;
        self.registers[register.index()] = value;
        Ok(())
    }

    /// The memory cell that an address denotes.
    fn cell(&self, address: &Address) -> Result<u32, Halt> {
        let variable = &self.program.variables[address.variable.index()];
        let (Some(index), Some(range)) = (&address.index, variable.indices) else { return Ok(variable.base) };
        match self.value(index)? {
            index if range.contains(index) => Ok(variable.base + (index - range.low) as u32),
            _ if variable.open => Err(Halt::Limit(Limit::Window)),
            _ => Err(Halt::Fault),
        }
    }
}
