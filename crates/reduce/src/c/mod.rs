//! Prints a reduced program `P_M` as a C program for other verifiers, in the style of SV-COMP: threads are pthreads, choices are
//! `__VERIFIER_nondet_*`, every step with an effect visible to others is enclosed in `__VERIFIER_atomic_begin` and `_end`, and a violated property
//! calls `reach_error`.
//!
//! All state is in global variables, so that properties can be checked after each step: memory, the registers (`p_r` is register `r` of thread `p`),
//! the location of each thread (`p_at`, present only if a property refers to it) and the holder of the lock.
//!
//! Integers of the program are mathematical, those of C are not. Each operation is checked; an execution with a result that does not fit is cut off,
//! as by a false `assume`. The comment at the head of the text says so.
//!
//! Some properties cannot be expressed as reachability. A `finally exists` is violated if there is no execution of some kind, so no single execution
//! shows the violation; and in a deadlock no step is taken, so no function can be called. Both are omitted, and the head says so.

mod expressions;
mod names;
mod prelude;

use std::fmt::Write;

use fencewright_kit::graph::reachable;
use fencewright_program::{
    Action, Address, Edge, Expr, Formula, Init, LocationId, Numbers, Observable, Op, Program, PropertyKind,
    Quantifier, Range, RegisterId, Span,
};

use crate::Unsupported;
use expressions::Expressions;
use names::Names;

/// The width of the integers in the C program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// `int`.
    Bits32,
    /// `long long`.
    Bits64,
}

impl Width {
    fn contains(self, value: i64) -> bool {
        self == Width::Bits64 || i32::try_from(value).is_ok()
    }

    fn bits(self) -> u32 {
        match self {
            Width::Bits32 => 32,
            Width::Bits64 => 64,
        }
    }

    fn c_type(self) -> &'static str {
        match self {
            Width::Bits32 => "int",
            Width::Bits64 => "long long",
        }
    }
}

/// Prints a program whose actions never fault, under SC, as C, with `head` as a comment before it.
pub fn c(program: &Program, head: &[String], width: Width) -> Result<String, Unsupported> {
    if program.numbers == Numbers::Real {
        return Err(Unsupported::new("C has no real numbers", None));
    }
    let names = Names::new(program);
    let locks = program.threads.iter().any(|t| t.edges.iter().any(|e| e.action == Action::Lock));
    let observed = observed(program);
    let mut writer =
        Writer { program, names, expressions: Expressions { width }, locks, observed, text: String::new() };
    writer.head(head);
    writer.text.push_str(&prelude::prelude(width));
    writer.globals()?;
    writer.properties()?;
    for n in 0..program.threads.len() {
        writer.thread(n)?;
    }
    writer.main()?;
    Ok(writer.text)
}

/// For each thread, whether some property refers to its locations.
fn observed(program: &Program) -> Vec<bool> {
    let mut observed = vec![false; program.threads.len()];
    for formula in program.properties.iter().filter_map(|p| p.formula()) {
        formula.for_each_leaf(&mut |leaf| {
            if let Observable::At(thread, _) = leaf {
                observed[thread.index()] = true;
            }
        });
    }
    observed
}

struct Writer<'p> {
    program: &'p Program,
    names: Names,
    expressions: Expressions,
    /// Whether any thread takes the lock.
    locks: bool,
    observed: Vec<bool>,
    text: String,
}

