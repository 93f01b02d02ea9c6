//! Random small programs that allocate, free and compare, and their text in C.

use std::fmt::Write;

use fencewright_testing::Random;

/// The index of a local pointer variable of a thread.
pub type Local = usize;
/// The index of a pointer variable that all threads share.
pub type Global = usize;

/// Number of local variables of each thread.
pub const LOCALS: usize = 3;
/// Number of shared variables.
pub const GLOBALS: usize = 2;

/// A statement. It has at most one access to shared memory, so it is a single step.
#[derive(Clone, Debug)]
pub enum Stmt {
    Allocate(Local),
    Free(Local),
    Copy(Local, Local),
    Clear(Local),
    /// If the variable is not null, writes a number to its block.
    Set(Local, i64),
    /// If the first variable is not null, writes a pointer (the second variable, or null) to its block.
    Link(Local, Option<Local>),
    /// If the second variable is not null, reads the pointer in its block into the first variable.
    Follow(Local, Local),
    /// Writes a global: with `memory_order_relaxed`, `memory_order_release`, or, by default, `memory_order_seq_cst`.
    Publish(Global, Local, Order),
    Fetch(Local, Global),
    Swap(Local, Global),
    /// `atomic_compare_exchange` of a global from one pointer to another (or null), and the statements to execute if it succeeds.
    Exchange(Global, Local, Option<Local>, Vec<Stmt>),
    If(Condition, Vec<Stmt>, Vec<Stmt>),
    Assert(Condition),
    Twice(Vec<Stmt>),
}

/// The memory order of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Relaxed,
    Release,
    SeqCst,
}

/// A test of pointers.
#[derive(Clone, Copy, Debug)]
pub enum Test {
    IsNull(Local),
    Same(Local, Local),
    /// Neither pointer is null, and the address of the first one is lower.
    Before(Local, Local),
    /// The pointer is null, or its block holds this number.
    Holds(Local, i64),
}

/// A test or its negation, and which of several C notations is used for it.
#[derive(Clone, Copy, Debug)]
pub struct Condition {
    pub test: Test,
    pub negated: bool,
    pub style: usize,
}

/// A program: `main` before it creates the thread, the thread, `main` while the thread runs, and `main` after the join.
#[derive(Debug)]
pub struct Program {
    pub before: Vec<Stmt>,
    pub thread: Vec<Stmt>,
    pub beside: Vec<Stmt>,
    pub after: Vec<Stmt>,
}

impl Program {
    /// The statements of its four parts.
    pub fn blocks(&self) -> [&[Stmt]; 4] {
        [&self.before, &self.thread, &self.beside, &self.after]
    }

    /// Maximum number of allocations in one execution.
    pub fn allocations(&self) -> usize {
        self.blocks().into_iter().map(allocations).sum()
    }

    /// Whether it compares addresses for order.
    pub fn is_ordered(&self) -> bool {
        let text = format!("{self:?}");
        text.contains("Before(")
    }

    /// Whether an allocation is in a loop.
    pub fn allocates_in_loops(&self) -> bool {
        self.blocks().into_iter().any(in_loops)
    }
}

fn allocations(block: &[Stmt]) -> usize {
    let of = |stmt: &Stmt| match stmt {
        Stmt::Allocate(_) => 1,
        Stmt::Exchange(.., inner) => allocations(inner),
        Stmt::If(_, then, otherwise) => allocations(then) + allocations(otherwise),
        Stmt::Twice(inner) => 2 * allocations(inner),
        _ => 0,
    };
    block.iter().map(of).sum()
}

fn in_loops(block: &[Stmt]) -> bool {
    block.iter().any(|stmt| match stmt {
        Stmt::Exchange(.., inner) => in_loops(inner),
        Stmt::If(_, then, otherwise) => in_loops(then) || in_loops(otherwise),
        Stmt::Twice(inner) => allocations(inner) > 0,
        _ => false,
    })
}

/// Writes random statements of one thread, and tracks which variables point to memory that is probably alive.
struct Writer<'a> {
    random: &'a mut Random,
    alive: [bool; LOCALS],
    /// The variables that may point to freed memory.
    dangling: [bool; LOCALS],
    order: bool,
}

