//! Data for reports: facts that the front end knows about the program and that the syntax tree does not contain. No verdict depends on them.
//!
//! Threads, labels, variables and registers have the names of the syntax tree. A *place* is a memory cell of the source program. The translation
//! divides places into *kinds* and numbers the places of each kind; a pointer holds such a number.

use std::collections::BTreeMap;
use std::fmt;

use fencewright_fw::ast::{Expr, ExprKind, Place};
use fencewright_program::{Program, Span, State, ThreadId};

/// All facts of a front end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// The memory objects of a program in a language with objects and pointers.
    pub memory: Memory,
    /// The number that represents an uninitialised value, if there is one.
    pub undefined: Option<i64>,
    /// The arrays that the program reads where it leaves the modelled part of the language, each with the reason for the verdict `unknown`. They are
    /// declared `open`, and are read outside their indices, which makes the verdict `unknown` instead of `unsafe`.
    pub ends: BTreeMap<String, String>,
    /// The labels at which threads stay after the end of the process: pairs of a thread and its label.
    pub exits: Vec<(String, String)>,
    /// The threads, each with its function and its creator.
    pub threads: Vec<Start>,
    /// The registers, by thread and name. An array of registers has one entry.
    pub registers: BTreeMap<(String, String), Register>,
    /// Whether the translation made all labels of the syntax tree, so that none is in the source text.
    pub own_labels: bool,
    /// The source expressions that reports show as one step although the syntax tree splits them, ordered by position.
    pub steps: Vec<Whole>,
    /// Whether the translation may contain tests for late stores, which a program that is not checked under PSO does not need
    /// ([`COptions::in_order`](crate::COptions::in_order)).
    pub late_stores: bool,
    /// The assumptions about functions that the user has made with options. All answers rely on them.
    pub assumed: Vec<Assumption>,
}

/// An assumption about a function of the program that its text does not justify.
#[derive(Clone, Debug, PartialEq)]
pub struct Assumption {
    /// The name of the function.
    pub function: String,
    /// The meaning that its calls are given.
    pub what: Assumed,
    /// The first call that is reached.
    pub span: Span,
}

/// The meaning given to the calls of a function without regard to its body: `--havoc`, `--skip` or `--stub`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assumed {
    /// Its calls return any value of its type and write nothing.
    Anything,
    /// Its calls do nothing and return zero.
    Nothing,
    /// It does what its definition in this file does; the user has added the file to the program.
    Stub(String),
}

impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.function;
        match &self.what {
            Assumed::Anything => {
                write!(f, "every call of `{name}` returns any value and writes nothing (--havoc)")
            }
            Assumed::Nothing => write!(f, "every call of `{name}` does nothing and returns zero (--skip)"),
            Assumed::Stub(file) => write!(f, "`{name}` does what `{file}` says (--stub)"),
        }
    }
}

/// A source expression that reports show as one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole {
    /// The position of the expression.
    pub span: Span,
    /// Whether the source branches on the value of the expression or inside the expression. If not, all branches in it come from the translation.
    pub decides: bool,
}

/// The creation of a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// The name of the thread in the syntax tree.
    pub thread: String,
    /// The function that the thread executes.
    pub function: String,
    /// The thread that creates this thread; `None` for the first thread.
    pub creator: Option<String>,
    /// Whether the thread runs from the initial state, because its creator takes no visible step before creating it.
    pub initial: bool,
    /// The call that creates the thread.
    pub span: Span,
}

/// The meaning of a register for reports.
#[derive(Clone, Debug, PartialEq)]
pub struct Register {
    /// The entity that the register represents.
    pub holds: Holds,
    /// The interpretation of the register's values.
    pub kind: Kind,
}

/// The entity that a register represents.
#[derive(Clone, Debug, PartialEq)]
pub enum Holds {
    /// A variable of the source program.
    Variable(String),
    /// Memory that only this thread accesses: the place with this kind and number. For an array of registers, the number is the index in the array.
    Place(usize, i64),
    /// A mark that this thread has freed the object at the place with this kind and number. For an array of registers, the number is the index in the
    /// array.
    Mark(usize, i64),
    /// A temporary of the translation.
    Temporary,
}

/// The interpretation of the values of a variable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Plain numbers.
    #[default]
    Number,
    /// Pointers: 0 is the null pointer, a key of [`Memory::functions`] is a function, and the number of a place of this kind times this factor is
    /// that place.
    Pointer(usize, i64),
    /// The holder of a lock: 0 if the lock is free, otherwise the position in [`Facts::threads`], from 1, of the thread that holds it.
    Holder,
}

/// The purpose of a variable that the translation added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// Records whether these threads start: 1 if they were created, 2 if they never will be.
    Start(Vec<String>),
    /// Records whether this thread has ended: 1 if so.
    End(String),
    /// Any other purpose.
    Other,
}

