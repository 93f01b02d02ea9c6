//! Read-copy-update (RCU) of Linux: read-side critical sections and grace periods. `docs/c.md` says what they order.
//!
//! Let a grace period start at s and end at f. A reader has passed it as soon as every section of the reader that began before s has ended, and the
//! stores up to the end of that section are in memory. The grace period ends when all readers have passed it. A reader must not need a fence for
//! this, although only the reader knows when its section begins, and cannot tell others before its store buffer is empty. So readers guess:
//!
//! - Each reader has a *mark* in memory: -1 before the thread starts and after it has ended, otherwise 2 * seen + armed. A section begins only if the
//!   mark is armed, which the reader tests with a load. Grace periods wait for armed readers alone.
//! - The end of a section is a store of the mark through the store buffer. It reaches memory after all stores of the section. The reader guesses
//!   whether the mark has to stay armed: it has to, unless a grace period starts or observes the mark before the next section of the reader begins.
//!   A grace period that finds a mark that is not armed guesses whether it is the last one to do so before that section, and arms the mark if it is.
//!   A wrong guess leaves the mark armed too early, and then grace periods wait longer; or the section cannot begin, and the execution is discarded.
//! - `periods` has one bit for each thread that waits for grace periods, and each grace period inverts the bit of its thread. `seen` is the value of
//!   `periods` when the section ended. If the bit of the grace period has the same value in `seen` and in `periods`, the section ended after s, so
//!   the reader has passed.
//!
//! A grace period waits for the readers in any order, because a mark that is not armed may be armed again later.
//!
//! Threads wait here in executions in which a guess is wrong, so deadlocks are not decided.

use std::collections::{BTreeMap, BTreeSet};

use fencewright_code::core::{Access, Known, ObjectId, Register, Stmt, StmtKind, ThreadNumber, Value};
use fencewright_code::numbers::Operand;
use fencewright_program::{BinaryOp, Span};

use super::super::{Elaborator, Phase, Result};
use super::{BuiltinCall, int};

/// Maximum number of threads that wait for grace periods.
const MOST_UPDATERS: usize = 16;
/// Maximum number of nested sections.
const DEEPEST: i64 = 15;

/// The operation of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Enter,
    Leave,
    Synchronize,
}

/// The operation of a function, by its name; `None` if it is not in this family.
pub(super) fn named(name: &str) -> Option<Operation> {
    Some(match name {
        "rcu_read_lock" | "rcu_read_lock_bh" | "rcu_read_lock_sched" | "preempt_disable" => Operation::Enter,
        "rcu_read_unlock" | "rcu_read_unlock_bh" | "rcu_read_unlock_sched" | "preempt_enable" => {
            Operation::Leave
        }
        "synchronize_rcu" | "synchronize_rcu_expedited" | "synchronize_sched" | "synchronize_rcu_bh" => {
            Operation::Synchronize
        }
        _ => return None,
    })
}

/// The threads that use RCU.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Users {
    readers: BTreeSet<ThreadNumber>,
    updaters: BTreeSet<ThreadNumber>,
}

impl Users {
    /// Whether there are both sections and grace periods. Either has no effect without the other one, except that a grace period is a fence.
    fn meet(&self) -> bool {
        !self.readers.is_empty() && !self.updaters.is_empty()
    }

    /// Adds the users that were found; returns whether there are new ones.
    pub(in super::super) fn add(&mut self, found: &Users) -> bool {
        let count = |users: &Users| users.readers.len() + users.updaters.len();
        let before = count(self);
        self.readers.extend(&found.readers);
        self.updaters.extend(&found.updaters);
        count(self) > before
    }
}

/// The users of RCU that one attempt has found, and the objects that it has created for RCU.
#[derive(Debug, Default)]
pub(in super::super) struct Rcu {
    /// The threads found so far.
    pub found: Users,
    /// One bit for each updater, inverted by each of its grace periods.
    periods: Option<ObjectId>,
    /// The mark of each reader.
    marks: BTreeMap<ThreadNumber, ObjectId>,
}

/// The value of a mark, as the head of this file defines it.
struct Mark(Value);

impl Mark {
    fn is_absent(&self) -> Value {
        Value::binary(BinaryOp::Lt, self.0.clone(), Value::Number(0))
    }

    fn is_armed(&self) -> Value {
        let odd = Value::binary(BinaryOp::BitAnd, self.0.clone(), Value::Number(1));
        Value::binary(BinaryOp::And, Value::binary(BinaryOp::Ge, self.0.clone(), Value::Number(0)), odd)
    }

