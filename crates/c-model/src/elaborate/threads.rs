//! Threads: what happens before they start, how they are created, how they end, and who waits for them.
//!
//! A thread that is created while `main` is executed beforehand starts with the program. Any other waits for its flag: 1 says that it was created, 2 that it
//! never will be. The creator sets it with empty buffers. A thread that somebody waits for says so when it has ended and its buffers are empty, in one step with its result.
//!
//! Whoever waits for a thread, or detaches it, releases it, once and no more. That is noted in a variable which is a register wherever one thread alone waits; then the
//! flow analysis takes it out again with its checks.

mod command_line;
mod finish;

use fencewright_c::arithmetic::Arithmetic;
use fencewright_c::ast::{BinaryOp as Operator, Integer, Rank};
use fencewright_c::typed::tree::{
    Callee, Expr, ExprKind, FunctionId, LocalId, Statement, StatementKind, Step, Type, TypeKind,
};
use fencewright_code::core::{
    Access, Base, Known, Location, Object, ObjectId, Origin, Projection, Register, Stmt, StmtKind,
    ThreadNumber, Value, View, known,
};
use fencewright_code::numbers::{self, Operand};
use fencewright_program::{BinaryOp, Span};
use rustc_hash::FxHashMap;
use std::rc::Rc;

use super::calls::Argument;
use super::env::Contents;
use super::objects::{Spot, Target};
use super::{Elaborator, Instance, MOST_THREADS, Phase, Result, Writer};

/// At most so many threads are created by one call.
const MOST_PER_SITE: usize = 16;

/// What a thread starts with.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) function: FunctionId,
    /// The values of its parameters, or the variables that pass them on.
    parameters: Vec<Parameter>,
    span: Span,
}

#[derive(Clone, Debug)]
enum Parameter {
    Known(Operand),
    Cell(ObjectId),
}

/// How a thread is started and waited for.
#[derive(Debug, Default)]
pub(super) struct State {
    /// What it waits for first; `None` if it starts with the program.
    flag: Option<ObjectId>,
    /// Whether it may get the stack of another thread, as far as it was known when it was created.
    late: bool,
    /// The register of its creator that says whether it was created, if that is not certain.
    created: Option<(ThreadNumber, Register)>,
    /// Whether anybody may wait for it.
    joined: bool,
    /// Whether anybody asks for its result.
    wanted: bool,
    done: Option<ObjectId>,
    result: Option<ObjectId>,
    /// Whether it was detached before the program started.
    detached: bool,
    released: Option<ObjectId>,
}

/// What threads share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// How many threads each call has created.
    sites: FxHashMap<Span, usize>,
    /// Whether `main` has waited for a thread or detached one, so that its stack may be used again.
    reclaims: bool,
    /// Whether another thread does so.
    others_reclaim: bool,
    /// Whether somebody waits for a thread whose number is not known.
    pub(super) dynamic: bool,
    done: Option<ObjectId>,
    results: Option<ObjectId>,
    released: Option<ObjectId>,
}

/// The type of `pthread_t`.
const THREADS: Arithmetic = Arithmetic::Integer(Integer { rank: Rank::Long, signed: false });
/// What is wrong with waiting for a thread that another call has released.
const RELEASED: &str = "a thread is waited for or detached that was waited for or detached before";

pub(super) fn int() -> Type {
    Type { kind: TypeKind::Integer(Arithmetic::INT), atomic: false, volatile: false }
}

fn pointer() -> Type {
    let void = Type { kind: TypeKind::Void, atomic: false, volatile: false };
    Type { kind: TypeKind::Pointer(Rc::new(void)), atomic: false, volatile: false }
}

