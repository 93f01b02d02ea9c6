//! Declarations: registers, and places for labels, before the statements of a thread are lowered.

use std::collections::HashMap;

use fencewright_program::{Register, RegisterId};

use super::graph::Node;
use super::thread::ThreadLowering;
use crate::ast::{self, Block, Name, StatementKind};
use crate::diagnostic::Diagnostic;

type Result<T> = std::result::Result<T, Diagnostic>;

impl<'a> ThreadLowering<'a, '_> {
    pub fn declare_registers(&mut self, body: &'a Block) {
        // Constants of the thread may be used in the declarations, so both are read in order here.
        let mut pushed = Vec::new();
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
                        if let Err(error) = self.declare_register(declarator) {
                            self.diagnostics.push(error);
                        }
                    }
                }
                _ => {}
            }
        }
        for name in pushed {
            self.constants.pop(&name);
        }
    }

    fn declare_register(&mut self, declarator: &'a ast::Declarator) -> Result<()> {
        let name = &declarator.name;
        if declarator.size.is_some() || declarator.open {
            return Err(Diagnostic::new(declarator.span, "a register cannot be an array")
                .help("declare it as `shared`; memory that only one thread uses is still memory"));
        }
        self.check_fresh(name)?;
        let range = declarator.range.as_ref().map(|r| self.constants.nonempty_range(r)).transpose()?;
        let init = self.constants.initial(declarator, range, 1)?[0];
        let id = RegisterId(self.registers.len() as u32);
        self.registers.push(Register { name: name.text.clone(), init, range });
        self.register_names.insert(name.text.clone(), id);
        Ok(())
    }

    pub fn check_fresh(&self, name: &Name) -> Result<()> {
        let taken = if self.register(&name.text).is_some() {
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

    /// Places for the labels of a block, those in the copies of a `for` excepted.
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
                    self.graph.label(node, &label.text);
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
                StatementKind::While(_, body) | StatementKind::Loop(body) | StatementKind::Block(body) => {
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
