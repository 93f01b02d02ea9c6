//! Importer for x86 litmus tests.
//!
//! A column becomes a thread (`P0`, `P1`, ...), a location a shared variable, and the condition the property `condition` about final states. Values
//! have the width of the access, as on the machine (module `types`). If no value of the test can exceed its width, the program computes with plain
//! integers (module `bounds`). Arithmetic of 64 bits does not wrap around: a test whose computation exceeds 64 bits has no verdict. A locked
//! instruction, or an exchange with memory, is one indivisible step that empties the store buffer first; an instruction that reads and writes memory
//! without a lock is a load followed by a store.
//!
//! Two restrictions apply: all accesses of a location must have the same width, and an address operand must be a location, or a register that holds
//! the address of a location from the start and is never changed, with an optional constant offset.

mod bounds;
mod code;
mod condition;
mod mnemonic;
mod parse;
mod scan;
mod types;

use std::collections::HashMap;

use fencewright_front_end::Parsed;
use fencewright_fw::ast::{File, Item};
use fencewright_fw::build;
use fencewright_fw::names::Names;
use fencewright_program::Span;
use fencewright_text::Diagnostic;

use bounds::Bounds;
use code::{Code, SCRATCH_NAMES};
use condition::Question;
use parse::instructions;
pub(super) use scan::row_length;
use scan::{Kind, Scanner, Sections, Token, sections};
use types::{Part, RegisterPart, Type, reduce, register_names};

/// Whether a word names an x86 register or a part of a register.
pub(super) fn is_x86_register(word: &str) -> bool {
    RegisterPart::parse(word).is_some()
}

/// Imports an x86 litmus test.
pub fn litmus(text: &str) -> Result<Parsed, Vec<Diagnostic>> {
    import(text).map_err(|diagnostic| vec![diagnostic])
}

fn import(text: &str) -> Result<Parsed, Diagnostic> {
    let Sections { text, name, init, rows, rest, is_64 } = sections(text)?;
    let mut test = Test::new(is_64);
    let columns = thread_names(&text, &rows, init.start, &mut test)?;
    initial_state(&mut Scanner::new(&text, init), &mut test)?;
    let mut code = Vec::new();
    for (number, cells) in columns.into_iter().enumerate() {
        code.push(instructions(&text, &cells, number, &mut test)?);
    }
    let question = Question::parse(&mut Scanner::new(&text, rest), &mut test)?;
    let bounds = Bounds::of(&test, &code);
    let bodies: Vec<_> = code.iter().enumerate().map(|(n, c)| Code::translate(c, n, &test, bounds)).collect();
    let notes = question.is_empty().then(|| "the test has no condition".to_owned());
    let (property, view) = question.build(&test);

    let mut file = File::default();
    let declared = test
        .locations
        .iter()
        .map(|l| build::declarator(&l.name, build::initial(l.initial(), l.span), l.span));
    let declared: Vec<_> = declared.collect();
    if !declared.is_empty() {
        file.items.push(Item::Shared(declared));
    }
    for (thread, (body, scratch)) in test.threads.iter().zip(bodies) {
        let registers = thread.registers.iter().filter(|r| r.address.is_none());
        let registers =
            registers.map(|r| build::declarator(r.name(), build::initial(r.initial(), r.span), r.span));
        let scratch = scratch.into_iter().map(|(name, span)| build::declarator(name, None, span));
        let registers = registers.chain(scratch).collect();
        file.items.push(Item::Thread(build::thread(&thread.name, registers, body, thread.span)));
    }
    file.items.extend(property.map(Item::Property));
    let notes = notes.into_iter().collect();
    Ok(Parsed { file, name, notes, view: Some(view), ..Parsed::default() })
}

/// A location in memory: a variable, or an element of an array.
struct Location {
    /// The name in the test: `x`, `x[1]`.
    written: String,
    /// The name of its variable in the program.
    name: String,
    init: i128,
    declared: Option<Type>,
    /// The width of its accesses in bits; `None` until an instruction accesses it.
    accessed: Option<u32>,
    /// The number of array elements before this one; 0 for a scalar location.
    before: usize,
    /// The number of array elements after this one; 0 for a scalar location.
    after: usize,
    span: Span,
}

impl Location {
    /// The width in bits of the variable for this location.
    fn bits(&self) -> u32 {
        self.accessed.unwrap_or_else(|| self.declared.unwrap_or(Type::INT).bits)
    }

    /// The initial value of the variable.
    fn initial(&self) -> i64 {
        reduce(self.init, self.bits())
    }