impl Writer<'_> {
    fn chance(&mut self, percent: usize) -> bool {
        self.random.below(100) < percent
    }

    fn local(&mut self) -> Local {
        self.random.below(LOCALS)
    }

    fn global(&mut self) -> Global {
        self.random.below(GLOBALS)
    }

    /// A variable to dereference: mostly one that points to live memory, sometimes one that may dangle.
    fn alive(&mut self) -> Option<Local> {
        let dangling = self.chance(12);
        let of = if dangling { self.dangling } else { self.alive };
        let found: Vec<Local> = (0..LOCALS).filter(|&local| of[local]).collect();
        (!found.is_empty()).then(|| *self.random.pick(&found))
    }

    fn condition(&mut self) -> Condition {
        let (one, other) = (self.local(), self.local());
        let test = match self.random.below(10) {
            0..=5 => Test::Same(one, other),
            6 | 7 if self.order => Test::Before(one, other),
            8 => match self.alive() {
                Some(local) => Test::Holds(local, self.random.below(3) as i64),
                None => Test::IsNull(one),
            },
            9 => Test::IsNull(one),
            _ => Test::Same(one, other),
        };
        Condition { test, negated: self.chance(50), style: self.random.below(4) }
    }

    fn block(&mut self, length: usize, depth: usize) -> Vec<Stmt> {
        let mut block = Vec::new();
        for _ in 0..length {
            self.statement(&mut block, depth);
        }
        block
    }

    fn inner(&mut self, depth: usize) -> Vec<Stmt> {
        let before = self.alive;
        let length = 1 + self.random.below(2);
        let block = self.block(length, depth + 1);
        // A variable whose memory may have been freed in the block does not count as alive after it.
        for (alive, before) in self.alive.iter_mut().zip(before) {
            *alive &= before;
        }
        block
    }

    fn statement(&mut self, block: &mut Vec<Stmt>, depth: usize) {
        let (local, other, global) = (self.local(), self.local(), self.global());
        match self.random.below(if depth < 2 { 24 } else { 19 }) {
            0..=4 => {
                block.push(Stmt::Allocate(local));
                block.push(Stmt::Set(local, self.random.below(3) as i64));
                block.push(Stmt::Link(local, None));
                self.alive[local] = true;
            }
            5..=7 => {
                if let Some(local) = self.alive() {
                    block.push(Stmt::Free(local));
                    (self.alive[local], self.dangling[local]) = (false, true);
                }
            }
            8 => {
                block.push(Stmt::Copy(local, other));
                // Mostly, the copy does not count as alive, so that only one of the two pointers is used to free the memory.
                self.alive[local] = self.alive[other] && self.chance(30);
                self.dangling[local] = true;
            }
            9 => {
                block.push(Stmt::Clear(local));
                self.alive[local] = false;
            }
            10 => {
                if let Some(local) = self.alive() {
                    block.push(Stmt::Set(local, self.random.below(3) as i64));
                }
            }
            11 => {
                if let Some(of) = self.alive() {
                    block.push(Stmt::Link(of, self.random.pick(&[None, Some(local)]).to_owned()));
                }
            }
            12 => {
                if let Some(of) = self.alive() {
                    block.push(Stmt::Follow(local, of));
                    self.alive[local] = false;
                }
            }
            13 | 14 => {
                let order = [Order::Relaxed, Order::Relaxed, Order::Release, Order::SeqCst];
                let order = *self.random.pick(&order);
                block.push(Stmt::Publish(global, local, order));
                self.alive[local] &= self.chance(50);
            }
            15 => {
                block.push(Stmt::Fetch(local, global));
                (self.alive[local], self.dangling[local]) = (self.chance(40), true);
            }
            16 => {
                block.push(Stmt::Swap(local, global));
                self.alive[local] = self.chance(80);
            }
            17 | 18 => {
                let assert = self.condition();
                block.push(Stmt::Assert(assert));
            }
            19 | 20 => {
                let condition = self.condition();
                let then = self.inner(depth);
                let otherwise = if self.chance(30) { self.inner(depth) } else { Vec::new() };
                block.push(Stmt::If(condition, then, otherwise));
            }
            21 | 22 => {
                let new = self.random.pick(&[None, Some(other)]).to_owned();
                let then = self.inner(depth);
                block.push(Stmt::Exchange(global, local, new, then));
            }
            _ => {
                let inner = self.inner(depth);
                block.push(Stmt::Twice(inner));
            }
        }
    }
}

/// A random program; one in three compares addresses for order.
pub fn random(random: &mut Random) -> Program {
    let order = random.below(3) == 0;
    let mut main = Writer { random, alive: [false; LOCALS], dangling: [false; LOCALS], order };
    let (first, second) = (1 + main.random.below(4), 1 + main.random.below(3));
    let before = main.block(first, 0);
    let beside = main.block(second, 0);
    let last = 1 + main.random.below(3);
    let after = main.block(last, 0);
    let mut other = Writer { random: main.random, alive: [false; LOCALS], dangling: [false; LOCALS], order };
    let length = 1 + other.random.below(5);
    let thread = other.block(length, 0);
    Program { before, thread, beside, after }
}

