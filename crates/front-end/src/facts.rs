//! Facts of a front end about the program it made that the syntax tree does not contain: data for reports. No verdict depends on them.
//!
//! Threads, labels, variables and registers have the names of the syntax tree.

use std::collections::BTreeMap;

use fencewright_fw::ast::{Expr, ExprKind, Place};
use fencewright_program::{Program, Span, State, ThreadId};

/// All facts of a front end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// The memory objects of a program in a language with objects and pointers.
    pub memory: Memory,
}

/// The objects of a program, and the checks on accesses to them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// All objects that have an address.
    pub objects: Vec<Object>,
    /// For each kind of place, the parts of objects that pointer values of this kind denote.
    pub places: BTreeMap<usize, Places>,
    /// For each shared variable, the kind of its places.
    pub variables: BTreeMap<String, usize>,
    /// The labels that threads reach when they make a memory error.
    pub mistakes: Vec<Mistake>,
    /// For each kind, the threads with an array of registers that is 1 for objects that the thread has freed, and the name of the array.
    pub freed: BTreeMap<usize, Vec<(String, String)>>,
    /// For each kind, the threads with an array of registers for the parity of how often the thread has passed an object to other threads or taken
    /// it, and the name of the array. The object is free if the parities of all threads sum to an odd number.
    pub passed: BTreeMap<usize, Vec<(String, String)>>,
}

/// An object in memory: a variable, or the result of an allocation.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// The name in the source; `None` for an allocation.
    pub name: Option<String>,
    /// The type; for an allocation, the type of one element.
    pub ty: String,
    /// The storage duration.
    pub storage: Storage,
    /// How many objects it stands for; more than one only for an allocation in a loop.
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
    /// The first value.
    pub first: i64,
    /// The place of each value from `first` on; `None` for a value without a place, such as one past the end of an array.
    pub parts: Vec<Option<Part>>,
}

/// A place, as a part of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The index of the object.
    pub object: usize,
    /// Which of the object's allocations it belongs to, counted from 0.
    pub time: u64,
    /// The mark that records whether the object is freed, as the kind of the object and its index there.
    pub mark: (usize, i64),
}

/// A label that a thread reaches when it makes a memory error, or is about to make one.
#[derive(Clone, Debug, PartialEq)]
pub struct Mistake {
    /// The name of the thread.
    pub thread: String,
    /// The name of the label.
    pub label: String,
    /// The source text that makes the error.
    pub span: Span,
    /// The conditions that may be violated; the first violated one is the error.
    pub claims: Vec<Claim>,
}

/// A condition on the registers of the thread, and its meaning for the error message.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// The condition; `None` if it cannot be evaluated once the thread has reached the label.
    pub holds: Option<Expr>,
    /// The kind of error that a violation is.
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
        /// The register that holds the value.
        register: Option<String>,
    },
    /// The freed pointer is not the start of an allocation.
    Free,
    /// The accessed object may be freed; the mark of the place decides.
    Access,
    /// The object that is freed may be freed already; the mark of the place decides.
    FreeAgain,
    /// The error has its own message.
    Said(String),
}

/// A memory error in a state.
#[derive(Clone, Copy, Debug)]
pub struct Made<'a> {
    /// The thread that makes it.
    pub thread: ThreadId,
    /// The label that the thread has reached, with the conditions that may be violated there.
    pub mistake: &'a Mistake,
    /// The violated condition.
    pub claim: &'a Claim,
    /// The number of the accessed place.
    pub number: Option<i64>,
    /// The part of an object at that place.
    pub part: Option<Part>,
}

impl Memory {
    /// The memory error that some thread has made in a state, or is about to make.
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

    /// The part of an object that a number of this kind denotes.
    pub fn part(&self, kind: usize, number: i64) -> Option<Part> {
        let places = self.places.get(&kind)?;
        let n = usize::try_from(number.checked_sub(places.first)?).ok()?;
        places.parts.get(n).copied().flatten()
    }

    /// Whether some thread has freed the object that a place belongs to.
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

/// The thread with this name.
pub fn thread_named(program: &Program, name: &str) -> Option<ThreadId> {
    program.threads().find(|(_, thread)| thread.name == name).map(|(id, _)| id)
}

fn register(name: &str, thread: ThreadId, program: &Program, state: &State) -> Option<i64> {
    let n = program.thread(thread).registers.iter().position(|register| register.name == name)?;
    state.registers[thread.index()].get(n).copied()
}

/// The value of an expression over registers; `None` if it has none.
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
