//! Programs as x86 litmus tests: threads without branches over scalars and constants, and one property of final states.

use std::collections::HashMap;
use std::fmt::Write as _;

use fencewright_program::{
    Action, Address, BinaryOp, Expr, Formula, Observable, Op, Program, PropertyKind, Quantifier, RegisterId,
    Span, Thread, UnaryOp,
};

use super::liveness::Liveness;
use super::{cannot, initial_value, only_integers, outgoing};
use crate::diagnostic::Diagnostic;
use crate::import::names::Names;

const FORMAT: &str = "litmus";

/// The registers of a thread, in the order in which they are given out.
const REGISTERS: [&str; 14] =
    ["EAX", "EBX", "ECX", "EDX", "ESI", "EDI", "R8D", "R9D", "R10D", "R11D", "R12D", "R13D", "R14D", "R15D"];

/// Writes a program as a litmus test of this name, or says what cannot be written so.
pub fn litmus(program: &Program, name: &str) -> Result<String, Vec<Diagnostic>> {
    export(program, name).map_err(|diagnostic| vec![diagnostic])
}

fn export(program: &Program, name: &str) -> Result<String, Diagnostic> {
    only_integers(program, FORMAT)?;
    if let Some(variable) = program.variables.iter().find(|v| v.range.is_some()) {
        return Err(cannot(FORMAT, &format!("that `{}` has a range", variable.name), variable.span));
    }
    let mut names = Names::default();
    REGISTERS.iter().for_each(|r| drop(names.fresh(r, "x", "_")));
    let cells: Vec<String> = (0..program.cells() as u32)
        .map(|c| names.fresh(program.cell_name(c).trim_end_matches(']'), "x", "_"))
        .collect();
    let mut init = String::new();
    for variable in &program.variables {
        for (cell, start) in variable.cells().zip(&variable.init) {
            let unknown =
                || cannot(FORMAT, &format!("that `{}` starts with any value", variable.name), variable.span);
            let value = initial_value(*start).ok_or_else(unknown)?;
            let _ = write!(init, " {}={value};", cells[cell]);
        }
    }
    let mut columns = Vec::new();
    let mut registers = Vec::new();
    for (number, thread) in program.threads.iter().enumerate() {
        let mut column = Column {
            program,
            thread,
            cells: &cells,
            registers: HashMap::new(),
            live: Liveness::of(thread),
            code: Vec::new(),
        };
        column.instructions()?;
        columns.push(column.code);
        let mut named: Vec<(RegisterId, &str)> = column.registers.into_iter().collect();
        named.sort_unstable();
        registers.push(named);
        for (id, name) in &registers[number] {
            let Some(register) = thread.registers.get(id.index()) else { continue };
            let unknown = || {
                cannot(
                    FORMAT,
                    &format!("that register `{}` starts with any value", register.name),
                    Span::default(),
                )
            };
            match initial_value(register.init).ok_or_else(unknown)? {
                0 => {}
                value => drop(write!(init, " {number}:{name}={value};")),
            }
        }
    }
    let condition = condition(program, &cells, &mut registers)?;
    // A name is one word.
    let name: String = name.split_whitespace().collect::<Vec<_>>().join("_");
    Ok(format!("X86 {name}\n{{{init} }}\n{}{condition}\n", table(&columns)))
}

/// The program, one column for each thread.
fn table(columns: &[Vec<String>]) -> String {
    let mut columns: Vec<Vec<&str>> =
        columns.iter().map(|c| c.iter().map(String::as_str).collect()).collect();
    let headers: Vec<String> = (0..columns.len()).map(|n| format!("P{n}")).collect();
    columns.iter_mut().zip(&headers).for_each(|(column, header)| column.insert(0, header));
    let widths: Vec<usize> = columns.iter().map(|c| c.iter().map(|i| i.len()).max().unwrap_or(0)).collect();
    let rows = columns.iter().map(Vec::len).max().unwrap_or(0);
    let mut text = String::new();
    for row in 0..rows {
        let cell =
            |(column, width): (&Vec<&str>, &usize)| format!(" {:width$} ", column.get(row).unwrap_or(&""));
        let cells: Vec<String> = columns.iter().zip(&widths).map(cell).collect();
        let _ = writeln!(text, "{};", cells.join("|"));
    }
    text
}

