//! Importer for trencher's automata.
//!
//! A state becomes a label, and its transitions become the branches of a `choose` after it (a single transition needs no `choose`); all states
//! without transitions become the end of the thread. Memory in trencher is addressed by arbitrary integers. If all addresses are constants, each of
//! them is a scalar (`m0`, `m1`, ..., `mm1` for -1). Otherwise memory is one open array `mem`, large enough for all addresses that `values` finds, up
//! to a limit. Trencher computes in 32 bits (where signed overflow is undefined); here integers are mathematical. Trencher's files state no property,
//! so the program has none.

mod values;

use std::collections::{BTreeSet, HashMap, HashSet};

use fencewright_front_end::Parsed;
use fencewright_fw::ast::{ArraySize, Declarator, Expr, File, Item, Place, Statement, StatementKind, Thread};
use fencewright_fw::build::{self, NESTING_LIMIT};
use fencewright_fw::names::Names;
use fencewright_program::{BinaryOp, Span, UnaryOp};
use fencewright_text::Diagnostic;

use values::{Flow, Term, addresses, window};

/// Maximum number of cells of the array `mem`.
const WINDOW_LIMIT: u64 = 4_096;

/// Imports a trencher program.
pub fn trencher(text: &str) -> Result<Parsed, Vec<Diagnostic>> {
    import(text).map_err(|diagnostic| vec![diagnostic])
}

/// A word with its position.
#[derive(Clone, Copy, Debug)]
struct Word<'a> {
    text: &'a str,
    span: Span,
}

#[derive(Debug)]
enum Instruction {
    Read(usize, Term),
    Write { value: Term, address: Term },
    Local(usize, Term),
    Check(Term),
    Fence,
    Noop,
    Lock,
    Unlock,
}

struct Transition<'a> {
    from: Word<'a>,
    to: Word<'a>,
    instruction: Instruction,
    span: Span,
}

struct Automaton<'a> {
    name: Word<'a>,
    initial: Word<'a>,
    transitions: Vec<Transition<'a>>,
    /// The number of the automaton's first register; its other registers have the following numbers.
    first_register: usize,
    registers: Vec<Word<'a>>,
    span: Span,
}

