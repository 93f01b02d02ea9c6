//! The verification engines, and the one door through which checked verdicts leave them.
//!
//! An [`Engine`] answers a [`Task`]. Nobody outside sees its answer: [`check`] replays every trace on the reference
//! semantics, confirms what it can, and only then makes a [`Verdict`].

#![forbid(unsafe_code)]

mod check;
pub mod explicit;
pub mod task;

pub use check::{Checked, Confirm, Verdict, check};
pub use task::{Answer, Engine, Limits, Progress, Reason, Report, Task};

/// All engines by name.
pub fn engine_names() -> &'static [&'static str] {
    &["explicit"]
}
