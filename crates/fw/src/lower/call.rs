//! Procedures: every call is inlined.
//!
//! A procedure sees the top level, its parameters and its own registers and constants, but nothing of its caller. A parameter that is never assigned
//! becomes an alias of its argument if the argument is a constant or a register and need not be wrapped to the parameter's type, because the
//! procedure cannot change such an argument during the call. Every other parameter is a register that is assigned before the first step of the body.
//! Registers of the procedure that its body may read before writing them are initialised at the same point.

use std::collections::{HashMap, HashSet};

use fencewright_kit::accesses::{for_each_read, written_register};
use fencewright_program::{Action, Expr, Init, Op, Range, RegisterId, Span, UnaryOp};
use fencewright_text::Diagnostic;

use super::array::Binding;
use super::expression::{Before, Pure};
use super::graph::{Gap, Node};
use super::nearest;
use super::scope::LocalConstants;
use super::thread::{MOST_NODES, TOO_LARGE, ThreadLowering};
use crate::ast::{self, Block, Name, Parameter, Procedure, StatementKind};
use crate::visit::for_each_statement;
use crate::{clip, print_expression};

type Result<T> = std::result::Result<T, Diagnostic>;

/// The first register of each variable of the thread and its procedures, by name, indices, range and type.
pub type FrameRegisters = HashMap<(String, Option<Range>, Option<Range>, Option<UnaryOp>), RegisterId>;

/// The scope of the text that is being lowered: the meaning of names, and the targets of jumps.
#[derive(Default)]
pub struct Frame<'a> {
    pub names: HashMap<String, Binding>,
    pub labels: Vec<HashMap<String, Node>>,
    /// The targets of `break` and `continue` in each enclosing loop, the innermost loop last.
    pub loops: Vec<(Node, Node)>,
    /// The nesting depth of the current block; registers are declared at depth 1.
    pub depth: usize,
    /// The procedure, if this is the scope of a procedure.
    inlined: Option<Inlined<'a>>,
}

/// A procedure that is being inlined.
struct Inlined<'a> {
    procedure: &'a Procedure,
    /// The target of `return`.
    exit: Node,
    /// Whether the procedure has a result.
    returns: bool,
    /// The register for the result; `None` if the caller does not use it.
    result: Option<RegisterId>,
}

