//! A stopwatch for wall-clock time and processor time. Other processes influence the processor time less.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// A running stopwatch.
#[derive(Clone, Copy)]
pub struct Stopwatch {
    wall: Instant,
    processor: f64,
}

/// A duration in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Took {
    /// The wall-clock time in seconds.
    pub wall: f64,
    /// The processor time of all threads of this process in seconds, if known.
    pub processor: Option<f64>,
}

impl Stopwatch {
    /// Starts a stopwatch.
    pub fn start() -> Self {
        Stopwatch { wall: Instant::now(), processor: processor() }
    }

    /// The time since the start.
    pub fn took(self) -> Took {
        Took { wall: self.wall.elapsed().as_secs_f64(), processor: Some(processor() - self.processor) }
    }
}

impl Took {
    /// Milliseconds of wall-clock time.
    pub fn ms(self) -> f64 {
        self.wall * 1e3
    }
}

/// A wall-clock time that was measured elsewhere.
impl From<f64> for Took {
    fn from(wall: f64) -> Self {
        Took { wall, processor: None }
    }
}

/// The processor time of this process, in seconds.
fn processor() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
