//! The progress line: states, states per second, frontier and memory, on a terminal only.

use std::io::{self, IsTerminal};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use fencewright::engines::Progress;
use fencewright_report::words::grouped;

use crate::output::write_error;

/// Runs shorter than this show no progress.
const FIRST: Duration = Duration::from_millis(500);
/// Interval between updates of the line.
const EVERY: Duration = Duration::from_millis(200);
/// Moves to the start of the line and erases it.
const ERASE: &str = "\r\x1b[K";

/// Whether the line is on the screen. Writing to the screen requires the lock.
static ON_SCREEN: Mutex<bool> = Mutex::new(false);

/// Draws the progress line with this text or, for `None`, erases it; then calls `then`, before another thread can draw.
fn draw(text: Option<&str>, then: impl FnOnce()) {
    let mut on_screen = ON_SCREEN.lock().unwrap_or_else(PoisonError::into_inner);
    match text {
        Some(text) => write_error(&format!("{ERASE}{text}")),
        None if *on_screen => write_error(ERASE),
        None => {}
    }
    *on_screen = text.is_some();
    then();
}

/// Erases the progress line, then prints.
pub fn make_room(print: impl FnOnce()) {
    draw(None, print);
}

/// Whether both output streams are terminals.
pub fn is_watched() -> bool {
    io::stdout().is_terminal() && io::stderr().is_terminal()
}

/// Runs `work` and shows its progress meanwhile.
pub fn shown<T>(show: bool, progress: &Progress, work: impl FnOnce() -> T) -> T {
    if !show {
        return work();
    }
    std::thread::scope(|scope| {
        let (done, waiting) = mpsc::channel::<()>();
        // If the thread cannot be started, no progress is shown.
        let _ = std::thread::Builder::new().spawn_scoped(scope, move || watch(progress, &waiting));
        let result = work();
        // Closing the channel ends the watching thread, and the scope waits for that.
        drop(done);
        result
    })
}

fn watch(progress: &Progress, waiting: &mpsc::Receiver<()>) {
    let start = Instant::now();
    let mut wait = FIRST;
    while let Err(mpsc::RecvTimeoutError::Timeout) = waiting.recv_timeout(wait) {
        wait = EVERY;
        draw(Some(&line(progress, start.elapsed())), || {});
    }
    draw(None, || {});
}

fn line(progress: &Progress, elapsed: Duration) -> String {
    let states = progress.states.load(Ordering::Relaxed);
    let rate = states as f64 / elapsed.as_secs_f64().max(1e-3);
    let note = progress.said();
    format!(
        "{} states, {} states/s, frontier {}, {} MiB{}{note}",
        grouped(states),
        grouped(rate as u64),
        grouped(progress.frontier.load(Ordering::Relaxed)),
        grouped(progress.bytes.load(Ordering::Relaxed) >> 20),
        if note.is_empty() { "" } else { "; " },
    )
}
