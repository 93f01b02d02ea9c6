//! Printing programs as C: C11 atomics, pthreads, and the functions of verifiers for choices and assumptions.
//!
//! The text is written from the syntax tree, so that it keeps the statements, procedures and names of the program. `docs/c.md` defines the event of
//! each C access; here, each access of the program is written as the C access with the same event:
//!
//! ```text
//! x, x = e          relaxed load and store        fence     atomic_thread_fence(memory_order_seq_cst)
//! swap, fetch_add   atomic_exchange, ...          sfence    atomic_thread_fence(memory_order_release)
//! cas               a function around             lock m    pthread_mutex_lock(&m)
//!                   atomic_compare_exchange
//! ```
//!
//! Integers are `int`, or `int64_t` if the program needs more than 32 bits. Integers of `.fw` are unbounded, so if a result does not fit, the C
//! program has a fault that the `.fw` program does not have; a comment at the head of the text says so. Ranges and indices are checked with `assert`,
//! because these checks belong to the property `assertions`.
//!
//! C can only express assertions. A `finally never` or `finally forall` becomes an `assert` after the last `pthread_join`, where all threads have
//! ended and all buffers are empty. Properties of all states and `finally exists` are errors.

mod expressions;
mod functions;
mod prelude;
mod properties;
mod statements;

use std::collections::{BTreeSet, HashMap, HashSet};

use fencewright_c::write;
use fencewright_front_end::export::{cannot as format_cannot, initial_value, only_integers};
use fencewright_fw::ast::{self, Declarator, ExprKind, Item, StatementKind};
use fencewright_fw::lower::{Constants, values_of};
use fencewright_fw::names::Names;
use fencewright_fw::visit::{for_each_expression, for_each_statement};
use fencewright_program::{Program, Range, Span, UnaryOp, Width};
use fencewright_text::Diagnostic;

use prelude::Helper;
use properties::{Handed, Observed};

type Result<T> = std::result::Result<T, Diagnostic>;

/// Identifiers that the generated helper functions and `main` use, so that names of the program must differ from them.
const USED: &str = "load store cas within at least greatest shift_left shift_right any argument threads place expected position value";

fn cannot(what: &str, span: Span) -> Diagnostic {
    format_cannot("C", what, span)
}

/// Prints a program as C; the errors name the constructs that C cannot express. `program` is the lowered form of `file`, and `title` its name.
pub fn c(file: &ast::File, program: &Program, title: &str) -> std::result::Result<String, Vec<Diagnostic>> {
    write_file(file, program, title).map_err(|diagnostic| vec![diagnostic])
}

fn write_file(file: &ast::File, program: &Program, title: &str) -> Result<String> {
    only_integers(program, "C")?;
    let mut names = Names::default();
    write::taken().chain(USED.split_whitespace()).for_each(|word| drop(names.fresh(word, "n", "_")));
    let observed = Observed::new(file, program)?;
    let mut writer = Writer {
        constants: Constants::default(),
        wide: is_wide(file, program),
        names,
        scopes: vec![HashMap::new()],
        procedures: HashMap::new(),
        observed,
        ending: None,
        targets: HashSet::new(),
        indices: HashMap::new(),
        read: BTreeSet::new(),
        helpers: BTreeSet::new(),
        text: String::new(),
        depth: 0,
    };
    let mut threads = Vec::new();
    for item in &file.items {
        writer.declare(item)?;
    }
    writer.declare_results(file)?;
    writer.procedures(file)?;
    for item in &file.items {
        if let Item::Thread(thread) = item {
            threads.push(writer.thread(thread)?);
        }
    }
    writer.main(file, program, &threads)?;
    Ok(prelude::before(title, writer.wide, &writer.helpers) + &writer.text)
}

