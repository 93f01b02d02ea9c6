//! Random files: small programs with every feature of the language, as syntax trees that can be printed and are accepted.

mod expressions;
mod formulas;
mod statements;

use fencewright_lang::ast::*;
use fencewright_program::{CallId, FileId, Numbers, Span, UnaryOp, Width};
use fencewright_testing::Random;

use super::control::inner_blocks;
use super::declarations::{Interval, type_values};

pub const NOWHERE: Span = Span { file: FileId::MAIN, start: 0, end: 0, call: CallId(None) };

/// A file, and the constants that the command line overrides.
#[derive(Clone, Debug)]
pub struct Generated {
    pub file: File,
    pub defines: Vec<(String, i64)>,
}

/// A visible constant: its name, and its least and greatest value.
type Known = (String, Interval);

struct SharedShape {
    name: String,
    indices: Option<Interval>,
    open: bool,
    ranged: bool,
    wraps: Option<UnaryOp>,
}

#[derive(Clone)]
struct RegisterShape {
    name: String,
    /// The indices of an array.
    indices: Option<Interval>,
    ranged: bool,
    wraps: Option<UnaryOp>,
}

struct ThreadShape {
    name: String,
    /// The values of the index of a family.
    family: Option<Interval>,
    registers: Vec<RegisterShape>,
    labels: Vec<String>,
}

struct Generator {
    random: Random,
    numbers: Numbers,
    constants: Vec<Known>,
    shared: Vec<SharedShape>,
    mutexes: Vec<SharedShape>,
    threads: Vec<ThreadShape>,
    /// The registers of the current thread.
    registers: Vec<RegisterShape>,
    /// The number of labels in each scope: the thread, and each `for` around the current statement.
    labels: Vec<usize>,
    /// The nesting depth of the current block.
    depth: usize,
    /// The number of loops around the current statement.
    loops: usize,
    /// Inside an indivisible block, whether the block may store; `None` outside.
    indivisible: Option<bool>,
    /// The number of further statements that this thread may have.
    fuel: usize,
}

fn name(text: impl Into<String>) -> Name {
    Name { text: text.into(), span: NOWHERE }
}

fn expr(kind: ExprKind) -> Expr {
    Expr { kind, span: NOWHERE }
}

fn int(value: i64) -> Expr {
    expr(ExprKind::Int(value))
}

fn named(text: &str) -> Expr {
    expr(ExprKind::Place(Place { name: name(text), index: None }))
}

/// The file for a seed.
pub fn generate(seed: u64) -> Generated {
    let mut random = Random::new(seed);
    let numbers =
        *random.pick(&[Numbers::Int, Numbers::Int, Numbers::Int, Numbers::Nat, Numbers::Nat, Numbers::Real]);
    let mut generator = Generator {
        random,
        numbers,
        constants: Vec::new(),
        shared: Vec::new(),
        mutexes: Vec::new(),
        threads: Vec::new(),
        registers: Vec::new(),
        labels: Vec::new(),
        depth: 0,
        loops: 0,
        indivisible: None,
        fuel: 0,
    };
    generator.file()
}

impl Generator {
    fn one_in(&mut self, n: usize) -> bool {
        self.random.one_in(n)
    }

    fn file(&mut self) -> Generated {
        let mut items = Vec::new();
        let mut defines = Vec::new();
        let said = self.numbers != Numbers::Int || self.one_in(4);
        let numbers_last = said && self.one_in(4);
        if said && !numbers_last {
            items.push(Item::Numbers(self.numbers, NOWHERE));
        }
        for constant in ["N", "M"].into_iter().take(self.random.below(3)) {
            let written = self.random.between(0, 2);
            let value = match self.one_in(4) {
                true => {
                    defines.push((constant.to_string(), self.random.between(0, 2)));
                    defines[defines.len() - 1].1
                }
                false => written,
            };
            let written = match self.constants.last().map(|(name, interval)| (name.clone(), *interval)) {
                // The constant is defined in terms of the previous constant, so its value depends on the override of that constant.
                Some((before, (low, _))) if value == written && self.one_in(2) => expr(ExprKind::Binary(
                    fencewright_program::BinaryOp::Sub,
                    Box::new(int(low + value)),
                    Box::new(named(&before)),
                )),
                _ => int(written),
            };
            items.push(Item::Const(Const { name: name(constant), value: written }));
            self.constants.push((constant.into(), (value, value)));
        }
        for number in 0..1 + self.random.below(3) {
            let declarator = self.shared(number);
            items.push(Item::Shared(vec![declarator]));
        }
        if self.one_in(4) {
            let at = items.len() - self.random.below(2);
            items.insert(at, Item::Mutex(vec![self.mutex()]));
        }
        let threads = *self.random.pick(&[1, 2, 2, 2, 3]);
        while self.threads.len() < threads {
            // Three threads are short, because long ones have too many interleavings.
            self.fuel = 2 + self.random.below([0, 9, 6, 3][threads]);
            items.push(self.thread());
        }
        items.extend(self.properties());
        items.extend(self.hints());
        if numbers_last {
            items.push(Item::Numbers(self.numbers, NOWHERE));
        }
        Generated { file: File { items }, defines }
    }

