//! Importer for memorax programs (`.rmm`).
//!
//! Domains block in memorax: an assignment, store or load of a value outside the domain of its target is disabled. In `.fw`, writing a value outside
//! a declared range is a violation instead. The importer therefore declares no ranges: a domain becomes an `assume` before the statement (after it
//! for a load) wherever the value might lie outside the domain.
//!
//! | memorax | here |
//! |---|---|
//! | process k | thread `pk` |
//! | `v[my]`, `v[k]` | a cell of the array `v`, indexed by owner |
//! | `read: v = e` | `await v == e`; at the start of a branch of `either`, where waiting must not select the branch, `snapshot { assume v == e; }` |
//! | `[e]` | a choice between the globals that `e` may denote; each branch assumes that `e` is the number of its global |
//! | `locked { }` | `atomic` if it contains a write, else `snapshot`: only with a write does it drain the buffer |
//! | `cas(v, e, f)` | `atomic { assume v == e; v = f; }` |
//! | `slocked write` | the store followed by `sfence`, as memorax itself translates `locked write` to a store and a fence for PSO |
//! | `forbidden` | the property `forbidden` |
//!
//! Predicates are hints and are dropped. The statements for the cache protocol VIPS (`syncwr`, `syncrd`, `llfence`) are errors.

mod process;
mod tokens;
mod values;

use std::collections::HashMap;

use fencewright_front_end::Parsed;
use fencewright_fw::ast::{
    ArraySize, Declarator, Expr, ExprKind, File, Initial, Item, Property, PropertyKind, ThreadRef,
};
use fencewright_fw::build::{self, SIZE_LIMIT};
use fencewright_fw::names::Names;
use fencewright_program::{BinaryOp, Span};
use fencewright_text::Diagnostic;

use process::translate;
use tokens::{Kind, RESERVED, Token, tokens};

/// Maximum number of processes of a program.
const PROCESS_LIMIT: usize = 1_000;

/// Whether memorax reserves the word.
pub(super) fn is_rmm_word(word: &str) -> bool {
    RESERVED.contains(&word)
}

/// Imports a memorax program.
pub fn rmm(text: &str) -> Result<Parsed, Vec<Diagnostic>> {
    import(text).map_err(|diagnostic| vec![diagnostic])
}

fn import(text: &str) -> Result<Parsed, Diagnostic> {
    let tokens = tokens(text)?;
    let mut cursor = Cursor { tokens: &tokens, at: 0 };
    let source = read_source(&mut cursor)?;
    let processes: Vec<&ProcessText<'_>> =
        source.processes.iter().flat_map(|p| std::iter::repeat_n(p, p.copies)).collect();

    let mut names = Names::default();
    let thread_names: Vec<String> =
        (0..processes.len()).map(|k| names.fresh(&format!("p{k}"), "p", "_")).collect();
    let mut file = File::default();
    let memory = declare_memory(&source.globals, &processes, &mut names, &mut file);

    let mut labels = Vec::with_capacity(processes.len());
    let mut budget = SIZE_LIMIT;
    for (number, (process, name)) in processes.iter().zip(&thread_names).enumerate() {
        let (thread, its_labels) = translate(&tokens, process, number, name, &memory, &names, &mut budget)?;
        file.items.push(Item::Thread(thread));
        labels.push(its_labels);
    }
    file.items.push(Item::Property(forbidden(&source.forbidden, &thread_names, &labels)?));
    let notes =
        source.has_predicates.then(|| "the predicates are left out: no verdict depends on them".to_owned());
    Ok(Parsed { file, notes: notes.into_iter().collect(), ..Parsed::default() })
}

/// A domain; `None` means all integers.
type Domain = Option<(i64, i64)>;

/// A declaration under `data` or `registers`.
#[derive(Clone, Debug)]
struct Declaration<'a> {
    name: &'a str,
    /// The initial value; `None` for `*`.
    init: Option<i64>,
    domain: Domain,
    span: Span,
}

impl Declaration<'_> {
    fn initial(&self) -> Option<Initial> {
        match (self.init, self.domain) {
            (Some(value), _) => build::initial(value, self.span),
            (None, Some((low, high))) => Some(Initial::Any(Some(build::range(low, high, self.span)))),
            (None, None) => Some(Initial::Any(None)),
        }
    }
}

