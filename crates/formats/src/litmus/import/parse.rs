//! Parses the instructions of a litmus test: labels, operands, widths.

use std::collections::HashMap;
use std::ops::Range;

use fencewright_program::Span;
use fencewright_text::Diagnostic;

use super::Test;
use super::mnemonic::{Action, mnemonic};
use super::scan::{Kind, Scanner, Token};
use super::types::RegisterPart;

/// An operand of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    Register(RegisterPart),
    /// A location, by number.
    Memory(usize),
    Immediate(i128),
}

/// One instruction, or the end of the thread with the labels there.
#[derive(Clone, Debug)]
pub(super) struct Instruction<'t> {
    pub(super) labels: Vec<Token<'t>>,
    pub(super) action: Action,
    /// The operands, the target first.
    pub(super) operands: Vec<Operand>,
    /// The width of the operation in bits, as `Parser::width` determines it; 0 for the labels at the end of a thread.
    pub(super) bits: u32,
    pub(super) locked: bool,
    /// The target of a jump; `None` for other instructions.
    pub(super) label: Option<Token<'t>>,
    pub(super) span: Span,
}

/// An operand as it is written.
struct Written {
    operand: Operand,
    span: Span,
    /// The width given by `DWORD PTR` and the like, if any.
    said: Option<u32>,
    /// Whether it is written in AT&T syntax: `%eax`, `(x)`.
    att: bool,
}

/// Parses the instructions in the cells of one column.
pub(super) fn instructions<'t>(
    text: &'t str,
    cells: &[Range<usize>],
    thread: usize,
    test: &mut Test,
) -> Result<Vec<Instruction<'t>>, Diagnostic> {
    let mut parser = Parser { thread, test };
    let mut code = Vec::new();
    let mut labels = Vec::new();
    for cell in cells {
        let mut scanner = Scanner::new(text, cell.clone());
        while let Some(label) = label(&mut scanner) {
            labels.push(label);
        }
        let mut lock = None;
        if scanner.peek().text.eq_ignore_ascii_case("lock") {
            lock = Some(scanner.next().span);
            scanner.accept(";");
        }
        if scanner.peek().kind != Kind::End {
            code.push(parser.instruction(scanner, lock, std::mem::take(&mut labels))?);
        } else if let Some(span) = lock {
            return Err(Diagnostic::new(span, "no instruction follows this `LOCK`"));
        }
    }
    if let Some(last) = labels.last() {
        let span = last.span;
        let (action, operands) = (Action::Nothing, Vec::new());
        code.push(Instruction { labels, action, operands, bits: 0, locked: false, label: None, span });
    }
    check_labels(&code)?;
    Ok(code)
}

/// Checks that no label is defined twice, and that every jump has a target.
fn check_labels(code: &[Instruction<'_>]) -> Result<(), Diagnostic> {
    let mut defined = HashMap::new();
    for label in code.iter().flat_map(|i| &i.labels) {
        if defined.insert(label.text, ()).is_some() {
            let message = format!("label `{}` is defined twice", label.text);
            return Err(Diagnostic::new(label.span, message));
        }
    }
    match code.iter().filter_map(|i| i.label).find(|target| !defined.contains_key(target.text)) {
        Some(target) => {
            let message = format!("no label {} in this thread", target.describe());
            Err(Diagnostic::new(target.span, message))
        }
        None => Ok(()),
    }
}

/// `L0:` or `.L0:`, if the cell continues with a label.
fn label<'a>(scanner: &mut Scanner<'a>) -> Option<Token<'a>> {
    let mut ahead = *scanner;
    let word = ahead.next();
    let is_label = word.kind == Kind::Word && ahead.accept(":");
    is_label.then(|| {
        *scanner = ahead;
        word
    })
}

struct Parser<'p> {
    thread: usize,
    test: &'p mut Test,
}

