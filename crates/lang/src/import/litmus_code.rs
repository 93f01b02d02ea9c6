//! The instructions of one column of a litmus test.

use std::collections::HashMap;
use std::ops::Range;

use fencewright_program::{BinaryOp, Span, UnaryOp};

use super::build;
use super::litmus::Test;
use super::litmus_scan::{Kind, Scanner, Token};
use super::names::Names;
use crate::ast::{Expr, ExprKind, Name, Statement, StatementKind};
use crate::diagnostic::Diagnostic;

/// Registers for values in between, and the two sides of the last comparison.
const SCRATCH: &str = "tmp";
const LEFT: &str = "flags_left";
const RIGHT: &str = "flags_right";

/// Names of registers, which no location gets.
pub(super) const RESERVED_NAMES: &[&str] = &[
    SCRATCH, LEFT, RIGHT, "EAX", "EBX", "ECX", "EDX", "ESI", "EDI", "EBP", "ESP", "RAX", "RBX", "RCX", "RDX",
    "RSI", "RDI", "RBP", "RSP", "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15", "R8D", "R9D", "R10D",
    "R11D", "R12D", "R13D", "R14D", "R15D",
];

const MNEMONICS: &[&str] = &[
    "MOV", "XCHG", "MFENCE", "SFENCE", "LFENCE", "NOP", "PAUSE", "INC", "DEC", "ADD", "SUB", "AND", "OR",
    "XOR", "NEG", "XADD", "CMPXCHG", "CMP", "TEST", "JE", "JZ", "JNE", "JNZ", "JL", "JLE", "JG", "JGE",
    "JMP",
];

/// The one name of a register whatever its width, if the word names one; an error for the parts of registers.
pub(super) fn register_name(word: &str) -> Option<Result<&'static str, &'static str>> {
    const FAMILIES: [&str; 8] = ["AX", "BX", "CX", "DX", "SI", "DI", "BP", "SP"];
    const CANONICAL: [&str; 8] = ["EAX", "EBX", "ECX", "EDX", "ESI", "EDI", "EBP", "ESP"];
    const NUMBERED: [&str; 8] = ["R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15"];
    const PART: &str = "the parts of registers (8 and 16 bits) are not supported";
    // No register has a longer name: a long word is not worth a copy.
    let upper = if word.len() <= 4 { word.to_ascii_uppercase() } else { return None };
    if let Some(family) = upper.strip_prefix(['E', 'R']).and_then(|f| FAMILIES.iter().position(|x| *x == f)) {
        return Some(Ok(CANONICAL[family]));
    }
    let numbered = |name: &str| NUMBERED.iter().find(|x| **x == name).copied();
    if let Some(name) = numbered(&upper).or_else(|| numbered(upper.strip_suffix('D')?)) {
        return Some(Ok(name));
    }
    let is_part = FAMILIES.contains(&upper.as_str())
        || matches!(
            upper.as_str(),
            "AL" | "AH" | "BL" | "BH" | "CL" | "CH" | "DL" | "DH" | "SIL" | "DIL" | "BPL" | "SPL"
        )
        || upper.strip_suffix(['B', 'W']).and_then(numbered).is_some();
    is_part.then_some(Err(PART))
}

#[derive(Clone, Debug)]
enum Operand {
    Register(String),
    Memory(String),
    Immediate(i64),
}

impl Operand {
    /// Its value; for memory a load.
    fn value(&self, span: Span) -> Expr {
        match self {
            Operand::Register(name) | Operand::Memory(name) => build::variable(name, span),
            Operand::Immediate(value) => build::int(*value, span),
        }
    }
}

/// A thread while its instructions are translated.
pub(super) struct Code<'t> {
    test: &'t mut Test,
    thread: usize,
    labels: HashMap<&'t str, String>,
    /// Whether a conditional jump may look at what an instruction leaves in the flags.
    flags_matter: bool,
    /// Labels that wait for a statement.
    pending: Vec<Name>,
    out: Vec<Statement>,
}

