//! Visits the direct parts of statements and expressions of a C program. Walks over the syntax tree use it for all kinds they do not treat specially.

use fencewright_c::ast::{Block, Expr, ExprKind, Initializer, Statement, StatementKind};

/// A direct part of a statement.
pub enum Part<'a> {
    /// A full expression.
    Full(&'a Expr),
    /// A full expression that decides where control goes.
    Condition(&'a Expr),
    /// The initial value of a variable.
    Initial(&'a Initializer),
    /// An operand of an `asm` statement.
    Operand(&'a Expr),
    /// The statements of a block.
    Block(&'a Block),
    /// A branch, or the body of a loop.
    Body(&'a Statement),
    /// The first statement of a `for`, inside the parentheses.
    First(&'a Statement),
    /// The body of a `switch`. Code before the first case is unreachable.
    Cases(&'a Statement),
    /// The statement after a label.
    Labelled(&'a Statement),
}

/// Calls `visit` for each direct part of a statement.
pub fn of_statement<'a>(statement: &'a Statement, visit: &mut dyn FnMut(Part<'a>)) {
    match &statement.kind {
        StatementKind::Empty
        | StatementKind::Unsupported(_)
        | StatementKind::Goto(_)
        | StatementKind::Break
        | StatementKind::Continue => {}
        StatementKind::Expression(e) => visit(Part::Full(e)),
        StatementKind::Declaration(declaration) => {
            let initials =
                declaration.declarators.iter().filter_map(|declarator| declarator.initial.as_ref());
            initials.for_each(|initial| visit(Part::Initial(initial)));
        }
        StatementKind::Block(block) => visit(Part::Block(block)),
        StatementKind::If(branches, otherwise) => {
            for (condition, then) in branches {
                visit(Part::Condition(condition));
                visit(Part::Body(then));
            }
            otherwise.iter().for_each(|otherwise| visit(Part::Body(otherwise)));
        }
        StatementKind::While(condition, body) | StatementKind::DoWhile(body, condition) => {
            visit(Part::Condition(condition));
            visit(Part::Body(body));
        }
        StatementKind::For(first, condition, step, body) => {
            first.iter().for_each(|first| visit(Part::First(first)));
            condition.iter().for_each(|condition| visit(Part::Condition(condition)));
            step.iter().for_each(|step| visit(Part::Full(step)));
            visit(Part::Body(body));
        }
        StatementKind::Switch(value, body) => {
            visit(Part::Condition(value));
            visit(Part::Cases(body));
        }
        StatementKind::Case(_, _, inner) | StatementKind::Default(inner) | StatementKind::Label(_, inner) => {
            visit(Part::Labelled(inner));
        }
        StatementKind::Return(value) => value.iter().for_each(|value| visit(Part::Full(value))),
        StatementKind::Assembly(assembly) => {
            assembly.outputs.iter().chain(&assembly.inputs).for_each(|(_, e)| visit(Part::Operand(e)));
        }
    }
}

/// A direct part of an expression.
pub enum Inner<'a> {
    /// An operand of an operator or call.
    Operand(&'a Expr),
    /// The initialiser of a compound literal.
    Initial(&'a Initializer),
    /// The block of a statement expression.
    Block(&'a Block),
}

/// Calls `visit` for each direct part of an expression that may be evaluated.
pub fn of_expression<'a>(e: &'a Expr, visit: &mut dyn FnMut(Inner<'a>)) {
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
        | ExprKind::Arrow(inner, _) => visit(Inner::Operand(inner)),
        ExprKind::Binary(_, a, b)
        | ExprKind::Assign(_, a, b)
        | ExprKind::Comma(a, b)
        | ExprKind::Index(a, b) => {
            visit(Inner::Operand(a));
            visit(Inner::Operand(b));
        }
        ExprKind::Conditional(condition, then, otherwise) => {
            visit(Inner::Operand(condition));
            then.iter().for_each(|then| visit(Inner::Operand(then)));
            visit(Inner::Operand(otherwise));
        }
        ExprKind::Call(called, arguments) => {
            visit(Inner::Operand(called));
            arguments.iter().for_each(|argument| visit(Inner::Operand(argument)));
        }
        ExprKind::Compound(_, initial) => visit(Inner::Initial(initial)),
        ExprKind::Statements(block) => visit(Inner::Block(block)),
        ExprKind::Generic(_, choices) => choices.iter().for_each(|(_, e)| visit(Inner::Operand(e))),
    }
}
