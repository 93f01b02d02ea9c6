//! Calls through function pointers whose values are not constants: a case distinction over the functions to which the pointer may point.
//!
//! Points-to analysis finds these functions. It needs the code of the whole program, whereas elaboration inlines calls as it reaches them. Therefore
//! an attempt to elaborate the program assumes a set of functions for each such call ([`Targets`]), and leaves out calls for which no set is known
//! yet. The code that results is then analysed. If the analysis finds a function that was not assumed, the sets grow and another attempt starts,
//! until a fixpoint is reached. So the assumptions of the last attempt hold for its own code.

use std::collections::BTreeSet;

use fencewright_c::ast::BinaryOp as Operator;
use fencewright_c::typed::tree::{Expr, FunctionId, FunctionType, Type, TypeKind};
use fencewright_code::core::{Core, Register, StmtKind, ThreadNumber, Value};
use fencewright_code::nodes::Nodes;
use fencewright_code::numbers::{self, ADDRESSES, Operand, compare};
use fencewright_code::points_to;
use fencewright_program::Span;
use fencewright_text::Stop;
use rustc_hash::{FxHashMap, FxHashSet};

use super::calls::{Argument, Outcome};
use super::objects::{Spot, Target};
use super::{Elaborator, Result};

/// Maximum number of possible targets of a call through a function pointer.
const MOST_FUNCTIONS: usize = 64;

/// The thread that executes a call, and the positions of the calls that lead to this call, outermost first.
pub(super) type Path = (ThreadNumber, Vec<Span>);

/// The functions to which calls through pointers are assumed to go.
#[derive(Clone, Debug, Default)]
pub(super) struct Targets {
    by_path: FxHashMap<Path, BTreeSet<u32>>,
    /// The functions assumed for all calls at one position in the text. Used for paths through recursive calls, because each attempt would otherwise
    /// reach only one more level of the recursion.
    by_text: FxHashMap<Span, BTreeSet<u32>>,
    /// Whether every call is assumed to go to any function of its type whose address is taken.
    any: bool,
}

impl Targets {
    /// From now on assumes that every call may go to any function of its type whose address is taken.
    pub(super) fn give_up(&mut self) {
        self.any = true;
    }

    fn add(&mut self, path: &Path, span: Span, functions: &BTreeSet<u32>) {
        self.by_path.entry(path.clone()).or_default().extend(functions);
        self.by_text.entry(span).or_default().extend(functions);
    }
}

/// A call through a pointer, as an attempt has elaborated it.
#[derive(Debug)]
pub(super) struct Dispatch {
    path: Path,
    span: Span,
    /// The register that holds the pointer.
    pointer: Register,
    /// The functions to which the call was assumed to go; `None` if the call was left out.
    assumed: Option<BTreeSet<u32>>,
}

/// Analyses the code of an attempt. If some call may go to a function that was not assumed for it, adds the functions found to `targets` and returns
/// true. If the analysis cannot tell where some call may go, gives up (see [`Targets::give_up`]) and returns true.
pub(super) fn found_more(
    targets: &mut Targets,
    dispatches: &[Dispatch],
    (core, nodes): (&Core, &Nodes),
    stop: &Stop<'_>,
) -> bool {
    if dispatches.is_empty() {
        return false;
    }
    let pointers: Vec<_> = dispatches.iter().map(|dispatch| (dispatch.path.0, dispatch.pointer)).collect();
    let Some(found) = points_to::functions(core, nodes, &pointers, stop) else {
        targets.give_up();
        return true;
    };
    let mut more = false;
    for (dispatch, functions) in dispatches.iter().zip(found) {
        let Some(functions) = functions else {
            targets.give_up();
            return true;
        };
        if dispatch.assumed.as_ref().is_none_or(|assumed| !functions.is_subset(assumed)) {
            targets.add(&dispatch.path, dispatch.span, &functions);
            more = true;
        }
    }
    more
}

/// Whether a function can be called through a pointer of another function type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    Same,
    /// The types differ, which C leaves undefined, but all values are passed in the same way, so the call works as expected.
    Alike,
    Different,
}