impl<'t> Code<'t> {
    /// The statements for the instructions in these cells.
    pub(super) fn translate(
        text: &'t str,
        cells: &[Range<usize>],
        thread: usize,
        test: &'t mut Test,
    ) -> Result<Vec<Statement>, Diagnostic> {
        let mut code = Code {
            test,
            thread,
            labels: HashMap::new(),
            flags_matter: false,
            pending: Vec::new(),
            out: Vec::new(),
        };
        code.find_labels(text, cells)?;
        let mut lock = None;
        for cell in cells {
            let mut scanner = Scanner::new(text, cell.clone());
            while let Some(label) = label(&mut scanner) {
                code.pending.push(build::name(&code.labels[label.text], label.span));
            }
            if scanner.peek().text.eq_ignore_ascii_case("lock") {
                lock = Some(scanner.next().span);
            }
            if scanner.peek().kind != Kind::End {
                code.instruction(scanner, lock.take())?;
            }
        }
        if let Some(span) = lock {
            return Err(Diagnostic::new(span, "no instruction follows this `LOCK`"));
        }
        if let Some(last) = code.pending.last() {
            let span = last.span;
            code.emit(StatementKind::Empty, span);
        }
        Ok(code.out)
    }

    fn find_labels(&mut self, text: &'t str, cells: &[Range<usize>]) -> Result<(), Diagnostic> {
        let mut names = Names::default();
        for cell in cells {
            let mut scanner = Scanner::new(text, cell.clone());
            while let Some(label) = label(&mut scanner) {
                if self.labels.insert(label.text, names.fresh(label.text, "l", "_")).is_some() {
                    return Err(Diagnostic::new(
                        label.span,
                        format!("label `{}` is defined twice", label.text),
                    ));
                }
            }
            let mnemonic = scanner.peek().text.to_ascii_uppercase();
            self.flags_matter |= mnemonic.starts_with('J') && mnemonic != "JMP";
        }
        Ok(())
    }

    fn emit(&mut self, kind: StatementKind, span: Span) {
        let labels = std::mem::take(&mut self.pending);
        self.out.push(Statement { labels, kind, span });
    }

    fn assign(&mut self, target: &str, value: Expr, span: Span) {
        self.emit(StatementKind::Assign(build::scalar(target, span), value), span);
    }

    fn scratch(&mut self, span: Span) -> String {
        self.test.implicit_register(self.thread, SCRATCH, span)
    }

    /// What conditional jumps compare from now on.
    fn flags(&mut self, left: Expr, right: Expr, span: Span) -> [Statement; 2] {
        let name_left = self.test.implicit_register(self.thread, LEFT, span);
        let name_right = self.test.implicit_register(self.thread, RIGHT, span);
        [
            build::assign(build::scalar(name_left, span), left, span),
            build::assign(build::scalar(name_right, span), right, span),
        ]
    }

    /// Arithmetic leaves its result in the flags.
    fn result_flags(&mut self, result: Expr, span: Span) {
        if self.flags_matter {
            for statement in self.flags(result, build::int(0, span), span) {
                self.emit(statement.kind, span);
            }
        }
    }

    fn instruction(&mut self, mut scanner: Scanner<'_>, lock: Option<Span>) -> Result<(), Diagnostic> {
        let word = scanner.next();
        let Some(mnemonic) = mnemonic(word) else {
            let message = format!("instruction {} is not supported", word.describe());
            return Err(Diagnostic::new(word.span, message));
        };
        if mnemonic.starts_with('J') {
            return self.jump(mnemonic, word.span, scanner, lock);
        }
        let operands = self.operands(&mut scanner)?;
        let span = Span { start: lock.unwrap_or(word.span).start, end: scanner.at as u32 };
        let has_memory = operands.iter().any(|o| matches!(o, Operand::Memory(_)));
        let lockable = match mnemonic {
            "XCHG" => has_memory,
            "INC" | "DEC" | "ADD" | "SUB" | "AND" | "OR" | "XOR" | "NEG" | "XADD" | "CMPXCHG" => {
                matches!(operands.first(), Some(Operand::Memory(_)))
            }
            _ => false,
        };
        if let (Some(lock), false) = (lock, lockable) {
            return Err(Diagnostic::new(lock, "this instruction cannot have a `LOCK` prefix"));
        }
        if operands.iter().filter(|o| matches!(o, Operand::Memory(_))).count() > 1 {
            return Err(Diagnostic::new(span, "an instruction cannot have two operands in memory"));
        }
        self.translate_one(mnemonic, &operands, lock.is_some(), span)
    }