fn import(text: &str) -> Result<Parsed, Diagnostic> {
    let mut reader = Reader { text, at: 0, registers: HashMap::new(), used: Vec::new(), next_register: 0 };
    if text.starts_with('\u{feff}') {
        reader.at = '\u{feff}'.len_utf8();
    }
    let automata = reader.automata()?;
    let mut notes = Vec::new();
    let mut names = Names::default();
    let thread_names: Vec<String> = automata.iter().map(|a| names.fresh(a.name.text, "t", "_")).collect();
    let (memory, declared) = Memory::lay_out(&automata, &mut names, &mut notes);
    let mut file = File::default();
    if !declared.is_empty() {
        file.items.push(Item::Shared(declared));
    }
    for (automaton, name) in automata.iter().zip(&thread_names) {
        file.items.push(Item::Thread(thread(automaton, name, &memory, &names)));
    }
    Ok(Parsed { file, notes, ..Parsed::default() })
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// The numbers of the registers of the current thread, by name.
    registers: HashMap<&'a str, usize>,
    used: Vec<Word<'a>>,
    next_register: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<Word<'a>> {
        let is_space = |b: &u8| matches!(b, b' ' | b'\t'..=b'\r');
        let bytes = self.text.as_bytes();
        let start = self.at + bytes[self.at..].iter().take_while(|b| is_space(b)).count();
        let end = start + bytes[start..].iter().take_while(|b| !is_space(b)).count();
        self.at = end;
        (start < end).then(|| Word { text: &self.text[start..end], span: Span::new(start, end) })
    }

    fn expect(&mut self, what: &str) -> Result<Word<'a>, Diagnostic> {
        let end = Span::new(self.text.len(), self.text.len());
        self.next().ok_or_else(|| Diagnostic::new(end, format!("expected {what}, found the end of the file")))
    }

    fn automata(&mut self) -> Result<Vec<Automaton<'a>>, Diagnostic> {
        let mut automata = Vec::new();
        let mut seen = HashSet::new();
        while let Some(word) = self.next() {
            match word.text {
                "#" => {
                    let rest = &self.text[self.at..];
                    self.at += rest.find('\n').unwrap_or(rest.len());
                }
                "thread" => {
                    let automaton = self.automaton(word.span)?;
                    if !seen.insert(automaton.name.text) {
                        let message = format!("thread `{}` is defined twice", automaton.name.text);
                        return Err(Diagnostic::new(automaton.name.span, message));
                    }
                    automata.push(automaton);
                }
                other => {
                    let error = Diagnostic::new(word.span, format!("expected `thread`, found `{other}`"));
                    let comment = other.starts_with('#');
                    return Err(if comment {
                        error.help("a comment needs a blank after its `#`")
                    } else {
                        error
                    });
                }
            }
        }
        Ok(automata)
    }

    fn automaton(&mut self, thread: Span) -> Result<Automaton<'a>, Diagnostic> {
        self.registers.clear();
        let first_register = self.next_register;
        let name = self.expect("the name of a thread")?;
        let mut initial = None;
        let mut transitions = Vec::new();
        loop {
            let word = self.expect("`initial`, `transition` or `end`")?;
            match word.text {
                "initial" => initial = Some(self.expect("a state")?),
                "transition" => {
                    let from = self.expect("a state")?;
                    let to = self.expect("a state")?;
                    let instruction = self.instruction()?;
                    let span = word.span.up_to(self.at);
                    transitions.push(Transition { from, to, instruction, span });
                }
                "end" => {
                    let missing =
                        || Diagnostic::new(name.span, format!("thread `{}` has no `initial`", name.text));
                    let initial = initial.ok_or_else(missing)?;
                    let registers = std::mem::take(&mut self.used);
                    let span = thread.to(word.span);
                    return Ok(Automaton { name, initial, transitions, first_register, registers, span });
                }
                other => {
                    let message = format!("expected `initial`, `transition` or `end`, found `{other}`");
                    return Err(Diagnostic::new(word.span, message));
                }
            }
        }
    }

    fn instruction(&mut self) -> Result<Instruction, Diagnostic> {
        let word = self.expect("an instruction")?;
        Ok(match word.text {
            "read" => {
                let register = self.expect("a register")?;
                Instruction::Read(self.register(register), self.term(0)?)
            }
            "write" => {
                let value = self.term(0)?;
                Instruction::Write { value, address: self.term(0)? }
            }
            "local" => {
                let register = self.expect("a register")?;
                Instruction::Local(self.register(register), self.term(0)?)
            }
            "check" => Instruction::Check(self.term(0)?),
            "mfence" => Instruction::Fence,
            "noop" => Instruction::Noop,
            "lock" => Instruction::Lock,
            "unlock" => Instruction::Unlock,
            other => return Err(Diagnostic::new(word.span, format!("unknown instruction `{other}`"))),
        })
    }

    /// An expression in prefix notation.
    fn term(&mut self, depth: usize) -> Result<Term, Diagnostic> {
        let word = self.expect("an expression")?;
        if depth > NESTING_LIMIT {
            return Err(Diagnostic::new(word.span, "nested too deeply"));
        }
        let op = match word.text {
            "!" => return Ok(Term::Unary(UnaryOp::Not, Box::new(self.term(depth + 1)?))),
            "==" => BinaryOp::Eq,
            "!=" => BinaryOp::Ne,
            "<" => BinaryOp::Lt,
            "<=" => BinaryOp::Le,
            ">" => BinaryOp::Gt,
            ">=" => BinaryOp::Ge,
            "&&" => BinaryOp::And,
            "||" => BinaryOp::Or,
            "+" => BinaryOp::Add,
            "-" => BinaryOp::Sub,
            "*" => BinaryOp::Mul,
            "&" => BinaryOp::BitAnd,
            other => {
                return Ok(match leading_int(other) {
                    Some(value) => Term::Constant(value.into()),
                    None => Term::Register(self.register(word)),
                });
            }
        };
        let left = self.term(depth + 1)?;
        Ok(Term::Binary(op, Box::new(left), Box::new(self.term(depth + 1)?)))
    }

    /// The number of a register, allocated at its first mention.
    fn register(&mut self, word: Word<'a>) -> usize {
        *self.registers.entry(word.text).or_insert_with(|| {
            self.used.push(word);
            self.next_register += 1;
            self.next_register - 1
        })
    }
}

/// The number that a C++ stream would read at the start of a word, ignoring the rest: `1x` is 1. `None` if the word does not start with a number that
/// fits 32 bits; such a word names a register.
fn leading_int(word: &str) -> Option<i32> {
    let sign = word.starts_with(['+', '-']) as usize;
    let digits = word[sign..].bytes().take_while(u8::is_ascii_digit).count();
    word[..sign + digits].parse().ok()
}