impl Elaborator<'_> {
    /// Whether calls were left out because no set of targets was assumed for them.
    pub(super) fn has_unseen_calls(&self) -> bool {
        self.dispatches.iter().any(|dispatch| dispatch.assumed.is_none())
    }

    /// The targets of calls through pointers that the next attempt assumes: those assumed so far, and those found in the code of this attempt, which
    /// has left out calls because their targets were unknown.
    pub(super) fn targets_so_far(mut self) -> Targets {
        let mut targets = std::mem::take(&mut self.premises.targets);
        let core = self.core();
        found_more(&mut targets, &self.dispatches, (&core, &self.nodes), self.stop);
        targets
    }

    /// Elaborates a call through a function pointer.
    pub(super) fn call_through(
        &mut self,
        pointer: &Expr,
        arguments: &[Expr],
        call: &Expr,
    ) -> Result<Outcome> {
        let target = self.value(pointer)?;
        let arguments = self.arguments(arguments)?;
        let TypeKind::Pointer(to) = &pointer.ty.kind else {
            return self.error(pointer.span, "this is not a pointer to a function", "");
        };
        let TypeKind::Function(ty) = &to.kind else {
            return self.error(pointer.span, "this is not a pointer to a function", "");
        };
        if let Value::Function(function) = target.value {
            return self.call_as(FunctionId(function), ty, arguments, call);
        }
        let target = self.kept_value(target, &pointer.ty, pointer.span)?;
        let functions = self.targets(&target, ty, pointer.span)?;
        let result = match call.ty.kind {
            TypeKind::Void => None,
            TypeKind::Record(_) => {
                let object = self.scratch("result", &call.ty, call.span);
                Some(Target::new(Spot::Memory(self.location(object, &[])), call.ty.clone()))
            }
            _ => Some(Target::new(Spot::Register(self.temporary("result", &call.ty)), call.ty.clone())),
        };
        if let Some(functions) = functions {
            let case = |this: &mut Self, function: FunctionId| {
                let outcome = this.call_as(function, ty, arguments.clone(), call)?;
                match (&result, outcome) {
                    (Some(target), Outcome::Scalar(operand)) => this.write(target, operand, call.span),
                    (Some(target), Outcome::Aggregate(from)) => this.copy(&from, target, call.span),
                    _ => Ok(()),
                }
            };
            self.distinguish(&functions, &target, &case, call.span)?;
        }
        Ok(self.outcome(result))
    }

    /// The functions that a call through `target` may reach. `target` is a register, or a constant that is not the address of a function; such a
    /// constant has no targets. `None` if this attempt has to leave the call out.
    pub(super) fn targets(
        &mut self,
        target: &Operand,
        ty: &FunctionType,
        span: Span,
    ) -> Result<Option<Vec<FunctionId>>> {
        let Value::Register(pointer) = target.value else { return Ok(Some(Vec::new())) };
        let (unit, graph) = (self.unit, self.graph);
        let functions: Vec<FunctionId> = if self.premises.targets.any {
            let fits =
                |function: &&FunctionId| fit(&unit.functions[function.index()].ty, ty) != Fit::Different;
            graph.kept().iter().filter(fits).copied().collect()
        } else {
            let path = self.path(span);
            let targets = &self.premises.targets;
            let known = targets.by_path.get(&path);
            let known = known.or_else(|| targets.by_text.get(&span.text()).filter(|_| self.is_recursive()));
            let assumed = known.cloned();
            let functions = assumed.iter().flatten().map(|function| FunctionId(*function)).collect();
            let left_out = assumed.is_none();
            if self.writer.reachable {
                self.dispatches.push(Dispatch { path, span: span.text(), pointer, assumed });
            }
            if left_out {
                return Ok(None);
            }
            functions
        };
        if functions.len() > MOST_FUNCTIONS {
            let message = format!(
                "this pointer may point to {} functions, more than {MOST_FUNCTIONS}",
                functions.len()
            );
            let help =
                "call the function by its name, or keep the pointer in a variable that does not change";
            return self.error(span, message, help);
        }
        Ok(Some(functions))
    }

    /// Emits a branch for each function to which the pointer may point. Any other value of the pointer is an error of the program.
    pub(super) fn distinguish(
        &mut self,
        functions: &[FunctionId],
        target: &Operand,
        case: &dyn Fn(&mut Self, FunctionId) -> Result<()>,
        span: Span,
    ) -> Result<()> {
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
            |this| case(this, function),
            |this| this.distinguish(rest, target, case, span),
        )
    }

    /// Calls a function through a pointer to the function type `ty`, which may differ from the type of the function.
    fn call_as(
        &mut self,
        function: FunctionId,
        ty: &FunctionType,
        mut arguments: Vec<Argument>,
        call: &Expr,
    ) -> Result<Outcome> {
        let unit = self.unit;
        let callee = &unit.functions[function.index()];
        match fit(&callee.ty, ty) {
            Fit::Same => {}
            Fit::Alike => {
                let message = format!(
                    "`{}` is called through a pointer to a function of another type, which is undefined in C",
                    callee.name
                );
                self.warn(call.span, message);
                for (argument, local) in arguments.iter_mut().zip(&callee.parameters) {
                    if let Argument::Scalar(operand) = argument {
                        *operand = converted(operand.clone(), &callee.locals[local.index()].ty);
                    }
                }
            }
            Fit::Different => {
                let text =
                    format!("a call of {} through a pointer to a function of another type", callee.name);
                self.emit(StmtKind::Check(Value::Number(0), text), call.span);
                self.writer.reachable = false;
                let result = self.result_of(function, call.span);
                return Ok(self.outcome(result));
            }
        }
        let outcome = self.called(function, arguments, call.span)?;
        Ok(match outcome {
            Outcome::Scalar(operand) => Outcome::Scalar(converted(operand, &call.ty)),
            other => other,
        })
    }

    /// The path of a call at this position of the current function.
    pub(super) fn path(&self, span: Span) -> Path {
        let thread = self.thread();
        let at = |call: usize| self.calls.get(call).map(|call| call.at.text());
        let mut path: Vec<Span> =
            self.writer.frames.iter().filter_map(|frame| at(frame.call.index()?)).collect();
        path.push(span.text());
        (thread, path)
    }

    /// Whether some function has more than one frame on the stack.
    fn is_recursive(&self) -> bool {
        let mut seen = FxHashSet::default();
        !self.writer.frames.iter().all(|frame| seen.insert(frame.function))
    }
}

