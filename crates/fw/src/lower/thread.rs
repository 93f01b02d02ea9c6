//! Lowers the statements of a thread to its control-flow graph.
//!
//! Lowering works backwards, as for expressions: each statement gets the location to continue at (`next`) and, if its location exists already (a
//! label, a loop head, a choice), the location to start at (`at`); it returns the location where it starts.

use std::collections::HashMap;

use fencewright_program::{
    Action, BinaryOp, Edge, Expr, Fault, Op, Program, Range, Register, RegisterId, Span, Thread, UnaryOp,
    Variable, VariableId,
};
use fencewright_text::Diagnostic;
use fencewright_text::diagnostic::MAX_DIAGNOSTICS;

use super::array::{Binding, Target};
use super::call::{Frame, FrameRegisters};
use super::effort::Effort;
use super::expression::{Before, Pure};
use super::graph::{ControlFlow, Node};
use super::scope::Constants;
use super::wait::Wait;
use super::{Names, Notes, nearest};
use crate::ast::{self, Block, Name, Place, Statement, StatementKind};
use crate::lower::Awaits;

type Result<T> = std::result::Result<T, Diagnostic>;

/// Maximum number of locations of one thread.
pub const MOST_NODES: usize = 1 << 19;
pub const TOO_LARGE: &str =
    "this thread is too large when its `for` loops are unrolled and its calls are inlined";
/// Maximum nesting depth of blocks, including those of inlined procedures; each level takes some of the stack.
const MOST_NESTED: usize = 200;
/// Maximum number of paths through one atomic block.
const MOST_PATHS: usize = 1 << 10;

/// The context of a statement: separate steps, or a part of an atomic one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Within {
    Steps,
    /// `snapshot { ... }`, which cannot store.
    Snapshot,
    /// `atomic { ... }`, which must not contain read-modify-write operations.
    Atomic,
    /// The condition of an `await`, evaluated in one step.
    Evaluation,
}

/// The context in which a thread is lowered.
pub struct Surroundings<'a, 's> {
    pub program: &'a Program,
    pub names: &'a Names<'a>,
    pub notes: &'a mut Notes,
    pub constants: &'a mut Constants,
    pub effort: &'a mut Effort<'s>,
    pub awaits: Awaits,
}

/// The lowering of one thread instance.
pub struct ThreadLowering<'a, 's> {
    program: &'a Program,
    pub names: &'a Names<'a>,
    pub notes: &'a mut Notes,
    pub constants: &'a mut Constants,
    pub effort: &'a mut Effort<'s>,
    pub registers: Vec<Register>,
    temporaries: Vec<RegisterId>,
    used_temporaries: usize,
    pub graph: ControlFlow,
    /// The thread, or the procedure that is being inlined.
    pub frame: Frame<'a>,
    /// The procedures that are being inlined, innermost last.
    pub active: Vec<&'a str>,
    pub frame_registers: FrameRegisters,
    /// The types of registers.
    pub types: HashMap<RegisterId, UnaryOp>,
    /// The number of copies of `for` bodies and procedures made so far.
    pub copies: usize,
    /// The number of blocks around the current one, including those of callers.
    nesting: usize,
    end: Node,
    pub within: Within,
    pub awaits: Awaits,
    pub waits: Vec<Wait>,
    pub diagnostics: Vec<Diagnostic>,
    /// Whether lowering has been aborted.
    pub given_up: bool,
}

