//! Flat code: core code in which addresses are numbers, and places are cells of variables.
//!
//! `resolve` produces it from symbolic code, `intervals` removes checks that cannot fail, `tidy` removes dead registers, and `emit` prints it as
//! `.fw`.

pub(crate) mod checks;
pub(crate) mod claims;
pub(crate) mod counters;
pub(crate) mod failures;
pub(crate) mod intervals;
pub(crate) mod joins;
mod ranges;
pub(crate) mod sharing;
pub(crate) mod tidy;
pub(crate) mod undefining;

use fencewright_front_end::facts::{Holds, Kind};
use fencewright_program::{BinaryOp, Span, UnaryOp};

use crate::flat::claims::Claims;
use crate::statement::{Expression, Parts, Register, Source, Special, Stage, Stmt, StmtKind};

/// The undefined value: a number far from all addresses and from the numbers that programs compute with.
pub const UNDEFINED: i64 = -0x5EAD_BEEF_0000;

/// A value in which pointers are numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Term {
    /// A number.
    Number(i64),
    /// The value of a register.
    Register(Register),
    /// An element of an array of registers ([`Array`]) at this index.
    Element(usize, Box<Term>),
    /// A unary operation.
    Unary(UnaryOp, Box<Term>),
    /// A binary operation.
    Binary(BinaryOp, Box<Term>, Box<Term>),
    /// A conditional value: condition, value if it holds, value if not.
    If(Box<Term>, Box<Term>, Box<Term>),
}

/// A cell of shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The class, by its number in the layout: its index in `Layout::classes` (`layout/classes.rs`).
    pub class: usize,
    /// The number of the cell; `None` if the class has only one cell.
    pub index: Option<Term>,
}

/// How a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// In a loop that reads again and again.
    Loop,
    /// In one step, which is disabled until the condition holds.
    Step,
}

/// The kinds of memory errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wrong {
    /// A null pointer, or one that does not point to an object.
    Pointer,
    /// An index out of bounds.
    Bounds,
    /// An undefined value is used.
    Undefined,
    /// `free` of something other than the start of an allocation.
    Free,
    /// Another memory fault, such as a call through a pointer to no function.
    Other,
}

impl Wrong {
    /// The base name of the labels at which threads end because of an error of this kind.
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

/// The kind of operation on an object that has to exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touching {
    /// An access to the object.
    Access,
    /// `free` of the object.
    Free,
}

/// An event that a thread awaits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// A flag that stays set, or a counter.
    pub cell: Cell,
    /// The awaited value of a counter; `None` for a flag, which must become nonzero.
    pub count: Option<i64>,
}

/// The stage of the translation in which pointers are numbers and places are cells of variables.
#[derive(Clone, Debug, PartialEq)]
pub struct Flat;

impl Stage for Flat {
    type Value = Term;
    type Place = Cell;
    type Waiting = Waiting;
    type Violation = Violation;
    type Special = CellEvent;
}

/// A statement of flat code.
pub type Step = Stmt<Flat>;
/// The effect of a statement of flat code.
pub type StepKind = StmtKind<Flat>;

/// The violation of the property `memory` that a failed check reports.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// The kind of mistake.
    pub wrong: Wrong,
    /// Explanations for reports.
    pub claims: Claims,
}

/// The statements that only this stage has.
#[derive(Clone, Debug, PartialEq)]
pub enum CellEvent {
    /// An element of an array of registers gets a value: array, index, value.
    Set(usize, Term, Term),
    /// Waits, in one step, until all these events have happened.
    AwaitAll(Vec<Awaited>),
    /// No effect.
    Skip,
    /// Announces that the next step accesses or frees the place with this number in this class; the memory of that place must not have been freed.
    Touch(usize, Term, Touching),
}

impl Special<Flat> for CellEvent {
    fn writes(&self) -> Option<Register> {
        None
    }

    fn writes_mut(&mut self) -> Option<&mut Register> {
        None
    }

    fn writes_element(&self) -> Option<(usize, &Term)> {
        match self {
            CellEvent::Set(array, index, _) => Some((*array, index)),
            _ => None,
        }
    }
}