    fn shared(&mut self, number: usize) -> Declarator {
        let text = format!("x{number}");
        let indices = self.one_in(3).then(|| {
            let low = self.random.between(-1, 0);
            (low, low + self.random.between(0, 2))
        });
        let open = indices.is_some() && self.one_in(4);
        let size = indices.map(|(low, high)| match low == 0 && self.one_in(2) {
            true => ArraySize::Length(self.constant(high + 1)),
            false => ArraySize::Indices(self.range((low, high))),
        });
        let range = self.one_in(4).then(|| {
            let low = self.random.between(-1, 0);
            (low, self.random.between(1, 3))
        });
        let cells = indices.map_or(1, |(low, high)| high - low + 1);
        let wraps = if range.is_none() { self.wraps() } else { None };
        let init = self.initial(range, wraps, cells, indices.is_some());
        let range_text = range.map(|r| self.range(r));
        let ranged = range.is_some();
        self.shared.push(SharedShape { name: text.clone(), indices, open, ranged, wraps });
        Declarator { name: name(text), size, open, range: range_text, wraps, init, span: NOWHERE }
    }

    fn mutex(&mut self) -> Declarator {
        let indices = self.one_in(2).then(|| (0, self.random.between(0, 1)));
        let size = indices.map(|(_, high)| ArraySize::Length(self.constant(high + 1)));
        let shape = SharedShape { name: "m".into(), indices, open: false, ranged: false, wraps: None };
        self.mutexes.push(shape);
        Declarator { name: name("m"), size, open: false, range: None, wraps: None, init: None, span: NOWHERE }
    }

    /// The type of a variable or register, if it has one.
    fn wraps(&mut self) -> Option<UnaryOp> {
        let unsigned = UnaryOp::Unsigned as fn(Width) -> UnaryOp;
        let kinds = match self.numbers {
            Numbers::Int => vec![unsigned, UnaryOp::Signed],
            Numbers::Nat => vec![unsigned],
            Numbers::Real => return None,
        };
        let width = *self.random.pick(&[Width::Bits8, Width::Bits8, Width::Bits16, Width::Bits32]);
        self.one_in(5).then(|| self.random.pick(&kinds)(width))
    }

    /// Initial contents within the range.
    fn initial(
        &mut self,
        range: Option<Interval>,
        wraps: Option<UnaryOp>,
        cells: i64,
        array: bool,
    ) -> Option<Initial> {
        if let Some(wraps) = wraps.filter(|_| self.one_in(2)) {
            // The initial value is the least or greatest value of the type, so that arithmetic soon wraps around.
            let (low, high) = type_values(wraps);
            let value = if self.one_in(2) { low } else { high } as i64;
            return Some(Initial::Value(int(value)));
        }
        let real = self.numbers == Numbers::Real;
        let nonnegative = range.is_none_or(|(low, _)| low >= 0) || self.numbers != Numbers::Nat;
        match self.random.below(10) {
            0 if !real && cells < 3 => {
                let high = self.random.between(0, 1);
                Some(Initial::Any(Some(self.range((0, high)))))
            }
            1 if !real && cells < 2 && range.is_some() && nonnegative => Some(Initial::Any(None)),
            2 | 3 => {
                let value = self.random.between(0, 1);
                Some(Initial::Value(self.constant(value)))
            }
            4 if array => {
                let mut values = Vec::new();
                for _ in 0..cells {
                    let value = self.random.between(0, 1);
                    values.push(self.constant(value));
                }
                Some(Initial::List(values))
            }
            _ => None,
        }
    }

