//! What everybody needs who makes programs, or makes programs from programs: source languages, transformations, fence placement, engines.
//!
//! * [`thread`]: the builder of threads, which keeps track of what each new edge and location stands for;
//! * [`formulas`]: formulas about a program whose locations get other numbers;
//! * [`accesses`], [`choices`]: questions about operations;
//! * [`validate`](mod@validate): what every program is promised to be.
//!
//! When an operation faults is said in `fencewright_program::faults`, once for all of these.
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
