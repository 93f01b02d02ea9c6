//! Exports programs in the language of memorax. This module writes the declarations and the forbidden vectors, and `text` writes the processes.
//!
//! Every memory cell becomes a global variable, also each element of an array; a computed index becomes a pointer, which in memorax is the number of
//! a global. A declared range becomes a domain. In both languages, writing a value outside the range stops the thread; in `.fw` it is also a
//! violation. A variable without a range has all integers as its domain. The range of an initial `*` becomes a domain too; this is exact only if no
//! store leaves the range, so a store of anything but a constant in the range is an error.

mod text;

use std::fmt::Write as _;

use fencewright_front_end::export::{cannot, only_integers};
use fencewright_fw::names::Names;
use fencewright_program::{
    BinaryOp, Expr, Formula, Init, LocationId, Observable, Op, Program, PropertyKind, Range, Span, ThreadId,
    Variable, VariableId,
};
use fencewright_text::Diagnostic;

use super::import::{self, is_rmm_word};
use crate::export::{location_names, readable};
use text::write_process;

const FORMAT: &str = "memorax";

/// Maximum number of vectors that the properties may expand to.
const VECTOR_LIMIT: usize = 10_000;

/// Writes a program in the language of memorax; the errors say what cannot be expressed.
pub fn rmm(program: &Program) -> Result<String, Vec<Diagnostic>> {
    let text = export(program).map_err(|diagnostic| vec![diagnostic])?;
    readable(text, FORMAT, import::rmm)
}

fn export(program: &Program) -> Result<String, Diagnostic> {
    only_integers(program, FORMAT)?;
    if program.threads.is_empty() {
        return Err(cannot(FORMAT, "a program without threads", Span::default()));
    }
    let labels: Vec<Vec<String>> =
        program.threads.iter().map(|t| location_names(t, "L", is_rmm_word)).collect();
    let vectors = forbidden(program, &labels)?;
    let mut text = format!("forbidden\n  {}\n", vectors.join(";\n  "));

    let mut names = MemoraxNames::default();
    let mut cells = Vec::with_capacity(program.cells());
    let mut declarations = String::new();
    for (number, variable) in program.variables.iter().enumerate() {
        for (cell, &init) in variable.init.iter().enumerate() {
            let name = names.fresh(&program.cell_name(variable.base + cell as u32));
            let declared = declaration(program, VariableId(number as u32), init)?;
            let _ = writeln!(declarations, "  {name} = {declared}");
            cells.push(name);
        }
    }
    // memorax drains the buffer only for a locked step that writes. A draining step without a write is exported with a write to this cell, which is
    // never read.
    let drain = names.fresh("drain");
    let mut processes = String::new();
    let mut uses_drain = false;
    for (thread, labels) in program.threads.iter().zip(&labels) {
        let (process, its_use) = write_process(program, thread, labels, &cells, &drain)?;
        processes += &process;
        uses_drain |= its_use;
    }
    if uses_drain {
        let _ = writeln!(declarations, "  {drain} = 0");
    }
    if !declarations.is_empty() {
        let _ = write!(text, "\ndata\n{declarations}");
    }
    Ok(text + &processes)
}

