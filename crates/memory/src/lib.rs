//! Machines: memory models and buffer abstractions, as steps with commands on integer cells.
//!
//! A [`Machine`] defines the control states of a program under a memory model: the location of each thread, the memory cells of its buffered stores
//! in order, and the holder of the lock. It also defines the steps between control states, each with the [`Command`]s that it performs on integer
//! cells. A machine never inspects the values of cells: that is the task of a domain. So every machine works with every domain.
//!
//! Machines are part of the trusted base. A certificate speaks about the control states and cells of a machine, so its claim about the program
//! depends on the machine over-approximating the reference semantics. Hence machines are small, and tests compare each with the reference semantics,
//! step by step.
//!
//! Under SC a store is one step with one command; with bounded queues it goes into the buffer, and a flush is a second step:
//!
//! ```
//! use fencewright_memory::{Bound, BufferMachine, Buffers, Machine, Outcome};
//! use fencewright_program::MemoryModel;
//!
//! let program = fencewright_lang::load("p.fw", b"shared x; thread p { x = 1; }", None, &[]).expect("it is right").program;
//! let longest = |buffers| {
//!     let machine = BufferMachine::new(&program, buffers);
//!     let mut control = machine.initial();
//!     for length in 0.. {
//!         let mut steps = machine.steps_in((), &control, &|| false).expect("there is time");
//!         let Some(step) = steps.pop() else { return length };
//!         let Outcome::Control(next) = step.outcome else { panic!("nothing overflows") };
//!         control = next;
//!     }
//!     unreachable!()
//! };
//! assert_eq!(longest(Buffers::Sc), 1);
//! assert_eq!(longest(Buffers::Queue { model: MemoryModel::Tso, bound: Bound::Thread(1) }), 2);
//! ```

#![forbid(unsafe_code)]

pub mod arithmetic;
pub mod buffer;
pub mod buffer_machine;
pub mod cells;
pub mod control;
pub mod linear;
pub mod machine;

pub use buffer::{Bound, Buffers, CellBounds, Change, Kept, StoreBuffers, Stored, Summarised};
pub use buffer_machine::BufferMachine;
pub use cells::{Cell, CellId, Cells};
pub use control::{BufferShape, Control, Entry};
pub use linear::{Constraint, Linear};
pub use machine::{Command, Contents, Evidence, Limitation, Machine, Outcome, Step, StepName};
