//! Properties of final states, written as assertions after all threads have been joined.

use std::collections::BTreeMap;

use fencewright_fw::ast::{self, Item, Name, StatementKind};
use fencewright_fw::visit::for_each_statement;
use fencewright_program::{
    Expr, Formula, Observable, Program, Property, PropertyKind, Quantifier, RegisterId, Span, ThreadId,
};

use super::expressions::Written;
use super::{Result, Writer, cannot};

/// A register of a thread that a property reads. When the thread ends, it stores the register to a global variable.
#[derive(Clone)]
pub(super) struct Handed {
    /// The register, or the array of registers.
    pub register: Name,
    /// The index of the element, if the register is an array element.
    pub element: Option<i64>,
    /// The C name of the global variable; empty until it is chosen.
    pub global: String,
    /// The name of the thread's index in its family, and the least index of the family; `None` if the thread is in no family.
    pub instance: Option<(Name, i64)>,
}

/// The registers that properties read, by thread.
pub(super) struct Observed {
    by_thread: BTreeMap<String, Vec<Handed>>,
}

/// A name without a span.
fn name(text: &str) -> Name {
    Name { text: text.to_owned(), span: Span::default() }
}

/// The name of a thread, or of its family, in the source.
fn thread_name(program: &Program, id: ThreadId) -> &str {
    let thread = program.thread(id);
    thread.family.as_ref().map_or(thread.name.as_str(), |(family, _)| family)
}

/// The name of a register; for an array element, the name of the array and the index.
fn register_name(program: &Program, id: ThreadId, register: RegisterId) -> (&str, Option<i64>) {
    let text = program.thread(id).registers[register.index()].name.as_str();
    match text.split_once('[') {
        None => (text, None),
        Some((array, element)) => (array, element.trim_end_matches(']').parse().ok()),
    }
}

/// The formula of a property of final states, and whether the property requires the formula (true) or forbids it (false); `None` for `assertions` and
/// `deadlock`, which need no text. Any other property is an error.
fn at_the_end(property: &Property) -> Result<Option<(&Formula, bool)>> {
    match &property.kind {
        PropertyKind::Assertions | PropertyKind::NoDeadlock => Ok(None),
        PropertyKind::Finally(Quantifier::Never, formula) => Ok(Some((formula, false))),
        PropertyKind::Finally(Quantifier::Forall, formula) => Ok(Some((formula, true))),
        PropertyKind::Finally(Quantifier::Exists, _) => {
            Err(cannot("`finally exists`: no single execution violates it", property.span))
        }
        PropertyKind::Never(_) => Err(cannot("a property of all states", property.span)
            .help("write an `assert` where it should hold, or `finally` if it is about the end")),
    }
}

impl Observed {
    pub fn new(file: &ast::File, program: &Program) -> Result<Self> {
        let mut by_thread: BTreeMap<String, Vec<Handed>> = BTreeMap::new();
        for property in &program.properties {
            let Some((formula, _)) = at_the_end(property)? else { continue };
            let mut inner = None;
            formula.for_each_leaf(&mut |leaf| {
                let Observable::Register(id, register) = leaf else { return };
                let (register, element) = register_name(program, *id, *register);
                if register.contains('.') {
                    inner = Some(cannot("a register of a procedure in a property", property.span));
                    return;
                }
                let handed = by_thread.entry(thread_name(program, *id).to_owned()).or_default();
                if !handed.iter().any(|h| h.register.text == register && h.element == element) {
                    let (register, global, instance) = (name(register), String::new(), None);
                    handed.push(Handed { register, element, global, instance });
                }
            });
            inner.map_or(Ok(()), Err)?;
        }
        let stops = file.items.iter().any(|item| match item {
            Item::Procedure(procedure) => {
                let mut stops = false;
                for_each_statement(&procedure.body, &mut |kind| stops |= *kind == StatementKind::Stop);
                stops
            }
            _ => false,
        });
        match stops && !by_thread.is_empty() {
            true => Err(cannot("a property of registers where procedures end threads", Span::default())),
            false => Ok(Observed { by_thread }),
        }
    }

    /// The registers that a thread stores at its end.
    pub fn of_thread(&self, name: &str) -> &[Handed] {
        self.by_thread.get(name).map_or(&[], Vec::as_slice)
    }
}