impl Parts<Term> for CellEvent {
    fn values<'a>(&'a self, visit: &mut dyn FnMut(&'a Term)) {
        match self {
            CellEvent::Set(_, index, value) => [index, value].into_iter().for_each(visit),
            CellEvent::AwaitAll(all) => all.iter().for_each(|awaited| awaited.cell.values(visit)),
            CellEvent::Skip => {}
            CellEvent::Touch(_, number, _) => visit(number),
        }
    }

    fn values_mut(&mut self, visit: &mut dyn FnMut(&mut Term)) {
        match self {
            CellEvent::Set(_, index, value) => [index, value].into_iter().for_each(visit),
            CellEvent::AwaitAll(all) => all.iter_mut().for_each(|awaited| awaited.cell.values_mut(visit)),
            CellEvent::Skip => {}
            CellEvent::Touch(_, number, _) => visit(number),
        }
    }
}

impl Parts<Term> for Cell {
    fn values<'a>(&'a self, visit: &mut dyn FnMut(&'a Term)) {
        self.index.iter().for_each(visit);
    }

    fn values_mut(&mut self, visit: &mut dyn FnMut(&mut Term)) {
        self.index.iter_mut().for_each(visit);
    }
}

impl Parts<Term> for Violation {
    /// Visits nothing: the claims only explain the violation to the user, and are not evaluated.
    fn values<'a>(&'a self, _: &mut dyn FnMut(&'a Term)) {}

    fn values_mut(&mut self, visit: &mut dyn FnMut(&mut Term)) {
        self.claims.terms_mut().for_each(visit);
    }
}

impl Expression for Term {
    fn number(&self) -> Option<i64> {
        Term::number(self)
    }

