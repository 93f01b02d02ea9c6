//! Exports programs as trencher's automata.
//!
//! The number of a memory cell becomes its address; the cells of an open array have their indices as addresses. Trencher has no atomic steps, only a
//! lock. So a draining step is executed under the lock; if one of its conditions fails after a load, the thread releases the lock and restarts the
//! step. That is exact if the registers loaded so far are dead at the start of the step and nothing was stored; otherwise the export fails. It also
//! fails for a step with several loads that does not drain. `sfence` has no effect under TSO, the only memory model of trencher.

use std::fmt::Write as _;

use fencewright_front_end::export::{cannot, initial_value, only_integers};
use fencewright_fw::names::Names;
use fencewright_kit::accesses::written_register;
use fencewright_program::{
    Action, Address, BinaryOp, Edge, Expr, Init, LocationId, Op, Program, RegisterId, Span, Thread, UnaryOp,
};
use fencewright_text::Diagnostic;

use super::import;
use crate::export::{checked_range, choices, location_names, outgoing, readable, register_names};
use crate::liveness::Liveness;

const FORMAT: &str = "trencher";

/// Writes a program as automata of trencher; the errors say what cannot be expressed.
pub fn trencher(program: &Program) -> Result<String, Vec<Diagnostic>> {
    let text = export(program).map_err(|diagnostic| vec![diagnostic])?;
    readable(text, FORMAT, import::trencher)
}

fn export(program: &Program) -> Result<String, Diagnostic> {
    only_integers(program, FORMAT)?;
    let mut text = "# Memory layout:\n".to_owned();
    for variable in &program.variables {
        if let Some(cell) = variable.init.iter().position(|&init| initial_value(init) != Some(0)) {
            let name = program.cell_name(variable.base + cell as u32);
            return Err(cannot(FORMAT, &format!("that `{name}` does not start with 0"), variable.span));
        }
        if variable.open && program.variables.len() > 1 {
            return Err(cannot(FORMAT, "an open array beside other variables", variable.span));
        }
        let first = first_address(program, variable.base);
        let _ = match variable.indices {
            None => writeln!(text, "# {} : {first}", variable.name),
            Some(range) => {
                let last = first + i64::from(variable.init.len().saturating_sub(1) as u32);
                writeln!(text, "# {}[{}..={}] : {first} to {last}", variable.name, range.low, range.high)
            }
        };
    }
    let mut names = Names::default();
    for thread in &program.threads {
        let name = names.fresh(thread.name.trim_end_matches(']'), "t", "_");
        let mut scope = Names::default();
        let mut writer = Writer {
            program,
            thread,
            locations: location_names(thread, "q", |_| false),
            registers: register_names(thread, &mut scope),
            live: Liveness::of(thread),
            fresh: 0,
            out: String::new(),
        };
        writer.thread(&name)?;
        text += &writer.out;
    }
    Ok(text)
}

/// The address of the first cell of a variable: the number of this cell. If the only variable is an open array, its addresses are its indices
/// instead.
fn first_address(program: &Program, base: u32) -> i64 {
    match &program.variables[..] {
        [only] if only.open => only.indices.map_or(0, |range| range.low),
        _ => base.into(),
    }
}

struct Writer<'p> {
    program: &'p Program,
    thread: &'p Thread,
    locations: Vec<String>,
    registers: Vec<String>,
    live: Liveness,
    /// The number of states added so far to those for the locations.
    fresh: usize,
    out: String,
}

