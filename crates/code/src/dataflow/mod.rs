//! Data-flow analyses over the statements of a thread, and the passes that rewrite code by their facts.
//!
//! An analysis states its facts, their join and its transfer function; [`backward`] and [`forward`] walk through blocks, branches, loops, labels and
//! jumps. Code is structured except for `goto`, so a walk follows the syntax tree and keeps facts for the heads of loops and for labels. An iterating
//! analysis repeats the walk until these facts no longer change.

pub(crate) mod backward;
pub(crate) mod forward;
pub(crate) mod liveness;