impl Elaborator<'_> {
    /// `main`, and then every thread that is created.
    pub(super) fn initial_threads(&mut self, main: FunctionId) -> Result<()> {
        let unit = self.unit;
        let span = unit.functions[main.index()].span;
        let parameters = self.command_line(main, span)?;
        self.instances
            .push(Instance { start: Start { function: main, parameters, span }, state: State::default() });
        let mut next = 0;
        while next < self.instances.len() {
            let number = ThreadNumber(next as u32);
            self.writer = Writer::new(number, self.instances[next].start.span);
            self.whole_thread(next)?;
            if next == 0 {
                if self.phase == Phase::Alone {
                    // Nothing is concurrent here: the code says what happens.
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

    /// Whether a thread that is created later may get the stack of another one.
    pub(super) fn is_late(&self, thread: ThreadNumber) -> bool {
        let late = |state: &State| state.late || state.flag.is_some() && self.shared.others_reclaim;
        self.instances.get(thread.0 as usize).is_some_and(|instance| late(&instance.state))
    }

    /// The stack of a thread may be used again, from here on or when it ends.
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
        self.in_function(function, target, span, |this| {
            for (n, parameter) in parameters.into_iter().enumerate() {
                let operand = this.parameter(parameter, span)?;
                if n < callee.parameters.len() {
                    this.pass(LocalId(n as u32), Argument::Scalar(operand), span)?;
                }
            }
            this.nested(|this| this.body(function))?;
            this.end_frames(span);
            Ok(())
        })?;
        // What was gone when the threads were created is still gone.
        if self.phase == Phase::Creating && self.left_behind().next().is_some() {
            self.run();
        }
        Ok(())
    }

    /// What a thread is started with.
    fn parameter(&mut self, parameter: Parameter, span: Span) -> Result<Operand> {
        let cell = match parameter {
            Parameter::Known(operand) => return Ok(operand),
            Parameter::Cell(cell) => cell,
        };
        let ty = self.objects[cell.0 as usize].ty.clone().expect("cells have a type");
        let target = Target::new(Spot::Memory(self.location(cell, &[])), ty).accessed(Access::Own);
        self.read(&target, span)
    }

    /// Calls that are about threads. `None` for all others.
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
                self.wait_for(thread, place, &to, span)?;
                Operand::number(0)
            }
            ("pthread_exit" | "thrd_exit", [value]) => {
                let operand = self.value(value)?;
                if let Some(register) = self.writer.result {
                    self.write_register(register, operand, span)?;
                }
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

    /// The thread in hand ends.
    pub fn end_thread(&mut self, span: Span) {
        self.end_frames(span);
        self.divert(0);
        if self.executing() && self.phase == Phase::Creating {
            // Whatever else main would do, it does not.
            self.writer.reachable = false;
            return;
        }
        let end = self.writer.end;
        self.emit(StmtKind::Goto(end), span);
        self.writer.reachable = false;
    }

    /// This execution does not go on from here, without being wrong.
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
        let Value::Function(started) = target.value else {
            return self.error(
                function.span,
                "which function the thread starts with is not known",
                "pass the function by its name",
            );
        };
        let number = self.instances.len();
        let to = super::expressions::pointee(&arguments[0].ty);
        if !Self::is_null(&thread) {
            let place = self.pointed(&thread, &to, span)?.accessed(Access::Own);
            self.write(&place, Operand::number(number as i128), span)?;
        }
        self.create(FunctionId(started), vec![argument], span)?;
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
        let site = self.shared.sites.entry(span.text()).or_default();
        *site += 1;
        if *site > MOST_PER_SITE || self.instances.len() > MOST_THREADS {
            let most = if *site > MOST_PER_SITE { MOST_PER_SITE } else { MOST_THREADS };
            self.emit(StmtKind::Beyond(Value::Number(1), format!("more than {most} threads")), span);
            self.writer.reachable = false;
            return Ok(());
        }
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
        let mut state = State { late, ..State::default() };
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

    /// How many threads each call has created so far.
    pub(super) fn sites(&self) -> FxHashMap<Span, usize> {
        self.shared.sites.clone()
    }

    /// Which of the threads that were created so far were detached before the program started.
    pub(super) fn detached(&self) -> Vec<bool> {
        self.instances.iter().map(|instance| instance.state.detached).collect()
    }

    /// Threads that were created in an attempt that is thrown away are none, and neither are variables of theirs; those that were `detached` before it are again.
    pub(super) fn uncreate(&mut self, detached: &[bool], sites: &FxHashMap<Span, usize>, objects: usize) {
        self.instances.truncate(detached.len());
        for (instance, &detached) in self.instances.iter_mut().zip(detached) {
            instance.state.detached = detached;
        }
        self.shared.sites.clone_from(sites);
        let is_there = |object: &ObjectId| (object.0 as usize) < objects;
        self.shared.done = self.shared.done.filter(is_there);
        self.shared.results = self.shared.results.filter(is_there);
        self.shared.released = self.shared.released.filter(is_there);
        for Instance { state, .. } in &mut self.instances {
            state.done = state.done.filter(is_there);
            state.result = state.result.filter(is_there);
            state.released = state.released.filter(is_there);
        }
    }

    /// A variable that the translation adds.
    pub fn own_object(&mut self, name: String, ty: Type, span: Span) -> ObjectId {
        let node = self.nodes.object(&ty, span);
        let (ty, initial) = (Some(ty), Vec::new());
        let object =
            self.object(Object { name, ty, node, origin: Origin::Global, initial, undefined: false, span });
        self.reach[object.0 as usize].shared = true;
        self.writer.env.objects.remove(&object);
        object
    }

    /// The first thread is created: what `main` has written so far is where the program starts.
    fn start_program(&mut self) {
        self.keep_initial();
        self.phase = Phase::Creating;
        let globals: Vec<ObjectId> = self.writer.env.objects.keys().copied().collect();
        for object in globals {
            if self.objects[object.0 as usize].origin != Origin::Global || self.is_private(object) {
                continue;
            }
            let location = Location {
                base: Base::Object(object),
                path: Vec::new(),
                node: self.objects[object.0 as usize].node,
                view: View::default(),
            };
            // Everybody can see it, and whatever it points to.
            let unkept = self.uses.clone();
            self.publish(&Value::Address(Box::new(location)));
            self.uses = unkept;
        }
    }

    /// Takes down what objects hold, as what they start with: whatever was written has left the buffers before anybody else can look.
    pub(super) fn keep_initial(&mut self) {
        self.unwritten.clear();
        self.take_down();
    }

    /// Takes down what objects hold, as what they start with.
    fn take_down(&mut self) {
        let objects = std::mem::take(&mut self.writer.env.objects);
        for (object, contents) in &objects {
            self.keep_contents(*object, contents);
        }
        self.writer.env.objects = objects;
    }

    /// Takes down what one object holds, as what it starts with.
    pub(super) fn keep_contents(&mut self, object: ObjectId, contents: &Contents) {
        let entry = &mut self.objects[object.0 as usize];
        let default = if entry.undefined { Known::Undefined } else { Known::Number(0) };
        let facts = contents
            .parts
            .iter()
            .filter_map(|(way, fact)| Some((way.clone(), fact.as_ref()?.known.clone()?)));
        let mut initial: Vec<(Vec<Step>, Known)> = facts.filter(|(_, known)| *known != default).collect();
        initial.sort_by_cached_key(|(way, _)| {
            way.iter()
                .map(|step| match step {
                    Step::Field(field) => u64::from(*field),
                    Step::Element(element) => *element,
                })
                .collect::<Vec<u64>>()
        });
        entry.initial = initial;
    }

    /// From here on `main` does what others can see: code is written.
    pub(super) fn run(&mut self) {
        self.take_down();
        self.phase = Phase::Running;
        self.ran_with = self.instances.len();
        let mut facts: Vec<(Register, Known, numbers::Range)> = Vec::new();
        for (register, fact) in &self.writer.env.registers {
            if let Some(known) = &fact.known {
                facts.push((*register, known.clone(), fact.range));
            }
        }
        facts.sort_by_key(|(register, ..)| *register);
        let span = self.writer.frames.last().map_or(self.writer.span, |frame| frame.at);
        for (register, known, range) in facts {
            if let Some(operand) = self.known_operand(&known, range) {
                self.kept(&operand.value);
                self.emit(StmtKind::Assign(register, operand.value), span);
            }
        }
        // What private objects hold may be found by pointers that are not known, once there are any.
        let held: Vec<Known> = self
            .writer
            .env
            .objects
            .values()
            .flat_map(|contents| contents.parts.values().flatten())
            .filter_map(|fact| fact.known.clone())
            .collect();
        for known in held {
            if let Some(operand) = self.known_operand(&known, (0, 0)) {
                self.kept(&operand.value);
            }
        }
        self.end_before(span);
    }

    /// Waits for a thread, and takes its result.
    fn wait_for(&mut self, thread: Operand, result: Operand, to: &Type, span: Span) -> Result<()> {
        let wanted = !Self::is_null(&result);
        self.reclaim();
        self.require_other(&thread, span);
        if !self.writer.reachable {
            return Ok(());
        }
        let (done, value, released) = match thread.known() {
            Some(number) => {
                let Some(instance) = self.created(number) else {
                    return self.error(
                        span,
                        "this is not a thread that was created",
                        "wait for threads after they are created, once each",
                    );
                };
                self.instances[instance].state.joined = true;
                self.instances[instance].state.wanted |= wanted;
                let result = wanted.then(|| self.result_cell(instance, to, span));
                let released = self.released_flag(instance, span);
                (self.done_flag(instance, span), result, released)
            }
            None => {
                self.shared.dynamic = true;
                let length = self.premises.threads.unwrap_or(1);
                let element = |this: &mut Self, cells| {
                    let mut place = this.location(cells, &[Step::Element(0)]);
                    place.path = vec![Projection::Element(thread.value.clone(), length)];
                    place
                };
                let done = self.all_done(length, span);
                let done = element(self, done);
                let results = wanted.then(|| {
                    let cells = self.all_results(length, to, span);
                    element(self, cells)
                });
                let released = self.all_released(length, span);
                (done, results, element(self, released))
            }
        };
        let released = Target::new(Spot::Memory(released), int()).accessed(Access::Own);
        self.require_unreleased(&released, span)?;
        self.write(&released, Operand::number(1), span)?;
        let register = self.temporary("done", &int());
        let ended = Value::binary(BinaryOp::Ne, Value::Register(register), Value::Number(0));
        self.emit_await(register, done, ended, Access::Own, span);
        if let Some(place) = value {
            let cell = Target::new(Spot::Memory(place), to.clone()).accessed(Access::Own);
            let operand = self.read(&cell, span)?;
            let target = self.pointed(&result, to, span)?;
            self.write(&target, operand, span)?;
        }
        if let Some(instance) = thread.known().and_then(|number| self.created(number))
            && self.writer.reachable
            && !self.repeated()
            && self.writer.branches == 0
            && self.writer.pending.is_empty()
        {
            self.writer.joined.insert(instance);
        }
        Ok(())
    }

    /// Whether all other threads have ended for certain, and nobody creates more than `main`.
    pub(super) fn is_alone(&self) -> bool {
        let ended = |n| self.writer.joined.contains(&n);
        let alone = self.thread() == ThreadNumber(0) && (1..self.instances.len()).all(ended);
        alone && !self.premises.descendants
    }

    /// A thread with this number, other than `main`, if it was created.
    fn created(&self, number: i128) -> Option<usize> {
        usize::try_from(number).ok().filter(|n| (1..self.instances.len()).contains(n))
    }

    /// No thread waits for itself.
    fn require_other(&mut self, thread: &Operand, span: Span) {
        let own = Operand::number(self.thread().0.into());
        let (op, kind) = (Operator::NotEqual, THREADS);
        let other = numbers::binary(self, op, kind, thread.clone(), own);
        self.require(other, "a thread waits for itself", span);
    }

    fn require_unreleased(&mut self, released: &Target, span: Span) -> Result<()> {
        let before = self.read(released, span)?;
        self.require(numbers::not(before), RELEASED, span);
        Ok(())
    }

    /// Nobody waits for a thread any more. Of threads whose number is not known nothing is noted.
    fn detach(&mut self, thread: &Operand, span: Span) -> Result<()> {
        self.reclaim();
        let Some(instance) = thread.known().and_then(|number| self.created(number)) else { return Ok(()) };
        if self.executing() && !self.instances[instance].state.detached {
            self.instances[instance].state.detached = true;
            return Ok(());
        }
        let released = self.released_flag(instance, span);
        let released = Target::new(Spot::Memory(released), int()).accessed(Access::Own);
        self.require_unreleased(&released, span)?;
        self.write(&released, Operand::number(1), span)
    }

    /// A thread is detached from the start if this is not 0.
    fn start_detached(&mut self, instance: usize, kind: Operand, span: Span) -> Result<()> {
        if kind.known() != Some(0) {
            self.reclaim();
        }
        if let Some(kind) = kind.known() {
            self.instances[instance].state.detached = kind != 0;
            return Ok(());
        }
        let releases = |this: &mut Self| {
            let released = this.released_flag(instance, span);
            let released = Target::new(Spot::Memory(released), int()).accessed(Access::Own);
            this.write(&released, Operand::number(1), span)
        };
        self.branch(kind, span, releases, |_| Ok(()))
    }

    /// What attributes say about whether a thread is detached from the start: 0 if it is not.
    fn detached_by(&mut self, attributes: &Expr) -> Result<Operand> {
        let pointer = self.value(attributes)?;
        if !self.graph.detached_by_attributes || Self::is_null(&pointer) {
            return Ok(Operand::number(0));
        }
        let to = super::expressions::pointee(&attributes.ty);
        let place = self.pointed(&pointer, &to, attributes.span)?;
        let place = self.scalar(place, attributes.span)?.accessed(Access::Own);
        self.read(&place, attributes.span)
    }

    fn released_flag(&mut self, instance: usize, span: Span) -> Location {
        if let Some(length) = self.premises.threads {
            let released = self.all_released(length, span);
            return self.location(released, &[Step::Element(instance as u64)]);
        }
        let object = match self.instances[instance].state.released {
            Some(object) => object,
            None => self.own_object(format!("released_{instance}"), int(), span),
        };
        self.instances[instance].state.released = Some(object);
        self.location(object, &[])
    }

    fn all_released(&mut self, length: u64, span: Span) -> ObjectId {
        if let Some(object) = self.shared.released {
            return object;
        }
        let ty = Type { kind: TypeKind::Array(Rc::new(int()), length), atomic: false, volatile: false };
        let object = self.own_object("released".into(), ty, span);
        self.shared.released = Some(object);
        object
    }

    /// Threads that were detached before the program started start released.
    pub(super) fn keep_detached(&mut self) {
        for (n, Instance { state, .. }) in self.instances.iter().enumerate() {
            let (object, way) = match (state.released, self.shared.released) {
                _ if !state.detached => continue,
                (Some(object), _) => (object, Vec::new()),
                (None, Some(all)) => (all, vec![Step::Element(n as u64)]),
                (None, None) => continue,
            };
            self.objects[object.0 as usize].initial.push((way, Known::Number(1)));
        }
    }

    fn done_flag(&mut self, instance: usize, span: Span) -> Location {
        if let Some(length) = self.premises.threads {
            let done = self.all_done(length, span);
            return self.location(done, &[Step::Element(instance as u64)]);
        }
        let object = match self.instances[instance].state.done {
            Some(object) => object,
            None => self.own_object(format!("done_{instance}"), int(), span),
        };
        self.instances[instance].state.done = Some(object);
        self.location(object, &[])
    }

    fn result_cell(&mut self, instance: usize, ty: &Type, span: Span) -> Location {
        if let Some(length) = self.premises.threads {
            let results = self.all_results(length, ty, span);
            return self.location(results, &[Step::Element(instance as u64)]);
        }
        let object = match self.instances[instance].state.result {
            Some(object) => object,
            None => self.own_object(format!("result_{instance}"), ty.clone(), span),
        };
        self.instances[instance].state.result = Some(object);
        self.location(object, &[])
    }

    fn all_done(&mut self, length: u64, span: Span) -> ObjectId {
        if let Some(object) = self.shared.done {
            return object;
        }
        let ty = Type { kind: TypeKind::Array(Rc::new(int()), length), atomic: false, volatile: false };
        let object = self.own_object("done".into(), ty, span);
        self.shared.done = Some(object);
        object
    }

    fn all_results(&mut self, length: u64, ty: &Type, span: Span) -> ObjectId {
        if let Some(object) = self.shared.results {
            return object;
        }
        let ty = Type { kind: TypeKind::Array(Rc::new(ty.clone()), length), atomic: false, volatile: false };
        let object = self.own_object("result".into(), ty, span);
        self.shared.results = Some(object);
        object
    }
}
