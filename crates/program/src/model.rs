//! Programs: shared memory, threads as control-flow graphs, and the actions on their edges.
//!
//! An edge performs exactly one [`Action`]: either one event of the memory model (a load, a store, a fence, an indivisible atomic step, ...) or work
//! on registers. Structured statements, expressions with several loads, range assertions and thread families exist only in the source language;
//! lowering has turned them into graphs.

use crate::expr::Expr;
use crate::property::{Formula, Property};
use crate::span::Span;

/// A memory model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MemoryModel {
    /// Sequential consistency: a store reaches memory immediately.
    Sc,
    /// Total store order (x86): one first-in first-out buffer for each thread.
    Tso,
    /// Partial store order (SPARC): one first-in first-out buffer for each thread and memory cell.
    Pso,
}

impl MemoryModel {
    /// All memory models, from strongest to weakest.
    pub const ALL: [MemoryModel; 3] = [MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Pso];

    /// The name in lower case, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            MemoryModel::Sc => "sc",
            MemoryModel::Tso => "tso",
            MemoryModel::Pso => "pso",
        }
    }
}

/// The data domain: the values that registers and memory hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Numbers {
    /// Mathematical integers.
    #[default]
    Int,
    /// Natural numbers: writing a value below 0 is a violation.
    Nat,
    /// Real numbers. Constants are integers; only a `*` can choose a value that is not.
    Real,
}

/// An inclusive range of values. `low > high` is an empty range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Range {
    /// The least value in the range.
    pub low: i64,
    /// The greatest value in the range.
    pub high: i64,
}

impl Range {
    /// Whether `value` lies in the range.
    pub fn contains(self, value: i64) -> bool {
        self.low <= value && value <= self.high
    }

    /// The number of values, at most `u64::MAX`.
    pub fn size(self) -> u64 {
        if self.low > self.high { 0 } else { (self.high.wrapping_sub(self.low) as u64).saturating_add(1) }
    }
}

/// The initial value of a register or memory cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Init {
    /// Exactly this value.
    Value(i64),
    /// Any value of the range; without a range, any value of the data domain.
    Any(Option<Range>),
}

/// Defines a type of numbers that identify something: `id!(/// A thread. ThreadId);`
#[macro_export]
macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);
        impl $name {
            /// The number as an index.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}
id!(
    /// A thread of a program.
    ThreadId
);
id!(
    /// A shared variable (a scalar or an array) of a program.
    VariableId
);
id!(
    /// A register of a thread.
    RegisterId
);
id!(
    /// A control location of a thread.
    LocationId
);
id!(
    /// An edge of a thread.
    EdgeId
);

/// A concurrent program with the properties to be checked.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The data domain of registers and memory.
    pub numbers: Numbers,
    /// Shared variables; they occupy consecutive memory cells, in order.
    pub variables: Vec<Variable>,
    /// The threads; a `ThreadId` is an index into this list.
    pub threads: Vec<Thread>,
    /// The properties that the source states.
    pub properties: Vec<Property>,
    /// Suggestions from the source; no verdict depends on them.
    pub hints: Hints,
    /// The calls of procedures. Lowering has inlined their bodies; only spans refer to calls.
    pub calls: Vec<Call>,
    /// The messages of assertions, shown when they fail.
    pub texts: Vec<String>,
}

/// A call of a procedure, for error messages and traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The procedure with its arguments, as written in the source.
    pub what: String,
    /// The call site; it may itself lie in a procedure that was called.
    pub at: Span,
}

/// Suggestions from the source, which guide predicate abstraction and fence placement.
#[derive(Clone, Debug, Default)]
pub struct Hints {
    /// Formulas to start predicate abstraction from.
    pub predicates: Vec<Formula>,
    /// Places where no fence should be inserted.
    pub spared: Vec<(ThreadId, LocationId)>,
    /// Prices of fences; they override those of the command line.
    pub costs: Vec<(Price, u32)>,
}

/// The fence or place that a price is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Price {
    /// Any full fence, at a place without a price of its own.
    Fence,
    /// Any store-store fence, at a place without a price of its own.
    StoreFence,
    /// A locked instruction in place of a store.
    Swap,
    /// Any fence at this place.
    Place(ThreadId, LocationId),
}

/// A shared variable: one memory cell, or an array of them.
#[derive(Clone, Debug)]
pub struct Variable {
    /// The name in the source.
    pub name: String,
    /// The number of the first memory cell that the variable occupies.
    pub base: u32,
    /// The indices of an array; `None` for a scalar.
    pub indices: Option<Range>,
    /// Whether the array is open: an access outside its indices leaves the modelled part (`unknown`) instead of violating `assertions`.
    pub open: bool,
    /// The range against which every write is checked; `None` if no range is declared.
    pub range: Option<Range>,
    /// Initial contents, one value for each cell.
    pub init: Vec<Init>,
    /// The declaration in the source.
    pub span: Span,
}

