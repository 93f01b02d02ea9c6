//! Lowers a thread to its control-flow graph: its registers, labels and blocks.
//!
//! Lowering works backwards, as for expressions: each statement gets the location to continue at (`next`) and, if its location exists already (a
//! label, a loop head, a choice), the location to start at (`at`); it returns the location where it starts.

use std::collections::HashMap;

use fencewright_program::{Program, Register, RegisterId, Span, Thread, UnaryOp, Variable, VariableId};
use fencewright_text::Diagnostic;
use fencewright_text::diagnostic::MAX_DIAGNOSTICS;

use super::array::Binding;
use super::call::{Frame, FrameRegisters};
use super::effort::Effort;
use super::graph::{ControlFlow, Node};
use super::scope::Constants;
use super::wait::Wait;
use super::{Names, Notes, nearest};
use crate::ast::{self, Block, Name, Statement, StatementKind};
use crate::lower::Awaits;

/// Maximum number of locations of one thread.
pub const MOST_NODES: usize = 1 << 19;
pub const TOO_LARGE: &str =
    "this thread is too large when its `for` loops are unrolled and its calls are inlined";
/// Maximum nesting depth of blocks, including those of inlined procedures; each level takes some of the stack.
const MOST_NESTED: usize = 200;
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
    /// The scope of the thread, or of the procedure that is being inlined.
    pub frame: Frame<'a>,
    /// The procedures that are being inlined, innermost last.
    pub active: Vec<&'a str>,
    pub frame_registers: FrameRegisters,
    /// The integer types of those registers that have one, as the operators that wrap written values around.
    pub types: HashMap<RegisterId, UnaryOp>,
    /// The number of copies of `for` bodies and procedures made so far.
    pub copies: usize,
    /// The number of blocks around the current one, including those of callers.
    nesting: usize,
    /// The location where the thread has terminated.
    pub end: Node,
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
) -> Result<Thread, Vec<Diagnostic>> {
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
    /// The register, or array of registers, with this name, if there is one.
    pub fn local(&self, name: &str) -> Option<Binding> {
        self.frame.names.get(name).copied()
    }

    /// The number of the thread, counted from 1, as stored in mutexes.
    pub fn number(&self) -> i64 {
        self.program.threads.len() as i64 + 1
    }

    pub fn shared(&self, name: &str) -> Option<VariableId> {
        self.names.shared.get(name).copied()
    }

    pub fn variable(&self, id: VariableId) -> &'a Variable {
        &self.program.variables[id.index()]
    }

    /// A temporary register. It is in use until `release` is called with an earlier mark, at the latest at the end of the statement.
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

    /// Lowers a block. Errors are collected, so that one run reports the errors of all statements.
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

    /// Spends `parts` of the budget. Returns whether lowering has to be aborted, because the thread or the program is too large, `stop` asked to
    /// stop, or there are too many errors.
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
}

/// Whether a statement is a declaration without labels, which has no location in the control flow.
pub fn is_declaration(statement: &Statement) -> bool {
    matches!(statement.kind, StatementKind::Const(_) | StatementKind::Var(_)) && statement.labels.is_empty()
}
