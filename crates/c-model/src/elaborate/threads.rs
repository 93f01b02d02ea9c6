//! Threads: how they are created, start, end and are joined.
//!
//! `main`, and the threads that it creates while it is executed at translation time, start together with the program. Any other thread first waits
//! for a flag: 1 means that the thread was created, 2 that it never will be. The creator's buffer is empty when it sets the flag to 1. A thread that
//! may be joined sets a second flag when it has ended and its buffer is empty; the same step stores its result.
//!
//! Joining or detaching a thread *releases* it, which may happen at most once. A variable records whether a thread was released. If only one thread
//! can release it, this variable becomes a register, and constant propagation removes the register and its checks.

mod command_line;
mod finish;
mod joining;
mod notes;
mod starting;

use std::rc::Rc;

use fencewright_c::arithmetic::Arithmetic;
use fencewright_c::ast::{Integer, Rank};
use fencewright_c::typed::tree::{
    Callee, Expr, ExprKind, FunctionId, LocalId, Statement, StatementKind, Type, TypeKind,
};
use fencewright_code::core::{
    Access, Base, Object, ObjectId, Origin, Purpose, Register, Stmt, StmtKind, ThreadNumber, Value, known,
};
use fencewright_code::numbers::{self, Operand};
use fencewright_program::Span;
use notes::{Note, Notes};
use rustc_hash::FxHashMap;

use super::calls::Argument;
use super::objects::{Spot, Target};
use super::{Elaborator, Instance, MOST_THREADS, Phase, Result, Writer};

/// Maximum number of threads that one call in the text may create, unless `Premises::threads_per_site` has a greater number.
pub(super) const MOST_PER_SITE: usize = 16;

/// The function that a thread executes, with its arguments.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) function: FunctionId,
    /// The values of the parameters, or the variables through which the creator passes them.
    parameters: Vec<Parameter>,
    span: Span,
}

#[derive(Clone, Debug)]
enum Parameter {
    Known(Operand),
    Cell(ObjectId),
}

/// How a thread is started and joined.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The flag for which the thread waits at its start; `None` if the thread starts together with the program.
    flag: Option<ObjectId>,
    /// Whether the thread may reuse the stack of another thread, as far as is known when it is created.
    late: bool,
    /// The thread that creates this thread; `None` for `main`.
    creator: Option<ThreadNumber>,
    /// If it is not certain that the thread is created: its creator, and the register in which the creator records whether it has created the thread.
    created: Option<(ThreadNumber, Register)>,
    /// Whether the thread may be joined.
    joined: bool,
    /// Whether some thread uses the return value of the thread.
    wanted: bool,
    /// Whether the thread was detached before the program started.
    detached: bool,
    notes: Notes,
}

impl State {
    /// The thread that creates this thread; `None` for `main`.
    pub(super) fn creator(&self) -> Option<ThreadNumber> {
        self.creator
    }

    /// The flag that says whether the thread was created; `None` if the thread starts together with the program.
    pub(super) fn started(&self) -> Option<ObjectId> {
        self.flag
    }
}

/// State that concerns all threads of the program.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// The number of threads that each call in the text has created.
    sites: FxHashMap<Span, usize>,
    /// Whether `main` has joined or detached a thread, so that a later thread may reuse the stack of that thread.
    reclaims: bool,
    /// Whether a thread other than `main` has joined or detached a thread.
    others_reclaim: bool,
    /// Whether the program joins a thread whose number is not a constant.
    pub(super) dynamic: bool,
    /// The arrays that hold notes about all threads, used if `dynamic`.
    notes: Notes,
}

/// The type of `pthread_t`.
const THREADS: Arithmetic = Arithmetic::Integer(Integer { rank: Rank::Long, signed: false });
/// The message of the assertion that fails when a thread is released twice.
const RELEASED: &str = "a thread is joined or detached a second time";

pub(super) fn int() -> Type {
    Type { kind: TypeKind::Integer(Arithmetic::INT), atomic: false, volatile: false }
}

fn pointer() -> Type {
    let void = Type { kind: TypeKind::Void, atomic: false, volatile: false };
    Type { kind: TypeKind::Pointer(Rc::new(void)), atomic: false, volatile: false }
}

