//! The verification engines, and the one door through which checked verdicts leave them.
//!
//! An [`Engine`] answers a [`Task`]. Nobody outside sees its answer: [`check`] replays every trace on the reference
//! semantics, confirms what it can, and only then makes a [`Verdict`].

#![forbid(unsafe_code)]

pub mod cegar;
mod check;
pub mod domain;
pub mod explicit;
mod liveness;
pub mod search;
pub mod task;

pub use check::{Checked, Confirm, Verdict, check};
pub use task::{Answer, Engine, Limits, Progress, Reason, Report, Task};

/// An engine that can be asked for by name.
pub struct EngineInfo {
    /// Its name on the command line.
    pub name: &'static str,
    /// Makes one; the options say how to search, as far as that means something to this engine.
    pub build: fn(&explicit::Options) -> Box<dyn Engine>,
}

/// All engines, the default first.
pub fn registry() -> &'static [EngineInfo] {
    &[EngineInfo {
        name: "explicit",
        build: |options| Box::new(explicit::Explicit { options: options.clone() }),
    }]
}
