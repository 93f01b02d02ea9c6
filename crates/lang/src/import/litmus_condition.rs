//! The condition of a litmus test.

use fencewright_program::{BinaryOp, Span, UnaryOp};

use super::build::{self, NESTING_LIMIT};
use super::litmus::Test;
use super::litmus_scan::{Kind, Scanner};
use crate::ast::{Expr, ExprKind, Property, PropertyKind, ThreadRef};
use crate::diagnostic::Diagnostic;

/// Everything behind the program: `locations`, `filter`, and the condition with its quantifier. A test may have none.
pub(super) fn condition(scanner: &mut Scanner<'_>, test: &mut Test) -> Result<Option<Property>, Diagnostic> {
    let mut filter = None;
    loop {
        if scanner.accept("locations") {
            locations(scanner)?;
        } else if scanner.accept("filter") {
            filter = Some(formula(scanner, test)?);
            scanner.accept(";");
        } else {
            break;
        }
    }
    let start = scanner.peek().span;
    let negated = scanner.accept("~") || scanner.accept("not");
    let kind = match scanner.peek().text {
        "exists" if negated => PropertyKind::FinallyNever,
        "exists" | "final" if !negated => PropertyKind::FinallyExists,
        "forall" if !negated => PropertyKind::FinallyForall,
        _ if negated => return Err(scanner.expected("`exists`")),
        _ => {
            end(scanner)?;
            return Ok(None);
        }
    };
    scanner.next();
    let mut formula = formula(scanner, test)?;
    let span = start.to(formula.span);
    scanner.accept(";");
    end(scanner)?;
    if let Some(filter) = filter {
        // Only final states that pass the filter count.
        let at = filter.span;
        formula = match kind {
            PropertyKind::FinallyForall => {
                build::binary(BinaryOp::Or, build::unary(UnaryOp::Not, filter, at), formula, span)
            }
            _ => build::binary(BinaryOp::And, filter, formula, span),
        };
    }
    let name = Some(build::name("condition", span));
    Ok(Some(Property { name, kind, binders: Vec::new(), formula, span }))
}

/// What may stand behind the condition in old tests is not read.
fn end(scanner: &Scanner<'_>) -> Result<(), Diagnostic> {
    let done = scanner.peek().kind == Kind::End || scanner.is("with") || scanner.is("<<");
    if done { Ok(()) } else { Err(scanner.expected("the end of the condition")) }
}

/// `[x; 0:EAX;]`: what to show of final states, which is no part of the condition.
fn locations(scanner: &mut Scanner<'_>) -> Result<(), Diagnostic> {
    scanner.expect("[")?;
    let mut brackets = 1_usize;
    while brackets > 0 {
        let token = scanner.next();
        match token.text {
            _ if token.kind == Kind::End => return Err(scanner.expected("`]`")),
            "[" => brackets += 1,
            "]" => brackets -= 1,
            _ => {}
        }
    }
    Ok(())
}

fn formula(scanner: &mut Scanner<'_>, test: &mut Test) -> Result<Expr, Diagnostic> {
    implication(scanner, test, 0)
}

/// `a => b` from the weakest operator down, then `\/`, `/\`, `~`.
fn implication(scanner: &mut Scanner<'_>, test: &mut Test, depth: usize) -> Result<Expr, Diagnostic> {
    if depth > NESTING_LIMIT {
        return Err(Diagnostic::new(scanner.peek().span, "nested too deeply"));
    }
    let left = disjunction(scanner, test, depth)?;
    if !scanner.accept("=>") {
        return Ok(left);
    }
    let right = implication(scanner, test, depth + 1)?;
    let span = left.span.to(right.span);
    let refuted = build::unary(UnaryOp::Not, left, span);
    Ok(build::binary(BinaryOp::Or, refuted, right, span))
}

fn disjunction(scanner: &mut Scanner<'_>, test: &mut Test, depth: usize) -> Result<Expr, Diagnostic> {
    let mut parts = vec![conjunction(scanner, test, depth)?];
    while scanner.accept("\\/") {
        parts.push(conjunction(scanner, test, depth)?);
    }
    Ok(join(BinaryOp::Or, parts))
}

fn conjunction(scanner: &mut Scanner<'_>, test: &mut Test, depth: usize) -> Result<Expr, Diagnostic> {
    let mut parts = vec![literal(scanner, test, depth)?];
    while scanner.accept("/\\") {
        parts.push(literal(scanner, test, depth)?);
    }
    Ok(join(BinaryOp::And, parts))
}

fn join(op: BinaryOp, parts: Vec<Expr>) -> Expr {
    let span = parts[0].span.to(parts[parts.len() - 1].span);
    build::balanced(op, parts, span)
}

fn literal(scanner: &mut Scanner<'_>, test: &mut Test, depth: usize) -> Result<Expr, Diagnostic> {
    let token = scanner.peek();
    if depth > NESTING_LIMIT {
        return Err(Diagnostic::new(token.span, "nested too deeply"));
    }
    match token.text {
        "~" | "not" => {
            scanner.next();
            let operand = literal(scanner, test, depth + 1)?;
            let span = token.span.to(operand.span);
            Ok(build::unary(UnaryOp::Not, operand, span))
        }
        "(" => {
            scanner.next();
            let mut inside = implication(scanner, test, depth + 1)?;
            let close = scanner.expect(")")?;
            inside.span = token.span.to(close.span);
            Ok(inside)
        }
        "true" | "false" => {
            scanner.next();
            Ok(build::int((token.text == "true") as i64, token.span))
        }
        _ => comparison(scanner, test),
    }
}

/// `x = 1`, `[x] = 1` or `0:EAX = 1`
fn comparison(scanner: &mut Scanner<'_>, test: &mut Test) -> Result<Expr, Diagnostic> {
    let start = scanner.peek().span;
    let left = observable(scanner, test)?;
    let op = match scanner.peek().text {
        "=" | "==" => BinaryOp::Eq,
        "<>" | "!=" => BinaryOp::Ne,
        _ => return Err(scanner.expected("`=`")),
    };
    scanner.next();
    let at = scanner.peek().span;
    let value = scanner.value()?;
    let end = Span { start: at.start, end: scanner.at as u32 };
    Ok(build::binary(op, left, build::int(value, end), start.to(end)))
}

fn observable(scanner: &mut Scanner<'_>, test: &mut Test) -> Result<Expr, Diagnostic> {
    if scanner.accept("[") {
        let word = scanner.peek();
        if word.kind != Kind::Word {
            return Err(scanner.expected("a location"));
        }
        scanner.next();
        scanner.expect("]")?;
        return Ok(build::variable(test.location(word), word.span));
    }
    let first = scanner.next();
    if scanner.is(":") {
        let thread = test.thread(first)?;
        scanner.next();
        let register = test.register(thread, scanner)?;
        let thread = &test.threads[thread].name;
        let name = build::name(register.text, register.span);
        let thread = ThreadRef { name: build::name(thread, first.span), index: None };
        let span = first.span.to(register.span);
        return Ok(Expr { kind: ExprKind::Register(thread, name), span });
    }
    if first.kind != Kind::Word {
        let message = format!("expected a register or location, found {}", first.describe());
        return Err(Diagnostic::new(first.span, message));
    }
    Ok(build::variable(test.location(first), first.span))
}