impl Writer<'_> {
    fn thread(&mut self, name: &str) -> Result<(), Diagnostic> {
        let _ = writeln!(self.out, "\nthread {name}");
        let mut entry = self.locations[self.thread.entry.index()].clone();
        // Transitions in front of the entry set the registers whose initial value is not 0. They are added from the entry backwards, so the last
        // register comes first.
        for (index, register) in self.thread.registers.iter().enumerate().rev() {
            let values = match register.init {
                Init::Value(0) => continue,
                Init::Value(value) => Some(value..=value),
                Init::Any(range) => choices(range),
            };
            let unbounded = || {
                cannot(
                    FORMAT,
                    &format!("that register `{}` starts with any value", register.name),
                    Span::default(),
                )
            };
            let before = self.state();
            for value in values.ok_or_else(unbounded)? {
                let set = format!("local {} {}", self.registers[index], number(value, Span::default())?);
                self.transition(&before, &entry, &set);
            }
            entry = before;
        }
        let _ = writeln!(self.out, "initial {entry}");
        for location in 0..self.thread.locations.len() {
            for edge in outgoing(self.thread, location) {
                self.edge(edge)?;
            }
        }
        self.out += "end\n";
        Ok(())
    }

    /// The name of a new state.
    fn state(&mut self) -> String {
        self.fresh += 1;
        // Labels contain no dot, so the name is unique.
        format!("s.{}", self.fresh)
    }

    fn transition(&mut self, from: &str, to: &str, instruction: &str) {
        let _ = writeln!(self.out, "transition {from} {to} {instruction}");
    }

    fn edge(&mut self, edge: &Edge) -> Result<(), Diagnostic> {
        let from = self.locations[edge.from.index()].clone();
        let to = self.locations[edge.to.index()].clone();
        match &edge.action {
            Action::Op(op) => {
                let steps = self.steps(op, edge.span)?;
                self.chain(&from, &to, &steps);
            }
            Action::Fence => self.transition(&from, &to, "mfence"),
            Action::StoreFence => self.transition(&from, &to, "noop"),
            Action::Lock => self.transition(&from, &to, "lock"),
            Action::Unlock => self.transition(&from, &to, "unlock"),
            Action::Atomic { ops, drains } => self.atomic(&from, &to, ops, *drains, edge.from, edge.span)?,
        }
        Ok(())
    }

    /// Adds consecutive transitions; alternatives at the same position lead to the same state.
    fn chain(&mut self, from: &str, to: &str, steps: &[Vec<String>]) {
        let mut at = from.to_owned();
        for (number, alternatives) in steps.iter().enumerate() {
            let next = if number + 1 == steps.len() { to.to_owned() } else { self.state() };
            for instruction in alternatives {
                self.transition(&at, &next, instruction);
            }
            at = next;
        }
    }

    /// The instructions for an operation: a list of alternatives for each position. A `check` before the operation (for a loaded value, after it)
    /// blocks the thread at values that would be faults.
    fn steps(&self, op: &Op, span: Span) -> Result<Vec<Vec<String>>, Diagnostic> {
        let mut steps = Vec::new();
        if let Op::Load(_, address) | Op::Store(address, _) = op {
            steps.extend(self.index_check(address, span)?.map(|check| vec![check]));
        }
        let range = checked_range(self.program, self.thread, op);
        let check = |range: fencewright_program::Range, value: &str| -> Result<String, Diagnostic> {
            let (low, high) = (number(range.low, span)?, number(range.high, span)?);
            Ok(format!("check && >= {value} {low} <= {value} {high}"))
        };
        if let Some((range, Some(value))) = range {
            steps.push(vec![check(range, &self.term(value, span)?)?]);
        }
        let register = |register: &RegisterId| &self.registers[register.index()];
        steps.push(match op {
            Op::Skip => vec!["noop".to_owned()],
            Op::Assign(target, value) => {
                vec![format!("local {} {}", register(target), self.term(value, span)?)]
            }
            Op::Havoc(target, range) => {
                let values =
                    choices(*range).ok_or_else(|| cannot(FORMAT, "a `*` without a small range", span))?;
                let set = |v| Ok(format!("local {} {}", register(target), number(v, span)?));
                values.map(set).collect::<Result<_, Diagnostic>>()?
            }
            Op::Assume(value) | Op::Assert(value, _) => vec![format!("check {}", self.term(value, span)?)],
            Op::Load(target, address) => {
                vec![format!("read {} {}", register(target), self.address(address, span)?)]
            }
            Op::Store(address, value) => {
                vec![format!("write {} {}", self.term(value, span)?, self.address(address, span)?)]
            }
        });
        if let (Some((range, None)), Some(target)) = (range, written_register(op)) {
            steps.push(vec![check(range, register(&target))?]);
        }
        Ok(steps)
    }

    /// A check that a computed index lies in its array. `None` if the variable is an open array, or if the index is a constant in the array.
    fn index_check(&self, address: &Address, span: Span) -> Result<Option<String>, Diagnostic> {
        let variable = &self.program.variables[address.variable.index()];
        let (Some(index), Some(range)) = (&address.index, variable.indices) else { return Ok(None) };
        if variable.open || index.constant().is_some_and(|i| range.contains(i)) {
            return Ok(None);
        }
        let index = self.term(index, span)?;
        Ok(Some(format!(
            "check && >= {index} {} <= {index} {}",
            number(range.low, span)?,
            number(range.high, span)?
        )))
    }

    fn address(&self, address: &Address, span: Span) -> Result<String, Diagnostic> {
        let variable = &self.program.variables[address.variable.index()];
        let first = first_address(self.program, variable.base);
        let (Some(index), Some(range)) = (&address.index, variable.indices) else {
            return number(first, span);
        };
        let offset = i128::from(first) - i128::from(range.low);
        if let Some(index) = index.constant() {
            return number_wide(offset + i128::from(index), span);
        }
        let index = self.term(index, span)?;
        Ok(if offset == 0 { index } else { format!("+ {} {index}", number_wide(offset, span)?) })
    }

    /// An expression in prefix notation.
    fn term(&self, expr: &Expr<RegisterId>, span: Span) -> Result<String, Diagnostic> {
        Ok(match expr {
            Expr::Const(value) => number(*value, span)?,
            Expr::Leaf(register) => self.registers[register.index()].clone(),
            Expr::Unary(UnaryOp::Neg, operand) => format!("- 0 {}", self.term(operand, span)?),
            Expr::Unary(UnaryOp::Not, operand) => format!("! {}", self.term(operand, span)?),
            Expr::Unary(op, _) => {
                return Err(cannot(FORMAT, &format!("the operator `{}`", op.symbol()), span));
            }
            Expr::If(..) => return Err(cannot(FORMAT, "conditional expressions", span)),
            Expr::Binary(op, left, right) => {
                use BinaryOp::*;
                if matches!(op, Div | Rem | BitOr | BitXor | Shl | Shr | Min | Max) {
                    return Err(cannot(FORMAT, &format!("the operator `{}`", op.symbol()), span));
                }
                format!("{} {} {}", op.symbol(), self.term(left, span)?, self.term(right, span)?)
            }
        })
    }

    fn atomic(
        &mut self,
        from: &str,
        to: &str,
        ops: &[Op],
        drains: bool,
        start: LocationId,
        span: Span,
    ) -> Result<(), Diagnostic> {
        let loads = ops.iter().filter(|op| matches!(op, Op::Load(..))).count();
        if !drains && loads > 1 {
            return Err(cannot(FORMAT, "a `snapshot` with several loads", span));
        }
        let mut at = from.to_owned();
        if drains {
            at = self.state();
            self.transition(from, &at, "lock");
        }
        let (mut written, mut stored) = (Vec::new(), false);
        for (number, op) in ops.iter().enumerate() {
            let steps = self.steps(op, span)?;
            for (place, alternatives) in steps.iter().enumerate() {
                let is_last = !drains && number + 1 == ops.len() && place + 1 == steps.len();
                let next = if is_last { to.to_owned() } else { self.state() };
                for instruction in alternatives {
                    self.transition(&at, &next, instruction);
                    let Some(condition) = instruction.strip_prefix("check ") else { continue };
                    // If an `assume` fails, the whole step is not taken, so the thread returns to the state before the step. A fault ends the thread,
                    // so the thread moves to a new state without transitions.
                    let retries = matches!(op, Op::Assume(_));
                    let lost = retries && written.iter().any(|&r| self.live.is_live(start.index(), r));
                    if stored || lost {
                        return Err(cannot(FORMAT, "a condition this late in an atomic step", span));
                    }
                    let back = if retries { from.to_owned() } else { self.state() };
                    self.fail(&at, &back, &format!("check ! {condition}"), drains);
                }
                at = next;
            }
            stored |= matches!(op, Op::Store(..));
            written.extend(written_register(op));
        }
        if drains {
            self.transition(&at, to, "unlock");
        } else if ops.is_empty() {
            self.transition(&at, to, "noop");
        }
        Ok(())
    }

    /// Adds the transitions from `at`, where a condition has failed, to `back`. They release the lock if it is held; otherwise no transition is
    /// needed if `at` is `back`.
    fn fail(&mut self, at: &str, back: &str, check: &str, locked: bool) {
        if locked {
            let failed = self.state();
            self.transition(at, &failed, check);
            self.transition(&failed, back, "unlock");
        } else if at != back {
            self.transition(at, back, check);
        }
    }
}

fn number(value: i64, span: Span) -> Result<String, Diagnostic> {
    number_wide(value.into(), span)
}

/// A number, if it fits the 32 bits of trencher's arithmetic.
fn number_wide(value: i128, span: Span) -> Result<String, Diagnostic> {
    let fits = i32::try_from(value).is_ok();
    if fits { Ok(value.to_string()) } else { Err(cannot(FORMAT, &format!("the number {value}"), span)) }
}
