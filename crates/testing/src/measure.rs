//! Running a command and measuring what it takes.

use std::io;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use wait4::Wait4;

/// The time and memory that a process took.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// How it ended.
    pub status: ExitStatus,
    /// How long it ran.
    pub wall: Duration,
    /// Its processor time: on a busy machine less than `wall`.
    pub computed: Duration,
    /// Its largest resident memory, in bytes.
    pub peak: u64,
}

/// The interval at which a process is polled.
const PAUSE: Duration = Duration::from_millis(2);

/// Runs a command without a terminal, and measures it; kills it after `patience`. Its output is discarded.
pub fn measure(command: &mut Command, patience: Duration) -> io::Result<Measured> {
    measure_with(command, patience, Stdio::null())
}

/// The same, with a place for what the command writes to its standard error.
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
