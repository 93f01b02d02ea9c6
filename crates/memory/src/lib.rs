//! Machines: memory models and buffer abstractions, as steps with commands on integer cells.
//!
//! A [`Machine`] knows the control states of a program under a memory model (where each thread is, which cells its buffer mentions in
//! which order, who holds the lock) and, for each step, which [`Command`]s it performs on integer cells. It never looks
//! at data: what a cell may contain is the business of a domain. So every machine works with every domain.
//!
//! Machines are part of the trusted base: a certificate speaks about the control states and cells of a machine, and is worth as
//! much as the claim that the machine over-approximates the reference semantics. Hence they are small, and tests compare
//! each with the reference semantics, step by step.

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
