//! Random programs of the fragment that CONTEXT24 decides up to a context bound (sections 3 and 6).
//!
//! Values of registers are copied, guessed (`*`), compared, stored to shared variables and loaded from them; the only constant is 0. With distances,
//! `assume r + n < s` (or `<=`), with `n` from 1 to 3, occurs too. This condition is never negated, because its negation, an upper bound on a
//! distance, is outside the fragment. Threads are built around the shapes that distinguish memory models (store buffering, message passing), so that
//! some of the properties hold, some fail, and some fail under TSO only.

use crate::choice::Random;
use crate::text::Text;

/// Maximum number of guesses (`*`) in a program. It is small enough that tests can decide the program with finitely many values.
const FRESH: usize = 4;
/// Number of registers that the shapes use: `r0`, usually the value that a thread stores, and `r1`, a value that it loads.
const CORE: usize = 2;
/// Maximum nesting depth of blocks.
const DEPTH: usize = 2;

/// Size and features of random programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The number of threads.
    pub threads: usize,
    /// The approximate number of statements per thread.
    pub length: usize,
    /// The number of shared variables.
    pub variables: usize,
    /// The set of numbers that values range over.
    pub numbers: Numbers,
    /// Whether guards may require a minimum distance between values.
    pub distances: bool,
    /// Whether there are loops.
    pub loops: bool,
}

/// A set of numbers that values range over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// Natural numbers.
    Nat,
    /// Integers.
    Int,
    /// Reals.
    Real,
}

impl Numbers {
    /// The name in programs and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Numbers::Nat => "nat",
            Numbers::Int => "int",
            Numbers::Real => "real",
        }
    }
}

/// A random program with two or three properties.
pub fn random(seed: u64, shape: Shape) -> String {
    let mut text = Text::default();
    text.comment("A random program: values are copied, guessed and compared.");
    text.line(&format!("numbers {};", shape.numbers.name()));
    text.blank();
    text.declare("shared", &(0..shape.variables).map(shared).collect::<Vec<_>>());
    let mut random = Random::new(seed);
    let buffering = random.one_in(2);
    let mut writer = Writer { random, text, shape, buffering, fresh: FRESH, threads: Vec::new() };
    for number in 0..shape.threads {
        writer.thread(number);
    }
    writer.properties();
    writer.text.finish()
}

/// The parts of a thread that properties can name.
struct Thread {
    name: String,
    registers: usize,
    labels: usize,
    /// Whether some statement so far may have given a register a value other than 0.
    changed: bool,
}

struct Writer {
    random: Random,
    text: Text,
    shape: Shape,
    /// Whether all threads have the shape of store buffering.
    buffering: bool,
    /// The number of guesses (`*`) that may still be written.
    fresh: usize,
    /// The threads so far; the last one is being written.
    threads: Vec<Thread>,
}

impl Writer {
    fn thread(&mut self, number: usize) {
        let name = thread_name(number);
        let registers = 3 + self.random.below(2);
        self.text.blank();
        self.text.open(&format!("thread {name}"));
        self.text.declare("var", &(0..registers).map(register).collect::<Vec<_>>());
        self.threads.push(Thread { name, registers, labels: 0, changed: false });
        let core = self.core(number);
        let extra = self.shape.length.saturating_sub(core.len());
        // The other statements are placed at random between those of the core.
        let mut places: Vec<usize> = (0..extra).map(|_| self.random.below(core.len() + 1)).collect();
        places.sort_unstable();
        let mut places = places.into_iter().peekable();
        for place in 0..=core.len() {
            while places.next_if_eq(&place).is_some() {
                self.statement(DEPTH);
            }
            if let Some(line) = core.get(place) {
                self.maybe_label(3);
                self.text.line(line);
                self.register_changed();
            }
        }
        self.new_label();
        self.text.line("skip;");
        self.text.close();
    }

