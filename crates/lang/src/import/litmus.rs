//! Importer for x86 litmus tests.
//!
//! A column becomes a thread (`P0`, `P1`, ...), a location a shared variable, the condition the property `condition` about
//! final states. Values are mathematical integers of no particular size: `EAX` and `RAX` are one register, and the smaller
//! parts of registers are not supported, nor are addresses as values. A locked instruction, or an exchange with memory,
//! is one indivisible step that empties the store buffer first; an instruction that reads and writes memory without a
//! lock is a load and then a store.

use std::collections::HashMap;

use fencewright_program::Span;

use super::Imported;
use super::build;
use super::litmus_code::{Code, RESERVED_NAMES, register_name};
use super::litmus_condition::condition;
use super::litmus_scan::{Kind, Scanner, Sections, Token, sections};
use super::names::Names;
use crate::ast::{File, Item, Name, Statement};
use crate::diagnostic::Diagnostic;

/// Reads an x86 litmus test.
pub fn litmus(text: &str) -> Result<Imported, Vec<Diagnostic>> {
    import(text).map_err(|diagnostic| vec![diagnostic])
}

fn import(text: &str) -> Result<Imported, Diagnostic> {
    let Sections { text, name, init, rows, rest } = sections(text)?;
    let mut test = Test::default();
    let columns = thread_names(&text, &rows, init.start, &mut test)?;
    initial_state(&mut Scanner::new(&text, init), &mut test)?;
    for (number, cells) in columns.into_iter().enumerate() {
        test.threads[number].body = Code::translate(&text, &cells, number, &mut test)?;
    }
    let property = condition(&mut Scanner::new(&text, rest), &mut test)?;
    let notes = property.is_none().then(|| "the test has no condition".to_owned());

    let mut file = File::default();
    let declared =
        test.locations.iter().map(|l| build::declarator(&l.name, build::initial(l.init, l.span), l.span));
    let declared: Vec<_> = declared.collect();
    if !declared.is_empty() {
        file.items.push(Item::Shared(declared));
    }
    for thread in test.threads {
        let registers = thread.registers.iter();
        let registers = registers.map(|r| build::declarator(&r.name, build::initial(r.init, r.span), r.span));
        file.items.push(Item::Thread(build::thread(
            &thread.name,
            registers.collect(),
            thread.body,
            thread.span,
        )));
    }
    file.items.extend(property.map(Item::Property));
    Ok(Imported { file, name, notes: notes.into_iter().collect() })
}

/// A location in memory.
struct Location {
    name: String,
    init: i64,
    span: Span,
}

/// A register of a thread.
struct Register {
    /// The same for `EAX` and `RAX`.
    canonical: &'static str,
    /// As the test first writes it.
    name: String,
    init: i64,
    span: Span,
}

/// A thread while the test is read.
pub(super) struct TestThread {
    pub(super) name: String,
    registers: Vec<Register>,
    body: Vec<Statement>,
    span: Span,
}

/// What is known of a test while it is read.
pub(super) struct Test {
    names: Names<'static>,
    locations: Vec<Location>,
    location_numbers: HashMap<String, usize>,
    pub(super) threads: Vec<TestThread>,
    thread_numbers: HashMap<u32, usize>,
}

impl Default for Test {
    fn default() -> Self {
        let mut names = Names::default();
        for name in RESERVED_NAMES {
            names.fresh(name, "r", "_");
        }
        Test {
            names,
            locations: Vec::new(),
            location_numbers: HashMap::new(),
            threads: Vec::new(),
            thread_numbers: HashMap::new(),
        }
    }
}

impl Test {
    /// The name of the variable for a location, which exists from its first mention on.
    pub(super) fn location(&mut self, word: Token<'_>) -> String {
        let number = self.location_number(word);
        self.locations[number].name.clone()
    }

    fn location_number(&mut self, word: Token<'_>) -> usize {
        if let Some(&number) = self.location_numbers.get(word.text) {
            return number;
        }
        let name = self.names.fresh(word.text, "x", "_");
        self.location_numbers.insert(word.text.to_owned(), self.locations.len());
        self.locations.push(Location { name, init: 0, span: word.span });
        self.locations.len() - 1
    }

    /// The thread that `0` or `P0` in front of a colon means.
    pub(super) fn thread(&self, token: Token<'_>) -> Result<usize, Diagnostic> {
        let number = thread_number(token.text).and_then(|number| self.thread_numbers.get(&number));
        number.copied().ok_or_else(|| Diagnostic::new(token.span, format!("no thread {}", token.describe())))
    }

    /// Reads the name of a register, with or without `%`, which exists from its first mention on.
    pub(super) fn register(&mut self, thread: usize, scanner: &mut Scanner<'_>) -> Result<Name, Diagnostic> {
        scanner.accept("%");
        let token = scanner.peek();
        let Some(canonical) = register_name(token.text) else {
            return Err(scanner.expected("a register"));
        };
        scanner.next();
        let canonical = canonical.map_err(|message| Diagnostic::new(token.span, message))?;
        let registers = &mut self.threads[thread].registers;
        if let Some(register) = registers.iter().find(|r| r.canonical == canonical) {
            return Ok(build::name(&register.name, token.span));
        }
        let name = token.text.to_ascii_uppercase();
        registers.push(Register { canonical, name: name.clone(), init: 0, span: token.span });
        Ok(build::name(name, token.span))
    }

