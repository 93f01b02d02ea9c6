//! Prints a syntax tree as text.
//!
//! This module writes the tokens; line breaks and indentation are left to the [`layout`] that the formatter uses.

use std::fmt::Write as _;

use fencewright_program::{BinaryOp, Numbers, UnaryOp};

use super::layout::layout;
use super::lexer::lex;
use crate::ast::*;

/// Prints a syntax tree as formatted `.fw` text. Parsing the text yields the same tree, except for spans, provided that names are legal and the tree
/// has a shape that the parser produces: chains of `&&` and of `||` are built by [`chain`](super::chain), and an empty statement has a label and
/// precedes `}`.
pub fn print(file: &File) -> String {
    let mut printer = Printer { out: String::new() };
    let mut before: Option<Section> = None;
    for item in &file.items {
        let section = Section::of(item);
        if before.is_some_and(|before| before != section || section == Section::Thread) {
            printer.out.push('\n');
        }
        printer.item(item);
        printer.out.push('\n');
        before = Some(section);
    }
    let lexed = lex(&printer.out, usize::MAX);
    layout(&printer.out, &lexed.tokens, &lexed.comments)
}

/// Groups of items: blank lines separate different groups, and threads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Declaration,
    Thread,
    Property,
    Hint,
}

impl Section {
    fn of(item: &Item) -> Self {
        match item {
            Item::Const(_) | Item::Numbers(..) | Item::Shared(_) | Item::Mutex(_) => Section::Declaration,
            Item::Thread(_) | Item::Procedure(_) => Section::Thread,
            Item::Property(_) => Section::Property,
            Item::Predicates(..) | Item::Spare(..) | Item::Cost(..) => Section::Hint,
        }
    }
}

/// Prints an expression as `.fw` text, on one line.
pub fn print_expression(expr: &Expr) -> String {
    let mut printer = Printer { out: String::new() };
    printer.expression(expr);
    printer.out
}

struct Printer {
    out: String,
}

impl Printer {
    fn word(&mut self, word: &str) {
        self.out.push_str(word);
    }

