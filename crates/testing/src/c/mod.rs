//! Random C programs, each with an equivalent `.fw` program.
//!
//! Both texts are generated together, statement by statement. The `.fw` text is plain. The C text chooses among many equivalent forms of C: shared
//! cells may be globals, fields, array elements or locals of `main`, and are accessed by name, by pointers or through arguments; accesses are plain,
//! volatile, C11, `__atomic`, `__sync`, in assembly or in the style of Linux; registers are locals, array elements, fields or thread-local; some
//! blocks are functions. These choices must not affect any verdict.
//!
//! Values stay within their C types: `values` tracks an interval for each expression, so that no signed operation overflows.

mod atomics;
mod cells;
mod code;
mod values;

use std::fmt::Write;

use fencewright_generate::Random;

use cells::{Cell, State};
use values::{Kind, Value};

/// A program in two languages, with the same verdicts under every memory model.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The `.fw` text. Its properties together state what the asserts of the C program check.
    pub fw: String,
    /// The C text.
    pub c: String,
}

/// The storage of a thread's registers in the C program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Registers {
    Locals,
    Array,
    Fields,
    Pointers,
    ThreadLocal,
    /// Fields of a local structure. A block that is a function of its own accesses the fields through a pointer.
    Passed,
}

const REGISTERS: usize = 3;

/// A litmus test in the middle of the first two threads, because almost no other random program distinguishes memory models.
#[derive(Clone, Copy)]
struct Litmus {
    shape: Shape,
    /// The cells through which the threads communicate.
    shared: [usize; 2],
    /// The cells for the values that the threads read.
    results: [usize; 2],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    StoreBuffering,
    MessagePassing,
}

impl Shape {
    /// The values read in the forbidden outcome.
    fn forbidden(self) -> [i64; 2] {
        match self {
            Shape::StoreBuffering => [0, 0],
            Shape::MessagePassing => [1, 0],
        }
    }
}

/// Writes the two texts of a program together, statement by statement.
struct Writer<'r> {
    random: &'r mut Random,
    cells: Vec<Cell>,
    state: State,
    mutexes: usize,
    /// Whether there is a recursive mutex.
    recursive: bool,
    litmus: Option<Litmus>,
    thread: usize,
    registers: Registers,
    /// The number of names generated so far.
    made: usize,
    /// The text of the C functions that blocks have been turned into.
    functions: String,
    /// The C helper functions.
    helpers: Vec<String>,
    fw: String,
    c: String,
}

/// A random program in two languages.
pub fn pair(random: &mut Random) -> Pair {
    let (mut cells, state) = cells::cells(random);
    let mutexes = usize::from(random.one_in(3));
    let recursive = mutexes > 0 && random.one_in(2);
    let shape = *random.pick(&[Shape::StoreBuffering, Shape::MessagePassing]);
    let first = cells.len() - 4;
    let litmus = Litmus { shape, shared: [first, first + 1], results: [first + 2, first + 3] };
    let litmus = (!random.one_in(4)).then_some(litmus);
    if litmus.is_none() {
        cells.truncate(first);
    }
    let writer = Writer {
        random,
        cells,
        state,
        mutexes,
        recursive,
        litmus,
        thread: 0,
        registers: Registers::Locals,
        made: 0,
        functions: String::new(),
        helpers: Vec::new(),
        fw: String::new(),
        c: String::new(),
    };
    writer.program()
}

