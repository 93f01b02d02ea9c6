//! Calls, which are inlined.

use std::num::NonZeroU32;

use fencewright_c::ast::BinaryOp as Operator;
use fencewright_c::typed::tree::{Callee, Expr, FunctionId, TypeKind};
use fencewright_code::core::{Origin, Register, StmtKind, Value};
use fencewright_code::numbers::{ADDRESSES, Operand, compare};
use fencewright_program::{Call, CallId, Span};
use rustc_hash::{FxHashMap, FxHashSet};

use super::frames::{Frame, Slot};
use super::lifetimes::{around_labels, declared};
use super::objects::{Spot, Target};
use super::{Elaborator, Result};

/// Maximum nesting depth of inlined calls.
const MOST_CALLS: usize = 100;
/// Maximum number of possible targets of a call through an unknown function pointer.
const MOST_FUNCTIONS: usize = 16;

/// An argument of a call.
#[derive(Clone, Debug)]
pub(super) enum Argument {
    /// The value of a scalar argument.
    Scalar(Operand),
    /// A structure, as the place that holds it.
    Aggregate(Target),
}

/// The result of a call.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    /// No result.
    Nothing,
    /// A scalar.
    Scalar(Operand),
    /// A structure, as the place that holds it.
    Aggregate(Target),
}

