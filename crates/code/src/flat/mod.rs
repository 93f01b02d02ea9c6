//! Flat code: core code in which addresses are numbers, and places are cells of variables.
//!
//! `resolve` makes it, `ranges` takes out checks that cannot fail, `tidy` what nobody needs, and
//! `emit` prints it as `.fw`.

pub(crate) mod checks;
pub(crate) mod claims;
pub(crate) mod counters;
pub(crate) mod failures;
pub(crate) mod flow;
pub(crate) mod joins;
mod ranges;
pub(crate) mod sharing;
pub(crate) mod tidy;
pub(crate) mod undefining;

use fencewright_program::{BinaryOp, Span, UnaryOp};

use crate::core::{Access, Label, Register};
use crate::flat::claims::Claims;
use fencewright_text::Stop;

/// What undefined memory holds: a number that no address, and no number that programs count with, comes near.
pub const UNDEFINED: i64 = -0x5EAD_BEEF_0000;

/// A value, without pointers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Term {
    /// A number.
    Number(i64),
    /// A register.
    Register(Register),
    /// An element of an array of registers: memory that only one thread uses.
    Element(usize, Box<Term>),
    /// An operation.
    Unary(UnaryOp, Box<Term>),
    /// An operation.
    Binary(BinaryOp, Box<Term>, Box<Term>),
    /// One of two.
    If(Box<Term>, Box<Term>, Box<Term>),
}

/// An access of a cell of shared memory: the number of its class, and which cell if there are several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The class, by its number in the layout.
    pub class: usize,
    /// Which cell.
    pub index: Option<Term>,
    /// How the program accesses it here.
    pub access: Access,
}

/// What it means to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// To look again and again.
    Loop,
    /// To take no step until there is nothing left to wait for.
    Step,
}

/// What can be wrong with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wrong {
    /// A null pointer, or one that points to no object at all.
    Pointer,
    /// An element that an array does not have.
    Bounds,
    /// A value that nobody wrote.
    Undefined,
    /// Something is given back that no allocation gave.
    Free,
    /// What the program itself calls wrong.
    Other,
}

impl Wrong {
    /// The label of a place where a thread ends because of this.
    pub fn label(self) -> &'static str {
        match self {
            Wrong::Pointer => "bad_pointer",
            Wrong::Bounds => "out_of_bounds",
            Wrong::Undefined => "undefined_value",
            Wrong::Free => "bad_free",
            Wrong::Other => "bad_access",
        }
    }
}

/// What is about to happen to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touching {
    /// It is accessed.
    Access,
    /// It is given back.
    Free,
}

/// Something to wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// A flag that stays once it is set, or a counter.
    pub cell: Cell,
    /// What is counted to; nothing for a flag, which must not be 0.
    pub count: Option<i64>,
}

/// A statement.
#[derive(Clone, Debug)]
pub struct Step {
    /// What it does.
    pub kind: StepKind,
    /// Where it comes from.
    pub span: Span,
}