impl Parser<'_> {
    fn instruction<'t>(
        &mut self,
        mut scanner: Scanner<'t>,
        lock: Option<Span>,
        labels: Vec<Token<'t>>,
    ) -> Result<Instruction<'t>, Diagnostic> {
        let word = scanner.next();
        let (action, suffix) = mnemonic(word)?;
        let cannot_lock = |lock| Err(Diagnostic::new(lock, "this instruction cannot have a `LOCK` prefix"));
        if let Action::Jump(_) = action {
            let target = scanner.next();
            if target.kind != Kind::Word {
                let message = format!("no label {} in this thread", target.describe());
                return Err(Diagnostic::new(target.span, message));
            }
            if scanner.peek().kind != Kind::End {
                return Err(scanner.expected("the end of the instruction"));
            }
            if let Some(lock) = lock {
                return cannot_lock(lock);
            }
            let (label, span) = (Some(target), word.span.to(target.span));
            return Ok(Instruction {
                labels,
                action,
                operands: Vec::new(),
                bits: 32,
                locked: false,
                label,
                span,
            });
        }
        let mut written = Vec::new();
        while scanner.peek().kind != Kind::End {
            if !written.is_empty() {
                scanner.expect(",")?;
            }
            written.push(self.operand(&mut scanner)?);
        }
        let span = lock.unwrap_or(word.span).up_to(scanner.at);
        let is_memory = |w: &Written| matches!(w.operand, Operand::Memory(_));
        if written.iter().filter(|w| is_memory(w)).count() > 1 {
            return Err(Diagnostic::new(span, "an instruction cannot have two operands in memory"));
        }
        self.target_first(action, &mut written, span)?;
        check_operands(action, &written, word, span)?;
        let lockable = match action {
            Action::Exchange => written.iter().any(is_memory),
            Action::Binary(_)
            | Action::Count(_)
            | Action::Negate
            | Action::Invert
            | Action::ExchangeAdd
            | Action::CompareExchange => written.first().is_some_and(is_memory),
            _ => false,
        };
        if let (Some(lock), false) = (lock, lockable) {
            return cannot_lock(lock);
        }
        let bits = self.width(action, suffix, &written, span)?;
        self.note_accesses(action, bits, &written)?;
        let operands = written.into_iter().map(|w| w.operand).collect();
        Ok(Instruction { labels, action, operands, bits, locked: lock.is_some(), label: None, span })
    }

    /// Reorders operands so that the target is first. AT&T syntax has the source first, Intel syntax and herd's `X86` tests have the target first;
    /// herd reads `X86_64` tests source first, except for CMPXCHG and CMOV. For exchanges and CMOV, an operand in memory determines the order. In
    /// `X86_64` tests without `%`, a constant operand is the source and thereby determines the order.
    fn target_first(&self, action: Action, written: &mut [Written], span: Span) -> Result<(), Diagnostic> {
        let [first, second] = &*written else { return Ok(()) };
        let memory = |w: &Written| matches!(w.operand, Operand::Memory(_));
        let number = |w: &Written| matches!(w.operand, Operand::Immediate(_));
        let att = first.att || second.att;
        let swap = match action {
            Action::Exchange | Action::ExchangeAdd | Action::CompareExchange
                if memory(first) || memory(second) =>
            {
                memory(second)
            }
            Action::MoveIf(_) if memory(first) || memory(second) => memory(first),
            _ if att => true,
            Action::Test | Action::Exchange => false,
            _ if number(first) && self.test.is_64 => true,
            _ if number(first) || number(second) => false,
            _ if self.test.is_64 => {
                let message = "which operand is the target cannot be told";
                return Err(Diagnostic::new(span, message).help(
                    "write registers with `%`: the source then comes first, as herd reads X86_64 tests",
                ));
            }
            _ => false,
        };
        if swap {
            written.swap(0, 1);
        }
        Ok(())
    }

    /// The width of an instruction: given by its suffix, its registers or `DWORD PTR`, otherwise by the declared type of the location, otherwise 32
    /// bits. For a move with extension, this is the width of the target.
    fn width(
        &self,
        action: Action,
        suffix: Option<u32>,
        written: &[Written],
        span: Span,
    ) -> Result<u32, Diagnostic> {
        let mut sized = written;
        if let Action::Extend { from, .. } = action {
            sized = &written[..1];
            if let Operand::Register(part) = written[1].operand
                && part.bits() != from
            {
                let message = format!("this operand has {} bits, the instruction {from}", part.bits());
                return Err(Diagnostic::new(written[1].span, message));
            }
        }
        let mut width = suffix.map(|bits| (bits, span));
        for operand in sized {
            let said = match operand.operand {
                Operand::Register(part) => Some(part.bits()),
                Operand::Memory(_) => operand.said,
                Operand::Immediate(_) => None,
            };
            let Some(said) = said else { continue };
            match width {
                // `setnb %eax`: on the machine this sets 8 bits, but herd sets the whole register.
                Some((bits, _)) if bits != said && matches!(action, Action::Set(_)) => {
                    width = Some((said, operand.span));
                }
                Some((bits, _)) if bits != said => {
                    let message = format!("this operand has {said} bits, the instruction {bits}");
                    return Err(Diagnostic::new(operand.span, message));
                }
                _ => width = Some((said, operand.span)),
            }
        }
        if let Some((bits, _)) = width {
            return Ok(bits);
        }
        let of_location = written.iter().find_map(|w| match w.operand {
            Operand::Memory(location) => self.test.locations[location].declared,
            _ => None,
        });
        Ok(of_location.map_or(32, |t| t.bits))
    }

    /// Records which parts of registers and how many bits of locations are used.
    fn note_accesses(&mut self, action: Action, bits: u32, written: &[Written]) -> Result<(), Diagnostic> {
        for (position, Written { operand, span, .. }) in written.iter().enumerate() {
            let bits = match action {
                Action::Extend { from, .. } if position == 1 => from,
                _ => bits,
            };
            match *operand {
                Operand::Register(part) => self.test.use_register(self.thread, part, *span)?,
                Operand::Memory(location) => self.test.access(location, bits, *span)?,
                Operand::Immediate(_) => {}
            }
        }
        if action == Action::CompareExchange {
            let accumulator = RegisterPart::accumulator(bits);
            self.test.use_register(self.thread, accumulator, written[0].span)?;
        }
        Ok(())
    }

    fn operand(&mut self, scanner: &mut Scanner<'_>) -> Result<Written, Diagnostic> {
        let token = scanner.peek();
        let said = match token.text.to_ascii_uppercase().as_str() {
            "BYTE" => Some(8),
            "WORD" => Some(16),
            "DWORD" => Some(32),
            "QWORD" => Some(64),
            _ => None,
        };
        let mut ahead = *scanner;
        ahead.next();
        let ptr = ahead.peek().text.eq_ignore_ascii_case("ptr");
        if said.is_some() && (ptr || ahead.is("[")) {
            *scanner = ahead;
            if ptr {
                scanner.next();
            }
            if !scanner.is("[") {
                return Err(scanner.expected("`[`"));
            }
            return Ok(Written { said, ..self.operand(scanner)? });
        }
        let is_register = token.text == "%" || RegisterPart::parse(token.text).is_some();
        let mut att = token.text == "%";
        let operand = if is_register {
            Operand::Register(register(scanner)?)
        } else if let Some(memory) = self.memory(scanner)? {
            att = memory.1;
            Operand::Memory(memory.0)
        } else if token.kind == Kind::Word {
            return Err(scanner.expected("a register, a number or a location in brackets"));
        } else {
            Operand::Immediate(scanner.value()?)
        };
        let span = token.span.up_to(scanner.at);
        Ok(Written { operand, span, said: None, att })
    }

    /// Parses a location in memory such as `[x]`, `(x)`, `[eax+4]`, `4(%rdi)` or `x(%rip)`; returns it, and whether it is written in AT&T syntax.
    /// Consumes nothing if no location follows.
    fn memory(&mut self, scanner: &mut Scanner<'_>) -> Result<Option<(usize, bool)>, Diagnostic> {
        let start = *scanner;
        let first = scanner.peek();
        let computed = |end: usize| {
            let span = first.span.up_to(end);
            Diagnostic::new(span, "computed addresses are not supported")
                .help("an address is that of a location, or a register that holds one from the start, and a constant")
        };
        let mut offset = 0;
        let mut symbol = None;
        if first.kind == Kind::Number || first.text == "-" {
            let mut ahead = *scanner;
            let Ok(value) = ahead.value() else { return Ok(None) };
            if !(ahead.is("(") || ahead.is("[")) {
                return Ok(None);
            }
            (*scanner, offset) = (ahead, value);
        } else if first.kind == Kind::Word {
            let mut ahead = *scanner;
            let word = ahead.next();
            if !ahead.is("(") {
                return Ok(None);
            }
            (*scanner, symbol) = (ahead, Some(word));
        }
        let (close, att) = match scanner.peek().text {
            "[" => ("]", false),
            "(" => (")", true),
            _ => {
                *scanner = start;
                return Ok(None);
            }
        };
        scanner.next();
        let base = scanner.peek();
        let location = if let Some(symbol) = symbol {
            // `x(%rip)` is relative to the next instruction: the form that compilers use for a global variable.
            scanner.accept("%");
            if !scanner.peek().text.eq_ignore_ascii_case("rip") {
                return Err(computed(scanner.peek().span.end as usize));
            }
            scanner.next();
            self.test.location_number(symbol)?
        } else if base.text == "%" || RegisterPart::parse(base.text).is_some() {
            let part = register(scanner)?;
            self.test.address_in(self.thread, part, base.span.up_to(scanner.at))?
        } else if base.kind == Kind::Word {
            scanner.next();
            self.test.location_number(base)?
        } else {
            return Err(computed(base.span.end as usize));
        };
        if !att && (scanner.is("+") || scanner.is("-")) {
            let negative = scanner.next().text == "-";
            if scanner.peek().kind != Kind::Number {
                return Err(computed(scanner.peek().span.end as usize));
            }
            let value = scanner.value()?;
            offset += if negative { -value } else { value };
        }
        if !scanner.is(close) {
            return Err(computed(scanner.peek().span.end as usize));
        }
        scanner.next();
        let span = first.span.up_to(scanner.at);
        Ok(Some((self.test.at_offset(location, offset, span)?, att)))
    }
}

