//! The core of Fencewright: concurrent integer programs, their properties, and their semantics.
//!
//! * [`Program`]: threads as control-flow graphs over loads, stores, fences, atomic steps and the global lock;
//! * [`Property`]: states that must not, or must, be reachable;
//! * [`mod@reference`]: exact SC, TSO and PSO as one small interpreter. Every trace that any engine reports is replayed
//!   on it ([`replay`]), and tests compare engines with it. No engine shares code with it.
//!
//! This crate does no input or output and depends on nothing.
//!
//! A store under TSO goes into the buffer first, and a flush takes it to memory:
//!
//! ```
//! use fencewright_program::{MemoryModel, Reference};
//!
//! let program = fencewright_lang::load("p.fw", b"shared x; thread p { x = 1; }", None, &[]).expect("it is right").program;
//! let reference = Reference::new(&program, MemoryModel::Tso);
//! let start = reference.initial(vec![vec![]], vec![0]).expect("no registers, and x is 0");
//! let store = &reference.candidates(&start, &[])[0];
//! let (stored, _) = reference.step(&start, store).expect("the thread can move");
//! assert_eq!((stored.memory[0], stored.buffers[0].len()), (0, 1));
//! let flush = &reference.candidates(&stored, &[])[0];
//! let (flushed, _) = reference.step(&stored, flush).expect("the store can leave");
//! assert_eq!((flushed.memory[0], flushed.buffers[0].len()), (1, 0));
//! assert!(reference.is_final(&flushed));
//! ```

#![forbid(unsafe_code)]

pub mod difference;
pub mod expr;
pub mod faults;
pub mod model;
pub mod property;
pub mod reference;
pub mod replay;
pub mod span;

pub use expr::{BinaryOp, EvalError, Expr, UnaryOp, Width};
pub use faults::{Bounds, Checks};
pub use model::{
    Action, Address, Call, Edge, EdgeId, Fault, Hints, Init, Location, LocationId, MemoryModel, Numbers, Op,
    Price, Program, Range, Register, RegisterId, Thread, ThreadId, Variable, VariableId,
};
pub use property::{Disjunct, Formula, Observable, Property, PropertyKind, Quantifier};
pub use reference::{Event, EventKind, Reference, State};
pub use replay::{Replayed, Trace};
pub use span::{CallId, FileId, Span};
