//! What engines are asked, what they may use, what they report, and the one door through which a report becomes a verdict.
//!
//! An [`Engine`] answers a [`Task`] within [`Limits`]. Anybody can make a [`Report`], so it proves nothing: [`check`](fn@check) replays every
//! trace on the reference semantics, confirms what it can, and only then makes a [`Checked`] verdict. The fields that say what was decided,
//! and on what evidence, are private to the door:
//!
//! ```compile_fail,E0451
//! use fencewright_verdict::{Checked, Evidence, Verdict};
//!
//! fn forge(checked: Checked) -> Checked {
//!     Checked { verdict: Verdict::Safe, evidence: Evidence::Explored, ..checked }
//! }
//! ```
//!
//! The final states of litmus tests ([`FinalStates`]) leave in the same way.

#![forbid(unsafe_code)]

pub mod answers;
pub mod check;
mod finals;
pub mod limits;
pub mod task;
pub mod turns;

pub use check::{
    Checked, Checks, Confirm, Doubt, Evidence, Exploration, FinalState, FinalStates, Observation, Verdict,
    check, check_each,
};
pub use finals::Condition;
pub use limits::{discard, gaps, wait_until_freed};
pub use task::{
    About, Answer, Author, Counts, DomainName, Early, Engine, EngineName, Executions, Invariant, Limits,
    Listener, Order, Part, Progress, Reason, Report, Round, Seen, Task, Token, Tried, Work,
};