impl Elaborator<'_> {
    /// Elaborates a call of a builtin, of a function with a body, or through a pointer. `unused` says that the result is not used.
    pub(super) fn call(
        &mut self,
        callee: &Callee,
        arguments: &[Expr],
        call: &Expr,
        unused: bool,
    ) -> Result<Outcome> {
        match callee {
            Callee::Builtin(name) => {
                if let Some(operand) = self.thread_builtin(name, arguments, call)? {
                    return Ok(Outcome::Scalar(operand));
                }
                self.unused = unused;
                self.builtin(name, arguments, call).map(Outcome::Scalar)
            }
            Callee::Function(function) => {
                let arguments = self.arguments(arguments)?;
                let unit = self.unit;
                if self.indivisible(&unit.functions[function.index()].name) {
                    self.section(true, call.span)?;
                    let outcome = self.inlined(*function, arguments, call.span)?;
                    self.section(false, call.span)?;
                    return Ok(outcome);
                }
                self.inlined(*function, arguments, call.span)
            }
            Callee::Pointer(pointer) => {
                let target = self.value(pointer)?;
                let arguments = self.arguments(arguments)?;
                match target.value {
                    Value::Function(function) => self.inlined(FunctionId(function), arguments, call.span),
                    _ => self.dispatched(target, pointer, arguments, call),
                }
            }
        }
    }

    pub(super) fn arguments(&mut self, arguments: &[Expr]) -> Result<Vec<Argument>> {
        let mut values = Vec::new();
        for argument in arguments {
            values.push(match argument.ty.kind {
                TypeKind::Record(_) => Argument::Aggregate(self.aggregate(argument)?),
                _ => Argument::Scalar(self.value(argument)?),
            });
        }
        Ok(values)
    }

    /// A call through an unknown function pointer: a case distinction over all functions of a matching type whose address is taken.
    fn dispatched(
        &mut self,
        target: Operand,
        pointer: &Expr,
        arguments: Vec<Argument>,
        call: &Expr,
    ) -> Result<Outcome> {
        let unit = self.unit;
        let graph = self.graph;
        let TypeKind::Pointer(to) = &pointer.ty.kind else {
            return self.error(pointer.span, "this is not a pointer to a function", "");
        };
        let fits = |function: &&FunctionId| match &to.kind {
            TypeKind::Function(ty) => {
                let other = &unit.functions[function.index()].ty;
                other.result.kind == ty.result.kind && parameters_fit(&other.parameters, &ty.parameters)
            }
            _ => false,
        };
        let functions: Vec<FunctionId> = graph.kept().iter().filter(fits).copied().collect();
        if functions.is_empty() || functions.len() > MOST_FUNCTIONS {
            let message = format!(
                "the functions that this pointer can point to are not known ({} are possible)",
                functions.len()
            );
            return self.error(
                pointer.span,
                message,
                "call the function by its name, or keep the pointer in a variable that does not change",
            );
        }
        if matches!(call.ty.kind, TypeKind::Record(_)) {
            return self.error(
                call.span,
                "an unknown function returns a structure",
                "return it through a pointer",
            );
        }
        let target = self.kept_value(target, &pointer.ty, pointer.span)?;
        let result = match call.ty.kind {
            TypeKind::Void => None,
            _ => Some(self.temporary("result", &call.ty)),
        };
        self.dispatch_to(&functions, &target, &arguments, result, call)?;
        Ok(match result {
            Some(register) => Outcome::Scalar(self.register_value(register)),
            None => Outcome::Nothing,
        })
    }

    fn dispatch_to(
        &mut self,
        functions: &[FunctionId],
        target: &Operand,
        arguments: &[Argument],
        result: Option<Register>,
        call: &Expr,
    ) -> Result<()> {
        let span = call.span;
        let Some((&function, rest)) = functions.split_first() else {
            self.emit(
                StmtKind::Check(Value::Number(0), "a call of something that is no function".into()),
                span,
            );
            self.writer.reachable = false;
            return Ok(());
        };
        let value = Operand { value: Value::Function(function.0), range: ADDRESSES, points: None };
        let same = compare(Operator::Equal, target.clone(), value);
        self.branch(
            same,
            span,
            |this| {
                let outcome = this.inlined(function, arguments.to_vec(), span)?;
                if let (Some(register), Outcome::Scalar(operand)) = (result, outcome) {
                    this.write_register(register, operand, span)?;
                }
                Ok(())
            },
            |this| this.dispatch_to(rest, target, arguments, result, call),
        )
    }

    /// Inlines the body of a function.
    pub(super) fn inlined(
        &mut self,
        function: FunctionId,
        arguments: Vec<Argument>,
        span: Span,
    ) -> Result<Outcome> {
        self.step(span)?;
        self.no_recursion(function, span)?;
        let unit = self.unit;
        let callee = &unit.functions[function.index()];
        let result = match &callee.ty.result.kind {
            TypeKind::Void => None,
            TypeKind::Record(_) => {
                let object = self.scratch(&callee.name, &callee.ty.result, span);
                Some(Target::new(Spot::Memory(self.location(object, &[])), callee.ty.result.clone()))
            }
            _ => {
                let register = self.register(callee.name.clone(), &callee.ty.result);
                Some(Target::new(Spot::Register(register), callee.ty.result.clone()))
            }
        };
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
        // Facts about the variables of the function are dropped; facts about its allocations and about variables with static storage remain.
        let kept = &self.objects;
        self.writer.env.registers.retain(|register, _| (register.0 as usize) < registers);
        self.writer.env.objects.retain(|object, _| {
            (object.0 as usize) < objects
                || matches!(kept[object.0 as usize].origin, Origin::Heap { .. })
                || self.globals.values().any(|global| global == object)
        });
        Ok(match result {
            None => Outcome::Nothing,
            Some(target) => match target.spot {
                Spot::Register(register) => Outcome::Scalar(self.register_value(register)),
                Spot::Memory(_) => Outcome::Aggregate(target),
            },
        })
    }

    fn no_recursion(&self, function: FunctionId, span: Span) -> Result<()> {
        let names = |frames: &[Frame]| -> Vec<String> {
            frames
                .iter()
                .map(|frame| format!("`{}`", self.unit.functions[frame.function.index()].name))
                .collect()
        };
        let frames = &self.writer.frames;
        if let Some(start) = frames.iter().position(|frame| frame.function == function) {
            let mut cycle = names(&frames[start..]);
            cycle.push(format!("`{}`", self.unit.functions[function.index()].name));
            let message = format!("recursion is not supported: {}", cycle.join(" calls "));
            return self.error(span, message, "write it as a loop");
        }
        // A thread that runs `main` would create threads that run `main`, without end.
        if self.instances.first().is_some_and(|main| main.start.function == function) {
            let message = "recursion is not supported: a thread other than the first one calls `main`";
            return self.error(span, message, "put what both do into a function of its own");
        }
        if frames.len() >= MOST_CALLS {
            return self.error(
                span,
                format!("more than {MOST_CALLS} nested calls"),
                "make the chain of calls shorter",
            );
        }
        Ok(())
    }

    /// Begins the frame of a function. A function whose body has errors cannot be entered.
    pub(super) fn enter(&mut self, function: FunctionId, result: Option<Target>, span: Span) -> Result<()> {
        let callee = &self.unit.functions[function.index()];
        if let Some(error) = callee.errors.first() {
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
            passed: vec![if jumps { declared(&callee.body.statements) } else { Vec::new() }],
            around: if jumps { around_labels(callee) } else { FxHashMap::default() },
            repeated: Vec::new(),
            level: self.writer.level + 1,
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

    /// Elaborates the body of the current function, up to the label of `return`. A function with labels is elaborated until the facts at its labels
    /// reach a fixpoint.
    pub(super) fn body(&mut self, function: FunctionId) -> Result<()> {
        let unit = self.unit;
        let callee = &unit.functions[function.index()];
        let labels = self.graph.has_jumps(function);
        if labels {
            // Facts at labels are kept from attempt to attempt and may refer to any local variable, so all local variables are created before the
            // first attempt.
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
                // In a loop, control may jump over declarations of variables that still hold values from an earlier call of the function, so the
                // lifetimes of all variables begin here.
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

    /// Whether the facts assumed at each label hold for all jumps to that label. If not, weakens the assumptions.
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
        // The labels and the facts at the jumps to them are kept; the assumed facts are dropped.
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

fn parameters_fit(
    a: &Option<Vec<fencewright_c::typed::tree::Type>>,
    b: &Option<Vec<fencewright_c::typed::tree::Type>>,
) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.kind == b.kind),
        _ => true,
    }
}