/// Allocates names that memorax does not reserve.
#[derive(Default)]
struct MemoraxNames(Names<'static>);

impl MemoraxNames {
    fn fresh(&mut self, name: &str) -> String {
        let name = name.trim_end_matches(']');
        let reserved = is_rmm_word(name);
        self.0.fresh(&if reserved { format!("{name}_") } else { name.to_owned() }, "v", "_")
    }
}

/// `init : domain`
fn declaration(program: &Program, id: VariableId, init: Init) -> Result<String, Diagnostic> {
    let variable = &program.variables[id.index()];
    let bounds = |range: Option<Range>| range.map_or("Z".to_owned(), |r| format!("[{}:{}]", r.low, r.high));
    match init {
        Init::Value(value) if variable.range.is_none_or(|r| r.contains(value)) => {
            Ok(format!("{value} : {}", bounds(variable.range)))
        }
        Init::Any(range) if range == variable.range => Ok(format!("* : {}", bounds(range))),
        Init::Any(Some(range)) if variable.range.is_none() && stays_inside(program, id, range) => {
            Ok(format!("* : {}", bounds(Some(range))))
        }
        _ => Err(cannot(FORMAT, &format!("how `{}` starts", variable.name), variable.span)),
    }
}

/// Whether every store to the variable writes a constant in the range.
fn stays_inside(program: &Program, id: VariableId, range: Range) -> bool {
    let ops = program.threads.iter().flat_map(|t| &t.edges).flat_map(|e| e.action.ops());
    let mut stored = ops.filter_map(|op| match op {
        Op::Store(address, value) if address.variable == id => Some(value.constant()),
        _ => None,
    });
    stored.all(|value| value.is_some_and(|v| range.contains(v)))
}

/// The vectors of labels that memorax must not reach: one for each way in which a `forbid` can be violated.
fn forbidden(program: &Program, labels: &[Vec<String>]) -> Result<Vec<String>, Diagnostic> {
    let mut vectors = Vec::new();
    for property in &program.properties {
        let formula = match &property.kind {
            PropertyKind::Never(formula) => formula,
            PropertyKind::Assertions => continue,
            PropertyKind::NoDeadlock => return Err(cannot(FORMAT, "freedom from deadlock", property.span)),
            PropertyKind::Finally(..) => {
                return Err(cannot(FORMAT, "a property of final states", property.span));
            }
        };
        for ways in alternatives(formula, property.span)? {
            vectors.extend(expand(&ways, labels));
            if vectors.len() > VECTOR_LIMIT {
                return Err(cannot(FORMAT, "so many forbidden combinations", property.span));
            }
        }
    }
    if vectors.is_empty() {
        let message = "a memorax program needs a `forbid`";
        return Err(Diagnostic::new(Span::default(), message));
    }
    Ok(vectors)
}

/// A conjunction: for each thread in it, the set of locations at which the thread must be.
type Conjunction<'f> = Vec<(ThreadId, &'f [LocationId])>;

/// The formula as a disjunction of conjunctions; an error if it is about anything but the locations of threads, or if there are too many
/// conjunctions.
fn alternatives(formula: &Formula, span: Span) -> Result<Vec<Conjunction<'_>>, Diagnostic> {
    match formula {
        Expr::Const(value) => Ok(if *value != 0 { vec![Vec::new()] } else { Vec::new() }),
        Expr::Leaf(Observable::At(thread, locations)) => Ok(vec![vec![(*thread, locations)]]),
        Expr::Binary(BinaryOp::Or, left, right) => {
            let mut all = alternatives(left, span)?;
            all.append(&mut alternatives(right, span)?);
            Ok(all)
        }
        Expr::Binary(BinaryOp::And, left, right) => {
            let (left, right) = (alternatives(left, span)?, alternatives(right, span)?);
            if left.len().saturating_mul(right.len()) > VECTOR_LIMIT {
                return Err(cannot(FORMAT, "so many forbidden combinations", span));
            }
            let both = left.iter().flat_map(|l| right.iter().map(move |r| [l.as_slice(), r].concat()));
            Ok(both.collect())
        }
        _ => Err(cannot(FORMAT, "a property of anything but places in threads", span)),
    }
}

/// The vectors for one conjunction: a thread with several possible locations yields several vectors.
fn expand(conjunction: &Conjunction<'_>, labels: &[Vec<String>]) -> Vec<String> {
    // The possible locations of each thread; `None` if the conjunction does not restrict the thread.
    let mut possible: Vec<Option<Vec<LocationId>>> = vec![None; labels.len()];
    for (thread, locations) in conjunction {
        let so_far = &mut possible[thread.index()];
        *so_far = Some(match so_far {
            None => locations.to_vec(),
            Some(so_far) => so_far.iter().filter(|l| locations.contains(l)).copied().collect(),
        });
    }
    let mut vectors = vec![String::new()];
    for (thread, possible) in possible.iter().enumerate() {
        let entries: Vec<&str> = match possible {
            None => vec!["*"],
            Some(places) => places.iter().map(|l| labels[thread][l.index()].as_str()).collect(),
        };
        let extend = |vector: &String| {
            entries.iter().map(|e| format!("{vector} {e}").trim_start().to_owned()).collect::<Vec<_>>()
        };
        vectors = vectors.iter().flat_map(extend).take(VECTOR_LIMIT + 1).collect();
    }
    vectors
}

/// The difference between the number of the global for a cell of a variable and the index of this cell.
fn pointer_offset(variable: &Variable) -> i128 {
    i128::from(variable.base) - variable.indices.map_or(0, |range| i128::from(range.low))
}
