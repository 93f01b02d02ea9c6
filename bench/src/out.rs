//! Writes to the standard output.
//!
//! After the reader has closed the standard output (`| head`), output is discarded. A run that also writes files continues then; any other run ends.
//! Other write errors, such as a full disk, end every run.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the reader has closed the output.
static GONE: AtomicBool = AtomicBool::new(false);

/// Prints a text unchanged.
pub fn print(text: &str) {
    if is_gone() {
        return;
    }
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => GONE.store(true, Ordering::Relaxed),
        Err(error) => {
            eprintln!("fencewright-bench: the standard output: {error}");
            std::process::exit(2);
        }
    }
}

/// Prints a text and a line break.
pub fn line(text: &str) {
    print(&format!("{text}\n"));
}

/// Whether the reader has closed the output.
pub fn is_gone() -> bool {
    GONE.load(Ordering::Relaxed)
}

/// Replaces control characters in a foreign text, so that it cannot affect the terminal.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