/// A register with or without `%`.
fn register(scanner: &mut Scanner<'_>) -> Result<RegisterPart, Diagnostic> {
    scanner.accept("%");
    match RegisterPart::parse(scanner.peek().text) {
        Some(part) => {
            scanner.next();
            Ok(part)
        }
        None => Err(scanner.expected("a register")),
    }
}

/// Checks that an instruction can have these operands, for example a constant as the source.
fn check_operands(
    action: Action,
    written: &[Written],
    word: Token<'_>,
    span: Span,
) -> Result<(), Diagnostic> {
    use Operand::{Immediate, Memory, Register};
    let operands: Vec<Operand> = written.iter().map(|w| w.operand).collect();
    let fine = match (action, &operands[..]) {
        (Action::Fence | Action::StoreFence | Action::Nothing | Action::Stop, []) => true,
        (Action::Compare | Action::Test, [_, _]) => true,
        (Action::Binary(_), [Immediate(_), _])
        | (Action::Count(_) | Action::Negate | Action::Invert, [Immediate(_)]) => {
            return Err(Diagnostic::new(span, "a number cannot be changed"));
        }
        (Action::Move | Action::Binary(_), [Register(_) | Memory(_), _]) => true,
        (Action::Count(_) | Action::Negate | Action::Invert | Action::Set(_), [Register(_) | Memory(_)]) => {
            true
        }
        (Action::Extend { .. } | Action::MoveIf(_), [Register(_), Register(_) | Memory(_)]) => true,
        (Action::Exchange, [Register(_), Register(_) | Memory(_)] | [Memory(_), Register(_)]) => true,
        (Action::ExchangeAdd, [Register(_) | Memory(_), Register(_)]) => true,
        (Action::CompareExchange, [Memory(_), Register(_)]) => true,
        _ => false,
    };
    let small = |o: &Operand| matches!(o, Register(part) if part.bits() == 8);
    if let (Action::MoveIf(_), true) = (action, operands.iter().any(small)) {
        return Err(Diagnostic::new(span, "CMOV does not take operands of 8 bits"));
    }
    match fine {
        true => Ok(()),
        false => {
            let message = format!("{} does not take these operands", word.text.to_ascii_uppercase());
            Err(Diagnostic::new(span, message))
        }
    }
}