/// The variables that addresses are mapped to.
enum Memory {
    /// A scalar for each constant address.
    Scalars(HashMap<i64, String>),
    /// One open array, whose indices are the addresses.
    Array(String),
}

impl Memory {
    fn lay_out(
        automata: &[Automaton<'_>],
        names: &mut Names<'_>,
        notes: &mut Vec<String>,
    ) -> (Memory, Vec<Declarator>) {
        let instructions = || automata.iter().flat_map(|a| &a.transitions).map(|t| (&t.instruction, t.span));
        let mut scalars = HashMap::new();
        let mut declared = Vec::new();
        let mut computed_at = None;
        for (instruction, span) in instructions() {
            let (Instruction::Read(_, address) | Instruction::Write { address, .. }) = instruction else {
                continue;
            };
            match address.constant() {
                Some(at) => {
                    scalars.entry(at).or_insert(span);
                }
                None => computed_at = computed_at.or(Some(span)),
            }
        }
        let Some(span) = computed_at else {
            let mut sorted: Vec<(i64, Span)> = scalars.into_iter().collect();
            sorted.sort_unstable();
            let mut scalars = HashMap::new();
            for (at, span) in sorted {
                let minus = if at < 0 { "m" } else { "" };
                let name = names.fresh(&format!("m{minus}{}", at.unsigned_abs()), "m", "_");
                declared.push(build::declarator(&name, None, span));
                scalars.insert(at, name);
            }
            return (Memory::Scalars(scalars), declared);
        };
        let (low, high) = find_window(automata, notes);
        let name = names.fresh("mem", "m", "_");
        let size = ArraySize::Indices(build::range(low, high, span));
        declared.push(build::array(&name, size, true, None, span));
        (Memory::Array(name), declared)
    }

    fn place(&self, address: &Term, registers: &Registers<'_>, span: Span) -> Place {
        match self {
            Memory::Array(name) => build::cell(name, registers.expr(address, span), span),
            Memory::Scalars(scalars) => {
                let name = address.constant().and_then(|at| scalars.get(&at)).map_or("", String::as_str);
                build::scalar(name, span)
            }
        }
    }
}

/// The first and the last index of the array `mem`, chosen to cover the addresses of the program. `notes` gets a message if they are unknown or do
/// not all fit.
fn find_window(automata: &[Automaton<'_>], notes: &mut Vec<String>) -> (i64, i64) {
    let mut constants = BTreeSet::new();
    let mut flows = Vec::new();
    let mut registers = 0;
    for automaton in automata {
        registers += automaton.registers.len();
        for Transition { instruction, .. } in &automaton.transitions {
            match instruction {
                Instruction::Read(register, address) => {
                    collect_constants(address, &mut constants);
                    flows.push(Flow::Read(*register, address.clone()));
                }
                Instruction::Write { value, address } => {
                    collect_constants(address, &mut constants);
                    collect_constants(value, &mut constants);
                    flows.push(Flow::Write { address: address.clone(), value: value.clone() });
                }
                Instruction::Local(register, value) => {
                    collect_constants(value, &mut constants);
                    flows.push(Flow::Local(*register, value.clone()));
                }
                Instruction::Check(condition) => collect_constants(condition, &mut constants),
                Instruction::Fence | Instruction::Noop | Instruction::Lock | Instruction::Unlock => {}
            }
        }
    }
    let found = addresses(&flows, registers).unwrap_or_else(|| {
        notes.push(
            "which addresses the program touches is not known: memory is a window around its constants"
                .to_owned(),
        );
        constants.extend(0..64);
        constants
    });
    let (low, high) = window(&found, WINDOW_LIMIT);
    if found.first().is_some_and(|&first| first < low) || found.last().is_some_and(|&last| last > high) {
        notes.push(format!("addresses lie far apart: memory is only the window from {low} to {high}"));
    }
    (low, high)
}

fn collect_constants(term: &Term, into: &mut BTreeSet<i64>) {
    match term {
        Term::Constant(value) => {
            into.insert(*value);
        }
        Term::Register(_) => {}
        Term::Unary(_, operand) => collect_constants(operand, into),
        Term::Binary(_, left, right) => {
            collect_constants(left, into);
            collect_constants(right, into);
        }
    }
}

/// The registers of one thread with their new names.
struct Registers<'r> {
    first: usize,
    names: &'r [String],
}

impl Registers<'_> {
    fn name(&self, register: usize) -> &str {
        &self.names[register - self.first]
    }

