//! Programs: shared memory, threads as control-flow graphs, and the actions on their edges.
//!
//! An edge performs exactly one [`Action`], which is one event of the memory model (a load, a store, a fence, one
//! indivisible atomic step, ...) or register work. Structured statements, expressions with several loads, assertions about
//! ranges and thread families exist only in the source language: by the time a program is here they are graphs.

use crate::expr::Expr;
use crate::property::{Formula, Property};
use crate::span::Span;

/// A memory model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MemoryModel {
    /// Sequential consistency: a store reaches memory at once.
    Sc,
    /// Total store order (x86): one first-in first-out buffer for each thread.
    Tso,
    /// Partial store order (SPARC): one first-in first-out buffer for each thread and memory cell.
    Pso,
}

impl MemoryModel {
    /// All of them, from strongest to weakest.
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

/// What the values are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Numbers {
    /// Mathematical integers.
    #[default]
    Int,
    /// Natural numbers: a write below 0 is a violation.
    Nat,
    /// Real numbers.
    Real,
}

/// An inclusive range of values. `low > high` is an empty range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Range {
    /// The least value.
    pub low: i64,
    /// The greatest value.
    pub high: i64,
}

impl Range {
    /// Whether `value` lies in the range.
    pub fn contains(self, value: i64) -> bool {
        self.low <= value && value <= self.high
    }

    /// How many values there are.
    pub fn size(self) -> u64 {
        if self.low > self.high { 0 } else { (self.high.wrapping_sub(self.low) as u64).saturating_add(1) }
    }
}

/// How a register or memory cell starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Init {
    /// With this value.
    Value(i64),
    /// With any value of the range, or any value at all.
    Any(Option<Range>),
}

/// A type of numbers that name something: `id!(/// A thread. ThreadId);`
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

/// A concurrent program with the properties it should have.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The data domain.
    pub numbers: Numbers,
    /// Shared variables; each occupies consecutive memory cells.
    pub variables: Vec<Variable>,
    /// The threads.
    pub threads: Vec<Thread>,
    /// What the source says should hold.
    pub properties: Vec<Property>,
    /// What the source suggests; no verdict depends on it.
    pub hints: Hints,
    /// The calls of procedures, which are copies of their text by now: only spans refer to them.
    pub calls: Vec<Call>,
    /// What assertions say when they fail.
    pub texts: Vec<String>,
}

/// A call of a procedure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The procedure with its arguments, as it is written.
    pub what: String,
    /// Where it is called: perhaps in a procedure that was called itself.
    pub at: Span,
}

/// Suggestions from the source.
#[derive(Clone, Debug, Default)]
pub struct Hints {
    /// Formulas to start predicate abstraction from.
    pub predicates: Vec<Formula>,
    /// Places where no fence should be put.
    pub spared: Vec<(ThreadId, LocationId)>,
    /// Prices for fence placement.
    pub costs: Vec<(Price, u32)>,
}

/// What a price is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Price {
    /// Every full fence.
    Fence,
    /// Every store-store fence.
    StoreFence,
    /// A locked instruction in place of a store.
    Swap,
    /// Any fence at this place.
    Place(ThreadId, LocationId),
}

/// A shared variable: one memory cell, or an array of them.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its name in the source.
    pub name: String,
    /// The first memory cell it occupies.
    pub base: u32,
    /// For an array its indices; a scalar has none.
    pub indices: Option<Range>,
    /// Whether an index outside is beyond what is modelled (`unknown`) instead of a violation.
    pub open: bool,
    /// The range every write is checked against.
    pub range: Option<Range>,
    /// Initial contents, one for each cell.
    pub init: Vec<Init>,
    /// The declaration.
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
    /// Its name: `p`, or `p[0]` for an instance of a family.
    pub name: String,
    /// Its registers, temporaries included.
    pub registers: Vec<Register>,
    /// Its control locations.
    pub locations: Vec<Location>,
    /// Where it starts.
    pub entry: LocationId,
    /// Its edges, those that leave the same location side by side.
    pub edges: Vec<Edge>,
    /// Where it goes when an action faults; no edges leave it.
    pub fault: LocationId,
    /// Which template and instance it came from, if several threads share one text.
    pub family: Option<(String, i64)>,
}

/// A register: a thread-local integer.
#[derive(Clone, Debug)]
pub struct Register {
    /// Its name in the source; temporaries that hold a loaded value start with `%`.
    pub name: String,
    /// How it starts.
    pub init: Init,
    /// The range every write is checked against.
    pub range: Option<Range>,
}

