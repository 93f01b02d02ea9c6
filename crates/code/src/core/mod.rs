//! Core code, also called symbolic code: a C program thread by thread, with calls inlined and every memory access a statement of its own.
//!
//! Elaboration produces core code. Layout assigns a variable to each [`Location`] and translates core code to [flat](crate::flat) code, which
//! emission prints as `.fw`. Pointers are still symbolic here: a [`Value`] names the place whose address it is, and a [`NodeId`] says which set of
//! places a pointer may point to. Numbers for addresses are chosen once the whole program is known.

mod addresses;
mod known;
mod walk;

use fencewright_c::arithmetic::Arithmetic;
use fencewright_c::ast::RecordId;
use fencewright_c::typed::tree::{Step, Type, TypeKind};
use fencewright_front_end::facts::Assumption;
use fencewright_program::{BinaryOp, Call, Span, UnaryOp, Width};
use fencewright_text::Diagnostic;

use crate::ends::Ends;
use crate::statement::{self, Expression, Parts, Source, Special, Stage};
pub use crate::statement::{Access, Label, Register, each_statement};
pub use addresses::{HIGHEST_ADDRESS, LOWEST_ADDRESS, Points, Strangers, function_number};
pub use known::{known, way};
pub use walk::each_place;

/// A set of places (objects and parts of objects) of one shape, to which a pointer may point. After unification, equivalent nodes form the points-to
/// classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// An object in memory, as an index into [`Core::objects`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(pub u32);

/// A thread, as an index into [`Core::threads`]; `main` is 0. The same number is the value of its `pthread_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadNumber(pub u32);

/// A whole program in symbolic code.
#[derive(Debug, Default)]
pub struct Core {
    /// The objects in memory: everything that has an address.
    pub objects: Vec<Object>,
    /// The threads, `main` first.
    pub threads: Vec<Thread>,
    /// Pairs of objects whose addresses elaboration compared and found different. The comparisons have been folded to constants.
    pub compared: Vec<(ObjectId, ObjectId)>,
    /// The names of the functions that pointers may point to, by their numbers.
    pub functions: Vec<String>,
    /// The inlined calls to which spans refer.
    pub calls: Vec<Call>,
    /// The warnings of elaboration.
    pub warnings: Vec<Diagnostic>,
    /// Assumptions about functions that the user has made with options.
    pub assumed: Vec<Assumption>,
    /// The threads that have ended where memory is freed; a pass of the translation finds them.
    pub ends: Ends,
}

/// An object in memory.
#[derive(Debug)]
pub struct Object {
    /// A name based on C; emission makes it unique.
    pub name: String,
    /// The type; for an allocation the type of one element, or `None` if that is unknown.
    pub ty: Option<Type>,
    /// The node of the whole object; for an allocation the node of one element.
    pub node: NodeId,
    /// The storage: global, local or allocated.
    pub origin: Origin,
    /// The parts with an initial value other than the default, which is zero or, with `undefined`, the undefined value.
    pub initial: Vec<(Vec<Step>, Known)>,
    /// Whether parts without an entry in `initial` start undefined, as for locals and `malloc`, but not for globals and `calloc`.
    pub undefined: bool,
    /// Whether the object belongs to the source program or was added by the translation, and for which purpose.
    pub purpose: Purpose,
    /// Where the object is declared or allocated.
    pub span: Span,
}

/// The purpose of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// An object of the source program.
    #[default]
    Program,
    /// The flag that says whether this thread has ended.
    Ended(ThreadNumber),
    /// The array of flags, by thread number, that say which threads have ended.
    AllEnded,
    /// A string literal: no program may write it, and it may be part of another string literal.
    Literal,
    /// Memory of `alloca`: no program may free it.
    Stack,
    /// Any other object that the translation adds.
    Translation,
}

impl Purpose {
    /// Whether the object belongs to the source program.
    pub fn is_of_program(self) -> bool {
        matches!(self, Purpose::Program | Purpose::Literal | Purpose::Stack)
    }
}

/// The error of writing a string literal.
pub const LITERAL_WRITTEN: &str = "a string literal is written";

/// The storage of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Static storage: the object exists during the whole execution.
    Global,
    /// A local variable or a thread-local one.
    Local(ThreadNumber),
    /// An allocation site.
    Heap {
        /// The thread that allocates.
        thread: ThreadNumber,
        /// The size of one allocation in bytes.
        bytes: u64,
        /// Upper bound on the number of executions of this allocation.
        times: Times,
    },
}

