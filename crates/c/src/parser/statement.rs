//! Statements (C11 6.8), and assembly.

use std::rc::Rc;

use super::{MOST_ERRORS, Parser, Read};
use crate::ast::{Assembly, Block, Expr, Statement, StatementKind};
use crate::error::Error;
use crate::token::Kind;

/// Maximum number of operands of assembly, as in gcc.
const MOST_OPERANDS: usize = 30;

impl Parser<'_> {
    /// `{ ... }`. The caller opens the scope, because parameters belong to the scope of a function's body.
    pub(super) fn block(&mut self) -> Read<Block> {
        let start = self.span();
        self.expect("{")?;
        let mut statements = Vec::new();
        while !self.takes("}") {
            if self.peek().is_none() {
                return Err(Error::new(start, "this brace is never closed"));
            }
            let before = self.at;
            match self.nested(Self::statement) {
                Ok(statement) => statements.push(statement),
                Err(error) if self.errors.len() + 1 < MOST_ERRORS && self.depth < super::DEEPEST => {
                    self.errors.push(error);
                    self.recover_statement(before);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Block { statements, span: self.since(start) })
    }

    /// Resumes after the statement that contains an error, inside its block.
    fn recover_statement(&mut self, start: usize) {
        let mut open = 0usize;
        let error = self.at;
        self.at = start;
        while self.peek().is_some() {
            match self.word() {
                "{" => open += 1,
                "}" if open == 0 => return,
                "}" => open -= 1,
                _ => {}
            }
            let ends = open == 0 && matches!(self.word(), ";" | "}");
            self.at += 1;
            if ends && self.at > error {
                return;
            }
        }
    }

    fn inner(&mut self) -> Read<Box<Statement>> {
        Ok(Box::new(self.nested(|parser| parser.scoped(Self::statement))?))
    }

    fn condition(&mut self) -> Read<Expr> {
        self.expect("(")?;
        let condition = self.comma_expression()?;
        self.expect(")")?;
        Ok(condition)
    }

    /// A statement, or a declaration.
    fn statement(&mut self) -> Read<Statement> {
        let (start, expansion) = (self.span(), self.expansion());
        self.go_on()?;
        let first = self.at;
        let starts = self.is_between_uses(first);
        self.skip_attributes()?;
        let kind = self.statement_kind()?;
        let ends = self.is_between_uses(self.at);
        // If fences can be inserted in the text on both sides of the statement, its position in the macro definition is not needed.
        let definition = if starts && ends { None } else { self.definition(first, self.at - 1) };
        Ok(Statement { kind, span: self.since(start), expansion, starts, ends, definition })
    }

    fn statement_kind(&mut self) -> Read<StatementKind> {
        let is_name = self.peek().is_some_and(|token| token.kind == Kind::Identifier);
        let labelled = is_name && self.word_at(1) == ":" && !super::is_keyword(self.word());
        let kind = match self.word() {
            ";" => {
                self.at += 1;
                StatementKind::Empty
            }
            "{" => StatementKind::Block(self.scoped(Self::block)?),
            "if" => self.branches()?,
            "while" => {
                self.at += 1;
                let condition = self.condition()?;
                StatementKind::While(condition, self.inner()?)
            }
            "do" => {
                self.at += 1;
                let body = self.inner()?;
                self.expect("while")?;
                let condition = self.condition()?;
                self.expect(";")?;
                StatementKind::DoWhile(body, condition)
            }
            "for" => self.scoped(Self::for_loop)?,
            "switch" => {
                self.at += 1;
                let value = self.condition()?;
                StatementKind::Switch(value, self.inner()?)
            }
            "case" => self.case()?,
            "default" => {
                self.at += 1;
                self.expect(":")?;
                StatementKind::Default(self.labelled_statement()?)
            }
            "goto" => self.goto()?,
            "break" => self.simple(StatementKind::Break)?,
            "continue" => self.simple(StatementKind::Continue)?,
            "return" => {
                self.at += 1;
                let value = match self.is(";") {
                    true => None,
                    false => Some(self.comma_expression()?),
                };
                self.expect(";")?;
                StatementKind::Return(value)
            }
            "asm" | "__asm" | "__asm__" => StatementKind::Assembly(self.assembly()?),
            "__label__" => {
                while !self.takes(";") {
                    if self.peek().is_none() {
                        return Err(self.expected("`;`"));
                    }
                    self.at += 1;
                }
                StatementKind::Empty
            }
            _ if labelled => {
                let label = self.name("a label")?;
                self.expect(":")?;
                self.skip_attributes()?;
                StatementKind::Label(label, self.labelled_statement()?)
            }
            _ if self.starts_declaration() => StatementKind::Declaration(self.declaration()?),
            _ => {
                let value = self.comma_expression()?;
                self.expect(";")?;
                StatementKind::Expression(value)
            }
        };
        Ok(kind)
    }

    /// `case low:` or `case low ... high:`, with the statement after it; the keyword is the next token.
    fn case(&mut self) -> Read<StatementKind> {
        self.at += 1;
        let low = self.conditional()?;
        let high = match self.takes("...") {
            true => Some(self.conditional()?),
            false => None,
        };
        self.expect(":")?;
        Ok(StatementKind::Case(low, high, self.labelled_statement()?))
    }

    fn goto(&mut self) -> Read<StatementKind> {
        self.at += 1;
        if self.takes("*") {
            self.comma_expression()?;
            self.expect(";")?;
            return Ok(StatementKind::Unsupported("a `goto` to a computed place is not supported"));
        }
        let label = self.name("a label")?;
        self.expect(";")?;
        Ok(StatementKind::Goto(label))
    }

    fn simple(&mut self, kind: StatementKind) -> Read<StatementKind> {
        self.at += 1;
        self.expect(";")?;
        Ok(kind)
    }

    /// The statement after a label; C23 allows a label directly before a closing brace.
    fn labelled_statement(&mut self) -> Read<Box<Statement>> {
        if self.is("}") {
            let (span, expansion) = (self.span(), self.expansion());
            let (kind, span) = (StatementKind::Empty, span.point(span.start));
            return Ok(
                Statement { kind, span, expansion, starts: false, ends: false, definition: None }.into()
            );
        }
        Ok(Box::new(self.nested(Self::statement)?))
    }

    /// `if` and all its `else if`s, parsed iteratively.
    fn branches(&mut self) -> Read<StatementKind> {
        let mut branches = Vec::new();
        loop {
            self.expect("if")?;
            let condition = self.condition()?;
            branches.push((condition, *self.inner()?));
            if !self.takes("else") {
                return Ok(StatementKind::If(branches, None));
            }
            if !self.is("if") {
                return Ok(StatementKind::If(branches, Some(self.inner()?)));
            }
        }
    }

    fn for_loop(&mut self) -> Read<StatementKind> {
        self.expect("for")?;
        self.expect("(")?;
        let (start, expansion) = (self.span(), self.expansion());
        let first = match self.is(";") {
            true => {
                self.at += 1;
                None
            }
            false => {
                let kind = match self.starts_declaration() {
                    true => StatementKind::Declaration(self.declaration()?),
                    false => {
                        let value = self.comma_expression()?;
                        self.expect(";")?;
                        StatementKind::Expression(value)
                    }
                };
                let span = self.since(start);
                Some(Box::new(Statement {
                    kind,
                    span,
                    expansion,
                    starts: false,
                    ends: false,
                    definition: None,
                }))
            }
        };
        let condition = match self.is(";") {
            true => None,
            false => Some(self.comma_expression()?),
        };
        self.expect(";")?;
        let step = match self.is(")") {
            true => None,
            false => Some(self.comma_expression()?),
        };
        self.expect(")")?;
        Ok(StatementKind::For(first, condition, step, self.inner()?))
    }

    fn assembly(&mut self) -> Read<Assembly> {
        self.at += 1;
        let (mut jumps, mut volatile) = (false, false);
        loop {
            match self.word() {
                "volatile" | "__volatile__" | "__volatile" => volatile = true,
                "inline" | "__inline__" | "__inline" => {}
                "goto" => jumps = true,
                _ => break,
            }
            self.at += 1;
        }
        self.expect("(")?;
        let text = self.string()?;
        let mut found =
            Assembly { text, jumps, volatile, outputs: Vec::new(), inputs: Vec::new(), clobbers: Vec::new() };
        let mut names = Vec::new();
        if self.takes(":") {
            found.outputs = self.operands(&mut names)?;
        }
        if self.takes(":") {
            found.inputs = self.operands(&mut names)?;
        }
        // Every operand has a number, so a reference `[name]` to a named operand becomes `[number]`.
        for (number, name) in names.into_iter().enumerate() {
            let Some(name) = name else { continue };
            let (name, number) = (format!("[{name}]"), format!("[{number}]"));
            found.text = found.text.replace(&name, &number);
            for (constraint, _) in &mut found.inputs {
                *constraint = constraint.replace(&name, &number);
            }
        }
        if self.takes(":") {
            while !self.is(")") && !self.is(":") {
                found.clobbers.push(self.string()?);
                if !self.takes(",") {
                    break;
                }
            }
        }
        if jumps && self.takes(":") {
            // `asm goto` is an error if an execution reaches it, so its labels are not needed.
            while !self.is(")") {
                self.name("a label")?;
                if !self.takes(",") {
                    break;
                }
            }
        }
        self.expect(")")?;
        self.expect(";")?;
        found.volatile |= jumps || found.outputs.is_empty();
        Ok(found)
    }

    /// Operands of assembly: `[name] "constraint" (expression)`. Their names, if any, are appended to `names`.
    fn operands(&mut self, names: &mut Vec<Option<Rc<str>>>) -> Read<Vec<(String, Expr)>> {
        let mut operands = Vec::new();
        while !self.is(":") && !self.is(")") {
            let mut name = None;
            if self.takes("[") {
                let symbol = self.name("the name of an operand")?.symbol;
                name = Some(self.names.spelling(symbol).clone());
                self.expect("]")?;
            }
            names.push(name);
            if names.len() > MOST_OPERANDS {
                return Err(Error::new(
                    self.span(),
                    format!("more than {MOST_OPERANDS} operands of assembly"),
                ));
            }
            let constraint = self.string()?;
            self.expect("(")?;
            let value = self.comma_expression()?;
            self.expect(")")?;
            operands.push((constraint, value));
            if !self.takes(",") {
                break;
            }
        }
        Ok(operands)
    }
}
