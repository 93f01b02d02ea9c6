//! Measures the time and memory of a command, and the processor time of a test.

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
    /// The processor time of all threads of the process. Other processes hardly influence it.
    pub computed: Duration,
    /// The peak resident memory, in bytes.
    pub peak: u64,
}

/// The interval at which a process is polled.
const PAUSE: Duration = Duration::from_millis(2);

/// The processor time of this thread. Tests limit processor time, not wall-clock time, so that they do not fail because of other processes.
#[cfg(unix)]
pub fn computed() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

/// The wall-clock time since the first call, on systems without a clock for single threads.
#[cfg(not(unix))]
pub fn computed() -> Duration {
    static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    START.elapsed()
}

/// Runs a command without input, discards its output, and measures it. The process is killed after `patience`.
pub fn measure(command: &mut Command, patience: Duration) -> io::Result<Measured> {
    measure_with(command, patience, Stdio::null())
}

/// Like [`measure`], but writes the standard error to `errors`.
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