    /// The mark with these values of `seen` and `armed`.
    fn made_of(seen: Value, armed: Value) -> Value {
        Value::binary(BinaryOp::Add, Value::binary(BinaryOp::Mul, seen, Value::Number(2)), armed)
    }

    /// The condition that the reader has passed a grace period of the updater with this bit.
    fn has_passed(&self, periods: &Value, bit: i64) -> Value {
        let seen = Value::binary(BinaryOp::Shr, self.0.clone(), Value::Number(1));
        let differs = Value::binary(BinaryOp::BitXor, seen, periods.clone());
        let differs = Value::binary(BinaryOp::BitAnd, differs, Value::Number(bit));
        let same = Value::binary(BinaryOp::Eq, differs, Value::Number(0));
        let not_armed = Value::binary(BinaryOp::Eq, self.is_armed(), Value::Number(0));
        Value::binary(BinaryOp::Or, not_armed, same)
    }

    /// The mark after a grace period has looked at it: a reader that is outside of sections has seen these periods, and is armed if `guess` is 1.
    fn looked_at(&self, periods: Value, guess: Value) -> Value {
        let away = Value::binary(BinaryOp::Or, self.is_absent(), self.is_armed());
        Value::If(Box::new(away), Box::new(self.0.clone()), Box::new(Mark::made_of(periods, guess)))
    }
}

/// A reader for which a grace period waits.
struct Awaited {
    mark: ObjectId,
    /// Whether the reader still has to pass.
    waits: Register,
}

