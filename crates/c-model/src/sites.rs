//! Sites for fences: the statements of a C program before or after which a fence can be inserted.
//!
//! If a statement begins with a macro use, a fence can be inserted before that use; if it ends with a macro use, after that use. The site of a
//! statement inside a macro is in the macro definition; a fence there takes effect in every use of the macro, and the number of uses is recorded. No
//! fence is inserted into a model header; which other files may be changed is decided later. A fence can be inserted before a declaration, as C allows
//! since C99.

use fencewright_c::Names;
use fencewright_c::ast::{
    Block, Definition, Expr, Function, Initializer, Item, Statement, StatementKind, Unit,
};
use fencewright_front_end::places::{Routine, Site, Sites};
use fencewright_text::{Sources, Stop};

use crate::parts::{self, Inner, Part};

/// Collects all sites.
pub fn sites(unit: &Unit, names: &Names, sources: &Sources, stop: &Stop<'_>) -> Sites {
    let mut walk = Walk { sources, stop, sites: Sites::of(routines(unit, names)) };
    for function in functions(unit) {
        walk.block(&function.body);
    }
    walk.sites
}

fn functions(unit: &Unit) -> impl Iterator<Item = &Function> {
    unit.items.iter().filter_map(|item| match item {
        Item::Function(function) => Some(function),
        Item::Declaration(_) => None,
    })
}

/// The functions with a body, except those whose name and body are in different files.
fn routines(unit: &Unit, names: &Names) -> Vec<Routine> {
    let name = |function: &Function| names.spelling(function.name.symbol).to_string();
    let main = functions(unit).find(|function| name(function) == "main").map(|main| main.name.span.file);
    let own = functions(unit).filter(|function| function.name.span.file == function.body.span.file);
    own.map(|function| Routine {
        name: name(function),
        body: function.body.span,
        library: function.inline || Some(function.body.span.file) != main,
    })
    .collect()
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

    /// Adds the sites of a statement in a block or, if `bare`, of the body of a statement without braces around it.
    fn statement(&mut self, statement: &Statement, bare: bool) {
        match statement.definition.as_deref() {
            Some(definition) if self.sources.is_built_in(definition.span.file) => {}
            Some(&Definition { span, starts, ends, .. }) => {
                let ends = ends && !leaves(statement);
                self.sites.insert_in_macro(span, Site { before: starts, after: ends, bare, uses: 1 });
            }
            None if self.sources.is_built_in(statement.span.file) => {}
            None => {
                let (before, after) = (statement.starts, statement.ends && !leaves(statement));
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

    /// Adds the sites of the body of a statement. If the body has braces, fences go inside the braces.
    fn body(&mut self, body: &Statement) {
        match body.kind {
            StatementKind::Block(_) => self.inside(body),
            _ => self.statement(body, true),
        }
    }

    /// Adds the sites inside a statement that is not itself labelled. Not sites: the first statement of a `for`, which is inside the parentheses; the
    /// body of a `switch`, because code before the first case is unreachable; and, if that body has no braces, the statement after its label.
    fn inside(&mut self, statement: &Statement) {
        parts::of_statement(statement, &mut |part| match part {
            Part::Full(e) | Part::Condition(e) | Part::Operand(e) => self.expression(e),
            Part::Initial(initial) => self.initial(initial),
            Part::Block(block) => self.block(block),
            Part::Body(body) => self.body(body),
            Part::First(inner) | Part::Cases(inner) | Part::Labelled(inner) => self.inside(inner),
        });
    }

    /// Adds the sites of the statement after a label. If that is a declaration, it is not a site, because a statement must follow a label before C23.
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

    /// Adds the sites in the statement expressions that an expression contains.
    fn expression(&mut self, e: &Expr) {
        parts::of_expression(e, &mut |inner| match inner {
            Inner::Operand(e) => self.expression(e),
            Inner::Initial(initial) => self.initial(initial),
            Inner::Block(block) => self.block(block),
        });
    }
}

/// Whether a statement is a jump, so that control never reaches the point after it.
fn leaves(statement: &Statement) -> bool {
    matches!(
        statement.kind,
        StatementKind::Goto(_) | StatementKind::Break | StatementKind::Continue | StatementKind::Return(_)
    )
}