impl Writer<'_> {
    fn both(&mut self, fw: &str, c: &str) {
        self.fw.push_str(fw);
        self.fw.push('\n');
        self.c.push_str(c);
        self.c.push('\n');
    }

    fn c_line(&mut self, c: &str) {
        self.c.push_str(c);
        self.c.push('\n');
    }

    fn name(&mut self, like: &str) -> String {
        self.made += 1;
        format!("{like}_{}", self.made)
    }

    fn helper(&mut self, text: String) {
        if !self.helpers.contains(&text) {
            self.helpers.push(text);
        }
    }

    fn program(mut self) -> Pair {
        let threads = if self.random.one_in(3) { 3 } else { 2 };
        let length = if threads == 3 { 3 } else { 5 };
        let (mut fw_threads, mut c_threads) = (String::new(), String::new());
        for thread in 0..threads {
            self.thread = thread;
            use Registers::*;
            self.registers =
                *self.random.pick(&[Locals, Locals, Array, Fields, Pointers, ThreadLocal, Passed]);
            (self.fw, self.c) = (String::new(), String::new());
            match self.litmus.filter(|_| thread < 2) {
                None => self.block(length, 2),
                Some(litmus) => {
                    let depth = self.random.below(3);
                    self.block(length - 2, depth.min(1));
                    self.litmus(litmus);
                    self.block(1, depth.saturating_sub(1));
                }
            }
            let names: Vec<String> = (0..REGISTERS).map(|r| format!("r{r}")).collect();
            let _ = write!(fw_threads, "thread t{thread} {{\nvar {};\n{}}}\n", names.join(", "), self.fw);
            let head = format!("static void *t{thread}(void *argument)\n{{\n");
            let end = if self.random.one_in(4) { "pthread_exit(NULL);\n" } else { "" };
            let begin = self.begin();
            let functions = std::mem::take(&mut self.functions);
            let _ = write!(c_threads, "{functions}{head}{begin}{}{end}return NULL;\n}}\n\n", self.c);
        }
        (self.fw, self.c) = (String::new(), String::new());
        let main = self.main(threads);
        let fw = format!("{}{fw_threads}{}", self.fw_declarations(), self.fw);
        let declarations = self.c_declarations();
        let helpers = self.helpers.join("\n");
        let launch = if main.contains("struct start start") { LAUNCH } else { "" };
        let c = format!("{HEADERS}{declarations}{helpers}\n{launch}{c_threads}{main}");
        Pair { fw, c }
    }

    /// Writes the accesses of one thread in a litmus test, sometimes with a statement between them.
    fn litmus(&mut self, Litmus { shape, shared, results }: Litmus) {
        let [mine, other] = if self.thread == 0 { shared } else { [shared[1], shared[0]] };
        let [mine, other] = [mine, other].map(|n| self.cells[n].clone());
        let kind = |writer: &mut Self| if writer.random.one_in(8) { writer.random.below(2) } else { 2 };
        let between = |writer: &mut Self| {
            if writer.random.one_in(4) {
                writer.statement(1)
            }
        };
        match (shape, self.thread) {
            (Shape::StoreBuffering, _) => {
                let kind = kind(self);
                self.store_to(&mine, Value::constant(1), kind);
                between(self);
                self.see(&other, results[self.thread]);
            }
            (Shape::MessagePassing, 0) => {
                for cell in [&mine, &other] {
                    let kind = kind(self);
                    self.store_to(cell, Value::constant(1), kind);
                    between(self);
                }
            }
            (Shape::MessagePassing, _) => {
                self.see(&mine, results[0]);
                between(self);
                self.see(&other, results[1]);
            }
        }
    }

    /// Writes a load of a cell and a store of the loaded value to a result cell.
    fn see(&mut self, cell: &Cell, result: usize) {
        let loaded = self.load_of(cell);
        let loaded = self.small(loaded);
        let register = self.register(0);
        self.both(&format!("r0 = {};", loaded.fw), &format!("{register} = {};", loaded.c));
        let result = self.cells[result].clone();
        let register = self.register(0);
        self.store_to(&result, Value::new("r0".into(), register, Kind::Int, (0, 1)), 2);
    }

    /// The beginning of a thread's function.
    fn begin(&mut self) -> String {
        let mut text = match self.state.is_passed {
            true => "struct state *s = argument;\n(void)s;\n".to_owned(),
            false => "(void)argument;\n".to_owned(),
        };
        text.push_str(match self.registers {
            Registers::Locals => "int r0 = 0, r1 = 0, r2 = 0;\n(void)r0, (void)r1, (void)r2;\n",
            Registers::Array => "int r[3] = { 0 };\n(void)r;\n",
            Registers::Fields => "struct { int a; int b[2]; } l = { 0, { 0, 0 } };\n(void)l;\n",
            Registers::Pointers => {
                "int r0 = 0, r1 = 0, r2 = 0;\nint *q0 = &r0, *q1 = &r1, *q2 = &r2;\n(void)q0, (void)q1, (void)q2;\n"
            }
            Registers::ThreadLocal => "",
            Registers::Passed => "struct locals l = { 0 };\nstruct locals *p = &l;\n(void)p;\n",
        });
        if self.registers == Registers::ThreadLocal {
            let word = *self.random.pick(&["__thread", "_Thread_local"]);
            let thread = self.thread;
            let line = format!("static {word} int t{thread}_r0, t{thread}_r1, t{thread}_r2;");
            self.helper(line);
        }
        if self.registers == Registers::Passed {
            self.helper("struct locals { int a, b; struct { int c; } in; };".into());
        }
        text
    }

    /// The C expression for a register of the current thread.
    fn register(&mut self, number: usize) -> String {
        match self.registers {
            Registers::Locals => format!("r{number}"),
            Registers::Array => match self.random.one_in(4) {
                true => format!("(*(r + {number}))"),
                false => format!("r[{number}]"),
            },
            Registers::Fields => ["l.a", "l.b[0]", "l.b[1]"][number].into(),
            Registers::Pointers => match self.random.one_in(3) {
                true => format!("r{number}"),
                false => format!("(*q{number})"),
            },
            Registers::ThreadLocal => format!("t{}_r{number}", self.thread),
            Registers::Passed => ["p->a", "p->b", "p->in.c"][number].into(),
        }
    }

    /// The creation of all threads in a loop: their functions are in a table, and are called directly or by a function that all threads run.
    fn starts(&mut self, text: &mut String, threads: usize, argument: &str) {
        let _ = writeln!(text, "pthread_t id[{threads}];");
        let (table, element, start): (_, &dyn Fn(usize) -> String, _) = match self.random.one_in(2) {
            true => {
                ("void *(*const start[])(void *)", &|t| format!("t{t}, "), format!("start[i], {argument}"))
            }
            false => (
                "struct start start[]",
                &|t| format!("{{ {t}, t{t}, {argument} }}, "),
                "launch, &start[i]".into(),
            ),
        };
        let elements: String = (0..threads).map(element).collect();
        let _ = writeln!(text, "{table} = {{ {elements}}};");
        let _ = writeln!(text, "for (int i = 0; i < {threads}; i++)\npthread_create(&id[i], NULL, {start});");
    }

    /// The function `main`, with the final assertion.
    fn main(&mut self, threads: usize) -> String {
        let mut text = String::from("int main(void)\n{\n");
        if self.state.is_local {
            text.push_str("struct state state = { 0 };\n");
        }
        for cell in &self.cells {
            text.push_str(&cell.assigned_in_main());
        }
        if self.recursive {
            text.push_str(
                "pthread_mutexattr_t kind;\npthread_mutexattr_init(&kind);\npthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);\npthread_mutex_init(&own, &kind);\n",
            );
        }
        let argument = if self.state.is_passed { "&state" } else { "NULL" };
        let in_loop = self.random.one_in(3);
        if in_loop {
            self.starts(&mut text, threads, argument);
        } else {
            for t in 0..threads {
                let _ = write!(text, "pthread_t id{t};\npthread_create(&id{t}, NULL, t{t}, {argument});\n");
            }
        }
        let asks = self.litmus.is_some() || !self.random.one_in(3);
        if asks || self.random.one_in(2) || self.state.is_local {
            let joins = |t: usize| match in_loop {
                true => format!("pthread_join(id[{t}], NULL);\n"),
                false => format!("pthread_join(id{t}, NULL);\n"),
            };
            match in_loop && self.random.one_in(2) {
                true => {
                    let _ = write!(text, "for (int i = 0; i < {threads}; i++)\npthread_join(id[i], NULL);\n");
                }
                false => (0..threads).for_each(|t| text.push_str(&joins(t))),
            }
        }
        if asks {
            let condition = self.final_condition();
            let _ = writeln!(self.fw, "finally last: forall {};", condition.fw);
            let _ = writeln!(text, "assert({});", condition.c);
        }
        text.push_str("return 0;\n}\n");
        text
    }
}

const LAUNCH: &str = "struct start { int number; void *(*run)(void *); void *argument; };
static void *launch(void *p)
{
struct start *s = p;
return s->run(s->argument);
}

";

const HEADERS: &str = "#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern bool __VERIFIER_nondet_bool(void);
extern void __VERIFIER_assume(int);
#ifndef READ_ONCE
#define READ_ONCE(x) (*(volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))
#endif
#define EITHER(c, a, b) ((c) ? (a) : (b))

";
