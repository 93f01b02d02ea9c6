//! Lowers a syntax tree to a program: evaluates constants, instantiates families of threads, inlines procedures, unrolls `for` loops, makes every
//! access of shared memory outside atomic steps an edge of its own, and expands formulas.

mod array;
mod assign;
mod atomic;
mod call;
mod condition;
mod declare;
mod effort;
mod expression;
mod formula;
mod graph;
mod property;
mod rmw;
mod scope;
mod statement;
mod thread;
mod types;
mod wait;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::num::NonZeroU32;

use fencewright_program::{
    Call, CallId, Init, Numbers, Program, Property, Range, Span, Thread, ThreadId, UnaryOp, Variable,
    VariableId,
};
use fencewright_text::diagnostic::MAX_DIAGNOSTICS;
use fencewright_text::{Diagnostic, Stop};

use crate::ast::{self, Item, Name};
use effort::{Effort, TOO_LARGE};
pub use scope::{Constants, values_of};

/// Maximum number of threads of a program.
const MOST_THREADS: usize = 250;
/// Maximum number of memory cells of a program.
const MOST_CELLS: usize = 1 << 12;
/// Maximum number of control locations and edges of all threads together.
const MOST_LOCATIONS: usize = 1 << 21;
/// Maximum product of locations and registers of one thread, which bounds the size of liveness tables.
const MOST_LIVE: usize = 1 << 26;
/// Maximum number of names that a message lists.
const MOST_LISTED: usize = 20;

/// The behaviour of a thread at an `await` whose condition accesses shared memory and does not hold. Any other condition blocks the thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Awaits {
    /// The thread evaluates the condition repeatedly, and is never blocked.
    #[default]
    Spin,
    /// The thread is blocked until the condition holds. Used for `deadlock`; no other property distinguishes this behaviour from spinning.
    Block,
}

/// The top-level names.
#[derive(Default)]
pub(crate) struct Names<'a> {
    pub shared: HashMap<String, VariableId>,
    /// The integer types of the shared variables that have one, as the operators that wrap written values around.
    pub types: HashMap<VariableId, UnaryOp>,
    /// The shared variables that are mutexes.
    pub mutexes: HashSet<VariableId>,
    /// All procedures of the file, wherever they are declared.
    pub procedures: HashMap<&'a str, &'a ast::Procedure>,
    /// Threads by name and, for families, instance.
    pub threads: BTreeMap<(String, Option<i64>), ThreadId>,
    /// All labels in the text of a thread, including unreachable ones.
    pub labels: HashMap<String, HashSet<String>>,
}

/// The calls and assertion messages that spans and faults of a program refer to.
#[derive(Default)]
pub(crate) struct Notes {
    calls: Vec<Call>,
    texts: Vec<String>,
    known_texts: HashMap<String, u32>,
}

impl Notes {
    /// Records an inlined call and returns its number.
    pub fn call(&mut self, what: String, at: Span) -> CallId {
        self.calls.push(Call { what, at });
        CallId(NonZeroU32::new(self.calls.len() as u32))
    }

    /// The number of an assertion message, recorded once.
    pub fn text(&mut self, text: &str) -> u32 {
        if let Some(&known) = self.known_texts.get(text) {
            return known;
        }
        let number = self.texts.len() as u32;
        self.texts.push(text.to_string());
        self.known_texts.insert(text.to_string(), number);
        number
    }
}

/// Values for constants, given on the command line.
pub type Defines = [(String, i64)];

/// Lowers a file. `defines` override its top-level constants.
pub fn lower(file: &ast::File, defines: &Defines) -> Result<Program, Vec<Diagnostic>> {
    lower_unless(&Stop::never(), file, &[], defines, Awaits::Spin)
}

