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

pub use addresses::{HIGHEST_ADDRESS, LOWEST_ADDRESS, Points, Strangers, function_number};
pub use known::{known, way};
pub use walk::each_statement;

/// A set of places of the same kind, which a pointer may point to: up to unification one of the classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// An object in memory, by its number in [`Core::objects`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(pub u32);

/// A register of a thread, by its number in [`Thread::registers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Register(pub u32);

/// A label of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label(pub u32);

impl Label {
    /// Where the process has ended: the thread goes round and round there, so that nobody is said to wait for ever.
    pub const EXIT: Label = Label(u32::MAX);
}

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
    /// Where it is declared or allocated.
    pub span: Span,
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
}

/// A statement.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// What it does.
    pub kind: StmtKind,
    /// The text it comes from, with the call that led there.
    pub span: Span,
}

/// What a statement does.
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// What one statement of C does: a fence can stand before and behind it, and in the blocks inside.
    Steps(Vec<Stmt>),
    /// Statements in a row, among the steps of another: the body of a function where it is called, what stands in `({ ... })`. A fence can stand between them.
    Block(Vec<Stmt>),
    /// A register gets a value.
    Assign(Register, Value),
    /// A register gets any value of a range, both ends included.
    Havoc(Register, i64, i64),
    /// A register gets an undefined value: the local variable that it is comes into being again.
    Undefined(Register),
    /// A local variable in memory comes into being, maybe again: what it holds is not defined.
    Begin(ObjectId),
    /// The address of a local variable is taken: from here on there are pointers to the one that is there now, not only to one that is gone.
    Take(ObjectId),
    /// A local variable in memory is gone: its block or function is left.
    End(ObjectId),
    /// What comes next accesses a local variable, or part of it, by way of a pointer: a violation of `memory` if the variable is gone.
    Follow(ObjectId),
    /// The library uses what is at this place, which has to be there; what it does with it is no access in this model.
    Reach(Location),
    /// A register gets what a scalar place holds.
    Load(Register, Location, Access),
    /// A scalar place gets a value, by way of the store buffer.
    Store(Location, Value, Access),
    /// One indivisible step with empty buffers: assignments, loads, stores, assumptions and assertions only.
    Atomic(Vec<Stmt>),
    /// One indivisible read-modify-write: `old` gets what is there; if the condition (about `old`) holds, the new value (about `old`) is written.
    Update {
        /// The place.
        place: Location,
        /// What was there.
        old: Register,
        /// When something is written; always if there is none.
        when: Option<Value>,
        /// What is written.
        new: Value,
        /// How the program says it.
        access: Access,
    },
    /// Takes the one global lock, with empty buffers: until it is given back, nobody else loads, flushes or takes it.
    Lock,
    /// Gives the global lock back, with empty buffers.
    Unlock,
    /// Waits until what a place holds, in the register, satisfies the condition: a loop that does nothing else.
    Await(Register, Location, Value, Access),
    /// A full fence.
    Fence,
    /// A store-store fence.
    StoreFence,
    /// Goes on only if this holds; otherwise this execution does not count.
    Assume(Value),
    /// A violation of `assertions`, with these words, unless this holds.
    Assert(Value, String),
    /// A violation of `memory`, with these words, unless this holds.
    Check(Value, String),
    /// `if`.
    If(Value, Vec<Stmt>, Vec<Stmt>),
    /// A loop without end.
    Loop(Vec<Stmt>),
    /// Leaves the innermost loop.
    Break,
    /// Goes on with the next round of the innermost loop.
    Continue,
    /// A label.
    Label(Label),
    /// A jump.
    Goto(Label),
    /// The thread ends.
    Stop,
    /// The register points to a new instance of this object, which is an allocation.
    Allocate(Register, ObjectId),
    /// What the pointer points to is given back; nothing if it is null.
    Free(Value, NodeId),
    /// Here ends what is modelled: what happens behind it is not known, for this reason.
    Beyond(String),
}

/// How the program accesses memory: for messages about races.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// An ordinary variable: the compiler may move it.
    Plain,
    /// `volatile`, `READ_ONCE`, `WRITE_ONCE`.
    Volatile,
    /// An atomic operation.
    Atomic,
    /// Made by the translation: flags of threads, locks.
    Own,
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