    /// A register that no operand names: one that the translation needs, or an implicit one. Its name is among
    /// [`RESERVED_NAMES`].
    pub(super) fn implicit_register(&mut self, thread: usize, canonical: &'static str, span: Span) -> String {
        let registers = &mut self.threads[thread].registers;
        if let Some(register) = registers.iter().find(|r| r.canonical == canonical) {
            return register.name.clone();
        }
        registers.push(Register { canonical, name: canonical.to_owned(), init: 0, span });
        canonical.to_owned()
    }
}

/// `0` or `P0`.
fn thread_number(text: &str) -> Option<u32> {
    let digits = text.strip_prefix(['P', 'p']).unwrap_or(text);
    if digits.bytes().all(|b| b.is_ascii_digit()) { digits.parse().ok() } else { None }
}

/// Makes a thread of each cell in the first row, and gives the other cells by column.
fn thread_names(
    text: &str,
    rows: &[Vec<std::ops::Range<usize>>],
    init: usize,
    test: &mut Test,
) -> Result<Vec<Vec<std::ops::Range<usize>>>, Diagnostic> {
    let Some(header) = rows.first() else {
        return Err(Diagnostic::new(Span::new(init - 1, init), "no program follows the initial state"));
    };
    for cell in header {
        let mut scanner = Scanner::new(text, cell.clone());
        let token = scanner.next();
        let number = thread_number(token.text).filter(|_| token.kind == Kind::Word);
        let number = number.ok_or_else(|| {
            let message = format!("expected the name of a thread like `P0`, found {}", token.describe());
            Diagnostic::new(token.span, message)
        })?;
        if scanner.peek().kind != Kind::End {
            return Err(scanner.expected("`|` or `;`"));
        }
        if test.thread_numbers.insert(number, test.threads.len()).is_some() {
            return Err(Diagnostic::new(token.span, format!("thread `{}` is there twice", token.text)));
        }
        let name = test.names.fresh(&format!("P{number}"), "P", "_");
        let (registers, body) = (Vec::new(), Vec::new());
        test.threads.push(TestThread { name, registers, body, span: token.span });
    }
    let mut columns = vec![Vec::new(); header.len()];
    for row in &rows[1..] {
        if row.len() != header.len() {
            let blanks =
                |r: &std::ops::Range<usize>| text[r.clone()].len() - text[r.clone()].trim_start().len();
            let span = Span::new(row[0].start + blanks(&row[0]), row[row.len() - 1].end);
            let message =
                format!("this row has {} columns, but there are {} threads", row.len(), header.len());
            return Err(Diagnostic::new(span, message));
        }
        for (column, cell) in columns.iter_mut().zip(row) {
            if !text[cell.clone()].trim().is_empty() {
                column.push(cell.clone());
            }
        }
    }
    for (thread, cells) in test.threads.iter_mut().zip(&columns) {
        // In one column the thread's lines reach from its name to its last instruction.
        if let (Some(last), 1) = (cells.last(), header.len()) {
            thread.span = thread.span.to(Span::new(last.start, last.end));
        }
    }
    Ok(columns)
}

/// `x=1; 0:EAX=2; int y; [z]=3`
fn initial_state(scanner: &mut Scanner<'_>, test: &mut Test) -> Result<(), Diagnostic> {
    loop {
        while scanner.accept(";") || scanner.accept(",") {}
        if scanner.peek().kind == Kind::End {
            return Ok(());
        }
        skip_type(scanner)?;
        let start = scanner.peek();
        if scanner.accept("[") {
            let word = scanner.peek();
            if word.kind != Kind::Word {
                return Err(scanner.expected("a location"));
            }
            scanner.next();
            scanner.expect("]")?;
            let location = test.location_number(word);
            test.locations[location].init = optional_value(scanner)?;
        } else if matches!(start.kind, Kind::Number | Kind::Word) {
            scanner.next();
            if scanner.accept(":") {
                let thread = test.thread(start)?;
                let name = test.register(thread, scanner)?.text;
                let value = optional_value(scanner)?;
                test.threads[thread]
                    .registers
                    .iter_mut()
                    .filter(|r| r.name == name)
                    .for_each(|r| r.init = value);
            } else if start.kind == Kind::Word {
                let location = test.location_number(start);
                test.locations[location].init = optional_value(scanner)?;
            } else {
                return Err(scanner.expected("`:`"));
            }
        } else {
            return Err(scanner.expected("a register or location"));
        }
        let separated = [";", ","].iter().any(|s| scanner.is(s)) || scanner.peek().kind == Kind::End;
        if !separated {
            return Err(scanner.expected("`;`"));
        }
    }
}

/// Types say nothing here: a word is one if another word, or a register, follows it.
fn skip_type(scanner: &mut Scanner<'_>) -> Result<(), Diagnostic> {
    while scanner.peek().kind == Kind::Word {
        let mut ahead = *scanner;
        ahead.next();
        let following = ahead.peek();
        match following.text {
            "*" | "&" => return Err(Diagnostic::new(following.span, "pointers are not supported")),
            "[" => return Err(Diagnostic::new(following.span, "arrays are not supported")),
            _ if matches!(following.kind, Kind::Word | Kind::Number) => *scanner = ahead,
            _ => break,
        }
    }
    Ok(())
}

/// `= 1`, or nothing for 0.
fn optional_value(scanner: &mut Scanner<'_>) -> Result<i64, Diagnostic> {
    if scanner.accept("=") || scanner.accept("==") { scanner.value() } else { Ok(0) }
}
