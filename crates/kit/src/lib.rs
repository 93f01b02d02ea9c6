//! Tools to build and inspect programs, shared by source languages, transformations, fence placement and engines.
//!
//! * [`thread`]: the builder of threads, which tracks the origin of each new edge and location;
//! * [`formulas`]: renumbers the locations in formulas;
//! * [`accesses`], [`choices`], [`graph`]: queries on operations and control-flow graphs;
//! * [`validate`](mod@validate): well-formedness, the invariant of every program.
//!
//! The conditions under which operations fault are defined in `fencewright_program::faults`.
//!
//! Transformations that certificates name use this crate, so trusting such a certificate includes trusting this crate.

#![forbid(unsafe_code)]

pub mod accesses;
pub mod choices;
pub mod formulas;
pub mod graph;
pub mod thread;
pub mod validate;

pub use thread::{Built, ThreadBuilder};
pub use validate::validate;
