//! Barriers of POSIX.

use fencewright_c::arithmetic::Arithmetic;
use fencewright_c::ast::BinaryOp as Operator;
use fencewright_code::core::{Access, Value};
use fencewright_code::numbers::{self, Operand};
use fencewright_program::{BinaryOp, Span};

use super::super::super::objects::{Spot, Target};
use super::super::super::{Elaborator, Result};
use super::super::{BuiltinCall, int, unconverted};
use super::{ARRIVED, COUNT, INVALID, LEAVING};

impl Elaborator<'_> {
    /// The places of the members of a barrier, in the order of their indices.
    pub(super) fn barrier(&mut self, call: BuiltinCall) -> Result<[Target; 3]> {
        let pointer = self.argument(call, 0)?;
        let barrier = self.pointed_by(unconverted(pointer))?;
        let mut member = |number| -> Result<Target> {
            Ok(self.member(&barrier, number, call.span)?.accessed(Access::Own))
        };
        Ok([member(COUNT)?, member(ARRIVED)?, member(LEAVING)?])
    }

    /// Initialises a barrier. Returns the result of the call.
    pub(super) fn init_barrier(&mut self, call: BuiltinCall) -> Result<Operand> {
        let span = call.span;
        let count = self.argument_value(call, 2)?;
        let count = numbers::convert(Arithmetic::INT, count);
        let barrier = self.barrier(call)?;
        // In uninitialised memory, the members say nothing about waiting threads, so they are not checked.
        if self.starts_defined(&barrier[ARRIVED as usize]) {
            for member in [ARRIVED, LEAVING] {
                let waiting = self.read(&barrier[member as usize], span)?;
                let text = "a barrier is initialised while a thread waits at it";
                self.require(numbers::not(waiting), text, span);
            }
            let count = self.read(&barrier[COUNT as usize], span)?;
            let text = "a barrier is initialised that is initialised already";
            self.require(numbers::not(count), text, span);
        }
        self.write(&barrier[COUNT as usize], count.clone(), span)?;
        for member in [ARRIVED, LEAVING] {
            self.write(&barrier[member as usize], Operand::number(0), span)?;
        }
        let some = numbers::binary(self, Operator::Greater, Arithmetic::INT, count, Operand::number(0));
        Ok(numbers::choose(some, Operand::number(0), Operand::number(INVALID)))
    }

    /// Destroys a barrier with loads and one store. A thread that has returned from the barrier may destroy it while other threads are still about to
    /// return, so it waits until all threads have left.
    pub(super) fn destroy_barrier(&mut self, call: BuiltinCall) -> Result<()> {
        let span = call.span;
        let [count, arrived, leaving] = self.barrier(call)?;
        self.destroying(span, |this| {
            let wanted = this.read(&count, span)?;
            this.require_initialised(wanted, span);
            let waiting = this.read(&arrived, span)?;
            this.require(numbers::not(waiting), "a barrier is destroyed while a thread waits at it", span);
            this.until_left(leaving, span)?;
            this.write(&count, Operand::number(0), span)
        })
    }

    /// Waits until all threads have left a barrier. This is a step of its own if other threads are still running.
    pub(super) fn until_left(&mut self, leaving: Target, span: Span) -> Result<()> {
        match leaving.spot {
            Spot::Memory(place) if !self.is_alone() => {
                let register = self.temporary("leaving", &int());
                let left = Value::binary(BinaryOp::Eq, Value::Register(register), Value::Number(0));
                self.emit_await(register, place, left, Access::Own, span);
            }
            _ => {
                let left = self.read(&leaving, span)?;
                self.assume(numbers::not(left), span);
            }
        }
        Ok(())
    }

    pub(super) fn require_initialised(&mut self, count: Operand, span: Span) {
        let some = numbers::binary(self, Operator::Greater, Arithmetic::INT, count, Operand::number(0));
        self.require(some, "a barrier is used that is not initialised, or was destroyed", span);
    }

    /// Waits until the required number of threads has arrived. The first one that leaves returns `PTHREAD_BARRIER_SERIAL_THREAD`, the others 0. Every
    /// thread may be the first, and these executions stand for those in which others leave earlier: nothing that other threads see depends on the
    /// order of leaving, because the next round begins when all have left.
    pub(super) fn barrier_wait(&mut self, call: BuiltinCall) -> Result<Operand> {
        let (span, ty) = (call.span, int());
        let [count, arrived, leaving] = self.barrier(call)?;
        let add = |a, b| numbers::wrapping(Operator::Add, Arithmetic::INT, a, Operand::number(b));
        self.atomically(span, |this| {
            let left = this.read(&leaving, span)?;
            let (all, before) = (this.read(&count, span)?, this.read(&arrived, span)?);
            this.require_initialised(all.clone(), span);
            this.assume(numbers::not(left), span);
            let now = add(before, 1);
            let last =
                numbers::binary(this, Operator::GreaterOrEqual, Arithmetic::INT, now.clone(), all.clone());
            this.write(&arrived, numbers::choose(last.clone(), Operand::number(0), now), span)?;
            this.write(&leaving, numbers::choose(last, all, Operand::number(0)), span)
        })?;
        if !call.used {
            self.atomically(span, |this| this.leave_barrier(&leaving, span).map(|_| ()))?;
            return Ok(Operand::number(0));
        }
        let result = self.temporary("serial", &ty);
        self.atomically(span, |this| {
            let all = this.read(&count, span)?;
            let left = this.leave_barrier(&leaving, span)?;
            let first = numbers::binary(this, Operator::Equal, Arithmetic::INT, left, all);
            this.write_register(result, first, span)
        })?;
        let first = self.register_value(result);
        Ok(numbers::choose(first, Operand::number(-1), Operand::number(0)))
    }

    /// Decrements the number of threads that still have to leave a barrier. Returns the number before.
    pub(super) fn leave_barrier(&mut self, leaving: &Target, span: Span) -> Result<Operand> {
        let left = self.read(leaving, span)?;
        let some =
            numbers::binary(self, Operator::Greater, Arithmetic::INT, left.clone(), Operand::number(0));
        self.assume(some, span);
        let fewer = numbers::wrapping(Operator::Subtract, Arithmetic::INT, left.clone(), Operand::number(1));
        self.write(leaving, fewer, span)?;
        Ok(left)
    }
}
