//! Runs a command and measures its time and memory; and the processor time of a test.

use std::io;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use wait4::Wait4;

/// The time and memory that a process used.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// The exit status.
    pub status: ExitStatus,
    /// The wall-clock time.
    pub wall: Duration,
    /// The processor time: on a busy machine less than `wall`.
    pub computed: Duration,
    /// The peak resident memory, in bytes.
    pub peak: u64,
}

/// The interval at which a process is polled.
const PAUSE: Duration = Duration::from_millis(2);

/// The processor time of this thread: tests limit processor time, so that other processes do not make them fail.
#[cfg(unix)]
pub fn computed() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

/// Where threads have no clock of their own, the time since the first call.
#[cfg(not(unix))]
pub fn computed() -> Duration {
    static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    START.elapsed()
}

/// Runs a command without a terminal and measures it; kills it after `patience`. Its output is discarded.
pub fn measure(command: &mut Command, patience: Duration) -> io::Result<Measured> {
    measure_with(command, patience, Stdio::null())
}

/// As [`measure`], with a destination for the standard error.
pub fn measure_with(command: &mut Command, patience: Duration, errors: Stdio) -> io::Result<Measured> {
    let start = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn()?;
    let mut killed = false;
    loop {
        if let Some(end) = child.try_wait4()? {
            let (wall, computed) = (start.elapsed(), end.rusage.utime + end.rusage.stime);
            return Ok(Measured { status: end.status, wall, computed, peak: end.rusage.maxrss });
        }
        if start.elapsed() > patience && !killed {
            child.kill()?;
            killed = true;
        }
        std::thread::sleep(PAUSE);
    }
}