impl Writer<'_> {
    fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn head(&mut self, head: &[String]) {
        let bits = self.expressions.width.bits();
        let mut lines = head.to_vec();
        lines.extend([
            String::new(),
            format!("Assumption: all values fit {bits} bits. Integers are mathematical in the original program; executions in which the"),
            format!("result of an operation does not fit {bits} bits are cut off here, so nothing is said about them."),
        ]);
        if self.program.variables.iter().any(|v| v.open) {
            lines.push("Assumption: open arrays are not accessed outside their windows. Such executions are cut off too.".into());
        }
        let left_out = self.program.properties.iter().filter(|p| !is_reachability(&p.kind));
        let left_out: Vec<&str> = left_out.map(|p| p.name.as_str()).collect();
        if !left_out.is_empty() {
            let names = left_out.join(", ");
            lines.push(format!("Left out, since no single execution violates it: {names}."));
        }
        lines.push(
            "reach_error is called when a property is violated. -DCHECK_NAME=0 leaves the property NAME out."
                .into(),
        );
        for line in lines {
            // A comment line must not contain line breaks or end in a backslash, which would join it with the next one.
            let line = line.replace(|c: char| c == '\\' || c.is_control(), "/");
            let _ = writeln!(self.text, "{}", format!("// {line}").trim_end());
        }
    }

    fn globals(&mut self) -> Result<(), Unsupported> {
        let c_type = self.expressions.width.c_type();
        self.line("");
        for (n, variable) in self.program.variables.iter().enumerate() {
            let values = variable.init.iter().map(|init| self.initial(*init, variable.span));
            let values: Vec<String> = values.collect::<Result<_, _>>()?;
            let name = &self.names.variables[n];
            let line = match variable.indices {
                None => format!("{c_type} {name} = {};", values.join(", ")),
                Some(_) => format!("{c_type} {name}[{}] = {{ {} }};", values.len(), values.join(", ")),
            };
            self.line(&line);
        }
        for (t, thread) in self.program.threads.iter().enumerate() {
            for (r, register) in thread.registers.iter().enumerate() {
                let value = self.initial(register.init, Span::default())?;
                let line = format!("{c_type} {} = {value};", self.names.registers[t][r]);
                self.line(&line);
            }
            if self.observed[t] {
                let line = format!("int {} = {};", self.names.places[t], thread.entry.0);
                self.line(&line);
            }
        }
        if self.locks {
            self.line("int lock_holder = 0;");
        }
        Ok(())
    }

    /// The initial value in the declaration; 0 if the value is arbitrary, because `main` chooses it.
    fn initial(&self, init: Init, span: Span) -> Result<String, Unsupported> {
        match init {
            Init::Value(value) => self.expressions.constant(value, span),
            Init::Any(_) => Ok("0".into()),
        }
    }

    /// Writes the function that checks the properties after each step, and the function that checks them at the end.
    fn properties(&mut self) -> Result<(), Unsupported> {
        let program = self.program;
        for property in program.properties.iter().filter(|p| is_reachability(&p.kind)) {
            let macro_name = names::check(&property.name);
            let line = format!("\n#ifndef {macro_name}\n#define {macro_name} 1\n#endif");
            self.line(&line);
        }
        for (function, at_the_end) in [("check", false), ("check_final", true)] {
            let _ = write!(self.text, "\nstatic inline void {function}(void) {{\n");
            for property in &program.properties {
                let bad = match &property.kind {
                    PropertyKind::Never(formula) if !at_the_end => formula.clone(),
                    PropertyKind::Finally(Quantifier::Never, formula) if at_the_end => formula.clone(),
                    PropertyKind::Finally(Quantifier::Forall, formula) if at_the_end => formula.clone().not(),
                    _ => continue,
                };
                let bad = self.formula(&bad, property.span)?;
                let macro_name = names::check(&property.name);
                let line = format!("#if {macro_name}\n  if ({bad})\n    reach_error();\n#endif");
                self.line(&line);
            }
            self.line("}");
        }
        Ok(())
    }

    fn formula(&self, formula: &Formula, span: Span) -> Result<String, Unsupported> {
        self.expressions.write(formula, span, &|observable| match observable {
            Observable::At(thread, locations) => {
                let place = &self.names.places[thread.index()];
                let places: Vec<String> = locations.iter().map(|l| format!("{place} == {}", l.0)).collect();
                if places.is_empty() { "0".into() } else { format!("({})", places.join(" || ")) }
            }
            Observable::Register(thread, register) => {
                self.names.registers[thread.index()][register.index()].clone()
            }
            Observable::Memory(cell) => {
                let owner = self.program.variables.partition_point(|v| v.base <= *cell) - 1;
                let variable = &self.program.variables[owner];
                match variable.indices {
                    None => self.names.variables[owner].clone(),
                    Some(_) => format!("{}[{}]", self.names.variables[owner], cell - variable.base),
                }
            }
        })
    }

    fn thread(&mut self, t: usize) -> Result<(), Unsupported> {
        let thread = &self.program.threads[t];
        let _ =
            write!(self.text, "\nstatic void *{}(void *unused) {{\n  (void)unused;\n", self.names.threads[t]);
        let order = reachable(thread);
        let targets: Vec<LocationId> =
            order.iter().flat_map(|&location| thread.edges_from(location).map(|(_, edge)| edge.to)).collect();
        for &location in &order {
            if targets.contains(&location) {
                let line = format!("at{}:", location.0);
                self.line(&line);
            }
            let edges: Vec<&Edge> = thread.edges_from(location).map(|(_, edge)| edge).collect();
            match edges.as_slice() {
                [] => self.line("  return 0;"),
                [edge] => self.edge(t, edge, "  ")?,
                _ => {
                    let line = format!("  switch (choose({})) {{", edges.len());
                    self.line(&line);
                    for (n, edge) in edges.iter().enumerate() {
                        let line = match n + 1 == edges.len() {
                            true => "  default:".into(),
                            false => format!("  case {n}:"),
                        };
                        self.line(&line);
                        self.edge(t, edge, "    ")?;
                    }
                    self.line("  }");
                }
            }
        }
        if !order.iter().any(|&location| thread.is_end(location)) {
            self.line("  return 0;");
        }
        self.line("}");
        Ok(())
    }

    fn edge(&mut self, t: usize, edge: &Edge, indent: &str) -> Result<(), Unsupported> {
        let mut statements = vec!["__VERIFIER_atomic_begin();".to_string()];
        let waits = match &edge.action {
            Action::Lock => Some("lock_holder == 0".to_string()),
            Action::Unlock => Some(format!("lock_holder == {}", t + 1)),
            Action::Atomic { .. } | Action::Op(Op::Load(..) | Op::Store(..)) => {
                Some(format!("lock_holder == 0 || lock_holder == {}", t + 1))
            }
            Action::Op(_) | Action::Fence | Action::StoreFence => None,
        };
        if let Some(waits) = waits.filter(|_| self.locks) {
            statements.push(format!("assume({waits});"));
        }
        match &edge.action {
            Action::Lock => statements.push(format!("lock_holder = {};", t + 1)),
            Action::Unlock if self.locks => statements.push("lock_holder = 0;".into()),
            // No thread takes the lock, so no thread can release it.
            Action::Unlock => statements.push("assume(0);".into()),
            _ => {}
        }
        for op in edge.action.ops() {
            self.op(t, op, edge.span, &mut statements)?;
        }
        if self.observed[t] && edge.to != edge.from {
            statements.push(format!("{} = {};", self.names.places[t], edge.to.0));
        }
        statements.push("check();".into());
        statements.push("__VERIFIER_atomic_end();".into());
        statements.push(format!("goto at{};", edge.to.0));
        for statement in statements {
            let _ = writeln!(self.text, "{indent}{statement}");
        }
        Ok(())
    }

    fn op(&self, t: usize, op: &Op, span: Span, out: &mut Vec<String>) -> Result<(), Unsupported> {
        let register = |r: RegisterId| self.names.registers[t][r.index()].as_str();
        let value = |e: &Expr<RegisterId>| {
            self.expressions.write(e, span, &|r: &RegisterId| register(*r).to_string())
        };
        match op {
            Op::Skip => {}
            Op::Assign(target, e) => out.push(format!("{} = {};", register(*target), value(e)?)),
            Op::Havoc(target, range) => self.choose(register(*target), *range, span, out)?,
            Op::Assume(e) => out.push(format!("assume({});", value(e)?)),
            // Assertions of `P_M` never fail, so assuming them excludes no execution.
            Op::Assert(e, _) => out.push(format!("assume({});", value(e)?)),
            Op::Load(target, address) => {
                out.push(format!("{} = {};", register(*target), self.place(address, span, &value)?));
            }
            Op::Store(address, e) => {
                let stored = value(e)?;
                out.push(format!("{} = {stored};", self.place(address, span, &value)?));
            }
        }
        Ok(())
    }

    fn place(
        &self,
        address: &Address,
        span: Span,
        value: &dyn Fn(&Expr<RegisterId>) -> Result<String, Unsupported>,
    ) -> Result<String, Unsupported> {
        let (name, variable) = (
            &self.names.variables[address.variable.index()],
            &self.program.variables[address.variable.index()],
        );
        match (&address.index, variable.indices) {
            (Some(index), Some(Range { low, high })) => {
                if let Some(index) = index.constant().filter(|i| (low..=high).contains(i)) {
                    return Ok(format!("{name}[{}]", index - low));
                }
                let (low, high) =
                    (self.expressions.constant(low, span)?, self.expressions.constant(high, span)?);
                Ok(format!("{name}[inside({}, {low}, {high})]", value(index)?))
            }
            _ => Ok(name.clone()),
        }
    }

    /// Chooses an arbitrary value, or one of a range.
    fn choose(
        &self,
        target: &str,
        range: Option<Range>,
        span: Span,
        out: &mut Vec<String>,
    ) -> Result<(), Unsupported> {
        out.push(format!("{target} = any();"));
        let bounds = self.program.chosen(range);
        let constant = |value| self.expressions.constant(value, span);
        let low = bounds.low.map(|low| Ok(format!("{target} >= {}", constant(low)?))).transpose()?;
        let high = bounds.high.map(|high| Ok(format!("{target} <= {}", constant(high)?))).transpose()?;
        let within: Vec<String> = low.into_iter().chain(high).collect();
        if !within.is_empty() {
            out.push(format!("assume({});", within.join(" && ")));
        }
        Ok(())
    }

    fn main(&mut self) -> Result<(), Unsupported> {
        let program = self.program;
        self.line("\nint main(void) {");
        let mut chosen = Vec::new();
        for (n, variable) in program.variables.iter().enumerate() {
            for (cell, init) in variable.init.iter().enumerate() {
                if let Init::Any(range) = init {
                    let name = &self.names.variables[n];
                    let place = match variable.indices {
                        None => name.clone(),
                        Some(_) => format!("{name}[{cell}]"),
                    };
                    self.choose(&place, *range, variable.span, &mut chosen)?;
                }
            }
        }
        for (t, thread) in program.threads.iter().enumerate() {
            for (r, register) in thread.registers.iter().enumerate() {
                if let Init::Any(range) = register.init {
                    let place = self.names.registers[t][r].clone();
                    self.choose(&place, range, Span::default(), &mut chosen)?;
                }
            }
        }
        chosen.push("check();".into());
        let threads = 0..program.threads.len();
        chosen.extend(threads.clone().map(|t| format!("pthread_t id{t};")));
        let names = &self.names.threads;
        chosen.extend(threads.clone().map(|t| format!("pthread_create(&id{t}, 0, {}, 0);", names[t])));
        chosen.extend(threads.map(|t| format!("pthread_join(id{t}, 0);")));
        chosen.push("check_final();".into());
        chosen.push("return 0;".into());
        for statement in chosen {
            let _ = writeln!(self.text, "  {statement}");
        }
        self.line("}");
        Ok(())
    }
}

/// Whether a violation of the property is a reachable state.
fn is_reachability(kind: &PropertyKind) -> bool {
    match kind {
        PropertyKind::Never(_) | PropertyKind::Finally(Quantifier::Never | Quantifier::Forall, _) => true,
        PropertyKind::Finally(Quantifier::Exists, _) | PropertyKind::NoDeadlock => false,
        // `P_M` has no property of this kind: its `assertions` has been replaced by a formula that must never hold.
        PropertyKind::Assertions => false,
    }
}