    fn expr(&self, term: &Term, span: Span) -> Expr {
        match term {
            Term::Constant(value) => build::int(*value, span),
            Term::Register(register) => build::variable(self.name(*register), span),
            Term::Unary(op, operand) => build::unary(*op, self.expr(operand, span), span),
            Term::Binary(op, left, right) => {
                build::binary(*op, self.expr(left, span), self.expr(right, span), span)
            }
        }
    }
}

fn thread(automaton: &Automaton<'_>, name: &str, memory: &Memory, names: &Names<'_>) -> Thread {
    let mut own_names = Names::inside(names);
    let register_names: Vec<String> =
        automaton.registers.iter().map(|r| own_names.fresh(r.text, "r", "_r")).collect();
    let registers = Registers { first: automaton.first_register, names: &register_names };
    let declarators = register_names
        .iter()
        .zip(&automaton.registers)
        .map(|(n, r)| build::declarator(n, None, r.span))
        .collect();

    // The initial state comes first, since a thread starts at the beginning of its text.
    let mut label_names = Names::default();
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut states: Vec<(Word<'_>, String, Vec<&Transition<'_>>)> = Vec::new();
    let mentioned = automaton.transitions.iter().flat_map(|t| [t.from, t.to]);
    for state in std::iter::once(automaton.initial).chain(mentioned) {
        numbers.entry(state.text).or_insert_with(|| {
            states.push((state, label_names.fresh(state.text, "q", "_"), Vec::new()));
            states.len() - 1
        });
    }
    for transition in &automaton.transitions {
        states[numbers[transition.from.text]].2.push(transition);
    }
    let step = |transition: &Transition<'_>| {
        let target = &states[numbers[transition.to.text]].1;
        let jump = build::goto(target, transition.to.span);
        vec![instruction(transition, &registers, memory), jump]
    };
    let mut body: Vec<Statement> = Vec::new();
    let mut last = build::statement(StatementKind::Empty, automaton.initial.span);
    for (number, (state, label, transitions)) in states.iter().enumerate() {
        let first = body.len();
        match transitions.as_slice() {
            [] => {
                // All states without outgoing transitions become labels at the end of the text, without an extra step.
                last.labels.push(build::name(label, state.span));
                if number == 0 {
                    body.push(build::goto(label, state.span));
                }
                continue;
            }
            [only] => body.extend(step(only)),
            several => {
                let branches = several.iter().map(|t| build::block(step(t), t.span)).collect();
                let span = several[0].span;
                body.push(build::statement(StatementKind::Choose(branches), span));
            }
        }
        body[first].labels.push(build::name(label, state.span));
    }
    if !last.labels.is_empty() {
        body.push(last);
    }
    build::thread(name, declarators, body, automaton.span)
}

fn instruction(transition: &Transition<'_>, registers: &Registers<'_>, memory: &Memory) -> Statement {
    let span = transition.span;
    match &transition.instruction {
        Instruction::Read(register, address) => {
            let loaded = build::value_of(memory.place(address, registers, span), span);
            build::assign(build::scalar(registers.name(*register), span), loaded, span)
        }
        Instruction::Write { value, address } => {
            build::assign(memory.place(address, registers, span), registers.expr(value, span), span)
        }
        Instruction::Local(register, value) => {
            let target = build::scalar(registers.name(*register), span);
            build::assign(target, registers.expr(value, span), span)
        }
        Instruction::Check(condition) => build::assume(registers.expr(condition, span), span),
        Instruction::Fence => build::statement(StatementKind::Fence, span),
        Instruction::Noop => build::statement(StatementKind::Skip, span),
        Instruction::Lock => build::statement(StatementKind::Lock(None), span),
        Instruction::Unlock => build::statement(StatementKind::Unlock(None), span),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_streams_read_them() {
        let check = |word, expected| assert_eq!(leading_int(word), expected, "{word}");
        check("12", Some(12));
        check("1x", Some(1));
        check("-1", Some(-1));
        check("+5,", Some(5));
        check("0x10", Some(0));
        check("x1", None);
        check("-", None);
        check("é", None);
        check("2147483647", Some(i32::MAX));
        check("2147483648", None);
    }
}
