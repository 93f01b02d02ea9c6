//! Prints statements and blocks.

use super::Printer;
use crate::ast::*;

impl Printer {
    pub fn block(&mut self, block: &Block) {
        self.word(" {\n");
        for statement in &block.statements {
            self.statement(statement);
            self.word("\n");
        }
        self.word("}");
    }

    /// Statements on lines of their own, without braces.
    fn steps(&mut self, steps: &Block) {
        for (number, step) in steps.statements.iter().enumerate() {
            self.word(if number > 0 { "\n" } else { "" });
            self.statement(step);
        }
    }

    /// A keyword and the block after it.
    fn keyword_block(&mut self, keyword: &str, block: &Block) {
        self.word(keyword);
        self.block(block);
    }

    fn string(&mut self, text: &str) {
        self.word("\"");
        self.word(&text.replace('\\', "\\\\").replace('"', "\\\""));
        self.word("\"");
    }

    fn statement(&mut self, statement: &Statement) {
        for label in &statement.labels {
            self.word(&label.text);
            self.word(":\n");
        }
        match &statement.kind {
            StatementKind::Empty => {}
            StatementKind::Const(constant) => self.constant(constant),
            StatementKind::Var(declarators) => {
                self.word("var ");
                self.list(declarators, Self::declarator);
                self.word(";");
            }
            StatementKind::Assign(place, value) => {
                self.place(&place.name, place.index.as_deref());
                self.word(" = ");
                self.expression(value);
                self.word(";");
            }
            StatementKind::Havoc(place, range) => {
                self.place(&place.name, place.index.as_deref());
                self.any_value(range.as_ref());
                self.word(";");
            }
            StatementKind::Expr(expr) => {
                self.expression(expr);
                self.word(";");
            }
            StatementKind::Skip => self.word("skip;"),
            StatementKind::Fence => self.word("fence;"),
            StatementKind::StoreFence => self.word("sfence;"),
            StatementKind::Lock(mutex) => self.mutex("lock", mutex.as_ref()),
            StatementKind::Unlock(mutex) => self.mutex("unlock", mutex.as_ref()),
            StatementKind::Return(None) => self.word("return;"),
            StatementKind::Return(Some(value)) => self.condition("return ", value, ";"),
            StatementKind::Break => self.word("break;"),
            StatementKind::Continue => self.word("continue;"),
            StatementKind::Stop => self.word("stop;"),
            StatementKind::Assume(condition) => self.condition("assume ", condition, ";"),
            StatementKind::Assert(condition, None) => self.condition("assert ", condition, ";"),
            StatementKind::Assert(condition, Some(text)) => {
                self.condition("assert ", condition, ", ");
                self.string(text);
                self.word(";");
            }
            StatementKind::Await(condition) => self.condition("await ", condition, ";"),
            StatementKind::Goto(label) => {
                self.word("goto ");
                self.word(&label.text);
                self.word(";");
            }
            StatementKind::Atomic(block) => self.keyword_block("atomic", block),
            StatementKind::Snapshot(block) => self.keyword_block("snapshot", block),
            StatementKind::Loop(block) => self.keyword_block("loop", block),
            StatementKind::If(condition, then, otherwise) => {
                self.if_statement(condition, then, otherwise.as_ref())
            }
            StatementKind::While(condition, block) => {
                self.condition("while ", condition, "");
                self.block(block);
            }
            StatementKind::For(index, range, block) => {
                self.word("for ");
                self.word(&index.text);
                self.word(" in ");
                self.range(range);
                self.block(block);
            }
            StatementKind::Choose(blocks) => {
                for (number, block) in blocks.iter().enumerate() {
                    self.keyword_block(if number == 0 { "choose" } else { " or" }, block);
                }
            }
            StatementKind::Block(block) => self.block(block),
            StatementKind::Steps(steps) => self.steps(steps),
        }
    }

    fn mutex(&mut self, keyword: &str, mutex: Option<&Place>) {
        self.word(keyword);
        if let Some(mutex) = mutex {
            self.word(" ");
            self.place(&mutex.name, mutex.index.as_deref());
        }
        self.word(";");
    }

    fn condition(&mut self, keyword: &str, condition: &Expr, end: &str) {
        self.word(keyword);
        self.expression(condition);
        self.word(end);
    }

    fn if_statement(&mut self, condition: &Expr, then: &Block, otherwise: Option<&Block>) {
        self.condition("if ", condition, "");
        self.block(then);
        let Some(otherwise) = otherwise else { return };
        self.word(" else");
        match otherwise.statements.as_slice() {
            [Statement { labels, kind: StatementKind::If(condition, then, otherwise), .. }]
                if labels.is_empty() =>
            {
                self.word(" ");
                self.if_statement(condition, then, otherwise.as_ref());
            }
            _ => self.block(otherwise),
        }
    }
}
