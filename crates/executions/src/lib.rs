//! Analyses of executions on the reference semantics: reachable states, classes of equivalent executions, and the happens-before relation of a single
//! execution.
//!
//! * [`oracle`]: every reachable state of a small program. Used to test engines, and to confirm answers that come without a trace and without a
//!   certificate.
//! * [`happens_before`]: the relation that decides whether an execution is equivalent to one under SC.
//! * [`source_sets`]: one execution of each class of equivalent executions. Used to confirm results of the engine that explores executions.
//!
//! Neither checking a certificate nor replaying a trace depends on this crate.
//!
//! Both threads of store buffering may read 0 under TSO, but not under SC:
//!
//! ```
//! use fencewright_executions::oracle::explore;
//! use fencewright_program::MemoryModel;
//!
//! let text = b"shared x, y;
//!     thread p { var r; x = 1; r = y; }
//!     thread q { var s; y = 1; s = x; }
//!     finally seen: never p.r == 0 && q.s == 0;";
//! let program = fencewright_lang::load("sb.fw", text, None, &[]).expect("it is right").program;
//! let holds = |model| {
//!     let reachable = explore(&program, model, 10_000, &mut || false).expect("there are few states");
//!     reachable.satisfies(&program, model, &program.properties[0])
//! };
//! assert_eq!(holds(MemoryModel::Sc), Some(true));
//! assert_eq!(holds(MemoryModel::Tso), Some(false));
//! ```

#![forbid(unsafe_code)]

pub mod happens_before;
pub mod oracle;
pub mod source_sets;