/// Converts a value to the type of the variable that receives it, which may be another type of the same size.
fn converted(operand: Operand, ty: &Type) -> Operand {
    match ty.kind {
        TypeKind::Integer(arithmetic) => numbers::convert(arithmetic, operand),
        _ => operand,
    }
}

/// Whether a function of type `function` can be called through a pointer to type `pointer`.
fn fit(function: &FunctionType, pointer: &FunctionType) -> Fit {
    let result = alike(&function.result, &pointer.result);
    let parameters = match (&function.parameters, &pointer.parameters) {
        (Some(a), Some(b)) if a.len() != b.len() || function.variadic != pointer.variadic => Fit::Different,
        (Some(a), Some(b)) => a.iter().zip(b).map(|(a, b)| alike(a, b)).fold(Fit::Same, worse),
        _ => Fit::Same,
    };
    worse(result, parameters)
}

fn worse(a: Fit, b: Fit) -> Fit {
    match (a, b) {
        (Fit::Different, _) | (_, Fit::Different) => Fit::Different,
        (Fit::Alike, _) | (_, Fit::Alike) => Fit::Alike,
        _ => Fit::Same,
    }
}

/// Whether values of two types are passed in the same way: the types are the same, pointers, or integers of the same size.
fn alike(a: &Type, b: &Type) -> Fit {
    match (&a.kind, &b.kind) {
        (one, other) if one == other => Fit::Same,
        (TypeKind::Pointer(_), TypeKind::Pointer(_)) => Fit::Alike,
        (TypeKind::Integer(one), TypeKind::Integer(other))
            if one.greatest() - one.least() == other.greatest() - other.least() =>
        {
            Fit::Alike
        }
        _ => Fit::Different,
    }
}