/// A control location.
#[derive(Clone, Debug, Default)]
pub struct Location {
    /// The labels that name it.
    pub labels: Vec<String>,
    /// The statement that starts here, if one does.
    pub span: Option<Span>,
    /// The edges that leave it: `edges[first_edge..last_edge]` of the thread.
    pub first_edge: u32,
    /// See `first_edge`.
    pub last_edge: u32,
}

/// An edge of a control-flow graph.
#[derive(Clone, Debug)]
pub struct Edge {
    /// Where it starts.
    pub from: LocationId,
    /// Where it leads.
    pub to: LocationId,
    /// What happens.
    pub action: Action,
    /// The statement it comes from.
    pub span: Span,
}

/// What one step of a thread does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Register work, a load or a store: see [`Op`].
    Op(Op),
    /// Waits until the own buffers are empty.
    Fence,
    /// No later store of this thread reaches memory before every earlier one has.
    StoreFence,
    /// Takes the global lock: own buffers empty, nobody holds it.
    Lock,
    /// Releases the global lock: own buffers empty, this thread holds it.
    Unlock,
    /// All operations in one indivisible step; it is enabled only if all of them can run. If `drains`, the own buffers are
    /// empty before and after, so stores go straight to memory. Otherwise it holds no stores, and loads see the own buffer first.
    Atomic {
        /// The operations, in order.
        ops: Vec<Op>,
        /// Whether the own buffers must be empty.
        drains: bool,
    },
}

/// An operation that may also occur inside an atomic step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Nothing.
    Skip,
    /// `register := value`.
    Assign(RegisterId, Expr<RegisterId>),
    /// `register := *`, any value at all or any in the range.
    Havoc(RegisterId, Option<Range>),
    /// Enabled only if the value is not 0.
    Assume(Expr<RegisterId>),
    /// This fault if the value is 0.
    Assert(Expr<RegisterId>, Fault),
    /// `register := memory`.
    Load(RegisterId, Address),
    /// `memory := value`, perhaps through a buffer.
    Store(Address, Expr<RegisterId>),
}

/// A memory cell, perhaps computed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// The shared variable.
    pub variable: VariableId,
    /// The index into an array; none for a scalar.
    pub index: Option<Expr<RegisterId>>,
}

/// How an action can go wrong in the program's own terms: a violation of the property `assertions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// An `assert` failed; perhaps one of the [`texts`](Program::texts) says what that means.
    Assertion(Option<u32>),
    /// A thread unlocks a mutex that it does not hold.
    Mutex,
    /// An index outside the array.
    Index,
    /// A value outside the declared range, or below 0 over the naturals.
    Range,
    /// Division by zero.
    DivisionByZero,
    /// A shift by less than 0 or by more than 63.
    Shift,
}

impl Fault {
    /// In words.
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
    /// How many memory cells there are.
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

    /// What an assertion says that failed, if it says something.
    pub fn text_of(&self, fault: Fault) -> Option<&str> {
        let Fault::Assertion(Some(text)) = fault else { return None };
        self.texts.get(text as usize).map(String::as_str)
    }

    /// The calls that led to a span, the innermost first.
    pub fn calls_to(&self, span: Span) -> impl Iterator<Item = &Call> {
        let call = |span: Span| span.call.index().and_then(|n| self.calls.get(n));
        std::iter::successors(call(span), move |outer| call(outer.at))
    }

    /// The threads with their numbers.
    pub fn threads(&self) -> impl Iterator<Item = (ThreadId, &Thread)> {
        self.threads.iter().enumerate().map(|(i, t)| (ThreadId(i as u32), t))
    }

    /// The thread with this number.
    pub fn thread(&self, id: ThreadId) -> &Thread {
        &self.threads[id.index()]
    }

    /// Whether values that are not whole numbers can occur: only a `*` over the reals gives one.
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

    /// Whether the thread has ended here: no edge leaves, and it did not fault.
    pub fn is_end(&self, location: LocationId) -> bool {
        let l = &self.locations[location.index()];
        l.first_edge == l.last_edge && location != self.fault
    }

    /// Whether another thread has the same code and starts alike, so that each can do what the other can.
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

    /// Whether it waits until the own buffers are empty.
    pub fn drains(&self) -> bool {
        match self {
            Action::Fence | Action::Lock | Action::Unlock => true,
            Action::Atomic { drains, .. } => *drains,
            Action::Op(_) | Action::StoreFence => false,
        }
    }
}