/// A process of the source, of which there may be several copies.
struct ProcessText<'a> {
    copies: usize,
    data: Vec<Declaration<'a>>,
    registers: Vec<Declaration<'a>>,
    /// The positions of the tokens after its word `text`.
    text: std::ops::Range<usize>,
    span: Span,
}

/// A memory cell as threads refer to it.
#[derive(Clone, Debug)]
struct Cell {
    variable: String,
    /// The index, if the cell is in an array.
    index: Option<i64>,
    domain: Domain,
}

/// All of shared memory.
struct Memory<'a> {
    /// The globals in the order of declaration.
    globals: Vec<Cell>,
    global_numbers: HashMap<&'a str, usize>,
    /// Local data by its name and the number of its process.
    locals: HashMap<(&'a str, usize), Cell>,
    processes: usize,
}

struct Source<'a> {
    forbidden: Vec<Vec<Token<'a>>>,
    has_predicates: bool,
    globals: Vec<Declaration<'a>>,
    processes: Vec<ProcessText<'a>>,
}

/// A position in the tokens; the last token is always [`Kind::End`].
#[derive(Clone, Copy)]
struct Cursor<'t, 'a> {
    tokens: &'t [Token<'a>],
    at: usize,
}

impl<'a> Cursor<'_, 'a> {
    fn peek(&self) -> Token<'a> {
        self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at += 1;
        token
    }

    /// Whether the next token is this word or operator.
    fn is(&self, text: &str) -> bool {
        let token = self.peek();
        matches!(token.kind, Kind::Word | Kind::Operator) && token.text == text
    }

    fn accept(&mut self, text: &str) -> bool {
        let found = self.is(text);
        self.at += found as usize;
        found
    }

    fn expect(&mut self, text: &str) -> Result<Token<'a>, Diagnostic> {
        if self.is(text) { Ok(self.next()) } else { Err(self.expected(&format!("`{text}`"))) }
    }

    fn expected(&self, what: &str) -> Diagnostic {
        let token = self.peek();
        Diagnostic::new(token.span, format!("expected {what}, found {}", token.describe()))
    }

    /// Whether the next token is a word that may be a label or variable.
    fn is_identifier(&self) -> bool {
        let token = self.peek();
        token.kind == Kind::Word && !RESERVED.contains(&token.text)
    }

    fn number(&mut self) -> Result<i64, Diagnostic> {
        let token = self.peek();
        if token.kind != Kind::Number {
            return Err(self.expected("a number"));
        }
        self.at += 1;
        token.text.parse().map_err(|_| Diagnostic::new(token.span, "the number does not fit 64 bits"))
    }

    fn integer(&mut self) -> Result<i64, Diagnostic> {
        Ok(if self.accept("-") { -self.number()? } else { self.number()? })
    }

    /// The span from the token at `start` to the last one read, restricted to the macro body in which `start` was written.
    fn span_from(&self, start: usize) -> Span {
        let first = self.tokens[start.min(self.tokens.len() - 1)];
        let read = &self.tokens[start.min(self.at)..self.at.min(self.tokens.len())];
        let last = read.iter().rev().find(|t| t.home == first.home && t.kind != Kind::End);
        last.map_or(first.span, |last| first.span.to(last.span))
    }
}

fn read_source<'a>(cursor: &mut Cursor<'_, 'a>) -> Result<Source<'a>, Diagnostic> {
    cursor.expect("forbidden")?;
    let mut forbidden = Vec::new();
    loop {
        let mut vector = Vec::new();
        while cursor.is_identifier() || cursor.is("*") {
            vector.push(cursor.next());
        }
        if vector.is_empty() {
            return Err(cursor.expected("a label or `*`"));
        }
        forbidden.push(vector);
        if !cursor.accept(";") {
            break;
        }
    }
    let has_predicates = cursor.accept("predicates");
    if has_predicates {
        while !(cursor.is("data") || cursor.is("process") || cursor.peek().kind == Kind::End) {
            cursor.at += 1;
        }
    }
    let globals = if cursor.accept("data") { declarations(cursor, Kind::Word)? } else { Vec::new() };
    distinct(&globals)?;
    let mut processes = Vec::new();
    let (mut count, mut size) = (0, 0);
    loop {
        let start = cursor.at;
        let process = process(cursor)?;
        count += process.copies;
        size += process.copies * (cursor.at - start);
        if count > PROCESS_LIMIT || size > SIZE_LIMIT {
            let message =
                format!("more than {PROCESS_LIMIT} processes, or {SIZE_LIMIT} tokens in all of them");
            return Err(Diagnostic::new(process.span, message));
        }
        processes.push(process);
        if cursor.peek().kind == Kind::End {
            return Ok(Source { forbidden, has_predicates, globals, processes });
        }
    }
}