impl Writer {
    /// Declares the global variables to which threads store their registers.
    pub(super) fn declare_results(&mut self, file: &ast::File) -> Result<()> {
        for item in &file.items {
            let Item::Thread(thread) = item else { continue };
            let Some(mut handed) = self.observed.by_thread.remove(&thread.name.text) else { continue };
            let family = match &thread.family {
                None => None,
                Some((me, range)) => Some((me.clone(), self.constants.range(range)?)),
            };
            for result in &mut handed {
                let element = result.element.map_or(String::new(), |n| format!("_{n}").replace('-', "m"));
                result.global =
                    self.fresh(&format!("{}_{}{element}", thread.name.text, result.register.text));
                result.instance = family.as_ref().map(|(me, range)| (me.clone(), range.low));
                let size = family.as_ref().map_or(String::new(), |(_, range)| format!("[{}]", range.size()));
                let line = format!("{} {}{size};", self.integer(), result.global);
                self.line(&line);
            }
            self.observed.by_thread.insert(thread.name.text.clone(), handed);
        }
        Ok(())
    }

    /// Writes the assertions for properties of final states.
    pub(super) fn finally(&mut self, program: &Program) -> Result<()> {
        for property in &program.properties {
            if let Some((formula, holds)) = at_the_end(property)? {
                let written = self.formula(program, formula, property.span)?;
                let text = if holds { written.asked().text } else { written.negated().text };
                let line = format!("assert(({text}) && \"{}\");", property.name);
                self.line(&line);
            }
        }
        Ok(())
    }

    fn formula(&mut self, program: &Program, formula: &Formula, span: Span) -> Result<Written> {
        Ok(match formula {
            Expr::Const(value) => Written::narrow(self.number(*value)),
            Expr::Leaf(leaf) => self.observable(program, leaf, span)?,
            Expr::Unary(op, operand) => {
                let operand = self.formula(program, operand, span)?;
                self.unary(*op, operand, span)?
            }
            Expr::Binary(op, left, right) => {
                let by = match **right {
                    Expr::Const(by) => Some(by),
                    _ => None,
                };
                let left = self.formula(program, left, span)?;
                let right = self.formula(program, right, span)?;
                self.combined(*op, left, right, by)
            }
            Expr::If(condition, then, otherwise) => {
                let condition = self.formula(program, condition, span)?;
                let then = self.formula(program, then, span)?;
                let otherwise = self.formula(program, otherwise, span)?;
                Written::choice(condition, then, otherwise)
            }
        })
    }

    fn observable(&mut self, program: &Program, leaf: &Observable, span: Span) -> Result<Written> {
        Ok(match leaf {
            // All threads have ended, so a thread can only be at one of its end locations.
            Observable::At(id, locations) => {
                let thread = program.thread(*id);
                let mut ends = (0..thread.locations.len() as u32).map(fencewright_program::LocationId);
                let all = ends.clone().filter(|l| thread.is_end(*l)).all(|l| locations.contains(&l));
                match ends.any(|l| thread.is_end(l) && locations.contains(&l)) {
                    true if !all => return Err(cannot("at which of several ends a thread is", span)),
                    is_there => Written::narrow(self.number(i64::from(is_there))),
                }
            }
            Observable::Register(id, register) => {
                let (register, element) = register_name(program, *id, *register);
                let handed = self.observed.of_thread(thread_name(program, *id));
                let found = handed.iter().find(|h| h.register.text == register && h.element == element);
                let found = found.ok_or_else(|| cannot("this register", span))?;
                let number = program.thread(*id).family.as_ref().map(|(_, number)| *number);
                Written::plain(match (&found.instance, number) {
                    (Some((_, low)), Some(number)) => format!("{}[{}]", found.global, number - low),
                    _ => found.global.clone(),
                })
            }
            Observable::Memory(cell) => {
                let owner = program.variables.partition_point(|v| v.base <= *cell) - 1;
                let variable = &program.variables[owner];
                let index = variable.indices.map(|indices| indices.low + i64::from(cell - variable.base));
                let number = |value| ast::Expr { kind: ast::ExprKind::Int(value), span };
                let place =
                    ast::Place { name: name(&variable.name), index: index.map(|i| Box::new(number(i))) };
                self.read(&place)?
            }
        })
    }
}