impl Elaborator<'_> {
    /// Elaborates `main`, and then every created thread.
    pub(super) fn initial_threads(&mut self, main: FunctionId) -> Result<()> {
        let unit = self.unit;
        let span = unit.functions[main.index()].span;
        let parameters = self.command_line(main, span)?;
        self.prepare_rcu(span);
        self.instances
            .push(Instance { start: Start { function: main, parameters, span }, state: State::default() });
        let mut next = 0;
        while next < self.instances.len() {
            let number = ThreadNumber(next as u32);
            self.writer = Writer::new(number, self.instances[next].start.span);
            self.whole_thread(next)?;
            if next == 0 {
                if self.phase == Phase::Alone {
                    // The program creates no threads, so the next attempt elaborates it without execution at translation time.
                    self.refuted = true;
                }
                self.phase = Phase::Running;
            }
            let finished = std::mem::replace(&mut self.writer, Writer::new(number, span));
            self.done.push(finished);
            if self.refuted {
                return Ok(());
            }
            next += 1;
        }
        Ok(())
    }

    /// Whether a thread may reuse the stack of another thread.
    pub(super) fn is_late(&self, thread: ThreadNumber) -> bool {
        let late = |state: &State| state.late || state.flag.is_some() && self.shared.others_reclaim;
        self.instances.get(thread.0 as usize).is_some_and(|instance| late(&instance.state))
    }

    /// Records that a thread has been released, so that its stack may be reused once it has ended.
    fn reclaim(&mut self) {
        match self.thread() {
            ThreadNumber(0) => self.shared.reclaims = true,
            _ => self.shared.others_reclaim = true,
        }
    }

    fn whole_thread(&mut self, number: usize) -> Result<()> {
        let unit = self.unit;
        let Start { function, parameters, span } = &self.instances[number].start;
        let (function, parameters, span) = (*function, parameters.clone(), *span);
        let callee = &unit.functions[function.index()];
        let result = match &callee.ty.result.kind {
            _ if number == 0 => None,
            TypeKind::Integer(_) | TypeKind::Pointer(_) => {
                Some(self.register("result".into(), &callee.ty.result))
            }
            _ => None,
        };
        self.writer.result = result;
        let target = result.map(|register| Target::new(Spot::Register(register), callee.ty.result.clone()));
        self.start_reader(span)?;
        self.in_function(function, target, span, |this| {
            for (n, parameter) in parameters.into_iter().enumerate() {
                let operand = this.parameter(parameter, span)?;
                if n < callee.parameters.len() {
                    this.pass(LocalId(n as u32), Argument::Scalar(operand), span)?;
                }
            }
            if this.indivisible(&callee.name) {
                this.section(true, span)?;
            }
            this.nested(|this| this.body(function))?;
            this.leave_thread(number > 0, span)
        })?;
        // Lifetimes of `main` may have ended before the created threads start. The ends of these lifetimes, and the end of `main` as a reader of RCU,
        // have to be emitted, so the execution at translation time ends here.
        if self.phase == Phase::Creating
            && (self.left_behind().next().is_some() || self.writer.nesting.is_some())
        {
            self.run();
        }
        Ok(())
    }

    /// The value of a parameter at the start of a thread.
    fn parameter(&mut self, parameter: Parameter, span: Span) -> Result<Operand> {
        let cell = match parameter {
            Parameter::Known(operand) => return Ok(operand),
            Parameter::Cell(cell) => cell,
        };
        let ty = self.objects[cell.0 as usize].ty.clone().expect("cells have a type");
        let target = Target::new(Spot::Memory(self.location(cell, &[])), ty).accessed(Access::Own);
        self.read(&target, span)
    }

    /// Elaborates a call of a function that creates, joins, detaches, ends, names or compares threads. Returns `None` for any other function.
    pub(super) fn thread_builtin(
        &mut self,
        name: &str,
        arguments: &[Expr],
        call: &Expr,
    ) -> Result<Option<Operand>> {
        let span = call.span;
        let result = match (name, arguments) {
            ("pthread_create", [thread, attributes, function, argument]) => {
                let thread = self.value(thread)?;
                let kind = self.detached_by(attributes)?;
                let number = self.instances.len();
                let result = self.create_by(thread, arguments, function, argument, span)?;
                if number < self.instances.len() {
                    self.start_detached(number, kind, span)?;
                }
                result
            }
            ("thrd_create", [thread, function, argument]) => {
                let thread = self.value(thread)?;
                self.create_by(thread, arguments, function, argument, span)?
            }
            ("pthread_join" | "thrd_join", [thread, result]) => {
                let thread = self.value(thread)?;
                let place = self.value(result)?;
                let to = super::expressions::pointee(&result.ty);
                self.may_wait(span);
                self.act_on_cancellation(false, span)?;
                self.wait_for(thread, place, &to, span)?;
                Operand::number(0)
            }
            ("pthread_exit" | "thrd_exit", [value]) => {
                let operand = self.value(value)?;
                if let Some(register) = self.writer.result {
                    self.write_register(register, operand, span)?;
                }
                self.exits_once(span)?;
                self.exit_begins(span)?;
                self.leave_thread(true, span)?;
                self.end_thread(span);
                Operand::number(0)
            }
            ("pthread_self" | "thrd_current" | "__VERIFIER_tid", []) => {
                Operand::number(self.thread().0.into())
            }
            ("pthread_equal" | "thrd_equal", [a, b]) => {
                let (a, b) = self.both_values(a, b)?;
                numbers::binary(self, fencewright_c::ast::BinaryOp::Equal, Arithmetic::INT, a, b)
            }
            ("pthread_detach" | "thrd_detach", [thread]) => {
                let thread = self.value(thread)?;
                self.detach(&thread, span)?;
                Operand::number(0)
            }
            _ => return Ok(None),
        };
        Ok(Some(result))
    }

    /// Emits the end of the current thread.
    pub fn end_thread(&mut self, span: Span) {
        self.divert(0);
        if self.executing() && self.phase == Phase::Creating {
            if self.left_behind().next().is_none() && self.writer.nesting.is_none() {
                // The rest of `main` is not executed.
                self.writer.reachable = false;
                return;
            }
            // Lifetimes end before `main` does.
            self.run();
        }
        let end = self.writer.end;
        self.emit(StmtKind::Goto(end), span);
        self.writer.reachable = false;
    }

    /// Emits a statement that discards all executions which reach it.
    pub fn end_execution(&mut self, span: Span) {
        self.emit(StmtKind::Assume(Value::Number(0)), span);
        self.writer.reachable = false;
    }

    fn create_by(
        &mut self,
        thread: Operand,
        arguments: &[Expr],
        function: &Expr,
        argument: &Expr,
        span: Span,
    ) -> Result<Operand> {
        let target = self.value(function)?;
        let argument = self.value(argument)?;
        let to = super::expressions::pointee(&arguments[0].ty);
        let start = |this: &mut Self, started: FunctionId| {
            let number = this.instances.len();
            if !Self::is_null(&thread) {
                let place = this.pointed(&thread, &to, span)?.accessed(Access::Own);
                this.write(&place, Operand::number(number as i128), span)?;
            }
            this.create(started, vec![argument.clone()], span)
        };
        if let Value::Function(started) = target.value {
            start(self, FunctionId(started))?;
            return Ok(Operand::number(0));
        }
        let target = self.kept_value(target, &function.ty, function.span)?;
        let TypeKind::Pointer(of) = &function.ty.kind else {
            return self.error(function.span, "this is not a pointer to a function", "");
        };
        let TypeKind::Function(ty) = &of.kind else {
            return self.error(function.span, "this is not a pointer to a function", "");
        };
        if let Some(functions) = self.targets(&target, ty, function.span)? {
            self.distinguish(&functions, &target, &start, span)?;
        }
        Ok(Operand::number(0))
    }

    /// `__CPROVER_ASYNC_n: f(...);`
    pub(super) fn asynchronous(&mut self, inner: &Statement, span: Span) -> Result<()> {
        if !self.writer.reachable {
            return Ok(());
        }
        let StatementKind::Expression(expr) = &inner.kind else {
            return self.error(
                inner.span,
                "only a call can be a thread of its own",
                "write `__CPROVER_ASYNC_1: f(x);`",
            );
        };
        let mut call = expr;
        while let ExprKind::Convert(inside) = &call.kind {
            call = inside;
        }
        let ExprKind::Call(Callee::Function(function), arguments) = &call.kind else {
            return self.error(
                expr.span,
                "only a call of a function of this program can be a thread of its own",
                "write `__CPROVER_ASYNC_1: f(x);`",
            );
        };
        self.group(span, |this| {
            let mut values = Vec::new();
            for argument in arguments {
                values.push(this.value(argument)?);
            }
            this.create(*function, values, span)
        })
    }

    fn create(&mut self, function: FunctionId, arguments: Vec<Operand>, span: Span) -> Result<()> {
        if !self.writer.reachable {
            return Ok(());
        }
        if self.repeated() {
            return self.error(
                span,
                "threads are created in a loop made of `goto`",
                "write it with `for` or `while`",
            );
        }
        let created = *self.shared.sites.entry(span.text()).and_modify(|n| *n += 1).or_insert(1);
        if self.only_counts(created) {
            return Ok(());
        }
        let per_site = self.premises.threads_per_site.unwrap_or(MOST_PER_SITE);
        let most = if created > per_site { per_site } else { MOST_THREADS };
        if created > per_site || self.instances.len() > MOST_THREADS {
            self.emit(StmtKind::Beyond(Value::Number(1), format!("more than {most} threads")), span);
            self.writer.reachable = false;
            return Ok(());
        }
        self.creates_in_section();
        if self.phase == Phase::Alone {
            self.start_program();
        } else if self.phase == Phase::Creating {
            self.keep_initial();
        }
        let number = self.instances.len();
        let unit = self.unit;
        let mut parameters = Vec::new();
        let mut stores = Vec::new();
        for (n, operand) in arguments.into_iter().enumerate() {
            if known(&operand.value).is_some() {
                self.publish(&operand.value);
                parameters.push(Parameter::Known(operand));
                continue;
            }
            let callee = &unit.functions[function.index()];
            let ty = callee
                .parameters
                .get(n)
                .map_or_else(pointer, |local| callee.locals[local.index()].ty.clone());
            let cell = self.own_object(format!("argument_{number}"), ty.clone(), span);
            let target = Target::new(Spot::Memory(self.location(cell, &[])), ty).accessed(Access::Own);
            let mut store = self.written(|this| this.write(&target, operand, span))?;
            stores.append(&mut store);
            parameters.push(Parameter::Cell(cell));
        }
        let late = self.shared.reclaims || self.repeated();
        let mut state = State { late, creator: Some(self.thread()), ..State::default() };
        if self.phase == Phase::Running {
            let flag = self.own_object(format!("start_{number}"), int(), span);
            state.flag = Some(flag);
            let place = self.location(flag, &[]);
            let here = self.here(span);
            stores.push(Stmt { kind: StmtKind::Store(place, Value::Number(1), Access::Own), span: here });
            self.emit(StmtKind::Atomic(stores), span);
            if self.writer.branches > 0 || !self.writer.pending.is_empty() {
                let register = self.register(format!("created_{number}").into(), &int());
                self.emit(StmtKind::Assign(register, Value::Number(1)), span);
                state.created = Some((self.thread(), register));
            }
        }
        let here = self.here(span);
        self.instances.push(Instance { start: Start { function, parameters, span: here }, state });
        self.descendants |= self.thread() != ThreadNumber(0);
        Ok(())
    }

    /// For each call in the text, the number of threads that it has created so far.
    pub(super) fn sites(&self) -> FxHashMap<Span, usize> {
        self.shared.sites.clone()
    }

    /// For each thread created so far, whether it was detached before the program started.
    pub(super) fn detached(&self) -> Vec<bool> {
        self.instances.iter().map(|instance| instance.state.detached).collect()
    }

    /// Removes the threads that a discarded attempt created. For the remaining threads, restores whether they were `detached` before that attempt,
    /// and forgets the variables that the attempt created for them. Also restores the numbers of threads per call in the text.
    pub(super) fn uncreate(&mut self, detached: &[bool], sites: &FxHashMap<Span, usize>, objects: usize) {
        self.instances.truncate(detached.len());
        for (instance, &detached) in self.instances.iter_mut().zip(detached) {
            instance.state.detached = detached;
        }
        self.shared.sites.clone_from(sites);
        let is_there = |object: &ObjectId| (object.0 as usize) < objects;
        self.shared.notes.retain(is_there);
        for Instance { state, .. } in &mut self.instances {
            state.notes.retain(is_there);
        }
    }

    /// Adds a shared variable that belongs to the translation, not to the program.
    pub fn own_object(&mut self, name: String, ty: Type, span: Span) -> ObjectId {
        let node = self.nodes.object(&ty, span);
        let (ty, initial) = (Some(ty), Vec::new());
        let (origin, purpose) = (Origin::Global, Purpose::Translation);
        let object = self.object(Object { name, ty, node, origin, initial, undefined: false, purpose, span });
        self.reach[object.0 as usize].shared = true;
        self.writer.env.objects.remove(&object);
        object
    }
}