struct Column<'p> {
    program: &'p Program,
    thread: &'p Thread,
    cells: &'p [String],
    registers: HashMap<RegisterId, &'static str>,
    live: Liveness,
    code: Vec<String>,
}

impl Column<'_> {
    fn instructions(&mut self) -> Result<(), Diagnostic> {
        let mut at = self.thread.entry.index();
        for _ in 0..=self.thread.edges.len() {
            let edge = match outgoing(self.thread, at) {
                [] => return Ok(()),
                [only] => only,
                [first, ..] => return Err(cannot(FORMAT, "a choice", first.span)),
            };
            let span = edge.span;
            match &edge.action {
                Action::Op(op) => self.operation(op, span)?,
                Action::Fence => self.code.push("MFENCE".to_owned()),
                Action::StoreFence => self.code.push("SFENCE".to_owned()),
                Action::Lock => return Err(cannot(FORMAT, "`lock`", span)),
                Action::Unlock => return Err(cannot(FORMAT, "`unlock`", span)),
                Action::Atomic { ops, drains: true } => self.atomic(ops, edge.to.index(), span)?,
                Action::Atomic { drains: false, .. } => return Err(cannot(FORMAT, "`snapshot`", span)),
            }
            at = edge.to.index();
        }
        let span = self.thread.edges.first().map_or(Span::default(), |e| e.span);
        Err(cannot(FORMAT, "a loop", span))
    }

    fn operation(&mut self, op: &Op, span: Span) -> Result<(), Diagnostic> {
        match op {
            Op::Skip => self.code.push("NOP".to_owned()),
            Op::Assign(target, value) => self.assign(*target, value, span)?,
            Op::Load(target, address) => {
                let (register, cell) = (self.register(*target, span)?, self.cell(address, span)?);
                self.code.push(format!("MOV {register},[{cell}]"));
            }
            Op::Store(address, value) => {
                let (cell, source) = (self.cell(address, span)?, self.source(value, span)?);
                self.code.push(format!("MOV [{cell}],{source}"));
            }
            Op::Havoc(..) => return Err(cannot(FORMAT, "`*`", span)),
            Op::Assume(_) => return Err(cannot(FORMAT, "a condition", span)),
            Op::Assert(_) => return Err(cannot(FORMAT, "`assert`", span)),
        }
        Ok(())
    }

    /// `r = e` for a register or number `e`, or `r = r op e`.
    fn assign(&mut self, target: RegisterId, value: &Expr<RegisterId>, span: Span) -> Result<(), Diagnostic> {
        let register = self.register(target, span)?;
        if let Expr::Binary(op, left, right) = value
            && **left == Expr::Leaf(target)
        {
            let mnemonic = match op {
                BinaryOp::Add => "ADD",
                BinaryOp::Sub => "SUB",
                BinaryOp::BitAnd => "AND",
                BinaryOp::BitOr => "OR",
                BinaryOp::BitXor => "XOR",
                _ => return Err(cannot(FORMAT, &format!("the operator `{}`", op.symbol()), span)),
            };
            let source = self.source(right, span)?;
            self.code.push(format!("{mnemonic} {register},{source}"));
            return Ok(());
        }
        if *value == Expr::unary(UnaryOp::Neg, Expr::Leaf(target)) {
            self.code.push(format!("NEG {register}"));
            return Ok(());
        }
        let source = self.source(value, span)?;
        self.code.push(format!("MOV {register},{source}"));
        Ok(())
    }

    /// Exchanges with memory: the register that takes the old value first holds the new one, or what is added.
    fn atomic(&mut self, ops: &[Op], to: usize, span: Span) -> Result<(), Diagnostic> {
        let [Op::Load(old, from), Op::Store(into, value), rest @ ..] = ops else {
            return Err(cannot(FORMAT, "this atomic step", span));
        };
        let cell = self.cell(from, span)?;
        if from != into {
            return Err(cannot(FORMAT, "an atomic step on two locations", span));
        }
        let (added, mnemonic) = match value {
            Expr::Binary(BinaryOp::Add, left, right) if **left == Expr::Leaf(*old) => (&**right, "LOCK XADD"),
            Expr::Binary(BinaryOp::Add, left, right) if **right == Expr::Leaf(*old) => (&**left, "LOCK XADD"),
            other => (other, "XCHG"),
        };
        if *added == Expr::Leaf(*old) {
            return Err(cannot(FORMAT, "this atomic step", span));
        }
        // `r = swap(x, r)` needs no register in between.
        let (register, rest) = match (added, rest) {
            (Expr::Leaf(own), [Op::Assign(target, Expr::Leaf(loaded))])
                if own == target && loaded == old && !self.live.is_live(to, *old) =>
            {
                (self.register(*own, span)?, &[][..])
            }
            _ => {
                let (register, source) = (self.register(*old, span)?, self.source(added, span)?);
                self.code.push(format!("MOV {register},{source}"));
                (register, rest)
            }
        };
        self.code.push(format!("{mnemonic} [{cell}],{register}"));
        for op in rest {
            match op {
                Op::Assign(target, value) => self.assign(*target, value, span)?,
                Op::Skip => {}
                _ => return Err(cannot(FORMAT, "this atomic step", span)),
            }
        }
        Ok(())
    }

    /// A register or a number.
    fn source(&mut self, value: &Expr<RegisterId>, span: Span) -> Result<String, Diagnostic> {
        match (value, value.constant()) {
            (Expr::Leaf(register), _) => Ok(self.register(*register, span)?.to_owned()),
            (_, Some(number)) => Ok(format!("${number}")),
            _ => Err(cannot(FORMAT, "a computation as an operand", span)),
        }
    }

    fn cell(&self, address: &Address, span: Span) -> Result<String, Diagnostic> {
        let variable = &self.program.variables[address.variable.index()];
        let cell = match (&address.index, variable.indices) {
            (Some(index), Some(range)) => {
                let index = index.constant().ok_or_else(|| cannot(FORMAT, "a computed index", span))?;
                if !range.contains(index) {
                    return Err(cannot(FORMAT, "an index outside the array", span));
                }
                variable.base as usize + (index - range.low) as usize
            }
            _ => variable.base as usize,
        };
        Ok(self.cells[cell].clone())
    }

    fn register(&mut self, register: RegisterId, span: Span) -> Result<&'static str, Diagnostic> {
        let declared = &self.thread.registers[register.index()];
        if declared.range.is_some() {
            return Err(cannot(FORMAT, &format!("that register `{}` has a range", declared.name), span));
        }
        name_register(register, self.thread, &mut self.registers)
            .ok_or_else(|| cannot(FORMAT, "so many registers in one thread", span))
    }
}