/// Lowers one instance of a thread.
pub fn lower<'a>(
    surroundings: Surroundings<'a, '_>,
    thread: &'a ast::Thread,
    name: String,
    family: Option<(String, i64)>,
) -> std::result::Result<Thread, Vec<Diagnostic>> {
    let Surroundings { program, names, notes, constants, effort, awaits } = surroundings;
    let mut graph = ControlFlow::new(name, family);
    let end = graph.node();
    let mut lowering = ThreadLowering {
        program,
        names,
        notes,
        constants,
        effort,
        registers: Vec::new(),
        temporaries: Vec::new(),
        used_temporaries: 0,
        graph,
        frame: Frame::default(),
        active: Vec::new(),
        frame_registers: FrameRegisters::default(),
        types: HashMap::new(),
        copies: 0,
        nesting: 0,
        end,
        within: Within::Steps,
        awaits,
        waits: Vec::new(),
        diagnostics: Vec::new(),
        given_up: false,
    };
    lowering.declare_registers(&thread.body);
    let labels = lowering.collect_labels(&thread.body);
    lowering.frame.labels.push(labels);
    let entry = lowering.block(&thread.body, None, end);
    if !lowering.diagnostics.is_empty() {
        return Err(lowering.diagnostics);
    }
    lowering.complete_waits();
    Ok(lowering.graph.finish(lowering.registers, entry, end))
}