impl Variable {
    /// The memory cells of this variable.
    pub fn cells(&self) -> std::ops::Range<usize> {
        self.base as usize..self.base as usize + self.init.len()
    }
}

/// A thread: a control-flow graph over private registers.
#[derive(Clone, Debug)]
pub struct Thread {
    /// The name: `p`, or `p[0]` for an instance of a family.
    pub name: String,
    /// The private registers, including temporaries.
    pub registers: Vec<Register>,
    /// The control locations; a `LocationId` is an index into this list.
    pub locations: Vec<Location>,
    /// The location at which the thread starts.
    pub entry: LocationId,
    /// The edges, sorted so that those leaving the same location are adjacent; an `EdgeId` is an index into this list.
    pub edges: Vec<Edge>,
    /// The location to which the thread moves when an action faults; no edges leave it.
    pub fault: LocationId,
    /// The name of the thread family and the number of the instance, if several threads share one text.
    pub family: Option<(String, i64)>,
}

/// A register: a thread-local integer.
#[derive(Clone, Debug)]
pub struct Register {
    /// The name in the source; temporaries that hold a loaded value start with `%`.
    pub name: String,
    /// The initial value, or the values from which it is chosen.
    pub init: Init,
    /// The range against which every write is checked; `None` if no range is declared.
    pub range: Option<Range>,
}

/// A control location of a thread.
#[derive(Clone, Debug, Default)]
pub struct Location {
    /// The labels of this location in the source.
    pub labels: Vec<String>,
    /// The statement that starts here, if any.
    pub span: Option<Span>,
    /// The index of the first edge that leaves the location. The edges that leave it are `edges[first_edge..last_edge]` of the thread.
    pub first_edge: u32,
    /// The index after the last edge that leaves the location.
    pub last_edge: u32,
}

/// An edge of a control-flow graph.
#[derive(Clone, Debug)]
pub struct Edge {
    /// The location that the edge leaves.
    pub from: LocationId,
    /// The location that the edge leads to, unless the action faults.
    pub to: LocationId,
    /// The action that a thread performs when it takes the edge.
    pub action: Action,
    /// The statement that the edge was lowered from.
    pub span: Span,
}

/// The effect of one step of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Work on registers, a load or a store: see [`Op`].
    Op(Op),
    /// A full fence: waits until the thread's own buffer is empty.
    Fence,
    /// A store-store fence: no later store of this thread reaches memory before every earlier one has.
    StoreFence,
    /// Takes the global lock; enabled if the thread's buffer is empty and the lock is free.
    Lock,
    /// Releases the global lock; enabled if the thread's buffer is empty and the thread holds the lock.
    Unlock,
    /// Performs all operations in one indivisible step, which is enabled only if all of them can run. If `drains`, the thread's buffer must be empty,
    /// and stores go straight to memory. Otherwise there are no stores among the operations, and loads read the thread's buffer first.
    Atomic {
        /// The operations, in order.
        ops: Vec<Op>,
        /// Whether the thread's buffer must be empty.
        drains: bool,
    },
}

/// An operation that may also occur inside an atomic step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// No effect; the step only changes the control location.
    Skip,
    /// `register := value`.
    Assign(RegisterId, Expr<RegisterId>),
    /// `register := *`: any value, or any value of the range.
    Havoc(RegisterId, Option<Range>),
    /// Enabled only if the value is not 0.
    Assume(Expr<RegisterId>),
    /// Faults with the given [`Fault`] if the value is 0.
    Assert(Expr<RegisterId>, Fault),
    /// `register := memory`.
    Load(RegisterId, Address),
    /// `memory := value`; outside atomic steps through the store buffer, if the memory model has one.
    Store(Address, Expr<RegisterId>),
}

/// A memory cell; the index may be computed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// The shared variable to which the cell belongs.
    pub variable: VariableId,
    /// The index into an array; `None` for a scalar.
    pub index: Option<Expr<RegisterId>>,
}

/// The ways in which an action can fault; each is a violation of the property `assertions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// An `assert` failed; the number, if any, is the index of the message in [`texts`](Program::texts).
    Assertion(Option<u32>),
    /// A thread unlocks a mutex that it does not hold.
    Mutex,
    /// An index outside the array.
    Index,
    /// A value outside the declared range, or below 0 over the naturals.
    Range,
    /// Division or remainder by zero.
    DivisionByZero,
    /// A shift by less than 0 or by more than 63.
    Shift,
}