/// Whether the program needs 64-bit integers: it has a type whose sums may exceed `int`, a shared variable whose range exceeds `int`, or a
/// constant that does not fit into `int`.
fn is_wide(file: &ast::File, program: &Program) -> bool {
    let wide_type =
        |op: &UnaryOp| matches!(op, UnaryOp::Unsigned(w) | UnaryOp::Signed(w) if *w >= Width::Bits32);
    let small = |value: i64| i32::try_from(value).is_ok();
    let mut wide = program.variables.iter().filter_map(|v| v.range).any(|r| !small(r.low) || !small(r.high));
    let mut declared = |d: &Declarator| wide |= d.wraps.iter().any(wide_type);
    for item in &file.items {
        let body = match item {
            Item::Shared(variables) => {
                variables.iter().for_each(&mut declared);
                continue;
            }
            Item::Thread(thread) => &thread.body,
            Item::Procedure(procedure) => &procedure.body,
            _ => continue,
        };
        for_each_statement(body, &mut |kind| {
            if let StatementKind::Var(registers) = kind {
                registers.iter().for_each(&mut declared);
            }
        });
    }
    let parameters = file.items.iter().filter_map(|item| match item {
        Item::Procedure(procedure) => Some(&procedure.parameters),
        _ => None,
    });
    wide |= parameters.flatten().any(|p| p.wraps.iter().any(wide_type));
    for_each_expression(file, &mut |e| {
        wide |= match &e.kind {
            ExprKind::Int(value) => !small(*value),
            ExprKind::Unary(op, _) => wide_type(op),
            _ => false,
        };
    });
    wide
}

/// The meaning of a name of the `.fw` program in C.
#[derive(Clone)]
struct Known {
    /// The name or expression in C; for inlined constants the value.
    text: String,
    role: Role,
    /// The conversion by which written values wrap around; `None` if they do not.
    wraps: Option<UnaryOp>,
    /// The range that is asserted for written values, if any.
    range: Option<Range>,
    /// The range of the indices if the name is an array.
    indices: Option<Range>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Shared,
    Mutex,
    /// A register or a parameter.
    Register,
    Constant,
}

impl Known {
    fn constant(text: String) -> Self {
        Known { text, role: Role::Constant, wraps: None, range: None, indices: None }
    }

    fn register(text: String, wraps: Option<UnaryOp>) -> Self {
        Known { text, role: Role::Register, wraps, range: None, indices: None }
    }

    /// The values that a nondeterministic choice may give to the name; `None` if there is no bound.
    fn values(&self) -> Option<Range> {
        self.range.or_else(|| self.wraps.and_then(values_of))
    }
}

/// The name of the C function for a procedure, which its calls need.
struct Callee {
    name: String,
}

/// The state of writing the C text.
struct Writer {
    constants: Constants,
    /// Whether integers are `int64_t`; otherwise they are `int`.
    wide: bool,
    /// The C names in use at file scope.
    names: Names<'static>,
    /// The meanings of names, innermost scope last.
    scopes: Vec<HashMap<String, Known>>,
    procedures: HashMap<String, Callee>,
    observed: Observed,
    /// The registers that the current thread stores to global variables at its end; `None` in a procedure.
    ending: Option<Vec<Handed>>,
    /// The labels of the current function to which a `goto` jumps.
    targets: HashSet<String>,
    /// The C names of the `for` indices in the current function.
    indices: HashMap<String, String>,
    /// The C variables that the text of the current function has read so far.
    read: BTreeSet<String>,
    helpers: BTreeSet<Helper>,
    text: String,
    depth: usize,
}

impl Writer {
    fn line(&mut self, line: &str) {
        if !line.is_empty() {
            self.text.extend(std::iter::repeat_n("    ", self.depth));
            self.text.push_str(line);
        }
        self.text.push('\n');
    }