/// Parses the declarations of a process and skips its text (in which `process` cannot occur).
fn process<'a>(cursor: &mut Cursor<'_, 'a>) -> Result<ProcessText<'a>, Diagnostic> {
    let start = cursor.at;
    cursor.expect("process")?;
    let mut copies = 1;
    if cursor.accept("(") {
        let written = cursor.peek().span;
        let number = cursor.number()?;
        cursor.expect(")")?;
        if number == 0 {
            return Err(Diagnostic::new(written, "`process(0)` is no process"));
        }
        copies = usize::try_from(number).unwrap_or(usize::MAX).min(PROCESS_LIMIT + 1);
    }
    let (mut data, mut registers) = (Vec::new(), Vec::new());
    loop {
        if cursor.accept("data") {
            data.append(&mut declarations(cursor, Kind::Word)?);
        } else if cursor.accept("registers") {
            registers.append(&mut declarations(cursor, Kind::Register)?);
        } else {
            break;
        }
    }
    distinct(&data)?;
    distinct(&registers)?;
    cursor.expect("text")?;
    let text = cursor.at;
    while !(cursor.is("process") || cursor.peek().kind == Kind::End) {
        cursor.at += 1;
    }
    Ok(ProcessText { copies, data, registers, text: text..cursor.at, span: cursor.span_from(start) })
}

/// `name = init : domain ...`, at least one.
fn declarations<'a>(cursor: &mut Cursor<'_, 'a>, kind: Kind) -> Result<Vec<Declaration<'a>>, Diagnostic> {
    let mut declarations = Vec::new();
    loop {
        let is_name = cursor.peek().kind == kind && (kind == Kind::Register || cursor.is_identifier());
        if !is_name {
            if declarations.is_empty() {
                return Err(cursor.expected("a declaration"));
            }
            return Ok(declarations);
        }
        let start = cursor.at;
        let name = cursor.next();
        cursor.expect("=")?;
        let init = if cursor.accept("*") { None } else { Some(cursor.integer()?) };
        let mut domain = None;
        if cursor.accept(":") && !cursor.accept("Z") {
            cursor.expect("[")?;
            let low = cursor.integer()?;
            cursor.expect(":")?;
            let high = cursor.integer()?;
            cursor.expect("]")?;
            domain = Some((low, high));
        }
        let span = cursor.span_from(start);
        if let Some((low, high)) = domain {
            if low > high {
                return Err(Diagnostic::new(span, "the domain is empty"));
            }
            if init.is_some_and(|value| value < low || value > high) {
                return Err(Diagnostic::new(span, "the initial value is outside the domain"));
            }
        }
        declarations.push(Declaration { name: name.text, init, domain, span });
    }
}