/// The same as [`lower`], for a file whose spans refer to `calls`, and with a given behaviour of threads at an `await`. If `stop` asks to stop, the
/// returned error is meaningless.
pub fn lower_unless<'a>(
    stop: &'a Stop<'a>,
    file: &'a ast::File,
    calls: &[Call],
    defines: &'a Defines,
    awaits: Awaits,
) -> Result<Program, Vec<Diagnostic>> {
    let mut lowering = Lowering {
        defines,
        awaits,
        program: Program::default(),
        names: Names { procedures: procedures(file), ..Names::default() },
        notes: Notes { calls: calls.to_vec(), ..Notes::default() },
        constants: Constants::default(),
        effort: Effort::new(stop),
        declared: HashSet::new(),
        diagnostics: Vec::new(),
    };
    let numbers = file.items.iter().rev().find_map(|item| match item {
        Item::Numbers(numbers, _) => Some(*numbers),
        _ => None,
    });
    lowering.program.numbers = numbers.unwrap_or_default();
    lowering.constants.numbers = lowering.program.numbers;
    for item in &file.items {
        if lowering.diagnostics.len() >= MAX_DIAGNOSTICS || lowering.effort.is_over() {
            break;
        }
        lowering.declaration(item);
    }
    for (name, _) in defines {
        if lowering.constants.get(name).is_none() {
            let mut known: Vec<&str> = lowering.constants.names().collect();
            known.sort_unstable();
            let listed = known[..known.len().min(MOST_LISTED)].join(", ");
            let help = match known.len().saturating_sub(MOST_LISTED) {
                _ if known.is_empty() => "it has no top-level constants".to_string(),
                0 => format!("its constants are {listed}"),
                more => format!("its constants are {listed} and {more} others"),
            };
            let message = format!("-D {name}: the program has no constant `{name}`");
            lowering.diagnostics.push(Diagnostic::new(Default::default(), message).help(help));
        }
    }
    lowering.check_initial_values(file);
    // Properties are lowered last, because their formulas may refer to threads that are declared after them.
    let Lowering { mut program, names, notes, mut constants, mut effort, mut diagnostics, .. } = lowering;
    (program.calls, program.texts) = (notes.calls, notes.texts);
    if diagnostics.is_empty() {
        let stated = property::lower(file, &program, &names, &mut constants, &mut effort);
        (program.properties, program.hints, diagnostics) =
            (stated.properties, stated.hints, stated.diagnostics);
    }
    if effort.is_over() && diagnostics.is_empty() {
        diagnostics.push(Diagnostic::new(Span::default(), TOO_LARGE));
    }
    if diagnostics.is_empty() {
        if program.may_fault() {
            program.properties.push(Property::assertions());
        }
        return Ok(program);
    }
    // The instances of a family report the same errors, which are shown once.
    let mut seen = HashSet::new();
    diagnostics.retain(|d| seen.insert((d.span, d.message.clone())));
    diagnostics.sort_by_key(|d| d.span);
    Err(diagnostics)
}