/// How often an allocation site can be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// Exactly once, before any object is freed: elaboration executed this part of `main`.
    First,
    /// At most once.
    Once,
    /// In a loop: up to [`Options::heap`](crate::pipeline::Options::heap) times; a register counts the executions.
    Counted,
}

/// A constant, known at translation time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    /// A number; the pointer 0 is null.
    Number(i64),
    /// The address of a part of an object; for an allocation, of the object that it returns first. For an allocation, the first step of the path may
    /// select one of its elements.
    Address(ObjectId, Vec<Step>),
    /// A pointer to the function with this number.
    Function(u32),
    /// The undefined value of uninitialised memory.
    Undefined,
}

/// A thread in core code: the code of its function with all calls inlined.
#[derive(Debug)]
pub struct Thread {
    /// The name of its function, with a number if several threads run that function.
    pub name: String,
    /// The registers of the thread; a `Register` is an index into this list.
    pub registers: Vec<RegisterInfo>,
    /// The statements, in which all calls are inlined.
    pub code: Vec<Stmt>,
    /// The call that creates the thread; for `main` the definition of the function.
    pub span: Span,
    /// Whether the thread may be created after another thread has ended, so that its stack may reuse the memory of the ended thread.
    pub late: bool,
    /// The function that the thread executes.
    pub function: String,
    /// The thread that creates this thread; `None` for `main`.
    pub creator: Option<ThreadNumber>,
    /// The flag that says whether the thread was created; `None` if the thread runs from the initial state.
    pub started: Option<ObjectId>,
}

/// The declaration of a register.
#[derive(Debug)]
pub struct RegisterInfo {
    /// A name based on C; emission makes it unique.
    pub name: String,
    /// The initial value; `None` if the register may be read before it is written, which gives the undefined value.
    pub initial: Option<i64>,
    /// The node of the places that the register may point to; `None` if the register is neither a pointer nor an integer of the same width.
    pub points: Option<NodeId>,
    /// The origin of the register, for reports.
    pub about: About,
}

/// The origin of a register in the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Whether the register is a variable of the source program rather than a temporary.
    pub variable: bool,
    /// Whether the type of the register is a pointer type.
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

/// The statements that only this stage has: they create, end and use objects, or make a register undefined.
#[derive(Clone, Debug, PartialEq)]
pub enum ObjectEvent {
    /// A register gets an undefined value: control reaches the declaration of the local variable that the register represents.
    Undefined(Register),
    /// The declaration of a local variable in memory is reached: its contents become undefined.
    Begin(ObjectId),
    /// The address of a local variable is taken: from here on there are pointers to its present instance, not only to an earlier one.
    Take(ObjectId),
    /// The lifetime of a local variable in memory ends: its block or function is left.
    End(ObjectId),
    /// The next statement accesses a local variable, or part of it, through a pointer. This violates `memory` if the lifetime of the variable has
    /// ended.
    Follow(ObjectId),
    /// A library function uses the object at this place, which has to exist. The accesses of that function are not modelled.
    Reach(Location),
    /// An allocation: the register gets a pointer to an instance of this object.
    Allocate(Register, ObjectId),
    /// `free` of the object that the pointer points to, now or once no hazard pointer protects it; without effect if the pointer is null.
    Free(Value, NodeId, Freeing),
    /// Part of an indivisible step that then stores a pointer in a hazard pointer: asks whether the object that the pointer points to is already
    /// retired. A hazard pointer protects only objects that are not retired when it is set.
    Retired {
        /// The register that gets 1 if the object is retired, otherwise 0.
        flag: Register,
        /// The pointer.
        pointer: Value,
        /// The node of the target of the pointer.
        target: NodeId,
        /// The node of the place in the hazard pointer in which the pointer is stored.
        hazard: NodeId,
    },
}

/// When an object is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freeing {
    /// At once.
    Now,
    /// Retired: freed at some time after the last hazard pointer that protects the object has been cleared (`layout/hazards.rs` has the model).
    Retire,
}

