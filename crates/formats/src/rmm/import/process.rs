//! Translates the text of a memorax process to a thread.

use std::collections::HashMap;

use fencewright_fw::ast::{Block, Expr, Place, Statement, StatementKind, Thread};
use fencewright_fw::build::{self, NESTING_LIMIT, SIZE_LIMIT};
use fencewright_fw::names::Names;
use fencewright_program::{BinaryOp, Span};
use fencewright_text::Diagnostic;

use super::tokens::{Kind, RESERVED, Token};
use super::values::Value;
use super::{Cell, Cursor, Domain, Memory, ProcessText};

/// Labels of the source, mapped to those of the thread.
pub(super) type Labels<'a> = HashMap<&'a str, String>;

/// Translates the process with this number. `budget` is the number of tokens by which the whole program may still grow because of pointers: a
/// statement with a pointer is repeated for each global that the pointer may denote.
pub(super) fn translate<'a>(
    tokens: &[Token<'a>],
    process: &ProcessText<'a>,
    number: usize,
    name: &str,
    memory: &Memory<'a>,
    names: &Names<'_>,
    budget: &mut usize,
) -> Result<(Thread, Labels<'a>), Diagnostic> {
    let mut own_names = Names::inside(names);
    let mut registers = HashMap::new();
    let mut declarators = Vec::new();
    for register in &process.registers {
        let own_name = own_names.fresh(register.name, "r", "_r");
        declarators.push(build::declarator(&own_name, register.initial(), register.span));
        registers.insert(register.name, (own_name, register.domain));
    }
    let labels = find_labels(&tokens[process.text.clone()])?;
    let cursor = Cursor { tokens, at: process.text.start };
    let mut text =
        Text { cursor, end: process.text.end, number, registers, labels, memory, budget, nesting: 0 };
    let mut body = Vec::new();
    text.statements(&mut body)?;
    if text.cursor.at < text.end {
        return Err(text.cursor.expected("`;` or the end of the process"));
    }
    if let Some(Statement { kind: StatementKind::Goto(_), span, .. }) = body.first() {
        // memorax inserts a step before a jump that is the first statement of a process.
        body.insert(0, build::statement(StatementKind::Skip, *span));
    }
    let labels = text.labels;
    Ok((build::thread(name, declarators, body, process.span), labels))
}

/// Finds the labels: every word before a colon that is not reserved.
fn find_labels<'a>(text: &[Token<'a>]) -> Result<Labels<'a>, Diagnostic> {
    let mut names = Names::default();
    let mut labels = Labels::new();
    for pair in text.windows(2) {
        let is_label = pair[0].kind == Kind::Word
            && !RESERVED.contains(&pair[0].text)
            && pair[1].kind == Kind::Operator
            && pair[1].text == ":";
        if is_label && labels.insert(pair[0].text, names.fresh(pair[0].text, "l", "_")).is_some() {
            return Err(Diagnostic::new(pair[0].span, format!("label `{}` is defined twice", pair[0].text)));
        }
    }
    Ok(labels)
}

/// The parser of the text of a process.
pub(super) struct Text<'t, 'a> {
    pub(super) cursor: Cursor<'t, 'a>,
    end: usize,
    /// The number of the process.
    number: usize,
    registers: HashMap<&'a str, (String, Domain)>,
    labels: Labels<'a>,
    memory: &'t Memory<'a>,
    budget: &'t mut usize,
    nesting: usize,
}

/// The target of an access.
enum Target {
    One(Cell),
    /// The global whose number is the value of the expression. The list has the numbers that the expression may have, with their globals.
    Pointer(Expr, Vec<(i64, Cell)>),
}

/// The kind of an access.
enum Access {
    /// Continues only if the cell holds the value.
    Test(Value),
    /// Loads into a register with this domain.
    Load(String, Domain),
    Store(Value, StoreKind),
    CompareAndSwap(Value, Value),
}

#[derive(Clone, Copy, PartialEq)]
enum StoreKind {
    Plain,
    Locked,
    StoreLocked,
}