impl Fault {
    /// The fault as a text for users.
    pub fn describe(self) -> &'static str {
        match self {
            Fault::Assertion(_) => "assertion failed",
            Fault::Mutex => "unlocks a mutex that it does not hold",
            Fault::Index => "index out of range",
            Fault::Range => "value out of range",
            Fault::DivisionByZero => "division by zero",
            Fault::Shift => "shift out of range",
        }
    }
}

impl Program {
    /// The number of memory cells.
    pub fn cells(&self) -> usize {
        self.variables.last().map_or(0, |v| v.cells().end)
    }

    /// The variable that owns a memory cell.
    pub fn variable_of(&self, cell: u32) -> &Variable {
        let after = self.variables.partition_point(|v| v.base <= cell);
        &self.variables[after - 1]
    }

    /// A memory cell as the source writes it: `x` or `a[2]`.
    pub fn cell_name(&self, cell: u32) -> String {
        let variable = self.variable_of(cell);
        match variable.indices {
            None => variable.name.clone(),
            Some(range) => format!("{}[{}]", variable.name, range.low + i64::from(cell - variable.base)),
        }
    }

    /// The message of a failed assertion, if it has one.
    pub fn text_of(&self, fault: Fault) -> Option<&str> {
        let Fault::Assertion(Some(text)) = fault else { return None };
        self.texts.get(text as usize).map(String::as_str)
    }

    /// The stack of calls that leads to a span, the innermost call first.
    pub fn calls_to(&self, span: Span) -> impl Iterator<Item = &Call> {
        let call = |span: Span| span.call.index().and_then(|n| self.calls.get(n));
        std::iter::successors(call(span), move |outer| call(outer.at))
    }

    /// All threads with their numbers.
    pub fn threads(&self) -> impl Iterator<Item = (ThreadId, &Thread)> {
        self.threads.iter().enumerate().map(|(i, t)| (ThreadId(i as u32), t))
    }

    /// The thread with this number.
    pub fn thread(&self, id: ThreadId) -> &Thread {
        &self.threads[id.index()]
    }

    /// Whether values that are not integers can occur: only a `*` over the reals can choose one.
    pub fn has_real_choices(&self) -> bool {
        let initial = self.variables.iter().flat_map(|v| &v.init);
        let initial = initial.chain(self.threads.iter().flat_map(|t| t.registers.iter().map(|r| &r.init)));
        let mut ops = self.threads.iter().flat_map(|t| &t.edges).flat_map(|e| e.action.ops());
        self.numbers == Numbers::Real
            && (initial.into_iter().any(|i| matches!(i, Init::Any(_)))
                || ops.any(|op| matches!(op, Op::Havoc(..))))
    }
}

impl Thread {
    /// The edges that leave a location, with their numbers.
    pub fn edges_from(&self, location: LocationId) -> impl Iterator<Item = (EdgeId, &Edge)> {
        let Location { first_edge, last_edge, .. } = self.locations[location.index()];
        (first_edge..last_edge).map(|e| (EdgeId(e), &self.edges[e as usize]))
    }

    /// The edge with this number.
    pub fn edge(&self, id: EdgeId) -> &Edge {
        &self.edges[id.index()]
    }

    /// Whether the thread has terminated normally at this location: no edge leaves it, and it is not the fault location.
    pub fn is_end(&self, location: LocationId) -> bool {
        let l = &self.locations[location.index()];
        l.first_edge == l.last_edge && location != self.fault
    }

    /// Whether another thread has the same code and the same initial values, so that the two are interchangeable.
    pub fn is_like(&self, other: &Thread) -> bool {
        let registers = self.registers.len() == other.registers.len()
            && self
                .registers
                .iter()
                .zip(&other.registers)
                .all(|(x, y)| (x.init, x.range) == (y.init, y.range));
        let same = |(x, y): (&Edge, &Edge)| (x.from, x.to, &x.action) == (y.from, y.to, &y.action);
        let edges = self.edges.len() == other.edges.len() && self.edges.iter().zip(&other.edges).all(same);
        let ends = |t: &Thread| (t.entry, t.fault, t.locations.len());
        registers && edges && ends(self) == ends(other)
    }
}

impl Action {
    /// The operations of this action: none for fences and locks.
    pub fn ops(&self) -> &[Op] {
        match self {
            Action::Op(op) => std::slice::from_ref(op),
            Action::Atomic { ops, .. } => ops,
            Action::Fence | Action::StoreFence | Action::Lock | Action::Unlock => &[],
        }
    }

    /// Whether the action waits until the thread's own buffer is empty.
    pub fn drains(&self) -> bool {
        match self {
            Action::Fence | Action::Lock | Action::Unlock => true,
            Action::Atomic { drains, .. } => *drains,
            Action::Op(_) | Action::StoreFence => false,
        }
    }
}