    fn translate_one(
        &mut self,
        mnemonic: &str,
        operands: &[Operand],
        locked: bool,
        span: Span,
    ) -> Result<(), Diagnostic> {
        use Operand::{Immediate, Memory, Register};
        match (mnemonic, operands) {
            ("MFENCE", []) => self.emit(StatementKind::Fence, span),
            ("SFENCE", []) => self.emit(StatementKind::StoreFence, span),
            // Loads are in order on x86 anyway.
            ("LFENCE" | "NOP" | "PAUSE", []) => self.emit(StatementKind::Skip, span),
            ("MOV", [Register(target) | Memory(target), source]) => {
                self.assign(target, source.value(span), span)
            }
            ("XCHG", [Memory(location), Register(register)] | [Register(register), Memory(location)]) => {
                let old = Box::new(build::variable(register, span));
                let swap = Expr { kind: ExprKind::Swap(build::scalar(location, span), old), span };
                self.assign(register, swap, span);
            }
            ("XCHG", [Register(one), Register(other)]) => {
                let scratch = self.scratch(span);
                self.assign(&scratch, build::variable(one, span), span);
                self.assign(one, build::variable(other, span), span);
                self.assign(other, build::variable(&scratch, span), span);
            }
            ("INC", [target]) => self.arithmetic(BinaryOp::Add, target, &Immediate(1), locked, span)?,
            ("DEC", [target]) => self.arithmetic(BinaryOp::Sub, target, &Immediate(1), locked, span)?,
            ("ADD", [target, source]) => self.arithmetic(BinaryOp::Add, target, source, locked, span)?,
            ("SUB", [target, source]) => self.arithmetic(BinaryOp::Sub, target, source, locked, span)?,
            ("AND", [target, source]) => self.arithmetic(BinaryOp::BitAnd, target, source, locked, span)?,
            ("OR", [target, source]) => self.arithmetic(BinaryOp::BitOr, target, source, locked, span)?,
            ("XOR", [target, source]) => self.arithmetic(BinaryOp::BitXor, target, source, locked, span)?,
            ("NEG", [target]) => {
                let negate = |value| build::unary(UnaryOp::Neg, value, span);
                self.update(target, &negate, locked, span)?;
            }
            ("XADD", [target, Register(source)]) => self.exchange_and_add(target, source, locked, span)?,
            ("CMPXCHG", [target @ (Register(_) | Memory(_)), Register(new)]) => {
                self.compare_and_exchange(target, new, locked, span)?;
            }
            ("CMP", [left, right]) => {
                for statement in self.flags(left.value(span), right.value(span), span) {
                    self.emit(statement.kind, span);
                }
            }
            ("TEST", [left, right]) => {
                let both = build::binary(BinaryOp::BitAnd, left.value(span), right.value(span), span);
                for statement in self.flags(both, build::int(0, span), span) {
                    self.emit(statement.kind, span);
                }
            }
            _ => {
                let message = format!("{mnemonic} does not take these operands");
                return Err(Diagnostic::new(span, message));
            }
        }
        Ok(())
    }

    fn arithmetic(
        &mut self,
        op: BinaryOp,
        target: &Operand,
        source: &Operand,
        locked: bool,
        span: Span,
    ) -> Result<(), Diagnostic> {
        if let (true, Operand::Memory(location), BinaryOp::Add | BinaryOp::Sub) = (locked, target, op) {
            let added = match (op, source) {
                (BinaryOp::Sub, Operand::Immediate(value)) => build::int(-value, span),
                (BinaryOp::Sub, _) => build::unary(UnaryOp::Neg, source.value(span), span),
                _ => source.value(span),
            };
            let fetch = ExprKind::FetchAdd(build::scalar(location, span), Box::new(added.clone()));
            let fetch = Expr { kind: fetch, span };
            if !self.flags_matter {
                self.emit(StatementKind::Expr(fetch), span);
                return Ok(());
            }
            let scratch = self.scratch(span);
            self.assign(&scratch, fetch, span);
            let sum = build::binary(BinaryOp::Add, build::variable(&scratch, span), added, span);
            self.result_flags(sum, span);
            return Ok(());
        }
        let operation = |value| build::binary(op, value, source.value(span), span);
        self.update(target, &operation, locked, span)
    }

