//! The reduction of EXTRA13 (s. 3, Fig. 5 for PSO, Fig. 12 for TSO): a program under a relaxed memory model becomes a program under SC
//! whose store buffers are registers.
//!
//! [`reduce`] makes from `P` the program `P_M`. Each thread gets a counter and registers for what is buffered; a store fills them, a load looks
//! at them first, and a flush is a step of the thread that may be taken at every location. Memory cells, registers and locations
//! of `P` keep their numbers in `P_M`; what is new comes behind them. Each thread has
//!
//! * under TSO one queue: the count, and for each place in it the memory cell (`lhs`) and the value (`rhs`);
//! * under PSO one queue for each memory cell that it stores to, with a count and values; where it passes store fences, each
//!   value has an *epoch* as well, and the thread the epoch of its next store: stores of epoch 0 may leave, and when none is
//!   left all epochs count down.
//!
//! Places of a queue that are not in use hold 0.
//!
//! | action | in `P_M` |
//! |---|---|
//! | store | one edge for each number of stores already there; at the bound it leads to the *overflow location* |
//! | load | one edge for each place that may hold the newest store to the cell, and one to memory; like every load they wait while another thread holds the lock |
//! | flush | a self-loop, where something may be buffered; an indivisible step, so it waits for the lock too |
//! | fence, indivisible step | waits until all counts are 0 |
//! | lock, unlock | from a copy of the location that is entered when all counts are 0 |
//! | store fence | TSO: nothing. PSO: the next epoch begins, if something is buffered in this one |
//! | register work | unchanged |
//! | a fault | leads to a location where the thread does nothing but flush |
//!
//! **Overflow.** A store into a full queue takes its thread to its overflow location, where it stays. Up to then `P_M` does exactly what `P`
//! does with bounded buffers; what other threads do afterwards means nothing. Properties are mapped ([`Reduced::property`]) so
//! that an overflow never violates one: a violation of `P_M` is one of `P`. That a property holds of `P_M` says
//! something about `P` only if no overflow is reachable ([`Reduced::overflow`]); then it holds with buffers of any size (Theorem 1).
//!
//! **Differences from the paper.** There the flag `overflow` is a variable. Here it is a location of each thread, since a variable could not be
//! set while another thread holds the lock, and no predicate is needed to remember it. There flushes are placed after each statement; here
//! each location has them where stores may be pending, so a thread that has ended, is blocked or has faulted still flushes.
//! Counts that are known (after a fence there is nothing) are not looked at. Whether a value or an index is out of range is asked when the store is issued.
//!
//! Nothing is trusted about this crate: whoever concludes something about `P` checks it against `P`.
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

/// Why a program cannot be reduced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// In words.
    pub why: String,
    /// Where, if it is about one place of the source.
    pub span: Option<Span>,
}

impl Unsupported {
    fn new(why: impl Into<String>, span: Option<Span>) -> Self {
        Unsupported { why: why.into(), span }
    }
}

/// Indices beyond this are refused: the number of a memory cell is computed from them.
const FAR: i64 = 1 << 62;

/// The program that does under SC what `program` does under `model` (TSO or PSO) with buffers of these sizes, up to the first overflow.
pub fn reduce(program: &Program, model: MemoryModel, bounds: &Bounds) -> Result<Reduced, Unsupported> {
    reduced(program, model, Size { bounds: bounds.clone(), forgets: false })
}

/// The k-abstract system of FENCES12 as a program for SC: k stores of a buffer (PSO: of those to each memory cell) are kept in order, the oldest ones,
/// and of all others only which cells they are to and the newest value of each. It does all that `program` does under `model` with
/// buffers of any size, and more: a property (other than `finally exists` and freedom from deadlock) that holds of it holds of `program`.
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
