//! Exports programs as x86 litmus tests. A program can be exported only if its threads have no branches, all its array indices are constants, and it
//! has exactly one property besides `assertions`, which is about final states.
//!
//! Numbers in a program are mathematical integers, those of a litmus test have a width. Every instruction runs at most once, so the constants of the
//! program bound its values: if 32 bits suffice, the test is for `X86`; otherwise, if 64 bits suffice or the program does not compute, for `X86_64`
//! with locations and registers of 64 bits.

use std::collections::HashMap;
use std::fmt::Write as _;

use fencewright_front_end::export::{cannot, initial_value, only_integers};
use fencewright_fw::names::Names;
use fencewright_program::{
    Action, Address, BinaryOp, Expr, Formula, Observable, Op, Program, PropertyKind, Quantifier, RegisterId,
    Span, Thread, UnaryOp,
};
use fencewright_text::Diagnostic;

use super::import::{self, is_x86_register};
use crate::export::{outgoing, readable};
use crate::liveness::Liveness;

const FORMAT: &str = "litmus";

/// The x86 registers, in the order in which they are allocated to the registers of a thread, each with its 32-bit and its 64-bit name.
const REGISTERS: [(&str, &str); 14] = [
    ("EAX", "rax"),
    ("EBX", "rbx"),
    ("ECX", "rcx"),
    ("EDX", "rdx"),
    ("ESI", "rsi"),
    ("EDI", "rdi"),
    ("R8D", "r8"),
    ("R9D", "r9"),
    ("R10D", "r10"),
    ("R11D", "r11"),
    ("R12D", "r12"),
    ("R13D", "r13"),
    ("R14D", "r14"),
    ("R15D", "r15"),
];

/// Writes a program as a litmus test with this name; the errors say what cannot be expressed.
pub fn litmus(program: &Program, name: &str) -> Result<String, Vec<Diagnostic>> {
    let text = export(program, name).map_err(|diagnostic| vec![diagnostic])?;
    readable(text, FORMAT, import::litmus)
}

/// The syntax of a litmus test.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Syntax {
    /// `X86`: values of 32 bits; an instruction names its target first.
    Narrow,
    /// `X86_64`: values of 64 bits; an instruction names its source first.
    Wide,
}

impl Syntax {
    fn of(program: &Program) -> Result<Self, Diagnostic> {
        let sizes = Sizes::of(program);
        match sizes.magnitude() {
            Some(magnitude) if magnitude < 1 << 30 => Ok(Syntax::Narrow),
            Some(magnitude) if magnitude < 1 << 63 => Ok(Syntax::Wide),
            _ if !sizes.computes => Ok(Syntax::Wide),
            _ => Err(cannot(FORMAT, "numbers that may need more than 64 bits", Span::default())),
        }
    }

    fn register(self, number: usize) -> String {
        match self {
            Syntax::Narrow => REGISTERS[number].0.to_owned(),
            Syntax::Wide => format!("%{}", REGISTERS[number].1),
        }
    }

    fn memory(self, location: &str) -> String {
        match self {
            Syntax::Narrow => format!("[{location}]"),
            Syntax::Wide => format!("({location})"),
        }
    }

    fn one(self, mnemonic: &str, target: &str) -> String {
        match self {
            Syntax::Narrow => format!("{mnemonic} {target}"),
            Syntax::Wide => format!("{}q {target}", mnemonic.to_ascii_lowercase()),
        }
    }

    fn two(self, mnemonic: &str, target: &str, source: &str) -> String {
        match self {
            Syntax::Narrow => format!("{mnemonic} {target},{source}"),
            Syntax::Wide => format!("{}q {source},{target}", mnemonic.to_ascii_lowercase()),
        }
    }

    /// The type in front of a declaration.
    fn declared(self) -> &'static str {
        match self {
            Syntax::Narrow => "",
            Syntax::Wide => "int64_t ",
        }
    }
}

/// Collects an upper bound on the values of a program in which every step is executed at most once.
#[derive(Default)]
struct Sizes {
    largest: u128,
    /// An upper bound on the total amount that operations add to a value: the sum of the magnitudes of their constant operands, plus 1 for each
    /// operation.
    added: u128,
    /// The number of binary operations, each of which may double a value.
    doubled: u32,
    /// Whether the program contains arithmetic.
    computes: bool,
}

impl Sizes {
    fn of(program: &Program) -> Self {
        let mut sizes = Sizes::default();
        let cells = program.variables.iter().flat_map(|v| &v.init);
        let registers = program.threads.iter().flat_map(|t| &t.registers).map(|r| &r.init);
        cells.chain(registers).filter_map(|init| initial_value(*init)).for_each(|v| sizes.constant(v));
        for property in &program.properties {
            if let Some(formula) = property.formula() {
                let mut compared = Sizes::default();
                compared.expression(formula);
                sizes.largest = sizes.largest.max(compared.largest);
            }
        }
        for op in program.threads.iter().flat_map(|t| &t.edges).flat_map(|e| e.action.ops()) {
            if let Op::Assign(_, value) | Op::Store(_, value) = op {
                sizes.expression(value);
            }
        }
        sizes
    }