/// The objects of a program, and the checks on accesses to them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// All objects that have an address.
    pub objects: Vec<Object>,
    /// For each kind, the parts of objects that pointer values of this kind denote.
    pub places: BTreeMap<usize, Places>,
    /// For each shared variable, the kind of the places that its cells represent.
    pub variables: BTreeMap<String, usize>,
    /// The interpretation of the values in places of a kind; plain numbers for kinds without an entry.
    pub contents: BTreeMap<usize, Kind>,
    /// The purposes of places that the translation added, by kind and number.
    pub roles: BTreeMap<(usize, i64), Role>,
    /// The functions that pointer values denote.
    pub functions: BTreeMap<i64, String>,
    /// The labels that threads reach when they make a memory error.
    pub mistakes: Vec<Mistake>,
    /// For each kind, pairs of a thread and the name of its array of registers that has a 1 for each object freed by the thread.
    pub freed: BTreeMap<usize, Vec<(String, String)>>,
    /// For each kind, pairs of a thread and the name of one of its arrays of registers. For each object, the array records the parity of the number
    /// of transfers of the object by the thread. A transfer is a `free` that lets other threads allocate the object, or an allocation that returns
    /// the object after such a `free`. The object is free if the parities of all threads sum to an odd number.
    pub passed: BTreeMap<usize, Vec<(String, String)>>,
}

/// An object in memory: a variable, or the result of an allocation.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// The name in the source; `None` for an allocation.
    pub name: Option<String>,
    /// The word for the object in reports: its name, or the tag of the allocated structure type.
    pub noun: String,
    /// A number, from 1, that distinguishes objects with the same noun; for an allocation in a loop, the number of the first object. `None` if the
    /// noun is unique.
    pub number: Option<u64>,
    /// The thread that owns the object, if other threads have objects with the same noun.
    pub owner: Option<String>,
    /// The type; for an allocation, the type of one element.
    pub ty: String,
    /// The text of a string literal; `None` for other objects.
    pub literal: Option<String>,
    /// The storage duration.
    pub storage: Storage,
    /// The number of objects that this entry represents; more than one only for an allocation in a loop.
    pub times: u64,
    /// The declaration or the allocation.
    pub span: Span,
}

/// The storage duration of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// The whole execution.
    Static,
    /// Until its block or thread ends.
    Local,
    /// Until it is freed.
    Heap,
}

/// The places that consecutive pointer values denote.
#[derive(Clone, Debug, PartialEq)]
pub struct Places {
    /// The first of these values.
    pub first: i64,
    /// The place of each value from `first` on; `None` for a value without a place, such as one past the end of an array.
    pub parts: Vec<Option<Part>>,
    /// The path from the object to each place as the source writes it: `.next`, `[2]`, empty for the object itself.
    pub paths: Vec<String>,
}

/// A place as a part of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The index of the object in [`Memory::objects`].
    pub object: usize,
    /// If the object stands for several allocations of a loop, the number of the allocation that the place belongs to, from 0.
    pub time: u64,
    /// The mark that records whether the object is freed: the kind of the object, and its index in the arrays of [`Memory::freed`] and
    /// [`Memory::passed`].
    pub mark: (usize, i64),
}

/// A label that a thread reaches when it makes a memory error, or is about to make one.
#[derive(Clone, Debug, PartialEq)]
pub struct Mistake {
    /// The name of the thread in the syntax tree.
    pub thread: String,
    /// The name of the label.
    pub label: String,
    /// The source text that makes the error.
    pub span: Span,
    /// The conditions that must hold for the text to be free of errors; the first violated one is reported.
    pub claims: Vec<Claim>,
}

/// A condition on the registers of the thread, and its meaning for the error message.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// The condition; `None` if it cannot be evaluated any more when the thread has reached the label.
    pub holds: Option<Expr>,
    /// The kind of error if the condition is violated.
    pub about: About,
    /// The place that is accessed, as its kind and number, if known.
    pub place: Option<(usize, Expr)>,
}

/// The kind of error that a violated condition stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum About {
    /// A dereferenced pointer points to no object.
    Pointer,
    /// An index is outside an array.
    Element {
        /// The index that is out of bounds, if it is known as an expression.
        index: Option<Expr>,
        /// The length of the array.
        length: i64,
    },
    /// A pointer is moved out of its array.
    Moved,
    /// A value is used that was never written.
    Undefined {
        /// The name of the register that holds the value, if known.
        register: Option<String>,
    },
    /// The freed pointer is not the start of an allocation.
    Free,
    /// The lifetime of the accessed object has ended, according to the mark of the object (`Memory::freed` and `Memory::passed`).
    Access,
    /// The object to be freed has been freed already, according to its mark.
    FreeAgain,
    /// An error with this message.
    Said(String),
}