impl Elaborator<'_> {
    /// Adds the marks of the readers. They are there from the start, so that no discarded attempt to elaborate a loop removes them.
    pub(in super::super) fn prepare_rcu(&mut self, span: Span) {
        let users = &self.premises.rcu;
        if !users.meet() {
            return;
        }
        let readers: Vec<ThreadNumber> = users.readers.iter().copied().collect();
        self.rcu.periods = Some(self.own_object("rcu_periods".into(), int(), span));
        for thread in readers {
            let mark = self.own_object(format!("rcu_reader_{}", thread.0), int(), span);
            // Until `main` takes its first step, it may be in a section that it entered at translation time.
            let initial = if thread == ThreadNumber(0) { 1 } else { -1 };
            self.objects[mark.0 as usize].initial = vec![(Vec::new(), Known::Number(initial))];
            self.rcu.marks.insert(thread, mark);
        }
    }

    pub(super) fn rcu(&mut self, operation: Operation, call: BuiltinCall) -> Result<Operand> {
        if !self.writer.reachable {
            return Ok(Operand::number(0));
        }
        let (thread, found) = (self.thread(), &mut self.rcu.found);
        match operation {
            Operation::Enter | Operation::Leave => found.readers.insert(thread),
            Operation::Synchronize => found.updaters.insert(thread),
        };
        let nesting = self.writer.nesting;
        match (operation, nesting) {
            (Operation::Enter, Some(nesting)) => self.enter_read_side(nesting, call.span)?,
            (Operation::Leave, Some(nesting)) => self.leave_read_side(nesting, call.span)?,
            (Operation::Synchronize, _) => self.grace_period(call.span)?,
            _ => {}
        }
        Ok(Operand::number(0))
    }

    /// The start of a thread. A reader that runs from here on is in no section.
    pub(in super::super) fn start_reader(&mut self, span: Span) -> Result<()> {
        if !self.rcu.marks.contains_key(&self.thread()) {
            return Ok(());
        }
        let nesting = self.register("rcu_nesting".into(), &int());
        self.writer.nesting = Some(nesting);
        self.write_register(nesting, Operand::number(0), span)?;
        if !self.executing() {
            self.appear(span);
        }
        Ok(())
    }

    /// Sets the mark of this reader when it begins to run.
    pub(in super::super) fn appear(&mut self, span: Span) {
        let (Some(nesting), Some(&mark)) = (self.writer.nesting, self.rcu.marks.get(&self.thread())) else {
            return;
        };
        if self.register_value(nesting).known() != Some(0) {
            return;
        }
        let step = self.statements_of(|this| {
            let (guess, periods) = (this.guessed(span), this.load_periods(span));
            this.store_own(mark, Mark::made_of(periods, guess), span);
        });
        self.emit(StmtKind::Atomic(step), span);
    }

    /// The end of a thread. A reader that ends in a section stays there.
    pub(in super::super) fn end_reader(&mut self, span: Span) {
        let (Some(nesting), Some(&mark)) = (self.writer.nesting, self.rcu.marks.get(&self.thread())) else {
            return;
        };
        let gone = self.statements_of(|this| {
            this.emit(StmtKind::StoreFence, span);
            this.store_own(mark, Value::Number(-1), span);
        });
        let outside = Value::binary(BinaryOp::Eq, Value::Register(nesting), Value::Number(0));
        self.emit(StmtKind::If(outside, gone, Vec::new()), span);
    }

    fn enter_read_side(&mut self, nesting: Register, span: Span) -> Result<()> {
        let depth = self.register_value(nesting);
        let deep = depth.clone().value;
        if depth.known().is_none_or(|known| known >= DEEPEST.into()) {
            let deep = Value::binary(BinaryOp::Ge, deep, Value::Number(DEEPEST));
            let text = format!("more than {DEEPEST} nested read-side critical sections of RCU");
            self.emit(StmtKind::Beyond(deep, text), span);
        }
        let outermost = compared(&depth, BinaryOp::Eq, 0);
        self.branch(outermost, span, |this| this.begin_read_side(span), |_| Ok(()))?;
        self.write_register(nesting, moved(depth, 1), span)
    }

    fn leave_read_side(&mut self, nesting: Register, span: Span) -> Result<()> {
        let depth = self.register_value(nesting);
        let inside = compared(&depth, BinaryOp::Gt, 0);
        self.require(inside, "a read-side critical section of RCU is left that was not entered", span);
        let outermost = compared(&depth, BinaryOp::Eq, 1);
        self.branch(outermost, span, |this| this.end_read_side(span), |_| Ok(()))?;
        self.write_register(nesting, moved(depth, -1), span)
    }

    fn begin_read_side(&mut self, span: Span) -> Result<()> {
        // While `main` is executed at translation time, its mark is armed.
        if let (false, Some(&mark)) = (self.executing(), self.rcu.marks.get(&self.thread())) {
            let (register, place) = (self.temporary("armed", &int()), self.location(mark, &[]));
            let armed = Value::binary(BinaryOp::BitAnd, Value::Register(register), Value::Number(1));
            self.emit_await(register, place, armed, Access::Own, span);
        }
        Ok(())
    }

    /// Sets the mark at the end of a section, or leaves this to the end of a later one. Under PSO the store of the mark needs a store-store fence
    /// before it, but the end of a section is no such fence for the program. The mark may therefore be left out: then later stores may overtake those
    /// of the section.
    fn end_read_side(&mut self, span: Span) -> Result<()> {
        if let (false, Some(&mark)) = (self.executing(), self.rcu.marks.get(&self.thread())) {
            let now = self.statements_of(|this| {
                let (periods, guess) = (this.load_periods(span), this.guessed(span));
                this.emit(StmtKind::StoreFence, span);
                this.store_own(mark, Mark::made_of(periods, guess), span);
            });
            self.emit(StmtKind::Choose(vec![now, Vec::new()]), span);
        }
        Ok(())
    }

    /// Waits for a grace period.
    fn grace_period(&mut self, span: Span) -> Result<()> {
        let thread = self.thread();
        let place = self.premises.rcu.updaters.iter().position(|updater| *updater == thread);
        let (Some(place), Some(periods)) = (place, self.rcu.periods) else {
            self.emit(StmtKind::Fence, span);
            return Ok(());
        };
        self.allow_grace_period(span)?;
        if self.phase == Phase::Alone {
            return Ok(());
        }
        self.must_run();
        if let Some(nesting) = self.writer.nesting {
            let depth = self.register_value(nesting);
            let outside = compared(&depth, BinaryOp::Eq, 0);
            self.require(outside, "a thread waits for a grace period in a read-side critical section", span);
        }
        let marks: Vec<ObjectId> =
            self.rcu.marks.iter().filter(|(reader, _)| **reader != thread).map(|(_, mark)| *mark).collect();
        let bit = 1 << place;
        let readers = self.start_period(periods, &marks, bit, span);
        self.end_period(&readers, bit, span);
        Ok(())
    }

    /// An error for programs and properties that the model of grace periods does not cover.
    fn allow_grace_period(&self, span: Span) -> Result<()> {
        if self.options.accesses_only {
            let help = "check the assertions of the program under each model instead";
            return self.error(
                span,
                "robustness of programs that wait for grace periods of RCU is not decided",
                help,
            );
        }
        if !self.options.spurious {
            let message =
                "whether threads wait forever is not decided for programs that wait for grace periods of RCU";
            return self.error(span, message, "check `assertions` and `memory`");
        }
        if self.premises.rcu.updaters.len() > MOST_UPDATERS {
            let message = format!("more than {MOST_UPDATERS} threads wait for grace periods of RCU");
            return self.error(span, message, "make the harness smaller");
        }
        Ok(())
    }

    /// Starts a grace period: one atomic step that inverts the bit of this updater and looks at all marks.
    fn start_period(&mut self, periods: ObjectId, marks: &[ObjectId], bit: i64, span: Span) -> Vec<Awaited> {
        let mut readers = Vec::new();
        let step = self.statements_of(|this| {
            let before = this.load_periods(span);
            let now = Value::binary(BinaryOp::BitXor, before, Value::Number(bit));
            this.store_own(periods, now.clone(), span);
            for &mark in marks {
                let guess = this.guessed(span);
                let found = Mark(this.load_own(mark, "mark", span));
                let waits = this.temporary("waits", &int());
                this.emit(StmtKind::Assign(waits, found.is_armed()), span);
                this.store_own(mark, found.looked_at(now.clone(), guess), span);
                readers.push(Awaited { mark, waits });
            }
        });
        self.emit(StmtKind::Atomic(step), span);
        readers
    }

    /// Waits until all readers have passed, in any order.
    fn end_period(&mut self, readers: &[Awaited], bit: i64, span: Span) {
        let mut ways = Vec::new();
        let mut waits_for_none = Value::Number(1);
        for reader in readers {
            let waits = || Value::Register(reader.waits);
            let passed = self.statements_of(|this| {
                this.emit(StmtKind::Assume(waits()), span);
                this.pass_reader(reader.mark, bit, span);
                this.emit(StmtKind::Assign(reader.waits, Value::Number(0)), span);
            });
            ways.push(passed);
            let passed = Value::binary(BinaryOp::Eq, waits(), Value::Number(0));
            waits_for_none = Value::binary(BinaryOp::And, waits_for_none, passed);
        }
        let done = self.statements_of(|this| {
            this.emit(StmtKind::Assume(waits_for_none), span);
            this.emit(StmtKind::Break, span);
        });
        ways.push(done);
        if !readers.is_empty() {
            let choice = self.statements_of(|this| this.emit(StmtKind::Choose(ways), span));
            self.emit(StmtKind::Loop(choice), span);
        }
    }

    /// Waits until a reader has passed, in one atomic step.
    fn pass_reader(&mut self, mark: ObjectId, bit: i64, span: Span) {
        let step = self.statements_of(|this| {
            let (guess, periods) = (this.guessed(span), this.load_periods(span));
            let found = Mark(this.load_own(mark, "mark", span));
            this.emit(StmtKind::Assume(found.has_passed(&periods, bit)), span);
            this.store_own(mark, found.looked_at(periods, guess), span);
        });
        self.emit(StmtKind::Atomic(step), span);
    }

    /// A nondeterministic number: 0 or 1.
    fn guessed(&mut self, span: Span) -> Value {
        self.any("guess", &int(), (0, 1), span).value
    }

    fn load_periods(&mut self, span: Span) -> Value {
        match self.rcu.periods {
            Some(periods) => self.load_own(periods, "periods", span),
            None => Value::Number(0),
        }
    }

    fn load_own(&mut self, object: ObjectId, name: &str, span: Span) -> Value {
        let (register, place) = (self.temporary(name, &int()), self.location(object, &[]));
        self.emit(StmtKind::Load(register, place, Access::Own), span);
        Value::Register(register)
    }

    fn store_own(&mut self, object: ObjectId, value: Value, span: Span) {
        let place = self.location(object, &[]);
        self.emit(StmtKind::Store(place, value, Access::Own), span);
    }

    /// The statements that `work` emits.
    fn statements_of(&mut self, work: impl FnOnce(&mut Self)) -> Vec<Stmt> {
        self.writer.blocks.push(Vec::new());
        work(self);
        self.writer.blocks.pop().unwrap_or_default()
    }
}

/// The comparison of a nesting depth with a number.
fn compared(depth: &Operand, op: BinaryOp, with: i64) -> Operand {
    match Value::binary(op, depth.value.clone(), Value::Number(with)) {
        Value::Number(number) => Operand::number(number.into()),
        value => Operand::new(value, (0, 1)),
    }
}

fn moved(depth: Operand, by: i64) -> Operand {
    match Value::binary(BinaryOp::Add, depth.value, Value::Number(by)) {
        Value::Number(number) => Operand::number(number.into()),
        value => Operand::new(value, (0, i128::from(DEEPEST) + 1)),
    }
}