    fn constant(&mut self, value: i64) {
        self.largest = self.largest.max(value.unsigned_abs().into());
    }

    fn expression<L>(&mut self, expression: &Expr<L>) {
        if let Some(value) = expression.constant() {
            return self.constant(value);
        }
        match expression {
            Expr::Const(_) | Expr::Leaf(_) => {}
            Expr::Unary(_, operand) => {
                self.computes = true;
                self.expression(operand);
            }
            Expr::If(condition, then, otherwise) => {
                self.computes = true;
                [condition, then, otherwise].into_iter().for_each(|part| self.expression(part));
            }
            Expr::Binary(_, left, right) => {
                self.computes = true;
                match (left.constant(), right.constant()) {
                    (Some(value), _) | (_, Some(value)) => {
                        self.added = self.added.saturating_add(value.unsigned_abs().into());
                    }
                    _ => {}
                }
                // The result of a bitwise operation is less than twice the larger operand.
                self.added = self.added.saturating_add(1);
                self.doubled = self.doubled.saturating_add(1);
                self.expression(left);
                self.expression(right);
            }
        }
    }

    /// The upper bound, which is reached if all additions precede all doublings; `None` if it does not fit 128 bits.
    fn magnitude(&self) -> Option<u128> {
        let most = self.largest.checked_add(self.added)?;
        most.checked_shl(self.doubled).filter(|m| m >> self.doubled == most)
    }
}

fn export(program: &Program, name: &str) -> Result<String, Diagnostic> {
    only_integers(program, FORMAT)?;
    if program.threads.is_empty() {
        return Err(cannot(FORMAT, "a program without threads", Span::default()));
    }
    if let Some(variable) = program.variables.iter().find(|v| v.range.is_some()) {
        return Err(cannot(FORMAT, &format!("that `{}` has a range", variable.name), variable.span));
    }
    let syntax = Syntax::of(program)?;
    let mut names = Names::default();
    let cells: Vec<String> = (0..program.cells() as u32)
        .map(|c| {
            let name = program.cell_name(c).trim_end_matches(']').to_owned();
            let name = if is_x86_register(&name) { name + "_" } else { name };
            names.fresh(&name, "x", "_")
        })
        .collect();
    let mut init = String::new();
    for variable in &program.variables {
        for (cell, start) in variable.cells().zip(&variable.init) {
            let unknown =
                || cannot(FORMAT, &format!("that `{}` starts with any value", variable.name), variable.span);
            let value = initial_value(*start).ok_or_else(unknown)?;
            let _ = write!(init, " {}{}={value};", syntax.declared(), cells[cell]);
        }
    }
    let mut columns = Vec::new();
    let mut registers = Vec::new();
    for thread in &program.threads {
        let mut column = Column {
            program,
            thread,
            syntax,
            cells: &cells,
            registers: HashMap::new(),
            live: Liveness::of(thread),
            code: Vec::new(),
        };
        column.instructions()?;
        columns.push(column.code);
        registers.push(column.registers);
    }
    let condition = condition(program, &cells, syntax, &mut registers)?;
    for (number, (thread, registers)) in program.threads.iter().zip(&registers).enumerate() {
        let mut named: Vec<(RegisterId, usize)> = registers.iter().map(|(id, name)| (*id, *name)).collect();
        named.sort_unstable();
        for (id, name) in named {
            let register = &thread.registers[id.index()];
            let unknown = || {
                let what = format!("that register `{}` starts with any value", register.name);
                cannot(FORMAT, &what, Span::default())
            };
            let value = initial_value(register.init).ok_or_else(unknown)?;
            if value != 0 || syntax == Syntax::Wide {
                let name = syntax.register(name);
                let name = name.trim_start_matches('%');
                let _ = write!(init, " {}{number}:{name}={value};", syntax.declared());
            }
        }
    }
    // The name of a test is a single word and must not open a comment.
    let allowed = |c: char| if c.is_ascii_alphanumeric() || "+-._".contains(c) { c } else { '_' };
    let name: String = name.chars().map(allowed).collect();
    let architecture = if syntax == Syntax::Wide { "X86_64" } else { "X86" };
    Ok(format!("{architecture} {name}\n{{{init} }}\n{}{condition}\n", table(&columns)))
}