/// The x86 register for a register: its own name if that is one, else the first that is free and no register's own name.
fn name_register(
    register: RegisterId,
    thread: &Thread,
    given: &mut HashMap<RegisterId, &'static str>,
) -> Option<&'static str> {
    if let Some(name) = given.get(&register) {
        return Some(name);
    }
    let own = &thread.registers[register.index()].name;
    let free = |name: &&&str| {
        !given.values().any(|taken| taken == *name) && !thread.registers.iter().any(|r| r.name == **name)
    };
    let name = REGISTERS.iter().find(|r| *r == own).or_else(|| REGISTERS.iter().find(free))?;
    given.insert(register, name);
    Some(name)
}

/// The one property of final states.
fn condition(
    program: &Program,
    cells: &[String],
    registers: &mut [Vec<(RegisterId, &'static str)>],
) -> Result<String, Diagnostic> {
    let mut found = None;
    for property in &program.properties {
        match &property.kind {
            PropertyKind::Finally(quantifier, formula) if found.is_none() => {
                found = Some((*quantifier, formula, property.span));
            }
            PropertyKind::Finally(..) => return Err(cannot(FORMAT, "a second property", property.span)),
            PropertyKind::Never(_) => return Err(cannot(FORMAT, "a property of all states", property.span)),
            PropertyKind::NoDeadlock => return Err(cannot(FORMAT, "freedom from deadlock", property.span)),
            PropertyKind::Assertions => {}
        }
    }
    let Some((quantifier, formula, span)) = found else {
        return Err(Diagnostic::new(Span::default(), "a litmus test needs a `finally` property"));
    };
    let quantifier = match quantifier {
        Quantifier::Exists => "exists",
        Quantifier::Never => "~exists",
        Quantifier::Forall => "forall",
    };
    Ok(format!("{quantifier} ({})", proposition(program, formula, cells, registers, span)?))
}

fn proposition(
    program: &Program,
    formula: &Formula,
    cells: &[String],
    registers: &mut [Vec<(RegisterId, &'static str)>],
    span: Span,
) -> Result<String, Diagnostic> {
    let mut part = |f: &Formula| proposition(program, f, cells, registers, span);
    Ok(match formula {
        Expr::Const(value) => (if *value != 0 { "true" } else { "false" }).to_owned(),
        Expr::Unary(UnaryOp::Not, operand) => format!("~({})", part(operand)?),
        Expr::Binary(BinaryOp::And, left, right) => format!("({}) /\\ ({})", part(left)?, part(right)?),
        Expr::Binary(BinaryOp::Or, left, right) => format!("({}) \\/ ({})", part(left)?, part(right)?),
        Expr::Binary(op @ (BinaryOp::Eq | BinaryOp::Ne), left, right) => {
            let symbol = if *op == BinaryOp::Eq { "=" } else { "<>" };
            let (leaf, value) = match (&**left, &**right) {
                (Expr::Leaf(leaf), value) | (value, Expr::Leaf(leaf)) => (leaf, value.constant()),
                _ => return Err(cannot(FORMAT, "such a condition", span)),
            };
            let value = value.ok_or_else(|| cannot(FORMAT, "a comparison of two variables", span))?;
            format!("{}{symbol}{value}", observable(program, leaf, cells, registers, span)?)
        }
        Expr::Leaf(leaf) => format!("{}<>0", observable(program, leaf, cells, registers, span)?),
        _ => return Err(cannot(FORMAT, "such a condition", span)),
    })
}

fn observable(
    program: &Program,
    leaf: &Observable,
    cells: &[String],
    registers: &mut [Vec<(RegisterId, &'static str)>],
    span: Span,
) -> Result<String, Diagnostic> {
    match leaf {
        Observable::Memory(cell) => Ok(cells[*cell as usize].clone()),
        Observable::At(..) => Err(cannot(FORMAT, "where a thread is", span)),
        Observable::Register(thread, register) => {
            let declared = &program.thread(*thread).registers[register.index()];
            let column = &mut registers[thread.index()];
            let mut given: HashMap<RegisterId, &'static str> = column.iter().copied().collect();
            let is_new = !given.contains_key(register);
            if is_new && initial_value(declared.init) != Some(0) {
                return Err(cannot(
                    FORMAT,
                    "a register that no instruction uses but that starts otherwise than 0",
                    span,
                ));
            }
            let name = name_register(*register, program.thread(*thread), &mut given)
                .ok_or_else(|| cannot(FORMAT, "so many registers in one thread", span))?;
            if is_new {
                column.push((*register, name));
            }
            Ok(format!("{}:{name}", thread.0))
        }
    }
}
