//! The one way to the standard output.
//!
//! If nobody reads it any more (`| head`), what is printed goes nowhere: a run that also writes files goes on, any other one ends. Any other failure, a full disk
//! say, ends the run.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Nobody reads the output any more.
static GONE: AtomicBool = AtomicBool::new(false);

/// Prints a text as it is.
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

/// Prints a line.
pub fn line(text: &str) {
    print(&format!("{text}\n"));
}

/// Whether nobody reads it any more.
pub fn is_gone() -> bool {
    GONE.load(Ordering::Relaxed)
}

/// A text from elsewhere, for a terminal: characters that would do something there stand as themselves no longer.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