impl<'a> Text<'_, 'a> {
    fn statements(&mut self, out: &mut Vec<Statement>) -> Result<(), Diagnostic> {
        loop {
            self.labelled(out)?;
            if !self.cursor.accept(";") {
                return Ok(());
            }
        }
    }

    pub(super) fn nested<T>(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<T, Diagnostic>,
    ) -> Result<T, Diagnostic> {
        if self.nesting >= NESTING_LIMIT {
            return Err(Diagnostic::new(self.cursor.peek().span, "nested too deeply"));
        }
        self.nesting += 1;
        let result = parse(self);
        self.nesting -= 1;
        result
    }

    fn labelled(&mut self, out: &mut Vec<Statement>) -> Result<(), Diagnostic> {
        let mut label = None;
        if self.cursor.is_identifier() {
            let token = self.cursor.next();
            self.cursor.expect(":")?;
            if self.cursor.is("goto") {
                return Err(Diagnostic::new(token.span, "a `goto` cannot have a label"));
            }
            label = Some(build::name(&self.labels[token.text], token.span));
        }
        let first = out.len();
        self.nested(|text| text.statement(out))?;
        if let Some(label) = label {
            out[first].labels.insert(0, label);
        }
        Ok(())
    }

    /// Parses one statement and appends its translation, which is at least one statement.
    fn statement(&mut self, out: &mut Vec<Statement>) -> Result<(), Diagnostic> {
        let start = self.cursor.at;
        let token = self.cursor.peek();
        let kind = match (token.kind, token.text) {
            (Kind::Word, "if") => {
                self.cursor.at += 1;
                let condition = self.condition()?;
                self.cursor.expect("then")?;
                let then = self.branch()?;
                let otherwise = if self.cursor.accept("else") { Some(self.branch()?) } else { None };
                StatementKind::If(condition, then, otherwise)
            }
            (Kind::Word, "while") => {
                self.cursor.at += 1;
                let condition = self.condition()?;
                self.cursor.expect("do")?;
                StatementKind::While(condition, self.branch()?)
            }
            (Kind::Word, "goto") => {
                self.cursor.at += 1;
                let label = self.cursor.peek();
                let Some(target) = self.labels.get(label.text).filter(|_| label.kind == Kind::Word) else {
                    return Err(Diagnostic::new(
                        label.span,
                        format!("no label {} in this process", label.describe()),
                    ));
                };
                self.cursor.at += 1;
                StatementKind::Goto(build::name(target, label.span))
            }
            (Kind::Word, "either") => {
                self.cursor.at += 1;
                let mut branches = self.alternatives(Self::statements)?;
                branches.iter_mut().for_each(first_step_chooses);
                StatementKind::Choose(branches)
            }
            (Kind::Operator, "{") => {
                self.cursor.at += 1;
                let mut inside = Vec::new();
                self.statements(&mut inside)?;
                self.cursor.expect("}")?;
                StatementKind::Block(build::block(inside, self.cursor.span_from(start)))
            }
            (Kind::Word, "fence") => {
                self.cursor.at += 1;
                StatementKind::Fence
            }
            (Kind::Word, "ssfence") => {
                self.cursor.at += 1;
                StatementKind::StoreFence
            }
            (Kind::Word, "locked") if !self.write_follows() => {
                self.cursor.at += 1;
                self.locked_block(start)?
            }
            (Kind::Word, "syncwr" | "syncrd" | "llfence") => {
                return Err(Diagnostic::new(
                    token.span,
                    format!("`{}` is not supported: VIPS only", token.text),
                ));
            }
            _ => return self.instruction(out, false),
        };
        out.push(build::statement(kind, self.cursor.span_from(start)));
        Ok(())
    }

    /// Whether this is `locked write` rather than a block.
    fn write_follows(&self) -> bool {
        Cursor { at: self.cursor.at + 1, ..self.cursor }.is("write")
    }

    /// The statement after `then`, `else` or `do`.
    fn branch(&mut self) -> Result<Block, Diagnostic> {
        let start = self.cursor.at;
        let mut inside = Vec::new();
        self.labelled(&mut inside)?;
        let plain_block = inside.len() == 1 && inside[0].labels.is_empty();
        match inside.pop() {
            Some(Statement { kind: StatementKind::Block(block), .. }) if plain_block => Ok(block),
            last => {
                inside.extend(last);
                Ok(build::block(inside, self.cursor.span_from(start)))
            }
        }
    }

    /// `{ ... or ... }`
    fn alternatives(
        &mut self,
        parse: fn(&mut Self, &mut Vec<Statement>) -> Result<(), Diagnostic>,
    ) -> Result<Vec<Block>, Diagnostic> {
        self.cursor.expect("{")?;
        let mut branches = Vec::new();
        loop {
            let start = self.cursor.at;
            let mut inside = Vec::new();
            parse(self, &mut inside)?;
            branches.push(build::block(inside, self.cursor.span_from(start)));
            if !self.cursor.accept("or") {
                self.cursor.expect("}")?;
                return Ok(branches);
            }
        }
    }

    /// After `locked`: a block of instructions and sequences.
    fn locked_block(&mut self, start: usize) -> Result<StatementKind, Diagnostic> {
        let inside_from = self.cursor.at;
        let mut branches = self.alternatives(Self::locked_statements)?;
        let inside = &self.cursor.tokens[inside_from..self.cursor.at];
        let writes = inside.iter().any(|t| t.kind == Kind::Word && t.text == "write");
        let span = self.cursor.span_from(start);
        let block = match branches.len() {
            1 => branches.remove(0),
            _ => build::block(vec![build::statement(StatementKind::Choose(branches), span)], span),
        };
        Ok(if writes { StatementKind::Atomic(block) } else { StatementKind::Snapshot(block) })
    }

    fn locked_statements(&mut self, out: &mut Vec<Statement>) -> Result<(), Diagnostic> {
        loop {
            if self.cursor.accept("{") {
                self.nested(|text| text.locked_statements(out))?;
                self.cursor.expect("}")?;
            } else {
                self.instruction(out, true)?;
            }
            if !self.cursor.accept(";") {
                return Ok(());
            }
        }
    }

    /// An instruction: one transition in memorax.
    fn instruction(&mut self, out: &mut Vec<Statement>, in_locked: bool) -> Result<(), Diagnostic> {
        let start = self.cursor.at;
        let token = self.cursor.next();
        match (token.kind, token.text) {
            (Kind::Word, "nop") => out.push(build::statement(StatementKind::Skip, token.span)),
            (Kind::Word, "assume") => {
                self.cursor.expect(":")?;
                let condition = self.condition()?;
                out.push(build::assume(condition, self.cursor.span_from(start)));
            }
            (Kind::Register, _) => {
                self.cursor.at = start;
                let (register, domain) = self.register()?;
                self.cursor.expect(":=")?;
                let value = self.expression()?;
                let span = self.cursor.span_from(start);
                value.keep_in(domain, span, out);
                out.push(build::assign(build::scalar(register, token.span), value.expr, span));
            }
            (Kind::Word, "read") => {
                self.cursor.expect(":")?;
                let (target, access) = if self.cursor.peek().kind == Kind::Register {
                    let (register, domain) = self.register()?;
                    self.cursor.expect(":=")?;
                    (self.memory_location(in_locked)?, Access::Load(register, domain))
                } else {
                    let target = self.memory_location(in_locked)?;
                    self.cursor.expect("=")?;
                    (target, Access::Test(self.expression()?))
                };
                self.access(target, &access, start, in_locked, out)?;
            }
            (Kind::Word, "write") => self.store(StoreKind::Plain, start, in_locked, out)?,
            (Kind::Word, "locked" | "slocked") if !in_locked => {
                self.cursor.expect("write")?;
                let kind = if token.text == "locked" { StoreKind::Locked } else { StoreKind::StoreLocked };
                self.store(kind, start, in_locked, out)?;
            }
            (Kind::Word, "cas") if !in_locked => {
                self.cursor.expect("(")?;
                let target = self.memory_location(in_locked)?;
                self.cursor.expect(",")?;
                let old = self.expression()?;
                self.cursor.expect(",")?;
                let new = self.expression()?;
                self.cursor.expect(")")?;
                self.access(target, &Access::CompareAndSwap(old, new), start, in_locked, out)?;
            }
            _ => {
                self.cursor.at = start;
                return Err(self.cursor.expected(if in_locked {
                    "`nop`, `assume`, `read`, `write` or an assignment (nothing else may stand in a locked block)"
                } else {
                    "a statement"
                }));
            }
        }
        Ok(())
    }

    /// Parses `: memloc := e`, after `write`.
    fn store(
        &mut self,
        kind: StoreKind,
        start: usize,
        in_locked: bool,
        out: &mut Vec<Statement>,
    ) -> Result<(), Diagnostic> {
        self.cursor.expect(":")?;
        let target = self.memory_location(in_locked)?;
        self.cursor.expect(":=")?;
        let value = self.expression()?;
        self.access(target, &Access::Store(value, kind), start, in_locked, out)
    }

    fn memory_location(&mut self, in_locked: bool) -> Result<Target, Diagnostic> {
        let start = self.cursor.at;
        if self.cursor.accept("[") {
            let pointer = self.expression()?;
            self.cursor.expect("]")?;
            return self.pointer(pointer, self.cursor.span_from(start), in_locked);
        }
        if !self.cursor.is_identifier() {
            return Err(self.cursor.expected("a memory location"));
        }
        let name = self.cursor.next();
        if !self.cursor.accept("[") {
            let number = self.memory.global_numbers.get(name.text);
            let number = number
                .ok_or_else(|| Diagnostic::new(name.span, format!("no global variable `{}`", name.text)))?;
            return Ok(Target::One(self.memory.globals[*number].clone()));
        }
        let owner = if self.cursor.accept("my") {
            self.number
        } else {
            // `v[k]` belongs to the k-th of the other processes, counted from 0.
            let k = usize::try_from(self.cursor.number()?).unwrap_or(usize::MAX);
            if k < self.number { k } else { k.saturating_add(1) }
        };
        self.cursor.expect("]")?;
        match self.memory.locals.get(&(name.text, owner)) {
            Some(cell) => Ok(Target::One(cell.clone())),
            None if owner >= self.memory.processes => {
                Err(Diagnostic::new(self.cursor.span_from(start), "there are not so many processes"))
            }
            None => {
                let message = format!("process p{owner} has no data `{}`", name.text);
                Err(Diagnostic::new(self.cursor.span_from(start), message))
            }
        }
    }

    fn pointer(&self, pointer: Value, span: Span, in_locked: bool) -> Result<Target, Diagnostic> {
        let globals = &self.memory.globals;
        if let Some(number) = pointer.constant() {
            let global = usize::try_from(number).ok().and_then(|n| globals.get(n));
            let message = || format!("no global variable has the number {number}");
            return global.cloned().map(Target::One).ok_or_else(|| Diagnostic::new(span, message()));
        }
        if in_locked {
            return Err(Diagnostic::new(span, "a register cannot be a pointer in a locked block"));
        }
        let reached = globals.iter().enumerate().map(|(n, cell)| (n as i64, cell.clone()));
        let reached: Vec<_> = reached.filter(|&(n, _)| pointer.may_be(n)).collect();
        if reached.is_empty() {
            return Err(Diagnostic::new(span, "the pointer cannot point to any global variable"));
        }
        Ok(Target::Pointer(pointer.expr, reached))
    }

    fn access(
        &mut self,
        target: Target,
        access: &Access,
        start: usize,
        in_locked: bool,
        out: &mut Vec<Statement>,
    ) -> Result<(), Diagnostic> {
        let span = self.cursor.span_from(start);
        match target {
            Target::One(cell) => access.on(&cell, in_locked, span, out),
            Target::Pointer(pointer, cells) => {
                let size = cells.len().saturating_mul(self.cursor.at - start);
                *self.budget = self.budget.checked_sub(size).ok_or_else(|| too_large(span))?;
                let branch = |(number, cell): &(i64, Cell)| {
                    let is_it = build::binary(BinaryOp::Eq, pointer.clone(), build::int(*number, span), span);
                    let mut inside = vec![build::assume(is_it, span)];
                    access.on(cell, in_locked, span, &mut inside);
                    build::block(inside, span)
                };
                out.push(build::statement(StatementKind::Choose(cells.iter().map(branch).collect()), span));
            }
        }
        Ok(())
    }

    pub(super) fn register(&mut self) -> Result<(String, Domain), Diagnostic> {
        let token = self.cursor.next();
        let register = self.registers.get(token.text).filter(|_| token.kind == Kind::Register);
        register
            .cloned()
            .ok_or_else(|| Diagnostic::new(token.span, format!("no register {}", token.describe())))
    }
}