struct Lowering<'a> {
    defines: &'a Defines,
    awaits: Awaits,
    program: Program,
    names: Names<'a>,
    notes: Notes,
    constants: Constants,
    effort: Effort<'a>,
    /// The procedures declared before the current item.
    declared: HashSet<&'a str>,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> Lowering<'a> {
    fn declaration(&mut self, item: &'a Item) {
        let result = match item {
            Item::Const(c) => self.constant(c),
            Item::Shared(declarators) => declarators.iter().try_for_each(|d| self.shared(d)),
            Item::Mutex(declarators) => declarators.iter().try_for_each(|d| self.mutex(d)),
            Item::Procedure(procedure) => self.procedure(procedure),
            Item::Thread(thread) => self.thread(thread),
            Item::Numbers(..)
            | Item::Property(_)
            | Item::Predicates(..)
            | Item::Spare(..)
            | Item::Cost(..) => Ok(()),
        };
        if let Err(error) = result {
            self.diagnostics.push(error);
        }
    }

    /// Checks that no initial value is negative if the program computes with natural numbers.
    fn check_initial_values(&mut self, file: &ast::File) {
        if self.program.numbers != Numbers::Nat {
            return;
        }
        let start = |init: &Init| match *init {
            Init::Value(v) => v,
            Init::Any(range) => range.map_or(0, |r| r.low),
        };
        let negative = |name: &str, span| {
            Diagnostic::new(span, format!("`{name}` starts below 0, which is not a natural number"))
        };
        for v in &self.program.variables {
            if v.init.iter().any(|i| start(i) < 0) {
                self.diagnostics.push(negative(&v.name, v.span));
            }
        }
        for thread in &self.program.threads {
            let mut span = None;
            for r in thread.registers.iter().filter(|r| start(&r.init) < 0) {
                let span = *span.get_or_insert_with(|| thread_span(file, thread));
                self.diagnostics.push(negative(&format!("{}.{}", thread.name, r.name), span));
            }
        }
    }

    fn check_fresh(&self, name: &Name) -> Result<(), Diagnostic> {
        let taken = if self.constants.get(&name.text).is_some() {
            "constant"
        } else if self.names.shared.contains_key(&name.text) {
            "shared variable"
        } else if self.names.labels.contains_key(&name.text) {
            "thread"
        } else if self.declared.contains(name.text.as_str()) {
            "procedure"
        } else {
            return Ok(());
        };
        Err(Diagnostic::new(name.span, format!("`{}` is already the name of a {taken}", name.text)))
    }

    fn constant(&mut self, c: &ast::Const) -> Result<(), Diagnostic> {
        self.check_fresh(&c.name)?;
        let given = self.defines.iter().rev().find(|(name, _)| *name == c.name.text).map(|(_, value)| *value);
        let value = match given {
            Some(value) => value,
            None => self.constants.eval(&c.value)?,
        };
        self.constants.declare(&c.name.text, value);
        Ok(())
    }

    fn shared(&mut self, d: &ast::Declarator) -> Result<(), Diagnostic> {
        self.check_fresh(&d.name)?;
        let indices = d.size.as_ref().map(|size| self.constants.indices(size)).transpose()?;
        let cells = indices.map_or(1, Range::size);
        let base = self.program.cells();
        if cells == 0 {
            return Err(Diagnostic::new(d.span, format!("the array `{}` has no cells", d.name.text)));
        }
        if base as u64 + cells > MOST_CELLS as u64 {
            return Err(Diagnostic::new(d.span, format!("more than {MOST_CELLS} memory cells")));
        }
        if d.open && indices.is_none() {
            return Err(Diagnostic::new(d.span, "only an array can be `open`"));
        }
        let range = d.range.as_ref().map(|r| self.constants.nonempty_range(r)).transpose()?;
        let values = self.constants.integer_type(d)?;
        let init = self.constants.initial(d, range.or(values), cells as usize)?;
        let id = VariableId(self.program.variables.len() as u32);
        self.names.types.extend(d.wraps.map(|wraps| (id, wraps)));
        let name = d.name.text.clone();
        self.program.variables.push(Variable {
            name: name.clone(),
            base: base as u32,
            indices,
            open: d.open,
            range,
            init,
            span: d.span,
        });
        self.names.shared.insert(name, id);
        Ok(())
    }

    /// Declares a mutex: a memory cell that holds the number of the thread that has locked it, counted from 1, or 0 if it is free.
    fn mutex(&mut self, d: &ast::Declarator) -> Result<(), Diagnostic> {
        let id = VariableId(self.program.variables.len() as u32);
        self.shared(d)?;
        self.names.mutexes.insert(id);
        Ok(())
    }

    fn procedure(&mut self, procedure: &'a ast::Procedure) -> Result<(), Diagnostic> {
        self.check_fresh(&procedure.name)?;
        for ast::Parameter { name, wraps } in &procedure.parameters {
            wraps.map(|wraps| self.constants.check_type(wraps, name.span)).transpose()?;
        }
        self.declared.insert(&procedure.name.text);
        Ok(())
    }

    fn thread(&mut self, thread: &'a ast::Thread) -> Result<(), Diagnostic> {
        self.check_fresh(&thread.name)?;
        let name = &thread.name.text;
        let mut labels = HashSet::new();
        collect_labels(&thread.body, "", &mut labels, &self.effort);
        self.names.labels.insert(name.clone(), labels);
        let Some((index, range)) = &thread.family else {
            let lowered = self.instance(thread, name.clone(), None)?;
            return self.add_thread(lowered, None, thread);
        };
        self.check_fresh(index)?;
        let values = self.constants.range(range)?;
        if values.size() > MOST_THREADS as u64 {
            return Err(Diagnostic::new(range.span, format!("more than {MOST_THREADS} threads")));
        }
        for value in values.low..=values.high {
            self.constants.push(&index.text, value);
            let family = Some((name.clone(), value));
            let lowered = self.instance(thread, format!("{name}[{value}]"), family);
            self.constants.pop(&index.text);
            self.add_thread(lowered?, Some(value), thread)?;
        }
        Ok(())
    }

    fn instance(
        &mut self,
        thread: &'a ast::Thread,
        name: String,
        family: Option<(String, i64)>,
    ) -> Result<Thread, Diagnostic> {
        if self.program.threads.len() == MOST_THREADS {
            return Err(Diagnostic::new(thread.name.span, format!("more than {MOST_THREADS} threads")));
        }
        let &mut Lowering {
            awaits,
            ref program,
            ref names,
            ref mut notes,
            ref mut constants,
            ref mut effort,
            ..
        } = self;
        let surroundings = thread::Surroundings { program, names, notes, constants, effort, awaits };
        thread::lower(surroundings, thread, name, family).map_err(|mut errors| {
            let first = errors.remove(0);
            self.diagnostics.append(&mut errors);
            first
        })
    }

    fn add_thread(
        &mut self,
        lowered: Thread,
        index: Option<i64>,
        thread: &ast::Thread,
    ) -> Result<(), Diagnostic> {
        let size = |t: &Thread| t.locations.len() + t.edges.len();
        if self.program.threads.iter().map(size).sum::<usize>() + size(&lowered) > MOST_LOCATIONS {
            return Err(Diagnostic::new(thread.name.span, "this program is too large"));
        }
        if lowered.locations.len().saturating_mul(lowered.registers.len()) > MOST_LIVE {
            return Err(Diagnostic::new(thread.name.span, "this thread has too many registers for its size"));
        }
        let id = ThreadId(self.program.threads.len() as u32);
        self.names.threads.insert((thread.name.text.clone(), index), id);
        self.program.threads.push(lowered);
        Ok(())
    }
}

