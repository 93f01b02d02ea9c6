//! Function calls, which are inlined.

use std::num::NonZeroU32;

use fencewright_c::typed::tree::{Callee, Expr, FunctionId, TypeKind};
use fencewright_code::core::{Origin, Purpose, StmtKind, ThreadNumber, Value};
use fencewright_code::numbers::Operand;
use fencewright_program::{Call, CallId, Span};
use rustc_hash::{FxHashMap, FxHashSet};

use super::frames::{Frame, Slot};
use super::lifetimes::{around_labels, declared};
use super::objects::{Spot, Target};
use super::{Accesses, Elaborator, Result, Writer};

/// Maximum nesting depth of inlined calls.
const MOST_CALLS: usize = 100;

/// An argument of a call.
#[derive(Clone, Debug)]
pub(super) enum Argument {
    /// The value of a scalar argument.
    Scalar(Operand),
    /// A structure, given as the place that holds it.
    Aggregate(Target),
}

/// The return value of a call.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    /// The function returns `void`.
    Nothing,
    /// A scalar.
    Scalar(Operand),
    /// A structure, given as the place that holds it.
    Aggregate(Target),
}

impl Elaborator<'_> {
    /// Elaborates a call: of a builtin, of a function with a body, or through a pointer. `unused` says that the caller ignores the return value.
    pub(super) fn call(
        &mut self,
        callee: &Callee,
        arguments: &[Expr],
        call: &Expr,
        unused: bool,
    ) -> Result<Outcome> {
        match callee {
            Callee::Builtin(name) => {
                if let Some(outcome) = self.replaced_call(name, arguments, call)? {
                    return Ok(outcome);
                }
                if let Some(operand) = self.thread_builtin(name, arguments, call)? {
                    return Ok(Outcome::Scalar(operand));
                }
                self.unused = unused;
                self.builtin(name, arguments, call).map(Outcome::Scalar)
            }
            Callee::Function(function) => {
                let arguments = self.arguments(arguments)?;
                self.called(*function, arguments, call.span)
            }
            Callee::Pointer(pointer) => self.call_through(pointer, arguments, call),
        }
    }

    /// Evaluates arguments from left to right. Gives a warning where another order, such as that of gcc, makes a difference: to the thread itself, or
    /// because several arguments read what other threads may write.
    pub(super) fn arguments(&mut self, arguments: &[Expr]) -> Result<Vec<Argument>> {
        let (mut values, mut before) = (Vec::new(), Vec::new());
        for argument in arguments {
            let start = self.accesses;
            values.push(match argument.ty.kind {
                TypeKind::Record(_) => Argument::Aggregate(self.aggregate(argument)?),
                _ => Argument::Scalar(self.value(argument)?),
            });
            let own = self.accesses.since(start);
            let matters = |other: &Accesses| own.conflict(*other) || own.ordered.min(other.ordered) > 0;
            if before.iter().any(matters) {
                let text = "C does not define the order in which arguments access memory: they are evaluated from left to right, and by gcc from right to left";
                self.warn(argument.span, text);
            }
            before.push(own);
        }
        Ok(values)
    }

    /// A call of a function with a body, which is an atomic section if its name says so.
    pub(super) fn called(
        &mut self,
        function: FunctionId,
        arguments: Vec<Argument>,
        span: Span,
    ) -> Result<Outcome> {
        let unit = self.unit;
        if !self.indivisible(&unit.functions[function.index()].name) {
            return self.inlined(function, arguments, span);
        }
        self.section(true, span)?;
        let outcome = self.inlined(function, arguments, span)?;
        self.section(false, span)?;
        Ok(outcome)
    }

    /// Inlines the body of a function.
    pub(super) fn inlined(
        &mut self,
        function: FunctionId,
        arguments: Vec<Argument>,
        span: Span,
    ) -> Result<Outcome> {
        self.step(span)?;
        let unit = self.unit;
        let callee = &unit.functions[function.index()];
        let result = self.result_of(function, span);
        if !self.goes_deeper(function, span)? {
            return Ok(self.outcome(result));
        }
        let (registers, objects) = (self.writer.registers.len(), self.objects.len());
        let body = self.in_function(function, result.clone(), span, |this| {
            for (&local, argument) in callee.parameters.iter().zip(arguments) {
                this.pass(local, argument, span)?;
            }
            this.written(|this| {
                this.deeper(span, |this| this.nested(|this| this.body(function)))?;
                this.end_scopes(0, span);
                Ok(())
            })
        })?;
        let here = self.here(span);
        if !body.is_empty() {
            self.block().push(super::Stmt { kind: StmtKind::Block(body), span: here });
        }
        // Drops the facts about local variables of the callee. Facts about its allocations, about variables with static storage, and
        // about objects that the translation adds for the whole thread (such as which locks it holds) remain.
        let kept = &self.objects;
        self.writer.env.registers.retain(|register, _| (register.0 as usize) < registers);
        self.writer.env.objects.retain(|object, _| {
            (object.0 as usize) < objects
                || matches!(kept[object.0 as usize].origin, Origin::Heap { .. })
                || kept[object.0 as usize].purpose == Purpose::Translation
                || self.globals.values().any(|global| global == object)
        });
        Ok(self.outcome(result))
    }

    /// A new place for the return value of a function; `None` if it returns `void`.
    pub(super) fn result_of(&mut self, function: FunctionId, span: Span) -> Option<Target> {
        let callee = &self.unit.functions[function.index()];
        let ty = callee.ty.result.clone();
        let spot = match &ty.kind {
            TypeKind::Void => return None,
            TypeKind::Record(_) => {
                let object = self.scratch(&callee.name, &ty, span);
                Spot::Memory(self.location(object, &[]))
            }
            _ => Spot::Register(self.register(callee.name.clone(), &ty)),
        };
        Some(Target::new(spot, ty))
    }

    /// The outcome of a call whose return value is in the place `result`.
    pub(super) fn outcome(&mut self, result: Option<Target>) -> Outcome {
        match result {
            None => Outcome::Nothing,
            Some(target) => match target.spot {
                Spot::Register(register) => Outcome::Scalar(self.register_value(register)),
                Spot::Memory(_) => Outcome::Aggregate(target),
            },
        }
    }

    /// Whether a call is inlined. If calls of this function are nested too deeply, the model ends here instead.
    ///
    /// A nested call counts only if it depends on a condition whose value is unknown. If all conditions are known, constants bound the depth of the
    /// calls. Inside a call that counts, all calls count: a condition may be known because the ranges of values exclude the end of the recursion.
    fn goes_deeper(&mut self, function: FunctionId, span: Span) -> Result<bool> {
        // A thread that called `main` would create threads that call `main`, and so on without end.
        if self.thread() != ThreadNumber(0)
            && self.instances.first().is_some_and(|main| main.start.function == function)
        {
            let message = "recursion is not supported: a thread other than the first one calls `main`";
            return self.error(span, message, "put what both do into a function of its own");
        }
        let name = &self.unit.functions[function.index()].name;
        let (depth, calls) = (self.unknown_depth(function), self.writer.frames.len());
        let most = match depth {
            Some(depth) if depth > self.options.recursion => self.options.recursion,
            Some(_) if calls >= MOST_CALLS => {
                self.writer.frames.iter().filter(|frame| frame.function == function).count()
            }
            None if calls >= MOST_CALLS => {
                let message = format!("more than {MOST_CALLS} nested calls");
                return self.error(span, message, "make the chain of calls shorter");
            }
            _ => return Ok(true),
        };
        self.cut.set(true);
        self.emit(StmtKind::Beyond(Value::Number(1), format!("deeper than {most} calls of {name}")), span);
        self.writer.reachable = false;
        Ok(false)
    }

    /// The number of nested calls of a function that depend on unknown conditions, including this call; `None` if no call of the function is active.
    fn unknown_depth(&self, function: FunctionId) -> Option<usize> {
        let Writer { frames, branches, loops, pending, .. } = &self.writer;
        let caller = frames.iter().rev().find(|frame| frame.function == function)?;
        let is_certain = caller.unknown_depth == 1
            && *branches == caller.branches
            && *loops == caller.loops
            && pending.range(caller.level..).next().is_none();
        Some(caller.unknown_depth + usize::from(!is_certain))
    }

    /// Pushes a frame for a function; an error if the body of the function has errors and is not replaced.
    pub(super) fn enter(&mut self, function: FunctionId, result: Option<Target>, span: Span) -> Result<()> {
        let callee = &self.unit.functions[function.index()];
        self.enter_stub(function, span);
        if let Some(error) = callee.errors.first().filter(|_| self.replacement(function).is_none()) {
            self.broken = true;
            return Err(Box::new(crate::diagnostic(error.clone())));
        }
        let call = match self.writer.frames.is_empty() {
            true => CallId::default(),
            false => {
                let at = self.here(span);
                self.calls.push(Call { what: format!("{}()", callee.name), at });
                CallId(NonZeroU32::new(self.calls.len() as u32))
            }
        };
        let unknown_depth = self.unknown_depth(function).unwrap_or(1);
        let exit = self.join();
        let jumps = self.graph.has_jumps(function);
        self.writer.frames.push(Frame {
            function,
            call,
            at: span,
            slots: vec![None; callee.locals.len()],
            labels: FxHashMap::default(),
            placed: FxHashSet::default(),
            exit,
            result,
            contexts: Vec::new(),
            scopes: vec![Vec::new()],
            arrays: Vec::new(),
            cleanups: Vec::new(),
            passed: vec![if jumps { declared(&callee.body.statements) } else { Vec::new() }],
            around: if jumps { around_labels(callee) } else { FxHashMap::default() },
            repeated: Vec::new(),
            level: self.writer.level + 1,
            branches: self.writer.branches,
            loops: self.writer.loops,
            unknown_depth,
        });
        Ok(())
    }

    /// Initialises a parameter.
    pub(super) fn pass(
        &mut self,
        local: fencewright_c::typed::tree::LocalId,
        argument: Argument,
        span: Span,
    ) -> Result<()> {
        let unit = self.unit;
        self.begin(local, span);
        self.frame().scopes[0].push(local);
        let slot = self.slot(local);
        let ty = unit.functions[self.frame().function.index()].locals[local.index()].ty.clone();
        let spot = match slot {
            Slot::Register(register) => Spot::Register(register),
            Slot::Object(object) => Spot::Memory(self.location(object, &[])),
        };
        let target = Target::new(spot, ty);
        match argument {
            Argument::Scalar(operand) => self.write(&target, operand, span),
            Argument::Aggregate(from) => self.copy(&from, &target, span),
        }
    }

    /// Elaborates the body of the current function, up to the label that is the target of `return`. If the function has labels that are targets of
    /// jumps, the body is elaborated until the facts at these labels reach a fixpoint.
    pub(super) fn body(&mut self, function: FunctionId) -> Result<()> {
        if let Some(what) = self.replacement(function) {
            return self.replaced_body(function, &what);
        }
        let unit = self.unit;
        let callee = &unit.functions[function.index()];
        let labels = self.graph.has_jumps(function);
        if labels {
            // Facts at labels are kept from one attempt to the next and may refer to any local variable, so all local variables are created before
            // the first attempt.
            for n in 0..callee.locals.len() {
                self.slot(fencewright_c::typed::tree::LocalId(n as u32));
            }
        }
        let mark = labels.then(|| self.mark());
        let parameters = self.frame().scopes[0].len();
        loop {
            self.step(callee.span)?;
            self.frame().scopes[0].truncate(parameters);
            let code = self.written(|this| {
                // In a loop, control may jump over the declaration of a variable that still holds a value from an earlier call of the function. So
                // the lifetimes of all variables begin here.
                if labels && this.repeated() {
                    let span = callee.body.span;
                    declared(&callee.body.statements).into_iter().for_each(|local| this.begin(local, span));
                }
                this.statements(&callee.body)
            })?;
            let open = std::mem::take(&mut self.frame().repeated).len();
            self.writer.loops -= open;
            let (mut exit, span) = {
                let label = self.frame().exit.label;
                let env = self.frame().exit.env.take();
                (super::labels::Join { label, env, supposed: None }, callee.body.span)
            };
            if let Some(mark) = &mark {
                let Frame { labels, placed, .. } = self.frame();
                let missed =
                    labels.iter().find(|(label, join)| join.env.is_some() && !placed.contains(label));
                if let Some((label, _)) = missed {
                    let span = callee.labels[label.index()].span;
                    return self.error(
                        span,
                        "this label cannot be jumped to from outside",
                        "put the label outside of the expression",
                    );
                }
                if !self.settle() {
                    self.back_to_labels(mark);
                    continue;
                }
            }
            self.block().extend(code);
            let jumps = exit.env.is_some();
            if jumps {
                self.arrive(&mut exit, span);
            }
            return Ok(());
        }
    }

    /// Checks whether the facts assumed at each label hold at all jumps to the label. If not, weakens the assumptions and returns false.
    fn settle(&mut self) -> bool {
        let mut settled = true;
        for join in self.frame().labels.values_mut() {
            if let Some(env) = &join.env {
                let mut weaker = join.supposed.clone().unwrap_or_else(|| env.clone());
                weaker.join(env, true);
                if join.supposed.as_ref() != Some(&weaker) {
                    settled = false;
                }
                join.env = Some(weaker);
            }
        }
        settled
    }

    fn back_to_labels(&mut self, mark: &super::labels::Mark) {
        // The labels and the facts at jumps to them are kept for the next attempt; the assumed facts are dropped.
        self.back_to(mark);
        let (registers, objects) = (self.writer.registers.len(), self.objects.len());
        for join in self.frame().labels.values_mut() {
            join.supposed = None;
            if let Some(env) = &mut join.env {
                env.forget_from(registers, objects);
            }
        }
    }

    pub(super) fn return_value(&mut self, value: Option<&Expr>, span: Span) -> Result<()> {
        if !self.writer.reachable {
            return Ok(());
        }
        let result = self.frame().result.clone();
        match (value, result) {
            (Some(value), Some(target)) if matches!(target.ty.kind, TypeKind::Record(_)) => {
                let from = self.aggregate(value)?;
                self.copy(&from, &target, span)?;
            }
            (Some(value), Some(target)) => {
                let operand = self.value(value)?;
                self.write(&target, operand, span)?;
            }
            (Some(value), None) => self.effect(value)?,
            (None, _) => {}
        }
        self.end_scopes(1, span);
        let mut env = self.frame().exit.env.take();
        self.note(&mut env);
        self.frame().exit.env = env;
        let level = self.frame().level;
        self.divert(level);
        if !self.executing() {
            let exit = self.frame().exit.label;
            self.emit(StmtKind::Goto(exit), span);
        }
        self.writer.reachable = false;
        Ok(())
    }
}