/// The instructions as the table of a litmus test, with one column for each thread.
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
    syntax: Syntax,
    cells: &'p [String],
    /// The x86 registers given to the registers of the thread, as indices of [`REGISTERS`].
    registers: HashMap<RegisterId, usize>,
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
                self.code.push(self.syntax.two("MOV", &register, &cell));
            }
            Op::Store(address, value) => {
                let (cell, source) = (self.cell(address, span)?, self.source(value, span)?);
                self.code.push(self.syntax.two("MOV", &cell, &source));
            }
            Op::Havoc(..) => return Err(cannot(FORMAT, "`*`", span)),
            Op::Assume(_) => return Err(cannot(FORMAT, "a condition", span)),
            Op::Assert(..) => return Err(cannot(FORMAT, "`assert`", span)),
        }
        Ok(())
    }

    /// Writes `r = e` for a register or number `e`, `r = r op e`, or `r = -r`.
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
            self.code.push(self.syntax.two(mnemonic, &register, &source));
            return Ok(());
        }
        if *value == Expr::unary(UnaryOp::Neg, Expr::Leaf(target)) {
            self.code.push(self.syntax.one("NEG", &register));
            return Ok(());
        }
        let source = self.source(value, span)?;
        self.code.push(self.syntax.two("MOV", &register, &source));
        Ok(())
    }

    /// Writes an atomic step as XCHG or LOCK XADD. Before this instruction its register holds the value to store, or the summand; after it, the old
    /// value of the location.
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
        // `r = swap(x, r)` needs no intermediate register.
        let (register, rest) = match (added, rest) {
            (Expr::Leaf(own), [Op::Assign(target, Expr::Leaf(loaded))])
                if own == target && loaded == old && !self.live.is_live(to, *old) =>
            {
                (self.register(*own, span)?, &[][..])
            }
            _ => {
                let (register, source) = (self.register(*old, span)?, self.source(added, span)?);
                self.code.push(self.syntax.two("MOV", &register, &source));
                (register, rest)
            }
        };
        self.code.push(self.syntax.two(mnemonic, &cell, &register));
        for op in rest {
            match op {
                Op::Assign(target, value) => self.assign(*target, value, span)?,
                Op::Skip => {}
                _ => return Err(cannot(FORMAT, "this atomic step", span)),
            }
        }
        Ok(())
    }

    /// A register or number as the source operand of an instruction.
    fn source(&mut self, value: &Expr<RegisterId>, span: Span) -> Result<String, Diagnostic> {
        match (value, value.constant()) {
            (Expr::Leaf(register), _) => self.register(*register, span),
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
        Ok(self.syntax.memory(&self.cells[cell]))
    }

    fn register(&mut self, register: RegisterId, span: Span) -> Result<String, Diagnostic> {
        let declared = &self.thread.registers[register.index()];
        if declared.range.is_some() {
            return Err(cannot(FORMAT, &format!("that register `{}` has a range", declared.name), span));
        }
        name_register(register, self.thread, &mut self.registers)
            .map(|name| self.syntax.register(name))
            .ok_or_else(|| cannot(FORMAT, "so many registers in one thread", span))
    }
}

/// The x86 register for a register of the program: the one whose name of 32 bits is the name of the register, otherwise the first free one whose name
/// no register of the thread has. `None` if no x86 register is left.
fn name_register(
    register: RegisterId,
    thread: &Thread,
    given: &mut HashMap<RegisterId, usize>,
) -> Option<usize> {
    if let Some(name) = given.get(&register) {
        return Some(*name);
    }
    let own = &thread.registers[register.index()].name;
    let free = |number: &usize| {
        let name = REGISTERS[*number].0;
        !given.values().any(|taken| taken == number) && !thread.registers.iter().any(|r| r.name == name)
    };
    let name = REGISTERS.iter().position(|(r, _)| r == own).or_else(|| (0..REGISTERS.len()).find(free))?;
    given.insert(register, name);
    Some(name)
}

/// The condition of the test, from the only property of final states.
fn condition(
    program: &Program,
    cells: &[String],
    syntax: Syntax,
    registers: &mut [HashMap<RegisterId, usize>],
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
    Ok(format!("{quantifier} ({})", proposition(program, formula, cells, syntax, registers, span)?))
}

fn proposition(
    program: &Program,
    formula: &Formula,
    cells: &[String],
    syntax: Syntax,
    registers: &mut [HashMap<RegisterId, usize>],
    span: Span,
) -> Result<String, Diagnostic> {
    let mut part = |f: &Formula| proposition(program, f, cells, syntax, registers, span);
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
            format!("{}{symbol}{value}", observable(program, leaf, cells, syntax, registers, span)?)
        }
        Expr::Leaf(leaf) => format!("{}<>0", observable(program, leaf, cells, syntax, registers, span)?),
        _ => return Err(cannot(FORMAT, "such a condition", span)),
    })
}

fn observable(
    program: &Program,
    leaf: &Observable,
    cells: &[String],
    syntax: Syntax,
    registers: &mut [HashMap<RegisterId, usize>],
    span: Span,
) -> Result<String, Diagnostic> {
    match leaf {
        Observable::Memory(cell) => Ok(format!("[{}]", cells[*cell as usize])),
        Observable::At(..) => Err(cannot(FORMAT, "where a thread is", span)),
        Observable::Register(thread, register) => {
            let given = &mut registers[thread.index()];
            let name = name_register(*register, program.thread(*thread), given)
                .ok_or_else(|| cannot(FORMAT, "so many registers in one thread", span))?;
            Ok(format!("{}:{}", thread.0, syntax.register(name).trim_start_matches('%')))
        }
    }
}
