//! Runs another process with a time limit, and keeps the beginning of what it writes.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use crate::stop;

/// The interval at which a running process is polled.
const PAUSE: Duration = Duration::from_millis(1);
/// How long to wait for the output of processes that have been killed.
const AFTERWARDS: Duration = Duration::from_secs(1);

/// A process that has ended or was killed.
pub struct Ended {
    /// The exit status; `None` if the process was killed because of the time limit.
    pub status: Option<ExitStatus>,
    /// The wall-clock time.
    pub took: Duration,
    /// The beginning of its standard output, if that is a pipe.
    pub output: Vec<u8>,
    /// The beginning of its standard error, if that is a pipe.
    pub errors: Vec<u8>,
}

/// Runs a command as leader of a process group, with a time limit. At most `most` bytes of each output are kept. If a signal ends this process, the
/// process group is killed and `folder` is removed.
pub fn run(command: &mut Command, limit: Duration, most: u64, folder: Option<&Path>) -> io::Result<Ended> {
    let start = Instant::now();
    let mut child = command.stdin(Stdio::null()).process_group(0).spawn()?;
    let running = stop::began(child.id(), folder);
    let output = child.stdout.take().map(|pipe| first_bytes(pipe, most));
    let errors = child.stderr.take().map(|pipe| first_bytes(pipe, most));
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if start.elapsed() > limit {
            break None;
        }
        std::thread::sleep(PAUSE);
    };
    let took = start.elapsed();
    // Kills the remaining processes of the process group, which the command may have started.
    drop(running);
    child.wait()?;
    // All writers of the pipes have ended, so the first bytes arrive soon, unless a process that left the process group keeps a pipe open.
    let kept = |pipe: Option<Receiver<Vec<u8>>>| {
        pipe.and_then(|first| first.recv_timeout(AFTERWARDS).ok()).unwrap_or_default()
    };
    Ok(Ended { status, took, output: kept(output), errors: kept(errors) })
}

/// Reads a pipe to its end, so that the writer is never blocked, and keeps the first bytes.
fn first_bytes(mut pipe: impl Read + Send + 'static, most: u64) -> Receiver<Vec<u8>> {
    let (to, from) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut first = Vec::new();
        // A read error is treated like the end of the pipe.
        let _ = pipe.by_ref().take(most).read_to_end(&mut first);
        let _ = io::copy(&mut pipe, &mut io::sink());
        let _ = to.send(first);
    });
    from
}