    fn thread(&mut self) -> Item {
        let number = self.threads.len();
        let text = format!("p{number}");
        let top_level = self.constants.len();
        let family = self.one_in(3).then(|| {
            let low = self.random.between(-1, 1);
            (low, low + self.random.between(-1, 1))
        });
        if family.is_some_and(|(low, high)| low < high) {
            self.fuel = self.fuel.min(3);
        }
        let family_text = family.map(|interval| {
            let range = self.range(interval);
            self.constants.push(("me".into(), interval));
            (name("me"), range)
        });
        self.registers.clear();
        self.labels = vec![0];
        let mut statements = Vec::new();
        if self.one_in(3) {
            statements.push(self.constant_declaration());
        }
        for register in 0..1 + self.random.below(2) {
            statements.push(self.register(register));
        }
        let late = self.one_in(8).then(|| self.register(2));
        let mut body = self.block();
        // A register may be declared in the middle of the body, although it exists from the start of the thread.
        let middle = self.random.below(body.statements.len().max(1));
        body.statements.splice(middle..middle, late);
        body.statements.splice(0..0, statements);
        let mut visible = vec![labels_of_layer(&body)];
        self.aim(&mut body, &mut visible);
        self.constants.truncate(top_level);
        let mut labels = Vec::new();
        all_labels(&body, &mut labels);
        let registers = self.registers.clone();
        self.threads.push(ThreadShape { name: text.clone(), family, registers, labels });
        Item::Thread(Thread { name: name(text), family: family_text, body, span: NOWHERE })
    }

    fn constant_declaration(&mut self) -> Statement {
        let value = self.random.between(0, 2);
        let constant = format!("c{}", self.depth);
        let value_text = self.constant(value);
        self.constants.push((constant.clone(), (value, value)));
        self.statement(StatementKind::Const(Const { name: name(constant), value: value_text }))
    }

    fn register(&mut self, number: usize) -> Statement {
        let text = format!("r{number}");
        let range = self.one_in(4).then(|| {
            let low = self.random.between(-1, 0);
            (low, self.random.between(1, 2))
        });
        let wraps = if range.is_none() { self.wraps() } else { None };
        let indices = self.one_in(5).then(|| {
            let low = self.random.between(-1, 0);
            (low, low + self.random.between(0, 2))
        });
        let size = indices.map(|(low, high)| match low == 0 && self.one_in(2) {
            true => ArraySize::Length(self.constant(high + 1)),
            false => ArraySize::Indices(self.range((low, high))),
        });
        let cells = indices.map_or(1, |(low, high)| high - low + 1);
        let init = self.initial(range, wraps, cells, indices.is_some());
        let range_text = range.map(|r| self.range(r));
        let ranged = range.is_some();
        self.registers.push(RegisterShape { name: text.clone(), indices, ranged, wraps });
        let declarator =
            Declarator { name: name(text), size, open: false, range: range_text, wraps, init, span: NOWHERE };
        self.statement(StatementKind::Var(vec![declarator]))
    }

    /// Sends every `goto` to a visible label; without one, it becomes `skip`.
    fn aim(&mut self, block: &mut Block, visible: &mut Vec<Vec<String>>) {
        for statement in &mut block.statements {
            match &mut statement.kind {
                StatementKind::Goto(target) => {
                    let labels: Vec<&String> = visible.iter().flatten().collect();
                    match labels.is_empty() {
                        true => statement.kind = StatementKind::Skip,
                        false => target.text = (*self.random.pick(&labels)).clone(),
                    }
                }
                StatementKind::For(_, _, body) => {
                    visible.push(labels_of_layer(body));
                    self.aim(body, visible);
                    visible.pop();
                }
                StatementKind::If(_, then, otherwise) => {
                    self.aim(then, visible);
                    otherwise.iter_mut().for_each(|block| self.aim(block, visible));
                }
                StatementKind::While(_, body) | StatementKind::Loop(body) | StatementKind::Block(body) => {
                    self.aim(body, visible)
                }
                StatementKind::Choose(blocks) => blocks.iter_mut().for_each(|b| self.aim(b, visible)),
                _ => {}
            }
        }
    }
}

/// The labels of a block that are visible to a jump inside it: those in a `for` are visible only there.
fn labels_of_layer(block: &Block) -> Vec<String> {
    let mut labels = Vec::new();
    for statement in &block.statements {
        labels.extend(statement.labels.iter().map(|l| l.text.clone()));
        if !matches!(statement.kind, StatementKind::For(..)) {
            labels.extend(inner_blocks(statement).into_iter().flat_map(labels_of_layer));
        }
    }
    labels
}

fn all_labels(block: &Block, labels: &mut Vec<String>) {
    for statement in &block.statements {
        labels.extend(statement.labels.iter().map(|l| l.text.clone()));
        inner_blocks(statement).into_iter().for_each(|inner| all_labels(inner, labels));
    }
}