impl<'a> ThreadLowering<'a, '_> {
    /// The procedure that a call names, and the lowered arguments.
    pub fn call_arguments(
        &mut self,
        name: &Name,
        arguments: &'a [ast::Expr],
        before: &mut Vec<Before<'a>>,
    ) -> Result<(&'a Procedure, Vec<Argument>)> {
        let Some(&procedure) = self.names.procedures.get(name.text.as_str()) else {
            let error = Diagnostic::new(name.span, format!("there is no procedure `{}`", name.text));
            let known = self.names.procedures.keys().copied();
            return Err(match nearest(&name.text, known) {
                Some(other) => error.help(format!("did you mean `{other}`?")),
                None => error.help(format!("declare it before the threads: `fn {}() {{ ... }}`", name.text)),
            });
        };
        let (wanted, given) = (procedure.parameters.len(), arguments.len());
        if wanted != given {
            let plural = if wanted == 1 { "" } else { "s" };
            let message = format!("`{}` takes {wanted} argument{plural}, and {given} are given", name.text);
            return Err(Diagnostic::new(name.span, message));
        }
        let flattened = arguments.iter().map(|e| {
            let value = self.flatten(e, before)?;
            let shown = match value.constant() {
                Some(value) => value.to_string(),
                None => clip(&print_expression(e)),
            };
            Ok(Argument { value, shown })
        });
        Ok((procedure, flattened.collect::<Result<_>>()?))
    }

    /// Inlines a procedure between `at` and `next`.
    pub fn inline(
        &mut self,
        procedure: &'a Procedure,
        arguments: Vec<Argument>,
        result: Option<RegisterId>,
        span: Span,
        at: Option<Node>,
        next: Node,
    ) -> Result<Node> {
        let name = procedure.name.text.as_str();
        self.check_recursion(name, span)?;
        self.copies += 1;
        if self.copies > MOST_NODES {
            self.given_up = true;
            return Err(Diagnostic::new(span, TOO_LARGE));
        }
        let returns = returns_value(&procedure.body);
        if result.is_some() && !returns {
            let message = format!("`{name}` gives no result");
            return Err(Diagnostic::new(span, message).help("it has no `return` with a value"));
        }
        let shown: Vec<&str> = arguments.iter().map(|a| a.shown.as_str()).collect();
        let call = self.notes.call(format!("{name}({})", shown.join(", ")), self.graph.called(span));
        let outer_call = std::mem::replace(&mut self.graph.call, call);
        let outer_constants = self.constants.exchange_local(LocalConstants::default());
        let inlined = Inlined { procedure, exit: next, returns, result };
        let frame = Frame { inlined: Some(inlined), ..Frame::default() };
        let outer_frame = std::mem::replace(&mut self.frame, frame);
        self.active.push(name);
        let copy = self.copy(procedure, arguments, returns, span, at, next);
        self.active.pop();
        self.frame = outer_frame;
        self.constants.exchange_local(outer_constants);
        self.graph.call = outer_call;
        copy
    }

    fn copy(
        &mut self,
        procedure: &'a Procedure,
        arguments: Vec<Argument>,
        returns: bool,
        span: Span,
        at: Option<Node>,
        next: Node,
    ) -> Result<Node> {
        let (nodes, edges) = (self.graph.len(), self.graph.edges().len());
        let mut starts = self.parameters(procedure, arguments)?;
        let declared = self.declare_registers(&procedure.body);
        let labels = self.collect_labels(&procedure.body);
        self.frame.labels.push(labels);
        // If the procedure has a result, the end of its body is a separate location, which must be unreachable.
        let end = if returns { self.graph.node() } else { next };
        let entry = self.block(&procedure.body, None, end);
        if returns && self.leads_to(end, entry, edges) && self.diagnostics.is_empty() {
            let name = &procedure.name;
            let message = format!("`{}` can come to its end without a result", name.text);
            return Err(
                Diagnostic::new(name.span, message).help("put `return ...;` before the closing brace")
            );
        }
        let registers = declared.iter().map(|(register, _)| *register).collect();
        let needed = self.read_first(entry, edges, &registers);
        starts.extend(declared.into_iter().filter(|(r, _)| needed.contains(r)).map(|(r, init)| match init {
            Init::Value(value) => Op::Assign(r, Expr::Const(value)),
            Init::Any(range) => Op::Havoc(r, range),
        }));
        if starts.is_empty() {
            // If the entry of the body is a location that existed before the call, the body takes no step, and the call is a jump to this location.
            // Otherwise the entry is merged with `at`.
            let is_new = self.graph.find(entry).index() >= nodes;
            return Ok(if is_new { self.graph.join(at, entry, span) } else { self.jump(at, entry, span) });
        }
        let mut node = entry;
        for (n, op) in starts.into_iter().enumerate().rev() {
            let at = if n == 0 { at } else { None };
            node = self.graph.arc(at, node, Action::Op(op), span);
        }
        Ok(node)
    }

    /// Binds the parameters to the arguments; returns the operations that have to precede the body.
    fn parameters(&mut self, procedure: &'a Procedure, arguments: Vec<Argument>) -> Result<Vec<Op>> {
        let mut assigned = HashSet::new();
        assigned_names(&procedure.body, &mut assigned);
        let mut starts = Vec::new();
        for (Parameter { name, wraps }, Argument { value, .. }) in procedure.parameters.iter().zip(arguments)
        {
            self.check_fresh(name)?;
            let value = self.fitted(value, *wraps, &[]);
            let keeps = !assigned.contains(name.text.as_str());
            let binding = match value {
                Expr::Const(value) if keeps => {
                    self.constants.push(&name.text, value);
                    continue;
                }
                Expr::Leaf(register) if keeps => Binding::Register(register),
                value => {
                    let start = Init::Value(0);
                    let register = self.frame_register(&name.text, None, None, *wraps, &[start]);
                    starts.push(Op::Assign(register, value));
                    Binding::Register(register)
                }
            };
            self.frame.names.insert(name.text.clone(), binding);
        }
        Ok(starts)
    }

    fn check_recursion(&self, name: &str, span: Span) -> Result<()> {
        let Some(first) = self.active.iter().position(|active| *active == name) else { return Ok(()) };
        let cycle: Vec<String> = self.active[first..].iter().map(|active| format!("`{active}`")).collect();
        let message = format!("a procedure cannot call itself: {} calls `{name}`", cycle.join(" calls "));
        Err(Diagnostic::new(span, message).help("calls are copies of the text; use a loop"))
    }

    /// `return;` and `return e;`
    pub fn return_from(
        &mut self,
        value: Option<&'a ast::Expr>,
        at: Option<Node>,
        span: Span,
    ) -> Result<Node> {
        let Some(&Inlined { procedure, exit, returns, result }) = self.frame.inlined.as_ref() else {
            let error = Diagnostic::new(span, "`return` stands in a procedure");
            return Err(error.help("`stop;` ends the thread"));
        };
        match (value, result) {
            (None, _) if returns => {
                let message =
                    format!("`{}` gives a result elsewhere: this needs one, too", procedure.name.text);
                Err(Diagnostic::new(span, message))
            }
            (None, _) => Ok(self.jump(at, exit, span)),
            (Some(value), Some(result)) => self.assign_register(result, value, Gap { at, next: exit, span }),
            (Some(value), None) => {
                // The result is not used, but its computation still takes place.
                let result = self.temporary();
                self.assign_register(result, value, Gap { at, next: exit, span })
            }
        }
    }

    /// Whether control may reach `end`, that is, whether `end` is `entry` or the target of an edge of the body. The edges of the body are those with
    /// number `first` or greater; unreachable edges count too.
    fn leads_to(&self, end: Node, entry: Node, first: usize) -> bool {
        let end = self.graph.find(end);
        self.graph.find(entry) == end
            || self.graph.edges()[first..].iter().any(|(edge, ())| self.graph.find(edge.to) == end)
    }

    /// The registers among `registers` that some path from `entry` reads before writing them, over the edges with number `first` or greater.
    fn read_first(&self, entry: Node, first: usize, registers: &HashSet<RegisterId>) -> HashSet<RegisterId> {
        if registers.is_empty() {
            return HashSet::new();
        }
        let edges = &self.graph.edges()[first..];
        let mut live: HashMap<Node, HashSet<RegisterId>> = HashMap::new();
        let mut incoming: HashMap<Node, Vec<usize>> = HashMap::new();
        for (n, (edge, ())) in edges.iter().enumerate() {
            incoming.entry(self.graph.find(edge.to)).or_default().push(n);
        }
        let mut waiting: Vec<usize> = (0..edges.len()).collect();
        while let Some(n) = waiting.pop() {
            let (edge, ()) = &edges[n];
            let mut before = live.get(&self.graph.find(edge.to)).cloned().unwrap_or_default();
            for op in edge.action.ops().iter().rev() {
                written_register(op).map(|written| before.remove(&written));
                for_each_read(op, &mut |read| {
                    before.extend(registers.get(&read));
                });
            }
            let from = self.graph.find(edge.from);
            let known = live.entry(from).or_default();
            let size = known.len();
            known.extend(before);
            if known.len() > size {
                waiting.extend(incoming.get(&from).into_iter().flatten());
            }
        }
        live.remove(&self.graph.find(entry)).unwrap_or_default()
    }
}

/// An argument of a call.
pub struct Argument {
    value: Pure,
    /// The argument as messages show it: its value if it is constant, otherwise its source text, shortened.
    shown: String,
}

/// Whether a `return` in the body has a value.
fn returns_value(block: &Block) -> bool {
    let mut found = false;
    for_each_statement(block, &mut |kind| found |= matches!(kind, StatementKind::Return(Some(_))));
    found
}

/// The names that are assigned in the body.
fn assigned_names<'a>(block: &'a Block, names: &mut HashSet<&'a str>) {
    for_each_statement(block, &mut |kind| {
        if let StatementKind::Assign(place, _) | StatementKind::Havoc(place, _) = kind {
            names.insert(&place.name.text);
        }
    });
}
