//! Tools to build programs with, shared by source languages, transformations, fence placement and engines.
//!
//! * [`thread`]: the builder of threads, which keeps track of what each new edge and location stands for;
//! * [`formulas`]: renumbers the locations in formulas;
//! * [`accesses`], [`choices`]: questions about operations;
//! * [`validate`](mod@validate): well-formedness, what every program satisfies.
//!
//! When an operation faults is defined in `fencewright_program::faults`, once for all of these.
//!
//! Transformations that certificates name use this crate, so it counts among what such certificates stand on.

#![forbid(unsafe_code)]

pub mod accesses;
pub mod choices;
pub mod formulas;
pub mod graph;
pub mod thread;
pub mod validate;

pub use thread::{Built, ThreadBuilder};
pub use validate::validate;