const START: &str = "#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
struct node { int value; struct node *next; };
struct node *_Atomic g0, *_Atomic g1;
";

fn name(local: Local) -> char {
    ['a', 'b', 'c'][local]
}

fn names(local: Option<Local>) -> String {
    local.map_or("0".into(), |local| name(local).into())
}

fn condition(Condition { test, negated, style }: &Condition) -> String {
    let text = match *test {
        Test::IsNull(a) => [format!("!{}", name(a)), format!("{} == NULL", name(a))][style % 2].clone(),
        Test::Same(a, b) => {
            let (a, b) = (name(a), name(b));
            match style {
                0 | 1 => format!("{a} == {b}"),
                2 => format!("(uintptr_t){a} == (uintptr_t){b}"),
                _ => format!("!((void *){a} != (void *){b})"),
            }
        }
        Test::Before(a, b) => {
            let (a, b) = (name(a), name(b));
            match style {
                0 => format!("{a} && {b} && {a} < {b}"),
                1 => format!("{a} && {b} && {b} > {a}"),
                2 => format!("{a} && {b} && (uintptr_t){a} < (uintptr_t){b}"),
                _ => format!("{a} && {b} && !({a} >= {b})"),
            }
        }
        Test::Holds(a, number) => format!("!{0} || {0}->value == {number}", name(a)),
    };
    if *negated { format!("!({text})") } else { text }
}

fn block(text: &mut String, stmts: &[Stmt], depth: usize) {
    for stmt in stmts {
        let indent = "    ".repeat(depth + 1);
        let line = match stmt {
            Stmt::Allocate(a) => format!("{} = malloc(sizeof(struct node));", name(*a)),
            Stmt::Free(a) => format!("free({});", name(*a)),
            Stmt::Copy(a, b) => format!("{} = {};", name(*a), name(*b)),
            Stmt::Clear(a) => format!("{} = NULL;", name(*a)),
            Stmt::Set(a, number) => format!("if ({0}) {0}->value = {number};", name(*a)),
            Stmt::Link(a, b) => format!("if ({0}) {0}->next = {1};", name(*a), names(*b)),
            Stmt::Follow(a, b) => format!("if ({1}) {0} = {1}->next;", name(*a), name(*b)),
            Stmt::Publish(g, a, Order::SeqCst) => format!("g{g} = {};", name(*a)),
            Stmt::Publish(g, a, order) => {
                let order = if *order == Order::Relaxed { "relaxed" } else { "release" };
                format!("atomic_store_explicit(&g{g}, {}, memory_order_{order});", name(*a))
            }
            Stmt::Fetch(a, g) => format!("{} = g{g};", name(*a)),
            Stmt::Swap(a, g) => format!("{0} = atomic_exchange(&g{g}, {0});", name(*a)),
            Stmt::Exchange(g, a, b, then) => {
                let (a, b) = (name(*a), names(*b));
                let start =
                    format!("struct node *e = {a}; if (atomic_compare_exchange_strong(&g{g}, &e, {b}))");
                _ = writeln!(text, "{indent}{{ {start} {{");
                block(text, then, depth + 1);
                "} }".into()
            }
            Stmt::If(of, then, otherwise) => {
                _ = writeln!(text, "{indent}if ({}) {{", condition(of));
                block(text, then, depth + 1);
                _ = writeln!(text, "{indent}}} else {{");
                block(text, otherwise, depth + 1);
                "}".into()
            }
            Stmt::Assert(of) => format!("assert({});", condition(of)),
            Stmt::Twice(inner) => {
                _ = writeln!(text, "{indent}for (int i = 0; i < 2; i++) {{");
                block(text, inner, depth + 1);
                "}".into()
            }
        };
        _ = writeln!(text, "{indent}{line}");
    }
}

/// The text of the program in C.
pub fn c(program: &Program) -> String {
    let locals = "    struct node *a = NULL, *b = NULL, *c = NULL;\n";
    let mut text = format!("{START}void *thread(void *argument)\n{{\n{locals}");
    block(&mut text, &program.thread, 0);
    _ = write!(text, "    return NULL;\n}}\nint main(void)\n{{\n{locals}    pthread_t t;\n");
    block(&mut text, &program.before, 0);
    text.push_str("    pthread_create(&t, NULL, thread, NULL);\n");
    block(&mut text, &program.beside, 0);
    text.push_str("    pthread_join(t, NULL);\n");
    block(&mut text, &program.after, 0);
    text.push_str("    return 0;\n}\n");
    text
}
