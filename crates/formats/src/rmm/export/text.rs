//! Writes one thread as the text of a memorax process: a labelled statement for each location except the fault location, with a jump for every edge.

use std::fmt::Write as _;

use fencewright_front_end::export::cannot;
use fencewright_fw::names::Names;
use fencewright_kit::accesses::written_register;
use fencewright_program::{
    Action, Address, BinaryOp, Edge, Expr, Init, Op, Program, Range, RegisterId, Span, Thread, UnaryOp,
};
use fencewright_text::Diagnostic;

use super::{FORMAT, pointer_offset};
use crate::export::{CHOICE_LIMIT, checked_range, choices, outgoing, register_names};

/// Writes a process; also returns whether the process writes the cell `drain` to empty its buffer.
pub(super) fn write_process(
    program: &Program,
    thread: &Thread,
    labels: &[String],
    cells: &[String],
    drain: &str,
) -> Result<(String, bool), Diagnostic> {
    let registers = register_names(thread, &mut Names::default());
    let mut writer = Writer { program, thread, labels, cells, drain, registers, uses_drain: false };
    let mut text = "\nprocess\n".to_owned();
    let mut chosen = Vec::new();
    if !thread.registers.is_empty() {
        text += "registers\n";
    }
    for (register, name) in thread.registers.iter().zip(&writer.registers) {
        let init = match (register.init, choices_of(register.init)) {
            (Init::Value(value), _) => value.to_string(),
            (Init::Any(None), _) => "*".to_owned(),
            (_, Some(values)) => {
                chosen.push((name.clone(), values));
                "0".to_owned()
            }
            _ => {
                let message = format!("how register `{}` of `{}` starts", register.name, thread.name);
                return Err(cannot(FORMAT, &message, Span::default()));
            }
        };
        let _ = writeln!(text, "  ${name} = {init} : Z");
    }
    text += "text\n";
    for (name, values) in chosen {
        let ways: Vec<String> = values.map(|v| format!("${name} := {v}")).collect();
        let _ = writeln!(text, "  either {{ {} }};", ways.join(" or "));
    }
    let entry = thread.entry.index();
    let order = std::iter::once(entry).chain((0..thread.locations.len()).filter(|&l| l != entry));
    let mut lines = Vec::new();
    for location in order.filter(|&l| l != thread.fault.index()) {
        let ways = outgoing(thread, location).iter().map(|edge| writer.edge(edge));
        let ways: Vec<String> = ways.collect::<Result<Vec<Vec<String>>, _>>()?.concat();
        let label = &labels[location];
        lines.push(match ways.as_slice() {
            [] => format!("{label}: assume: false"),
            [only] => format!("{label}: {only}"),
            several => format!("{label}: either {{\n    {}\n  }}", several.join("\n  or\n    ")),
        });
    }
    text += &lines.join(";\n");
    text.push('\n');
    Ok((text, writer.uses_drain))
}

fn choices_of(init: Init) -> Option<std::ops::RangeInclusive<i64>> {
    match init {
        Init::Value(_) => None,
        Init::Any(range) => choices(range),
    }
}

struct Writer<'p> {
    program: &'p Program,
    thread: &'p Thread,
    labels: &'p [String],
    cells: &'p [String],
    drain: &'p str,
    registers: Vec<String>,
    uses_drain: bool,
}