/// Statements that do the same are equal, wherever they come from.
impl PartialEq for Step {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

/// What a statement does.
#[derive(Clone, Debug, PartialEq)]
pub enum StepKind {
    /// What one statement of C does.
    Steps(Vec<Step>),
    /// Statements in a row, among the steps of another.
    Block(Vec<Step>),
    /// A register gets a value.
    Assign(Register, Term),
    /// An element of an array of registers gets a value.
    Set(usize, Term, Term),
    /// A register gets any value of a range.
    Havoc(Register, i64, i64),
    /// A register gets what shared memory holds.
    Load(Register, Cell),
    /// Shared memory gets a value.
    Store(Cell, Term),
    /// One indivisible step with empty buffers.
    Atomic(Vec<Step>),
    /// One indivisible read-modify-write.
    Update {
        /// Where.
        cell: Cell,
        /// What was there.
        old: Register,
        /// When something is written.
        when: Option<Term>,
        /// What is written.
        new: Term,
    },
    /// Takes the global lock.
    Lock,
    /// Gives the global lock back.
    Unlock,
    /// Waits until the cell, in the register, satisfies the condition: a loop, or one step.
    Await(Register, Cell, Term, Waiting),
    /// Waits, in one step, until all of this has happened.
    AwaitAll(Vec<Awaited>),
    /// Nothing.
    Skip,
    /// A full fence.
    Fence,
    /// A store-store fence.
    StoreFence,
    /// Goes on only if this holds.
    Assume(Term),
    /// A violation of `assertions` unless this holds.
    Assert(Term, String),
    /// A violation of `memory` unless this holds.
    Check(Term, Wrong, Claims),
    /// The next access, or giving back, is of the object with this number of this class: nobody must have given it back.
    Touch(usize, Term, Touching),
    /// `if`.
    If(Term, Vec<Step>, Vec<Step>),
    /// One of these.
    Choose(Vec<Vec<Step>>),
    /// A loop without end.
    Loop(Vec<Step>),
    /// Leaves the innermost loop.
    Break,
    /// The next round of the innermost loop.
    Continue,
    /// A label.
    Label(Label),
    /// A jump.
    Goto(Label),
    /// The thread ends.
    Stop,
    /// If this holds, what happens from here on is not known, for a reason.
    Beyond(Term, String),
}

impl Term {
    /// A number, if it is one.
    pub fn number(&self) -> Option<i64> {
        match self {
            Term::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// `a op b`, computed if both are numbers and the result is one of 64 bits.
    pub fn binary(op: BinaryOp, a: Term, b: Term) -> Term {
        if let (Some(x), Some(y)) = (a.number(), b.number())
            && let Ok(result) = op.apply(x, y)
        {
            return Term::Number(result);
        }
        match (op, a.number(), b.number()) {
            (BinaryOp::Add | BinaryOp::Sub, _, Some(0)) | (BinaryOp::Mul | BinaryOp::Div, _, Some(1)) => a,
            (BinaryOp::Add, Some(0), _) | (BinaryOp::Mul, Some(1), _) => b,
            (BinaryOp::Ne, _, Some(0)) if a.is_truth() => a,
            (BinaryOp::And, Some(x), _) if x != 0 && b.is_truth() => b,
            (BinaryOp::And, _, Some(x)) if x != 0 && a.is_truth() => a,
            (BinaryOp::Or, Some(0), _) if b.is_truth() => b,
            (BinaryOp::Or, _, Some(0)) if a.is_truth() => a,
            (BinaryOp::And, Some(0), _) | (BinaryOp::And, _, Some(0)) => Term::Number(0),
            (BinaryOp::Or, Some(x), _) | (BinaryOp::Or, _, Some(x)) if x != 0 => Term::Number(1),
            (BinaryOp::Add, _, Some(y)) if y < 0 && y > i64::MIN => {
                Term::binary(BinaryOp::Sub, a, Term::Number(-y))
            }
            (BinaryOp::Add | BinaryOp::Sub, _, Some(y)) => Term::shifted(op, a, y),
            _ => Term::Binary(op, Box::new(a), Box::new(b)),
        }
    }

    /// `a + y` or `a - y`, put together with a number that `a` adds already.
    fn shifted(op: BinaryOp, a: Term, y: i64) -> Term {
        let signed = |op: BinaryOp, y: i64| if op == BinaryOp::Sub { y.checked_neg() } else { Some(y) };
        if let Term::Binary(inner @ (BinaryOp::Add | BinaryOp::Sub), left, right) = &a {
            let sum = right.number().and_then(|x| signed(*inner, x)?.checked_add(signed(op, y)?));
            if let Some(sum) = sum {
                return Term::binary(BinaryOp::Add, (**left).clone(), Term::Number(sum));
            }
        }
        Term::Binary(op, Box::new(a), Box::new(Term::Number(y)))
    }

    /// `op a`.
    pub fn unary(op: UnaryOp, a: Term) -> Term {
        if let Some(result) = a.number().and_then(|x| op.apply(x).ok()) {
            return Term::Number(result);
        }
        match (op, a) {
            (UnaryOp::Not, Term::Binary(compare, left, right)) if compare.is_comparison() => {
                Term::Binary(compare.negated(), left, right)
            }
            (UnaryOp::Not, Term::Unary(UnaryOp::Not, inner)) if inner.is_truth() => *inner,
            (UnaryOp::Not, Term::Binary(BinaryOp::And, left, right)) => {
                Term::unary(op, *left).or(Term::unary(op, *right))
            }
            (UnaryOp::Not, Term::Binary(BinaryOp::Or, left, right)) => {
                Term::unary(op, *left).and(Term::unary(op, *right))
            }
            (op, a) => Term::Unary(op, Box::new(a)),
        }
    }

    /// `condition ? a : b`.
    pub fn choice(condition: Term, a: Term, b: Term) -> Term {
        match condition.number() {
            Some(0) => b,
            Some(_) => a,
            None if a == b => a,
            None => Term::If(Box::new(condition), Box::new(a), Box::new(b)),
        }
    }

    /// `self + number`.
    pub fn plus(self, number: i64) -> Term {
        Term::binary(BinaryOp::Add, self, Term::Number(number))
    }

    /// `self * number`.
    pub fn times(self, number: i64) -> Term {
        Term::binary(BinaryOp::Mul, self, Term::Number(number))
    }

    /// `self op number`.
    pub fn with(self, op: BinaryOp, number: i64) -> Term {
        Term::binary(op, self, Term::Number(number))
    }

    /// `self && other`.
    pub fn and(self, other: Term) -> Term {
        Term::binary(BinaryOp::And, self, other)
    }

    /// `self || other`.
    pub fn or(self, other: Term) -> Term {
        Term::binary(BinaryOp::Or, self, other)
    }

    /// Whether it is from `low` to `high`.
    pub fn within(self, low: i64, high: i64) -> Term {
        if low == high {
            return self.with(BinaryOp::Eq, low);
        }
        self.clone().with(BinaryOp::Ge, low).and(self.with(BinaryOp::Le, high))
    }

    /// Whether it can only be 0 or 1.
    pub fn is_truth(&self) -> bool {
        match self {
            Term::Number(number) => matches!(number, 0 | 1),
            Term::Unary(op, _) => *op == UnaryOp::Not,
            Term::Binary(op, ..) => op.is_comparison() || matches!(op, BinaryOp::And | BinaryOp::Or),
            Term::If(_, a, b) => a.is_truth() && b.is_truth(),
            Term::Register(_) | Term::Element(..) => false,
        }
    }

    /// Calls back for every register in it.
    pub fn registers(&self, found: &mut impl FnMut(Register)) {
        match self {
            Term::Number(_) => {}
            Term::Register(register) => found(*register),
            Term::Element(_, a) | Term::Unary(_, a) => a.registers(found),
            Term::Binary(_, a, b) => {
                a.registers(found);
                b.registers(found);
            }
            Term::If(a, b, c) => {
                a.registers(found);
                b.registers(found);
                c.registers(found);
            }
        }
    }

    /// Calls back for every array of registers in it.
    pub fn arrays(&self, found: &mut impl FnMut(usize)) {
        match self {
            Term::Number(_) | Term::Register(_) => {}
            Term::Element(array, index) => {
                found(*array);
                index.arrays(found);
            }
            Term::Unary(_, a) => a.arrays(found),
            Term::Binary(_, a, b) => {
                a.arrays(found);
                b.arrays(found);
            }
            Term::If(a, b, c) => {
                a.arrays(found);
                b.arrays(found);
                c.arrays(found);
            }
        }
    }

    /// Whether an element of an array of registers is in it.
    pub fn has_element(&self) -> bool {
        let mut has = false;
        self.arrays(&mut |_| has = true);
        has
    }

    /// How often the register is in it.
    pub fn count(&self, register: Register) -> usize {
        let mut count = 0;
        self.registers(&mut |found| count += usize::from(found == register));
        count
    }

    /// Whether the register is needed to compute it, whatever the values of others are.
    pub fn is_strict_in(&self, register: Register) -> bool {
        match self {
            Term::Number(_) => false,
            Term::Register(found) => *found == register,
            Term::Element(_, a) | Term::Unary(_, a) => a.is_strict_in(register),
            Term::Binary(BinaryOp::And | BinaryOp::Or, a, _) | Term::If(a, ..) => a.is_strict_in(register),
            Term::Binary(_, a, b) => a.is_strict_in(register) || b.is_strict_in(register),
        }
    }

    /// Whether the register is in it.
    pub fn has(&self, register: Register) -> bool {
        let mut has = false;
        self.registers(&mut |found| has |= found == register);
        has
    }

    /// The same with something else for each register.
    pub fn replaced(&self, by: &impl Fn(Register) -> Term) -> Term {
        match self {
            Term::Number(number) => Term::Number(*number),
            Term::Register(register) => by(*register),
            Term::Element(array, a) => Term::Element(*array, Box::new(a.replaced(by))),
            Term::Unary(op, a) => Term::unary(*op, a.replaced(by)),
            Term::Binary(op, a, b) => Term::binary(*op, a.replaced(by), b.replaced(by)),
            Term::If(a, b, c) => Term::choice(a.replaced(by), b.replaced(by), c.replaced(by)),
        }
    }
}

impl StepKind {
    /// The register that it writes.
    pub fn writes(&self) -> Option<Register> {
        match self {
            StepKind::Assign(register, _)
            | StepKind::Havoc(register, ..)
            | StepKind::Load(register, _)
            | StepKind::Update { old: register, .. }
            | StepKind::Await(register, ..) => Some(*register),
            _ => None,
        }
    }

    /// The blocks in it.
    pub fn blocks(&self) -> Vec<&Vec<Step>> {
        match self {
            StepKind::Steps(block)
            | StepKind::Block(block)
            | StepKind::Atomic(block)
            | StepKind::Loop(block) => {
                vec![block]
            }
            StepKind::If(_, then, otherwise) => vec![then, otherwise],
            StepKind::Choose(ways) => ways.iter().collect(),
            _ => Vec::new(),
        }
    }

    /// The blocks in it.
    pub fn blocks_mut(&mut self) -> Vec<&mut Vec<Step>> {
        match self {
            StepKind::Steps(block)
            | StepKind::Block(block)
            | StepKind::Atomic(block)
            | StepKind::Loop(block) => {
                vec![block]
            }
            StepKind::If(_, then, otherwise) => vec![then, otherwise],
            StepKind::Choose(ways) => ways.iter_mut().collect(),
            _ => Vec::new(),
        }
    }

    /// The terms that stand directly in it.
    pub fn terms(&self) -> Vec<&Term> {
        match self {
            StepKind::Assign(_, term)
            | StepKind::Assume(term)
            | StepKind::Assert(term, _)
            | StepKind::Check(term, ..)
            | StepKind::Touch(_, term, _)
            | StepKind::Beyond(term, _)
            | StepKind::If(term, ..) => vec![term],
            StepKind::Set(_, index, value) => vec![index, value],
            StepKind::Load(_, cell) => cell.index.iter().collect(),
            StepKind::Store(cell, value) => cell.index.iter().chain([value]).collect(),
            StepKind::Update { cell, when, new, .. } => cell.index.iter().chain(when).chain([new]).collect(),
            StepKind::Await(_, cell, condition, _) => cell.index.iter().chain([condition]).collect(),
            StepKind::AwaitAll(all) => all.iter().flat_map(|awaited| &awaited.cell.index).collect(),
            _ => Vec::new(),
        }
    }

    /// The terms that stand directly in it, those of claims included.
    pub fn terms_mut(&mut self) -> Vec<&mut Term> {
        match self {
            StepKind::Assign(_, term)
            | StepKind::Assume(term)
            | StepKind::Assert(term, _)
            | StepKind::Touch(_, term, _)
            | StepKind::Beyond(term, _)
            | StepKind::If(term, ..) => vec![term],
            StepKind::Check(term, _, claims) => [term].into_iter().chain(claims.terms_mut()).collect(),
            StepKind::Set(_, index, value) => vec![index, value],
            StepKind::Load(_, cell) => cell.index.iter_mut().collect(),
            StepKind::Store(cell, value) => cell.index.iter_mut().chain([value]).collect(),
            StepKind::Update { cell, when, new, .. } => {
                cell.index.iter_mut().chain(when).chain([new]).collect()
            }
            StepKind::Await(_, cell, condition, _) => cell.index.iter_mut().chain([condition]).collect(),
            StepKind::AwaitAll(all) => all.iter_mut().flat_map(|awaited| &mut awaited.cell.index).collect(),
            _ => Vec::new(),
        }
    }
}

/// Calls `visit` for every step, those in blocks behind the one that they are blocks of, until it is time to stop.
pub fn each_step<'a>(code: &'a [Step], stop: &Stop<'_>, visit: &mut dyn FnMut(&'a Step)) {
    for step in stop.polled(code) {
        visit(step);
        step.kind.blocks().into_iter().for_each(|block| each_step(block, stop, visit));
    }
}

/// A whole program.
pub struct Program {
    /// Its threads.
    pub threads: Vec<Thread>,
}

/// A thread.
pub struct Thread {
    /// What to call it.
    pub name: String,
    /// Its registers: those of core code first, with their numbers.
    pub registers: Vec<RegisterInfo>,
    /// Its arrays of registers.
    pub arrays: Vec<Array>,
    /// What it does.
    pub code: Vec<Step>,
    /// Where it is created.
    pub span: Span,
}

/// A register.
pub struct RegisterInfo {
    /// What to call it.
    pub name: String,
    /// What it holds at first.
    pub init: i64,
}

/// An array of registers.
pub struct Array {
    /// What to call it.
    pub name: String,
    /// Its first index.
    pub first: i64,
    /// What its elements hold at first.
    pub init: Vec<i64>,
    /// The class whose objects it marks as given back, if that is what it is for.
    pub marks: Option<(usize, Mark)>,
}

/// What an element of an array of registers says about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mark {
    /// 1: this thread has given it back, for itself to allocate again.
    Freed,
    /// Whether this thread has given it to others, or taken it from them, an odd number of times. An object is free if that is so for an odd number of threads.
    Passed,
}
