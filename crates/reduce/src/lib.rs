//! The reduction of EXTRA13 (s. 3, Fig. 5 for PSO, Fig. 12 for TSO): a program under a relaxed memory model becomes a program under SC
//! whose store buffers are registers.
//!
//! [`reduce`] makes the program `P_M` from `P`. Each thread gets a counter and registers for its buffered stores; a store fills these registers, a
//! load reads them before memory, and a flush is a step of the thread that may be taken at every location. Memory cells, registers and locations of
//! `P` keep their numbers in `P_M`; new ones follow. ([`forgetful`] makes a program with buffers of any size instead, which over-approximates `P`.)
//! Each thread has
//!
//! * under TSO one queue: the count, and, for each place in it, the memory cell (`lhs`) and the value (`rhs`);
//! * under PSO one queue for each memory cell that it stores to, with a count and values; if it executes store fences, each value also has an
//!   *epoch*, and the thread the epoch of its next store: stores of epoch 0 may leave, and when none is left all epochs are decremented.
//!
//! Unused places of a queue hold 0.
//!
//! | action | in `P_M` |
//! |---|---|
//! | store | one edge for each number of stores already buffered; at the bound it leads to the *overflow location* |
//! | load | one edge for each place that may hold the newest store to the cell, and one to memory; like every load they wait while another thread holds the lock |
//! | flush | a self-loop where stores may be buffered; an atomic step, so it waits for the lock too |
//! | fence, atomic step that drains the buffer | waits until all counts are 0 |
//! | other atomic step | one edge for each combination of places that its loads may read |
//! | lock, unlock | taken from a copy of the location; the copy is entered when all counts are 0 |
//! | store fence | TSO: none. PSO: increments the epoch, if a store of this epoch is buffered |
//! | register work | unchanged |
//! | a fault | leads to a location where the thread only flushes |
//!
//! **Overflow.** A store into a full queue takes its thread to its overflow location, where the thread stays. Until then `P_M` behaves exactly like
//! `P` with bounded buffers; steps of other threads afterwards are meaningless. Properties are mapped ([`Reduced::property`]) such that an overflow
//! never violates a mapped property: a violation of `P_M` is a violation of `P`. A property that holds of `P_M` holds of `P` only if no overflow is
//! reachable ([`Reduced::overflow`]); then it holds with buffers of any size (Theorem 1).
//!
//! **Differences from EXTRA13.** In the paper, the flag `overflow` is a variable. Here an overflow leads to a location of the thread, because a
//! variable could not be set while another thread holds the lock, and because no predicate is needed to track a location. In the paper, flushes are
//! placed after each statement. Here they are at each location where stores may be pending, so a thread that has ended, is blocked or has faulted
//! still flushes. Known counts (all 0 after a fence) are not tested. Values and indices are range-checked when the store is issued.
//!
//! This crate is untrusted: conclusions about `P` must be checked against `P`.
//!
//! ```
//! use fencewright_program::MemoryModel;
//! use fencewright_reduce::{Bounds, reduce};
//!
//! let loaded = fencewright_lang::load("p.fw", b"shared x; thread p { x = 1; }", None, &[]).expect("it is right");
//! let bounds = Bounds::uniform(&loaded.program, MemoryModel::Tso, 1);
//! let reduced = reduce(&loaded.program, MemoryModel::Tso, &bounds).expect("it can be reduced");
//! assert!(reduced.program.threads[0].registers.len() > loaded.program.threads[0].registers.len(), "the buffer");
//! ```

#![forbid(unsafe_code)]

mod bounds;
pub mod c;
mod explain;
mod forgotten;
mod held;
mod map;
mod queues;
mod steps;
mod thread;

use fencewright_program::{Action, MemoryModel, Program, Span};

use bounds::Size;

pub use bounds::Bounds;
pub use forgotten::Forgotten;
pub use map::Reduced;
pub use queues::{CellQueue, Queue, Queues};

/// Why a program cannot be reduced or printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The reason, in words.
    pub why: String,
    /// The place in the source, if there is one.
    pub span: Option<Span>,
}

impl Unsupported {
    fn new(why: impl Into<String>, span: Option<Span>) -> Self {
        Unsupported { why: why.into(), span }
    }
}

/// Arrays with indices farther from 0 than this are rejected: cell numbers computed from such indices could overflow.
const FAR: i64 = 1 << 62;

/// The program that behaves under SC like `program` under `model` (TSO or PSO) with buffers of these sizes, until the first overflow.
pub fn reduce(program: &Program, model: MemoryModel, bounds: &Bounds) -> Result<Reduced, Unsupported> {
    reduced(program, model, Size { bounds: bounds.clone(), forgets: false })
}

/// The k-abstract system of FENCES12 as a program for SC: the oldest k stores of a buffer (PSO: to each memory cell) are kept in order; of all others
/// only their cells and the newest value of each cell are kept. It over-approximates `program` under `model` with unbounded buffers: a property
/// (other than `finally exists` and deadlock freedom) that holds of the resulting program holds of `program`.
pub fn forgetful(program: &Program, model: MemoryModel, k: u32) -> Result<Reduced, Unsupported> {
    reduced(program, model, Size { bounds: Bounds::uniform(program, model, k), forgets: true })
}

fn reduced(program: &Program, model: MemoryModel, size: Size) -> Result<Reduced, Unsupported> {
    size.bounds.check(program, model)?;
    for variable in &program.variables {
        if variable.indices.is_some_and(|r| r.low < -FAR || r.high > FAR) {
            return Err(Unsupported::new("an array with indices that far from 0", Some(variable.span)));
        }
    }
    let locks = program.threads.iter().any(|t| t.edges.iter().any(|e| e.action == Action::Lock));
    let threads = program.threads.iter();
    let threads = threads.map(|thread| thread::reduced(program, model, &size, locks, thread));
    let threads = threads.collect::<Result<_, _>>()?;
    Ok(Reduced::new(program, model, size, threads))
}