    /// The type in which the final value is shown. It is unsigned if only the low bits of the declared type are accessed, since the other bits stay
    /// 0.
    fn shown_as(&self) -> Type {
        match self.declared {
            Some(declared) if declared.bits > self.bits() => Type { bits: self.bits(), signed: false },
            Some(declared) => declared,
            None => Type { bits: self.bits(), signed: true },
        }
    }
}

/// An x86 register of a thread during import.
struct Register {
    family: usize,
    init: i128,
    declared: Option<Type>,
    /// The number of low bits that are used; 0 if the register is not used.
    used: u32,
    /// The location whose address the register holds from the start, if any.
    address: Option<usize>,
    span: Span,
}

impl Register {
    /// The width in bits of the variable for this register: the number of used bits or the declared width, whichever is larger; 32 if the register is
    /// neither used nor declared.
    fn bits(&self) -> u32 {
        match self.used.max(self.declared.map_or(0, |t| t.bits)) {
            0 => Type::INT.bits,
            bits => bits,
        }
    }

    /// The initial value of the variable.
    fn initial(&self) -> i64 {
        reduce(self.init, self.bits())
    }

    /// The name of the variable for this register.
    fn name(&self) -> String {
        RegisterPart { family: self.family, part: Part::Low(self.bits()) }.name()
    }
}

/// A thread during import.
struct TestThread {
    name: String,
    number: u32,
    registers: Vec<Register>,
    span: Span,
}

impl TestThread {
    /// The register with this number. The test must mention it.
    fn register(&self, family: usize) -> &Register {
        self.registers.iter().find(|r| r.family == family).expect("every register is noted when it is read")
    }
}

/// The state of the import of a test.
struct Test {
    /// Whether this is an `X86_64` test.
    is_64: bool,
    names: Names<'static>,
    locations: Vec<Location>,
    /// The locations by name; the name of an array stands for its first element.
    location_numbers: HashMap<String, usize>,
    threads: Vec<TestThread>,
    thread_numbers: HashMap<u32, usize>,
}

impl Test {
    fn new(is_64: bool) -> Self {
        let mut names = Names::default();
        for name in register_names().chain(SCRATCH_NAMES.iter().map(|n| (*n).to_owned())) {
            names.fresh(&name, "r", "_");
        }
        Test {
            is_64,
            names,
            locations: Vec::new(),
            location_numbers: HashMap::new(),
            threads: Vec::new(),
            thread_numbers: HashMap::new(),
        }
    }

    fn add_location(&mut self, written: String, before: usize, after: usize, span: Span) {
        let name = self.names.fresh(written.trim_end_matches(']'), "x", "_");
        let (init, declared, accessed) = (0, None, None);
        self.locations.push(Location { written, name, init, declared, accessed, before, after, span });
    }

    /// The number of the location with this name, created at its first mention.
    fn location_number(&mut self, word: Token<'_>) -> Result<usize, Diagnostic> {
        if let Some(&number) = self.location_numbers.get(word.text) {
            return Ok(number);
        }
        self.location_numbers.insert(word.text.to_owned(), self.locations.len());
        self.add_location(word.text.to_owned(), 0, 0, word.span);
        Ok(self.locations.len() - 1)
    }

    /// Adds an array of `length` elements, each of them a location; returns the number of the first one.
    fn array(&mut self, word: Token<'_>, length: usize) -> Result<usize, Diagnostic> {
        if self.location_numbers.contains_key(word.text) {
            return Err(Diagnostic::new(word.span, format!("`{}` is declared twice", word.text)));
        }
        self.location_numbers.insert(word.text.to_owned(), self.locations.len());
        let first = self.locations.len();
        for element in 0..length {
            self.add_location(format!("{}[{element}]", word.text), element, length - 1 - element, word.span);
        }
        Ok(first)
    }

    /// The location `bytes` bytes after another one, in the same array.
    fn at_offset(&self, location: usize, bytes: i128, span: Span) -> Result<usize, Diagnostic> {
        let at = &self.locations[location];
        let size = i128::from(at.declared.unwrap_or(Type::INT).bits / 8);
        let inside = -(at.before as i128) <= bytes / size && bytes / size <= at.after as i128;
        if bytes % size != 0 || !inside {
            let message = format!("there is no location {bytes} bytes behind `{}`", at.written);
            return Err(Diagnostic::new(span, message));
        }
        Ok((location as i128 + bytes / size) as usize)
    }

    /// The location of the element with this index, in the array whose first element is the location `first`.
    fn element(&self, first: usize, index: i128, span: Span) -> Result<usize, Diagnostic> {
        let at = &self.locations[first];
        let is_array = at.written.ends_with(']');
        if !is_array || !(0..=at.after as i128).contains(&index) {
            let message = format!("there is no element {index} of this location");
            return Err(Diagnostic::new(span, message));
        }
        Ok(first + index as usize)
    }

