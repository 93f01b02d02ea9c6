//! Prints boolean programs as text.

use std::fmt::Write;

use fencewright_memory::{BufferMachine, CellId, Cells};
use fencewright_program::{EdgeId, Expr, Program};

use super::program::{BooleanProgram, Case};
use super::transformer::{Psi, Transformer};
use super::vector::Literal;

/// A boolean program as text: its variables with their predicates, then the statements of each thread. A statement is an atomic step; `|` separates
/// its branches. The assignments of a branch are simultaneous.
pub fn text(machine: &BufferMachine<'_>, program: &BooleanProgram) -> String {
    let mut out = String::new();
    let (cells, source) = (&machine.cells, machine.program);
    for (n, predicate) in program.vocabulary.predicates().iter().enumerate() {
        let values: Vec<Option<bool>> = program
            .initial
            .iter()
            .map(|vector| {
                let known = |holds| vector.contains(Literal::new(n, holds));
                if known(true) { Some(true) } else { known(false).then_some(false) }
            })
            .collect();
        let initially = match values.first() {
            Some(Some(value)) if values.iter().all(|v| v == &Some(*value)) => u8::from(*value).to_string(),
            _ => "*".into(),
        };
        let _ =
            writeln!(out, "bool b{n} = {initially};  // {}", expression(source, cells, predicate.formula()));
    }
    for (thread, code) in source.threads() {
        let _ = writeln!(out, "\nthread {} {{", code.name);
        for (number, location) in code.locations.iter().enumerate() {
            let names = location.labels.iter().map(|label| format!("{label}: ")).collect::<String>();
            let edges = location.first_edge..location.last_edge;
            if edges.is_empty() && names.is_empty() {
                continue;
            }
            let _ = writeln!(out, "l{number}: {names}");
            for edge in edges {
                for case in program.all_cases(thread, EdgeId(edge)) {
                    statement(&mut out, program, case);
                }
            }
        }
        out.push_str("}\n");
    }
    out
}

fn statement(out: &mut String, program: &BooleanProgram, case: &Case) {
    let target = match case.to {
        Ok(to) => format!("goto l{}", to.0),
        Err((what, _)) => format!("abort({what})"),
    };
    for (_, transformer) in program.ways(case) {
        let parts = parts(transformer);
        let _ = writeln!(
            out,
            "  | {}{target};",
            parts.iter().map(|part| format!("{part}; ")).collect::<String>()
        );
    }
}

fn parts(transformer: &Transformer) -> Vec<String> {
    let mut parts = Vec::new();
    let blocked = &transformer.blocked;
    if blocked.always || !blocked.cubes().is_empty() {
        parts.push(format!("assume(!({}))", disjunction(blocked)));
    }
    let assigned: Vec<String> =
        transformer.updates.iter().map(|update| format!("b{}", update.predicate)).collect();
    if !assigned.is_empty() {
        let values = transformer.updates.iter().map(|update| {
            let chosen = format!("choose({}, {})", disjunction(&update.plus), disjunction(&update.minus));
            if update.assigned { chosen } else { format!("b{} or {chosen}", update.predicate) }
        });
        parts.push(format!("{} := {}", assigned.join(", "), values.collect::<Vec<_>>().join(", ")));
    }
    parts
}

fn disjunction(psi: &Psi) -> String {
    let literal = |literal: &Literal| {
        let not = if literal.holds() { "" } else { "!" };
        format!("{not}b{}", literal.predicate())
    };
    let cube = |cube: Vec<Literal>| match cube.as_slice() {
        [] => "1".into(),
        cube => cube.iter().map(literal).collect::<Vec<_>>().join(" & "),
    };
    match psi.cubes() {
        cubes if cubes.is_empty() => "0".into(),
        cubes => cubes.into_iter().map(cube).collect::<Vec<String>>().join(" | "),
    }
}

/// A formula over cells, with the names of the program.
pub fn expression(program: &Program, cells: &Cells, e: &Expr<CellId>) -> String {
    let inner = |e: &Expr<CellId>| expression(program, cells, e);
    match e {
        Expr::Const(c) => c.to_string(),
        Expr::Leaf(cell) => cells.name(program, *cell),
        Expr::Unary(op, operand) => format!("{}({})", op.symbol(), inner(operand)),
        Expr::Binary(op, left, right) => match (&**left, &**right) {
            (Expr::Binary(..), Expr::Binary(..)) if !op.is_comparison() => {
                format!("({}) {} ({})", inner(left), op.symbol(), inner(right))
            }
            _ => format!("{} {} {}", inner(left), op.symbol(), inner(right)),
        },
        Expr::If(condition, then, otherwise) => {
            format!("({} ? {} : {})", inner(condition), inner(then), inner(otherwise))
        }
    }
}
