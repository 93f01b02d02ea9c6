//! Prints a syntax tree as text.
//!
//! This module writes the tokens; line breaks and indentation are left to the [`layout`] that the formatter uses.

mod expression;
mod statement;

use fencewright_program::{Numbers, UnaryOp};

use super::layout::layout;
use super::lexer::lex;
use crate::ast::*;

pub use expression::print_expression;

/// Prints a syntax tree as formatted `.fw` text. Parsing the text yields the same tree except for spans, provided that all names are legal and that
/// the tree has a shape that the parser produces: chains of `&&` and of `||` are built by [`chain`](super::chain), and every empty statement has a
/// label and precedes `}`.
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

/// Groups of items. Blank lines separate items of different groups, and threads and procedures from each other.
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
}
