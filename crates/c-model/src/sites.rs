//! Sites for fences: the statements of a C program before or after which a fence can be inserted.
//!
//! If a statement begins with a macro use, a fence can stand before the whole use; if it ends with a macro use, a fence can stand after that use. A
//! statement inside a macro has its site in the macro definition. A fence there takes effect in every use of the macro, and the number of uses is
//! recorded. Nothing is inserted into a model header. A declaration may have a fence before it, as C allows since C99.

use fencewright_c::ast::{
    Block, Definition, Expr, ExprKind, Initializer, Item, Statement, StatementKind, Unit,
};
use fencewright_front_end::places::{Site, Sites};
use fencewright_text::Sources;
use fencewright_text::Stop;

/// Collects all sites.
pub fn sites(unit: &Unit, sources: &Sources, stop: &Stop<'_>) -> Sites {
    let mut walk = Walk { sources, stop, sites: Sites::default() };
    for item in &unit.items {
        if let Item::Function(function) = item {
            walk.block(&function.body);
        }
    }
    walk.sites
}

struct Walk<'s> {
    sources: &'s Sources,
    stop: &'s Stop<'s>,
    sites: Sites,
}

impl Walk<'_> {
    fn block(&mut self, block: &Block) {
        for statement in self.stop.polled(&block.statements) {
            self.statement(statement, false);
        }
    }

    /// Adds the sites of a statement in a block, or of a `bare` statement, which has no braces around it.
    fn statement(&mut self, statement: &Statement, bare: bool) {
        match statement.definition.as_deref() {
            Some(definition) if !self.sources.is_users(definition.span.file) => {}
            Some(&Definition { span, starts, ends, .. }) => {
                self.sites.insert_in_macro(span, Site { before: starts, after: ends, bare, uses: 1 });
            }
            None if !self.sources.is_users(statement.span.file) => {}
            None => {
                let (before, after) = (statement.starts, statement.ends);
                self.sites.insert(statement.span, Site { before, after, bare, uses: 0 });
            }
        }
        match &statement.kind {
            StatementKind::Case(_, _, inner)
            | StatementKind::Default(inner)
            | StatementKind::Label(_, inner) => self.labelled(inner, bare),
            _ => self.inside(statement),
        }
    }

    /// Adds the sites of the body of a statement: inside the braces, if the body has braces.
    fn body(&mut self, body: &Statement) {
        match body.kind {
            StatementKind::Block(_) => self.inside(body),
            _ => self.statement(body, true),
        }
    }

    fn inside(&mut self, statement: &Statement) {
        match &statement.kind {
            StatementKind::Empty
            | StatementKind::Unsupported(_)
            | StatementKind::Goto(_)
            | StatementKind::Break
            | StatementKind::Continue => {}
            StatementKind::Expression(e) => self.expression(e),
            StatementKind::Declaration(declaration) => {
                for declarator in &declaration.declarators {
                    declarator.initial.iter().for_each(|initial| self.initial(initial));
                }
            }
            StatementKind::Block(block) => self.block(block),
            StatementKind::If(branches, otherwise) => {
                for (condition, then) in branches {
                    self.expression(condition);
                    self.body(then);
                }
                otherwise.iter().for_each(|otherwise| self.body(otherwise));
            }
            StatementKind::While(condition, body) | StatementKind::DoWhile(body, condition) => {
                self.expression(condition);
                self.body(body);
            }
            StatementKind::For(first, condition, step, body) => {
                // The initialisation is inside the parentheses, where no fence can stand.
                first.iter().for_each(|first| self.inside(first));
                condition.iter().chain(step).for_each(|e| self.expression(e));
                self.body(body);
            }
            StatementKind::Switch(value, body) => {
                self.expression(value);
                // Code before the first case is unreachable, so the start of the body is not a site.
                self.inside(body);
            }
            StatementKind::Case(_, _, inner)
            | StatementKind::Default(inner)
            | StatementKind::Label(_, inner) => self.inside(inner),
            StatementKind::Return(value) => value.iter().for_each(|value| self.expression(value)),
            StatementKind::Assembly(assembly) => {
                assembly.outputs.iter().chain(&assembly.inputs).for_each(|(_, e)| self.expression(e));
            }
        }
    }

    /// Adds the sites of the statement after a label. A declaration there is not a site, because C before C23 allows no declaration directly after a
    /// label.
    fn labelled(&mut self, statement: &Statement, bare: bool) {
        match statement.kind {
            StatementKind::Declaration(_) => self.inside(statement),
            _ => self.statement(statement, bare),
        }
    }

    fn initial(&mut self, initial: &Initializer) {
        match initial {
            Initializer::Expression(e) => self.expression(e),
            Initializer::List(values, _) => values.iter().for_each(|(_, value)| self.initial(value)),
        }
    }

    /// Visits the statement expressions inside an expression.
    fn expression(&mut self, e: &Expr) {
        match &e.kind {
            ExprKind::Name(_)
            | ExprKind::Integer(_)
            | ExprKind::Character(_)
            | ExprKind::Unsupported(_)
            | ExprKind::String(_)
            | ExprKind::SizeOf(_)
            | ExprKind::SizeOfType(_)
            | ExprKind::AlignOf(_)
            | ExprKind::OffsetOf(..)
            | ExprKind::TypesCompatible(..) => {}
            ExprKind::Unary(_, inner)
            | ExprKind::Step(_, inner)
            | ExprKind::Cast(_, inner)
            | ExprKind::Member(inner, _)
            | ExprKind::Arrow(inner, _) => self.expression(inner),
            ExprKind::Binary(_, a, b)
            | ExprKind::Assign(_, a, b)
            | ExprKind::Comma(a, b)
            | ExprKind::Index(a, b) => [a, b].into_iter().for_each(|e| self.expression(e)),
            ExprKind::Conditional(condition, then, otherwise) => {
                self.expression(condition);
                then.iter().for_each(|then| self.expression(then));
                self.expression(otherwise);
            }
            ExprKind::Call(called, arguments) => {
                self.expression(called);
                arguments.iter().for_each(|argument| self.expression(argument));
            }
            ExprKind::Compound(_, initial) => self.initial(initial),
            ExprKind::Statements(block) => self.block(block),
            ExprKind::Generic(_, choices) => choices.iter().for_each(|(_, e)| self.expression(e)),
        }
    }
}
