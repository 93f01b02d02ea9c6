//! Analyses of executions on the reference semantics: all states they reach, how many traces they have, and the happens-before relation of one
//! of them.
//!
//! * [`oracle`]: every reachable state of a small program. Tests compare engines with it, and it confirms explicit proofs.
//! * [`abstract_buffers`]: the machines with store buffers that forget, defined to be read. Tests compare engines with them.
//! * [`happens_before`]: the relation that decides whether an execution could be one under SC.
//! * [`traces`]: how many executions there are up to the order of independent events. Tests compare the dynamic reduction with it.
//!
//! Neither certificates nor replayed traces depend on this crate.

#![forbid(unsafe_code)]

pub mod abstract_buffers;
pub mod happens_before;
pub mod oracle;
pub mod traces;