    /// The statements of the thread in a shape that distinguishes memory models, such as store buffering.
    fn core(&mut self, number: usize) -> Vec<String> {
        let variables = self.shape.variables;
        let (own, next) = (shared(number % variables), shared((number + 1) % variables));
        let mut core = Vec::new();
        let shape = if self.buffering { 0 } else { self.random.below(4) };
        if shape < 3 && self.fresh > 0 {
            self.fresh -= 1;
            core.push("r0 = *;".to_string());
            if self.random.one_in(2) {
                core.push("assume 0 < r0;".to_string());
            }
        }
        match shape {
            // Store buffering.
            0 | 1 => core.extend([format!("{own} = r0;"), format!("r1 = {next};")]),
            // Message passing: the sender.
            2 => core.extend([format!("{own} = r0;"), format!("{next} = r0;")]),
            // Message passing: the receiver.
            _ => core.extend([format!("r0 = {own};"), format!("r1 = {next};")]),
        }
        // A thread passes this guard if it has loaded a smaller value than it has stored. If all threads pass, one of them has loaded an old value.
        if shape == 0 && self.random.one_in(2) {
            core.push("assume r1 < r0;".to_string());
        }
        // If the thread has to be shorter than the core, only the last statements of the core are kept.
        core.split_off(core.len().saturating_sub(self.shape.length))
    }

    fn statement(&mut self, depth: usize) {
        self.maybe_label(5);
        let (r, s) = (self.target(), self.register());
        let x = self.variable();
        match self.random.below(if depth == 0 { 13 } else { 18 }) {
            0..=3 => self.text.line(&format!("{x} = {s};")),
            4..=6 => {
                self.text.line(&format!("{r} = {x};"));
                self.register_changed();
            }
            7 => self.text.line(&format!("{r} = {s};")),
            8 if self.fresh > 0 => {
                self.fresh -= 1;
                self.text.line(&format!("{r} = *;"));
                self.register_changed();
            }
            8 => self.text.line(&format!("{r} = 0;")),
            9 => self.text.line("fence;"),
            10 => {
                self.text.open("atomic");
                self.text.line(&format!("assume {x} == {r};"));
                self.text.line(&format!("{x} = {s};"));
                self.text.close();
            }
            // If all registers of a thread are still 0, an `assume` that compares them may block the thread forever, so a store is written instead.
            11 | 12 if !self.threads.last().is_some_and(|thread| thread.changed) => {
                self.text.line(&format!("{x} = {r};"));
            }
            11 | 12 => {
                let guard = self.assumed();
                self.text.line(&format!("assume {guard};"));
            }
            13 => {
                self.text.line("lock;");
                self.text.line(&format!("{r} = {x};"));
                let stored = self.variable();
                self.text.line(&format!("{stored} = {s};"));
                self.text.line("unlock;");
            }
            14 | 15 => {
                let guard = self.guard();
                self.text.open(&format!("if {guard}"));
                self.statement(depth - 1);
                if self.random.one_in(2) {
                    self.text.next("else");
                    self.statement(depth - 1);
                }
                self.text.close();
            }
            16 if self.shape.loops => {
                self.text.open("loop");
                self.text.open("choose");
                self.text.line("break;");
                self.text.next("or");
                self.statement(depth - 1);
                self.text.close();
                self.text.close();
            }
            _ => {
                self.text.open("choose");
                self.statement(depth - 1);
                self.text.next("or");
                self.statement(depth - 1);
                self.text.close();
            }
        }
    }

    /// A condition for `if` or `assume`, whose negation is in the fragment as well.
    fn guard(&mut self) -> String {
        let r = self.register();
        let s = if self.random.one_in(4) { "0".to_string() } else { self.another(&r) };
        let (r, s) = if self.random.one_in(4) { (s, r) } else { (r, s) };
        format!("{r} {} {s}", self.comparison())
    }

    /// A condition for `assume`, which is never negated.
    fn assumed(&mut self) -> String {
        if !self.shape.distances || self.random.one_in(3) {
            return self.guard();
        }
        let (r, n) = (self.register(), self.random.between(1, 3));
        let s = self.another(&r);
        let comparison = *self.random.pick(&["<", "<="]);
        format!("{r} + {n} {comparison} {s}")
    }