fn distinct(declarations: &[Declaration<'_>]) -> Result<(), Diagnostic> {
    let mut seen = std::collections::HashSet::new();
    match declarations.iter().find(|d| !seen.insert(d.name)) {
        Some(twice) => Err(Diagnostic::new(twice.span, format!("`{}` is declared twice", twice.name))),
        None => Ok(()),
    }
}

/// Declares globals as scalars. Local data becomes an array indexed by process, or one scalar for each process if an array cannot express it.
fn declare_memory<'a>(
    globals: &[Declaration<'a>],
    processes: &[&ProcessText<'a>],
    names: &mut Names<'_>,
    file: &mut File,
) -> Memory<'a> {
    let mut memory = Memory {
        globals: Vec::new(),
        global_numbers: HashMap::new(),
        locals: HashMap::new(),
        processes: processes.len(),
    };
    for global in globals {
        let variable = names.fresh(global.name, "v", "_");
        memory.global_numbers.insert(global.name, memory.globals.len());
        file.items.push(Item::Shared(vec![build::declarator(&variable, global.initial(), global.span)]));
        memory.globals.push(Cell { variable, index: None, domain: global.domain });
    }
    // The names of local data in the order of their first declarations, and, for each name, its declarations with the numbers of their processes.
    let mut order: Vec<&str> = Vec::new();
    let mut owners: HashMap<&str, Vec<(usize, &Declaration<'a>)>> = HashMap::new();
    for (owner, process) in processes.iter().enumerate() {
        for declaration in &process.data {
            let list = owners.entry(declaration.name).or_default();
            if list.is_empty() {
                order.push(declaration.name);
            }
            list.push((owner, declaration));
        }
    }
    for name in order {
        let owners = &owners[name];
        let array = array_of_all(owners, processes.len());
        let variable = array.is_some().then(|| names.fresh(name, "v", "_"));
        if let (Some(mut declarator), Some(variable)) = (array, &variable) {
            declarator.name.text.clone_from(variable);
            file.items.push(Item::Shared(vec![declarator]));
        }
        for &(owner, declaration) in owners {
            let (variable, index) = match &variable {
                Some(variable) => (variable.clone(), Some(owner as i64)),
                None => {
                    let own = names.fresh(&format!("{name}_p{owner}"), "v", "_");
                    let declarator = build::declarator(&own, declaration.initial(), declaration.span);
                    file.items.push(Item::Shared(vec![declarator]));
                    (own, None)
                }
            };
            memory
                .locals
                .insert((declaration.name, owner), Cell { variable, index, domain: declaration.domain });
        }
    }
    memory
}

/// One array, not yet named, for the local data of the same name in all processes. `None` unless every process has such data, and either all initial
/// values are numbers or all are the same free choice.
fn array_of_all(owners: &[(usize, &Declaration<'_>)], processes: usize) -> Option<Declarator> {
    let (_, first) = owners[0];
    if owners.len() != processes {
        return None;
    }
    let values: Option<Vec<i64>> = owners.iter().map(|(_, d)| d.init).collect();
    let init = match values {
        Some(values) if values.iter().all(|&v| v == values[0]) => build::initial(values[0], first.span),
        Some(values) => Some(Initial::List(values.iter().map(|&v| build::int(v, first.span)).collect())),
        None if owners.iter().all(|(_, d)| d.init.is_none() && d.domain == first.domain) => first.initial(),
        None => return None,
    };
    let size = ArraySize::Length(build::int(processes as i64, first.span));
    Some(build::array("", size, false, init, first.span))
}

/// The property `forbidden`: one disjunct for each vector, and in it one conjunct for each label.
fn forbidden(
    vectors: &[Vec<Token<'_>>],
    threads: &[String],
    labels: &[HashMap<&str, String>],
) -> Result<Property, Diagnostic> {
    let mut disjuncts = Vec::with_capacity(vectors.len());
    let whole = |vector: &[Token<'_>]| vector[0].span.to(vector[vector.len() - 1].span);
    for vector in vectors {
        if vector.len() != threads.len() {
            let message =
                format!("the vector has {} entries, but there are {} processes", vector.len(), threads.len());
            return Err(Diagnostic::new(whole(vector), message));
        }
        let mut conjuncts = Vec::new();
        for ((entry, thread), labels) in vector.iter().zip(threads).zip(labels) {
            if entry.kind == Kind::Operator {
                continue;
            }
            let Some(label) = labels.get(entry.text) else {
                let message = format!("process {thread} has no label `{}`", entry.text);
                return Err(Diagnostic::new(entry.span, message));
            };
            let thread = ThreadRef { name: build::name(thread, entry.span), index: None };
            let kind = ExprKind::At(thread, build::name(label, entry.span));
            conjuncts.push(Expr { kind, span: entry.span });
        }
        disjuncts.push(build::balanced(BinaryOp::And, conjuncts, whole(vector)));
    }
    let span = whole(&vectors[0]).to(whole(&vectors[vectors.len() - 1]));
    Ok(Property {
        name: Some(build::name("forbidden", span)),
        kind: PropertyKind::Forbid,
        binders: Vec::new(),
        formula: build::balanced(BinaryOp::Or, disjuncts, span),
        span,
    })
}
