//! Limits of a question on time and memory.

use std::time::Duration;

use fencewright_engines::{Limits, Token};

use crate::settings::Settings;

/// Limits of a question on time and memory, and the token that stops it. [`Budget::start`] starts the clock.
#[derive(Clone, Debug)]
pub struct Budget {
    /// Maximum time; `None` for no limit.
    pub timeout: Option<Duration>,
    /// Maximum memory in bytes; `None` for no limit.
    pub memory: Option<u64>,
    /// The run stops when this token is cancelled.
    pub token: Token,
    /// Whether only the built-in solver may be used. Then Z3 is never started.
    pub own_solver: bool,
    /// Measures the memory of the whole process. If `None`, only the memory for the data structures of engines counts.
    pub meter: Option<Meter>,
}

/// Measures the memory of the process.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    /// Returns the number of bytes in use.
    pub used: fn() -> u64,
    /// Frees memory left over from earlier questions. Called before a question starts, with the question's limit in bytes.
    pub make_room: fn(Option<u64>),
}

impl Default for Budget {
    /// The defaults of the [table of options](crate::settings): 60 seconds and 4 GiB.
    fn default() -> Self {
        Settings::default().budget()
    }
}

impl Budget {
    /// Limits whose time starts now.
    pub fn start(&self) -> Limits {
        if let Some(meter) = self.meter {
            (meter.make_room)(self.memory);
        }
        let limits = Limits::starting_now(self.timeout, self.memory, self.token.clone())
            .with_own_solver(self.own_solver);
        match self.meter {
            Some(meter) => limits.measured_by(meter.used),
            None => limits,
        }
    }
}
