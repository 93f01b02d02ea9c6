//! How much time and memory a question may take.

use std::time::Duration;

use fencewright_engines::{Limits, Token};

use crate::settings::Settings;

/// Time and memory for a question, and the token that stops it. [`Budget::start`] starts the clock.
#[derive(Clone, Debug)]
pub struct Budget {
    /// Maximum time; `None` for no limit.
    pub timeout: Option<Duration>,
    /// Maximum memory in bytes; `None` for no limit.
    pub memory: Option<u64>,
    /// Stops the run when it is cancelled.
    pub token: Token,
    /// Whether only the built-in solver may be used, and Z3 is never started.
    pub own_solver: bool,
    /// Measures the memory of the whole process. Without it, only what engines store counts.
    pub meter: Option<Meter>,
}

/// Measures the memory of the process.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    /// The number of bytes in use.
    pub used: fn() -> u64,
    /// Frees memory left over from earlier questions before a question that may use this much starts.
    pub make_room: fn(Option<u64>),
}

impl Default for Budget {
    /// The defaults of the [table of options](crate::settings): 60 seconds and 4 GiB.
    fn default() -> Self {
        Settings::default().budget()
    }
}

impl Budget {
    /// Limits that start now.
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
