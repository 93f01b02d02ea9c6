//! How long something takes: on the wall clock, and on the processor, which other processes disturb less.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// A stopwatch that runs.
#[derive(Clone, Copy)]
pub struct Stopwatch {
    wall: Instant,
    processor: f64,
}

/// What something took, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Took {
    /// On the wall clock.
    pub wall: f64,
    /// On the processor, all threads of this process together, if that is known.
    pub processor: Option<f64>,
}

impl Stopwatch {
    /// Now.
    pub fn start() -> Self {
        Stopwatch { wall: Instant::now(), processor: processor() }
    }

    /// Since then.
    pub fn took(self) -> Took {
        Took { wall: self.wall.elapsed().as_secs_f64(), processor: Some(processor() - self.processor) }
    }
}

impl Took {
    /// Milliseconds on the wall clock.
    pub fn ms(self) -> f64 {
        self.wall * 1e3
    }
}

/// What was measured elsewhere, on the wall clock.
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