    /// The C type of integers declared without a type.
    fn integer(&self) -> &'static str {
        if self.wide { "int64_t" } else { "int" }
    }

    /// The C type of a variable whose values wrap around by this conversion.
    fn type_of(&self, wraps: Option<UnaryOp>) -> &'static str {
        match wraps {
            Some(UnaryOp::Unsigned(Width::Bits8)) => "uint8_t",
            Some(UnaryOp::Unsigned(Width::Bits16)) => "uint16_t",
            Some(UnaryOp::Unsigned(Width::Bits32)) => "uint32_t",
            Some(UnaryOp::Signed(Width::Bits8)) => "int8_t",
            Some(UnaryOp::Signed(Width::Bits16)) => "int16_t",
            Some(UnaryOp::Signed(Width::Bits32)) => "int32_t",
            Some(_) => "int64_t",
            None => self.integer(),
        }
    }

    fn number(&self, value: i64) -> String {
        write::constant(value, i32::try_from(value).is_err())
    }

    fn fresh(&mut self, like: &str) -> String {
        self.names.fresh(&write::identifier(like), "n", "_")
    }

    /// Runs `write` with these names declared in a new innermost scope.
    fn scoped<T>(
        &mut self,
        names: HashMap<String, Known>,
        write: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.scopes.push(names);
        let done = write(self);
        self.scopes.pop();
        done
    }

    /// Runs `write` one indentation level deeper.
    fn indented<T>(&mut self, write: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.depth += 1;
        let done = write(self);
        self.depth -= 1;
        done
    }

    fn know(&mut self, name: &str, known: Known) {
        let scope = self.scopes.last_mut().expect("there is always the scope of the file");
        scope.insert(name.to_owned(), known);
    }

    fn known(&self, name: &ast::Name) -> Result<&Known> {
        let found = self.scopes.iter().rev().find_map(|scope| scope.get(&name.text));
        found.ok_or_else(|| cannot(&format!("`{}`", name.text), name.span))
    }

    /// Writes one declaration at the top level of the program.
    fn declare(&mut self, item: &Item) -> Result<()> {
        match item {
            Item::Const(constant) => {
                let value = self.constants.eval(&constant.value)?;
                self.constants.declare(&constant.name.text, value);
                let name = self.fresh(&constant.name.text);
                let number = self.number(value);
                match i32::try_from(value) {
                    Ok(_) => self.line(&format!("enum {{ {name} = {value} }};")),
                    Err(_) => self.line(&format!("#define {name} {number}")),
                }
                self.know(&constant.name.text, Known::constant(name));
            }
            Item::Shared(variables) => variables.iter().try_for_each(|v| self.shared(v))?,
            Item::Mutex(mutexes) => mutexes.iter().try_for_each(|m| self.mutex(m))?,
            // Hints have no counterpart in C. Other functions write the remaining items.
            Item::Numbers(..)
            | Item::Procedure(_)
            | Item::Thread(_)
            | Item::Property(_)
            | Item::Predicates(..)
            | Item::Spare(..)
            | Item::Cost(..) => {}
        }
        Ok(())
    }

    fn shared(&mut self, variable: &Declarator) -> Result<()> {
        if variable.open {
            return Err(cannot("an `open` array", variable.span));
        }
        let known = self.declared(variable, Role::Shared)?;
        let c_type = self.type_of(variable.wraps);
        let values = self.initial_values(variable, &known)?;
        let atomic = if c_type == "int" { "atomic_int".to_owned() } else { format!("_Atomic {c_type}") };
        let line = declaration(&atomic, &known, &values);
        self.line(&line);
        self.know(&variable.name.text, known);
        Ok(())
    }

    fn mutex(&mut self, mutex: &Declarator) -> Result<()> {
        let known = self.declared(mutex, Role::Mutex)?;
        let cells = known.indices.map_or(1, Range::size) as usize;
        let values = vec!["PTHREAD_MUTEX_INITIALIZER".to_owned(); cells];
        let line = declaration("pthread_mutex_t", &known, &values);
        self.line(&line);
        self.know(&mutex.name.text, known);
        Ok(())
    }

    /// Chooses the C name of a top-level declarator and describes its meaning.
    fn declared(&mut self, declarator: &Declarator, role: Role) -> Result<Known> {
        let text = self.fresh(&declarator.name.text);
        self.described(declarator, role, text)
    }

    fn described(&self, declarator: &Declarator, role: Role, text: String) -> Result<Known> {
        let indices = declarator.size.as_ref().map(|size| self.constants.indices(size)).transpose()?;
        let range = declarator.range.as_ref().map(|range| self.constants.range(range)).transpose()?;
        Ok(Known { text, role, wraps: declarator.wraps, range, indices })
    }

    /// The initial values of the cells of a shared variable; 0 for nondeterministic ones, which `main` chooses.
    fn initial_values(&self, declarator: &Declarator, known: &Known) -> Result<Vec<String>> {
        let cells = known.indices.map_or(1, Range::size) as usize;
        let values = self.constants.initial(declarator, known.values(), cells)?;
        Ok(values.into_iter().map(|init| self.number(initial_value(init).unwrap_or(0))).collect())
    }
}

/// The C declaration of a variable or array, with its initial values.
fn declaration(c_type: &str, known: &Known, values: &[String]) -> String {
    let name = &known.text;
    let zero = values.iter().all(|value| value == "0");
    match (known.indices, zero) {
        (None, true) => format!("{c_type} {name};"),
        (None, false) => format!("{c_type} {name} = {};", values.join(", ")),
        (Some(_), true) => format!("{c_type} {name}[{}];", values.len()),
        (Some(_), false) => format!("{c_type} {name}[{}] = {{ {} }};", values.len(), values.join(", ")),
    }
}