    fn sources(&self, visit: &mut dyn FnMut(Source<'_, Term>)) {
        match self {
            Term::Number(_) => {}
            Term::Register(register) => visit(Source::Register(*register)),
            Term::Element(array, index) => {
                visit(Source::Element(*array, index));
                index.sources(visit);
            }
            Term::Unary(_, a) => a.sources(visit),
            Term::Binary(_, a, b) => [a, b].into_iter().for_each(|part| part.sources(visit)),
            Term::If(a, b, c) => [a, b, c].into_iter().for_each(|part| part.sources(visit)),
        }
    }
}

impl Term {
    /// The number, if it is a constant.
    pub fn number(&self) -> Option<i64> {
        match self {
            Term::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// `a op b`, simplified; a constant if both operands are constants and the operation does not fail.
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

    /// `a + y` or `a - y`, combined with a constant that `a` already adds or subtracts.
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

    /// `op a`, simplified: constants are folded, and a negation is moved into a comparison, a conjunction or a disjunction.
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

    /// The condition that the term is in `low..=high`.
    pub fn within(self, low: i64, high: i64) -> Term {
        if low == high {
            return self.with(BinaryOp::Eq, low);
        }
        self.clone().with(BinaryOp::Ge, low).and(self.with(BinaryOp::Le, high))
    }

    /// Whether the form of the term shows that it is always 0 or 1.
    pub fn is_truth(&self) -> bool {
        match self {
            Term::Number(number) => matches!(number, 0 | 1),
            Term::Unary(op, _) => *op == UnaryOp::Not,
            Term::Binary(op, ..) => op.is_comparison() || matches!(op, BinaryOp::And | BinaryOp::Or),
            Term::If(_, a, b) => a.is_truth() && b.is_truth(),
            Term::Register(_) | Term::Element(..) => false,
        }
    }

    /// Calls `found` for every occurrence of a register.
    pub fn registers(&self, found: &mut impl FnMut(Register)) {
        self.sources(&mut |source| {
            if let Source::Register(register) = source {
                found(register);
            }
        });
    }

    /// Calls `found` for every occurrence of an array of registers.
    pub fn arrays(&self, found: &mut impl FnMut(usize)) {
        self.sources(&mut |source| {
            if let Source::Element(array, _) = source {
                found(array);
            }
        });
    }

    /// Whether the term contains an element of an array of registers.
    pub fn has_element(&self) -> bool {
        let mut has = false;
        self.arrays(&mut |_| has = true);
        has
    }

    /// Whether a formula of a property can express the term. A formula cannot index an array of registers with a register, and it divides and shifts
    /// by constants only.
    pub fn is_formula(&self) -> bool {
        match self {
            Term::Number(_) | Term::Register(_) => true,
            Term::Element(..) => false,
            Term::Unary(_, a) => a.is_formula(),
            Term::Binary(BinaryOp::Div | BinaryOp::Rem, a, b) => {
                a.is_formula() && b.number().is_some_and(|number| number != 0)
            }
            Term::Binary(BinaryOp::Shl | BinaryOp::Shr, a, b) => {
                a.is_formula() && b.number().is_some_and(|number| (0..64).contains(&number))
            }
            Term::Binary(_, a, b) => a.is_formula() && b.is_formula(),
            Term::If(condition, a, b) => condition.is_formula() && a.is_formula() && b.is_formula(),
        }
    }

    /// Number of occurrences of the register.
    pub fn count(&self, register: Register) -> usize {
        let mut count = 0;
        self.registers(&mut |found| count += usize::from(found == register));
        count
    }

    /// Returns true only if evaluating the term reads the register whatever the other registers hold.
    pub fn is_strict_in(&self, register: Register) -> bool {
        match self {
            Term::Number(_) => false,
            Term::Register(found) => *found == register,
            Term::Element(_, a) | Term::Unary(_, a) => a.is_strict_in(register),
            Term::Binary(BinaryOp::And | BinaryOp::Or, a, _) | Term::If(a, ..) => a.is_strict_in(register),
            Term::Binary(_, a, b) => a.is_strict_in(register) || b.is_strict_in(register),
        }
    }

    /// Whether the register occurs in the term.
    pub fn has(&self, register: Register) -> bool {
        let mut has = false;
        self.registers(&mut |found| has |= found == register);
        has
    }

    /// Substitutes a term for each register.
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

/// A whole program in flat code.
pub struct Program {
    /// The threads, with the same numbers as in core code.
    pub threads: Vec<Thread>,
}

/// A thread in flat code.
pub struct Thread {
    /// A name based on C; emission makes it unique.
    pub name: String,
    /// The registers: first those of symbolic code, with the same numbers.
    pub registers: Vec<RegisterInfo>,
    /// The arrays of registers, which represent memory private to the thread or mark freed objects.
    pub arrays: Vec<Array>,
    /// The statements, in which all calls are inlined.
    pub code: Vec<Step>,
    /// The call that creates the thread; for `main` the definition of the function.
    pub span: Span,
}

/// The declaration of a register.
pub struct RegisterInfo {
    /// A name based on C; emission makes it unique.
    pub name: String,
    /// The initial value; [`UNDEFINED`] if the register starts undefined.
    pub init: i64,
    /// The entity that the register represents, for reports.
    pub holds: Holds,
    /// The interpretation of the register's values, for reports.
    pub kind: Kind,
}

impl RegisterInfo {
    /// A register for a temporary value of the translation.
    pub fn temporary(name: impl Into<String>, init: i64) -> Self {
        RegisterInfo { name: name.into(), init, holds: Holds::Temporary, kind: Kind::Number }
    }
}

/// The declaration of an array of registers.
pub struct Array {
    /// A name based on C; emission makes it unique.
    pub name: String,
    /// The first index.
    pub first: i64,
    /// The initial values of the elements.
    pub init: Vec<i64>,
    /// The class whose places the array represents, if it represents private memory.
    pub class: Option<usize>,
    /// The interpretation of the elements' values, for reports.
    pub kind: Kind,
    /// The class whose freed objects the array marks and the meaning of a mark, if it has marks.
    pub marks: Option<(usize, Mark)>,
}

/// The meaning of an array of registers that marks freed objects of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mark {
    /// 1 if this thread has freed the object and keeps it for its own allocations, or if the lifetime of a local variable is over.
    Freed,
    /// The parity of the number of transfers of the object by this thread. A transfer is a `free` that lets other threads allocate the object, or an
    /// allocation that returns the object after such a `free`. The object is free if the parities of all threads sum to an odd number.
    Passed,
}