    /// `target := operation(target)`, and the result into the flags.
    fn update(
        &mut self,
        target: &Operand,
        operation: &dyn Fn(Expr) -> Expr,
        locked: bool,
        span: Span,
    ) -> Result<(), Diagnostic> {
        match target {
            Operand::Register(register) => {
                self.assign(register, operation(build::variable(register, span)), span);
                self.result_flags(build::variable(register, span), span);
            }
            Operand::Memory(location) => {
                let scratch = self.scratch(span);
                let load =
                    build::assign(build::scalar(&scratch, span), build::variable(location, span), span);
                let result = operation(build::variable(&scratch, span));
                let store = build::assign(build::scalar(location, span), result.clone(), span);
                if locked {
                    self.emit(StatementKind::Atomic(build::block(vec![load, store], span)), span);
                } else {
                    self.emit(load.kind, span);
                    self.emit(store.kind, span);
                }
                self.result_flags(result, span);
            }
            Operand::Immediate(_) => return Err(Diagnostic::new(span, "a number cannot be changed")),
        }
        Ok(())
    }

    /// Target and source change places, then the source's old value is added to the target.
    fn exchange_and_add(
        &mut self,
        target: &Operand,
        source: &str,
        locked: bool,
        span: Span,
    ) -> Result<(), Diagnostic> {
        let value = |name: &str| build::variable(name, span);
        let sum = |left: Expr, right: Expr| build::binary(BinaryOp::Add, left, right, span);
        let fetch = |location: &str| {
            let kind = ExprKind::FetchAdd(build::scalar(location, span), Box::new(value(source)));
            Expr { kind, span }
        };
        if let (Operand::Memory(location), true, false) = (target, locked, self.flags_matter) {
            self.assign(source, fetch(location), span);
            return Ok(());
        }
        let scratch = self.scratch(span);
        match target {
            Operand::Memory(location) if locked => {
                self.assign(&scratch, value(source), span);
                self.assign(source, fetch(location), span);
                self.result_flags(sum(value(source), value(&scratch)), span);
            }
            Operand::Memory(location) => {
                self.assign(&scratch, value(location), span);
                self.assign(location, sum(value(&scratch), value(source)), span);
                self.result_flags(sum(value(&scratch), value(source)), span);
                self.assign(source, value(&scratch), span);
            }
            Operand::Register(register) => {
                self.assign(&scratch, sum(value(register), value(source)), span);
                self.assign(source, value(register), span);
                self.assign(register, value(&scratch), span);
                self.result_flags(value(register), span);
            }
            Operand::Immediate(_) => return Err(Diagnostic::new(span, "a number cannot be changed")),
        }
        Ok(())
    }

    /// If the target is `EAX` it becomes `new`, otherwise `EAX` becomes the target.
    fn compare_and_exchange(
        &mut self,
        target: &Operand,
        new: &str,
        locked: bool,
        span: Span,
    ) -> Result<(), Diagnostic> {
        let (Operand::Register(target) | Operand::Memory(target)) = target else {
            return Err(Diagnostic::new(span, "a number cannot be changed"));
        };
        let accumulator = self.test.implicit_register(self.thread, "EAX", span);
        let scratch = self.scratch(span);
        let value = |name: &str| build::variable(name, span);
        let assign = |name: &str, value: Expr| build::assign(build::scalar(name, span), value, span);
        let mut steps = vec![assign(&scratch, value(target))];
        if self.flags_matter {
            steps.extend(self.flags(value(&accumulator), value(&scratch), span));
        }
        let equal = build::binary(BinaryOp::Eq, value(&scratch), value(&accumulator), span);
        let success = build::block(vec![assign(target, value(new))], span);
        let failure = build::block(vec![assign(&accumulator, value(&scratch))], span);
        steps.push(build::statement(StatementKind::If(equal, success, Some(failure)), span));
        if locked {
            self.emit(StatementKind::Atomic(build::block(steps, span)), span);
        } else {
            steps.into_iter().for_each(|step| self.emit(step.kind, span));
        }
        Ok(())
    }

