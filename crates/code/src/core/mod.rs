//! Core code: what a C program does, thread by thread, with calls inlined and every memory access a statement of its own.
//!
//! Elaboration writes it; layout decides which variable each [`Location`] is, and emission prints it as `.fw`. Pointers are still symbolic here: a [`Value`]
//! says which place is meant, and which [`NodeId`] a pointer points to, and numbers for them are chosen once all of the program is known.

mod addresses;
mod known;
mod walk;

use fencewright_c::arithmetic::Arithmetic;
use fencewright_c::ast::RecordId;
use fencewright_c::typed::tree::{Step, Type, TypeKind};
use fencewright_program::{BinaryOp, Call, Span, UnaryOp, Width};
use fencewright_text::Diagnostic;

use crate::statement::{self, Expression, Parts, Source, Special, Stage};
pub use crate::statement::{Access, Label, Register, each_statement};
pub use addresses::{HIGHEST_ADDRESS, LOWEST_ADDRESS, Points, Strangers, function_number};
pub use known::{known, way};
pub use walk::each_place;

/// A set of places of the same kind, which a pointer may point to: up to unification one of the classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// An object in memory, by its number in [`Core::objects`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(pub u32);

/// A thread by its number; `main` is 0. That number is also what `pthread_t` holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadNumber(pub u32);

/// A whole program.
#[derive(Debug, Default)]
pub struct Core {
    /// Everything that has an address.
    pub objects: Vec<Object>,
    /// The threads, `main` first.
    pub threads: Vec<Thread>,
    /// Pairs of objects whose addresses were found to be different while the program was translated.
    pub compared: Vec<(ObjectId, ObjectId)>,
    /// The names of the functions that pointers may point to, by their numbers.
    pub functions: Vec<String>,
    /// The calls that spans refer to.
    pub calls: Vec<Call>,
    /// What is odd but no error.
    pub warnings: Vec<Diagnostic>,
}

/// An object in memory.
#[derive(Debug)]
pub struct Object {
    /// What to call it: a name of C, made unique by whoever prints it.
    pub name: String,
    /// Its type; of an allocation that of one element, once it is known.
    pub ty: Option<Type>,
    /// The node of all of it; of an allocation that of one element.
    pub node: NodeId,
    /// Where it comes from.
    pub origin: Origin,
    /// The parts that start with something else than zero (or, where `undefined`, than an undefined value).
    pub initial: Vec<(Vec<Step>, Known)>,
    /// Whether parts that are not mentioned start with an undefined value: locals and `malloc`, unlike globals and `calloc`.
    pub undefined: bool,
    /// What it is for.
    pub purpose: Purpose,
    /// Where it is declared or allocated.
    pub span: Span,
}

/// What an object is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// The program has it.
    #[default]
    Program,
    /// It says whether this thread has ended.
    Ended(ThreadNumber),
    /// It says, by their numbers, which threads have ended.
    AllEnded,
    /// The translation needs it for something else.
    Translation,
}

/// Where an object comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It is there from the start and for ever.
    Global,
    /// A local variable or a thread-local one.
    Local(ThreadNumber),
    /// An allocation: how many elements one has, and at most how often it happens.
    Heap {
        /// Who allocates.
        thread: ThreadNumber,
        /// How many bytes one allocation has.
        bytes: u64,
        /// How often at most: once where no loop is around it.
        times: Times,
    },
}

/// How often an allocation can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// Once, and before anything is given back: `main` was executed beforehand.
    First,
    /// Once at most.
    Once,
    /// In a loop: up to the bound on allocations, which is counted.
    Counted,
}

/// A value that is known before the program runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    /// A number; 0 as a pointer is null.
    Number(i64),
    /// The address of a part of an object; of an allocation its first time, and which element.
    Address(ObjectId, Vec<Step>),
    /// A function, by its number, as a pointer.
    Function(u32),
    /// Nothing was ever written there.
    Undefined,
}

/// A thread.
#[derive(Debug)]
pub struct Thread {
    /// What to call it.
    pub name: String,
    /// Its registers.
    pub registers: Vec<RegisterInfo>,
    /// What it does.
    pub code: Vec<Stmt>,
    /// Where it is created; `main` for main.
    pub span: Span,
    /// Whether it is created when other threads may have ended.
    pub late: bool,
    /// The function that it executes.
    pub function: String,
    /// The thread that creates it; nothing for `main`.
    pub creator: Option<ThreadNumber>,
    /// The variable that says whether it was created, unless it runs from the start.
    pub started: Option<ObjectId>,
}

/// A register.
#[derive(Debug)]
pub struct RegisterInfo {
    /// What to call it: a name of C, made unique by whoever prints it.
    pub name: String,
    /// What it holds at first; `None` for an undefined value, if it may be read before anything was written to it.
    pub initial: Option<i64>,
    /// The node that it points to, if it holds a pointer or an integer as wide as one.
    pub points: Option<NodeId>,
    /// What it is for, for reports.
    pub about: About,
}

/// What a register is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Whether it is a variable of the program: all others hold values on their way.
    pub variable: bool,
    /// Whether it holds pointers.
    pub pointer: bool,
}

/// The stage of the translation in which objects have no numbers yet and pointers are symbolic.
#[derive(Clone, Debug, PartialEq)]
pub struct Symbolic;

impl Stage for Symbolic {
    type Value = Value;
    type Place = Location;
    type Waiting = ();
    type Violation = String;
    type Special = ObjectEvent;
}