/// All procedures of a file by name.
fn procedures(file: &ast::File) -> HashMap<&str, &ast::Procedure> {
    let procedures = file.items.iter().filter_map(|item| match item {
        Item::Procedure(procedure) => Some((procedure.name.text.as_str(), procedure)),
        _ => None,
    });
    procedures.collect()
}

/// The span of the name in a thread's declaration.
fn thread_span(file: &ast::File, thread: &Thread) -> Span {
    let base = thread.family.as_ref().map_or(&thread.name, |(name, _)| name);
    let found = file.items.iter().find_map(|item| match item {
        Item::Thread(t) if t.name.text == *base => Some(t.name.span),
        _ => None,
    });
    found.unwrap_or_default()
}

/// Collects all labels in a text, with a prefix.
fn collect_labels(block: &ast::Block, prefix: &str, labels: &mut HashSet<String>, effort: &Effort<'_>) {
    use ast::StatementKind as Kind;
    for statement in &block.statements {
        if effort.is_over() {
            return;
        }
        labels.extend(statement.labels.iter().map(|l| format!("{prefix}{}", l.text)));
        match &statement.kind {
            Kind::If(_, then, otherwise) => {
                collect_labels(then, prefix, labels, effort);
                if let Some(block) = otherwise {
                    collect_labels(block, prefix, labels, effort);
                }
            }
            Kind::While(_, b) | Kind::Loop(b) | Kind::For(_, _, b) | Kind::Block(b) | Kind::Steps(b) => {
                collect_labels(b, prefix, labels, effort)
            }
            Kind::Choose(blocks) => blocks.iter().for_each(|b| collect_labels(b, prefix, labels, effort)),
            _ => {}
        }
    }
}

/// The known name with the smallest edit distance from `name`; `None` if no name is close. Temporaries are not suggested.
pub(crate) fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<String> {
    fencewright_text::nearest(name, known.filter(|other| !other.starts_with('%')))
}