fn too_large(span: Span) -> Diagnostic {
    let message = format!("pointers make more than {SIZE_LIMIT} tokens of this program");
    Diagnostic::new(span, message).help("give the pointers domains, or declare fewer global variables")
}

impl Access {
    fn on(&self, cell: &Cell, in_locked: bool, span: Span, out: &mut Vec<Statement>) {
        let place = || Place {
            name: build::name(&cell.variable, span),
            index: cell.index.map(|i| Box::new(build::int(i, span))),
        };
        let holds = |value: &Value| {
            build::binary(BinaryOp::Eq, build::value_of(place(), span), value.expr.clone(), span)
        };
        match self {
            Access::Test(value) if in_locked => out.push(build::assume(holds(value), span)),
            Access::Test(value) => out.push(build::statement(StatementKind::Await(holds(value)), span)),
            Access::Load(register, domain) => {
                let value = build::value_of(place(), span);
                out.push(build::assign(build::scalar(register, span), value, span));
                let (low, high) = cell.domain.map_or((None, None), |(l, h)| (Some(l.into()), Some(h.into())));
                let loaded = Value { expr: build::variable(register, span), low, high, depth: 1 };
                loaded.keep_in(*domain, span, out);
            }
            Access::Store(value, StoreKind::Locked) => {
                let mut inside = Vec::new();
                value.keep_in(cell.domain, span, &mut inside);
                inside.push(build::assign(place(), value.expr.clone(), span));
                out.push(build::statement(StatementKind::Atomic(build::block(inside, span)), span));
            }
            Access::Store(value, kind) => {
                value.keep_in(cell.domain, span, out);
                out.push(build::assign(place(), value.expr.clone(), span));
                if *kind == StoreKind::StoreLocked {
                    out.push(build::statement(StatementKind::StoreFence, span));
                }
            }
            Access::CompareAndSwap(old, new) => {
                let mut inside = vec![build::assume(holds(old), span)];
                new.keep_in(cell.domain, span, &mut inside);
                inside.push(build::assign(place(), new.expr.clone(), span));
                out.push(build::statement(StatementKind::Atomic(build::block(inside, span)), span));
            }
        }
    }
}

/// Prepares a branch of `either`. The first step of a branch selects the branch. Waiting must not select a branch, so an `await` at the start of the
/// branch becomes a step that is enabled only if the condition holds. Where memorax inserts a step at the start (before a label, jump or loop), this
/// function inserts a `skip`.
fn first_step_chooses(branch: &mut Block) {
    let Some(first) = branch.statements.first_mut() else { return };
    let span = first.span;
    let skip = || build::statement(StatementKind::Skip, span);
    if !first.labels.is_empty() {
        branch.statements.insert(0, skip());
        return;
    }
    match &mut first.kind {
        StatementKind::Block(inside) => first_step_chooses(inside),
        StatementKind::Goto(_) | StatementKind::While(..) => branch.statements.insert(0, skip()),
        StatementKind::Await(condition) => {
            let test = build::assume(condition.clone(), span);
            first.kind = StatementKind::Snapshot(build::block(vec![test], span));
        }
        _ => {}
    }
}
