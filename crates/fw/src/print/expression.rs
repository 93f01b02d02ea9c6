//! Prints expressions and formulas.

use std::fmt::Write as _;

use fencewright_program::{BinaryOp, UnaryOp};

use super::Printer;
use crate::ast::*;
use crate::precedence;

/// Prints an expression as `.fw` text, on one line.
pub fn print_expression(expr: &Expr) -> String {
    let mut printer = Printer { out: String::new() };
    printer.expression(expr);
    printer.out
}

impl Printer {
    pub fn expression(&mut self, expr: &Expr) {
        self.operand(expr, 0, true);
    }

    /// Writes an operand that must bind at least as tightly as `minimum`. A quantifier extends as far to the right as possible, so it is written in
    /// parentheses, unless `last` says that no text follows the operand that the quantifier could include.
    pub fn operand(&mut self, expr: &Expr, minimum: u8, last: bool) {
        match &expr.kind {
            ExprKind::Int(value) => {
                let _ = write!(self.out, "{value}");
            }
            ExprKind::Place(place) => self.place(&place.name, place.index.as_deref()),
            ExprKind::Unary(op, operand) if op.wraps() => self.call(op.symbol(), None, &[operand]),
            ExprKind::Unary(op, operand) => {
                self.word(op.symbol());
                match operand.kind {
                    // The negation of a number is written `-(1)`, because `-1` is read as a negative number.
                    ExprKind::Int(value) if *op == UnaryOp::Neg && value >= 0 => {
                        let _ = write!(self.out, "({value})");
                    }
                    _ => self.operand(operand, u8::MAX, last),
                }
            }
            ExprKind::Binary(op, left, right) if op.is_function() => {
                self.call(op.symbol(), None, &[left, right])
            }
            ExprKind::Binary(op, left, right) => {
                let own = precedence(*op);
                let enclosed = own < minimum;
                self.enclosed(enclosed, |printer| {
                    let chains = matches!(op, BinaryOp::And | BinaryOp::Or);
                    printer.operand(left, own + u8::from(op.is_comparison()), false);
                    let _ = write!(printer.out, " {} ", op.symbol());
                    printer.operand(right, own + u8::from(!chains), last || enclosed);
                });
            }
            ExprKind::Cas(place, old, new) => self.call("cas", Some(place), &[old, new]),
            ExprKind::Swap(place, value) => self.call("swap", Some(place), &[value]),
            ExprKind::FetchAdd(place, value) => self.call("fetch_add", Some(place), &[value]),
            ExprKind::If(condition, then, otherwise) => {
                let enclosed = minimum > 0;
                self.enclosed(enclosed, |printer| {
                    printer.operand(condition, 1, false);
                    printer.word(" ? ");
                    printer.expression(then);
                    printer.word(" : ");
                    printer.operand(otherwise, 0, last || enclosed);
                });
            }
            ExprKind::Call(name, arguments) => {
                self.call(&name.text, None, &arguments.iter().collect::<Vec<_>>())
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
            ExprKind::Quantified(quantifier, binders, body) => self.enclosed(!last, |printer| {
                printer.word(match quantifier {
                    Quantified::Exists => "exists ",
                    Quantified::Forall => "forall ",
                });
                printer.list(binders, Self::binder);
                printer.word(": ");
                printer.expression(body);
            }),
        }
    }

    /// Calls `write`, in parentheses if `enclosed`.
    fn enclosed(&mut self, enclosed: bool, write: impl FnOnce(&mut Self)) {
        self.word(if enclosed { "(" } else { "" });
        write(self);
        self.word(if enclosed { ")" } else { "" });
    }

    /// Writes a call of an operator or procedure, with `place`, if given, as its first argument.
    fn call(&mut self, word: &str, place: Option<&Place>, arguments: &[&Expr]) {
        self.word(word);
        self.word("(");
        if let Some(place) = place {
            self.place(&place.name, place.index.as_deref());
            self.word(if arguments.is_empty() { "" } else { ", " });
        }
        self.list(arguments, |printer, argument| printer.expression(argument));
        self.word(")");
    }
}