/// A statement of symbolic code.
pub type Stmt = statement::Stmt<Symbolic>;
/// The effect of a statement of symbolic code.
pub type StmtKind = statement::StmtKind<Symbolic>;

/// Statements about objects, which symbolic code has besides those of every stage.
#[derive(Clone, Debug, PartialEq)]
pub enum ObjectEvent {
    /// A register gets an undefined value: the declaration of the local variable that it stands for is reached.
    Undefined(Register),
    /// The declaration of a local variable in memory is reached: its contents become undefined.
    Begin(ObjectId),
    /// The address of a local variable is taken: from here on there are pointers to its present instance, not only to an earlier one.
    Take(ObjectId),
    /// The lifetime of a local variable in memory ends: its block or function is left.
    End(ObjectId),
    /// The next statement accesses a local variable, or part of it, through a pointer: a violation of `memory` if its lifetime has ended.
    Follow(ObjectId),
    /// A library function uses the object at this place, which has to exist; its accesses are not modelled.
    Reach(Location),
    /// The register points to a new instance of this object, which is an allocation.
    Allocate(Register, ObjectId),
    /// `free` of the object that the pointer points to; without effect if the pointer is null.
    Free(Value, NodeId),
}

impl Special<Symbolic> for ObjectEvent {
    fn writes(&self) -> Option<Register> {
        match self {
            ObjectEvent::Undefined(register) | ObjectEvent::Allocate(register, _) => Some(*register),
            _ => None,
        }
    }

    fn writes_mut(&mut self) -> Option<&mut Register> {
        match self {
            ObjectEvent::Undefined(register) | ObjectEvent::Allocate(register, _) => Some(register),
            _ => None,
        }
    }

    fn writes_element(&self) -> Option<(usize, &Value)> {
        None
    }
}

impl Parts<Value> for ObjectEvent {
    fn values<'a>(&'a self, visit: &mut dyn FnMut(&'a Value)) {
        match self {
            ObjectEvent::Reach(place) => place.values(visit),
            ObjectEvent::Free(value, _) => visit(value),
            _ => {}
        }
    }

    fn values_mut(&mut self, visit: &mut dyn FnMut(&mut Value)) {
        match self {
            ObjectEvent::Reach(place) => place.values_mut(visit),
            ObjectEvent::Free(value, _) => visit(value),
            _ => {}
        }
    }
}

impl Expression for Value {
    fn number(&self) -> Option<i64> {
        match self {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    fn sources(&self, visit: &mut dyn FnMut(Source<'_, Value>)) {
        self.registers(&mut |register| visit(Source::Register(register)));
    }
}

/// A place in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// Where the way starts.
    pub base: Base,
    /// The way from there.
    pub path: Vec<Projection>,
    /// What is there.
    pub node: NodeId,
    /// As what its bits are seen.
    pub view: View,
}

/// As what the bits of a scalar are seen: memory that is used as several types of one size is converted when it is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// As they are: 64 bits, a pointer, or something larger.
    #[default]
    Whole,
    /// As `_Bool`.
    Truth,
    /// As an integer with a sign.
    Signed(Width),
    /// As one without.
    Unsigned(Width),
}

impl View {
    /// How values of a type are seen.
    pub fn of(ty: &Type) -> Self {
        match &ty.kind {
            TypeKind::Integer(Arithmetic::Bool) => View::Truth,
            TypeKind::Integer(Arithmetic::Integer(integer)) => {
                let width = match integer.bits() {
                    8 => Width::Bits8,
                    16 => Width::Bits16,
                    32 => Width::Bits32,
                    _ => return View::Whole,
                };
                if integer.signed { View::Signed(width) } else { View::Unsigned(width) }
            }
            _ => View::Whole,
        }
    }

    /// What somebody sees who finds a number that was written as something else.
    pub fn seen(self, value: Value) -> Value {
        match self {
            View::Whole => value,
            View::Truth => Value::binary(BinaryOp::Ne, value, Value::Number(0)),
            View::Signed(width) => Value::unary(UnaryOp::Signed(width), value),
            View::Unsigned(width) => Value::unary(UnaryOp::Unsigned(width), value),
        }
    }
}

/// Where the way to a place starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Base {
    /// At an object that is known; an allocation that happens once and has happened.
    Object(ObjectId),
    /// Where a pointer points, and the node of that.
    Pointed(Box<Value>, NodeId),
}

/// From a place to a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Projection {
    /// A member of a structure.
    Field(u32),
    /// An element of an array with so many elements.
    Element(Value, u64),
}

/// A value: no access to memory, no effect, nothing that can go wrong (checks are statements before).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number.
    Number(i64),
    /// A register.
    Register(Register),
    /// An operation.
    Unary(UnaryOp, Box<Value>),
    /// An operation.
    Binary(BinaryOp, Box<Value>, Box<Value>),
    /// One of two.
    If(Box<Value>, Box<Value>, Box<Value>),
    /// The address of a place.
    Address(Box<Location>),
    /// A pointer into the node, moved by a number of elements.
    Move(Box<Value>, Box<Value>, NodeId),
    /// The distance between two pointers into one array of the node, in elements.
    Difference(Box<Value>, Box<Value>, NodeId),
    /// The address of the structure of this node whose member, at the end of the way, the pointer points to.
    Container {
        /// The pointer to the member.
        member: Box<Value>,
        /// The node of the structure.
        node: NodeId,
        /// The structure.
        record: RecordId,
        /// The way from the structure to the member.
        path: Vec<Step>,
    },
    /// A function as a pointer.
    Function(u32),
}