/// A memory error in a state.
#[derive(Clone, Copy, Debug)]
pub struct Made<'a> {
    /// The thread that makes the error.
    pub thread: ThreadId,
    /// The label that the thread has reached, with the conditions that may be violated there.
    pub mistake: &'a Mistake,
    /// The violated condition.
    pub claim: &'a Claim,
    /// The number of the accessed place; `None` if it is not known.
    pub number: Option<i64>,
    /// The part of an object at that place; `None` if there is no object.
    pub part: Option<Part>,
}

impl Memory {
    /// The first memory error that some thread has made in a state, or is about to make; `None` if there is none.
    pub fn mistake(&self, program: &Program, state: &State) -> Option<Made<'_>> {
        self.mistakes.iter().find_map(|mistake| {
            let thread = thread_named(program, &mistake.thread)?;
            let at = &program.thread(thread).locations[state.locations[thread.index()].index()];
            at.labels.contains(&mistake.label).then_some(())?;
            mistake.claims.iter().find_map(|claim| self.made(program, state, thread, mistake, claim))
        })
    }

    fn made<'a>(
        &self,
        program: &Program,
        state: &State,
        thread: ThreadId,
        mistake: &'a Mistake,
        claim: &'a Claim,
    ) -> Option<Made<'a>> {
        let number = claim.place.as_ref().and_then(|(_, number)| value(number, program, state));
        let part = claim.place.as_ref().zip(number).and_then(|((kind, _), number)| self.part(*kind, number));
        let holds = match (&claim.about, part) {
            (About::Access | About::FreeAgain, part) => {
                !part.is_some_and(|part| self.is_marked(program, state, part))
            }
            _ => {
                claim.holds.as_ref().and_then(|holds| value(holds, program, state)).is_some_and(|it| it != 0)
            }
        };
        (!holds).then_some(Made { thread, mistake, claim, number, part })
    }

    /// The path from an object to its place with this kind and number; `None` if the path is not recorded.
    pub fn path(&self, kind: usize, number: i64) -> Option<&str> {
        let places = self.places.get(&kind)?;
        let n = usize::try_from(number.checked_sub(places.first)?).ok()?;
        places.paths.get(n).map(String::as_str)
    }

    /// The part of an object at the place with this kind and number; `None` if there is no object.
    pub fn part(&self, kind: usize, number: i64) -> Option<Part> {
        let places = self.places.get(&kind)?;
        let n = usize::try_from(number.checked_sub(places.first)?).ok()?;
        places.parts.get(n).copied().flatten()
    }

    /// Whether the object that the part belongs to has been freed in this state.
    pub fn is_marked(&self, program: &Program, state: &State, part: Part) -> bool {
        let set = |arrays| {
            let marks = marks(arrays, part).filter(|(thread, mark)| {
                let thread = thread_named(program, thread);
                thread.and_then(|thread| register(mark, thread, program, state)) == Some(1)
            });
            marks.count()
        };
        set(&self.freed) > 0 || set(&self.passed) % 2 == 1
    }
}

fn marks(
    arrays: &BTreeMap<usize, Vec<(String, String)>>,
    part: Part,
) -> impl Iterator<Item = (&str, String)> {
    let (kind, number) = part.mark;
    let arrays = arrays.get(&kind).into_iter().flatten();
    arrays.map(move |(thread, array)| (thread.as_str(), format!("{array}[{number}]")))
}

/// The thread with this name, if there is one.
pub fn thread_named(program: &Program, name: &str) -> Option<ThreadId> {
    program.threads().find(|(_, thread)| thread.name == name).map(|(id, _)| id)
}

fn register(name: &str, thread: ThreadId, program: &Program, state: &State) -> Option<i64> {
    let n = program.thread(thread).registers.iter().position(|register| register.name == name)?;
    state.registers[thread.index()].get(n).copied()
}

/// The value of an expression over registers; `None` if the expression has no value.
pub fn value(expr: &Expr, program: &Program, state: &State) -> Option<i64> {
    let of = |expr: &Expr| value(expr, program, state);
    match &expr.kind {
        ExprKind::Int(number) => Some(*number),
        ExprKind::Register(thread, Place { name, index }) => {
            let thread = thread_named(program, &thread.name.text)?;
            match index {
                None => register(&name.text, thread, program, state),
                Some(index) => register(&format!("{}[{}]", name.text, of(index)?), thread, program, state)
                    .or_else(|| register(&name.text, thread, program, state)),
            }
        }
        ExprKind::Unary(op, a) => op.apply(of(a)?).ok(),
        ExprKind::Binary(op, a, b) => op.apply(of(a)?, of(b)?).ok(),
        ExprKind::If(condition, a, b) => of(if of(condition)? != 0 { a } else { b }),
        _ => None,
    }
}