    /// Records an access of `bits` bits. All accesses of a location have one width: at most that of its type, less only if the initial value fits.
    fn access(&mut self, location: usize, bits: u32, span: Span) -> Result<(), Diagnostic> {
        let at = &mut self.locations[location];
        let conflict = |other: u32, whose: &str| {
            let message = format!("this access has {bits} bits, but {whose} `{}` {other}", at.written);
            Err(Diagnostic::new(span, message)
                .help("accesses of different sizes to one location are not supported"))
        };
        if let Some(accessed) = at.accessed.filter(|accessed| *accessed != bits) {
            return conflict(accessed, "an earlier one of");
        }
        if let Some(declared) = at.declared
            && (declared.bits < bits || declared.bits > bits && reduce(at.init, declared.bits) >> bits != 0)
        {
            return conflict(declared.bits, "the type of");
        }
        at.accessed = Some(bits);
        Ok(())
    }

    /// The thread that `0` or `P0` before a colon refers to.
    fn thread(&self, token: Token<'_>) -> Result<usize, Diagnostic> {
        let number = thread_number(token.text).and_then(|number| self.thread_numbers.get(&number));
        number.copied().ok_or_else(|| Diagnostic::new(token.span, format!("no thread {}", token.describe())))
    }

    /// The register of a thread that a word names, created at its first mention.
    fn mention(&mut self, thread: usize, part: RegisterPart, span: Span) -> &mut Register {
        let registers = &mut self.threads[thread].registers;
        let position = registers.iter().position(|r| r.family == part.family).unwrap_or_else(|| {
            let (family, declared, address) = (part.family, None, None);
            registers.push(Register { family, init: 0, declared, used: 0, address, span });
            registers.len() - 1
        });
        &mut registers[position]
    }

    /// Records that an instruction computes with a part of a register; an error if the register holds an address.
    fn use_register(&mut self, thread: usize, part: RegisterPart, span: Span) -> Result<(), Diagnostic> {
        let register = self.mention(thread, part, span);
        register.used = register.used.max(part.reach());
        match register.address {
            None => Ok(()),
            Some(location) => {
                let message =
                    format!("this register holds the address of `{}`", self.locations[location].written);
                Err(Diagnostic::new(span, message).help("such a register can only be used to access memory"))
            }
        }
    }

    /// Records that the lowest `bits` bits of a register are observed in final states.
    fn observe(&mut self, thread: usize, part: RegisterPart, bits: u32, span: Span) {
        let register = self.mention(thread, part, span);
        register.used = register.used.max(bits);
    }

    /// The location whose address a register holds; an error if none is known.
    fn address_in(&mut self, thread: usize, part: RegisterPart, span: Span) -> Result<usize, Diagnostic> {
        let whole = part.bits() == if self.is_64 { 64 } else { 32 };
        let register = self.threads[thread].registers.iter().find(|r| r.family == part.family);
        register.and_then(|r| r.address).filter(|_| whole).ok_or_else(|| {
            let message = format!("no address is known to be in `{}`", part.name());
            Diagnostic::new(span, message)
                .help("a register that is used as an address holds one in the initial state, and keeps it")
        })
    }
}

/// The number of a thread in `0` or `P0`; `None` for any other text.
fn thread_number(text: &str) -> Option<u32> {
    let digits = text.strip_prefix(['P', 'p']).unwrap_or(text);
    if digits.bytes().all(|b| b.is_ascii_digit()) { digits.parse().ok() } else { None }
}

/// Makes a thread of each cell in the first row; returns the cells of the other rows, by column.
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
        test.threads.push(TestThread { name, number, registers: Vec::new(), span: token.span });
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
        // With a single column, the thread's span extends from its name to its last instruction. With several columns, such a span would contain
        // instructions of other threads.
        if let (Some(last), 1) = (cells.last(), header.len()) {
            thread.span = thread.span.to(Span::new(last.start, last.end));
        }
    }
    Ok(columns)
}

