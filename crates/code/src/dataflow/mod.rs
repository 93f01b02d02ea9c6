//! Data-flow analyses over the statements of a thread, and the passes that rewrite code by their facts.
//!
//! An analysis states its facts, their join and its transfer function; [`backward`] and [`forward`] walk through blocks, branches, loops, labels
//! and jumps. Code is structured up to `goto`, so a walk follows the syntax tree: it keeps facts for the heads of loops and for labels, and is
//! repeated until these do not change any more.

pub(crate) mod backward;
pub(crate) mod forward;
pub(crate) mod liveness;