impl<'a> ThreadLowering<'a, '_> {
    /// The register, or array of registers, with this name.
    pub fn local(&self, name: &str) -> Option<Binding> {
        self.frame.names.get(name).copied()
    }

    /// The number of the thread, counted from 1, as stored in mutexes.
    fn number(&self) -> i64 {
        self.program.threads.len() as i64 + 1
    }

    pub fn shared(&self, name: &str) -> Option<VariableId> {
        self.names.shared.get(name).copied()
    }

    pub fn variable(&self, id: VariableId) -> &'a Variable {
        &self.program.variables[id.index()]
    }

    /// A temporary register, which is in use until the end of the current statement.
    pub fn temporary(&mut self) -> RegisterId {
        if self.used_temporaries == self.temporaries.len() {
            let id = RegisterId(self.registers.len() as u32);
            let name = format!("%{}", self.temporaries.len());
            self.registers.push(Register { name, init: fencewright_program::Init::Value(0), range: None });
            self.temporaries.push(id);
        }
        self.used_temporaries += 1;
        self.temporaries[self.used_temporaries - 1]
    }

    pub fn mark(&self) -> usize {
        self.used_temporaries
    }

    pub fn release(&mut self, mark: usize) {
        self.used_temporaries = mark;
    }

    pub fn not_an_array(&self, name: &Name) -> Diagnostic {
        Diagnostic::new(name.span, format!("`{}` is not an array", name.text))
    }

    pub fn unknown_name(&self, name: &Name) -> Diagnostic {
        let known = self.constants.names().chain(self.frame.names.keys().map(String::as_str));
        let known = known.chain(self.names.shared.keys().map(String::as_str));
        let error = Diagnostic::new(name.span, format!("unknown name `{}`", name.text));
        match nearest(&name.text, known) {
            Some(other) => error.help(format!("did you mean `{other}`?")),
            None => error
                .help(format!("declare it: `var {0};` in the thread or `shared {0};` before it", name.text)),
        }
    }

    /// Lowers a block. Errors are collected, so that each statement can report its own.
    pub fn block(&mut self, block: &'a Block, at: Option<Node>, next: Node) -> Node {
        if self.gives_up(block.statements.len(), block.span) {
            return next;
        }
        if self.nesting == MOST_NESTED {
            self.diagnostics.push(Diagnostic::new(block.span, "calls and blocks are nested too deeply"));
            self.given_up = true;
            return next;
        }
        self.nesting += 1;
        self.frame.depth += 1;
        let mut scoped = Vec::new();
        for statement in &block.statements {
            let StatementKind::Const(c) = &statement.kind else { continue };
            let value = self.check_fresh(&c.name).and_then(|()| self.constants.eval(&c.value));
            match value {
                Ok(value) => {
                    self.constants.push(&c.name.text, value);
                    scoped.push(c.name.text.as_str());
                }
                Err(error) => self.diagnostics.push(error),
            }
        }
        let first = block.statements.iter().position(|s| !is_declaration(s));
        let mut node = next;
        for (n, statement) in block.statements.iter().enumerate().rev() {
            let at = if Some(n) == first { at } else { None };
            node = self.statement(statement, at, node);
        }
        if first.is_none() {
            node = self.graph.join(at, node, block.span);
        }
        for name in scoped {
            self.constants.pop(name);
        }
        self.frame.depth -= 1;
        self.nesting -= 1;
        node
    }

    fn statement(&mut self, statement: &'a Statement, at: Option<Node>, next: Node) -> Node {
        if self.gives_up(1, statement.span) {
            return next;
        }
        let at = match statement.labels.first() {
            None => at,
            Some(label) => {
                let node = self.frame.labels.iter().rev().find_map(|layer| layer.get(&label.text)).copied();
                match (node, at) {
                    (Some(node), Some(at)) if self.graph.find(node) != self.graph.find(at) => {
                        self.graph.join(Some(node), at, statement.span);
                        Some(at)
                    }
                    (Some(node), _) => Some(node),
                    (None, at) => at,
                }
            }
        };
        let mark = self.mark();
        let result = self.lower_statement(statement, at, next);
        self.release(mark);
        result.unwrap_or_else(|error| {
            self.diagnostics.push(error);
            at.unwrap_or(next)
        })
    }

    /// Whether lowering has to be aborted: with this many more parts the program is too large, or there are too many errors.
    pub fn gives_up(&mut self, parts: usize, span: Span) -> bool {
        if self.given_up {
            return true;
        }
        let too_large = match self.graph.len() > MOST_NODES {
            true => Err(Diagnostic::new(span, TOO_LARGE)),
            false => self.effort.spend(parts, span),
        };
        self.given_up = too_large.is_err() || self.diagnostics.len() >= MAX_DIAGNOSTICS;
        self.diagnostics.extend(too_large.err());
        self.given_up
    }

    fn lower_statement(&mut self, statement: &'a Statement, at: Option<Node>, next: Node) -> Result<Node> {
        let span = statement.span;
        if self.within != Within::Steps {
            self.check_atomic(statement)?;
        }
        let simple = |this: &mut Self, action| Ok(this.graph.arc(at, next, action, span));
        match &statement.kind {
            StatementKind::Empty => Ok(self.graph.join(at, next, span)),
            StatementKind::Const(_) => Ok(self.graph.join(at, next, span)),
            StatementKind::Var(_) => {
                // Registers are declared once, at the top level of a thread or procedure; elsewhere a declaration would suggest a fresh register per
                // execution.
                match self.frame.depth {
                    1 => Ok(self.graph.join(at, next, span)),
                    _ => Err(Diagnostic::new(
                        span,
                        "registers are declared at the top level of a thread or procedure",
                    )
                    .help("move the declaration out of the block")),
                }
            }
            StatementKind::Assign(place, value) => self.assign(place, value, at, next, span),
            StatementKind::Havoc(place, range) => self.havoc(place, range.as_ref(), at, next, span),
            StatementKind::Expr(ast::Expr { kind: ast::ExprKind::Call(name, arguments), .. }) => {
                let mut before = Vec::new();
                let (procedure, arguments) = self.call_arguments(name, arguments, &mut before)?;
                self.precede(before, at, |this, at| this.inline(procedure, arguments, None, span, at, next))
            }
            StatementKind::Expr(e) => {
                let mut before = Vec::new();
                self.flatten(e, &mut before)?;
                if !matches!(
                    e.kind,
                    ast::ExprKind::Cas(..) | ast::ExprKind::Swap(..) | ast::ExprKind::FetchAdd(..)
                ) {
                    return Err(Diagnostic::new(span, "this expression has no effect")
                        .help("write `r = ...;` to keep its value, or `assume ...;` to wait for it"));
                }
                self.precede(before, at, |_, _| Ok(next))
            }
            StatementKind::Skip => simple(self, Action::Op(Op::Skip)),
            StatementKind::Fence => simple(self, Action::Fence),
            StatementKind::StoreFence => simple(self, Action::StoreFence),
            StatementKind::Lock(None) => simple(self, Action::Lock),
            StatementKind::Unlock(None) => simple(self, Action::Unlock),
            StatementKind::Lock(Some(mutex)) => self.mutex(mutex, true, at, next, span),
            StatementKind::Unlock(Some(mutex)) => self.mutex(mutex, false, at, next, span),
            StatementKind::Atomic(body) => self.atomic(body, true, at, next, span),
            StatementKind::Snapshot(body) => self.atomic(body, false, at, next, span),
            StatementKind::Assume(e) => self.condition(e, at, Some(next), None),
            StatementKind::Assert(e, text) => {
                let mut before = Vec::new();
                let pure = self.flatten(e, &mut before)?;
                let fault = Fault::Assertion(text.as_ref().map(|text| self.notes.text(text)));
                self.precede(before, at, |this, at| {
                    Ok(this.graph.arc(at, next, Action::Op(Op::Assert(pure, fault)), span))
                })
            }
            StatementKind::Await(e) => {
                if !self.has_access(e) {
                    return self.condition(e, at, Some(next), None);
                }
                self.wait(e, at, next, span)
            }
            StatementKind::If(e, then, otherwise) => {
                let then = self.block(then, None, next);
                let otherwise = match otherwise {
                    Some(block) => self.block(block, None, next),
                    None => next,
                };
                self.condition(e, at, Some(then), Some(otherwise))
            }
            StatementKind::While(e, body) => {
                let head = at.unwrap_or_else(|| self.graph.node());
                self.frame.loops.push((next, head));
                let body = self.block(body, None, head);
                self.frame.loops.pop();
                self.condition(e, Some(head), Some(body), Some(next))
            }
            StatementKind::Loop(body) => {
                let head = at.unwrap_or_else(|| self.graph.node());
                self.frame.loops.push((next, head));
                self.block(body, Some(head), head);
                self.frame.loops.pop();
                Ok(head)
            }
            StatementKind::For(name, range, body) => self.unrolled(name, range, body, at, next),
            StatementKind::Break | StatementKind::Continue => {
                let Some(&(after, head)) = self.frame.loops.last() else {
                    return Err(Diagnostic::new(span, "this stands outside every loop"));
                };
                let target = if statement.kind == StatementKind::Break { after } else { head };
                Ok(self.jump(at, target, span))
            }
            StatementKind::Choose(blocks) => {
                let from = at.unwrap_or_else(|| self.graph.node());
                for block in blocks {
                    match starts_with_own_place(block) {
                        true => {
                            let entry = self.block(block, None, next);
                            self.graph.arc(Some(from), entry, Action::Op(Op::Skip), block.span);
                        }
                        false => {
                            self.block(block, Some(from), next);
                        }
                    }
                }
                Ok(from)
            }
            StatementKind::Goto(label) => {
                let labels = &self.frame.labels;
                let target = labels.iter().rev().find_map(|layer| layer.get(&label.text)).copied();
                match target {
                    Some(target) => Ok(self.jump(at, target, span)),
                    None => {
                        let error = Diagnostic::new(label.span, format!("unknown label `{}`", label.text));
                        let known = labels.iter().flat_map(|layer| layer.keys().map(String::as_str));
                        Err(match nearest(&label.text, known) {
                            Some(other) => error.help(format!("did you mean `{other}`?")),
                            None => error,
                        })
                    }
                }
            }
            StatementKind::Stop => Ok(self.jump(at, self.end, span)),
            StatementKind::Return(value) => self.return_from(value.as_ref(), at, span),
            StatementKind::Block(block) => Ok(self.block(block, at, next)),
            StatementKind::Steps(steps) => {
                // The statements belong to the enclosing block.
                self.frame.depth -= 1;
                let start = self.block(steps, at, next);
                self.frame.depth += 1;
                Ok(start)
            }
        }
    }

    fn assign(
        &mut self,
        place: &'a Place,
        value: &'a ast::Expr,
        at: Option<Node>,
        next: Node,
        span: Span,
    ) -> Result<Node> {
        let mut before = Vec::new();
        match self.local(&place.name.text) {
            Some(binding) => {
                let target = self.target(place, binding, &mut before)?;
                if let Target::Register(register) = target {
                    return self.assign_register(register, value, at, next, span);
                }
                let value = self.flatten(value, &mut before)?;
                let wraps = self.types.get(&target.first()).copied();
                let value = self.fitted(value, wraps, &before);
                self.write_element(target, before, at, next, span, |r| Op::Assign(r, value.clone()))
            }
            None => {
                if self.constants.get(&place.name.text).is_some() {
                    return Err(Diagnostic::new(
                        place.name.span,
                        format!("`{}` is a constant", place.name.text),
                    ));
                }
                let address = self.address(place, &mut before)?;
                let value = self.flatten(value, &mut before)?;
                let value = self.fitted(value, self.type_of(&address), &before);
                self.store_allowed(span)?;
                self.precede(before, at, |this, at| {
                    Ok(this.graph.arc(at, next, Action::Op(Op::Store(address, value)), span))
                })
            }
        }
    }

    /// `r = value`, without a temporary if the value is a single load, read-modify-write operation or call.
    pub fn assign_register(
        &mut self,
        register: RegisterId,
        value: &'a ast::Expr,
        at: Option<Node>,
        next: Node,
        span: Span,
    ) -> Result<Node> {
        let mut before = Vec::new();
        let pure = self.flatten(value, &mut before)?;
        let wraps = self.types.get(&register).copied();
        let plain = self.registers[register.index()].range.is_none() && wraps.is_none();
        let fitted = self.fitted(pure.clone(), wraps, &before);
        match (&pure, before.last_mut()) {
            (Expr::Leaf(r), Some(Before::Load(target, ..))) if r == target && fitted == pure => {
                *target = register;
                self.precede(before, at, |_, _| Ok(next))
            }
            // The result is wrapped to its type where it is computed.
            (Expr::Leaf(r), Some(Before::Call(target, ..))) if r == target => {
                *target = register;
                self.precede(before, at, |_, _| Ok(next))
            }
            (Expr::Leaf(r), Some(Before::Rmw(target, ..))) if r == target && plain => {
                *target = register;
                self.precede(before, at, |_, _| Ok(next))
            }
            _ => self.precede(before, at, |this, at| {
                Ok(this.graph.arc(at, next, Action::Op(Op::Assign(register, fitted)), span))
            }),
        }
    }

    fn havoc(
        &mut self,
        place: &'a Place,
        range: Option<&ast::RangeExpr>,
        at: Option<Node>,
        next: Node,
        span: Span,
    ) -> Result<Node> {
        let range = range.map(|r| self.constants.nonempty_range(r)).transpose()?;
        let mut before = Vec::new();
        if let Some(binding) = self.local(&place.name.text) {
            let target = self.target(place, binding, &mut before)?;
            let wraps = self.types.get(&target.first()).copied();
            let range = self.fitted_range(range, wraps, span)?;
            let range = range.or(self.registers[target.first().index()].range);
            return self.write_element(target, before, at, next, span, |r| Op::Havoc(r, range));
        }
        let address = self.address(place, &mut before)?;
        let range = self.fitted_range(range, self.type_of(&address), span)?;
        let range: Option<Range> = range.or(self.variable(address.variable).range);
        self.store_allowed(span)?;
        let value = self.temporary();
        self.precede(before, at, |this, at| {
            let store = this.graph.arc(None, next, Action::Op(Op::Store(address, Pure::Leaf(value))), span);
            Ok(this.graph.arc(at, store, Action::Op(Op::Havoc(value, range)), span))
        })
    }

    /// `lock m` and `unlock m`: an atomic step on a memory cell that holds the number of the thread, or 0.
    fn mutex(
        &mut self,
        mutex: &'a Place,
        takes: bool,
        at: Option<Node>,
        next: Node,
        span: Span,
    ) -> Result<Node> {
        let mut before = Vec::new();
        let address = self.mutex_address(mutex, &mut before)?;
        let (holder, own) = (self.temporary(), self.number());
        let is = |value| Expr::binary(BinaryOp::Eq, Expr::Leaf(holder), Expr::Const(value));
        let (condition, value) = match takes {
            true => (Op::Assume(is(0)), own),
            false => (Op::Assert(is(own), Fault::Mutex), 0),
        };
        let load = Op::Load(holder, address.clone());
        let ops = vec![load, condition, Op::Store(address, Expr::Const(value))];
        self.precede(before, at, |this, at| {
            Ok(this.graph.arc(at, next, Action::Atomic { ops, drains: true }, span))
        })
    }

    fn store_allowed(&self, span: Span) -> Result<()> {
        match self.within == Within::Snapshot {
            true => {
                Err(Diagnostic::new(span, "a `snapshot` block cannot store").help("use `atomic { ... }`"))
            }
            false => Ok(()),
        }
    }

    fn unrolled(
        &mut self,
        name: &'a Name,
        range: &ast::RangeExpr,
        body: &'a Block,
        at: Option<Node>,
        next: Node,
    ) -> Result<Node> {
        self.check_fresh(name)?;
        let values = self.constants.range(range)?;
        if values.size() > MOST_NODES as u64 {
            return Err(Diagnostic::new(
                range.span,
                format!("a `for` loop is unrolled; {} copies are too many", values.size()),
            ));
        }
        if values.size() == 0 {
            return Ok(self.graph.join(at, next, range.span));
        }
        let mut node = next;
        for value in (values.low..=values.high).rev() {
            self.copies += 1;
            if self.copies > MOST_NODES {
                return Err(Diagnostic::new(range.span, TOO_LARGE));
            }
            if self.gives_up(body.statements.len(), range.span) {
                return Ok(node);
            }
            let at = if value == values.low { at } else { None };
            self.constants.push(&name.text, value);
            let labels = self.collect_labels(body);
            self.frame.labels.push(labels);
            // `break` leaves the whole loop, `continue` proceeds to the next copy.
            self.frame.loops.push((next, node));
            node = self.block(body, at, node);
            self.frame.loops.pop();
            self.frame.labels.pop();
            self.constants.pop(&name.text);
        }
        Ok(node)
    }

    /// An atomic step: every path through the block becomes one edge.
    fn atomic(
        &mut self,
        body: &'a Block,
        drains: bool,
        at: Option<Node>,
        next: Node,
        span: Span,
    ) -> Result<Node> {
        let within = if drains { Within::Atomic } else { Within::Snapshot };
        let ways = self.ways(within, span, |this, exit| Ok(this.block(body, None, exit)))?;
        let from = at.unwrap_or_else(|| self.graph.node());
        for ops in ways {
            self.graph.arc(Some(from), next, Action::Atomic { ops, drains }, span);
        }
        Ok(from)
    }

    /// The paths through an atomic block, in the order of the text. It is lowered to a separate graph, up to a given exit.
    pub fn ways(
        &mut self,
        within: Within,
        span: Span,
        lower: impl FnOnce(&mut Self, Node) -> Result<Node>,
    ) -> Result<Vec<Vec<Op>>> {
        let outer_edges = self.graph.exchange_edges(Vec::new());
        self.within = within;
        let exit = self.graph.node();
        let entry = lower(self, exit);
        self.within = Within::Steps;
        let edges = self.graph.exchange_edges(outer_edges);
        let entry = entry?;
        let mut leaving: HashMap<Node, Vec<usize>> = HashMap::new();
        for (n, (edge, ())) in edges.iter().enumerate() {
            leaving.entry(self.graph.find(edge.from)).or_default().push(n);
        }
        let mut paths: Vec<(Node, Vec<Op>)> = vec![(self.graph.find(entry), Vec::new())];
        let mut ways = Vec::new();
        // Depth first with the first branch on top of the stack, so that edges keep the order of the text.
        while let Some((node, ops)) = paths.pop() {
            if node == self.graph.find(exit) {
                ways.push(ops);
            } else {
                let extended = |mut ops: Vec<Op>, edge: &Edge, graph: &ControlFlow| {
                    ops.extend(edge.action.ops().iter().filter(|op| **op != Op::Skip).cloned());
                    (graph.find(edge.to), ops)
                };
                let mut out = leaving.get(&node).into_iter().flatten().rev().map(|&n| &edges[n].0);
                if let Some(last) = out.next() {
                    for edge in out.by_ref() {
                        self.effort.spend(1 + ops.len(), span)?;
                        paths.push(extended(ops.clone(), edge, &self.graph));
                    }
                    self.effort.spend(1, span)?;
                    let position = paths.len() + 1 - leaving[&node].len();
                    paths.insert(position, extended(ops, last, &self.graph));
                }
            }
            if paths.len() + ways.len() > MOST_PATHS {
                return Err(Diagnostic::new(
                    span,
                    format!("more than {MOST_PATHS} ways lead through this block"),
                ));
            }
        }
        Ok(ways)
    }

    fn check_atomic(&self, statement: &Statement) -> Result<()> {
        let what = match &statement.kind {
            StatementKind::Fence | StatementKind::StoreFence => "a fence",
            StatementKind::Lock(None) | StatementKind::Unlock(None) => "the lock",
            StatementKind::Lock(Some(_)) | StatementKind::Unlock(Some(_)) => "a mutex",
            StatementKind::Atomic(_) | StatementKind::Snapshot(_) => "another indivisible block",
            StatementKind::Await(_) => "`await`",
            StatementKind::While(..) | StatementKind::Loop(_) => "a loop",
            StatementKind::Break | StatementKind::Continue | StatementKind::Goto(_) | StatementKind::Stop => {
                "a jump"
            }
            _ if !statement.labels.is_empty() => "a label",
            _ => return Ok(()),
        };
        let error =
            Diagnostic::new(statement.span, format!("{what} cannot stand inside an indivisible block"));
        Err(match &statement.kind {
            StatementKind::Await(_) => error.help("use `assume`: the whole block waits until it holds"),
            _ => match self.active.last() {
                Some(procedure) => error.help(format!("`{procedure}` is called inside one")),
                None => error,
            },
        })
    }
}

/// Whether a statement is a declaration, without a location in the control flow.
fn is_declaration(statement: &Statement) -> bool {
    matches!(statement.kind, StatementKind::Const(_) | StatementKind::Var(_)) && statement.labels.is_empty()
}

/// Whether a block of `choose` needs a location of its own at its start: because control can return there, and must not return to the choice, or
/// because the block is empty. An `await` does return to the choice: while it waits, the other blocks can still be chosen.
fn starts_with_own_place(block: &Block) -> bool {
    let Some(first) = block.statements.iter().find(|s| !is_declaration(s)) else { return true };
    !first.labels.is_empty()
        || match &first.kind {
            StatementKind::While(..) | StatementKind::Loop(_) | StatementKind::Empty => true,
            StatementKind::Block(inner) | StatementKind::Steps(inner) => starts_with_own_place(inner),
            // A `for` may have no iterations, or start with a loop; so may a procedure.
            StatementKind::For(..) => true,
            StatementKind::Expr(ast::Expr { kind: ast::ExprKind::Call(..), .. }) => true,
            _ => false,
        }
}
