//! Statements (C11 6.8): labels, `switch`, and checks of jumps.

use std::rc::Rc;

use fencewright_program::Span;
use rustc_hash::{FxHashMap, FxHashSet};

use super::conversions::convert;
use super::tree::{
    Assembly, AssemblyInput, Block, Expr, ExprKind, FunctionId, Label, LabelId, Local, LocalId, Statement,
    StatementKind, Type, TypeKind,
};
use super::{MOST_ERRORS, Typer, Typing};
use crate::arithmetic::Arithmetic;
use crate::assembly::Constraint;
use crate::ast;
use crate::error::Error;
use crate::token::Symbol;

/// The state of the analysis of one function body.
pub(super) struct Body {
    pub name: Rc<str>,
    pub result: Type,
    pub locals: Vec<Local>,
    pub labels: Vec<Label>,
    /// Local variables that never change and are initialised with a constant, with that constant.
    pub constants: FxHashMap<LocalId, i128>,
    /// Local arrays whose length is not constant. Each is a pointer to its first element, and is mapped to the variable that holds its size in bytes.
    pub sizes: FxHashMap<LocalId, LocalId>,
    /// Local variables that are mentioned anywhere except in `(void)x;`.
    pub mentioned: FxHashSet<LocalId>,
    /// The functions with a body that this body names.
    pub mentions: Vec<FunctionId>,
    /// Labels by name, each with a flag that says whether its definition has been seen.
    numbers: FxHashMap<Symbol, (LabelId, bool)>,
    /// The enclosing loops and `switch`es, innermost last.
    around: Vec<Around>,
}

/// A loop or a `switch`.
enum Around {
    Loop,
    /// The type of the controlling value, the ranges of the `case`s so far (lowest to highest value), and whether there is a `default`.
    Switch(Arithmetic, std::collections::BTreeMap<i128, i128>, bool),
}

impl Body {
    pub(super) fn new(name: Rc<str>, result: Type) -> Self {
        Body {
            name,
            result,
            locals: Vec::new(),
            labels: Vec::new(),
            constants: FxHashMap::default(),
            sizes: FxHashMap::default(),
            mentioned: FxHashSet::default(),
            mentions: Vec::new(),
            numbers: FxHashMap::default(),
            around: Vec::new(),
        }
    }
}

