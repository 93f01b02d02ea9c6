//! Ctrl-C: the first one asks the search to stop, the second one ends the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a process that was interrupted exits with.
const INTERRUPTED: i32 = 130;

/// A token that becomes true at the first Ctrl-C.
pub fn on_interrupt() -> Arc<AtomicBool> {
    let cancelled = Arc::new(AtomicBool::new(false));
    let token = cancelled.clone();
    // Without a handler Ctrl-C still ends the process, as everywhere.
    let _ = ctrlc::set_handler(move || {
        if token.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED);
        }
    });
    cancelled
}
