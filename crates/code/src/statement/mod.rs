//! Statements of a thread: one representation for both stages of the translation.
//!
//! A [`Stage`] determines the types of values and places. In [symbolic](crate::core::Symbolic) code a place is a path from an object or a pointer; in
//! [flat](crate::flat::Flat) code it is a numbered cell of shared memory and pointers are numbers. Control flow, accesses, assertions and
//! synchronisation are the same in both stages; statements that exist in one stage only are its [`Stage::Special`] ones.

mod walk;

use std::fmt::Debug;

use fencewright_program::Span;

pub use walk::each_statement;

/// A register of a thread, by its index in the thread's list of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Register(pub u32);

/// A label of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label(pub u32);

impl Label {
    /// The label at which threads loop once the process has ended, so that none of them counts as blocked.
    pub const EXIT: Label = Label(u32::MAX);
}

/// The kind of a memory access, for race reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// An ordinary variable: the compiler may move the access.
    Plain,
    /// `volatile`, `READ_ONCE`, `WRITE_ONCE`.
    Volatile,
    /// An atomic operation.
    Atomic,
    /// An access added by the translation: flags of threads, locks.
    Own,
}

/// A stage of the translation: the types in which its code differs from that of the other stage.
pub trait Stage: Clone + Debug + PartialEq + 'static {
    /// Values: computed from registers and constants, without side effects.
    type Value: Expression;
    /// Places in memory.
    type Place: Parts<Self::Value> + Clone + Debug + PartialEq;
    /// How a thread waits: in a loop or in one step. `()` if this stage does not decide that.
    type Waiting: Clone + Debug + PartialEq;
    /// The violation reported by a failed check.
    type Violation: Parts<Self::Value> + Clone + Debug + PartialEq;
    /// Statements that exist in this stage only.
    type Special: Special<Self>;
}

/// A value in the code of a stage.
pub trait Expression: Clone + Debug + PartialEq {
    /// The number, if the value is a constant.
    fn number(&self) -> Option<i64>;

    /// Calls `visit` for each register and each element of an array of registers that the value reads.
    fn sources(&self, visit: &mut dyn FnMut(Source<'_, Self>));
}

/// A source of a value, local to the thread.
pub enum Source<'a, V> {
    /// A register.
    Register(Register),
    /// An element of an array of registers, at this index.
    Element(usize, &'a V),
}

/// A part of the code that contains values.
pub trait Parts<V> {
    /// Calls `visit` for the values that are evaluated.
    fn values<'a>(&'a self, visit: &mut dyn FnMut(&'a V));

    /// Calls `visit` for all values, including those that only occur in explanations for the user.
    fn values_mut(&mut self, visit: &mut dyn FnMut(&mut V));
}

/// A statement that exists in one stage only.
pub trait Special<S: Stage>: Parts<S::Value> + Clone + Debug + PartialEq {
    /// The register that the statement assigns, if any.
    fn writes(&self) -> Option<Register>;

    /// Mutable access to the register that the statement assigns, if any.
    fn writes_mut(&mut self) -> Option<&mut Register>;

    /// The element of an array of registers that the statement assigns, as the array and the index; `None` if it assigns no element.
    fn writes_element(&self) -> Option<(usize, &S::Value)>;
}

/// A statement.
#[derive(Clone, Debug)]
pub struct Stmt<S: Stage> {
    /// The effect of the statement.
    pub kind: StmtKind<S>,
    /// The source text of the statement, with the inlined call that contains the statement.
    pub span: Span,
}

/// Statements with the same effect are equal, wherever they come from.
impl<S: Stage> PartialEq for Stmt<S> {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

/// The effect of a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind<S: Stage> {
    /// One statement of the source: fences can be inserted before it, after it, and in the blocks inside.
    Steps(Vec<Stmt<S>>),
    /// A sequence inside `Steps`: the body of an inlined function, or of `({ ... })`. Fences can be inserted between its statements.
    Block(Vec<Stmt<S>>),
    /// A register gets a value.
    Assign(Register, S::Value),
    /// A register gets a nondeterministic value of a range, both ends included.
    Havoc(Register, i64, i64),
    /// A register gets the value of a scalar place.
    Load(Register, S::Place, Access),
    /// A scalar place gets a value, through the store buffer.
    Store(S::Place, S::Value, Access),
    /// One indivisible step, which waits until the thread's own buffer is empty. The block contains no loops and no jumps.
    Atomic(Vec<Stmt<S>>),
    /// One indivisible read-modify-write: `old` gets the value of the place; if `when` holds, `new` is written. Both `when` and `new` may read `old`.
    Update {
        /// The place that is read and, if `when` holds, written.
        place: S::Place,
        /// The register for the value before the update.
        old: Register,
        /// The condition of the write; `None` if the write always happens.
        when: Option<S::Value>,
        /// The value written.
        new: S::Value,
        /// How the program accesses the place.
        access: Access,
    },
    /// Takes the one global lock, once the lock is free and the thread's own buffer is empty. Until the lock is released, no other thread reads or
    /// writes memory, and none of its buffered stores reaches memory.
    Lock,
    /// Releases the global lock, once the thread's own buffer is empty.
    Unlock,
    /// Waits until the value of the place, which is loaded into the register, satisfies the condition.
    Await {
        /// The register that receives the value.
        register: Register,
        /// The place whose value is awaited.
        place: S::Place,
        /// The condition, which reads the register.
        until: S::Value,
        /// How the program accesses the place.
        access: Access,
        /// How the thread waits.
        waiting: S::Waiting,
    },
    /// A full fence.
    Fence,
    /// A store-store fence, which has no effect under SC and TSO.
    StoreFence,
    /// Discards executions in which the condition does not hold.
    Assume(S::Value),
    /// A violation of `assertions`, with this text, unless the condition holds.
    Assert(S::Value, String),
    /// A violation of `memory` unless the condition holds.
    Check(S::Value, S::Violation),
    /// `if`.
    If(S::Value, Vec<Stmt<S>>, Vec<Stmt<S>>),
    /// A nondeterministic choice of one block.
    Choose(Vec<Vec<Stmt<S>>>),
    /// An endless loop.
    Loop(Vec<Stmt<S>>),
    /// Leaves the innermost loop.
    Break,
    /// Starts the next iteration of the innermost loop.
    Continue,
    /// The target of jumps to this label.
    Label(Label),
    /// A jump.
    Goto(Label),
    /// The thread ends.
    Stop,
    /// If the condition holds, the end of the model is reached: the behaviour from here on is unknown, for this reason.
    Beyond(S::Value, String),
    /// A statement of this stage only.
    Special(S::Special),
}
