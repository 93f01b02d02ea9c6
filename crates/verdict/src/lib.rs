//! The interface of engines: tasks, limits and reports; and the module [`check`](mod@check), the only place where a report becomes a verdict.
//!
//! An [`Engine`] answers a [`Task`] within [`Limits`]. A [`Report`] can be constructed anywhere, so it proves nothing. The function
//! [`check`](fn@check) replays every trace on the reference semantics, confirms other answers as far as possible, and only then makes a [`Checked`]
//! verdict. The fields for the verdict and its evidence are private to that module:
//!
//! ```compile_fail,E0451
//! use fencewright_verdict::{Checked, Evidence, Verdict};
//!
//! fn forge(checked: Checked) -> Checked {
//!     Checked { verdict: Verdict::Safe, evidence: Evidence::Explored, ..checked }
//! }
//! ```
//!
//! The final states of litmus tests ([`FinalStates`]) are checked in the same way.

#![forbid(unsafe_code)]

pub mod answers;
pub mod check;
mod finals;
pub mod fingerprint;
pub mod limits;
mod reason;
pub mod task;
pub mod turns;
mod work;

pub use check::{
    Checked, Checks, Confirm, Doubt, Evidence, Exploration, FinalState, FinalStates, Observation, Verdict,
    check, check_each,
};
pub use finals::Condition;
pub use limits::{discard, gaps, wait_until_freed};
pub use task::{
    About, Advice, Answer, Author, Counts, DomainName, Early, Engine, EngineName, Executions, Invariant,
    Limits, Listener, Order, Part, Progress, Reason, Report, Round, Seen, Task, Token, Tried, Work,
};