    fn comparison(&mut self) -> &'static str {
        ["==", "!=", "!=", "<", "<", "<="][self.random.below(6)]
    }

    /// Writes a label, with probability 1 in `times`.
    fn maybe_label(&mut self, times: usize) {
        if self.random.one_in(times) {
            self.new_label();
        }
    }

    fn new_label(&mut self) {
        if let Some(thread) = self.threads.last_mut() {
            self.text.label(&label(thread.labels));
            thread.labels += 1;
        }
    }

    fn register_changed(&mut self) {
        if let Some(thread) = self.threads.last_mut() {
            thread.changed = true;
        }
    }

    /// A register of the current thread.
    fn register(&mut self) -> String {
        register(self.random.below(self.threads.last().map_or(1, |thread| thread.registers)))
    }

    /// A register for a statement to change, rarely one that the core of the thread uses.
    fn target(&mut self) -> String {
        let registers = self.threads.last().map_or(CORE + 1, |thread| thread.registers);
        let first = if self.random.one_in(4) { 0 } else { CORE };
        register(first + self.random.below(registers - first))
    }

    /// A register of the current thread other than this one.
    fn another(&mut self, register: &str) -> String {
        loop {
            let other = self.register();
            if other != register {
                return other;
            }
        }
    }

    fn variable(&mut self) -> String {
        shared(self.random.below(self.shape.variables))
    }

    fn properties(&mut self) {
        self.text.blank();
        let (p, q) = self.two_threads();
        let labels = match self.random.one_in(2) {
            true => format!("{} && {}", self.at_last(p), self.at_last(q)),
            false => format!("{} && {}", self.at(p), self.at(q)),
        };
        self.text.line(&format!("forbid labels: {labels};"));
        let registers = self.registers(p, q);
        let (p, q) = (&self.threads[p].name, &self.threads[q].name);
        self.text.line(&format!("forbid registers: {p}@end && {q}@end && {registers};"));
        match self.random.below(4) {
            0 => {
                let at = self.random.below(self.threads.len());
                let (at, memory) = (self.at(at), self.memory());
                self.text.line(&format!("forbid memory: {at} && {memory};"));
            }
            1 => {
                let (p, q) = self.two_threads();
                let formula = if self.random.one_in(4) { self.memory() } else { self.registers(p, q) };
                let quantifier = self.random.pick(&["never", "exists", "forall"]);
                self.text.line(&format!("finally last: {quantifier} {formula};"));
            }
            _ => {}
        }
    }

    /// Two different threads, or the only thread twice.
    fn two_threads(&mut self) -> (usize, usize) {
        let threads = self.threads.len();
        let p = self.random.below(threads);
        (p, (p + 1 + self.random.below(threads.saturating_sub(1))) % threads)
    }

    fn at(&mut self, thread: usize) -> String {
        let label = label(self.random.below(self.threads[thread].labels));
        format!("{}@{label}", self.threads[thread].name)
    }

    /// The formula that a thread is at its last label.
    fn at_last(&self, thread: usize) -> String {
        let Thread { name, labels, .. } = &self.threads[thread];
        format!("{name}@{}", label(labels - 1))
    }

    /// A formula that compares registers of two threads. Half of the time it is the relaxed outcome of store buffering, in which each thread has
    /// loaded an old value.
    fn registers(&mut self, p: usize, q: usize) -> String {
        let seen_by_both = self.random.one_in(2);
        let (p, q) = (&self.threads[p], &self.threads[q]);
        if seen_by_both {
            return format!("{0}.r1 < {1}.r0 && {1}.r1 < {0}.r0", p.name, q.name);
        }
        let mut compared = |p: &Thread, q: &Thread| {
            let (r, s) = (self.random.below(p.registers), self.random.below(q.registers));
            let comparison = self.random.pick(&["==", "!=", "<", "<="]);
            format!("{}.{} {comparison} {}.{}", p.name, register(r), q.name, register(s))
        };
        let (one, other) = (compared(p, q), compared(q, p));
        if self.random.one_in(2) { one } else { format!("{one} && {other}") }
    }

    /// A formula that compares two shared variables with each other or one with 0.
    fn memory(&mut self) -> String {
        let (x, y) = (self.variable(), self.variable());
        let comparison = self.comparison();
        match x == y {
            true => format!("{x} {comparison} 0"),
            false => format!("{x} {comparison} {y}"),
        }
    }
}

fn thread_name(number: usize) -> String {
    format!("t{number}")
}

fn shared(number: usize) -> String {
    format!("x{number}")
}

fn register(number: usize) -> String {
    format!("r{number}")
}

fn label(number: usize) -> String {
    format!("l{number}")
}