impl Special<Symbolic> for ObjectEvent {
    fn writes(&self) -> Option<Register> {
        match self {
            ObjectEvent::Undefined(register)
            | ObjectEvent::Allocate(register, _)
            | ObjectEvent::Retired { flag: register, .. } => Some(*register),
            _ => None,
        }
    }

    fn writes_mut(&mut self) -> Option<&mut Register> {
        match self {
            ObjectEvent::Undefined(register)
            | ObjectEvent::Allocate(register, _)
            | ObjectEvent::Retired { flag: register, .. } => Some(register),
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
            ObjectEvent::Free(value, ..) | ObjectEvent::Retired { pointer: value, .. } => visit(value),
            _ => {}
        }
    }

    fn values_mut(&mut self, visit: &mut dyn FnMut(&mut Value)) {
        match self {
            ObjectEvent::Reach(place) => place.values_mut(visit),
            ObjectEvent::Free(value, ..) | ObjectEvent::Retired { pointer: value, .. } => visit(value),
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

/// A place in memory: a path from an object or from the target of a pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The start of the path.
    pub base: Base,
    /// The path from the base.
    pub path: Vec<Projection>,
    /// The node of the place.
    pub node: NodeId,
    /// The type with which the place is read.
    pub view: View,
}

/// The type with which the bits of a scalar are read. A read with a type other than that of the write converts the value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// Without conversion: 64 bits, a pointer, a floating-point number, or an aggregate.
    #[default]
    Whole,
    /// As `_Bool`.
    Truth,
    /// As a signed integer.
    Signed(Width),
    /// As an unsigned integer.
    Unsigned(Width),
}

impl View {
    /// The view of values of a type.
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

    /// The value read when memory is accessed with this view and holds a number written with another type.
    pub fn seen(self, value: Value) -> Value {
        match self {
            View::Whole => value,
            View::Truth => Value::binary(BinaryOp::Ne, value, Value::Number(0)),
            View::Signed(width) => Value::unary(UnaryOp::Signed(width), value),
            View::Unsigned(width) => Value::unary(UnaryOp::Unsigned(width), value),
        }
    }
}

/// The start of the path to a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Base {
    /// A known object. If it is an allocation, the allocation happens at most once and has happened.
    Object(ObjectId),
    /// The target of a pointer, and the node of that target.
    Pointed(Box<Value>, NodeId),
}

/// A step from a place to a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Projection {
    /// A member of a structure.
    Field(u32),
    /// An element of an array: the index and the number of elements.
    Element(Value, u64),
}

impl Location {
    /// Whether some array index on the path is computed by the program.
    pub fn has_computed_index(&self) -> bool {
        let computed = |projection: &Projection| matches!(projection, Projection::Element(index, _) if !matches!(index, Value::Number(_)));
        self.path.iter().any(computed)
    }

    /// The path to the lowest address that the place may have: every index that is not a constant is taken to be 0.
    pub fn least_path(&self) -> impl Iterator<Item = Step> + '_ {
        self.path.iter().map(|projection| match projection {
            Projection::Field(field) => Step::Field(*field),
            Projection::Element(Value::Number(index), _) => Step::Element(u64::try_from(*index).unwrap_or(0)),
            Projection::Element(..) => Step::Element(0),
        })
    }
}

/// A value, computed without memory accesses and side effects. It cannot fault: checks are statements before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// An integer constant.
    Number(i64),
    /// The present value of a register.
    Register(Register),
    /// A unary operation.
    Unary(UnaryOp, Box<Value>),
    /// A binary operation.
    Binary(BinaryOp, Box<Value>, Box<Value>),
    /// A conditional value: condition, value if it holds, value if not.
    If(Box<Value>, Box<Value>, Box<Value>),
    /// The address of a place.
    Address(Box<Location>),
    /// A pointer to places of this node, moved by a number of elements.
    Move(Box<Value>, Box<Value>, NodeId),
    /// The distance between two pointers into one array of the node, in elements.
    Difference(Box<Value>, Box<Value>, NodeId),
    /// `container_of`: the address of the structure whose member at the end of `path` is the target of the pointer.
    Container {
        /// The pointer to the member.
        member: Box<Value>,
        /// The node of the structure.
        node: NodeId,
        /// The type of the structure.
        record: RecordId,
        /// The path from the structure to the member.
        path: Vec<Step>,
    },
    /// A function as a pointer.
    Function(u32),
}