impl Typer<'_> {
    pub(super) fn in_hand(&mut self) -> &mut Body {
        self.body.as_mut().expect("statements are in functions")
    }

    /// Declares a local variable.
    pub(super) fn local(&mut self, name: Rc<str>, ty: Type, span: Span) -> LocalId {
        let body = self.in_hand();
        let id = LocalId(body.locals.len() as u32);
        body.locals.push(Local { name, ty, address_taken: false, span });
        id
    }

    /// `{ ... }` in the current scope. Errors are collected statement by statement.
    pub(super) fn block(&mut self, block: &ast::Block) -> Typing<Block> {
        let mut statements = Vec::new();
        for statement in &block.statements {
            self.statement_into(statement, &mut statements);
        }
        Ok(Block { statements, span: block.span })
    }

    fn statement_into(&mut self, statement: &ast::Statement, statements: &mut Vec<Statement>) {
        if self.errors.len() >= MOST_ERRORS {
            return;
        }
        if (self.stop)() {
            let stopped = Error::new(statement.span, "stopped while types were looked at");
            return self.errors.push(stopped.always());
        }
        if let ast::StatementKind::Declaration(declaration) = &statement.kind {
            let done = self.local_declaration(declaration, statement, statements);
            return self.report(done);
        }
        match self.statement(statement) {
            Ok(found) => statements.push(found),
            Err(error) => self.errors.push(error),
        }
    }

    fn inner(&mut self, statement: &ast::Statement) -> Typing<Box<Statement>> {
        self.scoped(|typer| typer.statement(statement)).map(Box::new)
    }

    fn body_of_loop(&mut self, statement: &ast::Statement) -> Typing<Box<Statement>> {
        self.in_hand().around.push(Around::Loop);
        let found = self.inner(statement);
        self.in_hand().around.pop();
        found
    }

    fn condition(&mut self, expr: &ast::Expr) -> Typing<Expr> {
        let value = self.value(expr)?;
        self.scalar(value)
    }

    fn effects(&mut self, expr: Option<&ast::Expr>) -> Typing<Option<Expr>> {
        expr.map(|expr| self.value(expr)).transpose()
    }

    fn statement(&mut self, statement: &ast::Statement) -> Typing<Statement> {
        let kind = self.nested(statement.span, |typer| typer.statement_kind(statement))?;
        let (span, expansion, definition) =
            (statement.span, statement.expansion, statement.definition.clone());
        Ok(Statement { kind, span, expansion, definition })
    }

    fn statement_kind(&mut self, statement: &ast::Statement) -> Typing<StatementKind> {
        use ast::StatementKind as Kind;
        Ok(match &statement.kind {
            Kind::Empty => StatementKind::Empty,
            Kind::Expression(expr) => StatementKind::Expression(self.value(expr)?),
            Kind::Declaration(declaration) => self.labelled_declaration(declaration, statement)?,
            Kind::Block(block) => StatementKind::Block(self.scoped(|typer| typer.block(block))?),
            Kind::If(branches, last) => {
                let mut typed = Vec::new();
                for (condition, body) in branches {
                    let condition = self.condition(condition)?;
                    typed.push((condition, *self.inner(body)?));
                }
                let last = match last {
                    Some(last) => Some(self.inner(last)?),
                    None => None,
                };
                StatementKind::If(typed, last)
            }
            Kind::While(condition, body) => {
                let condition = self.condition(condition)?;
                StatementKind::While(condition, self.body_of_loop(body)?)
            }
            Kind::DoWhile(body, condition) => {
                let body = self.body_of_loop(body)?;
                StatementKind::DoWhile(body, self.condition(condition)?)
            }
            Kind::For(first, condition, step, body) => self.scoped(|typer| {
                let mut before = Vec::new();
                if let Some(first) = first {
                    typer.statement_into(first, &mut before);
                }
                let condition = condition.as_ref().map(|condition| typer.condition(condition)).transpose()?;
                let step = typer.effects(step.as_ref())?;
                Ok(StatementKind::For(before, condition, step, typer.body_of_loop(body)?))
            })?,
            Kind::Switch(value, body) => {
                let value = self.value(value)?;
                let value = self.promoted(value)?;
                let ty = value.ty.arithmetic().unwrap_or(Arithmetic::INT);
                self.in_hand().around.push(Around::Switch(ty, Default::default(), false));
                let body = self.inner(body);
                self.in_hand().around.pop();
                StatementKind::Switch(value, body?)
            }
            Kind::Case(low, high, inner) => {
                let (low, high) = self.case(low, high.as_ref())?;
                StatementKind::Case(low, high, self.statement(inner)?.into())
            }
            Kind::Default(inner) => {
                self.default_case(statement.span)?;
                StatementKind::Default(self.statement(inner)?.into())
            }
            Kind::Label(name, inner) => {
                let id = self.label(name, true)?;
                StatementKind::Label(id, self.statement(inner)?.into())
            }
            Kind::Unsupported(message) => {
                return Err(Error::new(statement.span, *message).help("write it without that"));
            }
            Kind::Goto(name) => StatementKind::Goto(self.label(name, false)?),
            Kind::Break => {
                if self.in_hand().around.is_empty() {
                    return Err(Error::new(statement.span, "`break` outside of loops and `switch`").always());
                }
                StatementKind::Break
            }
            Kind::Continue => {
                if !self.in_hand().around.iter().any(|around| matches!(around, Around::Loop)) {
                    return Err(Error::new(statement.span, "`continue` outside of loops").always());
                }
                StatementKind::Continue
            }
            Kind::Return(value) => self.returned(value.as_ref(), statement)?,
            Kind::Assembly(assembly) => StatementKind::Assembly(self.assembly(assembly)?),
        })
    }

    /// A declaration after a label, which C23 allows. The declared names belong to the enclosing block.
    fn labelled_declaration(
        &mut self,
        declaration: &ast::Declaration,
        statement: &ast::Statement,
    ) -> Typing<StatementKind> {
        let mut statements = Vec::new();
        self.local_declaration(declaration, statement, &mut statements)?;
        Ok(match statements.pop() {
            Some(only) if statements.is_empty() => only.kind,
            Some(last) => {
                statements.push(last);
                StatementKind::Block(Block { statements, span: statement.span })
            }
            None => StatementKind::Empty,
        })
    }

    fn returned(&mut self, value: Option<&ast::Expr>, statement: &ast::Statement) -> Typing<StatementKind> {
        let result = self.in_hand().result.clone();
        let Some(value) = value else {
            if !result.is_void() {
                self.warn(statement.span, "`return` without a value in a function that returns one");
            }
            return Ok(StatementKind::Return(None));
        };
        let value = self.value(value)?;
        if result.is_void() {
            if !value.ty.is_void() {
                self.warn(value.span, "`return` with a value in a `void` function");
            }
            return Ok(StatementKind::Return(Some(convert(value, &Type::void()))));
        }
        let value = self.implicit(value, &result, "a result")?;
        Ok(StatementKind::Return(Some(value)))
    }

    /// The lowest and highest value of a `case`, converted to the type of the enclosing `switch`.
    fn case(&mut self, low: &ast::Expr, high: Option<&ast::Expr>) -> Typing<(i128, i128)> {
        let first = self.constant(low)?;
        let last = high.map_or(Ok(first), |high| self.constant(high))?;
        let around = self.in_hand().around.iter_mut().rev();
        let Some((ty, cases)) = around.into_iter().find_map(|around| match around {
            Around::Switch(ty, cases, _) => Some((*ty, cases)),
            Around::Loop => None,
        }) else {
            return Err(Error::new(low.span, "`case` outside of `switch`").always());
        };
        let (first, last) = (ty.converted(first), ty.converted(last));
        if first > last {
            return Err(
                Error::new(low.span, "this range of cases is empty").help("write the smaller value first")
            );
        }
        let before = cases.range(..=last).next_back();
        if before.is_some_and(|(_, &end)| end >= first) {
            return Err(Error::new(low.span, format!("there are two cases for {first}"))
                .always()
                .help("leave one of them out"));
        }
        cases.insert(first, last);
        Ok((first, last))
    }

    fn default_case(&mut self, at: Span) -> Typing<()> {
        let around = self.in_hand().around.iter_mut().rev();
        let seen = around.into_iter().find_map(|around| match around {
            Around::Switch(_, _, seen) => Some(seen),
            Around::Loop => None,
        });
        match seen {
            None => Err(Error::new(at, "`default` outside of `switch`").always()),
            Some(true) => {
                Err(Error::new(at, "there are two `default`s").always().help("leave one of them out"))
            }
            Some(seen) => {
                *seen = true;
                Ok(())
            }
        }
    }

    /// The number of a label, at its definition (if `here`) or at a `goto`.
    fn label(&mut self, name: &ast::Name, here: bool) -> Typing<LabelId> {
        let spelled = self.spelled(name.symbol);
        let body = self.in_hand();
        let new = LabelId(body.labels.len() as u32);
        let (id, seen) = body.numbers.entry(name.symbol).or_insert((new, false));
        if *id == new {
            body.labels.push(Label { name: spelled.clone(), span: name.span });
        }
        if here {
            if *seen {
                return Err(Error::new(
                    name.span,
                    format!("label `{spelled}` is defined twice in this function"),
                )
                .always()
                .help("give one of them another name"));
            }
            *seen = true;
            body.labels[id.index()].span = name.span;
        }
        Ok(*id)
    }

    /// Checks that the label of every `goto` is defined in the function.
    pub(super) fn labels_stand(&mut self) -> Typing<()> {
        let body = self.in_hand();
        match body.numbers.values().find(|(_, seen)| !seen) {
            None => Ok(()),
            Some((id, _)) => {
                let label = &body.labels[id.index()];
                Err(Error::new(label.span, format!("there is no label `{}` in this function", label.name))
                    .always()
                    .help("`goto` leads to a label of the same function"))
            }
        }
    }

    fn assembly(&mut self, assembly: &ast::Assembly) -> Typing<Assembly> {
        let mut outputs = Vec::new();
        for (constraint, place) in &assembly.outputs {
            outputs.push((Constraint::new(constraint, true), self.place(place, "an output of assembly")?));
        }
        let mut inputs = Vec::new();
        for (constraint, value) in &assembly.inputs {
            let constraint = Constraint::new(constraint, false);
            let input = match constraint.is_memory() {
                true => AssemblyInput::Memory(self.place(value, "an input of assembly")?),
                false => AssemblyInput::Value(self.value(value)?),
            };
            inputs.push((constraint, input));
        }
        let ast::Assembly { jumps, volatile, .. } = *assembly;
        let (text, clobbers) = (assembly.text.clone(), assembly.clobbers.clone());
        Ok(Assembly { text, jumps, volatile, outputs, inputs, clobbers })
    }

    /// `({ ... })`: its value is that of its last expression.
    pub(super) fn statement_expression(&mut self, block: &ast::Block, expr: &ast::Expr) -> Typing<Expr> {
        if self.body.is_none() {
            return Err(Error::new(expr.span, "statements outside of functions"));
        }
        let (last, before) = match block.statements.split_last() {
            Some((ast::Statement { kind: ast::StatementKind::Expression(last), .. }, before)) => {
                (Some(last), before)
            }
            _ => (None, &block.statements[..]),
        };
        self.scoped(|typer| {
            let mut statements = Vec::new();
            for statement in before {
                typer.statement_into(statement, &mut statements);
            }
            let value = match last {
                Some(last) => Some(typer.value(last)?),
                None => None,
            };
            let block = Block { statements, span: block.span };
            let ty = value.as_ref().map_or(TypeKind::Void.into(), |value| value.ty.clone());
            Ok(typer.made(ExprKind::Statements(block, value.map(Box::new)), ty, expr))
        })
    }
}