    fn jump(
        &mut self,
        mnemonic: &str,
        start: Span,
        mut scanner: Scanner<'_>,
        lock: Option<Span>,
    ) -> Result<(), Diagnostic> {
        if let Some(lock) = lock {
            return Err(Diagnostic::new(lock, "this instruction cannot have a `LOCK` prefix"));
        }
        let target = scanner.next();
        let Some(label) = self.labels.get(target.text).filter(|_| target.kind == Kind::Word).cloned() else {
            return Err(Diagnostic::new(
                target.span,
                format!("no label {} in this thread", target.describe()),
            ));
        };
        if scanner.peek().kind != Kind::End {
            return Err(scanner.expected("the end of the instruction"));
        }
        let span = start.to(target.span);
        let op = match mnemonic {
            "JE" | "JZ" => BinaryOp::Eq,
            "JNE" | "JNZ" => BinaryOp::Ne,
            "JL" => BinaryOp::Lt,
            "JLE" => BinaryOp::Le,
            "JG" => BinaryOp::Gt,
            "JGE" => BinaryOp::Ge,
            _ => {
                self.emit(StatementKind::Goto(build::name(label, target.span)), span);
                return Ok(());
            }
        };
        let left = self.test.implicit_register(self.thread, LEFT, span);
        let right = self.test.implicit_register(self.thread, RIGHT, span);
        let condition = build::binary(op, build::variable(left, span), build::variable(right, span), span);
        let jump = build::block(vec![build::goto(&label, target.span)], span);
        self.emit(StatementKind::If(condition, jump, None), span);
        Ok(())
    }

    /// The operands, the target first whatever the syntax.
    fn operands(&mut self, scanner: &mut Scanner<'_>) -> Result<Vec<Operand>, Diagnostic> {
        let mut operands = Vec::new();
        let mut source_first = false;
        while scanner.peek().kind != Kind::End {
            if !operands.is_empty() {
                scanner.expect(",")?;
            }
            source_first |= scanner.is("%") || scanner.is("(");
            operands.push(self.operand(scanner)?);
        }
        if source_first {
            operands.reverse();
        }
        Ok(operands)
    }

    fn operand(&mut self, scanner: &mut Scanner<'_>) -> Result<Operand, Diagnostic> {
        let token = scanner.peek();
        let size = token.text.to_ascii_uppercase();
        if matches!(size.as_str(), "BYTE" | "WORD") {
            return Err(Diagnostic::new(token.span, "accesses of 8 and 16 bits are not supported"));
        }
        if matches!(size.as_str(), "DWORD" | "QWORD") {
            scanner.next();
            if scanner.peek().text.eq_ignore_ascii_case("ptr") {
                scanner.next();
            }
            return if scanner.is("[") { self.operand(scanner) } else { Err(scanner.expected("`[`")) };
        }
        let close = if scanner.is("[") { "]" } else { ")" };
        match token.text {
            "[" | "(" => {
                scanner.next();
                let word = scanner.peek();
                let computed = word.kind != Kind::Word || matches!(register_name(word.text), Some(Ok(_)));
                scanner.next();
                if computed || !scanner.is(close) {
                    let span = token.span.to(word.span);
                    return Err(Diagnostic::new(span, "computed addresses are not supported"));
                }
                scanner.next();
                Ok(Operand::Memory(self.test.location(word)))
            }
            "%" => Ok(Operand::Register(self.test.register(self.thread, scanner)?.text)),
            _ if token.kind == Kind::Word && register_name(token.text).is_some() => {
                Ok(Operand::Register(self.test.register(self.thread, scanner)?.text))
            }
            _ if token.kind == Kind::Word => {
                Err(scanner.expected("a register, a number or a location in brackets"))
            }
            _ => Ok(Operand::Immediate(scanner.value()?)),
        }
    }
}

/// `L0:`, if the cell goes on with a label.
fn label<'a>(scanner: &mut Scanner<'a>) -> Option<Token<'a>> {
    let mut ahead = *scanner;
    let word = ahead.next();
    let is_label = word.kind == Kind::Word && ahead.accept(":");
    is_label.then(|| {
        *scanner = ahead;
        word
    })
}

/// The instruction a word means: `mov`, or `movl` and `movq` with the size said.
fn mnemonic(word: Token<'_>) -> Option<&'static str> {
    let find = |name: &str| MNEMONICS.iter().find(|m| m.eq_ignore_ascii_case(name)).copied();
    find(word.text)
        .or_else(|| find(word.text.strip_suffix(['l', 'q', 'L', 'Q'])?).filter(|m| !m.starts_with('J')))
}