/// `x=1; 0:EAX=2; int y; [z]=3; 0:rdi=x; int a[2]={1,2}`
fn initial_state(scanner: &mut Scanner<'_>, test: &mut Test) -> Result<(), Diagnostic> {
    loop {
        while scanner.accept(";") || scanner.accept(",") {}
        if scanner.peek().kind == Kind::End {
            return Ok(());
        }
        let (declared, pointer) = declared_type(scanner)?;
        let start = scanner.peek();
        if scanner.accept("[") {
            let word = location_word(scanner)?;
            scanner.expect("]")?;
            initial_location(scanner, test, word, declared)?;
        } else if matches!(start.kind, Kind::Number | Kind::Word) {
            scanner.next();
            if scanner.accept(":") {
                initial_register(scanner, test, start, declared.filter(|_| pointer.is_none()))?;
            } else if start.kind != Kind::Word {
                return Err(scanner.expected("`:`"));
            } else if let Some(span) = pointer {
                return Err(Diagnostic::new(span, "pointers in memory are not supported"));
            } else {
                initial_location(scanner, test, start, declared)?;
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

fn location_word<'t>(scanner: &mut Scanner<'t>) -> Result<Token<'t>, Diagnostic> {
    match scanner.peek().kind {
        Kind::Word => Ok(scanner.next()),
        _ => Err(scanner.expected("a location")),
    }
}

/// `RAX=5`, `rdi=x`, after the thread and its colon.
fn initial_register(
    scanner: &mut Scanner<'_>,
    test: &mut Test,
    thread: Token<'_>,
    declared: Option<Type>,
) -> Result<(), Diagnostic> {
    let thread = test.thread(thread)?;
    scanner.accept("%");
    let token = scanner.peek();
    let part = RegisterPart::parse(token.text).ok_or_else(|| scanner.expected("a register"))?;
    scanner.next();
    if part.part == Part::High {
        return Err(Diagnostic::new(token.span, "a second byte cannot be given a value of its own"));
    }
    let (mut init, mut address) = (0, None);
    if scanner.accept("=") || scanner.accept("==") {
        scanner.accept("&");
        if scanner.peek().kind == Kind::Word {
            address = Some(test.location_number(scanner.next())?);
        } else {
            init = scanner.value()?;
        }
    }
    let register = test.mention(thread, part, token.span);
    register.init = init;
    register.address = address;
    register.declared = declared.or(register.declared);
    Ok(())
}

/// `= 3`, `[2] = {1, 2}`, after the name of a location.
fn initial_location(
    scanner: &mut Scanner<'_>,
    test: &mut Test,
    word: Token<'_>,
    declared: Option<Type>,
) -> Result<(), Diagnostic> {
    /// Maximum length of an array.
    const LONGEST_ARRAY: i128 = 1_000;
    let assigned = |scanner: &mut Scanner<'_>| scanner.accept("=") || scanner.accept("==");
    if !scanner.accept("[") {
        let init = if assigned(scanner) { scanner.value()? } else { 0 };
        let location = test.location_number(word)?;
        let location = &mut test.locations[location];
        if location.written.ends_with(']') {
            return Err(Diagnostic::new(word.span, format!("`{}` is declared twice", word.text)));
        }
        (location.init, location.declared) = (init, declared.or(location.declared));
        return Ok(());
    }
    let at = scanner.peek().span;
    let length = scanner.value()?;
    if !(1..=LONGEST_ARRAY).contains(&length) {
        let message = format!("an array has between 1 and {LONGEST_ARRAY} elements");
        return Err(Diagnostic::new(at, message));
    }
    scanner.expect("]")?;
    let first = test.array(word, length as usize)?;
    for element in 0..length as usize {
        test.locations[first + element].declared = declared;
    }
    if assigned(scanner) {
        scanner.expect("{")?;
        for element in 0..length as usize {
            if element > 0 {
                scanner.expect(",")?;
            }
            test.locations[first + element].init = scanner.value()?;
        }
        scanner.accept(",");
        scanner.expect("}")?;
    }
    Ok(())
}

/// The type before a declaration, and the span of the `*` of a pointer, if present. A word belongs to the type if another word, the number of a
/// thread (as in `int 0:EAX`) or a `*` follows it.
fn declared_type(scanner: &mut Scanner<'_>) -> Result<(Option<Type>, Option<Span>), Diagnostic> {
    let start = scanner.peek().span;
    let mut words = Vec::new();
    let mut end = start;
    while scanner.peek().kind == Kind::Word {
        let mut ahead = *scanner;
        let word = ahead.next();
        let following = ahead.peek();
        if !matches!(following.kind, Kind::Word | Kind::Number) && following.text != "*" {
            break;
        }
        words.push(word.text);
        end = word.span;
        *scanner = ahead;
    }
    if words.is_empty() {
        return Ok((None, None));
    }
    let Some(declared) = Type::parse(&words) else {
        let message = format!("the type `{}` is not supported", words.join(" "));
        return Err(Diagnostic::new(start.to(end), message));
    };
    let star = scanner.peek().span;
    Ok((Some(declared), scanner.accept("*").then_some(star)))
}
