//! Declares registers and allocates locations for labels, before the statements of a thread are lowered.

use std::collections::HashMap;

use fencewright_program::{Init, Range, Register, RegisterId, UnaryOp};
use fencewright_text::Diagnostic;

use super::MOST_CELLS;
use super::array::{Array, Binding};
use super::graph::Node;
use super::thread::ThreadLowering;
use crate::ast::{self, Block, Name, StatementKind};

type Result<T> = std::result::Result<T, Diagnostic>;

impl<'a> ThreadLowering<'a, '_> {
    /// Declares the registers of a thread or procedure; returns them with their initial values.
    pub fn declare_registers(&mut self, body: &'a Block) -> Vec<(RegisterId, Init)> {
        let mut declared = Vec::new();
        // Declarations of registers may refer to constants of the thread, so registers and constants are processed in the order of the text.
        let mut pushed = Vec::new();
        self.declare_registers_in(body, &mut declared, &mut pushed);
        for name in pushed {
            self.constants.pop(&name);
        }
        declared
    }

    fn declare_registers_in(
        &mut self,
        body: &'a Block,
        declared: &mut Vec<(RegisterId, Init)>,
        pushed: &mut Vec<String>,
    ) {
        for statement in &body.statements {
            match &statement.kind {
                StatementKind::Const(c) => {
                    if let Ok(value) = self.constants.eval(&c.value) {
                        self.constants.push(&c.name.text, value);
                        pushed.push(c.name.text.clone());
                    }
                }
                StatementKind::Var(declarators) => {
                    for declarator in declarators {
                        if self.gives_up(1, declarator.span) {
                            break;
                        }
                        match self.declare_register(declarator) {
                            Ok(registers) => declared.extend(registers),
                            Err(error) => self.diagnostics.push(error),
                        }
                    }
                }
                StatementKind::Steps(steps) => self.declare_registers_in(steps, declared, pushed),
                _ => {}
            }
        }
    }

    fn declare_register(&mut self, declarator: &'a ast::Declarator) -> Result<Vec<(RegisterId, Init)>> {
        let name = &declarator.name;
        if declarator.open {
            let message = "only an array of shared memory can be `open`";
            return Err(Diagnostic::new(declarator.span, message));
        }
        self.check_fresh(name)?;
        let indices = declarator.size.as_ref().map(|size| self.constants.indices(size)).transpose()?;
        let size = indices.map_or(1, Range::size);
        if size == 0 {
            let message = format!("the array `{}` has no elements", name.text);
            return Err(Diagnostic::new(declarator.span, message));
        }
        if size > MOST_CELLS as u64 {
            let message = format!("an array of more than {MOST_CELLS} registers");
            return Err(Diagnostic::new(declarator.span, message));
        }
        self.effort.spend(size as usize, declarator.span)?;
        let range = declarator.range.as_ref().map(|r| self.constants.nonempty_range(r)).transpose()?;
        let values = self.constants.integer_type(declarator)?;
        let init = self.constants.initial(declarator, range.or(values), size as usize)?;
        let first = self.frame_register(&name.text, indices, range, declarator.wraps, &init);
        let binding = match indices {
            None => Binding::Register(first),
            Some(indices) => Binding::Array(Array { first, indices }),
        };
        self.frame.names.insert(name.text.clone(), binding);
        Ok(init.into_iter().zip(first.0..).map(|(init, id)| (RegisterId(id), init)).collect())
    }

    /// The first of the consecutive registers of a variable: new ones, or those of an earlier call of the same procedure. Procedures are not
    /// recursive, so one set of registers suffices for all calls.
    pub fn frame_register(
        &mut self,
        name: &str,
        indices: Option<Range>,
        range: Option<Range>,
        wraps: Option<UnaryOp>,
        init: &[Init],
    ) -> RegisterId {
        let name = match self.active.last() {
            None => name.to_string(),
            Some(procedure) => format!("{procedure}.{name}"),
        };
        let key = (name, indices, range, wraps);
        if let Some(&known) = self.frame_registers.get(&key) {
            return known;
        }
        let first = RegisterId(self.registers.len() as u32);
        for (n, &init) in init.iter().enumerate() {
            let name = match indices {
                None => key.0.clone(),
                Some(indices) => format!("{}[{}]", key.0, indices.low + n as i64),
            };
            if let Some(wraps) = wraps {
                self.types.insert(RegisterId(self.registers.len() as u32), wraps);
            }
            self.registers.push(Register { name, init, range });
        }
        self.frame_registers.insert(key, first);
        first
    }

    pub fn check_fresh(&self, name: &Name) -> Result<()> {
        let taken = if self.local(&name.text).is_some() {
            "register"
        } else if self.shared(&name.text).is_some() {
            "shared variable"
        } else if self.constants.get(&name.text).is_some() {
            "constant"
        } else {
            return Ok(());
        };
        Err(Diagnostic::new(name.span, format!("`{}` is already the name of a {taken}", name.text)))
    }

    /// Allocates locations for the labels of a block, except for those in the body of a `for`, whose copies get their own locations.
    pub fn collect_labels(&mut self, block: &'a Block) -> HashMap<String, Node> {
        let mut labels = HashMap::new();
        self.collect_labels_into(block, &mut labels);
        labels
    }

    fn collect_labels_into(&mut self, block: &'a Block, labels: &mut HashMap<String, Node>) {
        for statement in &block.statements {
            if self.gives_up(statement.labels.len(), statement.span) {
                return;
            }
            if !statement.labels.is_empty() {
                let node = self.graph.node();
                for label in &statement.labels {
                    match self.active.last() {
                        None => self.graph.label(node, &label.text),
                        Some(procedure) => self.graph.label(node, &format!("{procedure}.{}", label.text)),
                    }
                    if labels.insert(label.text.clone(), node).is_some() {
                        let message = format!("the label `{}` stands twice in this thread", label.text);
                        self.diagnostics.push(Diagnostic::new(label.span, message));
                    }
                }
            }
            match &statement.kind {
                StatementKind::If(_, then, otherwise) => {
                    self.collect_labels_into(then, labels);
                    if let Some(otherwise) = otherwise {
                        self.collect_labels_into(otherwise, labels);
                    }
                }
                StatementKind::While(_, body)
                | StatementKind::Loop(body)
                | StatementKind::Block(body)
                | StatementKind::Steps(body) => {
                    self.collect_labels_into(body, labels);
                }
                StatementKind::Choose(blocks) => {
                    for block in blocks {
                        self.collect_labels_into(block, labels);
                    }
                }
                _ => {}
            }
        }
    }
}