impl Writer<'_> {
    /// The alternatives for an edge, each a sequence that ends with a jump.
    fn edge(&mut self, edge: &Edge) -> Result<Vec<String>, Diagnostic> {
        let jump = format!("goto {}", self.labels[edge.to.index()]);
        let sequences = match &edge.action {
            Action::Op(op) => self.ways(op, false, edge.span)?,
            Action::Fence => vec!["fence".to_owned()],
            Action::StoreFence => vec!["ssfence".to_owned()],
            Action::Lock => return Err(cannot(FORMAT, "`lock`", edge.span)),
            Action::Unlock => return Err(cannot(FORMAT, "`unlock`", edge.span)),
            Action::Atomic { ops, drains } => vec![self.locked(ops, *drains, edge.span)?],
        };
        Ok(sequences.into_iter().map(|sequence| format!("{sequence}; {jump}")).collect())
    }

    fn locked(&mut self, ops: &[Op], drains: bool, span: Span) -> Result<String, Diagnostic> {
        let mut sequences = vec![Vec::new()];
        for op in ops {
            let ways = self.ways(op, true, span)?;
            if ways.len() * sequences.len() > CHOICE_LIMIT as usize {
                return Err(cannot(FORMAT, "so many ways through an atomic step", span));
            }
            let extend = |sequence: &Vec<String>| {
                ways.iter()
                    .map(|way| [sequence.as_slice(), std::slice::from_ref(way)].concat())
                    .collect::<Vec<_>>()
            };
            sequences = sequences.iter().flat_map(extend).collect();
        }
        if drains && !ops.iter().any(|op| matches!(op, Op::Store(..))) {
            self.uses_drain = true;
            sequences.iter_mut().for_each(|s| s.push(format!("write: {} := 0", self.drain)));
        }
        let bodies: Vec<String> =
            sequences.iter().map(|s| if s.is_empty() { "nop".to_owned() } else { s.join("; ") }).collect();
        Ok(format!("locked {{ {} }}", bodies.join(" or ")))
    }

    /// The alternatives for an operation. An `assume` blocks the thread at values that would be faults.
    fn ways(&self, op: &Op, in_locked: bool, span: Span) -> Result<Vec<String>, Diagnostic> {
        let mut before = String::new();
        let mut after = String::new();
        if let Op::Load(_, Address { variable, index: Some(index) })
        | Op::Store(Address { variable, index: Some(index) }, _) = op
        {
            let variable = &self.program.variables[variable.index()];
            match (index.constant(), variable.indices) {
                (Some(index), Some(range)) if !range.contains(index) => {
                    return Ok(vec!["assume: false".to_owned()]);
                }
                (Some(_), _) | (None, None) => {}
                (None, Some(_)) if variable.open => {
                    return Err(cannot(FORMAT, "a computed index into an open array", span));
                }
                (None, Some(_)) if in_locked => {
                    return Err(cannot(FORMAT, "a computed index in an atomic step", span));
                }
                (None, Some(range)) => before += &inside(&self.arithmetic(index, span)?, range),
            }
        }
        match (checked_range(self.program, self.thread, op), written_register(op)) {
            (Some((range, Some(value))), _) => before += &inside(&self.arithmetic(value, span)?, range),
            (Some((range, None)), Some(register)) => {
                let check = inside(&format!("${}", self.registers[register.index()]), range);
                after = format!("; {}", check.trim_end_matches("; "));
            }
            _ => {}
        }
        let register = |r: &RegisterId| &self.registers[r.index()];
        let ways = match op {
            Op::Skip => vec!["nop".to_owned()],
            Op::Assign(target, value) => self.write(&format!("${}", register(target)), value, span)?,
            Op::Havoc(target, range) => {
                let values =
                    choices(*range).ok_or_else(|| cannot(FORMAT, "a `*` without a small range", span))?;
                values.map(|v| format!("${} := {v}", register(target))).collect()
            }
            Op::Assume(value) | Op::Assert(value, _) => {
                vec![format!("assume: {}", self.condition(value, span)?)]
            }
            Op::Load(target, address) => {
                vec![format!("read: ${} := {}", register(target), self.location(address, span)?)]
            }
            Op::Store(address, value) => {
                self.write(&format!("write: {}", self.location(address, span)?), value, span)?
            }
        };
        Ok(ways.into_iter().map(|way| format!("{before}{way}{after}")).collect())
    }

    /// The alternatives for writing a value. memorax computes only sums, so the writing of a truth value becomes two alternatives: one assumes the
    /// condition and writes 1, the other assumes its negation and writes 0.
    fn write(&self, target: &str, value: &Expr<RegisterId>, span: Span) -> Result<Vec<String>, Diagnostic> {
        let is_truth = match value {
            Expr::Unary(op, _) => *op == UnaryOp::Not,
            Expr::Binary(op, ..) => op.is_comparison() || matches!(op, BinaryOp::And | BinaryOp::Or),
            Expr::Const(_) | Expr::Leaf(_) | Expr::If(..) => false,
        };
        if !is_truth {
            return Ok(vec![format!("{target} := {}", self.arithmetic(value, span)?)]);
        }
        let condition = self.condition(value, span)?;
        Ok(vec![
            format!("assume: {condition}; {target} := 1"),
            format!("assume: not [{condition}]; {target} := 0"),
        ])
    }

    fn location(&self, address: &Address, span: Span) -> Result<String, Diagnostic> {
        let variable = &self.program.variables[address.variable.index()];
        let Some(index) = &address.index else { return Ok(self.cells[variable.base as usize].clone()) };
        let first = pointer_offset(variable);
        match index.constant() {
            // `ways` has handled constant indices outside the array, so this index lies in the array.
            Some(index) => Ok(self.cells[(first + i128::from(index)) as usize].clone()),
            None if first < 0 => Ok(format!("[{} - {}]", self.arithmetic(index, span)?, -first)),
            None => Ok(format!("[{} + {first}]", self.arithmetic(index, span)?)),
        }
    }

    /// An expression made of sums and differences; an error if it contains other operators.
    fn arithmetic(&self, expr: &Expr<RegisterId>, span: Span) -> Result<String, Diagnostic> {
        Ok(match expr {
            Expr::Const(value) => value.to_string(),
            Expr::Leaf(register) => format!("${}", self.registers[register.index()]),
            Expr::Unary(UnaryOp::Neg, operand) => format!("-({})", self.arithmetic(operand, span)?),
            Expr::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), left, right) => {
                let right = match &**right {
                    simple @ Expr::Leaf(_) => self.arithmetic(simple, span)?,
                    Expr::Const(value) if *value >= 0 => value.to_string(),
                    other => format!("({})", self.arithmetic(other, span)?),
                };
                format!("{} {} {right}", self.arithmetic(left, span)?, op.symbol())
            }
            _ => match expr.constant() {
                Some(value) => value.to_string(),
                None => return Err(cannot(FORMAT, "anything but sums and differences as a value", span)),
            },
        })
    }

    fn condition(&self, expr: &Expr<RegisterId>, span: Span) -> Result<String, Diagnostic> {
        Ok(match expr {
            Expr::Const(value) => (if *value != 0 { "true" } else { "false" }).to_owned(),
            Expr::Unary(UnaryOp::Not, operand) => format!("not [{}]", self.condition(operand, span)?),
            Expr::Binary(op @ (BinaryOp::And | BinaryOp::Or), left, right) => {
                format!(
                    "[{}] {} [{}]",
                    self.condition(left, span)?,
                    op.symbol(),
                    self.condition(right, span)?
                )
            }
            Expr::Binary(op, left, right) if op.is_comparison() => {
                let symbol = if *op == BinaryOp::Eq { "=" } else { op.symbol() };
                format!("{} {symbol} {}", self.arithmetic(left, span)?, self.arithmetic(right, span)?)
            }
            _ => format!("{} != 0", self.arithmetic(expr, span)?),
        })
    }
}

/// `assume` that a value lies in a range, followed by the separator.
fn inside(value: &str, range: Range) -> String {
    format!("assume: {value} >= {} && {value} <= {}; ", range.low, range.high)
}
