//! Single operations of the interpreter, all but `*`. Rules such as (LS) are those of `fencewright_program::reference`.

use fencewright_program::reference::Limit;
use fencewright_program::{Address, EvalError, Expr, MemoryModel, Op, Range, RegisterId};

use super::footprint::{Item, Key, Tables, add};
use super::machine::{Flow, Machine};
use super::state::{Buffered, NONE, State};

impl Machine<'_> {
    /// Performs one operation other than a `*`, and adds its accesses to `path`. If `direct`, a store writes memory at once, not the buffer.
    pub(super) fn perform(
        &mut self,
        state: &mut State,
        thread: usize,
        op: &Op,
        direct: bool,
        path: &mut Vec<Item>,
    ) -> Flow {
        let result = match op {
            Op::Skip => Ok(()),
            Op::Assign(register, e) => {
                self.eval(state, thread, e).and_then(|value| self.write(state, thread, *register, value))
            }
            Op::Assume(e) => {
                self.eval(state, thread, e).and_then(|v| if v == 0 { Err(Flow::Disabled) } else { Ok(()) })
            }
            Op::Assert(e, _) => {
                self.eval(state, thread, e).and_then(|v| if v == 0 { Err(Flow::Fault) } else { Ok(()) })
            }
            Op::Load(register, address) => self.load(state, thread, *register, address, path),
            Op::Store(address, e) => self.store(state, thread, address, e, direct, path),
            Op::Havoc(..) => unreachable!("choices are made elsewhere"),
        };
        match result {
            Ok(()) => Flow::Done,
            Err(flow) => flow,
        }
    }

    /// Rules (RB) and (RM): loads the newest value of the cell in the thread's own buffer, or the value in memory if the buffer has none.
    fn load(
        &mut self,
        state: &mut State,
        thread: usize,
        register: RegisterId,
        address: &Address,
        path: &mut Vec<Item>,
    ) -> Result<(), Flow> {
        if !self.may_access(state, thread) {
            return Err(Flow::Disabled);
        }
        let cell = self.address(state, thread, address)?;
        let newest = state.buffers.iter_mut().rev().find(|b| b.thread == thread as u32 && b.cell == cell);
        let value = match newest {
            Some(store) => {
                store.reader = self.now;
                add(path, Item::read(Tables::store(thread as u32, store.issued[0])));
                store.value
            }
            None => {
                add(path, Item::read(Key::from(cell)));
                self.cell(state, cell)
            }
        };
        self.write(state, thread, register, value)
    }

    /// Rule (LS), or rule (LSWM) for stores that write memory immediately.
    fn store(
        &mut self,
        state: &mut State,
        thread: usize,
        address: &Address,
        e: &Expr<RegisterId>,
        direct: bool,
        path: &mut Vec<Item>,
    ) -> Result<(), Flow> {
        let direct = direct || self.model == MemoryModel::Sc;
        if direct && !self.may_access(state, thread) {
            return Err(Flow::Disabled);
        }
        let cell = self.address(state, thread, address)?;
        let value = self.eval(state, thread, e)?;
        let range = self.program.variables[address.variable.index()].range;
        if !self.program.writable(range).contains(value) {
            return Err(Flow::Fault);
        }
        if direct {
            self.tables.add_write(path, cell);
            state.values[self.memory + cell as usize] = value;
        } else {
            let issued = state.issued[thread];
            state.issued[thread][0] += 1;
            let event = self.now;
            let store = Buffered { thread: thread as u32, cell, value, issued, event, reader: NONE };
            state.buffers.push(store);
        }
        Ok(())
    }

    fn write(&self, state: &mut State, thread: usize, register: RegisterId, value: i64) -> Result<(), Flow> {
        let range: Option<Range> = self.program.threads[thread].registers[register.index()].range;
        if !self.program.writable(range).contains(value) {
            return Err(Flow::Fault);
        }
        state.values[self.registers[thread] + register.index()] = value;
        Ok(())
    }

    fn eval(&self, state: &State, thread: usize, e: &Expr<RegisterId>) -> Result<i64, Flow> {
        let registers = &state.values[self.registers[thread]..];
        e.eval(&mut |r| registers[r.index()]).map_err(|error| match error {
            EvalError::DivisionByZero | EvalError::ShiftOutOfRange => Flow::Fault,
            EvalError::Overflow => Flow::Limit(Limit::Overflow),
        })
    }

    pub(super) fn address(&self, state: &State, thread: usize, address: &Address) -> Result<u32, Flow> {
        let variable = &self.program.variables[address.variable.index()];
        match (&address.index, variable.indices) {
            (Some(index), Some(range)) => {
                let index = self.eval(state, thread, index)?;
                if range.contains(index) {
                    Ok(variable.base + (index - range.low) as u32)
                } else if variable.open {
                    Err(Flow::Limit(Limit::Window))
                } else {
                    Err(Flow::Fault)
                }
            }
            _ => Ok(variable.base),
        }
    }
}
