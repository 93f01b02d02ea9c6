//! Executions on the reference semantics, studied: all states they reach, and what happens before what in one of them.
//!
//! * [`oracle`]: every reachable state of a small program. Tests compare engines with it, and it confirms explicit proofs.
//! * [`happens_before`]: the relation that decides whether an execution could be one under SC.
//!
//! No certificate and no replayed trace stands on this crate.

#![forbid(unsafe_code)]

pub mod happens_before;
pub mod oracle;