    /// Writes parts separated by commas.
    fn list<T>(&mut self, parts: &[T], mut write: impl FnMut(&mut Self, &T)) {
        for (number, part) in parts.iter().enumerate() {
            if number > 0 {
                self.word(", ");
            }
            write(self, part);
        }
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Const(constant) => self.constant(constant),
            Item::Numbers(numbers, _) => self.word(match numbers {
                Numbers::Int => "numbers int;",
                Numbers::Nat => "numbers nat;",
                Numbers::Real => "numbers real;",
            }),
            Item::Shared(declarators) => {
                self.word("shared ");
                self.list(declarators, Self::declarator);
                self.word(";");
            }
            Item::Mutex(declarators) => {
                self.word("mutex ");
                self.list(declarators, Self::declarator);
                self.word(";");
            }
            Item::Procedure(procedure) => {
                self.word("fn ");
                self.word(&procedure.name.text);
                self.word("(");
                self.list(&procedure.parameters, |printer, parameter| {
                    printer.word(&parameter.name.text);
                    printer.wraps(parameter.wraps);
                });
                self.word(")");
                self.block(&procedure.body);
            }
            Item::Thread(thread) => {
                self.word("thread ");
                self.word(&thread.name.text);
                if let Some((index, range)) = &thread.family {
                    self.word("[");
                    self.word(&index.text);
                    self.word(" in ");
                    self.range(range);
                    self.word("]");
                }
                self.block(&thread.body);
            }
            Item::Property(property) => self.property(property),
            Item::Predicates(formulas, _) => {
                self.word("predicates {");
                if !formulas.is_empty() {
                    self.list(formulas, Self::expression);
                    self.word(";");
                }
                self.word("}");
            }
            Item::Spare(place, _) => {
                self.word("spare ");
                self.expression(place);
                self.word(";");
            }
            Item::Cost(target, price, _) => {
                self.word("cost ");
                match target {
                    CostTarget::Fence => self.word("fence"),
                    CostTarget::StoreFence => self.word("sfence"),
                    CostTarget::Swap => self.word("swap"),
                    CostTarget::Place(place) => self.expression(place),
                }
                self.word(" ");
                self.expression(price);
                self.word(";");
            }
        }
    }

    fn constant(&mut self, constant: &Const) {
        self.word("const ");
        self.word(&constant.name.text);
        self.word(" = ");
        self.expression(&constant.value);
        self.word(";");
    }

    fn declarator(&mut self, declarator: &Declarator) {
        self.word(&declarator.name.text);
        match &declarator.size {
            None => {}
            Some(ArraySize::Length(length)) => {
                self.word("[");
                self.operand(length, 0, false);
                self.word("]");
            }
            Some(ArraySize::Indices(range)) => {
                self.word("[");
                self.range(range);
                self.word("]");
            }
        }
        if declarator.open {
            self.word(" open");
        }
        self.wraps(declarator.wraps);
        if let Some(range) = &declarator.range {
            self.word(": ");
            self.range(range);
        }
        match &declarator.init {
            None => {}
            Some(Initial::Value(value)) => {
                self.word(" = ");
                self.expression(value);
            }
            Some(Initial::Any(range)) => self.any_value(range.as_ref()),
            Some(Initial::List(values)) => {
                self.word(" = [");
                self.list(values, Self::expression);
                self.word("]");
            }
        }
    }

    fn wraps(&mut self, wraps: Option<UnaryOp>) {
        if let Some(op) = wraps {
            self.word(": ");
            self.word(op.symbol());
        }
    }

    fn any_value(&mut self, range: Option<&RangeExpr>) {
        self.word(" = *");
        if let Some(range) = range {
            self.word(" in ");
            self.range(range);
        }
    }

    fn property(&mut self, property: &Property) {
        let (word, kind) = match property.kind {
            PropertyKind::Forbid => ("forbid ", ""),
            PropertyKind::Invariant => ("invariant ", ""),
            PropertyKind::FinallyExists => ("finally ", "exists "),
            PropertyKind::FinallyNever => ("finally ", "never "),
            PropertyKind::FinallyForall => ("finally ", "forall "),
        };
        self.word(word);
        if let Some(name) = &property.name {
            self.word(&name.text);
            self.word(": ");
        }
        self.word(kind);
        if !property.binders.is_empty() {
            self.list(&property.binders, Self::binder);
            self.word(": ");
        }
        self.expression(&property.formula);
        self.word(";");
    }

    fn binder(&mut self, binder: &Binder) {
        self.word(&binder.first.text);
        if let Some((relation, second)) = &binder.second {
            self.word(match relation {
                BinderRelation::Less => " < ",
                BinderRelation::NotEqual => " != ",
            });
            self.word(&second.text);
        }
        self.word(" in ");
        self.range(&binder.range);
    }

    fn block(&mut self, block: &Block) {
        self.word(" {\n");
        for statement in &block.statements {
            self.statement(statement);
            self.word("\n");
        }
        self.word("}");
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
                let _ = write!(self.out, "\"{}\";", text.replace('\\', "\\\\").replace('"', "\\\""));
            }
            StatementKind::Await(condition) => self.condition("await ", condition, ";"),
            StatementKind::Goto(label) => {
                self.word("goto ");
                self.word(&label.text);
                self.word(";");
            }
            StatementKind::Atomic(block) => {
                self.word("atomic");
                self.block(block);
            }
            StatementKind::Snapshot(block) => {
                self.word("snapshot");
                self.block(block);
            }
            StatementKind::Loop(block) => {
                self.word("loop");
                self.block(block);
            }
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
                self.word("choose");
                for (number, block) in blocks.iter().enumerate() {
                    if number > 0 {
                        self.word(" or");
                    }
                    self.block(block);
                }
            }
            StatementKind::Block(block) => self.block(block),
            StatementKind::Steps(steps) => {
                for (number, step) in steps.statements.iter().enumerate() {
                    self.word(if number > 0 { "\n" } else { "" });
                    self.statement(step);
                }
            }
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

    fn range(&mut self, range: &RangeExpr) {
        self.operand(&range.low, 0, false);
        self.word(if range.inclusive { "..=" } else { ".." });
        self.operand(&range.high, 0, false);
    }

    fn place(&mut self, name: &Name, index: Option<&Expr>) {
        self.word(&name.text);
        if let Some(index) = index {
            self.word("[");
            self.expression(index);
            self.word("]");
        }
    }

    fn expression(&mut self, expr: &Expr) {
        self.operand(expr, 0, true);
    }

    /// Writes an operand that must bind at least as tightly as `precedence`; `last` if nothing follows it that a quantifier, which extends as far as
    /// possible, would include.
    fn operand(&mut self, expr: &Expr, precedence: u8, last: bool) {
        match &expr.kind {
            ExprKind::Int(value) => {
                let _ = write!(self.out, "{value}");
            }
            ExprKind::Place(place) => self.place(&place.name, place.index.as_deref()),
            ExprKind::Unary(op, operand) if op.wraps() => {
                self.word(op.symbol());
                self.word("(");
                self.expression(operand);
                self.word(")");
            }
            ExprKind::Unary(op, operand) => {
                self.word(op.symbol());
                match operand.kind {
                    // The negation of a number, as opposed to a negative number.
                    ExprKind::Int(value) if *op == UnaryOp::Neg && value >= 0 => {
                        let _ = write!(self.out, "({value})");
                    }
                    _ => self.operand(operand, u8::MAX, last),
                }
            }
            ExprKind::Binary(op, left, right) if op.is_function() => {
                self.word(op.symbol());
                self.word("(");
                self.expression(left);
                self.word(", ");
                self.expression(right);
                self.word(")");
            }
            ExprKind::Binary(op, left, right) => {
                let own = super::precedence(*op);
                let enclosed = own < precedence;
                if enclosed {
                    self.word("(");
                }
                let chains = matches!(op, BinaryOp::And | BinaryOp::Or);
                self.operand(left, own + u8::from(op.is_comparison()), false);
                let _ = write!(self.out, " {} ", op.symbol());
                self.operand(right, own + u8::from(!chains), last || enclosed);
                if enclosed {
                    self.word(")");
                }
            }
            ExprKind::Cas(place, old, new) => self.operation("cas", place, &[old, new]),
            ExprKind::Swap(place, value) => self.operation("swap", place, &[value]),
            ExprKind::FetchAdd(place, value) => self.operation("fetch_add", place, &[value]),
            ExprKind::If(condition, then, otherwise) => {
                let enclosed = precedence > 0;
                if enclosed {
                    self.word("(");
                }
                self.operand(condition, 1, false);
                self.word(" ? ");
                self.expression(then);
                self.word(" : ");
                self.operand(otherwise, 0, last || enclosed);
                if enclosed {
                    self.word(")");
                }
            }
            ExprKind::Call(name, arguments) => {
                self.word(&name.text);
                self.word("(");
                self.list(arguments, Self::expression);
                self.word(")");
            }
            ExprKind::At(thread, label) => {
                self.place(&thread.name, thread.index.as_deref());
                self.word("@");
                self.word(&label.text);
            }
            ExprKind::Register(thread, register) => {
                self.place(&thread.name, thread.index.as_deref());
                self.word(".");
                self.place(&register.name, register.index.as_deref());
            }
            ExprKind::Quantified(quantifier, binders, body) => {
                if !last {
                    self.word("(");
                }
                self.word(match quantifier {
                    Quantified::Exists => "exists ",
                    Quantified::Forall => "forall ",
                });
                self.list(binders, Self::binder);
                self.word(": ");
                self.expression(body);
                if !last {
                    self.word(")");
                }
            }
        }
    }

    fn operation(&mut self, word: &str, place: &Place, arguments: &[&Expr]) {
        self.word(word);
        self.word("(");
        self.place(&place.name, place.index.as_deref());
        for argument in arguments {
            self.word(", ");
            self.expression(argument);
        }
        self.word(")");
    }
}
